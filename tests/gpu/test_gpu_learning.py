"""Training and embedding on a device against the CPU's."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from spinegraph import SPINE, Config, made
from spinegraph import generator as cpu_inputs
from spinegraph.engines import engine
from spinegraph.engines.gpu import old_balance as balance
from spinegraph.engines.gpu import old_fitting as fitting
from spinegraph.engines.gpu import training as pairs
from spinegraph.engines.gpu.engine import GpuEngine, generator, training
from spinegraph.engines.gpu.graph import DeviceGraph
from spinegraph.engines.gpu.old_model import fit
from spinegraph.engines.gpu.training import Adam, objective
from spinegraph.errors import ParameterError
from spinegraph.learning import sampling as cpu_balance
from spinegraph.learning import training as cpu_fitting
from spinegraph.learning import training as cpu_training
from spinegraph.learning.checkpoint import Checkpoints
from spinegraph.learning.objective import Views
from spinegraph.learning.objective import objective as cpu_objective
from spinegraph.structure.pagerank import Smoothed
from spinegraph.structure.pagerank import principal_directions as cpu_directions

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def on(monkeypatch, device):
    """Fit with the device's engine, whatever the settings say."""

    def fitted(graph, **settings):
        monkeypatch.setattr("spinegraph.estimator.engine_for", lambda config: GpuEngine(device))
        return SPINE(**settings).fit(graph)

    return fitted


def inner_products_agree(one, other):
    return np.corrcoef((one @ one.T).ravel(), (other @ other.T).ravel())[0, 1]


def test_constants_are_those_of_the_cpu():
    for name in ("_UNKNOWN", "_MOST", "_NO_SIGN", "_DEVIATIONS", "_ODDS"):
        assert getattr(balance, name) == getattr(cpu_balance, name)
    for name in ("_MOST_STRUCTURAL", "CONTENT_SQUARE"):
        assert getattr(fitting, name) == getattr(cpu_fitting, name)
    assert fitting._START_NORM == cpu_training._START_NORM
    assert training._EVALUATE_EVERY == cpu_training._EVALUATE_EVERY
    assert generator.COLUMNS == cpu_inputs._BESIDE_FEATURES


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rpr_method": "walks"},
        {"start": "random", "kept": 0.0, "activation": "relu", "dropout": 0.2},
        {"auxiliary_init": "node2vec", "kept": 0.0},
        {"structural_columns": "none", "patience": 1},
    ],
)
def test_vectors_are_like_those_of_the_cpu(on, settings):
    graph = made.planted(seed=0).graph
    settings = {"dim": 16, "steps": 60, "batch_size": 256, "threads": 1, **settings}
    expected = SPINE(**settings).fit(graph)
    found = on(graph, **settings)
    vectors = found.embeddings_.vectors
    assert inner_products_agree(vectors, expected.embeddings_.vectors) > 0.98
    np.testing.assert_allclose(vectors, found.generator_.embed(graph), atol=2e-5)
    assert found.history_[-1].held_out_loss == pytest.approx(expected.history_[-1].held_out_loss, abs=0.02)


def test_a_network_without_features_gets_vectors_like_those_of_the_cpu(on):
    graph, settings = made.karate(), {"dim": 8, "steps": 30, "threads": 1}
    found = on(graph, **settings)
    expected = SPINE(**settings).fit(graph)
    assert inner_products_agree(found.embeddings_.vectors, expected.embeddings_.vectors) > 0.98
    np.testing.assert_allclose(found.embeddings_.vectors, found.generator_.embed(graph), atol=2e-5)


def test_a_fit_that_never_leaves_the_device_gives_the_vectors_of_the_estimator(device):
    graph = made.planted(seed=0).graph
    config = Config(dim=16, steps=60, batch_size=256, threads=1, training_nodes=250)
    expected = SPINE(**config.to_json()).fit(graph)
    features = expected.generator_.inputs.encoder.transform(graph.features)
    there = DeviceGraph.of(graph, device, features)
    config = replace(config, structural_share=expected.config_.structural_share)
    model = fit(there, config)
    vectors = torch.cat(list(model.generator.embed(there, together=100))).cpu().numpy()
    assert inner_products_agree(vectors, expected.embeddings_.vectors) > 0.98
    assert np.square(vectors).mean() == pytest.approx(
        np.square(expected.embeddings_.vectors).mean(), rel=0.05
    )


