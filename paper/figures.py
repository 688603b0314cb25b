"""Figures in the paper's form, from stored cells; each as PNG and SVG."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from paper.cells import Cells
from paper.figure_cases import case_study
from paper.figure_distances import distributions, perturbation
from paper.item import Item
from paper.palette import BLUE, GREY, MARKERS, ORANGE, ROWS, plotting
from paper.tables import EXACT, summary

Draw = Callable[[Item, Cells, Any], Any]
_SPAN = 8.0  # points of F1 on an axis: as many as what may be called a difference needs


def draw(item: Item, cells: Cells, folder: Path) -> list[Path]:
    """Draw an item into a folder and return the files; none where there is nothing to draw."""
    if item.name not in _DRAWN or not summary(item, cells)["rows"]:
        return []
    plt = plotting()
    figure = _DRAWN[item.name](item, cells, plt)
    files = [folder / f"{item.name}.{kind}" for kind in ("png", "svg")]
    for file in files:
        figure.savefig(file, bbox_inches="tight", metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)
    return files


def means(item: Item, cells: Cells, key: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return (row, case) -> mean and deviation of one measure, where they are numbers."""
    return {
        (entry["row"], entry["case"]): (entry["mean"], entry["deviation"] or 0.0)
        for entry in summary(item, cells)["rows"]
        if entry["measure"] == key and entry["mean"] != EXACT
    }


def _table1(item: Item, cells: Cells, plt: Any) -> Any:
    """Ours as dots with deviations, the paper's as rings."""
    found = means(item, cells, "accuracy")
    rows = [name for name in item.rows if any((name, case) in found for case in item.cases)]
    figure, axes = plt.subplots(
        1, len(item.cases), figsize=(9.5, 0.27 * len(rows) + 1.2), sharey=True, layout="constrained"
    )
    places = {name: -number for number, name in enumerate(rows)}
    for axis, case in zip(axes, item.cases, strict=True):
        for name in rows:
            color = ROWS.get(name, GREY)
            if (name, case) in found:
                mean, deviation = found[name, case]
                axis.errorbar(mean, places[name], xerr=deviation, fmt="o", ms=4.5, color=color, capsize=2)
            if (name, case, "accuracy") in item.paper:
                value = item.paper[name, case, "accuracy"]
                axis.plot(value, places[name], "o", ms=7, mfc="none", mec="black", mew=0.9)
        axis.set_title(case.capitalize())
        axis.set_xlabel("test accuracy, %")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(list(places.values()), list(places))
    figure.legend(
        handles=[
            plt.Line2D([], [], marker="o", ls="", color=GREY, label="ours, mean ± deviation"),
            plt.Line2D([], [], marker="o", ls="", mfc="none", mec="black", label="the paper"),
        ],
        loc="outside lower center",
        ncols=2,
    )
    return figure


def _table2(item: Item, cells: Cells, plt: Any) -> Any:
    """Accuracy against removal; the paper's SPINE and GraphSAGE dashed."""
    figure, all_axes = plt.subplots(2, 3, figsize=(9.5, 6), sharex=True, layout="constrained")
    shown = ("SPINE", "GraphSAGE", "PCA of T F", "T F", "raw features")
    for axes, key, what in zip(all_axes, ("accuracy", "strict"), ("all links", "strict"), strict=True):
        found = means(item, cells, key)
        for axis, network in zip(axes, ("citeseer", "cora", "pubmed"), strict=True):
            rates = [20, 40, 60, 80]
            for name in shown:
                points = [
                    (rate, *found[name, f"{network} {rate}"])
                    for rate in rates
                    if (name, f"{network} {rate}") in found
                ]
                if points:
                    at, mean, deviation = zip(*points, strict=True)
                    marker = MARKERS.get(name, "o")
                    axis.errorbar(
                        at, mean, deviation, marker=marker, ms=4, color=ROWS[name], label=name, capsize=2
                    )
                theirs = [item.paper.get((name, f"{network} {rate}", "accuracy")) for rate in rates]
                if key == "accuracy" and None not in theirs and name in ("SPINE", "GraphSAGE"):
                    axis.plot(rates, theirs, ls=":", marker=MARKERS[name], mfc="none", color=ROWS[name], ms=5)
            axis.set_title(f"{network.capitalize()}, {what}")
            axis.set_xticks(rates)
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("accuracy, %")
    for axis in all_axes[1]:
        axis.set_xlabel("nodes removed, %")
    handles, labels = all_axes[0][0].get_legend_handles_labels()
    handles.append(plt.Line2D([], [], ls=":", color="black", marker="o", mfc="none"))
    figure.legend(handles, [*labels, "the paper's"], loc="outside lower center", ncols=6)
    return figure


