"""Everything that a report shows, gathered from a fitted model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph.analysis.explain import Explanation, explain
from spinegraph.analysis.layout import layout
from spinegraph.analysis.plots import (
    Coloring,
    ComparedPairs,
    color_nodes,
    column_of,
    compare_pairs,
    embeddings_of,
    graph_of,
)
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.analysis.search import Search
from spinegraph.embeddings import Embeddings
from spinegraph.generator import Generator, profile_of
from spinegraph.graph.describe import Description, describe
from spinegraph.graph.graph import Graph
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.similarity import pair_distances

Progress = Callable[[str, int, int], None]  # stage, done, of how many (0 where unknown)

MAX_ON_MAP = 20_000  # nodes: a browser draws them at once, and the file stays small
_MAX_COLUMNS = 12
_MAX_EXAMPLES = 4
_TYPICAL_TRIED, _MATCHES_TRIED = 8, 25
_READABLE_DEGREES = (2, 24)  # of a node whose neighbourhood makes a readable drawing
_FEW_OF_A_LABEL = 5
_MUCH = 0.05  # a share that warrants a warning rather than a remark
_HUB = 0.2  # of all nodes


@dataclass(frozen=True)
class Note:
    """One remark on the data."""

    level: Literal["warning", "remark"]  # "warning" where results may suffer, "remark" otherwise
    text: str  # what was found, in numbers
    advice: str  # what follows


@dataclass(frozen=True, eq=False)
class Example:
    """Two nodes that are alike, and why."""

    role: int
    a: Any
    b: Any
    score: float  # cosine of the vectors
    explanation: Explanation


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report shows."""

    graph: Graph
    embeddings: Embeddings
    description: Description
    notes: list[Note]
    roles: Roles
    assignment: RoleAssignment
    shown: NDArray[np.int64]  # (m,), positions of the nodes on the map: all, or a sample
    coordinates: NDArray[np.float32]  # (m, 2)
    colorings: list[Coloring]  # of the nodes on the map; the first is shown first
    labels: NDArray[Any] | None  # (n,)
    label_title: str
    examples: list[Example]
    pairs: ComparedPairs


def gather(
    model: Any,
    progress: Progress,
    *,
    labels: NDArray[Any] | None = None,
    label_title: str = "label",
    color: str | None = None,
    seed: int = 0,
) -> Findings:
    """Compute everything that a report shows; the arguments are those of ``write_report``."""
    graph, embeddings, generator = graph_of(model), embeddings_of(model), model.generator_
    is_known = color in (None, "role") or (labels is not None and color == label_title)
    chosen = [] if is_known else [(str(color), column_of(graph, str(color)))]
    progress("describing the data", 0, 0)
    description = describe(graph, labels)
    progress("finding roles", 0, 0)
    roles = Roles.find(graph, generator, embeddings, seed=seed)
    assignment = roles.assign(graph, generator, embeddings=embeddings)
    progress("comparing pairs of nodes", 0, 0)
    profile = profile_of(graph, generator.inputs.config)
    pairs = compare_pairs(graph, embeddings, profile.weights, seed=seed)
    progress("looking for look-alikes", 0, 0)
    examples = find_examples(graph, generator, Search(embeddings), profile, assignment)
    progress("drawing the map", 0, 0)
    shown = np.arange(len(graph))
    if len(shown) > MAX_ON_MAP:
        shown = np.sort(np.random.default_rng(seed).permutation(len(shown))[:MAX_ON_MAP])
    coordinates = layout(embeddings.vectors[shown], seed=seed)
    colorings = [color_nodes("role", assignment.roles[shown], groups=tuple(roles.titles))]
    if labels is not None:
        colorings.append(color_nodes(label_title, labels[shown]))
    columns = chosen + [each for each in _columns(graph, generator) if each[0] != color]
    colorings += [color_nodes(title, values[shown]) for title, values in columns]
    first = next((each for each in colorings if each.title == color), colorings[0])
    colorings.sort(key=lambda each: each is not first)
    return Findings(
        graph,
        embeddings,
        description,
        notes(graph, description, embeddings),
        roles,
        assignment,
        shown,
        coordinates,
        colorings,
        labels,
        label_title,
        examples,
        pairs,
    )


def _columns(graph: Graph, generator: Any) -> list[tuple[str, NDArray[Any]]]:
    """Return structural columns and the feature columns that weigh most in the model, by title."""
    listed = [
        ("neighbours (logarithm)", np.log1p(graph.degrees)),
        ("neighbours who know each other", column_of(graph, "clustering").astype(np.float64)),
    ]
    if graph.features is None or graph.feature_names is None:
        return listed
    weights = np.linalg.norm(generator.weights[: graph.features.shape[1]], axis=1)
    read = generator.inputs.encoder.transform(graph.features)
    mean, square = (np.asarray(part.mean(axis=0), np.float64).ravel() for part in (read, read * read))
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    heavy = np.argsort(-weights * spread, kind="stable")[:_MAX_COLUMNS]
    names = [graph.feature_names[index] for index in heavy]
    return listed + [(name, column_of(graph, name).astype(np.float64)) for name in names]


def notes(graph: Graph, description: Description, embeddings: Embeddings) -> list[Note]:
    """Judge a graph and the vectors made of it, warnings first."""
    found = [
        Note("warning" if share >= _MUCH else "remark", text, advice)
        for share, text, advice in _remarks(graph, description, embeddings)
    ]
    return sorted(found, key=lambda note: note.level != "warning")


