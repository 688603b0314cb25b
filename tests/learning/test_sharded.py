"""Steps cut into shards: the number of workers does not show, and rounding is all that is new."""

import threading

import numpy as np
import pytest
import torch

from spinegraph import Config
from spinegraph.graph.synthetic import random_graph
from spinegraph.learning.checkpoint import Checkpoints
from spinegraph.learning.old_sharded import SHARDS, ShardedTrainer, own_shards
from spinegraph.learning.sampling import PairSampler, gather_corpus
from spinegraph.learning.training import Trainer


@pytest.fixture(scope="module")
def given():
    config = Config(steps=40, batch_size=50, negative_samples=7, seed=3, dropout=0.2)
    graph = random_graph(80, 4, seed=1)
    sampler = PairSampler(gather_corpus(graph, config), None, graph.degrees, config)
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((80, 6)).astype(np.float32)
    return inputs, rng.standard_normal((6, 5)).astype(np.float32), sampler, config


class Meeting:
    """Several workers of one process, who wait for each other at every step."""

    def __init__(self, workers):
        self.rows, self.barrier = [None] * workers, threading.Barrier(workers)

    def gather(self, worker):
        def gathered(rows):
            self.rows[worker] = rows
            self.barrier.wait(20)
            found = torch.cat(self.rows)
            self.barrier.wait(20)
            return found

        return gathered


def trained_by(workers, given):
    meeting, found = Meeting(workers), [None] * workers

    def work(worker):
        trainer = ShardedTrainer(*given, own_shards(worker, workers), meeting.gather(worker))
        found[worker] = trainer.train()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_any_number_of_workers_takes_the_same_steps(given, workers):
    alone, history = ShardedTrainer(*given).train()
    for weights, lines in trained_by(workers, given):
        np.testing.assert_array_equal(weights, alone)
        assert lines == history


def test_shards_differ_from_whole_batches_by_rounding_alone(given):
    whole, history = Trainer(*given).train()
    parts, lines = ShardedTrainer(*given).train()
    np.testing.assert_allclose(parts, whole, rtol=0, atol=2e-5 * np.abs(whole).max())
    assert [line.step for line in lines] == [line.step for line in history]
    np.testing.assert_allclose([line.loss for line in lines], [line.loss for line in history], rtol=1e-5)


def test_a_batch_of_fewer_pairs_than_shards_is_no_trouble(given):
    inputs, start = given[:2]
    sampler = PairSampler.__new__(PairSampler)
    vars(sampler).update(vars(given[2]), config=Config(batch_size=3, negative_samples=7))
    few = Config(steps=5, batch_size=3, negative_samples=7)
    whole, _ = Trainer(inputs, start, sampler, few).train()
    parts, _ = ShardedTrainer(inputs, start, sampler, few).train()
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-5)


def test_a_stopped_run_ends_with_the_same_matrix(given, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(stage, done, total):
        if done:
            raise StoppedError

    whole, history = ShardedTrainer(*given).train()
    states = Checkpoints(tmp_path, "run", every=10)
    with pytest.raises(StoppedError):
        ShardedTrainer(*given).train(states, stop)
    again, lines = ShardedTrainer(*given).train(Checkpoints(tmp_path, "run", every=10))
    np.testing.assert_array_equal(again, whole)
    assert lines[-1] == history[-1]


@pytest.mark.parametrize("workers", range(1, SHARDS + 1))
def test_every_shard_has_one_worker(workers):
    assert [shard for worker in range(workers) for shard in own_shards(worker, workers)] == list(
        range(SHARDS)
    )
