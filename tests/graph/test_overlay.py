"""Additions and removals beside a base graph: the same graph as one built from all edges at once."""

from itertools import pairwise
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from spinegraph import SPINE, Graph
from spinegraph.errors import (
    EdgeCleaningWarning,
    GraphFormatError,
    MissingFeaturesError,
    ParameterError,
    UnknownNodeError,
)
from spinegraph.graph.overlay import MAX_WASTE, Overlay
from strategies import (
    assert_same_graph,
    dense_adjacency,
    dense_features,
    edge_arrays,
    feature_matrices,
    graphs,
    weights_above_zero,
)


@st.composite
def additions(draw, overlay):
    """Arguments of ``add``: new names, edges between any nodes, features and weights as the base has."""
    count = draw(st.integers(0, 4))
    new = [f"new {len(overlay) + place}" for place in range(count)]
    names = [*overlay.names.tolist(), *new]
    pairs = draw(edge_arrays(len(names), max_edges=8))
    base = overlay.base
    features = None
    if base.has_features:
        width = base.features.shape[1]
        features = draw(feature_matrices(max(count, 1), "s" if draw(st.booleans()) else "d", width))[:count]
        features = np.zeros((count, width), np.float32) if features.shape[1] != width else features
    return {
        "names": new,
        "edges": [(names[source], names[target]) for source, target in pairs],
        "features": features,
        "weights": None if base.weights is None else [draw(weights_above_zero) for _ in pairs],
    }


@st.composite
def grown(draw):
    """Return a base graph, an overlay after one to three additions, and the additions."""
    base = draw(graphs(max_nodes=7))
    overlay, steps = Overlay.of(base), []
    for _ in range(draw(st.integers(1, 3))):
        step = draw(additions(overlay))
        overlay = overlay.add(**step)
        steps.append(step)
    return base, overlay, steps


def added_up(base, steps):
    """Adjacency matrix after the additions, entry by entry: an edge that is there already grows."""
    names = base.names.tolist() + [name for step in steps for name in step["names"]]
    matrix = np.zeros((len(names), len(names)))
    matrix[: len(base), : len(base)] = dense_adjacency(base)
    place = {name: position for position, name in enumerate(names)}
    for step in steps:
        for number, (source, target) in enumerate(step["edges"]):
            at = (place[source], place[target])
            weight = matrix[at] + step["weights"][number] if step["weights"] is not None else 1
            matrix[at] = matrix[at[::-1]] = weight
    return names, matrix


@given(grown())
def test_an_overlay_is_the_graph_of_all_edges_together(case):
    base, overlay, steps = case
    names, matrix = added_up(base, steps)
    whole = overlay.materialize()
    assert whole.names.tolist() == names
    np.testing.assert_allclose(dense_adjacency(whole), matrix, rtol=1e-6)
    Graph(whole.indptr, whole.indices, whole.weights, whole.names, whole.features, whole.feature_names)


@given(grown())
def test_an_overlay_reads_like_its_materialized_graph(case):
    _, overlay, _ = case
    whole = overlay.materialize()
    assert len(overlay) == len(whole) == overlay.num_nodes
    assert overlay.num_edges == whole.num_edges
    assert overlay.names.tolist() == whole.names.tolist()
    assert overlay.positions(whole.names).tolist() == list(range(len(whole)))
    np.testing.assert_array_equal(overlay.degrees, whole.degrees)
    np.testing.assert_allclose(overlay.strengths, whole.strengths, rtol=1e-12)
    for name in whole.names:
        assert overlay.neighbors(name).tolist() == whole.neighbors(name).tolist()
    assert overlay.has_features == whole.has_features
    assert overlay.feature_names == whole.feature_names


