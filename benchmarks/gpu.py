"""Measures SPINE(device="cuda").fit from a Graph in the host's memory to vectors there.

    PYTHONPATH=src:. python -m benchmarks.gpu                    # 1e6 and 1e7 nodes
    PYTHONPATH=src:. python -m benchmarks.gpu --cpu 1000000      # and a million on two cores, minutes

Made graphs of 10 edges and 10 of 100 sparse features a node. Writes benchmarks/results/gpu.json; ``--page``
writes the table of docs/gpu.md from it and measures nothing.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

OUT = Path(__file__).parent / "results" / "gpu.json"
PAGE = Path(__file__).parents[1] / "docs" / "gpu.md"
FIRST, LAST = "<!-- gpu results -->\n", "<!-- end of gpu results -->"
EDGES, FEATURES = 10, 100


def fit(graph, **settings):
    """Fit, and return seconds in all and by stage; the vectors are in the host's memory at the end."""
    import numpy as np

    from spinegraph import SPINE

    stages, last = {}, ["start", perf_counter()]

    def progress(stage, done, total):
        now = perf_counter()
        stages[last[0]] = stages.get(last[0], 0) + now - last[1]
        last[:] = stage, now

    start = perf_counter()
    vectors = SPINE(**settings).fit(graph, progress=progress).embeddings_.vectors
    seconds = perf_counter() - start
    progress("end", 0, 0)
    assert np.isfinite(vectors[:: max(1, len(vectors) // 1000)]).all()
    return {
        "nodes": len(graph),
        "edges": graph.num_edges,
        "seconds": round(seconds, 3),
        "nodes_per_second": round(len(graph) / seconds),
        "stages": {stage: round(taken, 3) for stage, taken in stages.items()},
    }


def on_device(size, heavy_tailed=False):
    """Return the times of a fit on the device, and its peak memory."""
    import torch

    from spinegraph import made

    graph = made.random_graph(size, EDGES, features=FEATURES, heavy_tailed=heavy_tailed)
    torch.cuda.reset_peak_memory_stats()
    found = fit(graph, device="cuda")
    return found | {"peak_device_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2)}


def on_two_cores(size):
    """Fit the same kind of graph with two threads on two cores, in a process of its own."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    command = ["taskset", "-c", "0,1", sys.executable, "-m", "benchmarks.gpu", "--two-cores", str(size)]
    done = subprocess.run(command, env=os.environ | limits, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def write_page():
    """Write the table of the page."""
    found = json.loads(OUT.read_text())
    rows = {name: row for name, row in found.items() if isinstance(row, dict)}
    stages = list(dict.fromkeys(stage for row in rows.values() for stage in row["stages"]))[1:]
    lines = [
        f"Seconds on one {found['device']} with {found['cores']} host cores.",
        "",
        f"| generated network | links | total | {' | '.join(stages)} |",
        f"|---|{'--:|' * (2 + len(stages))}",
    ]
    for name, row in rows.items():
        cells = [f"{row['stages'].get(stage, 0):.1f}" for stage in stages]
        lines.append(f"| {name} | {row['edges']:,} | {row['seconds']:.1f} | {' | '.join(cells)} |")
    before, _, rest = PAGE.read_text().partition(FIRST)
    PAGE.write_text("\n".join([f"{before}{FIRST}{lines[0]}", *lines[1:], f"{LAST}{rest.partition(LAST)[2]}"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--cpu", type=int, help="nodes of the graph to run on two cores as well")
    parser.add_argument("--two-cores", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    if arguments.page:
        write_page()
        return
    if arguments.two_cores:
        from spinegraph import made

        fit(made.random_graph(3000, EDGES, features=FEATURES), threads=2)  # compiles
        graph = made.random_graph(arguments.two_cores, EDGES, features=FEATURES)
        print(json.dumps(fit(graph, threads=2)))
        return

    import torch

    device = torch.cuda.get_device_properties(0)
    found = {"device": device.name, "torch": torch.__version__, "cores": os.cpu_count()}

    def note(name, value):
        found[name] = value
        print(f"{name}: {json.dumps(value)}", flush=True)
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")

    note("first fit of a process, 100000 nodes", on_device(100_000))  # compiles
    for size in arguments.sizes:
        note(f"{size} nodes", on_device(size))
        torch.cuda.empty_cache()
    note("1000000 nodes, heavy tail", on_device(1_000_000, heavy_tailed=True))
    if arguments.cpu:
        note("two cores", on_two_cores(arguments.cpu))


if __name__ == "__main__":
    main()
