"""The planted grid as a figure and tables, written into the documentation."""

from collections import defaultdict
from pathlib import Path

import numpy as np

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
PAGE = FIGURES.parent / "roles.md"
_MARKS = "<!-- planted results -->", "<!-- end of planted results -->"
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


def block(found):
    """Return the results in Markdown: means, where SPINE is behind, and how many roles were found."""
    seeds = len({run["seed"] for run in found["runs"]})
    cells = len({(run["feature_noise"], run["role_strength"]) for run in found["runs"]})
    lines = [f"Adjusted Rand index, mean over {cells} cells and {seeds} seed{'s' * (seeds > 1)}:", ""]
    return "\n".join([*lines, *_means_table(found), "", *_standing(found), "", *_counts(found)])


def _means_table(found):
    scores, tasks = means(found), found["settings"]["tasks"]
    yield f"| vectors | {' | '.join(tasks)} |"
    yield f"|---|{'--:|' * len(tasks)}"
    for row in (*found["settings"]["rows"], _NO_LABELS):
        cells = []
        for task in tasks:
            values = list(scores.get((row, task), {}).values())
            cells.append("" if not values else "cannot" if None in values else f"{np.mean(values):.2f}")
        yield f"| {row} | {' | '.join(cells)} |"


def _standing(found):
    """Say cell by cell where SPINE stands to the best of the others; .02 apart is parity."""
    scores = means(found)
    yield "SPINE beside the best other row of each cell (within .02 is parity):"
    yield ""
    yield "| question | ahead | parity | behind | behind whom, by how much at most |"
    yield "|---|--:|--:|--:|---|"
    for task in found["settings"]["tasks"]:
        rows = {row: scores[row, task] for row in found["settings"]["rows"]}
        ours = rows.pop("SPINE")
        rows = {row: cells for row, cells in rows.items() if None not in cells.values()}
        gaps, losses = [], defaultdict(list)
        for cell, score in ours.items():
            best = max(rows, key=lambda row: rows[row][cell])
            gaps.append(score - rows[best][cell])
            if gaps[-1] < -0.02:
                losses[best].append((-gaps[-1], cell))
        told = []
        for row, lost in sorted(losses.items()):
            most, (noise, strength) = max(lost)
            told.append(
                f"{row} in {len(lost)}, by {most:.2f} at most (noise {noise:g}, strength {strength:g})"
            )
        ahead = sum(gap > 0.02 for gap in gaps)
        behind = sum(map(len, losses.values()))
        yield (
            f"| {task} | {ahead} | {len(gaps) - ahead - behind} | {behind} | {'; '.join(told) or 'nobody'} |"
        )


def _counts(found):
    """Say how often `spine roles` found the four planted roles."""
    table = defaultdict(lambda: defaultdict(int))
    for run in found["runs"]:
        table[run["role_strength"]][run["spine roles"]["count"]] += 1
    numbers = sorted({number for row in table.values() for number in row})
    yield "How many roles `spine roles` found, in runs (four are planted):"
    yield ""
    yield f"| role strength | {' | '.join(f'{number} roles' for number in numbers)} |"
    yield f"|---|{'--:|' * len(numbers)}"
    for strength, row in sorted(table.items()):
        yield f"| {strength:g} | {' | '.join(str(row[number]) for number in numbers)} |"


def write_page(found):
    """Put the results into docs/roles.md, between its two marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    PAGE.write_text(f"{before}{_MARKS[0]}\n{block(found)}\n{_MARKS[1]}{after}", encoding="utf-8")
