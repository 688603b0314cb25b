"""Removing nodes and edges beside a base graph, and overlays that share what they have in common."""

from itertools import pairwise
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinegraph import SPINE, Graph
from spinegraph.errors import GraphFormatError, UnknownNodeError
from spinegraph.graph.overlay import MAX_WASTE, Overlay
from strategies import dense_adjacency, dense_features, graphs, weights_above_zero


class Plain:
    """The same changes on plain Python values: edges by name, features by name."""

    def __init__(self, base):
        names, matrix = base.names.tolist(), dense_adjacency(base)
        self.names = list(names)
        self.edges = {
            frozenset((a, b)): matrix[i, j]
            for i, a in enumerate(names)
            for j, b in enumerate(names[:i])
            if matrix[i, j]
        }
        self.features = (
            dict(zip(names, dense_features(base.features), strict=True)) if base.has_features else {}
        )

    def matches(self, overlay):
        whole = overlay.materialize()
        assert whole.names.tolist() == self.names
        found, matrix = {}, dense_adjacency(whole)
        for i, a in enumerate(self.names):
            for j, b in enumerate(self.names[:i]):
                if matrix[i, j]:
                    found[frozenset((a, b))] = matrix[i, j]
        assert found == pytest.approx(self.edges, rel=1e-6)
        Graph(whole.indptr, whole.indices, whole.weights, whole.names, whole.features)
        for name, row in zip(
            self.names, dense_features(whole.features) if self.features else [], strict=False
        ):
            np.testing.assert_array_equal(row, self.features[name])


@st.composite
def changed(draw):
    """Return an overlay after a few changes, the plain values they should give, and the overlays before."""
    base = draw(graphs(max_nodes=7))
    overlay, plain, way = Overlay.of(base), Plain(base), []
    width = base.features.shape[1] if base.has_features else 0
    for step in range(draw(st.integers(1, 6))):
        way.append((overlay, overlay.names.tolist(), overlay.standing.tolist(), overlay.degrees.tolist()))
        if draw(st.booleans()) and len(plain.names) > 1:
            gone = draw(st.lists(st.sampled_from(plain.names), max_size=2, unique=True))
            edges = draw(
                st.lists(st.sampled_from(list(plain.edges)), max_size=2, unique=True)
                if plain.edges
                else st.just([])
            )
            if len(gone) == len(plain.names):
                continue
            overlay = overlay.remove(gone, [tuple(edge) for edge in edges])
            plain.names = [name for name in plain.names if name not in gone]
            plain.edges = {e: w for e, w in plain.edges.items() if e not in edges and not e & set(gone)}
        else:
            back = [name for name in overlay.names.tolist() if name not in plain.names]
            new = draw(st.sampled_from([[f"new {step}"], back[:1], []]))
            known = plain.names + new
            pairs = draw(
                st.lists(
                    st.lists(st.sampled_from(known), min_size=2, max_size=2, unique=True),
                    max_size=3,
                    unique_by=frozenset,
                )
                if len(known) > 1
                else st.just([])
            )
            weights = None if base.weights is None else [draw(weights_above_zero) for _ in pairs]
            features = np.full((len(new), width), step, np.float32) if base.has_features else None
            overlay = overlay.add(new, [tuple(pair) for pair in pairs], features, weights)
            plain.names = known
            plain.features |= (
                {name: np.full(width, step, np.float32) for name in new} if base.has_features else {}
            )
            for number, pair in enumerate(pairs):
                key = frozenset(pair)
                plain.edges[key] = plain.edges.get(key, 0) + weights[number] if weights else 1
    return overlay, plain, way


@given(changed())
def test_changes_give_the_graph_of_what_is_left(case):
    overlay, plain, _ = case
    plain.matches(overlay)
    assert overlay.num_nodes == len(plain.names)
    assert overlay.num_edges == len(plain.edges)
    assert overlay.adjacency().num_entries == 2 * len(plain.edges)


@given(changed())
def test_earlier_overlays_never_change(case):
    _, _, way = case
    for overlay, names, standing, degrees in way:
        fresh = Overlay(overlay.base, overlay.added, overlay.patch, overlay.added_rows)
        assert fresh.names.tolist() == names
        assert fresh.standing.tolist() == standing
        assert fresh.degrees.tolist() == degrees


@given(changed())
def test_a_branch_is_the_same_graph_and_grows_apart(case):
    overlay, plain, _ = case
    tried = overlay.branch()
    plain.matches(tried)
    width = None if overlay.added_rows is None else np.zeros((1, overlay.base.features.shape[1]), np.float32)
    tried = tried.add(["tried"], [], width)
    assert tried.positions(["tried"]).tolist() == [len(overlay)]
    with pytest.raises(UnknownNodeError):
        overlay.positions(["tried"])
    plain.matches(overlay)


