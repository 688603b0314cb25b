"""What the vectors are worth, beside controls that learn nothing: the whole table, cell by cell.

Run with ``python -m benchmarks.accuracy``; prints the table and writes ``benchmarks/results/accuracy.json``.
A cell is an item, a data set, a row and a seed. Cells that are there already are not measured again, so a run
can be stopped at any time, and two runs may share the work (``--seeds 0:5`` and ``--seeds 5:10``).

    --items transductive,roles   of transductive, inductive, roles, across, mirror, correlation
    --cases cora,pubmed          data sets whose name begins so
    --seeds 10                   how many seeds, or which: 5:10
    --quick                      two seeds
    --set structural_rate=0.2    settings other than the defaults, with a results file of their own
    --fresh                      measure again what is asked for
    --show                       print what there is and measure nothing

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
from benchmarks.protocols import ITEMS

from spinegraph.config import MACHINE, Config

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
        if stored["config"] != self.config:
            changed = [key for key in self.config if self.config[key] != stored["config"].get(key, ...)]
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
    arguments = parser.parse_args()
    cells = Cells(dict(arguments.set))
    asked = [
        (item, case)
        for item in arguments.items.split(",")
        for case in ITEMS[item][1]
        if case.startswith(tuple(arguments.cases.split(",")))
    ]
    seeds = range(2) if arguments.quick else arguments.seeds
    for item, case in asked if not arguments.show else ():
        for seed in seeds:
            measure(cells, item, case, seed, dict(arguments.set), arguments.fresh)
    there = cells.read()
    for item, case in asked:
        show(there, item, case)


if __name__ == "__main__":
    main()
