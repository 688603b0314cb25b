"""Baselines by Torch and PyG: SDNE, GraphSAGE, GAT and Deep Graph Infomax.

SDNE (Wang, Cui, Zhu, KDD 2016) is an autoencoder of adjacency rows whose codes are near for neighbours, with
one hidden layer on each side of the code. The output layer is linear, so that the squared error over all n^2
entries needs no n x n matrix: the part over all entries is a product of two small Gram matrices, and the
correction for edges, whose error weighs more, touches edges alone. Every step sees the whole graph. The
defaults did best on the validation nodes of Cora and Citeseer among 64 settings.

GraphSAGE (Hamilton, Ying, Leskovec, NeurIPS 2017), unsupervised, full batch: two layers of ``dim`` units,
mean aggregation, outputs of unit length as in the paper. An epoch takes, for every node, one positive a
random walk away and one negative by degree^0.75. Of the settings tried on Cora's validation nodes (rates 1e-3
to 1e-2, walks of 1, 2 and 5 steps, 1, 5 and 20 negatives, own and shared, dropout, outputs of free length)
the defaults did best.

GAT (Velickovic et al., ICLR 2018), supervised, the ceiling of Table 1, by the paper's recipe: two layers, 8
heads of 8 units, dropout 0.6 on features and attention, Adam at 0.005 with decay 5e-4 (Pubmed: 8 output
heads, 0.01 and 0.001), an end after 100 epochs without a better validation accuracy or loss, and the weights
of the best accuracy.

Deep Graph Infomax (Velickovic et al., ICLR 2019), its standard recipe: one GCN layer of 512 units with PReLU,
features with rows scaled to sum 1, Adam at 1e-3, and an end when the loss has not fallen for 20 epochs; the
vectors are those of the least loss. Labels play no part.
"""

import copy
import time
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, elu, logsigmoid, normalize

from paper.methods import Method, Score, accelerator, transductive
from spinegraph.analysis.baselines import Embed
from spinegraph.graph.datasets import Dataset
from spinegraph.graph.graph import Graph

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of PyG's own scripts, which nothing here uses
    from torch_geometric.nn import DeepGraphInfomax, GATConv, GCNConv, SAGEConv

_DROPOUT = 0.6


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


