"""Unsupervised GraphSAGE (Hamilton, Ying, Leskovec, NeurIPS 2017) by PyG's SAGEConv, full batch.

Two layers of ``dim`` units, mean aggregation, outputs of unit length as in the paper. An epoch takes, for
every node, one positive a random walk away and one negative by degree^0.75. Of the settings tried on Cora's
validation nodes (rates 1e-3 to 1e-2, walks of 1, 2 and 5 steps, 1, 5 and 20 negatives, own and shared,
dropout, outputs of free length) the defaults did best.
"""

import copy
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize

from paper.baselines.pyg import SAGEConv, pyg_inputs
from paper.method import Embed, Method, Score, accelerator
from spinegraph.graph.graph import Graph


class Encoder(torch.nn.Module):
    """Two SAGEConv layers."""

    def __init__(self, num_features: int, dim: int) -> None:
        super().__init__()
        self.first = SAGEConv(num_features, dim)
        self.second = SAGEConv(dim, dim)

    def forward(self, features: Tensor, adjacency: Any) -> Tensor:
        """Return vectors of unit length, (n, dim)."""
        return normalize(self.second(self.first(features, adjacency).relu(), adjacency))


def walk_positives(graph: Graph, walk_length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return one node for each that a random walk of up to ``walk_length`` steps ends at, int64 (n,)."""
    at = np.arange(len(graph))
    steps = rng.integers(1, walk_length + 1, len(graph))
    for step in range(walk_length):
        moves = (steps > step) & (graph.degrees[at] > 0)
        here = at[moves]
        at[moves] = graph.indices[graph.indptr[here] + rng.integers(0, graph.degrees[here])]
    return at


def graphsage(
    graph: Graph,
    score: Score | None = None,
    *,
    dim: int = 200,
    seed: int = 0,
    rate: float = 0.001,
    walk_length: int = 1,
    check_every: int = 5,
    patience: int = 10,
    max_epochs: int = 500,
    max_seconds: float = 300.0,
    epochs: int = 100,
    device: str = "cpu",
) -> tuple[Embed, dict[str, Any]]:
    """Train until the score stops rising and return the best encoder, and how it came about.

    Parameters
    ----------
    graph : Graph
        With features.
    score : callable (Embed) -> float, optional
        Called every ``check_every`` epochs and not timed. Without one all ``epochs`` are trained.
    patience : int
        Checks without a better score after which training ends.

    Returns
    -------
    embed : callable (Graph) -> float32 array (n, dim)
    info : dict
        ``seconds`` up to the best score (training and computing the vectors), ``epochs`` until then,
        ``near_seconds`` up to the first score within half a point of it, ``val_score``, and
        ``epoch_seconds``, ``total_seconds`` and ``stopped_by`` of the whole training.
    """
    trainer = _Trainer(graph, dim, seed, rate, walk_length, device)
    if score is None:
        for _ in range(epochs):
            trainer.take_epoch()
        return trainer.embed, {"epochs": epochs, "total_seconds": trainer.seconds}
    checks: list[tuple[float, float]] = []
    since, stopped_by, state = 0, "max_epochs", trainer.state()
    best: dict[str, Any] = {"val_score": -1.0}
    for epoch in range(1, max_epochs + 1):
        trainer.take_epoch()
        if epoch % check_every:
            continue
        seconds = trainer.look()
        value = float(score(trainer.embed))
        checks.append((value, seconds))
        since += 1
        if value > best["val_score"]:
            best, since = {"seconds": seconds, "epochs": epoch, "val_score": value}, 0
            state = trainer.state()
        if since >= patience or trainer.seconds > max_seconds:
            stopped_by = "patience" if since >= patience else "max_seconds"
            break
    trainer.restore(state)
    return trainer.embed, best | {
        "near_seconds": next(seconds for value, seconds in checks if value >= best["val_score"] - 0.005),
        "epoch_seconds": trainer.seconds / epoch,
        "total_seconds": trainer.seconds,
        "stopped_by": stopped_by,
    }


class _Trainer:
    """The encoder, its optimiser, and the seconds they have taken."""

    def __init__(self, graph: Graph, dim: int, seed: int, rate: float, walk_length: int, device: str) -> None:
        started = time.perf_counter()
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.graph, self.walk_length, self.device = graph, walk_length, device
        self.inputs = pyg_inputs(graph, device)
        chances = graph.degrees.astype(np.float64) ** 0.75
        self.ladder = np.cumsum(chances / chances.sum())
        self.encoder = Encoder(self.inputs[0].shape[1], dim).to(device)
        self.optimizer = torch.optim.Adam(self.encoder.parameters(), lr=rate)
        self.now: NDArray[np.float32] | None = None
        self.seconds = time.perf_counter() - started

    def take_epoch(self) -> None:
        """Take one step over all nodes."""
        started = time.perf_counter()
        n = len(self.graph)
        self.now = None
        self.optimizer.zero_grad()
        out = self.encoder(*self.inputs)  # (n, dim)
        positives = torch.from_numpy(walk_positives(self.graph, self.walk_length, self.rng))
        drawn = np.minimum(np.searchsorted(self.ladder, self.rng.random(n)), n - 1)
        pull = logsigmoid((out * out[positives.to(self.device)]).sum(dim=1))  # (n,)
        push = logsigmoid(-(out * out[torch.from_numpy(drawn).to(self.device)]).sum(dim=1))  # (n,)
        (-(pull + push).mean()).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.seconds += time.perf_counter() - started

    def look(self) -> float:
        """Compute the vectors of now, and return the seconds it took to come here and to compute them."""
        started = time.perf_counter()
        self.embed(self.graph)
        return self.seconds + time.perf_counter() - started

    def embed(self, graph: Graph) -> NDArray[np.float32]:
        """Return the vectors of any graph with the same features."""
        if graph is self.graph and self.now is not None:
            return self.now
        with torch.no_grad():
            inputs = self.inputs if graph is self.graph else pyg_inputs(graph, self.device)
            found: NDArray[np.float32] = self.encoder(*inputs).cpu().numpy()
        if graph is self.graph:
            self.now = found
        return found

    def state(self) -> dict[str, Any]:
        """Return a copy of the encoder's weights."""
        return copy.deepcopy(self.encoder.state_dict())

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a copy."""
        self.encoder.load_state_dict(state)
        self.now = None


def _fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    return graphsage(graph, score, dim=dim, seed=seed, device=accelerator())[0]


METHOD = Method("GraphSAGE", 1, _fit, is_slow=True)
