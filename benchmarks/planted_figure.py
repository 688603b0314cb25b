"""The planted grid as a figure for the documentation, and in a few lines."""

from collections import defaultdict
from pathlib import Path

import numpy as np

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
# Okabe and Ito's colours: apart for every kind of colour vision; markers and dashes say it again.
STYLES = {
    "SPINE": {"color": "#000000", "marker": "o", "linewidth": 2.4, "zorder": 5},
    "node2vec": {"color": "#D55E00", "marker": "s", "linestyle": "--"},
    "raw features": {"color": "#56B4E9", "marker": "v", "linestyle": ":"},
    "PCA of T F": {"color": "#009E73", "marker": "^", "linestyle": "-."},
    "log degree": {"color": "#CC79A7", "marker": "D", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    "spine roles (no labels)": {"color": "#808080", "marker": "x", "linestyle": (0, (1, 1))},
}
_NO_LABELS = "spine roles (no labels)"


def means(found):
    """Return {(row, task): {(noise, strength): mean over seeds, or None}}."""
    gathered = defaultdict(lambda: defaultdict(list))
    for run in found["runs"]:
        cell = run["feature_noise"], run["role_strength"]
        for row, scores in run["scores"].items():
            for task, score in scores.items():
                gathered[row, task][cell].append(score)
        for task in ("role, fitted", "role, unseen"):
            gathered[_NO_LABELS, task][cell].append(run["spine roles"][task])
    return {
        key: {cell: None if None in scores else float(np.mean(scores)) for cell, scores in cells.items()}
        for key, cells in gathered.items()
    }


def draw(found):
    """Draw one panel for each question and role strength, into docs/figures/planted.png and .svg."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 9, "svg.hashsalt": "planted", "svg.fonttype": "none"})
    tasks, scores = found["settings"]["tasks"], means(found)
    noises = sorted({run["feature_noise"] for run in found["runs"]})
    strengths = sorted({run["role_strength"] for run in found["runs"]})
    figure, axes = pyplot.subplots(
        len(tasks), len(strengths), figsize=(9.6, 10.2), sharex=True, sharey=True, squeeze=False
    )
    for task, row in zip(tasks, axes, strict=True):
        for strength, panel in zip(strengths, row, strict=True):
            _draw_panel(panel, task, strength, noises, scores)
        row[0].set_ylabel(f"{task}\nadjusted Rand index")
    for strength, panel in zip(strengths, axes[0], strict=True):
        panel.set_title(f"role strength {strength:g}", fontsize=10)
    for panel in axes[-1]:
        panel.set_xlabel("feature noise")
    handles = [pyplot.Line2D([], [], markersize=5, label=name, **style) for name, style in STYLES.items()]
    figure.legend(handles=handles, loc="upper center", ncol=len(STYLES), frameon=False, handlelength=3.2)
    figure.tight_layout(rect=(0, 0, 1, 0.965))
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / "planted.png", dpi=110)
    figure.savefig(FIGURES / "planted.svg", metadata={"Date": None})
    pyplot.close(figure)


def _draw_panel(panel, task, strength, noises, scores):
    for name, style in STYLES.items():
        values = [scores.get((name, task), {}).get((noise, strength)) for noise in noises]
        if None not in values:
            panel.plot(noises, values, markersize=4.5, **{"linewidth": 1.4, **style})
        elif (name, task) in scores:
            panel.text(0.5, 0.04, f"{name}: cannot", ha="center", fontsize=8, color=style["color"])
    panel.set_ylim(-0.04, 1.04)
    panel.set_xticks(noises)
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)


def summary(found):
    """Return where SPINE stands to the best other row: a Markdown table of counts and mean gaps."""
    scores = means(found)
    lines = [
        "| question | SPINE | best other, mean | SPINE ahead | within .02 | behind | largest loss |",
        "|---|--:|---|--:|--:|--:|---|",
    ]
    for task in found["settings"]["tasks"]:
        rows = {
            row: scores[row, task]
            for row in found["settings"]["rows"]
            if None not in scores[row, task].values()
        }
        ours = rows.pop("SPINE")
        averages = {row: np.mean(list(cells.values())) for row, cells in rows.items()}
        best = max(averages, key=averages.get)
        gaps = {cell: ours[cell] - max(cells[cell] for cells in rows.values()) for cell in ours}
        worst = min(gaps, key=gaps.get)
        winner = max(rows, key=lambda row: rows[row][worst])
        counts = [sum(gap > 0.02 for gap in gaps.values()), sum(abs(gap) <= 0.02 for gap in gaps.values())]
        loss = "none"
        if gaps[worst] < 0:
            loss = f"{-gaps[worst]:.2f} to {winner} (noise {worst[0]:g}, strength {worst[1]:g})"
        lines.append(
            f"| {task} | {np.mean(list(ours.values())):.2f} | {best} {averages[best]:.2f} | {counts[0]} | "
            f"{counts[1]} | {len(gaps) - sum(counts)} | {loss} |"
        )
    return "\n".join(lines)


def counts_found(found):
    """Return {role strength: {number of roles found: runs}}."""
    table = defaultdict(lambda: defaultdict(int))
    for run in found["runs"]:
        table[run["role_strength"]][run["spine roles"]["count"]] += 1
    return {strength: dict(sorted(row.items())) for strength, row in sorted(table.items())}