def test_a_removed_node_is_unknown_and_moves_nobody():
    overlay = Graph.from_edges([("ann", "bob"), ("bob", "cy")]).overlay(["di"], [("di", "bob")])
    less = overlay.remove(["bob"])
    assert less.positions(["ann", "cy", "di"]).tolist() == [0, 2, 3]
    with pytest.raises(UnknownNodeError, match="'bob'"):
        less.positions(["bob"])
    assert overlay.neighbors("bob").tolist() == ["ann", "cy", "di"]


def test_a_name_may_join_again_with_other_features():
    base = Graph.from_edges([("ann", "bob")], features=[[1.0], [2.0]])
    back = Overlay.of(base).remove(["bob"]).add(["bob"], [("bob", "ann")], features=[[5.0]])
    assert back.positions(["bob"]).tolist() == [2]
    assert back.materialize().features.tolist() == [[1.0], [5.0]]
    again = back.remove(["bob"]).add(["bob"], [], features=[[6.0]])
    assert back.positions(["bob"]).tolist() == [2]
    assert again.positions(["bob"]).tolist() == [3]


def test_two_overlays_may_grow_from_the_same_one():
    first = Graph.from_edges([(0, 1)]).overlay(["a"], [("a", 0)])
    left, right = first.add(["b"], [("b", "a")]), first.add(["c"], [("c", 1)])
    assert left.names.tolist() == [0, 1, "a", "b"]
    assert right.names.tolist() == [0, 1, "a", "c"]
    assert left.neighbors("a").tolist() == [0, "b"]
    assert right.neighbors("a").tolist() == [0]


def test_threads_that_grow_from_the_same_overlay_do_not_meet():
    first = Graph.from_edges([(0, 1)]).overlay([], [])
    made = {}

    def grow(which):
        overlay = first
        for number in range(200):
            overlay = overlay.add([f"{which} {number}"], [(f"{which} {number}", 0)])
        made[which] = overlay

    threads = [Thread(target=grow, args=(which,)) for which in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for which, overlay in made.items():
        assert overlay.names.tolist() == [0, 1, *(f"{which} {number}" for number in range(200))]
        assert overlay.degrees.tolist() == [201, 1, *[1] * 200]


def test_rows_that_were_replaced_do_not_pile_up():
    overlay = Overlay.of(Graph.from_edges([(0, 1)]))
    for number in range(1500):  # the hub's row is written anew each time: over a million entries in all
        overlay = overlay.add([f"leaf {number}"], [(f"leaf {number}", 0)])
    assert len(overlay.patch.indices) < 3 * MAX_WASTE
    assert overlay.degrees[0] == 1501
    assert overlay.adjacency().num_entries == 2 * 1501


def test_removing_what_is_not_there_says_what():
    overlay = Overlay.of(Graph.from_edges([("ann", "bob"), ("bob", "cy")]))
    with pytest.raises(UnknownNodeError, match="'zoe'"):
        overlay.remove(["zoe"])
    with pytest.raises(GraphFormatError, match=r"1 edges to remove are not in the graph.*\('cy', 'ann'\)"):
        overlay.remove([], [("cy", "ann")])


def test_an_edge_of_a_removed_node_may_be_named_as_well():
    overlay = Overlay.of(Graph.from_edges([("ann", "bob"), ("bob", "cy")]))
    assert overlay.remove(["bob"], [("ann", "bob")]).num_edges == 0


def test_transform_of_an_overlay_leaves_removed_nodes_out():
    comb = Graph.from_edges([(i, i + 1) for i in range(9)] + [(i, i + 10) for i in range(10)])
    model = SPINE(dim=4, steps=5).fit(comb)
    overlay = comb.overlay(["new"], [("new", 3)]).remove([15])
    found, plain = model.transform(overlay), model.transform(overlay.materialize())
    assert found.names.tolist() == plain.names.tolist()
    np.testing.assert_allclose(found.vectors, plain.vectors, atol=1e-5)


@settings(max_examples=25)
@given(changed())
def test_touched_are_the_nodes_whose_rows_changed(case):
    overlay, _, way = case
    overlays = [entry[0] for entry in way] + [overlay]
    for before, after in pairwise(overlays):
        differ = {
            position
            for position in range(len(after))
            if _row(before, position) != _row(after, position) and position in after.standing
        }
        assert differ <= set(after.touched.tolist()) or before is after


def _row(overlay, position):
    if position >= len(overlay):
        return None
    read = overlay.adjacency()
    place = read.rows[position]
    part = (
        slice(read.indptr[position], read.indptr[position + 1])
        if place < 0
        else slice(read.patch_indptr[place], read.patch_indptr[place + 1])
    )
    indices, weights = (read.indices, read.weights) if place < 0 else (read.patch_indices, read.patch_weights)
    return indices[part].tolist(), weights[part].tolist()


def test_an_overlay_without_a_node_left_makes_no_graph():
    empty = Overlay.of(Graph.from_edges([(0, 1)])).remove([0, 1])
    assert empty.num_nodes == 0
    with pytest.raises(GraphFormatError, match="every node of this overlay was removed"):
        empty.materialize()
