"""Figures in the paper's form, from stored cells; each as PNG and SVG."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.cells import Item, Results
from paper.tables import EXACT, summary

Draw = Callable[[Item, Results, Any], Any]
_SPAN = 8.0  # points of F1 on an axis: as many as what may be called a difference needs
_SAMPLES = 4000

# Colours that the colour-blind can tell apart (Okabe and Ito).
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#000000",
    "#8C8C8C",
)
CLASSES = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW)
ROWS = {
    "SPINE": BLUE,
    "SPINE without learning": SKY,
    "SPINE, role": SKY,
    "SPINE (paper's settings)": PURPLE,
    "SPINE-p (paper's settings)": PURPLE,
    "GraphSAGE": RED,
    "GAT": GREEN,
    "struc2vec": ORANGE,
    "PCA of T F": BLACK,
    "T F": GREY,
    "T F by walks": GREY,
    "raw features": GREEN,
    "random W_M": RED,
    "log degree": PURPLE,
}
MARKERS = {"SPINE": "o", "GraphSAGE": "s", "PCA of T F": "^", "T F": "v", "raw features": "D", "Random": "x"}
_LIGHT = (ORANGE, PURPLE, SKY, YELLOW)  # black is read better on these


def draw(item: Item, results: Results, folder: Path) -> list[Path]:
    """Draw an item into a folder and return the files; none where there is nothing to draw."""
    if item.name not in _DRAWN or not summary(item, results)["rows"]:
        return []
    plt = plotting()
    figure = _DRAWN[item.name](item, results, plt)
    files = [folder / f"{item.name}.{kind}" for kind in ("png", "svg")]
    for file in files:
        figure.savefig(file, bbox_inches="tight", metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)
    return files


def means(item: Item, results: Results, key: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return (row, case) -> mean and deviation of one measure, where they are numbers."""
    return {
        (entry["row"], entry["case"]): (entry["mean"], entry["deviation"] or 0.0)
        for entry in summary(item, results)["rows"]
        if entry["measure"] == key and entry["mean"] != EXACT
    }


def _table1(item: Item, results: Results, plt: Any) -> Any:
    """Ours as dots with deviations, the paper's as rings."""
    found = means(item, results, "accuracy")
    rows = [name for name in item.rows if any((name, case) in found for case in item.cases)]
    figure, axes = plt.subplots(
        1, len(item.cases), figsize=(9.5, 0.27 * len(rows) + 1.2), sharey=True, layout="constrained"
    )
    heights = {name: -number for number, name in enumerate(rows)}
    for axis, case in zip(axes, item.cases, strict=True):
        for name in rows:
            color = ROWS.get(name, GREY)
            if (name, case) in found:
                mean, deviation = found[name, case]
                axis.errorbar(mean, heights[name], xerr=deviation, fmt="o", ms=4.5, color=color, capsize=2)
            if (name, case, "accuracy") in item.paper:
                value = item.paper[name, case, "accuracy"]
                axis.plot(value, heights[name], "o", ms=7, mfc="none", mec="black", mew=0.9)
        axis.set_title(case.capitalize())
        axis.set_xlabel("test accuracy, %")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(list(heights.values()), list(heights))
    figure.legend(
        handles=[
            plt.Line2D([], [], marker="o", ls="", color=GREY, label="ours, mean ± deviation"),
            plt.Line2D([], [], marker="o", ls="", mfc="none", mec="black", label="the paper"),
        ],
        loc="outside lower center",
        ncols=2,
    )
    return figure


def _table2(item: Item, results: Results, plt: Any) -> Any:
    """Accuracy against removal; the paper's SPINE and GraphSAGE dashed."""
    figure, all_axes = plt.subplots(2, 3, figsize=(9.5, 6), sharex=True, layout="constrained")
    shown = ("SPINE", "GraphSAGE", "PCA of T F", "T F", "raw features")
    for axes, key, what in zip(all_axes, ("accuracy", "strict"), ("all links", "strict"), strict=True):
        found = means(item, results, key)
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


def _f1_bars(item: Item, results: Results, plt: Any) -> Any:
    """Micro- and macro-F1 of every row, side by side as in the paper."""
    rows = [name for name in item.rows if (name, "PPI") in means(item, results, "micro")]
    figure, axis = plt.subplots(figsize=(7, 0.42 * len(rows) + 1.2))
    heights = -np.arange(len(rows))
    for key, shift, color, hatch in (("micro", 0.2, BLUE, None), ("macro", -0.2, ORANGE, "//")):
        found = means(item, results, key)
        axis.barh(
            heights + shift,
            [found[name, "PPI"][0] for name in rows],
            0.38,
            xerr=[found[name, "PPI"][1] for name in rows],
            color=color,
            hatch=hatch,
            edgecolor="white",
            capsize=2,
            label=f"{key}-F1",
        )
    axis.set_yticks(heights, rows)
    axis.set_xlabel("F1, %")
    axis.set_title("PPI, two unseen tissues; approximate labels")
    axis.legend(loc="lower right")
    axis.set_xlim(right=70)
    return figure


def _runtime(item: Item, results: Results, plt: Any) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8))
    for axis, measure in zip(axes, item.measures, strict=True):
        found = means(item, results, measure.key)
        rows = [name for name in item.rows if (name, "cora") in found]
        values = [found[name, "cora"][0] for name in rows]
        labels = [name.replace(" (", "\n(").replace("'s ", "'s\n") for name in rows]
        bars = axis.bar(labels, values, color=[ROWS[name] for name in rows])
        axis.bar_label(bars, fmt="%.3g", padding=2)
        axis.set_title(measure.title.replace(", ", ",\n"), fontsize=9)
        axis.set_ylim(0, 1.15 * max(values))
    figure.tight_layout()
    return figure


