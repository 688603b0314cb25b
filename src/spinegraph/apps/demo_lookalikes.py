"""Who in the unseen organisation is like somebody of the fitted one, and why."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.explain import explain
from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.graph.planted import BRIDGE, Planted
from spinegraph.structure.columns import structural_columns


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
    reasons : tuple of str
        Where the similarity comes from, what is alike around both, and how the roles compare.
    """

    person: Person
    similarity: float
    reasons: tuple[str, ...]


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
    here: Planted, there: Planted, vectors: tuple[Any, Any], generator: Generator, count: int = 3
) -> LookAlikes:
    """Find the first bridge's nearest ``count`` people in the unseen organisation, with reasons."""
    place = int(np.flatnonzero(here.role == BRIDGE)[0])
    cosines = _cosines(vectors)[place]
    acquainted, acquainted_there = (
        structural_columns(planted.graph, names=("clustering",)).values[:, 0] for planted in (here, there)
    )
    both = _side_by_side(here.graph, there.graph)
    found = []
    for other in np.argsort(-cosines, kind="stable")[:count].tolist():
        a, b = both.names[[place, len(here.graph) + other]].tolist()
        words = explain(both, generator, a, b).words
        # Left out: the verdict, which the number gives, and that the two organisations share no link.
        reasons = (*words[1:3], words[-1])
        found.append(LookAlike(_person(there, other, acquainted_there), float(cosines[other]), reasons))
    return LookAlikes(_person(here, place, acquainted), tuple(found))


def _side_by_side(here: Graph, there: Graph) -> Graph:
    """Return both organisations as one network; who has a namesake in the first one is marked."""
    known = set(here.names.tolist())
    names = [f"{name} (unseen)" if name in known else name for name in there.names.tolist()]
    return Graph.union([here, there.relabel(names)])


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
