"""What direction is worth: two made directed networks with known roles, beside the same networks undirected.

``python -m benchmarks.direction`` prints the table and writes ``benchmarks/results/direction.json``. Roles
are found among the ten nearest nodes by a part, and by a linear probe on another network never seen.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from spinegraph import SPINE, Graph

RESULTS = Path(__file__).parent / "results" / "direction.json"
_NEAREST = 10


class Made(NamedTuple):
    """Edges (m, 2), the role and the group of each node, and features (n, f) about the group."""

    edges: NDArray[np.int64]
    roles: NDArray[Any]
    groups: NDArray[np.int64]
    features: NDArray[np.float32]


def reporting_line(seed: int, teams: int = 24, size: int = 12) -> Made:
    """Return teams in which staff report to a lead and leads to a chief; some only send or receive."""
    rng = np.random.default_rng(seed)
    edges, roles, groups = list[tuple[int, int]](), list[str](), list[int]()

    def person(role: str, team: int) -> int:
        roles.append(role)
        groups.append(team)
        return len(roles) - 1

    def may(chance: float, source: int, target: int) -> None:
        if rng.random() < chance:
            edges.append((source, target))

    chiefs = [person("chief", team) for team in range(0, teams, 8)]
    for team in range(teams):
        lead, sender, receiver = (person(role, team) for role in ("lead", "announcer", "collector"))
        staff = [person("staff", team) for _ in range(size)]
        edges += [(lead, chiefs[team // 8]), (sender, lead), (lead, receiver)]
        may(0.3, chiefs[team // 8], lead)
        for one in staff:
            edges.append((one, lead))
            may(0.25, lead, one)
            may(0.85, sender, one)
            may(0.85, one, receiver)
            for other in rng.choice(staff, 2).tolist():
                edges.append((one, other))
                may(0.5, other, one)
    edges += [tuple(pair) for pair in rng.integers(0, len(roles), (len(roles) // 3, 2)).tolist()]
    return _made(rng, edges, roles, groups)


def payments(seed: int, n: int = 600, groups: int = 6) -> Made:
    """Return payments: people pay shops, these suppliers, these employers, and these people.

    Collectors only receive from many people, spreaders only pay many.
    """
    rng = np.random.default_rng(seed)
    kinds = ("person", "shop", "supplier", "employer", "collector", "spreader")
    roles = rng.choice(kinds, n, p=(0.5, 0.2, 0.1, 0.06, 0.07, 0.07))
    group = rng.integers(0, groups, n)

    def some(kind: str, of: int, count: int) -> list[int]:
        everyone = np.flatnonzero(roles == kind)
        near = everyone[group[everyone] == of]
        return [int(rng.choice(near if len(near) and rng.random() < 0.8 else everyone)) for _ in range(count)]

    edges = list[tuple[int, int]]()
    for node, (role, of) in enumerate(zip(roles.tolist(), group.tolist(), strict=True)):
        if role == "person":
            edges += [(node, other) for other in some("shop", of, int(rng.integers(3, 7)))]
            edges += [(node, other) for other in some("collector", of, 1) if rng.random() < 0.3]
            edges += [(other, node) for other in some("employer", of, 1)]
        elif role == "shop":
            edges += [(node, other) for other in some("supplier", of, int(rng.integers(2, 5)))]
        elif role == "supplier":
            edges += [(node, other) for other in some("employer", of, int(rng.integers(1, 4)))]
        elif role == "collector":
            edges += [(other, node) for other in some("person", of, int(rng.integers(6, 14)))]
        elif role == "spreader":
            edges += [(node, other) for other in some("person", of, int(rng.integers(6, 14)))]
    return _made(rng, edges, roles.tolist(), group.tolist())


def _made(rng: np.random.Generator, edges: list[Any], roles: list[str], groups: list[int]) -> Made:
    ends, of = np.array(edges), np.array(groups)
    features = np.eye(of.max() + 1)[of] + 0.6 * rng.standard_normal((len(of), of.max() + 1))
    return Made(ends[ends[:, 0] != ends[:, 1]], np.array(roles), of, features.astype(np.float32))


def measure(make: Callable[[int], Made], seed: int, *, directed: bool) -> dict[str, float]:
    """Return shares of the ten nearest with the same role or group, by part, and of roles found elsewhere."""
    here, there = make(seed), make(seed + 100)
    graphs = [
        Graph.from_edges(each.edges, len(each.roles), features=each.features, directed=directed)
        for each in (here, there)
    ]
    model = SPINE(seed=seed).fit(graphs[0])
    vectors, other = model.embeddings_, model.transform(graphs[1])
    return {
        "role by role": _alike(vectors.part("role"), here.roles),
        "role by content": _alike(vectors.part("content"), here.roles),
        "group by content": _alike(vectors.part("content"), here.groups),
        "group by place": _alike(vectors.part("place"), here.groups),
        "role elsewhere, role part": _probe(
            vectors.part("role"), here.roles, other.part("role"), there.roles
        ),
        "role elsewhere, all": _probe(vectors.vectors, here.roles, other.vectors, there.roles),
    }


def _alike(vectors: NDArray[np.float32], labels: NDArray[Any]) -> float:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors / lengths) @ (vectors / lengths).T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1)[:, :_NEAREST]
    return float((labels[nearest] == labels[:, None]).mean())


def _probe(train: Any, labels: NDArray[Any], test: Any, wanted: NDArray[Any]) -> float:
    scale = StandardScaler().fit(train)
    return float(
        LogisticRegression(max_iter=2000)
        .fit(scale.transform(train), labels)
        .score(scale.transform(test), wanted)
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    found: dict[str, dict[str, list[float]]] = {}
    for name, make in (("reporting line", reporting_line), ("payments", payments)):
        for directed in (False, True):
            cells = [measure(make, seed, directed=directed) for seed in range(seeds)]
            key = f"{name}, {'directed' if directed else 'undirected'}"
            found[key] = {what: [cell[what] for cell in cells] for what in cells[0]}
    RESULTS.write_text(json.dumps({"seeds": seeds, "cells": found}, indent=1) + "\n")
    table = Table("network", *next(iter(found.values())))
    for key, columns in found.items():
        table.add_row(
            key, *(f"{100 * np.mean(each):.1f} ± {100 * np.std(each):.1f}" for each in columns.values())
        )
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
