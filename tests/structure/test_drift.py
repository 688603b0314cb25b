"""The bound on what a change does to others: never broken, and small enough to be of use."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from spinegraph import Graph
from spinegraph.graph.overlay import Overlay, Rows
from spinegraph.structure.columns import COLUMNS, structural_columns
from spinegraph.structure.drift import Drift, NeighborDrift, reads_neighbors, row_changes
from strategies import connected_graphs, edge_arrays


@st.composite
def histories(draw):
    """Return the overlays of a few additions and removals, one after the other."""
    base = draw(connected_graphs(min_nodes=4, max_nodes=14))
    way = [Overlay.of(base)]
    for step in range(draw(st.integers(1, 5))):
        now = way[-1]
        names = now.names[now.remaining].tolist()
        kind = draw(st.sampled_from(["add", "link", "remove", "cut"]))
        if kind == "remove" and len(names) > 2:
            way.append(now.remove([draw(st.sampled_from(names))]))
        elif kind == "cut" and now.num_edges:
            source = names[int(np.argmax(now.degrees[now.remaining]))]
            way.append(now.remove([], [(source, draw(st.sampled_from(now.neighbors(source).tolist())))]))
        else:
            new = [f"new {step}"] if kind == "add" else []
            names = [*names, *new]
            pairs = [(names[a], names[b]) for a, b in draw(edge_arrays(len(names), max_edges=3))]
            way.append(now.add(new, pairs, weights=None if base.weights is None else [1.5] * len(pairs)))
    return way


def exact(overlay, continuation):
    """Rooted PageRank by position, (n, n): removed nodes see themselves alone."""
    values = np.eye(len(overlay))
    whole = overlay.materialize()
    values[np.ix_(overlay.remaining, overlay.remaining)] = reference.rooted_pagerank(whole, continuation)
    return values


def grown(values, size):
    whole = np.eye(size)
    whole[: len(values), : len(values)] = values
    return whole


@given(histories(), st.sampled_from([0.3, 0.65, 0.85]), st.sampled_from([0.02, 0.1, 0.4]))
def test_no_root_moves_further_than_its_bound(way, continuation, tolerance):
    drift, last = Drift(len(way[0]), continuation, tolerance), exact(way[0], continuation)
    for before, after in pairwise(way):
        stale = drift.change(before, after)
        now, last = exact(after, continuation), grown(last, len(after))
        last[stale] = now[stale]
        others = after.remaining
        moved = np.abs(now - last).sum(axis=1)[others]
        # Pushed back in a later graph, what was pending may count a tolerance less.
        assert (moved <= drift.bounds()[others] * (1 + tolerance) + 1e-9).all()
        assert (drift.bounds()[others] <= tolerance + 1e-12).all()


@settings(max_examples=50)
@given(histories())
def test_columns_of_nodes_left_alone_move_less_than_the_tolerance(way):
    names = (
        *("log_degree", "log_smaller_neighbors", "log_h_index", "overlap_10", "overlap_25", "overlap_50"),
        *("clustering", "neighbor_log_degree_mean", "neighbor_log_degree_deviation"),
    )
    drift, last = NeighborDrift(len(way[0]), 0.1), structural_columns(way[0], names=names).values
    for before, after in pairwise(way):
        stale = np.union1d(drift.change(before, after), after.touched)
        drift.reset(stale)
        now = structural_columns(after, names=names).values
        last = np.vstack((last, np.zeros((len(now) - len(last), len(names)), np.float32)))
        last[stale] = now[stale]
        moved = np.abs(now - last)[after.remaining]
        assert (moved[:, 0] == 0).all()
        assert (moved <= drift.moved[after.remaining, None] + 1e-6).all()
        assert (drift.moved <= 0.1).all()


def test_a_change_far_away_concerns_nobody_here():
    path = Overlay.of(Graph.from_edges([(i, i + 1) for i in range(1000)]))
    stale = Drift(len(path), 0.65, 0.05).change(path, path.add(["new"], [("new", 500)]))
    assert 1001 in stale
    assert len(stale) < 30
    assert all(abs(node - 500) < 20 for node in stale if node < 1001)


def test_leaves_notice_what_their_only_neighbour_does():
    # u has degree 2, then 3: the share of common neighbours may move by 1 / (2 - 1), and log degrees do.
    path = Overlay.of(Graph.from_edges([("a", "u"), ("u", "b")]))
    after, moved = path.add(["new"], [("new", "u")]), 1 + np.log(4 / 3)
    # Over a tolerance of 1.28 all columns are compared: the share of common neighbours stays 0.
    for tolerance, found in ((1.29, moved), (1.28, np.log(4 / 3)), (0.28, 0)):
        drift = NeighborDrift(3, tolerance)
        assert after.names[drift.change(path, after)].tolist() == ([] if found else ["a", "b"])
        np.testing.assert_allclose(drift.moved, [found, 0, found, 0], rtol=1e-6)


def test_moves_add_up_until_a_node_is_computed():
    star = Overlay.of(Graph.from_edges([(0, leaf) for leaf in range(1, 12)]))
    drift, now = NeighborDrift(12, 0.3), star
    # The share of common neighbours might move by 1 / 10; by 1 / 11 more the sum would be over the tolerance.
    moves = 1 / 10 + np.cumsum(np.diff(np.log([12, 13, 14])))
    for step, moved in enumerate([*moves, 0]):
        after = now.add([f"new {step}"], [(f"new {step}", 0)])
        stale, now = drift.change(now, after), after
        np.testing.assert_allclose(drift.moved[1:12], moved, rtol=1e-5)
        assert set(range(1, 12)) <= set(stale.tolist()) if not moved else not len(stale)


def test_some_columns_read_neighbours_and_some_do_not():
    alone = {"log_degree", "log_mean_weight", "spread", "log_profile_3", "log_profile_10"}
    assert {name for name in COLUMNS if not reads_neighbors(name)} == alone


def test_a_bound_of_no_nodes_is_none():
    assert Drift(0, 0.5, 0.1).bounds().shape == (0,)


@given(st.lists(st.floats(0.5, 4), min_size=1, max_size=4), st.floats(0.5, 4), st.booleans())
def test_the_steps_from_a_node_change_by_their_difference(weights, more, is_weighted):
    # Node 0 has some neighbours and gets one more; node 1 has none and keeps none; node 2 loses its only one;
    # node 3 keeps two; node 4 has none, and is the last.
    old = np.array([*weights, 0.0]) if is_weighted else np.array([*np.ones(len(weights)), 0.0])
    new = old + np.eye(len(old))[-1] * (more if is_weighted else 1.0)
    places, m = np.arange(len(old)) + 7, len(weights)
    kept = [1.0, 2.0]
    carried = [np.concatenate(parts) for parts in ((old[:-1], [1.0], kept), (new, kept))]
    before = Rows(
        np.array([0, m, m, m + 1, m + 3, m + 3]),
        np.concatenate((places[:-1], [9], [7, 8])),
        carried[0] if is_weighted else None,
    )
    after = Rows(
        np.array([0, m + 1, m + 1, m + 1, m + 3, m + 3]),
        np.concatenate((places, [7, 8])),
        carried[1] if is_weighted else None,
    )
    expected = np.abs(new / new.sum() - old / old.sum()).sum()
    found = row_changes(before, after)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, [expected, 0, 1, 0, 0], atol=1e-12)


def test_nothing_before_and_after_is_no_change():
    empty = Rows(np.array([0, 0, 0]), np.zeros(0, int), None)
    assert row_changes(empty, empty).tolist() == [0, 0]


def test_what_is_too_little_to_push_back_waits_and_adds_up():
    path = Overlay.of(Graph.from_edges([(i, i + 1) for i in range(9)]))
    drift, node = Drift(10, 0.5, 1.0), np.array([4])
    for pending in (0.0625, 0.125):  # an eighth of the tolerance may stay
        assert drift.reach(path, node, np.array([pending - drift.pending[4]])).shape == (0,)
        assert drift.pending[4] == pending
        assert not drift.moved.any()
    reached = drift.reach(path, node, np.array([0.05]))
    assert 4 in reached
    assert drift.moved[4] > 0


def test_a_bound_is_over_when_it_is_above_its_share_of_the_tolerance():
    drift = Drift(3, 0.5, 1.0)
    drift.moved[:] = [0.86, 0.875, 0.89]  # seven eighths
    assert drift.is_over(np.array([0, 1, 2])).tolist() == [False, False, True]


def test_a_bound_grows_with_the_graph():
    path = Overlay.of(Graph.from_edges([("a", "b"), ("b", "c")]))
    after = path.add(["d", "e"], [("d", "a"), ("e", "d")])
    drift = Drift(3, 0.5, 0.1)
    drift.change(path, after)
    assert len(drift) == len(drift.bounds()) == len(after)


def test_neighbours_whose_counts_jump_are_computed_anew():
    # u goes from 2 to 3: then all three neighbours of v have three, and its h-index is 3 instead of 2.
    triple = [(hub, f"{hub} {leaf}") for hub in "wx" for leaf in range(2)]
    base = Overlay.of(Graph.from_edges([*triple, ("v", "w"), ("v", "x"), ("v", "u"), ("u", "a")]))
    after = base.add(["new"], [("new", "u")])
    one, other = (structural_columns(each, base.positions(["v"])) for each in (base, after))
    at = one.names.index("log_h_index")
    assert (one.values[0, at], other.values[0, at]) == (np.float32(np.log(3)), np.float32(np.log(4)))
    drift = NeighborDrift(len(base), 100)
    assert not len(drift.change(base, after))
    share = 1 / (3 - 1)
    np.testing.assert_allclose(drift.moved[base.positions(["v"])], share + np.log(4 / 3), rtol=1e-5)
    stale = NeighborDrift(len(base), 0.28).change(base, after)
    assert after.names[stale].tolist() == ["v", "a"]


def test_links_that_come_and_go_at_one_node_both_count():
    base = Overlay.of(Graph.from_edges([("u", leaf) for leaf in "abcdef"]))
    after = base.add(["new"], [("new", "u")]).remove([], [("u", "f")])
    after = replace(after, touched=np.sort(after.positions(["u", "f", "new"])))
    drift = NeighborDrift(len(base), 100)
    drift.change(base, after)
    np.testing.assert_allclose(drift.moved[base.positions(["a"])], 2 / (6 - 1))


def test_a_link_between_two_hubs_concerns_those_near_both():
    hubs = [(hub, f"{hub} {leaf}") for hub in "uw" for leaf in range(50)]
    base = Overlay.of(Graph.from_edges([*hubs, ("v", "u"), ("v", "w")]))
    after = base.add([], [("u", "w")])
    drift = NeighborDrift(len(base), 0.5)
    assert after.names[drift.change(base, after)].tolist() == ["v"]  # no triangle, then one
    assert drift.moved[after.positions(["v"])[0]] == 0
    assert 0 < drift.moved[after.positions(["u 0"])[0]] < 0.5
