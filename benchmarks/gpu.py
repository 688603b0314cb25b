"""Measures the method on one CUDA device: time by stage, bandwidth, and two cores of the same machine.

    PYTHONPATH=src:. python -m benchmarks.gpu                    # 1e6 and 1e7 nodes
    PYTHONPATH=src:. python -m benchmarks.gpu --cpu 1000000      # and the first on two cores, minutes

Made graphs of 10 edges and 10 of 100 sparse features a node. Writes benchmarks/results/gpu.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import torch

from spinegraph.config import Config
from spinegraph.engines.gpu.generator import DeviceGenerator, profile_of
from spinegraph.engines.gpu.old_made import random_graph
from spinegraph.engines.gpu.old_model import fit
from spinegraph.engines.gpu.push import Limits, _Residuals, push_by_sorting
from spinegraph.engines.gpu.training import DevicePairs, DeviceTrainer
from spinegraph.engines.gpu.walks import count_walks

OUT = Path(__file__).parent / "results" / "gpu.json"
PEAK = 4.8e12  # bytes a second, by the vendor's datasheet
EDGES, FEATURES = 10, 100


def seconds(call, repeats=3):
    """Return the median time of a call, after one that is not counted."""
    call()
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = perf_counter()
        call()
        torch.cuda.synchronize()
        taken.append(perf_counter() - start)
    return statistics.median(taken)


def copying():
    """Return the bytes a second of a large copy, reads and writes together."""
    source = torch.ones(1 << 30, device="cuda")
    target = torch.empty_like(source)
    return 8 * len(source) / seconds(lambda: target.copy_(source))


def end_to_end(size, config, heavy_tailed=False):
    """Make a graph, fit, and embed all of its nodes, by stage; vectors end in the host's memory."""
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    start = perf_counter()
    graph = random_graph(size, EDGES, FEATURES, heavy_tailed=heavy_tailed)
    torch.cuda.synchronize()
    made = perf_counter() - start
    start = perf_counter()
    model = fit(graph, config)
    fitted = perf_counter() - start
    stages = {name: round(taken, 4) for name, taken in model.seconds.items()}
    stages |= embedding(model.generator, graph)
    total = sum(stages.values())
    return {
        "nodes": size,
        "edges": len(graph.indices) // 2,
        "heavy_tailed": heavy_tailed,
        "seconds_to_make_the_graph": round(made, 3),
        "seconds": round(total, 3),
        "seconds_to_fit": round(fitted, 3),
        "stages": stages,
        "shares": {name: round(taken / total, 4) for name, taken in stages.items()},
        "nodes_a_second": round(size / total),
        "peak_device_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
    }


def embedding(generator: DeviceGenerator, graph):
    """Embed all nodes, and say what profiles, products and the copy to the host took of it."""
    host = torch.empty(len(graph), generator.weights.shape[1])
    host.zero_()  # pages are claimed before the clock starts
    torch.cuda.synchronize()
    start = perf_counter()
    at, copied = 0, 0.0
    for some in generator.embed(graph):
        torch.cuda.synchronize()
        before = perf_counter()
        host[at : at + len(some)].copy_(some)
        copied += perf_counter() - before
        at += len(some)
    total = perf_counter() - start
    roots = torch.arange(min(len(graph), 1 << 18), device="cuda")
    pushed = seconds(lambda: profile_of(graph, generator.config, roots), 1) * len(graph) / len(roots)
    assert bool(host.isfinite().all())
    return {
        "profiles of all nodes": round(pushed, 4),
        "features around all nodes and their product": round(max(total - copied - pushed, 0), 4),
        "vectors to the host": round(copied, 4),
    }


def pushing(size, config):
    """Return what pushing costs a root: edges, bytes that must be read, and the share of the bandwidth."""
    graph = random_graph(size, EDGES, FEATURES)
    roots = torch.arange(1 << 18, device="cuda")
    taken = seconds(lambda: profile_of(graph, config, roots))
    edges, rows = _pushes(graph, roots[:1024], config)
    needed = 8 * edges + 16 * rows + 16 * config.k  # entries and their degrees, rows' places, the result
    return {
        "roots_a_second": round(len(roots) / taken),
        "edges_a_root": round(edges, 1),
        "edges_a_second": round(edges * len(roots) / taken),
        "needed_bytes_a_second": round(needed * len(roots) / taken),
        "share_of_bandwidth": round(needed * len(roots) / taken / PEAK, 4),
    }


def _pushes(graph, roots, config):
    """Return edges passed and rows pushed for a root, on average."""
    counted = {"edges": 0, "rows": 0}
    push = _Residuals.push

    def count(self, leaving):
        counted["rows"] += int(leaving.sum())
        push(self, leaving)
        counted["edges"] = int(self.edges.sum())

    _Residuals.push = count
    limits = Limits.of(graph, config.continuation, config.tolerance, config.threshold)
    push_by_sorting(graph, roots, config.k, config.continuation, limits)
    _Residuals.push = push
    return counted["edges"] / len(roots), counted["rows"] / len(roots)