@given(grown())
def test_kernels_read_the_rows_of_an_overlay_from_base_and_patch(case):
    _, overlay, _ = case
    whole, read = overlay.materialize(), overlay.adjacency()
    for node in range(len(overlay)):
        row = read.rows[node]
        indptr, indices, weights, at = (
            (read.indptr, read.indices, read.weights, node)
            if row < 0
            else (read.patch_indptr, read.patch_indices, read.patch_weights, row)
        )
        part = slice(indptr[at], indptr[at + 1])
        expected = slice(whole.indptr[node], whole.indptr[node + 1])
        assert indices[part].tolist() == whole.indices[expected].tolist()
        if whole.weights is not None:
            assert weights[part].tolist() == whole.weights[expected].tolist()


@given(grown(), st.data())
def test_feature_rows_are_those_of_the_whole(case, data):
    _, overlay, _ = case
    if not overlay.has_features:
        return
    wanted = np.array(data.draw(st.lists(st.integers(0, len(overlay) - 1), max_size=8)), dtype=np.int64)
    found = overlay.feature_rows(wanted)
    np.testing.assert_array_equal(dense_features(found), dense_features(overlay.features)[wanted])


@given(graphs(max_nodes=6), st.data())
def test_with_nodes_is_a_materialized_overlay(base, data):
    step = data.draw(additions(Overlay.of(base)))
    assert_same_graph(base.with_nodes(**step), base.overlay(**step).materialize())


def test_an_overlay_shares_the_arrays_of_its_base():
    base = Graph.from_edges([(0, 1), (1, 2)], weights=[1, 2], features=np.eye(3, dtype=np.float32))
    read = base.overlay([3], [(3, 0)], features=np.ones((1, 3)), weights=[5]).adjacency()
    assert np.shares_memory(read.indptr, base.indptr)
    assert np.shares_memory(read.indices, base.indices)
    assert np.shares_memory(read.weights, base.weights)


def test_adding_leaves_the_earlier_overlay_as_it_was():
    first = Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)])
    second = first.add([3], [(3, 2)])
    assert first.degrees.tolist() == [2, 1, 1]
    assert second.degrees.tolist() == [2, 1, 2, 1]


def test_an_edge_listed_again_grows_in_weight():
    base = Graph.from_edges([("ann", "bob")], weights=[1.5])
    whole = base.with_nodes([], [("bob", "ann")], weights=[2])
    assert whole.weights.tolist() == [3.5, 3.5]


def test_integers_in_added_edges_are_names():
    base = Graph.from_edges([(0, 1), (1, 2)], num_nodes=3, names=[30, 10, 20])
    assert base.overlay([40], [(40, 30)]).neighbors(40).tolist() == [30]


def test_new_nodes_may_have_another_kind_of_name():
    whole = Graph.from_edges([(0, 1)]).with_nodes(["cy"], [("cy", 0)])
    assert whole.names.tolist() == [0, 1, "cy"]


def test_new_nodes_without_edges_are_isolated():
    overlay = Graph.from_edges([(0, 1)]).overlay([2, 3], [])
    assert overlay.degrees.tolist() == [1, 1, 0, 0]
    assert overlay.neighbors(3).tolist() == []


def test_sparse_features_stay_sparse():
    base = Graph.from_edges([(0, 1)], features=csr_array(np.eye(2)))
    overlay = base.overlay([2], [(2, 0)], features=[[1, 1]])
    assert overlay.feature_rows(np.array([2, 0])).format == "csr"
    assert overlay.materialize().features.format == "csr"


def test_self_loops_in_an_addition_are_dropped_with_a_warning():
    with pytest.warns(EdgeCleaningWarning, match="1 self-loop dropped of 2 listed edges"):
        overlay = Graph.from_edges([(0, 1)]).overlay([2], [(2, 2), (2, 1)])
    assert overlay.report.self_loops == 1
    assert overlay.num_edges == 2


