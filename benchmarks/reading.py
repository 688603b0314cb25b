"""Reading edge lists of 1e5, 1e6 and 1e7 edges, beside pandas.read_csv and networkx.read_edgelist.

Run with ``python -m benchmarks.reading``; prints a table and writes ``benchmarks/results/reading.json``.
Each reading is a fresh process that has first read a small file, so that imports and buffers are not counted:
peak memory is the highest resident size during the reading less the size just before it. Files are in the
page cache.

pandas gives a frame of two columns, neither names nor neighbours; spinegraph and NetworkX give a graph.
NetworkX is left out at 1e7 edges, where it needs minutes and tens of gigabytes.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

SIZES = (100_000, 1_000_000, 10_000_000)
READERS = ("spinegraph", "pandas", "networkx")
RESULTS = Path(__file__).parent / "results" / "reading.json"


def write_edges(path, num_edges, names):
    """Write random edges without self-loops between ``num_edges / 10`` nodes, as CSV without a header."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    n, rng = num_edges // 10, np.random.default_rng(0)
    sources = rng.integers(0, n, num_edges)
    targets = (sources + rng.integers(1, n, num_edges)) % n
    columns = [pa.array(sources), pa.array(targets)]
    if names == "text":
        texts = pa.array([f"user_{node}" for node in range(n)])
        columns = [texts.take(column) for column in columns]
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    csv.write_csv(pa.table(columns, names=["source", "target"]), path, options)


def read(reader, path, names):
    """Read a file and return how many bytes its result takes, where that is known."""
    if reader == "spinegraph":
        from spinegraph import read_graph

        graph = read_graph(path)
        texts = sum(map(sys.getsizeof, graph.names)) if names == "text" else 0
        return graph.indptr.nbytes + graph.indices.nbytes + graph.names.nbytes + texts
    if reader == "pandas":
        import pandas

        return int(pandas.read_csv(path, header=None).memory_usage(deep=True).sum())
    import networkx

    networkx.read_edgelist(path, delimiter=",", nodetype=int if names == "integer" else str)
    return None


def resident(field):
    """Return VmRSS or VmHWM of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status; this benchmark needs Linux")


def measure_here(reader, path, small, names):
    """Measure one reading in this process and print it as JSON."""
    read(reader, small, names)
    baseline = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # sets the highest resident size back to the present one
    started = time.perf_counter()
    result = read(reader, path, names)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "peak": resident("VmHWM") - baseline, "result": result}))


def measure(reader, path, small, names, repeats):
    """Return the median seconds and the largest peak of some fresh processes."""
    command = [sys.executable, __file__, "--one", reader, str(path), str(small), names]
    runs = []
    for _ in range(repeats):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    seconds = statistics.median(run["seconds"] for run in runs)
    peak, result = max(run["peak"] for run in runs), runs[0]["result"]
    return {
        "seconds": round(seconds, 3),
        "mb_per_s": round(os.path.getsize(path) / seconds / 1e6, 1),
        "peak_mb": round(peak / 1e6, 1),
        "result_mb": None if result is None else round(result / 1e6, 1),
        "peak_over_result": None if result is None else round(peak / result, 2),
    }


def show(row):
    """Print one row of the table."""
    cells = [f"{row['edges']:>11,}", f"{row['names']:<8}", f"{row['file_mb']:>8.1f}", f"{row['reader']:<10}"]
    cells += [f"{row['seconds']:>8.2f}", f"{row['mb_per_s']:>8.1f}", f"{row['peak_mb']:>9.1f}"]
    cells += ["" if row[key] is None else f"{row[key]:>9.2f}" for key in ("result_mb", "peak_over_result")]
    print(*cells, flush=True)


def main():
    """Measure everything, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--one", nargs=4, metavar=("READER", "FILE", "SMALL", "NAMES"), help=argparse.SUPPRESS
    )
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="leave larger files out")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.one:
        reader, path, small, names = arguments.one
        measure_here(reader, path, small, names)
        return
    rows = []
    print("      edges names     file MB reader      seconds     MB/s   peak MB result MB     ratio")
    with tempfile.TemporaryDirectory() as folder:
        for names in ("integer", "text"):
            small = Path(folder, "small.csv")
            write_edges(small, 1000, names)
            for num_edges in (size for size in SIZES if size <= arguments.largest):
                path = Path(folder, "edges.csv")
                write_edges(path, num_edges, names)
                for reader in READERS:
                    if reader == "networkx" and num_edges > 1_000_000:
                        continue
                    found = measure(
                        reader, path, small, names, 1 if reader == "networkx" else arguments.repeats
                    )
                    file_mb = round(os.path.getsize(path) / 1e6, 1)
                    rows.append(
                        {"edges": num_edges, "names": names, "file_mb": file_mb, "reader": reader, **found}
                    )
                    show(rows[-1])
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    machine |= {package: version(package) for package in ("numpy", "pyarrow", "pandas", "networkx")}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