def trainer(device, **settings):
    config = Config(batch_size=64, negative_samples=20, steps=120, learning_rate=0.01, **settings)
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randn(60, 12, generator=draw).to(device)
    walks = (torch.arange(60)[:, None] // 10 * 10 + torch.randint(10, (60, 8), generator=draw)).to(device)
    degrees = torch.full((60,), 400, device=device)
    start = torch.randn(12, 6, generator=draw).to(device) * 0.1
    return training.DeviceTrainer(inputs, start, pairs.DevicePairs(walks, None, degrees, config), config)


def test_training_lowers_the_loss_of_pairs_that_it_never_sees(device):
    _, history = trainer(device).train()
    assert [moment.step for moment in history] == [25, 50, 75, 100, 120]
    assert history[-1].held_out_loss < history[0].held_out_loss < 4.2


def test_the_same_seed_trains_the_same_matrix(device):
    assert torch.equal(trainer(device).train()[0], trainer(device).train()[0])


def test_a_stopped_training_goes_on_and_ends_alike(device, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(stage, done, total):
        if done == 75:
            raise StoppedError

    expected, history = trainer(device).train()
    with pytest.raises(StoppedError):
        trainer(device).train(Checkpoints(tmp_path, "run", every=25), stop)
    found, again = trainer(device).train(Checkpoints(tmp_path, "run", every=25))
    torch.testing.assert_close(found, expected)
    assert [moment.step for moment in again] == [moment.step for moment in history]


def test_a_fit_never_goes_on_from_the_states_of_another_kind_of_device(device, tmp_path, monkeypatch):
    graph, settings = made.karate(), {"dim": 8, "steps": 60, "batch_size": 16, "passes": 1e6}
    expected = SPINE(**settings).fit(graph).embeddings_.vectors
    monkeypatch.setattr("spinegraph.estimator.engine_for", lambda config: GpuEngine(device))
    SPINE(**settings).fit(graph, checkpoint=tmp_path)
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
        places = torch.randint(20, (repeats,), generator=draw).to(device)
        gradient = torch.randn(repeats, 4, generator=draw).to(device)
        ours.step_rows(places, gradient)
        other.grad = torch.sparse_coo_tensor(places[None], gradient, other.shape, check_invariants=True)
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


def test_both_kinds_at_once_have_the_objective_of_each(device):
    made, kept = torch.randn(2, 11, 4, generator=torch.Generator().manual_seed(0)).to(device)
    views = [Views(*vectors.split([4, 4, 3])) for vectors in (made, kept)]
    expected = cpu_objective(*views, lambda1=0.5, lambda2=0.2, weight=2.0)
    shares = torch.tensor([[0.5, 0.3], [0.3, 0.2]], device=device)
    torch.testing.assert_close(objective(torch.stack([made, kept]), 4, shares, 2.0), expected)


def test_pairs_are_drawn_by_their_chances(device):
    config = Config(batch_size=500, negative_samples=500, structural_rate=0.25, window=1)
    walks = torch.tensor([[0, 1, 0, 1]], device=device)
    similar = (
        torch.tensor([[1, 2]] * 3, device=device),
        torch.tensor([[0.0, 1.0], [0.0, 1.0], [0, 0]], device=device),
    )
    found = pairs.DevicePairs(walks, similar, torch.tensor([16, 1, 0], device=device), config).draw(0)
    anchors, positives, negatives = found.split(500, dim=1)
    assert (positives == 2).double().mean().item() == pytest.approx(0.25, abs=0.01)
    assert ((anchors < 2) & (anchors != positives)).all()
    assert (negatives == 0).double().mean().item() == pytest.approx(8 / 9, abs=0.01)


def test_principal_directions_are_those_of_the_cpu():
    matrix = np.random.default_rng(0).standard_normal((40, 12)).astype(np.float32) * np.arange(1, 13)
    from scipy.sparse import csr_array

    smoothed = Smoothed(csr_array(np.eye(40, dtype=np.float32)), matrix.astype(np.float32))
    found = fitting.principal_directions(torch.from_numpy(matrix.astype(np.float32)), 4, seed=0)
    np.testing.assert_allclose(found, cpu_directions(smoothed, 4, seed=0), atol=1e-3)


def test_cuda_where_there_is_none_says_what_to_do():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ParameterError, match="use device='cpu'"):
        SPINE(device="cuda").fit(made.karate())


@pytest.mark.gpu
def test_the_settings_choose_the_engine():
    assert isinstance(engine.engine_for(Config(device="cuda")), GpuEngine)