@pytest.mark.parametrize("grow", [Graph.overlay, Graph.with_nodes, lambda g, *a: Overlay.of(g).add(*a)])
def test_a_warning_points_at_the_line_that_added(grow):
    with pytest.warns(EdgeCleaningWarning) as caught:
        grow(Graph.from_edges([(0, 1)]), [2], [(2, 2)])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"names": ["bob"]}, GraphFormatError, "1 new names are already in the graph: 'bob'"),
        ({"names": ["cy", "cy"]}, GraphFormatError, "unique; given more than once: 'cy'"),
        ({"edges": [("ann", "zoe")]}, UnknownNodeError, "edges: 1 of 2 names are not in the graph: 'zoe'"),
        ({"edges": [("ann", "bob")], "weights": [1]}, GraphFormatError, "unweighted; leave out weights"),
        (
            {"names": ["cy"], "features": None},
            MissingFeaturesError,
            r"each new node .* numpy.zeros\(\(1, 1\)\)",
        ),
        (
            {"names": ["cy"], "features": [[1, 2]]},
            MissingFeaturesError,
            "the graph has 1 features, new nodes 2",
        ),
        ({"names": ["cy"], "features": [[1], [2]]}, MissingFeaturesError, "2 feature rows for 1 nodes"),
        (
            {"names": ["cy"], "features": [[np.nan]]},
            GraphFormatError,
            r"features\[0, 0\] \(node 'cy'\) is nan",
        ),
        ({"names": "cy"}, ParameterError, r"pass a list of names, such as \['cy'\]"),
    ],
)
def test_bad_additions_say_what_is_wrong(arguments, kind, message):
    base = Graph.from_edges([("ann", "bob")], features=[[1], [2]])
    with pytest.raises(kind, match=message):
        Overlay.of(base).add(**arguments)


def test_a_weighted_graph_asks_for_weights():
    base = Graph.from_edges([("ann", "bob")], weights=[1])
    with pytest.raises(GraphFormatError, match="the graph is weighted; pass weights="):
        base.overlay(["cy"], [("cy", "ann")])


def test_features_for_a_graph_without_any_are_refused():
    with pytest.raises(MissingFeaturesError, match="the graph has no features"):
        Graph.from_edges([(0, 1)]).overlay([2], [], features=[[1]])


def test_feature_rows_of_an_overlay_without_features_are_an_error():
    overlay = Graph.from_edges([(0, 1)]).overlay([2], [])
    with pytest.raises(MissingFeaturesError, match="no features"):
        overlay.feature_rows(np.array([2]))


def test_a_weight_that_outgrows_float32_is_refused():
    base = Graph.from_edges([("ann", "bob")], weights=[3e38])
    with pytest.raises(GraphFormatError, match="beyond float32"):
        base.overlay([], [("ann", "bob")], weights=[3e38])


def test_an_unknown_name_is_an_error_that_shows_names_that_are_there():
    overlay = Graph.from_edges([("ann", "bob")]).overlay(["cy"], [])
    with pytest.raises(UnknownNodeError, match="1 of 2 names are not in the graph: 'zoe'; names look like"):
        overlay.positions(["cy", "zoe"])


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
        way.append((overlay, overlay.names.tolist(), overlay.remaining.tolist(), overlay.degrees.tolist()))
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
    for overlay, names, remaining, degrees in way:
        fresh = Overlay(overlay.base, overlay.added, overlay.patch, overlay.added_rows)
        assert fresh.names.tolist() == names
        assert fresh.remaining.tolist() == remaining
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
    model = SPINE(dim=4).fit(comb)
    overlay = comb.overlay(["new"], [("new", 3)]).remove([15])
    found, plain = model.transform(overlay), model.transform(overlay.materialize())
    assert found.names.tolist() == plain.names.tolist()
    np.testing.assert_allclose(found.vectors, plain.vectors, atol=1e-5)


@given(changed())
def test_touched_are_the_nodes_whose_rows_changed(case):
    overlay, _, way = case
    overlays = [entry[0] for entry in way] + [overlay]
    for before, after in pairwise(overlays):
        differ = {
            position
            for position in range(len(after))
            if _row(before, position) != _row(after, position) and position in after.remaining
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
