"""The engine on a device against the CPU's."""

import numpy as np
import pytest
import torch
from scipy.sparse import random_array

from spinegraph import SPINE, Config, Graph, made
from spinegraph.analysis.search import Search
from spinegraph.engines.engine import engine_for
from spinegraph.engines.gpu import positions as gpu_positions
from spinegraph.engines.gpu.engine import GpuEngine, _finish
from spinegraph.engines.gpu.graph import DeviceGraph, Rows, as_tensor
from spinegraph.errors import ParameterError
from spinegraph.structure.smoothing import Smoother, solved_by

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def fit_on(monkeypatch, device):
    """Fit with the device's engine, whatever the settings say."""

    def fit(graph, **settings):
        monkeypatch.setattr("spinegraph.estimator.engine_for", lambda config: GpuEngine(device))
        return SPINE(**settings).fit(graph)

    return fit


def inner_products_agree(one, other):
    return np.corrcoef((one @ one.T).ravel(), (other @ other.T).ravel())[0, 1]


@pytest.mark.parametrize("settings", [{}, {"rpr_method": "walks"}, {"training_nodes": 250}], ids=str)
def test_content_and_role_are_those_of_the_cpu(fit_on, settings):
    graph = made.planted(seed=0).graph
    settings = {"dim": 60, "threads": 1, **settings}
    expected, found = SPINE(**settings).fit(graph).embeddings_, fit_on(graph, **settings).embeddings_
    for part in ("content", "role"):
        np.testing.assert_allclose(found.part(part).vectors, expected.part(part).vectors, atol=2e-3)


def test_content_of_dense_features_and_of_a_directed_graph_is_that_of_the_cpu(fit_on):
    rng = np.random.default_rng(0)
    edges = np.argwhere((rng.random((60, 60)) < 0.1) & ~np.eye(60, dtype=bool))
    graph = Graph.from_edges(edges, num_nodes=60, features=rng.standard_normal((60, 9)), directed=True)
    expected, found = (fit(graph, dim=40, threads=1).embeddings_ for fit in (_on_cpu, fit_on))
    np.testing.assert_allclose(found.part("content").vectors, expected.part("content").vectors, atol=2e-3)


def _on_cpu(graph, **settings):
    return SPINE(**settings).fit(graph)


def test_what_rounding_leaves_of_a_zero_is_zero_as_on_the_cpu(device):
    generator = SPINE(dim=40).fit(made.planted(seed=0).graph).generator_
    values = np.random.default_rng(0).standard_normal((3, generator.dim)).astype(np.float32)
    columns = generator.parts["content"]
    values[1, columns] = generator.content.offset + np.float32(1e-7)
    expected, found = values.copy(), torch.from_numpy(values).to(device)
    generator.finish(expected, None)
    _finish(generator, found, None)
    assert not expected[1, columns].any()
    np.testing.assert_allclose(found.cpu().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("isolated", [0, 100])
def test_place_is_as_good_as_that_of_the_cpu(fit_on, isolated):
    planted = made.planted(seed=0)
    people = len(planted.graph)
    edges = np.argwhere(planted.graph.to_scipy().toarray())
    graph = Graph.from_edges(edges, num_nodes=people + isolated)
    found = [fit(graph, dim=64, threads=1) for fit in (fit_on, _on_cpu)]
    shares = []
    for model in found:
        nearest = Search(model.embeddings_, by="place").neighbors(n=5).positions[:people]
        department = np.append(planted.community, np.full(isolated, -1))
        shares.append((department[nearest] == planted.community[:, None]).mean())
    assert shares[0] == pytest.approx(shares[1], abs=0.05)
    products = [model.embeddings_.part("place").vectors[:people] for model in found]
    assert inner_products_agree(*products) > 0.8


def test_the_same_seed_gives_the_same_vectors(fit_on):
    graph = made.karate()
    one, other = (fit_on(graph, dim=16, seed=3).embeddings_.vectors for _ in range(2))
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_smoothed_as_on_the_cpu(device, symmetric, weighted):
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    graph = Graph.from_edges(edges, num_nodes=6, weights=[1, 2, 3, 4, 5] if weighted else None)
    values = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    smoother = Smoother.of(graph, 0.9, symmetric=symmetric)
    expected = smoother.smooth(values)
    with solved_by(GpuEngine(device)._solve):
        np.testing.assert_allclose(smoother.smooth(values), expected, atol=1e-5)


@pytest.mark.parametrize("weights", [None, [1, 2]])
def test_links_of_a_graph_are_copied_once(device, weights):
    graph, other = (Graph.from_edges([(0, 1), (1, 2)], weights=weights) for _ in range(2))
    engine = GpuEngine(device)
    links = engine._links(graph.adjacency())
    assert engine._links(graph.adjacency()) is links
    assert engine._links(Smoother.of(graph, 0.5).adjacency) is links
    assert engine._links(other.adjacency()) is not links


@pytest.mark.parametrize("weighted", [False, True])
def test_steps_follow_the_edge_weights(device, weighted):
    graph = Graph.from_edges([(0, 1), (0, 2), (0, 3)], weights=[1, 2, 5] if weighted else None)
    links = DeviceGraph.of(graph.adjacency(), device)
    draws = torch.Generator(device=device).manual_seed(0)
    hub = torch.zeros(40_000, dtype=torch.long, device=device)
    shares = torch.bincount(links.step(hub, draws), minlength=4).cpu().numpy()[1:] / 40_000
    np.testing.assert_allclose(shares, [1 / 8, 2 / 8, 5 / 8] if weighted else [1 / 3] * 3, atol=0.01)
    leaf = torch.full((5,), 2, device=device)
    assert links.step(leaf, draws).tolist() == [0] * 5


def test_walks_in_parts_keep_every_root(device, monkeypatch):
    graph = made.random_graph(300, 5, seed=1)
    monkeypatch.setattr(gpu_positions, "_STEPS_TOGETHER", 200 * 40 * 7)
    found = gpu_positions.positions(DeviceGraph.of(graph.adjacency(), device), 16, 0)
    assert found.shape == (300, 16)
    assert np.isfinite(found).all()


def test_sparse_rows_multiply_as_in_scipy(device):
    matrix = random_array((40, 40), density=0.2, format="csr", dtype=np.float32, rng=0)
    right = np.random.default_rng(1).standard_normal((40, 5)).astype(np.float32)
    parts = (as_tensor(part, device) for part in (matrix.indptr, matrix.indices, matrix.data))
    indptr, indices, values = parts
    rows = Rows(indptr.long(), indices, values, 40)
    given = torch.from_numpy(right).to(device)
    np.testing.assert_allclose(rows.times(given).cpu(), matrix @ right, atol=1e-5)
    np.testing.assert_allclose(rows.part(7, 20).times(given).cpu(), (matrix @ right)[7:20], atol=1e-5)
    np.testing.assert_allclose(
        gpu_positions._transposed(rows).times(given).cpu(), matrix.T @ right, atol=1e-5
    )


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(ParameterError, match=r"device 'cuda:99' cannot be used here: .*; use device='cpu'"):
        engine_for(Config(device="cuda:99"))
