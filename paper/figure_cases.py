"""The case study drawn: a node above, its structural twins below, classes in colour."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.cells import Cells
from paper.item import Item
from paper.palette import CLASSES, ORANGE, PURPLE, SKY, YELLOW

_LIGHT = (ORANGE, PURPLE, SKY, YELLOW)  # black is read better on these


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
    places, hops = rings(found), np.array(found["hops"])
    colors = [CLASSES[label % len(CLASSES)] for label in found["classes"]]
    for one, other in found["links"]:
        axis.plot(*places[[one, other]].T, color="#B0B0B0", lw=0.6, zorder=1)
    sizes, widths = np.array([130, 60, 22])[hops], np.where(hops == 0, 1.4, 0.4)
    axis.scatter(*places.T, s=sizes, c=colors, edgecolor="black", linewidths=widths, zorder=2)
    for place, label, color in list(zip(places, found["classes"], colors, strict=True))[
        : int((hops < 2).sum())
    ]:
        ink = "black" if color in _LIGHT else "white"
        axis.text(*place, str(label), fontsize=5.5, ha="center", va="center", zorder=3, color=ink)
    if found["beyond"] > sum(hop == 2 for hop in found["hops"]):
        axis.text(
            0.5, -0.04, f"{found['beyond']} at two hops", transform=axis.transAxes, fontsize=6, ha="center"
        )
    axis.set_xlim(-1.25, 1.25)
    axis.set_ylim(-1.25, 1.25)
    axis.set_aspect("equal")


def rings(found: dict[str, Any]) -> NDArray[np.float64]:
    """Return places (n, 2): neighbours on a circle, and each of theirs outside near the one it hangs on."""
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
