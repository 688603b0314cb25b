"""Fitting beside unsupervised GraphSAGE and Deep Graph Infomax: seconds, accuracy and memory, in one run.

Run with ``python -m benchmarks.fit_speed``; prints a table and writes ``benchmarks/results/fit_speed.json``.

- Each fit is a fresh process held to two threads that has first fitted a made network of 300 nodes, so that
  imports and compiled code are loaded. Reading the data is not timed.
- SPINE: ``fit`` and ``embeddings_`` with defaults. GraphSAGE: up to the epoch with the best validation score,
  the scoring itself not timed. DGI: the whole of its recipe (an end after 20 epochs without a lower loss).
  Both end at ``--limit`` seconds where they would go on; the table then says so, and seconds an epoch.
- Accuracy is that of one probe for all: one-vs-rest logistic regression, C chosen on validation nodes. Cora
  and Pubmed have their public split; amazon_photo has none and gets 20 nodes a class to train, 500 to
  validate and the rest to test, by seed 0.
- Memory is the highest resident size of the process, libraries and data included.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.machine import describe, resident, thread_environment

METHODS = ("spine", "graphsage", "dgi")
NETWORKS = ("cora", "pubmed", "amazon_photo")
RESULTS = Path(__file__).parent / "results" / "fit_speed.json"


def splits_of(dataset):
    """Return the public training, validation and test nodes, or made ones where there are none."""
    import numpy as np

    if dataset.train is not None:
        return dataset.train, dataset.val, dataset.test
    order = np.random.default_rng(0).permutation(len(dataset.labels))
    classes = np.unique(dataset.labels[dataset.labels >= 0])
    train = np.concatenate([order[dataset.labels[order] == each][:20] for each in classes])
    rest = order[~np.isin(order, train) & (dataset.labels[order] >= 0)]
    return train, rest[:500], rest[500:]


def fit(method, graph, score, seed, threads, limit):
    """Return vectors (n, d) and what is known about how they came about, ``seconds`` at least."""
    if method == "spine":
        import spinegraph as sg

        started = time.perf_counter()
        model = sg.SPINE(seed=seed, threads=threads).fit(graph)
        vectors = model.embeddings_.vectors
        return vectors, {"seconds": time.perf_counter() - started}
    if method == "graphsage":
        from paper.neural import graphsage

        embed, info = graphsage(graph, lambda embed: score(embed(graph)), seed=seed, max_seconds=limit)
        return embed(graph), info
    from paper.neural import deep_graph_infomax

    return deep_graph_infomax(graph, seed=seed, max_seconds=limit)


def measure_here(method, network, seed, threads, limit):
    """Fit once in this process and print what was found as JSON."""
    from paper.probe import probe
    from threadpoolctl import threadpool_limits

    import spinegraph as sg

    if method != "spine":
        import torch

        torch.set_num_threads(threads)
    small = sg.made.random_graph(300, 3, features=20)
    fit(method, small, lambda vectors: 0.0, seed, threads, limit=5.0)
    dataset = sg.datasets.load(network)
    splits = splits_of(dataset)

    def probed(vectors):
        # Not timed; its many small products are quickest on one thread.
        with threadpool_limits(1):
            return probe(vectors, dataset.labels, *splits)

    before = resident("VmRSS")
    vectors, info = fit(method, dataset.graph, lambda found: probed(found).val_accuracy, seed, threads, limit)
    memory = {"peak_mb": resident("VmHWM"), "before_mb": before}
    found = probed(vectors)
    print(json.dumps({**info, **memory, "accuracy": found.accuracy, "C": found.C, "dim": vectors.shape[1]}))


def measure(method, network, seeds, threads, limit):
    """Return the figures of some fresh processes, one for each seed."""
    runs = []
    for seed in range(seeds):
        command = [sys.executable, "-m", "benchmarks.fit_speed"]
        command += ["--threads", str(threads), "--limit", str(limit)]
        command += ["--one", method, network, str(seed)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env=thread_environment(threads)
        )
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    accuracies = [run["accuracy"] for run in runs]
    return {
        "network": network,
        "method": method,
        "seconds": round(statistics.median(run["seconds"] for run in runs), 2),
        "accuracy": round(statistics.mean(accuracies), 4),
        "deviation": round(statistics.stdev(accuracies), 4) if seeds > 1 else None,
        "peak_mb": round(max(run["peak_mb"] for run in runs)),
        "seeds": seeds,
        "runs": runs,
    }


def show(row, ours):
    """Print one row of the table."""
    deviation = "       " if row["deviation"] is None else f"± {row['deviation']:.4f}"[:8].ljust(8)
    cells = [f"{row['network']:<13}{row['method']:<10}", f"{row['seconds']:>8.2f}", f"{row['peak_mb']:>8,}"]
    cells += [f"{row['accuracy']:>9.4f}", deviation]
    if ours is not None:
        cells.append(f"{row['seconds'] / ours:>6.1f} x SPINE's time")
    last = row["runs"][-1]
    if "epochs" in last:
        cells.append(f"({last['epochs']} epochs of {last['epoch_seconds']:.3f} s, end: {last['stopped_by']})")
    print(*cells, flush=True)


def main():
    """Measure everything, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--one", nargs=3, metavar=("METHOD", "NETWORK", "SEED"), help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dgi-seeds", type=int, default=1, help="fewer, since each takes minutes")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a peer's training ends")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    arguments = parser.parse_args()
    if arguments.one:
        method, network, seed = arguments.one
        measure_here(method, network, int(seed), arguments.threads, arguments.limit)
        return
    machine = describe("torch", "torch-geometric", "numba", "scipy")
    print(f"{arguments.threads} threads, {machine}\n\nnetwork      method     seconds  peak MB accuracy")
    rows = []
    for network in arguments.networks:
        ours = None
        for method in arguments.methods:
            seeds = arguments.dgi_seeds if method == "dgi" else arguments.seeds
            rows.append(measure(method, network, seeds, arguments.threads, arguments.limit))
            show(rows[-1], ours)
            ours = rows[-1]["seconds"] if method == "spine" else ours
    RESULTS.parent.mkdir(exist_ok=True)
    settings = {"threads": arguments.threads, "limit": arguments.limit, "about": __doc__.strip()}
    RESULTS.write_text(json.dumps({"machine": machine, "settings": settings, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
