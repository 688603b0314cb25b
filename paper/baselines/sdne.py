"""SDNE (Wang, Cui, Zhu, KDD 2016): an autoencoder of adjacency rows whose codes are near for neighbours.

One hidden layer on each side of the code. The output layer is linear, so that the squared error over all n^2
entries needs no n x n matrix: the part over all entries is a product of two small Gram matrices, and the
correction for edges, whose error weighs more, touches edges alone. Every step sees the whole graph. The
defaults did best on the validation nodes of Cora and Citeseer among 64 settings.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paper.method import Embed, Method, Score, accelerator, of_one_graph
from spinegraph.graph.graph import Graph


class Autoencoder(nn.Module):
    """Rows of the adjacency, (n, n) -> hidden -> (n, dim) -> hidden, and the weights of the output layer."""

    def __init__(self, n: int, hidden: int, dim: int) -> None:
        super().__init__()
        self.inward, self.code = nn.Linear(n, hidden), nn.Linear(hidden, dim)
        self.outward, self.rows = nn.Linear(dim, hidden), nn.Linear(hidden, n)

    def encode(self, adjacency: Tensor) -> Tensor:
        """Return codes (n, dim)."""
        hidden = torch.tanh(torch.sparse.mm(adjacency, self.inward.weight.T) + self.inward.bias)
        return torch.tanh(self.code(hidden))

    def decode(self, codes: Tensor) -> Tensor:
        """Return the last hidden layer (n, hidden)."""
        return torch.tanh(self.outward(codes))


def sdne(
    graph: Graph,
    dim: int = 200,
    seed: int = 0,
    *,
    hidden: int = 1000,
    edge_weight: float = 10.0,
    first_order: float = 0.01,
    decay: float = 1e-3,
    rate: float = 1e-3,
    steps: int = 400,
    device: str = "cpu",
) -> NDArray[np.float32]:
    """Return float32 vectors (n, dim).

    Parameters
    ----------
    graph : Graph
        Features are not read.
    edge_weight : float
        The paper's beta: an edge's error counts beta^2 times.
    first_order : float
        The paper's alpha: weight of the distance between neighbours' codes.
    """
    n = len(graph)
    generator = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = Autoencoder(n, hidden, dim).to(device)
    torch.random.set_rng_state(generator)
    rows = torch.from_numpy(np.repeat(np.arange(n), graph.degrees)).to(device)
    columns = torch.from_numpy(graph.indices.astype(np.int64)).to(device)
    ones = torch.ones(len(columns), device=device)
    adjacency = torch.sparse_coo_tensor(
        torch.stack([rows, columns]), ones, (n, n), check_invariants=True
    ).coalesce()
    adam = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    for _ in range(steps):
        codes = model.encode(adjacency)
        loss = reconstruction_error(model.decode(codes), model.rows, rows, columns, edge_weight)
        loss = loss + first_order * (codes[rows] - codes[columns]).square().sum()
        adam.zero_grad()
        (loss / n).backward()  # type: ignore[no-untyped-call]
        adam.step()
    with torch.no_grad():
        return model.encode(adjacency).cpu().numpy()


def reconstruction_error(
    hidden: Tensor, output: Any, rows: Tensor, columns: Tensor, edge_weight: float
) -> Tensor:
    """Return the squared error of all n^2 entries, edges' weighed by ``edge_weight`` squared.

    ``hidden`` (n, h) goes through the linear layer ``output`` to rows of the adjacency, which is 1 at
    ``(rows, columns)`` and 0 elsewhere.
    """
    weights, bias = output.weight, output.bias  # (n, h), (n,)
    every = ((hidden.T @ hidden) * (weights.T @ weights)).sum()
    every = every + 2 * (hidden.sum(dim=0) @ (weights.T @ bias)) + len(hidden) * bias.square().sum()
    at_edges = (hidden[rows] * weights[columns]).sum(dim=1) + bias[columns]
    found: Tensor = every + (edge_weight**2 * (at_edges - 1).square() - at_edges.square()).sum()
    return found


def _fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    return of_one_graph(graph, sdne(graph, dim, seed, device=accelerator()))


METHOD = Method("SDNE", 1, _fit, is_inductive=False, is_slow=True)