def walking(size, config):
    """Return what counting rooted walks costs; a step must read a row's place and one entry: 20 bytes."""
    graph = random_graph(size, EDGES, FEATURES)
    roots = torch.arange(1 << 17, device="cuda")
    how = {"walks": config.walks, "walk_length": config.walk_length, "seed": 0}
    taken = seconds(lambda: count_walks(graph, roots, k=config.k, continuation=config.continuation, **how))
    steps = len(roots) * config.walks * (config.walk_length - 1) * config.continuation
    return {
        "roots_a_second": round(len(roots) / taken),
        "steps_a_second": round(steps / taken),
        "needed_bytes_a_second": round(20 * steps / taken),
        "share_of_bandwidth": round(20 * steps / taken / PEAK, 4),
    }


def training(config, nodes=20_000, width=99):
    """Return what a step costs, replayed and one operation after the other, and the bytes it must move."""
    draw = torch.Generator(device="cuda").manual_seed(0)
    walks = torch.randint(nodes, (nodes, config.local_walk_length), generator=draw, device="cuda")
    candidates = torch.randint(nodes, (nodes, 30), generator=draw, device="cuda")
    similar = candidates, torch.rand(nodes, 30, generator=draw, device="cuda")
    pairs = DevicePairs(walks, similar, torch.full((nodes,), 20, device="cuda"), config)
    inputs = torch.randn(nodes, width, generator=draw, device="cuda")
    trainer = DeviceTrainer(inputs, torch.eye(width, device="cuda") * 0.3, pairs, config)
    replay = trainer._recorded()
    trainer._prepare(0)

    def steps(step, count):
        trainer._at.zero_()
        for _ in range(count):
            step()

    replayed = seconds(lambda: steps(replay, 200)) / 200
    plain = seconds(lambda: steps(trainer._step, 30)) / 30
    places = 2 * config.batch_size + config.negative_samples
    needed = (
        4 * width * (places * 7 + width * 6)
    )  # rows of inputs, of W_S and its moments; W_M and its moments
    return {
        "microseconds_a_step": round(replayed * 1e6, 1),
        "microseconds_a_step_without_replay": round(plain * 1e6, 1),
        "needed_bytes_a_second": round(needed / replayed),
        "share_of_bandwidth": round(needed / replayed / PEAK, 4),
        "milliseconds_to_draw_256_batches": round(seconds(lambda: pairs.draw(0)) * 1e3, 2),
    }


def on_two_cores(size):
    """Fit and embed the same kind of graph with two threads on two cores, in a process of its own."""
    code = f"""
import json, time
from spinegraph import SPINE, made
SPINE(dim=8, threads=2).fit(made.random_graph(3000, {EDGES}, features={FEATURES}))  # compiles
graph, stages = made.random_graph({size}, {EDGES}, features={FEATURES}), {{}}
last = [None, time.perf_counter()]
start = last[1]
def told(stage, done, total):
    now = time.perf_counter()
    stages[last[0]] = stages.get(last[0], 0) + now - last[1]
    last[:] = stage, now
model = SPINE(threads=2).fit(graph, progress=told)
told(None, 0, 0)
print(json.dumps({{"nodes": {size}, "seconds": round(time.perf_counter() - start, 2),
                  "stages": {{str(name): round(taken, 2) for name, taken in stages.items()}}}}))
"""
    cores = ["taskset", "-c", "0,1"]
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    done = subprocess.run(
        [*cores, sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | limits,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--cpu", type=int, help="nodes of the graph to run on two cores as well")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    config, device = Config(device="cuda"), torch.cuda.get_device_properties(0)
    found = {"device": device.name, "torch": torch.__version__, "cores": os.cpu_count()}

    def note(name, value):
        found[name] = value
        print(f"{name}: {json.dumps(value)}", flush=True)
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")

    note("copy_bytes_a_second", round(copying()))
    note("first", end_to_end(100_000, config)["seconds"])  # compiles
    for size in arguments.sizes:
        note(f"{size} nodes", end_to_end(size, config))
        torch.cuda.empty_cache()
    note("push", pushing(1_000_000, config))
    note("walks", walking(1_000_000, config))
    note("training", training(config))
    note("1000000 nodes, heavy tail", end_to_end(1_000_000, config, heavy_tailed=True))
    if arguments.cpu:
        note("two cores", on_two_cores(arguments.cpu))
        note("ratio", round(found["two cores"]["seconds"] / found[f"{arguments.cpu} nodes"]["seconds"], 1))


if __name__ == "__main__":
    main()
