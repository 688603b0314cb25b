"""How fast a fitted model embeds a network it never saw, and one new node of a live one.

Run with ``python -m benchmarks.transform_speed``; prints a table and writes
``benchmarks/results/transform_speed.json``.

- The network is ego_twitter with 100 made columns of sparse features. The model, d = 200 and all else as by
  default, is fitted on a made network with the same columns; what it learned is no matter for speed.
- Whole: ``model.transform(graph)`` end to end, the median of some runs, split by stage: the profile (rooted
  PageRank and its top k), the inputs (scaled features, structural columns), the product (the operator T, the
  matrix products, the activation) and the checks (is the data like what was seen?).
- One node: ``graph.overlay`` with a new node and 20 neighbours drawn at random, then ``model.transform`` of
  it alone, both timed, once all is loaded.
- Beside seconds on the wall, processor seconds over all threads: on a busy machine only these mean something.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from benchmarks.machine import describe, resident, thread_environment

RESULTS = Path(__file__).parent / "results" / "transform_speed.json"
COLUMNS, NEIGHBOURS, DIM = 100, 20, 200


@contextmanager
def stage_clock():
    """Yield seconds and processor seconds by stage; what runs inside a stage counts to it."""
    from spinegraph.graph.describe import TrainingStats
    from spinegraph.parts.content import Content
    from spinegraph.parts.generator import Generator
    from spinegraph.structure.smoothing import Smoother

    seconds, inside = defaultdict(lambda: np.zeros(2)), []
    stages = [
        (Generator, "profile", "profile"),
        (Generator, "known", "checks"),
        (TrainingStats, "warn", "checks"),
        (Content, "compressed", "features"),
        (Smoother, "smooth", "smoothing"),
        (Smoother, "rows", "smoothing"),
    ]
    originals = [(owner, method, getattr(owner, method)) for owner, method, _ in stages]

    def timed(call, stage):
        def run(*arguments, **options):
            inside.append(stage)
            started = _clocks()
            try:
                return call(*arguments, **options)
            finally:
                inside.pop()
                if not inside:
                    seconds[stage] += _clocks() - started

        return run

    for (owner, method, call), (_, _, stage) in zip(originals, stages, strict=True):
        setattr(owner, method, timed(call, stage))
    try:
        yield seconds
    finally:
        for owner, method, call in originals:
            setattr(owner, method, call)


def _clocks():
    return np.array([time.perf_counter(), time.process_time()])


def fitted_model(threads, changes):
    """Return a model fitted in seconds on a made network with the benchmark's columns."""
    import spinegraph as sg

    small = sg.made.random_graph(2_000, 10, seed=1, features=COLUMNS, heavy_tailed=True)
    return sg.SPINE(**{"dim": DIM, "threads": threads, "steps": 10} | changes).fit(small)


def network():
    """Return ego_twitter with made features."""
    import spinegraph as sg

    graph = sg.datasets.load("ego_twitter").graph
    return graph.with_features(sg.made.random_graph(len(graph), 0, seed=2, features=COLUMNS).features)


