"""Who in the unseen organisation is like somebody of the fitted one, and why."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.graph.planted import BRIDGE, Planted
from spinegraph.structure.columns import structural_columns

_SHOWN_WORDS = 3


@dataclass(frozen=True)
class Person:
    """Somebody, the truth that was planted, and what can be seen.

    Attributes
    ----------
    name, department, role : str
    ties : int
    acquainted : float
        Share of pairs of contacts that know each other.
    """

    name: str
    department: str
    role: str
    ties: int
    acquainted: float


@dataclass(frozen=True)
class LookAlike:
    """Somebody like another person.

    Attributes
    ----------
    person : Person
    similarity : float
        Cosine of the two vectors.
    common : float
        Overlap of the words around both, from 0 to 1.
    words : tuple of str
        Those that weigh most around both.
    """

    person: Person
    similarity: float
    common: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class LookAlikes:
    """A person, and those of the unseen organisation whose vectors are nearest."""

    of: Person
    found: tuple[LookAlike, ...]


@dataclass(frozen=True)
class Agreement:
    """Shares of people whose nearest vector in the unseen organisation is of their department, their role."""

    department: float
    role: float


def look_alikes(
    here: Planted, there: Planted, vectors: tuple[Any, Any], inputs: tuple[Any, Any], count: int = 3
) -> LookAlikes:
    """Find the first bridge's nearest ``count`` people in the unseen organisation."""
    place = int(np.flatnonzero(here.role == BRIDGE)[0])
    cosines = _cosines(vectors)[place]
    acquainted, acquainted_there = (
        structural_columns(planted.graph, names=("clustering",)).values[:, 0] for planted in (here, there)
    )
    words = np.array(here.graph.feature_names)
    around = _shares(inputs[0][place, : len(words)])
    found = []
    for other in np.argsort(-cosines, kind="stable")[:count].tolist():
        both = np.minimum(around, _shares(inputs[1][other, : len(words)]))
        leading = words[np.argsort(-both, kind="stable")[:_SHOWN_WORDS]]
        found.append(
            LookAlike(
                _person(there, other, acquainted_there),
                float(cosines[other]),
                float(both.sum()),
                tuple(leading.tolist()),
            )
        )
    return LookAlikes(_person(here, place, acquainted), tuple(found))


def agreement(here: Planted, there: Planted, vectors: tuple[Any, Any]) -> Agreement:
    """Say how often the nearest person elsewhere shares department and role."""
    nearest = _cosines(vectors).argmax(axis=1)
    same_department = (there.community[nearest] == here.community).mean()
    return Agreement(float(same_department), float((there.role[nearest] == here.role).mean()))


def _person(planted: Planted, place: int, acquainted: NDArray[Any]) -> Person:
    return Person(
        str(planted.graph.names[place]),
        planted.community_names[planted.community[place]],
        planted.role_names[planted.role[place]],
        int(planted.graph.degrees[place]),
        float(acquainted[place]),
    )


def _cosines(vectors: tuple[Any, Any]) -> NDArray[Any]:
    unit = [values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12) for values in vectors]
    cosines: NDArray[Any] = unit[0] @ unit[1].T  # (n, n')
    return cosines


def _shares(row: NDArray[Any]) -> NDArray[Any]:
    return row / max(float(row.sum()), 1e-12)