def _f1_bars(item: Item, cells: Cells, plt: Any) -> Any:
    """Micro- and macro-F1 of every row, side by side as in the paper."""
    rows = [name for name in item.rows if (name, "PPI") in means(item, cells, "micro")]
    figure, axis = plt.subplots(figsize=(7, 0.42 * len(rows) + 1.2))
    places = -np.arange(len(rows))
    for key, shift, color, hatch in (("micro", 0.2, BLUE, None), ("macro", -0.2, ORANGE, "//")):
        found = means(item, cells, key)
        axis.barh(
            places + shift,
            [found[name, "PPI"][0] for name in rows],
            0.38,
            xerr=[found[name, "PPI"][1] for name in rows],
            color=color,
            hatch=hatch,
            edgecolor="white",
            capsize=2,
            label=f"{key}-F1",
        )
    axis.set_yticks(places, rows)
    axis.set_xlabel("F1, %")
    axis.set_title("PPI, two unseen tissues; approximate labels")
    axis.legend(loc="lower right")
    axis.set_xlim(right=70)
    return figure


def _runtime(item: Item, cells: Cells, plt: Any) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(8, 2.6))
    for axis, measure in zip(axes, item.measures, strict=True):
        found = means(item, cells, measure.key)
        rows = [name for name in item.rows if (name, "cora") in found]
        values = [found[name, "cora"][0] for name in rows]
        bars = axis.bar(rows, values, color=[ROWS[name] for name in rows])
        axis.bar_label(bars, fmt="%.3g", padding=2)
        axis.set_title(measure.title.replace(", ", ",\n"), fontsize=9)
        axis.set_ylim(0, 1.15 * max(values))
    figure.tight_layout()
    return figure


def _alpha(item: Item, cells: Cells, plt: Any) -> Any:
    """Micro-F1 on the left axis, macro-F1 on the right, against alpha."""
    micro, macro = (means(item, cells, key) for key in ("micro", "macro"))
    rows = [name for name in item.rows if any((name, case) in micro for case in item.cases)]
    figure, axes = plt.subplots(1, len(rows), figsize=(4 * len(rows), 3), squeeze=False)
    for left, name in zip(axes[0], rows, strict=True):
        right = left.twinx()
        right.spines["right"].set_visible(True)
        for axis, found, color, marker, title, below in (
            (left, micro, BLUE, "o", "micro-F1, %", 0.7),
            (right, macro, ORANGE, "s", "macro-F1, %", 0.3),
        ):
            points = [
                (float(case.split()[1]), *found[name, case]) for case in item.cases if (name, case) in found
            ]
            at, mean, deviation = zip(*points, strict=True)
            axis.errorbar(at, mean, deviation, marker=marker, color=color, capsize=2)
            axis.set_ylabel(f"{title} ({'circles' if marker == 'o' else 'squares'})", color=color)
            lowest = float(np.mean(mean)) - below * _SPAN
            axis.set_ylim(lowest, lowest + _SPAN)
        left.set_xlabel("alpha")
        left.set_title(name)
    figure.tight_layout()
    return figure


def _correlation(item: Item, cells: Cells, plt: Any) -> Any:
    by_paper, by_code = (means(item, cells, key) for key in ("Pearson", "Pearson by the code"))
    rows = [name for name in item.rows if any((name, case) in by_paper for case in item.cases)]
    figure, axes = plt.subplots(
        1, len(item.cases), figsize=(9, 0.3 * len(rows) + 1.3), sharey=True, layout="constrained"
    )
    for axis, case in zip(axes, item.cases, strict=True):
        for place, name in enumerate(rows):
            for found, marker, color in ((by_paper, "o", BLUE), (by_code, "s", ORANGE)):
                if (name, case) in found:
                    mean, deviation = found[name, case]
                    axis.errorbar(mean, -place, xerr=deviation, fmt=marker, color=color, ms=5, capsize=2)
        axis.axvline(item.paper["SPINE", case, "Pearson"], color="black", ls=":", lw=1)
        axis.set_title(case.capitalize())
        axis.set_xlabel("Pearson")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks([-place for place in range(len(rows))], rows)
    labels = (("o", BLUE, "paper's definition"), ("s", ORANGE, "as the reference code computes it"))
    handles = [
        plt.Line2D([], [], marker=marker, ls="", color=color, label=text) for marker, color, text in labels
    ]
    handles.append(plt.Line2D([], [], ls=":", color="black", label="the paper's SPINE"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


_DRAWN: dict[str, Draw] = {
    "table1": _table1,
    "table2": _table2,
    "ppi": _f1_bars,
    "runtime": _runtime,
    "mirror": distributions,
    "perturbation": perturbation,
    "mirror-inductive": distributions,
    "correlation": _correlation,
    "alpha": _alpha,
    "case-study": case_study,
}
