"""Each baseline on a graph where its behaviour is known."""

import numpy as np
import pytest
from paper.baselines import beside, hope, transition
from paper.methods import known_rows, method, version_of

from paper import methods, neural
from spinegraph import SPINE, Graph, made
from spinegraph.graph.datasets import Dataset


def two_groups(n=40, seed=0):
    """Two groups with more links inside, and features that half tell them apart."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    chances = np.where(group[:, None] == group, 0.3, 0.03)
    ends = np.argwhere(np.triu(rng.random((n, n)) < chances, k=1))
    features = (rng.random((n, 12)) < np.where(np.arange(12) % 2 == group[:, None], 0.5, 0.2)).astype(
        np.float32
    )
    return Graph.from_edges(ends, num_nodes=n, features=features), group


@pytest.mark.parametrize("continuation", [0.5, 0.9])
def test_hope_is_the_dense_solution(continuation):
    graph = made.random_graph(30, 2, seed=1)
    found = hope(graph, dim=10, continuation=continuation).astype(np.float64)
    matrix = transition(graph).toarray()
    exact = (1 - continuation) * np.linalg.inv(np.eye(30) - continuation * matrix)
    left, sizes, right = np.linalg.svd(exact)
    best = (left[:, :5] * sizes[:5]) @ right[:5]
    assert found[:, :5] @ found[:, 5:].T == pytest.approx(best, abs=1e-5)


def test_sdne_measures_every_entry_of_the_adjacency():
    torch = pytest.importorskip("torch")
    graph = made.karate()
    rows = torch.from_numpy(np.repeat(np.arange(34), graph.degrees))
    columns = torch.from_numpy(graph.indices.astype(np.int64))
    hidden, output = torch.randn(34, 6), torch.nn.Linear(6, 34)
    found = neural.reconstruction_error(hidden, output, rows, columns, 3.0)
    dense = torch.zeros(34, 34)
    dense[rows, columns] = 1
    weights = torch.where(dense > 0, 9.0, 1.0)
    assert float(found.detach()) == pytest.approx(
        float((weights * (output(hidden) - dense).square()).sum().detach()), rel=1e-4
    )


@pytest.mark.parametrize("name", ["HOPE", "SDNE", "node2vec", "GraphSAGE", "SPINE", "PCA of T F"])
def test_neighbours_are_nearer_than_strangers(name, monkeypatch):
    monkeypatch.setitem(neural.sdne.__kwdefaults__, "hidden", 50)  # for 40 nodes instead of thousands
    graph, group = two_groups()
    vectors = method(name).fit(graph, 16, 0, None)(graph)
    centred = vectors - vectors.mean(axis=0)
    units = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    cosines, same = units @ units.T, group[:, None] == group
    assert cosines[same].mean() > cosines[~same].mean()


def test_gat_learns_two_groups():
    graph, group = two_groups(seed=3)
    data = Dataset(
        "groups", graph, labels=group, train=np.arange(10), val=np.arange(10, 20), test=np.arange(20, 40)
    )
    assert (neural.gat(data, max_epochs=60)[20:] == group[20:]).mean() > 0.8


def test_graphsage_embeds_a_network_it_never_saw():
    (seen, _), (unseen, group) = two_groups(seed=1), two_groups(seed=2)
    vectors = method("GraphSAGE").fit(seen, 16, 0, None)(unseen)
    cosines, same = vectors @ vectors.T, group[:, None] == group
    assert cosines[same].mean() > cosines[~same].mean()


def test_a_transductive_row_knows_its_own_graph_alone():
    graph, other = made.karate(), made.barbell(4)
    embed = method("HOPE").fit(graph, 8, 0, None)
    with pytest.raises(AssertionError):
        embed(other)


def test_blocks_side_by_side_weigh_the_same():
    rng = np.random.default_rng(0)
    both = beside([rng.random((5, 3)), 100 * rng.random((5, 2))])
    norms = [np.linalg.norm(block, axis=1).mean() for block in (both[:, :3], both[:, 3:])]
    assert norms == pytest.approx([1, 1])


def test_every_row_has_a_method_and_a_version():
    assert all(method(name).fit for name in known_rows())
    versions = {name: version_of(name) for name in known_rows()}
    assert versions["SPINE"] > versions["SPINE, role"] == versions["SPINE without learning"]
    assert versions["T F"] == version_of("T F by walks") != versions["SPINE"]  # trains nothing


def test_cells_of_the_paper_are_kept_when_the_defaults_change(monkeypatch):
    before = {name: version_of(name) for name in known_rows()}
    monkeypatch.setattr(methods, "SPINE_VERSION", methods.SPINE_VERSION + 1)
    changed = {name for name in known_rows() if version_of(name) != before[name]}
    assert changed == {"SPINE"}


def test_rows_of_spine_are_the_settings_that_they_name():
    graph, _ = two_groups()
    whole, role, paper = (
        method(name).fit(graph, 16, 3, None)(graph)
        for name in ("SPINE", "SPINE, role", "SPINE (paper's settings)")
    )
    fitted = SPINE(dim=16, seed=3, threads=1).fit(graph).embeddings_
    np.testing.assert_array_equal(whole, fitted.vectors)
    np.testing.assert_array_equal(role, fitted.part("role").vectors)
    expected = SPINE.paper(dim=16, seed=3).fit(graph).embeddings_.vectors
    np.testing.assert_array_equal(paper, expected)


def test_several_networks_have_no_place():
    graph, _ = two_groups()
    found = method("SPINE", several=True).fit(graph, 16, 0, None)(graph)
    expected = SPINE(dim=16, parts=("content", "role")).fit(graph).embeddings_.vectors
    np.testing.assert_array_equal(found, expected)