def pyg_inputs(graph: Graph, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Return dense features with rows of unit length, (n, f), and the adjacency as a sparse CSR tensor.

    The sparse tensor makes PyG aggregate by one product instead of a gathered row for each edge, which is
    what makes the denser networks feasible here.
    """
    given: Any = graph.features
    dense = np.array(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float32)
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    edges = np.stack([graph.indices, np.repeat(np.arange(len(graph)), graph.degrees)])
    return torch.from_numpy(dense).to(device), as_matrix(edges, len(graph)).to(device)


def as_matrix(edges: NDArray[Any], n: int) -> Tensor:
    """Return edges (2, e), from the first row's nodes to the second's, as a sparse CSR tensor (n, n)."""
    order = np.lexsort((edges[0], edges[1]))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(edges[1], minlength=n))]).astype(np.int64)
    indices, ones = torch.from_numpy(edges[0][order].astype(np.int64)), torch.ones(edges.shape[1])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(indptr), indices, ones, (n, n), check_invariants=False
        )


class SageEncoder(nn.Module):
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
    trainer = _SageTrainer(graph, dim, seed, rate, walk_length, device)
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


class _SageTrainer:
    """The encoder, its optimiser, and the seconds they have taken."""

    def __init__(self, graph: Graph, dim: int, seed: int, rate: float, walk_length: int, device: str) -> None:
        started = time.perf_counter()
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.graph, self.walk_length, self.device = graph, walk_length, device
        self.inputs = pyg_inputs(graph, device)
        chances = graph.degrees.astype(np.float64) ** 0.75
        self.cumulative = np.cumsum(chances / chances.sum())
        self.encoder = SageEncoder(self.inputs[0].shape[1], dim).to(device)
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
        drawn = np.minimum(np.searchsorted(self.cumulative, self.rng.random(n)), n - 1)
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


class Classifier(nn.Module):
    """Two GATConv layers."""

    def __init__(self, num_features: int, num_classes: int, heads: int = 8, output_heads: int = 1) -> None:
        super().__init__()
        self.first = GATConv(num_features, 8, heads=heads, dropout=_DROPOUT)
        self.second = GATConv(8 * heads, num_classes, heads=output_heads, concat=False, dropout=_DROPOUT)

    def forward(self, features: Tensor, edges: Tensor) -> Tensor:
        """Return class scores (n, c)."""
        hidden = elu(self.first(dropout(features, _DROPOUT, self.training), edges))
        found: Tensor = self.second(dropout(hidden, _DROPOUT, self.training), edges)
        return found


def gat_inputs(graph: Graph) -> tuple[Tensor, Tensor]:
    """Return features with rows scaled to sum 1, (n, f), and every edge both ways, (2, 2 m)."""
    given: Any = graph.features
    dense = np.array(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float32)
    dense /= np.maximum(dense.sum(axis=1, keepdims=True), 1e-12)
    edges = np.stack([np.repeat(np.arange(len(graph)), graph.degrees), graph.indices.astype(np.int64)])
    return torch.from_numpy(dense), torch.from_numpy(edges)


def gat(data: Dataset, seed: int = 0, *, patience: int = 100, max_epochs: int = 1000) -> NDArray[np.int64]:
    """Return the class of every node, int64 (n,), learned from the training and validation labels.

    Parameters
    ----------
    data : Dataset
        With features, labels and a public split.
    """
    assert data.labels is not None
    torch.manual_seed(seed)
    is_pubmed = data.name == "pubmed"
    device = accelerator()
    features, edges = (part.to(device) for part in gat_inputs(data.graph))
    labels, train, val = (torch.from_numpy(part).to(device) for part in (data.labels, data.train, data.val))
    model = Classifier(features.shape[1], int(labels.max()) + 1, output_heads=8 if is_pubmed else 1)
    model.to(device)
    rate, decay = (0.01, 0.001) if is_pubmed else (0.005, 5e-4)
    adam = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    best, state, since = (-1.0, -np.inf), copy.deepcopy(model.state_dict()), 0
    highest = (-1.0, -np.inf)
    for _ in range(max_epochs):
        model.train()
        adam.zero_grad()
        cross_entropy(model(features, edges)[train], labels[train]).backward()  # type: ignore[no-untyped-call]
        adam.step()
        model.eval()
        with torch.no_grad():
            out = model(features, edges)[val]
        now = (
            float((out.argmax(dim=1) == labels[val]).float().mean()),
            -float(cross_entropy(out, labels[val])),
        )
        if now > best:
            best, state = now, copy.deepcopy(model.state_dict())
        improves = now[0] > highest[0] or now[1] > highest[1]
        highest = (max(now[0], highest[0]), max(now[1], highest[1]))
        since = 0 if improves else since + 1
        if since >= patience:
            break
    model.load_state_dict(state)
    model.eval()
    with torch.no_grad():
        classes: NDArray[np.int64] = model(features, edges).argmax(dim=1).cpu().numpy()
    return classes


class _InfomaxEncoder(nn.Module):
    """One GCN layer with PReLU."""

    def __init__(self, num_features: int, dim: int) -> None:
        super().__init__()
        self.convolution = GCNConv(num_features, dim, cached=True)
        self.activation = nn.PReLU(dim)

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
    # An explicit choice, so that PyG's tensors do not warn.
    torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]
    torch.manual_seed(seed)
    started = time.perf_counter()
    features, adjacency = pyg_inputs(graph)
    features /= features.sum(dim=1, keepdim=True).clamp(min=1e-12)
    model = DeepGraphInfomax(dim, _InfomaxEncoder(features.shape[1], dim), _summary, _shuffled)
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


def _fit_sdne(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    return transductive(graph, sdne(graph, dim, seed, device=accelerator()))


def _fit_graphsage(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    return graphsage(graph, score, dim=dim, seed=seed, device=accelerator())[0]


METHODS = {"SDNE": Method(_fit_sdne, is_slow=True), "GraphSAGE": Method(_fit_graphsage, is_slow=True)}
