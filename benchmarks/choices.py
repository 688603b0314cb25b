"""How settings do on the public validation nodes of Cora, Citeseer and Pubmed; test nodes are not looked at.

Run with ``python -m benchmarks.choices``; prints the table that the defaults were chosen by, from what is
stored in ``benchmarks/results/choices.json``, and measures what is missing there.

    --set '{"window": 5}'   settings to try beside the stored ones; may be repeated
    --jobs 2                processes
    --show                  measure nothing

Seeds are 100 and on, which no table uses. A probe's penalty weighs less on longer vectors, so every fit is
scored at four lengths: the mean square of a vector's content being 1, 1.8, 3.2 and 5.8.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

import numpy as np

RESULTS = Path(__file__).parent / "results" / "choices.json"
SEEDS = {"cora": 16, "citeseer": 16, "pubmed": 8}
FACTORS = (1.0, 1.33, 1.78, 2.4)  # of vectors whose content has a mean square of 1


def score(job):
    """Return validation accuracies in percent at the four lengths."""
    settings, name, seed = job
    import spinegraph as sg
    from spinegraph import datasets
    from spinegraph.analysis.evaluation import probe
    from spinegraph.learning.training import CONTENT_SQUARE

    data = datasets.load(name)
    vectors = sg.SPINE(seed=seed, threads=1, **json.loads(settings)).fit(data.graph).embeddings_.vectors
    vectors = vectors / np.float32(np.sqrt(CONTENT_SQUARE))
    places = data.labels, data.train, data.val, data.val
    return job, [100 * probe(vectors * np.float32(factor), *places).val_accuracy for factor in FACTORS]


def read():
    """Return settings (JSON text) -> network -> seed -> four accuracies."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def write(stored):
    """Write what is there, one line per setting and network."""
    lines = [
        f" {json.dumps(settings)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in networks.items())
        + "\n }"
        for settings, networks in stored.items()
    ]
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def show(stored):
    """Print the mean of every setting: Cora, Citeseer, Pubmed at the best common length, and their sum."""
    rows = []
    for settings, networks in stored.items():
        if len(networks) < len(SEEDS):
            continue
        means = np.array(
            [[mean(four[at] for four in networks[name].values()) for name in SEEDS] for at in range(4)]
        )
        best = int(means.sum(axis=1).argmax())
        rows.append((means[best].sum(), FACTORS[best] ** 2, *means[best], len(networks["cora"]), settings))
    print("  sum  square   Cora  Citeseer  Pubmed  seeds  settings")
    for *figures, seeds, settings in sorted(rows, reverse=True):
        print("{:6.2f} {:6.1f} {:7.2f} {:8.2f} {:8.2f} {:6d}  {}".format(*figures, seeds, settings))


def main():
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    stored = read()
    wanted = [json.dumps(json.loads(text), sort_keys=True) for text in arguments.set]
    jobs = [
        (settings, name, seed)
        for settings in wanted
        for name, seeds in SEEDS.items()
        for seed in range(100, 100 + seeds)
        if str(seed) not in stored.get(settings, {}).get(name, {})
    ]
    if jobs and not arguments.show:
        with get_context("spawn").Pool(arguments.jobs) as pool:
            for (settings, name, seed), four in pool.imap_unordered(score, jobs):
                stored.setdefault(settings, {}).setdefault(name, {})[str(seed)] = four
                write(stored)
    show(stored)


if __name__ == "__main__":
    main()
