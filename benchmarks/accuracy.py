"""What the vectors are worth, beside controls that learn nothing: the whole table, cell by cell.

Run with ``python -m benchmarks.accuracy``; prints the table and writes ``benchmarks/results/accuracy.json``.
A cell is an item, a data set, a row and a seed. Stored cells are not measured again, so a run can be stopped
at any time, and two runs may share the work (``--seeds 0:5`` and ``--seeds 5:10``).

    --items transductive,roles   of transductive, inductive, roles, across, mirror, correlation
    --cases cora,pubmed          data sets whose name begins so
    --seeds 10                   how many seeds, or which: 5:10
    --quick                      two seeds
    --set structural_rate=0.2    settings other than the defaults, with a results file of their own
    --fresh                      measure again what is asked for
    --show                       print the stored cells and measure nothing
    --page                       the same, and write the tables of docs/study.md

Behind each control: SPINE less it, paired over seeds, with the standard error; level means within that.
"""

import os

# Rows are small problems one after another: BLAS threads wait for each other more than they help.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import ast
import fcntl
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
from benchmarks.machine import describe
from paper.methods import fitted
from paper.protocols import (
    Removal,
    lengths,
    links,
    load,
    mirror_network,
    once,
    stacked,
    transductive_accuracy,
)
from scipy.stats import pearsonr, spearmanr

from spinegraph import Graph, rooted_pagerank
from spinegraph.analysis.baselines import CONTROLS, dense, methods
from spinegraph.analysis.evaluation import probe_cv, ranking_auc
from spinegraph.config import MACHINE, Config
from spinegraph.structure.similarity import pair_distances

_CITATIONS = ("cora", "citeseer", "pubmed")
_RATES = (20, 40, 60, 80)
_SPLITS_PER_SEED = 10
_RESAMPLES = 1000
RESULTS = Path(__file__).parent / "results"
# item, data set, measure: (floor, aim) of the claims; Table 2 has the paper's values as its floor.
GOALS = {
    ("transductive", "cora", "accuracy"): (0.837, 0.845),
    ("transductive", "citeseer", "accuracy"): (0.72, 0.74),
    ("transductive", "pubmed", "accuracy"): (0.80, 0.825),
    ("roles", "airports_brazil", "micro-F1"): (0.76, 0.80),
    ("roles", "airports_europe", "micro-F1"): (0.60, 0.65),
    ("mirror", "equal", "largest Pm over mean Pa"): (1e-5, 0.0),
    ("correlation", "cora", "Pearson"): (0.7, 0.82),
}
TABLE_2 = {
    "cora": (0.867, 0.841, 0.821, 0.779),
    "citeseer": (0.754, 0.721, 0.715, 0.687),
    "pubmed": (0.857, 0.837, 0.830, 0.788),
}
GOALS |= {
    ("inductive", f"{name} {rate}", "accuracy"): (floor, floor)
    for name, floors in TABLE_2.items()
    for rate, floor in zip((20, 40, 60, 80), floors, strict=True)
}
SHARES = {"accuracy", "strict", "micro-F1", "AUC"}  # printed in percent
PAGE = Path(__file__).parents[1] / "docs" / "study.md"
FIRST, LAST = (
    "<!-- accuracy tables, written by benchmarks.accuracy --page -->",
    "<!-- end of accuracy tables -->",
)
SHOWN = ("T F", "PCA of T F", "raw features")
LINES = (  # what is printed, item, case, measure, factor, digits
    ("Cora, public split", "transductive", "cora", "accuracy", 100, 2),
    ("Citeseer, public split", "transductive", "citeseer", "accuracy", 100, 2),
    ("Pubmed, public split", "transductive", "pubmed", "accuracy", 100, 2),
    ("airports Brazil, 100 splits", "roles", "airports_brazil", "micro-F1", 100, 1),
    ("airports Europe, 100 splits", "roles", "airports_europe", "micro-F1", 100, 1),
    ("Twitch, fitted on ES, PTBR, RU; AUC on ENGB", "across", "twitch_ENGB", "AUC", 100, 1),
    ("FB-686 mirrored, equal features: largest Pm over mean Pa", *("mirror", "equal"), None, 1, 0),
    ("the same, features shuffled: E[Pa]/E[Pm]", "mirror", "shuffled", "Pa/Pm", 1, 2),
    ("the same, perturbed, s = 0.5", "mirror", "perturbed", "Pa/Pm", 1, 2),
    ("Pearson with structural distance, Cora", "correlation", "cora", "Pearson", 1, 3),
)
NAMES = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed"}