def _alpha(item: Item, results: Results, plt: Any) -> Any:
    """Micro-F1 on the left axis, macro-F1 on the right, against alpha."""
    micro, macro = (means(item, results, key) for key in ("micro", "macro"))
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


def _correlation(item: Item, results: Results, plt: Any) -> Any:
    by_paper, by_code = (means(item, results, key) for key in ("Pearson", "Pearson by the code"))
    rows = [name for name in item.rows if any((name, case) in by_paper for case in item.cases)]
    figure, axes = plt.subplots(
        1, len(item.cases), figsize=(9, 0.3 * len(rows) + 1.3), sharey=True, layout="constrained"
    )
    for axis, case in zip(axes, item.cases, strict=True):
        for line, name in enumerate(rows):
            for found, marker, color in ((by_paper, "o", BLUE), (by_code, "s", ORANGE)):
                if (name, case) in found:
                    mean, deviation = found[name, case]
                    axis.errorbar(mean, -line, xerr=deviation, fmt=marker, color=color, ms=5, capsize=2)
        axis.axvline(item.paper["SPINE", case, "Pearson"], color="black", ls=":", lw=1)
        axis.set_title(case.capitalize())
        axis.set_xlabel("Pearson")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks([-line for line in range(len(rows))], rows)
    labels = (("o", BLUE, "paper's definition"), ("s", ORANGE, "as the reference code computes it"))
    handles = [
        plt.Line2D([], [], marker=marker, ls="", color=color, label=text) for marker, color, text in labels
    ]
    handles.append(plt.Line2D([], [], ls=":", color="black", label="the paper's SPINE"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def spread(quantiles: list[list[float]]) -> NDArray[np.float64]:
    """Return values that have the mean quantiles of some seeds."""
    levels = np.linspace(0, 1, len(quantiles[0]))
    found: NDArray[np.float64] = np.interp(np.linspace(0, 1, _SAMPLES), levels, np.mean(quantiles, axis=0))
    return found


def distributions(item: Item, results: Results, plt: Any) -> Any:
    """Histograms of Pm and Pa, over the mean of Pa; rows down, cases across."""
    found = {
        (name, case): list(results.seeds(item.name, case, name).values())
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
    for line, name in enumerate(rows):
        for axis, case in zip(axes[line], item.cases, strict=True):
            axis.set_yticks([])
            if line == 0:
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
            if line < len(rows) - 1:
                axis.set_xticklabels([])
        axes[line][0].set_ylabel(
            name.replace(" by", "\nby").replace(" (", "\n("), rotation=0, ha="right", va="center"
        )
    for axis in axes[-1]:
        axis.set_xlabel("distance over the mean of linked nodes\n(last bar: all beyond)")
    handles = [
        plt.Rectangle((0, 0), 1, 1, color=ORANGE, alpha=0.55, label="linked nodes, Pa"),
        plt.Rectangle((0, 0), 1, 1, fc=BLUE, ec=BLUE, alpha=0.55, hatch="///", label="mirrored nodes, Pm"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def perturbation(item: Item, results: Results, plt: Any) -> Any:
    """SPINE's distances at every s as boxes, and the ratio of every row."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4))
    keeps = [float(case.split()[1]) for case in item.cases]
    for keep, case in zip(keeps, item.cases, strict=True):
        seeds = list(results.seeds(item.name, case, "SPINE").values())
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
                for values in results.seeds(item.name, case, name).values()
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


def case_study(item: Item, results: Results, plt: Any) -> Any:
    """One line of drawings per node: few neighbours first, then many."""
    (case,), (name,) = item.cases, item.rows
    found = next(iter(results.seeds(item.name, case, name).values()))
    lines = [(kind, entry) for kind in ("few", "many") for entry in found[kind]]
    widest = max((len(entry["twins"]) for _, entry in lines), default=0)
    figure, axes = plt.subplots(
        len(lines),
        widest + 1,
        figsize=(1.75 * (widest + 1), 1.8 * len(lines) + 0.5),
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
    points, hops = rings(found), np.array(found["hops"])
    colors = [CLASSES[label % len(CLASSES)] for label in found["classes"]]
    for one, other in found["links"]:
        axis.plot(*points[[one, other]].T, color="#B0B0B0", lw=0.6, zorder=1)
    sizes, widths = np.array([130, 60, 22])[hops], np.where(hops == 0, 1.4, 0.4)
    axis.scatter(*points.T, s=sizes, c=colors, edgecolor="black", linewidths=widths, zorder=2)
    for point, label, color in list(zip(points, found["classes"], colors, strict=True))[
        : int((hops < 2).sum())
    ]:
        ink = "black" if color in _LIGHT else "white"
        axis.text(*point, str(label), fontsize=5.5, ha="center", va="center", zorder=3, color=ink)
    if found["beyond"] > sum(hop == 2 for hop in found["hops"]):
        axis.text(
            0.5, -0.04, f"{found['beyond']} at two hops", transform=axis.transAxes, fontsize=6, ha="center"
        )
    axis.set_xlim(-1.25, 1.25)
    axis.set_ylim(-1.25, 1.25)
    axis.set_aspect("equal")


def rings(found: dict[str, Any]) -> NDArray[np.float64]:
    """Return coordinates (n, 2): neighbours on a circle, theirs on an outer one."""
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


def plotting() -> Any:
    """Return matplotlib's pyplot, drawing to files."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10,
            "legend.frameon": False,
            "figure.dpi": 150,
            "svg.hashsalt": "spinegraph",  # the same figure is the same file
            "svg.fonttype": "none",
        }
    )
    return pyplot


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
