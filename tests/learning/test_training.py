"""Training of the generator's matrix: what is minimised, when it stops, where it starts."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import reference
from spinegraph import Config, made
from spinegraph.errors import ParameterError
from spinegraph.learning.objective import first_auxiliary
from spinegraph.learning.sampling import HELD_OUT, PairSampler, TrainingData, gather_corpus
from spinegraph.learning.training import Trainer, _mix, first_weights, learn, one_torch_thread
from spinegraph.structure.pagerank import Smoothed

DIM, COLUMNS = 4, 6
GRAPH = made.barbell(8, bridge=2)
INPUTS = np.random.default_rng(0).normal(size=(len(GRAPH), COLUMNS)).astype(np.float32)
START = np.random.default_rng(1).normal(size=(COLUMNS, DIM)).astype(np.float32) * 0.1


@pytest.fixture(autouse=True)
def _one_thread():
    with one_torch_thread():
        yield


def config(**changes):
    small = {"dim": DIM, "batch_size": 32, "negative_samples": 8, "steps": 50, "passes": 1e6, "threads": 1}
    return Config(**{**small, "learning_rate": 0.01, **changes}).check()


def sampler(settings):
    return PairSampler(gather_corpus(GRAPH, settings), None, GRAPH.degrees, settings)


def trainer(inputs=INPUTS, **changes):
    settings = config(**changes)
    return Trainer(inputs, START, sampler(settings), settings)


def activated(values, activation):
    if activation == "elu":
        return np.where(values > 0, values, np.expm1(np.minimum(values, 0)))
    return {"identity": values, "relu": np.maximum(values, 0), "tanh": np.tanh(values)}[activation]


@pytest.mark.parametrize("activation", ["identity", "relu", "elu", "tanh"])
def test_the_loss_is_the_objective_of_the_vectors_that_the_matrix_makes(activation):
    one = trainer(activation=activation)
    batch = one.sampler.draw(0, HELD_OUT, 2048)
    vectors = activated(INPUTS.astype(np.float64) @ START, activation)
    kept = one.auxiliary.detach().numpy().astype(np.float64)
    places = (batch.anchors, batch.positives, batch.negatives)
    expected = reference.objective([vectors[p] for p in places], [kept[p] for p in places], 0.4, 0.4, 1.0)
    assert one.held_out_loss() == pytest.approx(expected, rel=1e-4)


def test_training_lowers_the_loss_of_pairs_never_seen():
    one = trainer(steps=200)
    before = one.held_out_loss()
    _, history = one.train()
    assert history[-1].held_out_loss < before - 0.05
    assert [record.step for record in history] == list(range(25, 201, 25))


def test_training_moves_both_matrices_and_leaves_the_start_alone():
    kept = START.copy()
    one = trainer(steps=3)
    auxiliary = one.auxiliary.detach().clone()
    weights, _ = one.train()
    assert not np.array_equal(weights, START)
    assert not torch.equal(one.auxiliary, auxiliary)
    np.testing.assert_array_equal(START, kept)


def test_no_steps_return_the_start_and_no_history():
    weights, history = trainer(steps=0).train()
    np.testing.assert_array_equal(weights, START)
    assert history == []


def test_sparse_inputs_train_as_dense_ones_do():
    sparse = np.where(INPUTS > 0, INPUTS, 0)
    dense_weights, _ = trainer(sparse).train()
    sparse_weights, _ = trainer(csr_array(sparse)).train()
    np.testing.assert_allclose(sparse_weights, dense_weights, atol=1e-5)


def test_each_edge_is_met_a_bounded_number_of_times():
    one = trainer(passes=2.0, steps=1000)
    _, history = one.train()
    assert history[-1].step == int(np.ceil(2 * GRAPH.num_edges / 32)) == one.steps


def test_patience_stops_when_held_out_pairs_stop_improving():
    stopped = trainer(steps=3000, patience=2, learning_rate=0.2)
    _, history = stopped.train()
    losses = [record.held_out_loss for record in history]
    best = losses.index(min(losses))
    assert len(losses) == best + 1 + 2 < 3000 // 25
    _, unbroken = trainer(steps=history[-1].step, learning_rate=0.2).train()
    assert unbroken == history


def test_patience_returns_the_matrix_with_the_lowest_held_out_loss():
    weights, history = trainer(steps=3000, patience=2, learning_rate=0.2).train()
    best = min(history, key=lambda record: record.held_out_loss)
    assert best.step < history[-1].step
    until_best, _ = trainer(steps=best.step, learning_rate=0.2).train()
    np.testing.assert_array_equal(weights, until_best)


def test_dropout_changes_training_the_same_way_each_time():
    plain, dropped, again = (trainer(dropout=rate).train()[0] for rate in (0.0, 0.5, 0.5))
    np.testing.assert_array_equal(dropped, again)
    assert not np.array_equal(plain, dropped)
    assert trainer(dropout=0.5).held_out_loss() == trainer().held_out_loss()  # never outside a step


def test_progress_is_told_and_the_caller_decides_what_to_do_with_it():
    calls = []
    trainer(steps=60).train(progress=lambda *call: calls.append(call))
    assert calls == [("training", 0, 60), ("training", 25, 60), ("training", 50, 60), ("training", 60, 60)]


def test_the_callers_random_state_and_threads_are_left_alone():
    torch.manual_seed(5)
    np.random.seed(5)
    expected = torch.rand(1), np.random.rand(1), torch.get_num_threads()
    torch.manual_seed(5)
    np.random.seed(5)
    settings = config()
    smoothed = Smoothed(csr_array(np.eye(len(GRAPH), dtype=np.float32)), INPUTS, 1)
    learn(TrainingData(smoothed, None, sampler(settings), 0.5), settings)
    found = torch.rand(1), np.random.rand(1), torch.get_num_threads()
    assert found == expected


def test_a_random_start_is_small_and_its_own_for_each_seed():
    smoothed = Smoothed(csr_array(np.eye(len(GRAPH), dtype=np.float32)), INPUTS, 1)
    basis, one = first_weights(smoothed, DIM, config(start="random"))
    assert basis is None
    assert one.shape == (COLUMNS, DIM)
    assert np.abs(one).max() <= np.sqrt(6 / (COLUMNS + DIM))
    assert not np.array_equal(one, first_weights(smoothed, DIM, config(start="random", seed=1))[1])


@pytest.mark.parametrize("dim", [1, 4, 6, 40])
def test_the_principal_start_keeps_what_a_rotation_keeps(dim):
    smoothed = Smoothed(csr_array(np.eye(len(GRAPH), dtype=np.float32)), INPUTS, 1)
    basis, start = first_weights(smoothed, dim, config(dim=dim))
    rank = min(dim, COLUMNS)
    assert basis.shape == (COLUMNS, rank)
    assert start.shape == (rank, dim)
    vectors = INPUTS @ basis @ start
    assert np.sqrt(np.square(vectors).sum(axis=1).mean()) == pytest.approx(0.3, rel=1e-3)
    _, _, directions = np.linalg.svd(INPUTS)
    best = (
        INPUTS @ directions[:rank].T
    )  # inner products of the best projection of this rank, up to one factor
    found, expected = vectors @ vectors.T, best @ best.T
    np.testing.assert_allclose(found / np.trace(found), expected / np.trace(expected), atol=2e-4)


def test_auxiliary_vectors_start_small_or_know_who_is_near():
    settings = config(steps=200)
    random = first_auxiliary(len(GRAPH), DIM, sampler(settings), settings)
    assert random.shape == (len(GRAPH), DIM)
    assert abs(random.std() - 0.1) < 0.02
    settings = config(steps=200, auxiliary_init="node2vec")
    known = first_auxiliary(len(GRAPH), DIM, sampler(settings), settings)
    similar = known @ known.T
    assert similar[:8, :8].mean() > similar[:8, -8:].mean() + 0.1  # the two bells of the barbell


def test_a_device_that_is_not_there_is_named():
    for device in ("cuda:99", "banana"):
        with pytest.raises(ParameterError, match=f"device '{device}' cannot be used here.*use device='cpu'"):
            trainer(device=device)


def test_merged_inner_products_are_the_mixture_of_both():
    rng = np.random.default_rng(3)
    reduced = rng.standard_normal((50, 6)).astype(np.float32) * np.arange(1, 7, dtype=np.float32)
    trained = rng.standard_normal((4, 4)).astype(np.float32)
    made = (reduced[:, :4] @ trained).astype(np.float64)
    plain = reduced.astype(np.float64)
    made, plain = (x / np.sqrt(np.square(x).sum(axis=1).mean()) for x in (made, plain))
    for kept in (0.25, 0.5, 1.0):
        vectors = reduced @ _mix(reduced, trained, kept)
        assert vectors.shape == (50, 6)
        wanted = (1 - kept) * made @ made.T + kept * plain @ plain.T
        np.testing.assert_allclose(vectors @ vectors.T, wanted, atol=1e-5)


def test_merged_dimensions_stand_in_the_order_of_what_they_hold():
    rng = np.random.default_rng(4)
    reduced = rng.standard_normal((80, 5)).astype(np.float32)
    vectors = reduced @ _mix(reduced, rng.standard_normal((5, 5)).astype(np.float32), 0.5)
    squares = np.square(vectors).sum(axis=0)
    assert (np.diff(squares) <= 1e-6).all()
    inner = vectors.T @ vectors
    np.testing.assert_allclose(inner - np.diag(np.diag(inner)), 0, atol=1e-4)