def transductive(name, seed, settings, wanted):
    """Public split: accuracy with C from the validation nodes."""
    data = load(name)
    model = fitted(data.graph, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model.generator_, data.graph, seed), wanted):
        result[row] = {"accuracy": [transductive_accuracy(data, vectors(data.graph))]}
    return result


def inductive(case, seed, settings, wanted):
    """Nodes removed at random, classified from kept labels; ``strict``: no link between two removed nodes."""
    name, rate = case.split()
    removal = Removal.draw(load(name), int(rate), seed)
    model = fitted(removal.train, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model.generator_, removal.train, seed), wanted):
        found = removal.accuracies(vectors, seed)
        result[row] = {measure: [value] for measure, value in found.items()}
    return result


def roles(name, seed, settings, wanted):
    """Airports without features: micro-F1 over ten of the hundred splits of 80/20."""
    data = load(name)
    n = len(data.graph)
    model = fitted(data.graph, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model.generator_, data.graph, seed, role=True), wanted):
        values, scores = vectors(data.graph), []
        for split in range(seed * _SPLITS_PER_SEED, (seed + 1) * _SPLITS_PER_SEED):
            order = np.random.default_rng([split, n]).permutation(n)
            cut = round(0.8 * n)
            scores.append(probe_cv(values, data.labels, order[:cut], order[cut:], seed=split).accuracy)
        result[row] = {"micro-F1": scores}
    return result


def across(name, seed, settings, wanted):
    """Twitch: fitted and labelled in three countries, classified in a fourth, with a paired bootstrap."""
    seen = [load(f"twitch_{country}") for country in ("ES", "PTBR", "RU")]
    unseen = load(name)
    train = Graph.union([data.graph for data in seen], keys=range(len(seen)))
    model = fitted([data.graph for data in seen], seed, settings)
    labels = np.concatenate([*(data.labels for data in seen), unseen.labels])
    trained, tested = np.split(np.arange(len(labels)), [len(train)])
    result, ranked = {}, {}
    for row, vectors in chosen(methods(model.generator_, train, seed), {*wanted, "SPINE"}):
        parts = [vectors(train), vectors(unseen.graph)]
        found = once(probe_cv, stacked(parts), labels, trained, tested, seed=0)
        ranked[row] = found.scores[:, 1]
        result[row] = {"AUC": [found.auc], **bootstrap(unseen.labels == 1, ranked["SPINE"], ranked[row])}
    if "SPINE, in-domain" in wanted:
        own = fitted(unseen.graph, seed, settings).embeddings_.vectors
        part_of = np.random.default_rng(seed).permutation(len(own)) % 5
        folds = [
            probe_cv(own, unseen.labels, np.flatnonzero(part_of != part), np.flatnonzero(part_of == part))
            for part in range(5)
        ]
        result["SPINE, in-domain"] = {"AUC": [float(np.mean([fold.auc for fold in folds]))]}
    return result


def mirror(case, seed, settings, wanted):
    """FB-686 beside a mirrored copy: equal features, features shuffled over both, or both perturbed."""
    union, pairs = mirror_network("perturbed 0.5" if case == "perturbed" else case, seed)
    model = fitted(union, seed, settings)
    rows = methods(model.generator_, union, seed, role=True)
    if "struc2vec" in wanted:
        from paper.baselines import struc2vec

        rows["struc2vec"] = lambda union: struc2vec(union, model.config_.dim, seed)
    result = {}
    for row, vectors in chosen(rows, wanted):
        values = dense(vectors(union)).astype(np.float64)
        mirrored, linked = (lengths(values, ends) for ends in (pairs, links(union)))
        if case == "equal":
            result[row] = {"largest Pm over mean Pa": [mirrored.max() / linked.mean()]}
        else:
            mean = mirrored.mean()
            result[row] = {"Pa/Pm": [linked.mean() / mean if mean > 0 else np.inf]}
    return result


