"""What a reader should know about the data before believing the vectors."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spinegraph.embeddings import Embeddings
from spinegraph.graph.describe import Description

_FEW_OF_A_LABEL = 5
_MUCH = 0.05  # a share worth a warning rather than a remark
_HUB = 0.2  # of all nodes


@dataclass(frozen=True)
class Note:
    """One remark on the data.

    Attributes
    ----------
    level : str
        ``"warning"`` where results may suffer, ``"remark"`` otherwise.
    text : str
        What was found, in numbers.
    advice : str
        What follows.

    Examples
    --------
    >>> Note("remark", "3 nodes have no neighbours.", "They see only themselves.").level
    'remark'
    """

    level: Literal["warning", "remark"]
    text: str
    advice: str


def notes(graph: Any, description: Description, embeddings: Embeddings) -> list[Note]:
    """Judge a graph and the vectors made of it, most important first.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> from spinegraph.graph.describe import describe
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], num_nodes=4)
    >>> found = notes(graph, describe(graph), Embeddings(graph.names, np.eye(4)))
    >>> found[0].text
    '1 of 4 nodes (25 %) has no neighbours.'
    """
    found = [
        _isolated(description),
        _pieces(description),
        _hub(description),
        _features(graph, description),
        _constant(graph),
        _equal(embeddings),
        _labels(description),
        _edges(graph),
    ]
    listed = [note for note in found if note is not None]
    return sorted(listed, key=lambda note: note.level != "warning")


def _of(count: int, total: int, what: str = "nodes") -> str:
    share = 100 * count / max(total, 1)
    return f"{count:,} of {total:,} {what} ({share:{'.2g' if share < 10 else '.0f'}} %)"


def _level(share: float) -> Literal["warning", "remark"]:
    return "warning" if share >= _MUCH else "remark"


def _isolated(found: Description) -> Note | None:
    if not found.isolated:
        return None
    have = "has" if found.isolated == 1 else "have"
    return Note(
        _level(found.isolated / found.nodes),
        f"{_of(found.isolated, found.nodes)} {have} no neighbours.",
        "Their vectors come from their own features alone.",
    )


def _pieces(found: Description) -> Note | None:
    pieces = found.components - found.isolated
    outside = found.nodes - found.largest_component - found.isolated
    if pieces < 2:
        return None
    return Note(
        _level(outside / found.nodes),
        f"The network falls into {pieces:,} unconnected pieces; "
        f"{_of(outside, found.nodes)} with neighbours are outside the largest.",
        "Nodes of different pieces are compared by features and role only.",
    )


def _hub(found: Description) -> Note | None:
    share = found.degree_largest / max(found.nodes - 1, 1)
    if share < _HUB or found.nodes < 50:
        return None
    return Note(
        "warning",
        f"{found.best_connected} is linked to {100 * share:.0f} % of all nodes.",
        "Everything is then two steps from everything; consider leaving that node out.",
    )


def _features(graph: Any, found: Description) -> Note | None:
    if found.features is None:
        return Note(
            "remark",
            "The nodes have no features.",
            "Vectors hold roles; where a node lives shows only through its surroundings.",
        )
    if not found.features.empty_rows:
        return None
    share = found.features.empty_rows / found.nodes
    return Note(
        _level(share),
        f"{_of(found.features.empty_rows, found.nodes)} have no feature that is not 0.",
        "They are placed by the features of their surroundings.",
    )


def _constant(graph: Any) -> Note | None:
    if graph.features is None:
        return None
    largest, smallest = graph.features.max(axis=0), graph.features.min(axis=0)
    if hasattr(largest, "toarray"):
        largest, smallest = largest.toarray(), smallest.toarray()
    same = int(np.count_nonzero(np.ravel(largest) == np.ravel(smallest)))
    if not same:
        return None
    return Note(
        "remark",
        f"{_of(same, graph.features.shape[1], 'feature columns')} are the same for every node.",
        "They tell nothing apart.",
    )


def _equal(embeddings: Embeddings) -> Note | None:
    counts = np.unique(embeddings.vectors.round(5), axis=0, return_counts=True)[1]
    same = int(counts[counts > 1].sum())
    if not same:
        return None
    return Note(
        _level(same / len(embeddings)),
        f"{_of(same, len(embeddings))} share their vector with another node.",
        "Nothing in the data tells these apart: same features, same surroundings.",
    )


def _labels(found: Description) -> Note | None:
    if found.labels is None:
        return None
    rare = sum(count < _FEW_OF_A_LABEL for _, count in found.labels.counts)
    if not found.labels.unlabelled and not rare:
        return None
    parts = []
    if found.labels.unlabelled:
        parts.append(f"{_of(found.labels.unlabelled, found.nodes)} have no label")
    if rare:
        parts.append(
            f"{rare:,} of {len(found.labels.counts):,} labels have fewer than {_FEW_OF_A_LABEL} nodes"
        )
    return Note("remark", "; ".join(parts) + ".", "Labels colour the map; they choose nothing else.")


def _edges(graph: Any) -> Note | None:
    report = graph.report
    if report is None or (report.listed == report.edges and not report.one_way):
        return None
    lost = report.self_loops + report.zero_weights
    return Note(
        _level(lost / max(report.listed, 1)),
        str(report),
        "Links are read as undirected; each counts once.",
    )