def _remarks(graph: Graph, found: Description, embeddings: Embeddings) -> Iterator[tuple[float, str, str]]:
    """Yield the share of the data that is concerned, what was found, and what follows."""
    nodes = found.nodes
    if found.isolated:
        have = "has" if found.isolated == 1 else "have"
        yield (
            found.isolated / nodes,
            f"{_of(found.isolated, nodes)} {have} no neighbours.",
            "Their vectors come from their own features alone.",
        )
    pieces = found.components - found.isolated
    outside = nodes - found.largest_component - found.isolated
    if pieces >= 2:
        yield (
            outside / nodes,
            f"The network falls into {pieces:,} unconnected pieces; "
            f"{_of(outside, nodes)} with neighbours are outside the largest.",
            "Nodes of different pieces are compared by features and role only.",
        )
    hub = found.degree_largest / max(nodes - 1, 1)
    if hub >= _HUB and nodes >= 50:
        yield (
            hub,
            f"{found.best_connected} is linked to {100 * hub:.0f} % of all nodes.",
            "Everything is then two steps from everything; consider leaving that node out.",
        )
    if found.features is None:
        advice = "Vectors hold roles; where a node lives shows only through its surroundings."
        yield 0, "The nodes have no features.", advice
    elif found.features.empty_rows:
        empty = found.features.empty_rows
        text = f"{_of(empty, nodes)} have no feature that is not 0."
        yield empty / nodes, text, "They are placed by the features of their surroundings."
    if graph.features is not None:
        ends = [getattr(graph.features, end)(axis=0) for end in ("min", "max")]
        low, high = (np.ravel(end.toarray() if issparse(end) else end) for end in ends)
        constant = int(np.count_nonzero(low == high))
        if constant:
            columns = _of(constant, graph.features.shape[1], "feature columns")
            yield 0, f"{columns} are the same for every node.", "They distinguish nothing."
    counts = np.unique(embeddings.vectors.round(5), axis=0, return_counts=True)[1]
    same = int(counts[counts > 1].sum())
    if same:
        yield (
            same / len(embeddings),
            f"{_of(same, len(embeddings))} share their vector with another node.",
            "Nothing in the data distinguishes these: same features, same surroundings.",
        )
    if found.labels is not None:
        rare = sum(count < _FEW_OF_A_LABEL for _, count in found.labels.counts)
        parts = [f"{_of(found.labels.unlabelled, nodes)} have no label"] * bool(found.labels.unlabelled)
        if rare:
            few = f"{rare:,} of {len(found.labels.counts):,} labels"
            parts.append(f"{few} have fewer than {_FEW_OF_A_LABEL} nodes")
        if parts:
            yield 0, "; ".join(parts) + ".", "Labels colour the map; they choose nothing else."
    report = graph.report
    if report is not None and (report.listed != report.edges or report.one_way):
        lost = (report.self_loops + report.zero_weights) / max(report.listed, 1)
        yield lost, str(report), "Links are read as undirected; each counts once."


def _of(count: int, total: int, what: str = "nodes") -> str:
    share = 100 * count / max(total, 1)
    return f"{count:,} of {total:,} {what} ({share:{'.2g' if share < 10 else '.0f'}} %)"


def find_examples(
    graph: Graph, generator: Generator, search: Search, profile: RootedPageRank, assignment: RoleAssignment
) -> list[Example]:
    """Find for the commonest roles a typical node, and the node most like it that is not near it.

    Most alike is the node of largest cosine, less where the profiles differ.
    """
    found: list[Example] = []
    used: set[int] = set()
    for role in np.argsort(-assignment.shares(), kind="stable").tolist():
        pairs = _pairs(graph, search, profile, assignment, role, used)
        if not pairs or len(found) == _MAX_EXAMPLES:
            continue
        _, _, cosine, one, other = max(pairs, key=lambda pair: pair[:2])
        used |= {one, other}
        a, b = graph.names[[one, other]].tolist()
        reasons = explain(graph, generator, a, b, embeddings=search)
        found.append(Example(role, a, b, cosine, reasons))
    return sorted(found, key=lambda example: example.role)


def _pairs(
    graph: Graph,
    search: Search,
    profile: RootedPageRank,
    assignment: RoleAssignment,
    role: int,
    used: set[int],
) -> list[tuple[bool, float, float, int, int]]:
    """Pair typical nodes of a role with the nodes whose vectors are nearest.

    Returns whether they are more than two steps apart and of one role, likeness, cosine, both positions.
    """
    typical = graph.positions(assignment.examples(role, len(graph)))
    low, high = _READABLE_DEGREES
    fits = (graph.degrees[typical] >= low) & (graph.degrees[typical] <= high)
    listed = [one for one in (typical[fits] if fits.any() else typical).tolist() if one not in used]
    adjacency, found = graph.adjacency(), []
    for one in listed[:_TYPICAL_TRIED]:
        ring = adjacency.neighbors(np.array([one]))[1].astype(np.int64)
        near = {one, *ring.tolist(), *adjacency.neighbors(ring)[1].tolist()}
        for match in search.similar(graph.names[one], n=_MATCHES_TRIED):
            other = int(graph.positions([match.name])[0])
            if other in used:
                continue
            is_apart = other not in near and assignment.roles[other] == role
            step = float(pair_distances(profile.weights, [[one, other]])[0]) / profile.k
            found.append((bool(is_apart), match.score / (1 + step), match.score, one, other))
    return found
