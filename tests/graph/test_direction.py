"""Directed graphs: kept from the file to the vectors, in every form a graph has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import QUICK, spine
from spinegraph import SPINE, Graph
from spinegraph.errors import DirectedInputWarning, GraphFormatError, ParameterError
from spinegraph.graph.overlay import Overlay
from spinegraph.graph.read import read_graph
from spinegraph.graph.store import open_store, write_store
from spinegraph.parts.content import smoothers

N = 8
pairs = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda pair: pair[0] != pair[1]),
    min_size=1,
    max_size=25,
)


def matrix_of(edges, weights=None):
    found = np.zeros((N, N))
    for (source, target), weight in zip(edges, weights or [1] * len(edges), strict=True):
        found[source, target] = found[source, target] + weight if weights else 1
    return found


def made(seed=0, n=60, m=200, weighted=False, features=True):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (m, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.random(len(edges)) + 0.1 if weighted else None
    return Graph.from_edges(
        edges,
        num_nodes=n,
        weights=weights,
        features=rng.standard_normal((n, 6)) if features else None,
        directed=True,
    )


@given(pairs, st.booleans())
def test_edges_are_those_of_the_matrix(edges, weighted):
    weights = [1 + i % 3 for i in range(len(edges))] if weighted else None
    wanted = matrix_of(edges, weights)
    graph = Graph.from_edges(edges, num_nodes=N, weights=weights, directed=True)
    assert graph.directed
    assert graph.num_edges == np.count_nonzero(wanted)
    assert np.array_equal(graph.to_scipy().toarray(), wanted)
    assert np.array_equal(graph.out_degrees, np.count_nonzero(wanted, axis=1))
    assert np.array_equal(graph.in_degrees, np.count_nonzero(wanted, axis=0))
    assert np.allclose(graph.out_strengths, wanted.sum(axis=1))
    assert np.allclose(graph.in_strengths, wanted.sum(axis=0))
    either = np.maximum(wanted, wanted.T)
    assert np.array_equal(graph.to_undirected().to_scipy().toarray(), either)
    assert Graph(
        graph.indptr, graph.indices, graph.weights, outward=graph.outward, inward=graph.inward
    ).directed


@given(pairs, pairs, st.booleans())
def test_overlay_is_the_graph_built_at_once(first, second, weighted):
    numbers = [float(1 + i % 3) for i in range(len(first) + len(second))] if weighted else None
    whole = Graph.from_edges(first + second, num_nodes=N, weights=numbers, directed=True)
    base = Graph.from_edges(
        first, num_nodes=N, weights=numbers[: len(first)] if numbers else None, directed=True
    )
    grown = Overlay.of(base).add([], second, weights=numbers[len(first) :] if numbers else None)
    assert np.array_equal(grown.materialize().to_scipy().toarray(), whole.to_scipy().toarray())
    assert np.array_equal(grown.out_degrees, whole.out_degrees)
    assert np.array_equal(grown.in_degrees, whole.in_degrees)
    assert np.allclose(grown.in_strengths, whole.in_strengths)
    assert grown.num_edges == whole.num_edges
    for way in ("along", "against"):
        assert np.array_equal(grown.adjacency(way).flat().weights, whole.adjacency(way).weights)
    source, target = first[0]
    less = grown.remove([], [(source, target)])
    wanted = whole.to_scipy().toarray()
    wanted[source, target] = 0
    assert np.array_equal(less.materialize().to_scipy().toarray(), wanted)


def test_edge_back_is_no_edge():
    overlay = Overlay.of(Graph.from_edges([("ann", "bob")], directed=True))
    with pytest.raises(GraphFormatError, match="not in the graph"):
        overlay.remove([], [("bob", "ann")])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reach", [0.5, 0.9])
def test_smoothing_follows_edges(weighted, reach):
    graph = made(weighted=weighted)
    model = SPINE(dim=16, near=reach).fit(graph)
    adjacency, n = graph.to_scipy().toarray().astype(np.float64), len(graph)
    values = np.random.default_rng(1).standard_normal((n, 3)).astype(np.float32)
    for smoother, steps in zip(smoothers(graph, model.config_)[2:], (adjacency, adjacency.T), strict=True):
        sums = steps.sum(axis=1, keepdims=True)
        assert (sums == 0).any()  # some walks end
        walk = np.where(sums > 0, steps / np.where(sums > 0, sums, 1), np.eye(n))
        wanted = (1 - reach) * np.linalg.inv(np.eye(n) - reach * walk)
        assert np.allclose(smoother.smooth(values), wanted @ values, atol=0.03)
        assert np.allclose(smoother.rows(np.arange(n)).toarray(), wanted, atol=0.01)
        by_walks = smoother._walks(np.arange(n))[0].toarray()
        assert np.allclose(by_walks, wanted, atol=1e-3)


def test_some_nodes_get_the_vectors_of_all():
    graph = made(n=80, m=300)
    model = SPINE(dim=32).fit(graph)
    some = model.transform(graph, nodes=[3, 7]).vectors
    assert np.allclose(some, model.embeddings_.vectors[[3, 7]], atol=1e-4)


def test_mirrored_nodes_have_the_same_role():
    edges = np.random.default_rng(0).integers(0, 30, (90, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    twice = np.concatenate([edges, 30 + edges])
    graph = Graph.from_edges([*twice.tolist(), (0, 30), (30, 0)], num_nodes=60, directed=True)
    role = SPINE(dim=40, parts=("role",)).fit(graph).embeddings_.vectors
    assert np.allclose(role[:30], role[30:], atol=1e-5)  # sums in another order


def test_turning_an_edge_changes_the_role():
    edges = [(i, j) for i in range(12) for j in ((i + 1) % 12, (i + 3) % 12)]
    model = SPINE(dim=40, parts=("role",)).fit(made(features=False))
    one = model.transform(Graph.from_edges(edges, directed=True))
    other = model.transform(Graph.from_edges([(1, 0), *edges[1:]], directed=True))
    assert np.abs(one.vectors[0] - other.vectors[0]).max() > 0.1
    undirected = SPINE(dim=40, parts=("role",)).fit(made(features=False).to_undirected())
    one = undirected.transform(Graph.from_edges(edges))
    other = undirected.transform(Graph.from_edges([(1, 0), *edges[1:]]))
    assert np.array_equal(one.vectors, other.vectors)


def test_direction_must_be_that_of_the_model():
    graph = made(features=False)
    directed, undirected = SPINE(dim=16).fit(graph), SPINE(dim=16).fit(graph.to_undirected())
    with pytest.raises(ParameterError, match="directed=True"):
        directed.transform(graph.to_undirected())
    with pytest.raises(ParameterError, match="to_undirected"):
        undirected.transform(graph)


def test_both_ways_cannot_be_merged_and_kept():
    with pytest.raises(ParameterError, match="directed=True keeps; pass one"):
        Graph.from_edges([(0, 1)], weights=[1], directed=True, reciprocal="sum")


def test_direction_is_kept_by_every_form(tmp_path):
    graph = made(weighted=True)
    wanted = graph.to_scipy().toarray()
    write_store(graph, tmp_path / "store")
    model = SPINE(dim=24).fit(graph)
    model.save(tmp_path / "model")
    loaded = SPINE.load(tmp_path / "model")
    halves = graph.subgraph(range(0, 60, 2))
    forms = {
        "networkx": Graph.from_networkx(graph.to_networkx(), directed=True),
        "igraph": Graph.from_igraph(graph.to_igraph(), directed=True),
        "scipy": Graph.from_scipy(graph.to_scipy(), directed=True),
        "table": Graph.from_dataframe(graph.to_dataframe(), nodes={"node": range(60)}, directed=True),
        "pyg": Graph.from_pyg(graph.to_pyg(), directed=True),
        "store": open_store(tmp_path / "store", verify=True),
        "model": loaded.graph_,
        "relabelled": graph.relabel([f"n{i}" for i in range(60)]),
        "union": Graph.union([graph, graph], keys="ab").subgraph([("b", i) for i in range(60)]),
    }
    for name, form in forms.items():
        assert np.array_equal(form.to_scipy().toarray(), wanted), name
    assert np.array_equal(halves.to_scipy().toarray(), wanted[::2, ::2])
    assert np.array_equal(loaded.transform(graph).vectors, model.transform(graph).vectors)
    assert graph.to_networkx().is_directed()
    assert graph.to_igraph().is_directed()
    with pytest.raises(GraphFormatError, match="to_undirected"):
        Graph.union([graph, graph.to_undirected()], keys="ab")


def test_direction_is_lost_with_a_warning():
    graph = made(features=False)
    for lose in (
        lambda: Graph.from_networkx(graph.to_networkx()),
        lambda: Graph.from_scipy(graph.to_scipy()),
        lambda: SPINE(dim=8).fit(graph.to_networkx()),
    ):
        with pytest.warns(DirectedInputWarning, match="directed=True keeps directions"):
            lose()


def test_fingerprint_knows_the_direction():
    from spinegraph.graph.describe import fingerprint

    one, other = (Graph.from_edges(edge, directed=True) for edge in ([(0, 1)], [(1, 0)]))
    assert len({fingerprint(one), fingerprint(other), fingerprint(one.to_undirected())}) == 3


def test_command_keeps_direction(tmp_path):
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 40, (160, 2)).tolist()
    edges = tmp_path / "payments.csv"
    edges.write_text("payer,payee\n" + "".join(f"p{a},p{b}\n" for a, b in pairs if a != b))
    hinted = spine("fit", edges, "-o", tmp_path / "plain", *QUICK)
    assert "if those matter, add --directed" in hinted.stdout
    done = spine("fit", edges, "-o", tmp_path / "model", *QUICK, "--directed")
    assert "directed edges" in done.stdout
    assert "--directed" not in done.stdout.partition("Next")[0]
    model = SPINE.load(tmp_path / "model")
    assert model.graph_.directed
    wanted = read_graph(edges, directed=True)
    assert np.array_equal(model.graph_.to_scipy().toarray(), wanted.to_scipy().toarray())
    spine("embed", tmp_path / "model", edges, "-o", tmp_path / "vectors.parquet")  # as the model was fitted
