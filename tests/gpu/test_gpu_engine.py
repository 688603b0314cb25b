"""The engine and its trainer on a device against the CPU's."""

import numpy as np
import pytest
import torch
from scipy.sparse import random_array

from spinegraph import SPINE, Config, made
from spinegraph.engines.engine import engine_for
from spinegraph.engines.gpu import engine as gpu_engine
from spinegraph.engines.gpu.engine import GpuEngine
from spinegraph.engines.gpu.graph import Rows
from spinegraph.engines.gpu.training import Adam, DevicePairs, DeviceTrainer
from spinegraph.errors import ParameterError
from spinegraph.learning.checkpoint import Checkpoints
from spinegraph.learning.sampling import Corpus, PairSampler
from spinegraph.structure.similarity import SimilarNodes

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def fit_on(monkeypatch, device):
    """Fit with the device's engine, whatever the settings say."""

    def fit(graph, checkpoint=None, **settings):
        monkeypatch.setattr("spinegraph.estimator.engine_for", lambda config: GpuEngine(device))
        return SPINE(**settings).fit(graph, checkpoint=checkpoint)

    return fit


def inner_products_agree(one, other):
    return np.corrcoef((one @ one.T).ravel(), (other @ other.T).ravel())[0, 1]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rpr_method": "walks"},
        {"start": "random", "kept": 0.0, "activation": "relu", "dropout": 0.2},
        {"auxiliary_init": "node2vec", "kept": 0.0},
        {"structural_columns": "none", "patience": 1},
        {"training_nodes": 250},
    ],
    ids=str,
)
def test_vectors_are_like_those_of_the_cpu(fit_on, settings):
    graph = made.planted(seed=0).graph
    settings = {"dim": 16, "steps": 60, "batch_size": 256, "threads": 1, **settings}
    expected = SPINE(**settings).fit(graph)
    found = fit_on(graph, **settings)
    vectors = found.embeddings_.vectors
    assert inner_products_agree(vectors, expected.embeddings_.vectors) > 0.98
    assert np.square(vectors).mean() == pytest.approx(
        np.square(expected.embeddings_.vectors).mean(), rel=0.05
    )
    np.testing.assert_allclose(vectors, found.generator_.embed(graph), atol=2e-5)
    assert found.history_[-1].held_out_loss == pytest.approx(expected.history_[-1].held_out_loss, abs=0.02)


def test_a_network_without_features_gets_vectors_like_those_of_the_cpu(fit_on):
    graph, settings = made.karate(), {"dim": 8, "steps": 30, "threads": 1}
    found = fit_on(graph, **settings)
    expected = SPINE(**settings).fit(graph)
    assert inner_products_agree(found.embeddings_.vectors, expected.embeddings_.vectors) > 0.98
    np.testing.assert_allclose(found.embeddings_.vectors, found.generator_.embed(graph), atol=2e-5)


@pytest.mark.parametrize("features", [12, None])
@pytest.mark.parametrize("is_known", [False, True])
def test_nodes_embedded_in_parts_are_those_of_the_generator(device, monkeypatch, features, is_known):
    monkeypatch.setattr(gpu_engine, "_ROOTS_TOGETHER", 64)
    model = SPINE(dim=8, steps=5, threads=1).fit(made.random_graph(300, 4, features=features, seed=1))
    found = GpuEngine(device)
    profile = found.profile(model.graph_, model.config_) if is_known else None
    vectors = found.embed(model.generator_, model.graph_, profile)
    np.testing.assert_allclose(vectors, model.embeddings_.vectors, atol=2e-5)


def test_sparse_rows_multiply_as_in_scipy(device):
    matrix = random_array((40, 30), density=0.2, format="csr", dtype=np.float32, rng=0)
    right = np.random.default_rng(1).standard_normal((30, 5)).astype(np.float32)
    rows = Rows.of(matrix, device)
    np.testing.assert_allclose(
        rows.times(torch.from_numpy(right).to(device)).cpu(), matrix @ right, atol=1e-5
    )
    np.testing.assert_array_equal(rows.part(7, 20).dense().cpu(), matrix.toarray()[7:20])


