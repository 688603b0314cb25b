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
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
from benchmarks.machine import describe
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from spinegraph import SPINE, made
from spinegraph.analysis.baselines import dense, methods, node2vec
from spinegraph.analysis.evaluation import probe_cv
from spinegraph.analysis.roles import Roles

NOISES = (0.1, 0.3, 0.5, 0.7, 0.9)
STRENGTHS = (0.5, 0.7, 0.9, 1.0)
SEEDS = (100, 200, 300)  # the unseen organisation has the next seed
ROWS = ("SPINE", "node2vec", "raw features", "PCA of T F", "log degree")
TASKS = ("department, fitted", "department, unseen", "role, fitted", "role, unseen")
RESULTS = Path(__file__).parent / "results" / "planted.json"


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
    made_by = methods(model.generator_, here.graph, seed, role=True)
    vectors = {name: (made_by[name](here.graph), made_by[name](there.graph)) for name in ROWS[:1] + ROWS[2:]}
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
        told = [found.assign(each.graph, model.generator_).roles for each in (here, there)]
    unlabelled = {
        "count": len(found),
        "communities": len(found.communities or ()),
        "role, fitted": float(adjusted_rand_score(here.role, told[0])),
        "role, unseen": float(adjusted_rand_score(there.role, told[1])),
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
    from benchmarks.planted_figure import block, draw, write_page

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
    told = run["spine roles"]
    print(f"  {'spine roles':<29}", f"{told['role, fitted']:7.3f} {told['role, unseen']:7.3f}", end="  ")
    print(f"{told['count']} roles, {told['communities']} communities", flush=True)


if __name__ == "__main__":
    main()
