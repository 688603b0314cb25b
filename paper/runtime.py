"""Running time on Cora: a training batch of 512, inference on the 1,000 test nodes, and what is kept for it.

The batch of SPINE with the paper's settings is the difference of two fits, so that nothing but batches is in
it; SPINE with its defaults trains no batches. GraphSAGE draws 25 and 10 neighbours as its authors do. GAT has
no batches of its own: it sees the whole network and 512 nodes count.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from paper.cells import DIM, Item, Measure, Values
from paper.methods import PAPER
from paper.protocols import load
from spinegraph.estimator import SPINE
from spinegraph.graph.datasets import Dataset
from spinegraph.graph.graph import Graph
from spinegraph.paper import PaperSPINE

_BATCH, _REPEATS, _STEPS = 512, 7, 200


def measure(case: str, name: str, seed: int) -> Values:
    """Return milliseconds of a training batch and of inference, and thousands of parameters kept."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {"SPINE": _spine, PAPER: _paper, "GraphSAGE": _graphsage, "GAT": _gat}[name](load(case), seed)
    finally:
        torch.set_num_threads(before)


def _spine(data: Dataset, seed: int) -> Values:
    model = SPINE(seed=seed, threads=1, dim=DIM).fit(data.graph)
    names = data.graph.names[data.test].tolist()
    return {"inference": 1000 * median(lambda: model.transform(data.graph, nodes=names))}


def _paper(data: Dataset, seed: int) -> Values:
    def fit(steps: int) -> PaperSPINE:
        return SPINE.paper(steps=steps, batch_size=_BATCH, seed=seed, threads=1, dim=DIM).fit(data.graph)

    fit(10)
    spent = {steps: median(lambda steps=steps: fit(steps), 3) for steps in (10, 10 + _STEPS)}  # type: ignore[misc]
    model = fit(10)
    names = data.graph.names[data.test].tolist()
    model.transform(data.graph, nodes=names)
    return {
        "batch": 1000 * (spent[10 + _STEPS] - spent[10]) / _STEPS,
        "inference": 1000 * median(lambda: model.transform(data.graph, nodes=names)),
        "parameters": model.generator_.weights.size / 1000,
    }


def _graphsage(data: Dataset, seed: int) -> Values:
    import torch
    from torch.nn.functional import logsigmoid

    from paper.neural import SageEncoder, as_matrix, pyg_inputs, walk_positives

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    inputs = pyg_inputs(data.graph)
    encoder = SageEncoder(inputs[0].shape[1], DIM)
    adam = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    positives = walk_positives(data.graph, 1, rng)

    def step() -> None:
        anchors = rng.integers(len(data.graph), size=_BATCH)
        drawn = np.concatenate([anchors, positives[anchors], rng.integers(len(data.graph), size=20)])
        nodes, place = np.unique(drawn, return_inverse=True)
        near, first = sampled_neighbours(data.graph, nodes, 10, rng)
        far, second = sampled_neighbours(data.graph, near, 25, rng)
        hidden = encoder.first(inputs[0][torch.from_numpy(far)], as_matrix(second, len(far))).relu()
        out = encoder.second(hidden[: len(near)], as_matrix(first, len(near)))[torch.from_numpy(place)]
        out = torch.nn.functional.normalize(out)
        pull = logsigmoid((out[:_BATCH] * out[_BATCH : 2 * _BATCH]).sum(dim=1)).mean()
        push = logsigmoid(-(out[:_BATCH] @ out[2 * _BATCH :].T)).mean()
        adam.zero_grad()
        (-(pull + push)).backward()  # type: ignore[no-untyped-call]
        adam.step()

    def infer() -> None:
        with torch.no_grad():
            encoder(*inputs)[torch.from_numpy(data.test)]

    parameters = sum(part.numel() for part in encoder.parameters())
    return {"batch": 1000 * median(step), "inference": 1000 * median(infer), "parameters": parameters / 1000}


def _gat(data: Dataset, seed: int) -> Values:
    import torch
    from torch.nn.functional import cross_entropy

    from paper.neural import Classifier, gat_inputs

    assert data.labels is not None
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    features, edges = gat_inputs(data.graph)
    labels = torch.from_numpy(data.labels)
    model = Classifier(features.shape[1], int(labels.max()) + 1)
    adam = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)

    def step() -> None:
        batch = torch.from_numpy(rng.integers(len(data.graph), size=_BATCH))
        adam.zero_grad()
        cross_entropy(model(features, edges)[batch], labels[batch]).backward()  # type: ignore[no-untyped-call]
        adam.step()

    timed = median(step)
    model.eval()

    def infer() -> None:
        with torch.no_grad():
            model(features, edges)[torch.from_numpy(data.test)]

    parameters = sum(part.numel() for part in model.parameters())
    return {"batch": 1000 * timed, "inference": 1000 * median(infer), "parameters": parameters / 1000}


def sampled_neighbours(
    graph: Graph, nodes: NDArray[np.int64], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw ``count`` neighbours of each node, with repeats.

    Returns the nodes, which are distinct, followed by others that were drawn, each once, and the edges (2, e)
    from the drawn to the nodes, as indices.
    """
    linked = np.flatnonzero(graph.degrees[nodes] > 0)
    of, at = np.repeat(linked, count), np.repeat(nodes[linked], count)
    drawn = graph.indices[graph.indptr[at] + (rng.random(len(at)) * graph.degrees[at]).astype(np.int64)]
    seen, first, place = np.unique(np.concatenate([nodes, drawn]), return_index=True, return_inverse=True)
    order = np.argsort(first)  # as met: the nodes themselves come first
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return seen[order], np.stack([rank[place[len(nodes) :]], of])


def median(call: Callable[[], object], repeats: int = _REPEATS) -> float:
    """Return the median seconds of some calls after a first one that is not timed."""
    call()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


ITEMS = {
    "runtime": Item(
        "runtime",
        "Figure: running time on Cora, one thread",
        ("cora",),
        ("SPINE", PAPER, "GraphSAGE", "GAT"),
        measure,
        (
            Measure("batch", "training batch of 512, ms", digits=1),
            Measure("inference", "inference on 1,000 nodes, ms", digits=1),
            Measure("parameters", "parameters kept for inference, thousands", digits=1),
        ),
        figure_only=("SPINE", PAPER, "GraphSAGE", "GAT"),
        smoke=("cora", "GAT"),
        max_seeds=3,
    )
}