def trainer(device, **settings):
    config = Config(
        batch_size=64, negative_samples=20, steps=120, learning_rate=0.01, device=device, **settings
    )
    rng = np.random.default_rng(0)
    walks = np.arange(60)[:, None] // 10 * 10 + rng.integers(10, size=(60, 8))
    sampler = PairSampler(Corpus(np.arange(60), walks), None, np.full(60, 400), config)
    inputs = rng.standard_normal((60, 12)).astype(np.float32)
    start = (0.1 * rng.standard_normal((12, 6))).astype(np.float32)
    return DeviceTrainer(inputs, start, sampler, config)


def test_training_lowers_the_held_out_loss(device):
    _, history = trainer(device).train()
    assert [moment.step for moment in history] == [25, 50, 75, 100, 120]
    assert history[-1].held_out_loss < history[0].held_out_loss < 4.2


def test_the_same_seed_trains_the_same_matrix(device):
    np.testing.assert_array_equal(trainer(device).train()[0], trainer(device).train()[0])


def test_a_resumed_training_ends_alike(device, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(stage, done, total):
        if done == 75:
            raise StoppedError

    expected, history = trainer(device, dropout=0.2).train()
    with pytest.raises(StoppedError):
        trainer(device, dropout=0.2).train(Checkpoints(tmp_path, "run", every=25), stop)
    found, again = trainer(device, dropout=0.2).train(Checkpoints(tmp_path, "run", every=25))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert [moment.step for moment in again] == [moment.step for moment in history]


def test_a_fit_never_resumes_from_the_states_of_another_kind_of_device(fit_on, tmp_path, monkeypatch):
    graph, settings = made.karate(), {"dim": 8, "steps": 60, "batch_size": 16, "passes": 1e6}
    expected = SPINE(**settings).fit(graph).embeddings_.vectors
    fit_on(graph, **settings, checkpoint=tmp_path)
    monkeypatch.undo()
    assert any(tmp_path.iterdir())
    np.testing.assert_array_equal(
        SPINE(**settings).fit(graph, checkpoint=tmp_path).embeddings_.vectors, expected
    )


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("repeats", [50, 5000])
def test_steps_of_rows_are_those_of_torch(device, repeats):
    draw = torch.Generator().manual_seed(1)
    start = torch.randn(30, 4, generator=draw).to(device)
    other = start.clone().requires_grad_()
    ours, theirs = Adam(start, 0.01), torch.optim.SparseAdam([other], lr=0.01)
    for _ in range(3):
        rows = torch.randint(20, (repeats,), generator=draw).to(device)
        gradient = torch.randn(repeats, 4, generator=draw).to(device)
        ours.step_rows(rows, gradient)
        other.grad = torch.sparse_coo_tensor(rows[None], gradient, other.shape, check_invariants=True)
        theirs.step()
    torch.testing.assert_close(start, other.detach(), atol=1e-5, rtol=1e-4)


def test_steps_of_all_rows_are_those_of_torch(device):
    start = torch.ones(3, 2, device=device)
    other = start.clone().requires_grad_()
    ours, theirs = Adam(start, 0.1), torch.optim.Adam([other], lr=0.1)
    for size in (1.0, 0.5, 3.0):
        other.grad = torch.full_like(other, size)
        ours.step(other.grad)
        theirs.step()
    torch.testing.assert_close(start, other.detach())


def test_pairs_are_drawn_by_their_chances(device):
    config = Config(batch_size=500, negative_samples=500, structural_rate=0.25, window=1)
    similar = SimilarNodes(
        np.array([[1, 2], [1, 2], [-1, -1]], np.int32), np.array([[0, 1], [0, 1], [0, 0]], np.float32)
    )
    walks = np.array([[0, 1, 0, 1]], np.int32)
    sampler = PairSampler(Corpus(np.arange(3), walks), similar, np.array([16, 1, 0]), config)
    found = DevicePairs(sampler, torch.device(device)).draw(0)
    anchors, positives, negatives = found.split(500, dim=1)
    assert (positives == 2).double().mean().item() == pytest.approx(0.25, abs=0.01)
    assert ((anchors < 2) & (anchors != positives)).all()
    assert (negatives == 0).double().mean().item() == pytest.approx(8 / 9, abs=0.01)


def test_cuda_where_there_is_none_says_what_to_do():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ParameterError, match="use device='cpu'"):
        SPINE(device="cuda").fit(made.karate())


@pytest.mark.gpu
def test_the_settings_choose_the_engine():
    assert isinstance(engine_for(Config(device="cuda")), GpuEngine)
