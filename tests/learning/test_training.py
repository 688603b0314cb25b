"""Training of the generator's matrix: what is minimised, when it stops, where it starts."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import reference
from spinegraph import made
from spinegraph.config import PaperConfig
from spinegraph.learning.objective import initial_auxiliary
from spinegraph.learning.sampling import HELD_OUT, PairSampler, gather_corpus
from spinegraph.learning.training import Trainer, initial_weights, learn, one_torch_thread

DIM, COLUMNS = 4, 6
GRAPH = made.barbell(8, bridge=2)
INPUTS = np.random.default_rng(0).normal(size=(len(GRAPH), COLUMNS)).astype(np.float32)
START = np.random.default_rng(1).normal(size=(COLUMNS, DIM)).astype(np.float32) * 0.1


@pytest.fixture(autouse=True)
def _one_thread():
    with one_torch_thread():
        yield


def config(**changes):
    small = {"dim": DIM, "batch_size": 32, "negative_samples": 8, "steps": 50, "threads": 1}
    return PaperConfig(**{**small, "activation": "identity", "learning_rate": 0.01, **changes}).check()


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
    expected = reference.objective([vectors[p] for p in places], [kept[p] for p in places], 0.4, 0.2, 1.0)
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
    learn(INPUTS, sampler(settings), settings)
    found = torch.rand(1), np.random.rand(1), torch.get_num_threads()
    assert found == expected


def test_the_start_is_small_and_its_own_for_each_seed():
    one = initial_weights(COLUMNS, config())
    assert one.shape == (COLUMNS, DIM)
    assert np.abs(one).max() <= np.sqrt(6 / (COLUMNS + DIM))
    assert not np.array_equal(one, initial_weights(COLUMNS, config(seed=1)))


def test_auxiliary_vectors_start_small_or_know_who_is_near():
    settings = config(steps=200)
    random = initial_auxiliary(len(GRAPH), sampler(settings), settings)
    assert random.shape == (len(GRAPH), DIM)
    assert abs(random.std() - 0.1) < 0.02
    settings = config(steps=200, auxiliary_init="node2vec")
    known = initial_auxiliary(len(GRAPH), sampler(settings), settings)
    similar = known @ known.T
    assert similar[:8, :8].mean() > similar[:8, -8:].mean() + 0.1  # the two bells of the barbell
