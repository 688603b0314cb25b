"""The case study drawn: a node above, its structural twins below, classes in colour."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.reproduce.cells import Cells
from spinegraph.reproduce.item import Item
from spinegraph.reproduce.palette import CLASSES


def case_study(item: Item, cells: Cells, plt: Any) -> Any:
    """One line of drawings per node: few neighbours first, then many."""
    (case,), (name,) = item.cases, item.rows
    found = next(iter(cells.seeds(item.name, case, name, item.version(case, name)).values()))
    lines = [(kind, entry) for kind in ("few", "many") for entry in found[kind]]
    most = max((len(entry["twins"]) for _, entry in lines), default=0)
    figure, axes = plt.subplots(
        len(lines),
        most + 1,
        figsize=(1.75 * (most + 1), 1.8 * len(lines) + 0.5),
        squeeze=False,
        layout="constrained",
    )
    for drawn, (kind, entry) in zip(axes, lines, strict=True):
        for axis in drawn:
            axis.axis("off")
        surroundings(drawn[0], entry["node"])
        drawn[0].set_title(f"node {entry['node']['nodes'][0]}", fontsize=8, fontweight="bold")
        drawn[0].text(
            -0.02,
            0.5,
            f"{kind} neighbours",
            transform=drawn[0].transAxes,
            rotation=90,
            ha="right",
            va="center",
            fontsize=8,
        )
        for number, (axis, twin) in enumerate(zip(drawn[1:], entry["twins"], strict=False), start=1):
            surroundings(axis, twin)
            axis.set_title(f"twin {number}: {twin['nodes'][0]}", fontsize=8)
    handles = [
        plt.Line2D([], [], marker="o", ls="", color=color, mec="black", mew=0.4, label=f"{number}")
        for number, color in enumerate(CLASSES)
    ]
    figure.legend(handles=handles, title="class", loc="outside lower center", ncols=7)
    return figure


def surroundings(axis: Any, found: dict[str, Any]) -> None:
    """Draw a node in the middle, its neighbours around it and theirs outside, numbers by class."""
    places = rings(found)
    for one, other in found["links"]:
        axis.plot(*places[[one, other]].T, color="#B0B0B0", lw=0.6, zorder=1)
    for number, (place, label, hop) in enumerate(zip(places, found["classes"], found["hops"], strict=True)):
        color = CLASSES[label % len(CLASSES)]
        size = (130, 60, 22)[hop]
        axis.scatter(
            *place, s=size, color=color, edgecolor="black", lw=1.4 if number == 0 else 0.4, zorder=3 - hop / 2
        )
        if hop < 2:
            axis.text(
                *place,
                str(label),
                fontsize=5.5,
                ha="center",
                va="center",
                zorder=4,
                color="black" if color in ("#F0E442", "#E69F00", "#56B4E9", "#CC79A7") else "white",
            )
    if found["beyond"] > sum(hop == 2 for hop in found["hops"]):
        axis.text(
            0.5, -0.04, f"{found['beyond']} at two hops", transform=axis.transAxes, fontsize=6, ha="center"
        )
    axis.set_xlim(-1.25, 1.25)
    axis.set_ylim(-1.25, 1.25)
    axis.set_aspect("equal")


def rings(found: dict[str, Any]) -> NDArray[np.float64]:
    """Return places (n, 2): neighbours on a circle, and each of theirs outside near the one it hangs on.

    Examples
    --------
    >>> rings({"hops": [0, 1], "links": [[0, 1]]}).round(2).tolist()
    [[0.0, 0.0], [0.55, 0.0]]
    """
    hops = np.array(found["hops"])
    angles = np.zeros(len(hops))
    near = np.flatnonzero(hops == 1)
    angles[near] = 2 * np.pi * np.arange(len(near)) / max(len(near), 1)
    parent: dict[int, int] = {}
    for one, other in found["links"]:
        low, high = sorted((one, other), key=lambda node: hops[node])
        if hops[low] == 1 and hops[high] == 2:
            parent.setdefault(high, low)
    far = sorted(np.flatnonzero(hops == 2).tolist(), key=lambda node: (angles[parent.get(node, 0)], node))
    angles[far] = 2 * np.pi * np.arange(len(far)) / max(len(far), 1)
    radius = np.array([0.0, 0.55, 1.1])[hops]
    return np.column_stack([radius * np.cos(angles), radius * np.sin(angles)])