def measure_whole(model, graph, repeats, sample):
    """Return nodes per second and the seconds of each stage, of the median run."""
    runs, nodes = [], None
    if sample:
        nodes = graph.names[np.random.default_rng(4).choice(len(graph), sample, replace=False)]
    count = len(graph) if nodes is None else sample
    for _ in range(repeats):
        with stage_clock() as stages:
            started = _clocks()
            found = model.transform(graph, nodes=nodes)
            total = _clocks() - started
        assert len(found.vectors) == count
        stages["product"] = total - sum(stages.values())
        runs.append({"seconds": total, "stages": dict(stages)})
    middle = sorted(runs, key=lambda run: run["seconds"][0])[len(runs) // 2]
    seconds, processor = middle["seconds"].round(3).tolist()
    return {
        "nodes": count,
        "seconds": seconds,
        "processor_seconds": processor,
        "nodes_per_second": round(count / seconds),
        "stages": {stage: float(of[0].round(3)) for stage, of in middle["stages"].items()},
        "processor_stages": {stage: float(of[1].round(3)) for stage, of in middle["stages"].items()},
        "all_seconds": [float(run["seconds"][0].round(3)) for run in runs],
        "peak_mb": round(resident("VmHWM")),
    }


def measure_one(model, graph, count):
    """Return milliseconds from a new node's edges to its vector: median and 99th percentile of ``count``."""
    rng = np.random.default_rng(3)
    features = graph.features[rng.integers(0, len(graph), count)]
    times = []
    for number in range(-20, count):  # the first twenty warm up
        neighbours = graph.names[rng.choice(len(graph), NEIGHBOURS, replace=False)]
        name = int(graph.names.max()) + 1
        edges = np.column_stack([np.full(NEIGHBOURS, name), neighbours])
        row = features[[number]]
        started, processor = _clocks()
        overlay = graph.overlay([name], edges, features=row)
        between = time.perf_counter()
        vector = model.transform(overlay, nodes=[name]).vectors
        ended, spent = _clocks()
        assert np.isfinite(vector).all()
        if number >= 0:
            times.append((ended - started, between - started, ended - between, spent - processor))
    both, overlaying, transforming, processing = np.array(times).T * 1000
    return {
        "count": count,
        "neighbours": NEIGHBOURS,
        "median_ms": round(float(np.median(both)), 3),
        "p99_ms": round(float(np.percentile(both, 99)), 3),
        "overlay_median_ms": round(float(np.median(overlaying)), 3),
        "transform_median_ms": round(float(np.median(transforming)), 3),
        "processor_median_ms": round(float(np.median(processing)), 3),
    }


def measure_here(arguments):
    """Measure all in this process and print it as JSON."""
    from spinegraph.errors import SpineWarning

    changes = {name: ast.literal_eval(value) for name, value in (text.split("=") for text in arguments.set)}
    warnings.simplefilter("ignore", SpineWarning)  # the model was not fitted on anything like this network
    model, graph = fitted_model(arguments.threads, changes), network()
    model.transform(graph, nodes=graph.names[:100])
    whole = measure_whole(model, graph, arguments.repeats, arguments.sample)
    one = measure_one(model, graph, arguments.count)
    config = model.generator_.config.to_json()
    print(json.dumps({"whole": whole, "one": one, "config": config}))


def main():
    """Measure in a process held to some threads, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--count", type=int, default=200, help="how many new nodes")
    parser.add_argument("--sample", type=int, help="embed so many nodes drawn at random rather than all")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings other than the defaults"
    )
    arguments = parser.parse_args()
    if arguments.here:
        measure_here(arguments)
        return
    machine = describe("numba", "scipy")
    command = [sys.executable, "-m", "benchmarks.transform_speed", "--here", *sys.argv[1:]]
    environment = thread_environment(arguments.threads)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found = json.loads(done.stdout.splitlines()[-1])
    whole, one = found["whole"], found["one"]
    print(f"{arguments.threads} threads, {' '.join(arguments.set) or 'defaults'}, {machine}")
    kind = f"{arguments.sample:,} nodes" if arguments.sample else "whole network"
    print(f"{kind}: {whole['nodes_per_second']:,} nodes/s ({whole['seconds']:.2f} s, ", end="")
    print(f"{whole['processor_seconds']:.2f} of a processor), of which")
    for stage, seconds in sorted(whole["stages"].items(), key=lambda item: -item[1]):
        rate = whole["nodes"] / max(seconds, 1e-3)
        print(
            f"  {stage:<9}{seconds:>7.3f} s {seconds / whole['seconds']:>5.0%} {rate:>14,.0f} nodes/s", end=""
        )
        print(f" {whole['processor_stages'][stage]:>8.3f} s of a processor")
    print(
        f"one new node with {one['neighbours']} neighbours: {one['median_ms']:.2f} ms, 99 % within", end=" "
    )
    print(f"{one['p99_ms']:.2f} ms (overlay {one['overlay_median_ms']:.2f}, ", end="")
    print(f"transform {one['transform_median_ms']:.2f}; {one['processor_median_ms']:.2f} of a processor)")
    RESULTS.parent.mkdir(exist_ok=True)
    settings = {"threads": arguments.threads, "changes": arguments.set, "about": __doc__.strip()}
    RESULTS.write_text(json.dumps({"machine": machine, "settings": settings, **found}, indent=2) + os.linesep)


if __name__ == "__main__":
    main()
