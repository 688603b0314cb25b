"""Figures of distances: mirrored pairs beside linked ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.cells import Cells
from paper.item import Item
from paper.palette import BLUE, ORANGE, ROWS

_SAMPLES = 4000


def spread(quantiles: list[list[float]]) -> NDArray[np.float64]:
    """Return values that have the mean quantiles of some seeds."""
    levels = np.linspace(0, 1, len(quantiles[0]))
    found: NDArray[np.float64] = np.interp(np.linspace(0, 1, _SAMPLES), levels, np.mean(quantiles, axis=0))
    return found


def distributions(item: Item, cells: Cells, plt: Any) -> Any:
    """Histograms of Pm and Pa, over the mean of Pa; rows down, cases across."""
    found = {
        (name, case): list(cells.seeds(item.name, case, name, item.version(case, name)).values())
        for case in item.cases
        for name in item.rows
    }
    rows = [name for name in item.rows if any(found[name, case] for case in item.cases)]
    figure, axes = plt.subplots(
        len(rows),
        len(item.cases),
        figsize=(3.6 * len(item.cases) + 1.2, 1.05 * len(rows) + 0.6),
        squeeze=False,
        layout="constrained",
    )
    edges = np.linspace(0, 2.5, 51)
    for place, name in enumerate(rows):
        for axis, case in zip(axes[place], item.cases, strict=True):
            axis.set_yticks([])
            if place == 0:
                axis.set_title(case)
            if not found[name, case]:
                continue
            means = np.mean([values["Pa"] for values in found[name, case]])
            for key, color, hatch in (("Pa", ORANGE, None), ("Pm", BLUE, "///")):
                values = spread([entry[f"quantiles of {key}"] for entry in found[name, case]]) / means
                axis.hist(
                    np.minimum(values, 2.49),
                    edges,
                    density=True,
                    color=color,
                    alpha=0.55,
                    hatch=hatch,
                    edgecolor=color,
                    lw=0.4,
                )
            ratios = [entry["ratio"] for entry in found[name, case]]
            text = "Pm = 0" if None in ratios else f"E[Pa]/E[Pm] = {np.mean(ratios):.2f}"
            axis.text(0.93, 0.8, text, transform=axis.transAxes, ha="right", fontsize=8)
            if place < len(rows) - 1:
                axis.set_xticklabels([])
        axes[place][0].set_ylabel(name.replace(" by", "\nby"), rotation=0, ha="right", va="center")
    for axis in axes[-1]:
        axis.set_xlabel("distance over the mean of linked nodes\n(last bar: all beyond)")
    handles = [
        plt.Rectangle((0, 0), 1, 1, color=ORANGE, alpha=0.55, label="linked nodes, Pa"),
        plt.Rectangle((0, 0), 1, 1, fc=BLUE, ec=BLUE, alpha=0.55, hatch="///", label="mirrored nodes, Pm"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def perturbation(item: Item, cells: Cells, plt: Any) -> Any:
    """SPINE's distances at every s as boxes, and the ratio of every row."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4))
    keeps = [float(case.split()[1]) for case in item.cases]
    for keep, case in zip(keeps, item.cases, strict=True):
        seeds = list(cells.seeds(item.name, case, "SPINE", item.version(case, "SPINE")).values())
        for key, color, shift in (("Pa", ORANGE, -0.018), ("Pm", BLUE, 0.018)):
            if seeds:
                scale = np.mean([values["Pa"] for values in seeds])
                values = spread([entry[f"quantiles of {key}"] for entry in seeds]) / scale
                left.boxplot(
                    values,
                    positions=[keep + shift],
                    widths=0.03,
                    showfliers=False,
                    patch_artist=True,
                    boxprops={"facecolor": color, "alpha": 0.6},
                    medianprops={"color": "black"},
                    manage_ticks=False,
                )
    left.set_title("SPINE: mirrored (blue, left) and linked (orange, right)")
    left.set_ylabel("distance over the mean of linked")
    for number, name in enumerate(item.rows):
        points = []
        for keep, case in zip(keeps, item.cases, strict=True):
            ratios = [
                values["ratio"]
                for values in cells.seeds(item.name, case, name, item.version(case, name)).values()
                if values["ratio"] is not None
            ]
            if ratios:
                points.append((keep, np.mean(ratios)))
        if points:
            right.plot(
                *zip(*points, strict=True),
                marker="os^vDx*P+"[number % 9],
                ms=4,
                label=name,
                color=ROWS.get(name, "#8C8C8C"),
                ls="--" if "walks" in name else "-",
            )
    right.axhline(1, color="black", lw=0.7, ls=":")
    right.set_title("E[Pa] / E[Pm]")
    right.legend(fontsize=7, ncols=1, loc="center left", bbox_to_anchor=(1, 0.5))
    for axis in (left, right):
        axis.set_xlim(0.95, 0.15)
        axis.set_xlabel("s, the probability of keeping an edge")
        axis.grid(axis="y", alpha=0.3)
    figure.tight_layout()
    return figure
