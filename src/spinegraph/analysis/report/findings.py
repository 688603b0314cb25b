"""Everything that a report shows, gathered from a fitted model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.explain import Explanation, explain
from spinegraph.analysis.layout import layout
from spinegraph.analysis.plots import (
    Coloring,
    ComparedPairs,
    coloring,
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
    """

    level: Literal["warning", "remark"]
    text: str
    advice: str


def notes(graph: Graph, description: Description, embeddings: Embeddings) -> list[Note]:
    """Judge a graph and the vectors made of it, most important first."""
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


def _features(graph: Graph, found: Description) -> Note | None:
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


def _constant(graph: Graph) -> Note | None:
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


def _edges(graph: Graph) -> Note | None:
    report = graph.report
    if report is None or (report.listed == report.edges and not report.one_way):
        return None
    lost = report.self_loops + report.zero_weights
    return Note(
        _level(lost / max(report.listed, 1)),
        str(report),
        "Links are read as undirected; each counts once.",
    )


_EXAMPLES = 4
_TRIED = 8  # typical nodes of a role
_MATCHES = 25
_DRAWN = (2, 24)  # neighbours of a node that makes a readable drawing


@dataclass(frozen=True, eq=False)
class Example:
    """Two nodes that are alike, and why.

    Attributes
    ----------
    role : int
    a, b : names
    score : float
        Cosine of the vectors.
    explanation : Explanation
    """

    role: int
    a: Any
    b: Any
    score: float
    explanation: Explanation


def find_examples(
    graph: Graph,
    generator: Generator,
    search: Search,
    profile: RootedPageRank,
    assignment: RoleAssignment,
    count: int = _EXAMPLES,
) -> list[Example]:
    """Find for the commonest roles a typical node, and the node most like it that is not beside it.

    Most alike is who has the largest cosine, less where the profiles differ.

    Parameters
    ----------
    graph : Graph
    generator : Generator
    search : Search
        Over the vectors of all nodes.
    profile : RootedPageRank
        Of all nodes.
    assignment : RoleAssignment
        Of all nodes.
    count : int
    """
    found: list[Example] = []
    used: set[int] = set()
    for role in np.argsort(-assignment.shares(), kind="stable").tolist():
        pairs = _pairs(graph, search, profile, assignment, role, used)
        if not pairs or len(found) == count:
            continue
        best = max(pairs, key=lambda pair: (pair.is_apart, pair.likeness))
        used |= {best.one, best.other}
        a, b = graph.names[[best.one, best.other]].tolist()
        reasons = explain(graph, generator, a, b, embeddings=search)
        found.append(Example(role, a, b, best.cosine, reasons))
    return sorted(found, key=lambda example: example.role)


class _Pair(NamedTuple):
    one: int
    other: int
    cosine: float
    is_apart: bool  # more than two steps, and of one role
    likeness: float


def _pairs(
    graph: Graph,
    search: Search,
    profile: RootedPageRank,
    assignment: RoleAssignment,
    role: int,
    used: set[int],
) -> list[_Pair]:
    """Return typical nodes of a role, each with the nodes whose vectors are nearest."""
    typical = graph.positions(assignment.examples(role, len(graph)))
    least, most = _DRAWN
    fits = (graph.degrees[typical] >= least) & (graph.degrees[typical] <= most)
    listed = [one for one in (typical[fits] if fits.any() else typical).tolist() if one not in used]
    found = []
    for one in listed[:_TRIED]:
        near = _within_two(graph, one)
        for match in search.similar(graph.names[one], n=_MATCHES):
            other = int(graph.positions([match.name])[0])
            if other in used:
                continue
            is_apart = other not in near and assignment.roles[other] == role
            step = float(pair_distances(profile.weights, [[one, other]])[0]) / profile.k
            found.append(_Pair(one, other, match.score, bool(is_apart), match.score / (1 + step)))
    return found


def _within_two(graph: Graph, node: int) -> set[int]:
    ring = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
    beyond = (graph.indices[graph.indptr[place] : graph.indptr[place + 1]].tolist() for place in ring)
    return {node, *ring, *(other for row in beyond for other in row)}


Progress = Callable[[str, int, int], None]  # stage, done, of how many (0 where unknown)

MOST_ON_MAP = 20_000  # nodes: a browser draws them at once, and the file stays small
_MOST_COLUMNS = 12


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report shows.

    Attributes
    ----------
    graph : Graph
    embeddings : Embeddings
    description : Description
    notes : list of Note
    roles : Roles
    assignment : RoleAssignment
    shown : int64 array (m,)
        Positions of the nodes on the map: all, or a sample.
    places : float32 array (m, 2)
    colorings : list of Coloring
        Of the nodes on the map; the first is shown first.
    labels : array (n,) or None
    label_title : str
    examples : list of Example
    pairs : ComparedPairs
    """

    graph: Graph
    embeddings: Any
    description: Description
    notes: list[Note]
    roles: Roles
    assignment: RoleAssignment
    shown: NDArray[np.int64]
    places: NDArray[np.float32]
    colorings: list[Coloring]
    labels: NDArray[Any] | None
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
    """Compute everything that a report shows.

    Parameters
    ----------
    model : SPINE
        Fitted, with its training data.
    progress : callable (stage, done, total)
    labels : array (n,), optional
        One per node; None where there is none.
    label_title : str
    color : str, optional
        What colours the map first: ``"role"``, the labels' title, or the name of any column.
    seed : int
    """
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
    shown = _sample(len(graph), seed)
    places = layout(embeddings.vectors[shown], seed=seed)
    colorings = [coloring("role", assignment.roles[shown], groups=tuple(roles.titles))]
    if labels is not None:
        colorings.append(coloring(label_title, labels[shown]))
    columns = chosen + [each for each in _columns(graph, generator) if each[0] != color]
    colorings += [coloring(title, values[shown]) for title, values in columns]
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
        places,
        colorings,
        labels,
        label_title,
        examples,
        pairs,
    )


def _sample(n: int, seed: int) -> NDArray[np.int64]:
    if n <= MOST_ON_MAP:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).permutation(n)[:MOST_ON_MAP])


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
    spread = np.sqrt(np.maximum(_means(read * read) - _means(read) ** 2, 0))
    heavy = np.argsort(-weights * spread, kind="stable")[:_MOST_COLUMNS]
    names = [graph.feature_names[place] for place in heavy]
    return listed + [(name, column_of(graph, name).astype(np.float64)) for name in names]


def _means(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.mean(axis=0), dtype=np.float64).ravel()
