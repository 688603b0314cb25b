"""Unsupervised GraphSAGE (Hamilton, Ying, Leskovec, NeurIPS 2017) by PyG's SAGEConv, full batch.

Two layers of ``dim`` units, mean aggregation, outputs of unit length as in the paper. An epoch takes, for
every node, one positive a random walk away and one negative by degree^0.75. Of the settings tried on Cora's
validation nodes (rates 1e-3 to 1e-2, walks of 1, 2 and 5 steps, 1, 5 and 20 negatives, own and shared,
dropout, outputs of free length) the defaults did best.
"""

import time
import warnings

import numpy as np
import torch
from torch.nn.functional import logsigmoid, normalize
from torch_geometric.nn import SAGEConv


class Encoder(torch.nn.Module):
    """Two SAGEConv layers."""

    def __init__(self, num_features, dim):
        super().__init__()
        self.first = SAGEConv(num_features, dim)
        self.second = SAGEConv(dim, dim)

    def forward(self, features, adjacency):
        return normalize(self.second(self.first(features, adjacency).relu(), adjacency))  # (n, dim)


def pyg_inputs(graph):
    """Return dense features with rows of unit length, (n, f), and the adjacency as a sparse CSR tensor.

    The sparse tensor makes PyG aggregate by one product instead of a gathered row for each edge, which is
    what makes the denser networks feasible here.
    """
    dense = np.asarray(graph.features.todense(), dtype=np.float32)
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    indptr, indices = torch.from_numpy(graph.indptr.copy()), torch.from_numpy(graph.indices.astype(np.int64))
    ones, size = torch.ones(len(indices)), (len(graph), len(graph))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        adjacency = torch.sparse_csr_tensor(indptr, indices, ones, size, check_invariants=True)
    return torch.from_numpy(dense), adjacency


def walk_positives(graph, walk_length, rng):
    """Return one node for each that a random walk of up to ``walk_length`` steps ends at, int64 (n,)."""
    at = np.arange(len(graph))
    steps = rng.integers(1, walk_length + 1, len(graph))
    for step in range(walk_length):
        moves = (steps > step) & (graph.degrees[at] > 0)
        here = at[moves]
        at[moves] = graph.indices[graph.indptr[here] + rng.integers(0, graph.degrees[here])]
    return at


def graphsage(
    graph,
    score,
    *,
    dim=200,
    seed=0,
    rate=0.001,
    walk_length=1,
    check_every=5,
    patience=10,
    max_epochs=500,
    max_seconds=300.0,
):
    """Train until the validation score stops rising and return the best vectors, and how they came about.

    Parameters
    ----------
    graph : Graph
        With features.
    score : callable(float32 array (n, dim)) -> float
        The validation score; called every ``check_every`` epochs and not timed.
    patience : int
        Checks without a better score after which training ends.

    Returns
    -------
    vectors : float32 array (n, dim)
    info : dict
        ``seconds`` up to the best score (training and computing the vectors), ``epochs`` until then,
        ``near_seconds`` up to the first score within half a point of it, ``val_score``, and
        ``epoch_seconds``, ``total_seconds`` and ``stopped_by`` of the whole training.
    """
    trainer = _Trainer(graph, dim, seed, rate, walk_length)
    checks, since, stopped_by = [], 0, "max_epochs"
    vectors, best = None, {"val_score": -1.0}
    for epoch in range(1, max_epochs + 1):
        trainer.take_epoch()
        if epoch % check_every:
            continue
        found, seconds = trainer.vectors()
        value = float(score(found))
        checks.append((value, seconds))
        since += 1
        if value > best["val_score"]:
            best, since = {"seconds": seconds, "epochs": epoch, "val_score": value}, 0
            vectors = found
        if since >= patience or trainer.seconds > max_seconds:
            stopped_by = "patience" if since >= patience else "max_seconds"
            break
    return vectors, best | {
        "near_seconds": next(seconds for value, seconds in checks if value >= best["val_score"] - 0.005),
        "epoch_seconds": trainer.seconds / epoch,
        "total_seconds": trainer.seconds,
        "stopped_by": stopped_by,
    }


class _Trainer:
    """The encoder, its optimiser, and the seconds they have taken."""

    def __init__(self, graph, dim, seed, rate, walk_length):
        started = time.perf_counter()
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.graph, self.walk_length = graph, walk_length
        self.inputs = pyg_inputs(graph)
        chances = graph.degrees.astype(np.float64) ** 0.75
        self.chances = chances / chances.sum()
        self.encoder = Encoder(self.inputs[0].shape[1], dim)
        self.optimizer = torch.optim.Adam(self.encoder.parameters(), lr=rate)
        self.seconds = time.perf_counter() - started

    def take_epoch(self):
        started = time.perf_counter()
        n = len(self.graph)
        self.optimizer.zero_grad()
        out = self.encoder(*self.inputs)  # (n, dim)
        positives = torch.from_numpy(walk_positives(self.graph, self.walk_length, self.rng))
        negatives = torch.from_numpy(self.rng.choice(n, n, p=self.chances))
        pull = logsigmoid((out * out[positives]).sum(dim=1))  # (n,)
        push = logsigmoid(-(out * out[negatives]).sum(dim=1))  # (n,)
        (-(pull + push).mean()).backward()
        self.optimizer.step()
        self.seconds += time.perf_counter() - started

    def vectors(self):
        """Return the vectors of now, and the seconds it took to come here and to compute them."""
        started = time.perf_counter()
        with torch.no_grad():
            found = self.encoder(*self.inputs).numpy()
        return found, self.seconds + time.perf_counter() - started