def correlation(name, seed, settings, wanted):
    """Distance of vectors against structural distance, over edges."""
    graph = load(name).graph
    edges = links(graph)
    structural = pair_distances(rooted_pagerank(graph, k=20, continuation=0.5).weights, edges)
    model = fitted(graph, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model.generator_, graph, seed, role=True), wanted):
        apart = lengths(dense(vectors(graph)), edges)
        result[row] = {
            "Pearson": [pearsonr(apart, structural).statistic],
            "Spearman": [spearmanr(apart, structural).statistic],
        }
    return result


ITEMS = {  # item: (function, data sets, rows)
    "transductive": (transductive, _CITATIONS, ("SPINE", *CONTROLS)),
    "inductive": (
        inductive,
        tuple(f"{name} {rate}" for name in _CITATIONS for rate in _RATES),
        ("SPINE", *CONTROLS),
    ),
    "roles": (roles, ("airports_brazil", "airports_europe"), ("SPINE", *CONTROLS, "log degree")),
    "across": (across, ("twitch_ENGB",), ("SPINE", *CONTROLS, "SPINE, in-domain")),
    "mirror": (
        mirror,
        ("equal", "shuffled", "perturbed"),
        ("SPINE", *CONTROLS, "log degree", "struc2vec"),
    ),
    "correlation": (correlation, ("cora",), ("SPINE", *CONTROLS, "log degree")),
}


def chosen(rows, wanted):
    """Yield the rows that are wanted, SPINE first."""
    return ((row, vectors) for row, vectors in rows.items() if row in wanted)


def bootstrap(positive, spine, control):
    """Return the middle 95 % of SPINE's AUC less a control's, nodes drawn again and again."""
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(_RESAMPLES if control is not spine else 0):
        drawn = rng.integers(len(positive), size=len(positive))
        differences.append(
            ranking_auc(positive[drawn], spine[drawn]) - ranking_auc(positive[drawn], control[drawn])
        )
    return {"SPINE less this": list(np.quantile(differences, [0.025, 0.975]))} if differences else {}


