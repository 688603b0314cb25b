"""Reading edge lists of 1e6 and 1e7 edges beside pandas, polars and version 0.1.0, and building a store.

Run with ``python -m benchmarks.reading``; prints tables and writes ``benchmarks/results/reading.json``. Each
reading is a fresh process that has first read a small file, so that imports and buffers are not counted: peak
memory is the highest resident size during the reading less the size just before it. Files are in the page
cache. Readers take turns, so that other work on the machine slows all of them; processor seconds, of all
threads, depend on it less.

pandas and polars give a frame of two columns, neither names nor neighbours; spinegraph gives a graph. Version
0.1.0 is a commit of this clone. ``--store EDGES`` builds a store of so many edges with 2 GB instead.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from importlib import import_module
from pathlib import Path

from benchmarks.machine import describe, resident

SIZES = (1_000_000, 10_000_000)
READERS = ("spinegraph", "0.1.0", "pandas", "polars")
PAGE = Path(__file__).parents[1] / "docs" / "graphs.md"
_MARKS = "<!-- reading -->\n", "<!-- end of reading -->"
RESULTS = Path(__file__).parent / "results" / "reading.json"
_RELEASED = "396e0bd"  # version 0.1.0
_PART = 10_000_000  # edges written at a time


def write_edges(path, num_edges, names):
    """Write random edges without self-loops between ``num_edges / 10`` nodes, as CSV without a header."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    n, rng = num_edges // 10, np.random.default_rng(0)
    schema = pa.schema(dict.fromkeys(("source", "target"), pa.string() if names == "text" else pa.int64()))
    texts = pa.array([f"user_{node}" for node in range(n)]) if names == "text" else None
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    with csv.CSVWriter(path, schema, write_options=options) as writer:
        for start in range(0, num_edges, _PART):
            sources = rng.integers(0, n, min(_PART, num_edges - start))
            targets = (sources + rng.integers(1, n, len(sources))) % n
            columns = [pa.array(ends) if texts is None else texts.take(ends) for ends in (sources, targets)]
            writer.write_table(pa.table(columns, schema=schema))


def read(reader, path):
    """Read a file."""
    if reader == "pandas":
        import pandas

        return pandas.read_csv(path, header=None)
    if reader == "polars":
        import polars

        return polars.read_csv(path, has_header=False)
    from spinegraph import read_graph

    return read_graph(path)


def measured(work):
    """Print the seconds and peak memory of some work in this process as JSON."""
    baseline = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # sets the highest resident size back to the present one
    started, used = time.perf_counter(), time.process_time()
    result = work()
    found = {"seconds": time.perf_counter() - started, "processor_seconds": time.process_time() - used}
    print(json.dumps({**found, "peak_mb": resident("VmHWM") - baseline}))
    return result


def measure(reader, path, small, released):
    """Return one reading in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.reading", "--one", reader, str(path), str(small)]
    paths = [str(released)] if reader == "0.1.0" else []
    paths += [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def measure_all(largest, repeats):
    """Print and return what every reader takes for every file."""
    rows = []
    print(f"{'edges':>11} {'names':<8} {'reader':<11} {'seconds':>8} {'processor s':>12} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", _RELEASED, "src"], capture_output=True, check=True)
        Path(folder, "released.tar").write_bytes(archive.stdout)
        with tarfile.open(Path(folder, "released.tar")) as opened:
            opened.extractall(folder, filter="data")
        for names in ("integer", "text"):
            small, path = Path(folder, "small.csv"), Path(folder, "edges.csv")
            write_edges(small, 1000, names)
            for num_edges in (size for size in SIZES if size <= largest):
                write_edges(path, num_edges, names)
                runs = {reader: [] for reader in READERS}
                for _ in range(repeats):
                    for reader in READERS:
                        runs[reader].append(measure(reader, path, small, Path(folder, "src")))
                for reader, found in runs.items():
                    row = {"edges": num_edges, "names": names, "reader": reader}
                    for key in ("seconds", "processor_seconds"):
                        row[key] = round(statistics.median(run[key] for run in found), 3)
                    row["peak_mb"] = round(max(run["peak_mb"] for run in found), 1)
                    rows.append(row)
                    print(
                        f"{num_edges:>11,} {names:<8} {reader:<11} {row['seconds']:>8.2f} "
                        f"{row['processor_seconds']:>12.2f} {row['peak_mb']:>8.0f}",
                        flush=True,
                    )
    return rows


def measure_store(num_edges):
    """Print and return what building a store of so many edges takes under a limit of 2 GB."""
    code = (
        "import sys, warnings, spinegraph as sg; from benchmarks.reading import measured\n"
        "warnings.simplefilter('ignore')\n"
        "measured(lambda: sg.build_store(sys.argv[1], sys.argv[2], memory=2 * 10**9))"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "edges.csv")
        write_edges(path, num_edges, "integer")
        command = [sys.executable, "-c", code, str(path), str(Path(folder, "store"))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = {key: round(value, 1) for key, value in json.loads(done.stdout).items()}
        found = {"edges": num_edges, "file_mb": round(path.stat().st_size / 1e6, 1), **found}
    print(json.dumps(found))
    return found


def write_page(rows):
    """Write the table of docs/graphs.md."""
    lines = ["| edges, names | reader | seconds | processor seconds | peak MB |", "|---|---|--:|--:|--:|"]
    for row in rows:
        first = (
            f"{row['edges']:.0e}, {row['names']}".replace("e+0", "e") if row["reader"] == READERS[0] else ""
        )
        numbers = f"{row['seconds']:.2f} | {row['processor_seconds']:.2f} | {row['peak_mb']:.0f}"
        lines.append(f"| {first} | {row['reader']} | {numbers} |")
    before, first, rest = PAGE.read_text().partition(_MARKS[0])
    PAGE.write_text(before + first + "\n".join(lines) + "\n" + _MARKS[1] + rest.partition(_MARKS[1])[2])


def main():
    """Measure, print, add to the JSON and write the page's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("READER", "FILE", "SMALL"), help=argparse.SUPPRESS)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="leave larger files out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="measure nothing; the table from the JSON")
    parser.add_argument("--store", type=int, metavar="EDGES", help="build a store instead")
    given = parser.parse_args()
    if given.one:
        reader, path, small = given.one
        for name in ("duckdb", "pandas"):  # a small text needs neither
            import_module(name)
        read(reader, small)
        measured(lambda: read(reader, path))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    machine = describe("pyarrow", "duckdb", "pandas", "polars")
    if given.page:
        write_page(results["rows"])
        return
    if given.store:
        kept = [store for store in results.get("stores", []) if store["edges"] != given.store]
        found = {**measure_store(given.store), "load_average_at_start": machine["load_average_at_start"]}
        results["stores"] = [*kept, found]
    else:
        results |= {"machine": machine, "rows": measure_all(given.largest, given.repeats)}
        write_page(results["rows"])
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
