"""Roles and departments of made organisations, read off vectors, as words get noisier and roles fainter.

Frozen before the first result was seen: the grid, the seeds, the rows, the protocol and the score below.
SPINE has its defaults. Its development used the demo's organisations (seeds 0 and 1), and that of
`spine roles` seeds 10 to 13, 40 to 43, 60 to 65 and 160 to 163; none of those are used here.

For each cell two organisations are made from the same process. A logistic regression, its C chosen by 3-fold
cross-validation among the labels it learns from, reads departments and roles off each kind of vector:
"fitted" learns from a random half of the fitted organisation and is asked about the other half; "unseen"
learns from the whole fitted organisation and is asked about the unseen one. The score is the adjusted Rand
index of answers and truth: 0 for guessing or always naming the largest class, 1 for all right. Vectors that
cannot be made of an unseen network have no score there. `spine roles`, which sees no labels, is
scored the same way.

    python -m benchmarks.planted            # the whole grid, into results/planted.json; then the page
    python -m benchmarks.planted --small    # four cells and one seed, nothing written
    python -m benchmarks.planted --draw     # figure and tables of docs/roles.md alone
"""

import argparse
import json
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
from benchmarks.machine import describe
from paper.probe import probe_cv
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from spinegraph import SPINE, made
from spinegraph.analysis.baselines import controls, dense, node2vec
from spinegraph.analysis.roles import Roles

NOISES = (0.1, 0.3, 0.5, 0.7, 0.9)
STRENGTHS = (0.5, 0.7, 0.9, 1.0)
SEEDS = (100, 200, 300)  # the unseen organisation has the next seed
ROWS = ("SPINE", "node2vec", "raw features", "PCA of T F", "log degree")
TASKS = ("department, fitted", "department, unseen", "role, fitted", "role, unseen")
RESULTS = Path(__file__).parent / "results" / "planted.json"
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


def pair(noise, strength, seed):
    """Return the fitted and the unseen organisation of a cell."""
    return tuple(
        made.planted(feature_noise=noise, role_strength=strength, seed=each) for each in (seed, seed + 1)
    )


@lru_cache(maxsize=2)
def by_ties(strength, seed):
    """Return node2vec's vectors of the fitted organisation; ties are the same whatever the words."""
    return node2vec(pair(NOISES[0], strength, seed)[0].graph, SPINE().dim, seed)


def vectors_of(cell, here, there):
    """Return row name -> vectors of the fitted and of the unseen organisation, None where there are none."""
    _, strength, seed = cell
    model = SPINE(seed=seed, threads=1).fit(here.graph)
    generator = model.generator_
    made_by = controls(here.graph, generator.dim, generator.encoder, seed=seed, threads=1)
    made_by["SPINE"] = lambda graph: generator.embed(graph, generator.known(graph))
    named = {"raw features": "plain columns", "PCA of T F": "smoothed columns"}
    rows = {name: made_by[named.get(name, name)] for name in ROWS[:1] + ROWS[2:]}
    vectors = {name: (made(here.graph), made(there.graph)) for name, made in rows.items()}
    return model, vectors | {"node2vec": (by_ties(strength, seed), None)}


def measure(cell):
    """Return the scores of one cell of the grid and one seed."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    with threadpool_limits(1):
        here, there = pair(*cell)
        model, vectors = vectors_of(cell, here, there)
        scores = {name: _scores(*vectors[name], here, there, cell[2]) for name in ROWS}
        found = Roles.find(here.graph, model.generator_)
        assigned = [found.assign(each.graph, model.generator_).roles for each in (here, there)]
    unlabelled = {
        "count": len(found),
        "communities": len(found.communities or ()),
        "role, fitted": float(adjusted_rand_score(here.role, assigned[0])),
        "role, unseen": float(adjusted_rand_score(there.role, assigned[1])),
    }
    noise, strength, seed = cell
    return {
        "feature_noise": noise,
        "role_strength": strength,
        "seed": seed,
        "scores": scores,
        "spine roles": unlabelled,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def _scores(home, away, here, there, seed):
    half = np.random.default_rng(seed).permutation(len(here.graph))
    learned, asked = np.array_split(half, 2)
    found = {}
    for name in ("department", "role"):
        truth, other = (here.community, there.community) if name == "department" else (here.role, there.role)
        found[f"{name}, fitted"] = _agreement(dense(home), truth, learned, asked)
        found[f"{name}, unseen"] = None
        if away is not None:
            both = np.vstack([dense(home), dense(away)])
            places = np.arange(len(truth)), len(truth) + np.arange(len(other))
            found[f"{name}, unseen"] = _agreement(both, np.concatenate([truth, other]), *places)
    return found


def _agreement(vectors, labels, learned, asked):
    found = probe_cv(vectors, labels, learned, asked)
    return float(adjusted_rand_score(labels[asked], found.classes[found.scores.argmax(axis=1)]))


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
        losers = []
        for row, lost in sorted(losses.items()):
            most, (noise, strength) = max(lost)
            losers.append(
                f"{row} in {len(lost)}, by {most:.2f} at most (noise {noise:g}, strength {strength:g})"
            )
        ahead = sum(gap > 0.02 for gap in gaps)
        behind = sum(map(len, losses.values()))
        level = len(gaps) - ahead - behind
        yield f"| {task} | {ahead} | {level} | {behind} | {'; '.join(losers) or 'nobody'} |"


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


def main():
    """Measure the grid, write the JSON, draw the figure and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--small", action="store_true", help="four cells and one seed; nothing is written")
    parser.add_argument("--draw", action="store_true", help="draw what was measured before")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many of the three")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    if not arguments.draw:
        noises, strengths, seeds = NOISES, STRENGTHS, SEEDS[: arguments.seeds]
        if arguments.small:
            noises, strengths, seeds = NOISES[::4], STRENGTHS[::2], SEEDS[:1]
        # A worker keeps the seed and strength while the noise changes: node2vec is fitted once for them.
        cells = [(noise, strength, seed) for seed in seeds for strength in strengths for noise in noises]
        machine, started = describe("torch", "scikit-learn"), time.perf_counter()
        with ProcessPoolExecutor(arguments.processes) as pool:
            runs = []
            for run in pool.map(measure, cells, chunksize=len(noises)):
                runs.append(run)
                show(run)
        print(f"{time.perf_counter() - started:.0f} s in all")
        if arguments.small:
            return
        about = {"about": __doc__.strip(), "defaults": SPINE().get_params(), "rows": ROWS, "tasks": TASKS}
        RESULTS.write_text(json.dumps({"machine": machine, "settings": about, "runs": runs}, indent=1) + "\n")
    found = json.loads(RESULTS.read_text())
    draw(found)
    write_page(found)
    print(block(found))


def show(run):
    """Print the scores of one cell."""
    print(
        f"noise {run['feature_noise']}  strength {run['role_strength']}  seed {run['seed']}  "
        f"{run['cpu_seconds']:.1f} s of one core"
    )
    for name, scores in run["scores"].items():
        cells = (" cannot" if scores[task] is None else f"{scores[task]:7.3f}" for task in TASKS)
        print(f"  {name:<14}", *cells)
    found = run["spine roles"]
    print(f"  {'spine roles':<29}", f"{found['role, fitted']:7.3f} {found['role, unseen']:7.3f}", end="  ")
    print(f"{found['count']} roles, {found['communities']} communities", flush=True)


if __name__ == "__main__":
    main()
