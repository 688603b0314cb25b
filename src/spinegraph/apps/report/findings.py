"""Everything that a report shows, gathered from a fitted model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.coloring import Coloring, coloring
from spinegraph.analysis.compared_pairs import ComparedPairs, compare_pairs
from spinegraph.analysis.layout import layout
from spinegraph.analysis.plot_subject import column_of, embeddings_of, graph_of
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.analysis.search import Search
from spinegraph.apps.report.examples import Example, find_examples
from spinegraph.apps.report.quality import Note, notes
from spinegraph.graph.describe import Description, describe
from spinegraph.inputs import profile_of

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

    graph: Any
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

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> found = gather(SPINE(dim=8, steps=5).fit(made.karate()), lambda *moment: None)
    >>> found.places.shape, found.colorings[0].title
    ((34, 2), 'role')
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


def _columns(graph: Any, generator: Any) -> list[tuple[str, NDArray[Any]]]:
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
