"""Deep Graph Infomax (Velickovic et al., ICLR 2019) by PyG's DeepGraphInfomax, its standard recipe.

One GCN layer of 512 units with PReLU, features with rows scaled to sum 1, Adam at 1e-3, and an end when the
loss has not fallen for 20 epochs; the vectors are those of the least loss. Labels play no part.
"""

import copy
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paper.baselines.pyg import DeepGraphInfomax, GCNConv, pyg_inputs
from spinegraph.graph.graph import Graph


class Encoder(torch.nn.Module):
    """One GCN layer with PReLU."""

    def __init__(self, num_features: int, dim: int) -> None:
        super().__init__()
        self.convolution = GCNConv(num_features, dim, cached=True)
        self.activation = torch.nn.PReLU(dim)

    def forward(self, features: Tensor, adjacency: Any) -> Tensor:
        """Return vectors (n, dim)."""
        found: Tensor = self.activation(self.convolution(features, adjacency))
        return found


def _shuffled(features: Tensor, adjacency: Any) -> tuple[Tensor, Any]:
    return features[torch.randperm(len(features))], adjacency


def _summary(vectors: Tensor, *_: Any) -> Tensor:
    return vectors.mean(dim=0).sigmoid()


def deep_graph_infomax(
    graph: Graph,
    *,
    dim: int = 512,
    seed: int = 0,
    rate: float = 1e-3,
    patience: int = 20,
    max_epochs: int = 10_000,
    max_seconds: float = 300.0,
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Train by the recipe and return vectors, and how they came about.

    Parameters
    ----------
    graph : Graph
        With features.
    max_seconds : float
        Training ends here even where the recipe would go on; ``stopped_by`` then says so.

    Returns
    -------
    vectors : float32 array (n, dim)
    info : dict
        ``seconds`` of the whole training and of computing the vectors, ``epochs``, ``epoch_seconds``,
        ``best_epoch`` and ``stopped_by``.
    """
    # Said outright, so that PyG's own tensors do not warn.
    torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]
    torch.manual_seed(seed)
    started = time.perf_counter()
    features, adjacency = pyg_inputs(graph)
    features /= features.sum(dim=1, keepdim=True).clamp(min=1e-12)
    model = DeepGraphInfomax(dim, Encoder(features.shape[1], dim), _summary, _shuffled)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    least, best, best_epoch, stopped_by = float("inf"), model.state_dict(), 0, "max_epochs"
    for epoch in range(1, max_epochs + 1):
        model.train()
        optimizer.zero_grad()
        loss = model.loss(*model(features, adjacency))
        loss.backward()
        optimizer.step()
        if loss.item() < least:
            least, best_epoch, best = loss.item(), epoch, copy.deepcopy(model.state_dict())
        if epoch - best_epoch >= patience or time.perf_counter() - started > max_seconds:
            stopped_by = "patience" if epoch - best_epoch >= patience else "max_seconds"
            break
    epoch_seconds = (time.perf_counter() - started) / epoch
    model.load_state_dict(best)
    with torch.no_grad():
        vectors = model.eval().encoder(features, adjacency).numpy()
    return vectors, {
        "seconds": time.perf_counter() - started,
        "epochs": epoch,
        "epoch_seconds": epoch_seconds,
        "best_epoch": best_epoch,
        "stopped_by": stopped_by,
    }