class Cells:
    """The cells measured with one configuration, in a JSON file that several processes may write."""

    def __init__(self, settings):
        name = "".join(f",{key}={value}" for key, value in sorted(settings.items()))
        self.path = RESULTS / f"accuracy{name}.json"
        self.config = {
            key: value for key, value in Config(**settings).to_json().items() if key not in ("seed", *MACHINE)
        }

    def read(self):
        """Return key -> measures; other settings than today's are refused."""
        if not self.path.exists():
            return {}
        stored = json.loads(self.path.read_text())
        if changed := [key for key in self.config if self.config[key] != stored["config"].get(key, ...)]:
            sys.exit(f"{self.path} has results of other settings ({', '.join(changed)}); delete or move it")
        return stored["cells"]

    def write(self, cells):
        """Add cells; whole or not at all."""
        self.path.parent.mkdir(exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            everything = {
                "machine": describe("scipy", "scikit-learn", "torch"),
                "config": self.config,
                "cells": self.read() | cells,
            }
            draft = self.path.with_suffix(".draft")
            draft.write_text(json.dumps(everything, indent=1) + "\n")
            draft.replace(self.path)
        finally:
            os.close(folder)


def measure(cells, item, case, seed, settings, fresh):
    """Measure the rows of one item, data set and seed that have no cell yet."""
    function, _, rows = ITEMS[item]
    keys = {row: f"{item}/{case}/{row}/{seed}" for row in rows}
    there = {} if fresh else cells.read()
    wanted = {row for row in rows if keys[row] not in there}
    if not wanted:
        return
    started = time.perf_counter()
    found = function(case, seed, settings, wanted)
    cells.write({keys[row]: _plain(found.get(row, {})) for row in wanted})
    print(f"  {item} {case} seed {seed}: {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)


def values_of(there, item, case, row, measure):
    """Return seed -> values of one row."""
    found = {}
    for key, measures in there.items():
        place, seed = key.rsplit("/", 1)
        if place == f"{item}/{case}/{row}" and measure in measures:
            found[int(seed)] = [math.inf if value is None else value for value in measures[measure]]
    return dict(sorted(found.items()))


def show(there, item, case):
    """Print one data set's rows: mean, deviation, and SPINE less the row, paired, with its standard error."""
    rows = ITEMS[item][2]
    names = [name for key, cell in there.items() if key.startswith(f"{item}/{case}/") for name in cell]
    for name in dict.fromkeys(names):
        if name == "SPINE less this":
            continue
        spine = values_of(there, item, case, "SPINE", name)
        floor, aim = GOALS.get((item, case, name), (None, None))
        goal = "" if floor is None else f"   floor {_figure(floor, name)}, aim {_figure(aim, name)}"
        print(f"\n{item} · {case} · {name}   ({len(spine)} seeds){goal}")
        for row in rows:
            found = values_of(there, item, case, row, name)
            if not found:
                continue
            values = np.concatenate(list(found.values()))
            line = f"  {row:<22}{_figure(values.mean(), name):>10} ± {_figure(_deviation(values), name):<9}"
            if not row.startswith("SPINE") and name != "largest Pm over mean Pa":
                line += paired(spine, found, name)
            bounds = values_of(there, item, case, row, "SPINE less this")
            if bounds:
                low, high = np.mean(list(bounds.values()), axis=0)
                line += f"   bootstrap {100 * low:+.2f} to {100 * high:+.2f}  {_verdict(low, high)}"
            print(line)


def paired(spine, other, name):
    """Say by how much SPINE is above a row over the seeds that both have, and whether that is clear."""
    seeds = [seed for seed in other if seed in spine]
    if not seeds:
        return ""
    differences = np.concatenate([np.subtract(spine[seed], other[seed]) for seed in seeds])
    if not np.isfinite(differences).all():
        return "   below"
    mean, error = differences.mean(), _deviation(differences) / math.sqrt(len(differences))
    scale = 100 if name in SHARES else 1
    if len(differences) == 1:
        return f"   SPINE {scale * mean:+.2f}"
    return f"   SPINE {scale * mean:+.2f} ± {scale * error:.2f}  {_verdict(mean - error, mean + error)}"


def _verdict(low, high):
    return "above" if low > 0 else "below" if high < 0 else "level"


def _deviation(values):
    return float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else 0.0


def _figure(value, name):
    if name in SHARES:
        return f"{100 * value:.2f}"
    if name == "largest Pm over mean Pa":
        return "exact" if value == 0 else f"{value:.1e}"
    return f"{value:.3f}" if math.isfinite(value) else "exact"


def _plain(measures):
    """Return measures as JSON has them, which knows no infinity."""
    return {
        name: [float(value) if np.isfinite(value) else None for value in values]
        for name, values in measures.items()
    }


def _setting(text):
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def _seeds(text):
    first, _, last = text.rpartition(":")
    return range(int(first or 0), int(last))


class Row:
    """The values of one row of one item, all seeds together."""

    def __init__(self, there, item, case, row, measure):
        found = values_of(there, item, case, row, measure)
        self.values = np.concatenate(list(found.values())) if found else np.empty(0)
        self.seeds = len(found)

    def mean(self, factor, digits):
        """Return the mean, printed."""
        if not len(self.values):
            return ""
        if digits == 0:
            return "exact" if self.values.max() == 0 else f"{self.values.mean():.0e}".replace("e-0", "e-")
        mean = self.values.mean()
        return f"{factor * mean:.{digits}f}" if np.isfinite(mean) else "exact"

    def spread(self, factor, digits):
        """Return mean and deviation, printed."""
        if digits == 0 or len(self.values) < 2:
            return self.mean(factor, digits)
        return f"{self.mean(factor, digits)} ± {factor * np.std(self.values, ddof=1):.{digits}f}"


def first_table(there):
    """Return the lines of the table of all items but the inductive one."""
    yield "| item | SPINE | T F | PCA of T F | raw features | other | seeds |"
    yield "|---|--:|--:|--:|--:|---|--:|"
    for title, item, case, measure, factor, digits in LINES:
        measure = measure or "largest Pm over mean Pa"
        spine = Row(there, item, case, "SPINE", measure)
        cells = [spine.spread(factor, digits)]
        cells += [Row(there, item, case, row, measure).mean(factor, digits) for row in SHOWN]
        others = [row for row in ITEMS[item][2] if row not in ("SPINE", *SHOWN)]
        said = [(row, Row(there, item, case, row, measure).mean(factor, digits)) for row in others]
        rest = ", ".join(f"{row} {mean}" for row, mean in said if mean)
        yield f"| {title} | {' | '.join(cells)} | {rest} | {spine.seeds} |"


def second_table(there):
    """Return the lines of Table 2, the stricter variant in brackets."""
    yield "| item | SPINE | paper | T F | PCA of T F | raw features | SPINE less T F | less PCA | removals |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for name, paper in TABLE_2.items():
        for rate, floor in zip((20, 40, 60, 80), paper, strict=True):
            case = f"{name} {rate}"
            spine = Row(there, "inductive", case, "SPINE", "accuracy")
            if not spine.seeds:
                continue
            cells = []
            for row in ("SPINE", *SHOWN):
                plain, strict = (Row(there, "inductive", case, row, key) for key in ("accuracy", "strict"))
                shown = plain.spread(100, 1) if row == "SPINE" else plain.mean(100, 1)
                cells.append(f"{shown} ({strict.mean(100, 1)})")
            cells.insert(1, f"{100 * floor:.1f}")
            cells += [difference(there, case, row) for row in SHOWN[:2]]
            yield f"| {NAMES[name]}, {rate} % removed | {' | '.join(cells)} | {spine.seeds} |"


def difference(there, case, row):
    """Return SPINE less a row, paired over removals, with its standard error."""
    ours, theirs = (values_of(there, "inductive", case, name, "accuracy") for name in ("SPINE", row))
    found = 100 * np.array([ours[seed][0] - theirs[seed][0] for seed in ours if seed in theirs])
    error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    return f"{found.mean():+.2f} ± {error:.2f}"


def write_page(there):
    """Write the tables into the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(FIRST)
    if not rest:
        raise SystemExit(f"{PAGE.name} must hold the line {FIRST}")
    _, _, after = rest.partition(LAST)
    removed = (
        "Nodes removed at random, fitted without them, embedded afterwards (Table 2); in brackets the\n"
        "stricter variant in which a removed node sees only nodes that were there; differences are paired,\n"
        "with their standard error:"
    )
    tables = "\n".join([*first_table(there), "", removed, "", *second_table(there)])
    PAGE.write_text(f"{before}{FIRST}\n{tables}\n{LAST}{after}")


def main():
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", default=",".join(ITEMS))
    parser.add_argument("--cases", default="")
    parser.add_argument("--seeds", default="10", type=_seeds)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--set", action="append", default=[], type=_setting, metavar="NAME=VALUE")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    cells = Cells(dict(arguments.set))
    asked = [
        (item, case)
        for item in arguments.items.split(",")
        for case in ITEMS[item][1]
        if case.startswith(tuple(arguments.cases.split(",")))
    ]
    seeds = range(2) if arguments.quick else arguments.seeds
    for item, case in asked if not (arguments.show or arguments.page) else ():
        for seed in seeds:
            measure(cells, item, case, seed, dict(arguments.set), arguments.fresh)
    there = cells.read()
    for item, case in asked:
        show(there, item, case)
    if arguments.page:
        write_page(there)


if __name__ == "__main__":
    main()
