"""To be removed."""

import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor, distributed

from spinegraph.config import Config
from spinegraph.engines.ray import num_workers, require_ray
from spinegraph.errors import ClusterError, ParameterError, SpineError
from spinegraph.learning.checkpoint import Checkpoints, Moment, TrainingState
from spinegraph.learning.old_sharded import SHARDS, ShardedTrainer, own_shards
from spinegraph.learning.sampling import PairSampler
from spinegraph.learning.training import Progress, torch_threads

_FAILURES = 3  # times that workers are started anew: from the last state saved, else from the beginning
_PAUSE = 0.2  # seconds between looks at how far training is
Found = tuple[NDArray[np.float32], list[Moment]]


def train(
    workers: int,
    inputs: Any,
    start: NDArray[np.float32],
    sampler: PairSampler,
    config: Config,
    checkpoints: Checkpoints | None = None,
    progress: Progress | None = None,
) -> Found:
    """Train a matrix with several workers; return it with the history. The number of them does not show.

    The folder of states, where there is one, has to be seen by every machine.
    """
    ray = require_ray()
    if torch.device(config.device).type != "cpu":
        raise ParameterError(
            f"training_workers share steps on processors; got device={config.device!r}: leave one of them out"
        )
    if workers > num_workers():
        raise ClusterError(
            f"training_workers={workers}, but the cluster has {num_workers()} cores; ask for fewer"
        )
    listener = _listener(ray)
    job = {
        "given": [ray.put((inputs, start, sampler, config))],
        "workers": workers,
        "states": checkpoints,
        "listener": listener,
    }
    with tempfile.TemporaryDirectory(prefix="spinegraph-") as folder:
        run = _Run(ray, job, folder)
        run.start()
        while run.is_alive():
            run.join(_PAUSE)
            for line in ray.get(listener.heard.remote()):
                if progress is not None:
                    progress(*line)
    return run.found()


def _listener(ray: Any) -> Any:
    """Start the actor that hears of progress: here, where no other machine's loss ends it."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(Listener).remote()


class Listener:
    """Hears from the first worker how far training is; an actor."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, int, int]] = []

    def tell(self, stage: str, done: int, total: int) -> None:
        """Note one line."""
        self._lines.append((stage, done, total))

    def heard(self) -> list[tuple[str, int, int]]:
        """Return the lines since the last call."""
        lines, self._lines = self._lines, []
        return lines


class _Run(threading.Thread):
    """Ray Train on a thread of its own: on the main one it would take over Ctrl-C."""

    def __init__(self, ray: Any, job: dict[str, Any], folder: str) -> None:
        super().__init__(name="ray-train", daemon=True)
        self._ray, self._job, self._folder = ray, job, folder
        self._result: Found | None = None
        self._fault: BaseException | None = None

    def run(self) -> None:
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        trainer = TorchTrainer(
            work,  # type: ignore[arg-type]
            train_loop_config=self._job,
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=ScalingConfig(num_workers=self._job["workers"], resources_per_worker={"CPU": 1}),
            run_config=RunConfig(
                storage_path=self._folder, failure_config=FailureConfig(max_failures=_FAILURES)
            ),
        )
        try:
            self._result = trainer.fit().return_value  # type: ignore[attr-defined]
        except BaseException as fault:  # raised again by whoever waits
            self._fault = fault

    def found(self) -> Found:
        """Return what training returned, or raise what went wrong in it."""
        if self._fault is None and self._result is not None:
            return self._result
        failures = getattr(self._fault, "worker_failures", {})
        for one in failures.values():
            cause = getattr(one, "cause", one)
            if isinstance(cause, SpineError):
                raise cause from None
        reason = str(next(iter(failures.values()), self._fault)).strip().split("\n")[-1][:300]
        raise ClusterError(
            f"training by workers failed: {reason}; leave training_workers out to train here"
        ) from self._fault


def work(job: dict[str, Any]) -> Found:
    """Train as one of the workers; what the first one returns is the result."""
    import ray

    inputs, start, sampler, config = ray.get(job["given"][0])
    worker, workers = distributed.get_rank(), job["workers"]
    # A copy: Torch warns of memory that is read-only.
    inputs = inputs if issparse(inputs) else np.array(inputs)
    with torch_threads(1):
        trainer = ShardedTrainer(
            inputs, start, sampler, config, own_shards(worker, workers), lambda rows: gathered(rows, workers)
        )
        states = None if job["states"] is None else _OneHand(job["states"], worker == 0)
        return trainer.train(states, job["listener"].tell.remote if worker == 0 else None)  # type: ignore[arg-type]


def gathered(rows: Tensor, workers: int) -> Tensor:
    """Return the rows of all workers' shards, in order."""
    most = -(-SHARDS // workers)
    sent = torch.zeros((most, rows.shape[1]))
    sent[: len(rows)] = rows
    found = [torch.empty_like(sent) for _ in range(workers)]
    distributed.all_gather(found, sent)
    return torch.cat(found)[:SHARDS]


@dataclass(frozen=True)
class _OneHand:
    """States that the first worker reads and writes, and the others hear of."""

    states: Checkpoints
    is_first: bool

    def latest(self, shapes: Mapping[str, tuple[int, ...]], steps: int) -> TrainingState | None:
        found = [self.states.latest(shapes, steps) if self.is_first else None]
        distributed.broadcast_object_list(found, src=0)
        return found[0]

    def is_due(self, step: int) -> bool:
        return self.is_first and self.states.is_due(step)

    def save(self, state: TrainingState) -> None:
        self.states.save(state)
