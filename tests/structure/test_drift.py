"""The bound on what a change does to others: never broken, and small enough to be of use."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from spinegraph import Graph
from spinegraph.graph.overlay import Overlay
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.drift import Drift, NeighborDrift
from strategies import connected_graphs, edge_arrays


@st.composite
def histories(draw):
    """Return the overlays of a few additions and removals, one after the other."""
    base = draw(connected_graphs(min_nodes=4, max_nodes=14))
    way = [Overlay.of(base)]
    for step in range(draw(st.integers(1, 5))):
        now = way[-1]
        names = now.names[now.standing].tolist()
        kind = draw(st.sampled_from(["add", "link", "remove", "cut"]))
        if kind == "remove" and len(names) > 2:
            way.append(now.remove([draw(st.sampled_from(names))]))
        elif kind == "cut" and now.num_edges:
            source = names[int(np.argmax(now.degrees[now.standing]))]
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
    values[np.ix_(overlay.standing, overlay.standing)] = reference.rooted_pagerank(whole, continuation)
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
        others = after.standing
        moved = np.abs(now - last).sum(axis=1)[others]
        # Pushed back in a later graph, what was pending may count a tolerance less.
        assert (moved <= drift.bounds()[others] * (1 + tolerance) + 1e-9).all()
        assert (drift.bounds()[others] <= tolerance + 1e-12).all()


@settings(max_examples=50)
@given(histories())
def test_columns_of_nodes_left_alone_move_less_than_the_tolerance(way):
    names = ("log_degree", "log_smaller_neighbors", "log_h_index", "overlap_10", "overlap_25", "overlap_50")
    drift, last = NeighborDrift(len(way[0]), 0.1), structural_columns(way[0], names=names).values
    for before, after in pairwise(way):
        stale = np.union1d(drift.change(before, after), after.touched)
        drift.computed(stale)
        now = structural_columns(after, names=names).values
        last = np.vstack((last, np.zeros((len(now) - len(last), len(names)), np.float32)))
        last[stale] = now[stale]
        moved = np.abs(now - last)[after.standing]
        assert (moved[:, :3] == 0).all()
        assert (moved[:, 3:] <= drift.moved[after.standing, None] + 1e-6).all()


def test_a_change_far_away_concerns_nobody_here():
    path = Overlay.of(Graph.from_edges([(i, i + 1) for i in range(1000)]))
    stale = Drift(len(path), 0.65, 0.05).change(path, path.add(["new"], [("new", 500)]))
    assert 1001 in stale
    assert len(stale) < 30
    assert all(abs(node - 500) < 20 for node in stale if node < 1001)
