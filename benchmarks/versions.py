"""Speed and memory of this version beside 0.1.0, taking turns on one machine.

Run with ``python -m benchmarks.versions``; prints a table and writes ``benchmarks/results/versions.json``.
0.1.0 is a commit of this clone. Each task is a fresh process with two threads, which first does the same on
a small network, so that imports and compiled code are loaded; versions alternate, and medians are kept.

- fit: ``SPINE().fit(graph)`` with vectors. one node: ``transform`` of one new node with three neighbours in
  an overlay, the median of 50. bulk: ``transform`` of ego_twitter with 50 made columns. import: the public
  names of the first example. read: a CSV of a million edges.
- service: seconds until it is ready on Cora; then 300 look-ups and 100 inserts, one after the other.
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
import warnings
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
from benchmarks.machine import describe, resident, thread_environment

RESULTS = Path(__file__).parent / "results" / "versions.json"
ROOT = Path(__file__).parents[1]
RELEASED = "396e0bd"  # version 0.1.0
VERSIONS = ("0.1.0", "now")
TASKS = (
    *("import", "fit cora", "fit pubmed", "fit ego_twitter", "one node cora", "bulk ego_twitter"),
    *("read integers", "read text", "service"),
)


def network(name, columns=0):
    """Return a network of the data folder as a Graph; ``columns`` makes features."""
    from scipy.sparse import csr_array

    from spinegraph import Graph

    with np.load(Path(os.environ["SPINEGRAPH_DATA"]) / f"{name}.npz") as arrays:
        edges, n = arrays["edges"], int(arrays["num_nodes"])
        features = None
        if "feat_data" in arrays:
            parts = tuple(arrays[f"feat_{part}"] for part in ("data", "indices", "indptr"))
            features = csr_array(parts, shape=tuple(arrays["feat_shape"])).astype(np.float32)
    if columns:
        features = csr_array((np.random.default_rng(0).random((n, columns)) < 0.05).astype(np.float32))
    return Graph.from_edges(edges, num_nodes=n, features=features)


def made(columns, n=300):
    """Return a small network with as many columns."""
    from scipy.sparse import csr_array

    from spinegraph import Graph

    rng = np.random.default_rng(1)
    features = (rng.random((n, columns)) < 0.1).astype(np.float32) if columns else None
    edges = rng.integers(n, size=(4 * n, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    return Graph.from_edges(edges, num_nodes=n, features=None if features is None else csr_array(features))


def timed(work):
    """Return the seconds and processor seconds of some work."""
    started, used = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - started, "processor": time.process_time() - used}


def do(task, folder):
    """Do one task in this process and return its figures."""
    warnings.simplefilter("ignore")
    kind, _, name = task.partition(" ")
    if kind == "import":
        return timed(lambda: __import__("spinegraph").SPINE().get_params())
    import spinegraph as sg

    if kind == "fit":
        graph = network(name)
        sg.SPINE(threads=2).fit(made(8 if graph.has_features else 0))
        return timed(lambda: sg.SPINE(threads=2).fit(graph).embeddings_)
    if kind == "bulk":
        graph = network(name, columns=50)
        model = sg.SPINE(threads=2).fit(made(50, n=2000))
        model.transform(made(50))
        return timed(lambda: model.transform(graph))
    if kind == "one":
        graph = network("cora")
        model, seconds = sg.SPINE(threads=2).fit(graph), []
        for i in range(60):
            new = len(graph) + i
            later = graph.overlay([new], [(new, 7 * i + k) for k in (0, 3, 50)], graph.features[[i]])
            seconds.append(timed(lambda later=later, new=new: model.transform(later, nodes=[new])))
        return {key: statistics.median(each[key] for each in seconds[10:]) for key in seconds[0]}
    edges = np.random.default_rng(0).integers(200_000, size=(1_000_000, 2))
    prefix = "person " if name == "text" else ""
    path = Path(folder, f"{name}.csv")
    if not path.exists():
        path.write_text("source,target\n" + "".join(f"{prefix}{a},{prefix}{b}\n" for a, b in edges.tolist()))
        Path(folder, f"{name}-small.csv").write_text(f"source,target\n{prefix}1,{prefix}2\n")
    sg.read_graph(Path(folder, f"{name}-small.csv"))
    return timed(lambda: sg.read_graph(path))


def serve(environment, folder):
    """Return the figures of a service on Cora: start, one look-up and one insert."""
    make = "from benchmarks.versions import network; import spinegraph as sg, sys\n"
    make += "sg.SPINE(threads=2).fit(network('cora')).save(sys.argv[1])"
    model, store = Path(folder, "model"), Path(folder, "store")
    subprocess.run([sys.executable, "-W", "ignore", "-c", make, str(model)], env=environment, check=True)
    command = [sys.executable, "-W", "ignore", "-c", "from spinegraph.apps.cli import main; main()", "serve"]
    command += [str(model), "--store", str(store), "--port", "0", "--json"]
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        port = int(json.loads(process.stdout.readline())["url"].rpartition(":")[2].strip("/"))
        connection = HTTPConnection("127.0.0.1", port)

        def ask(method, path, body=None, headers=None):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            answer.read()
            return answer.status

        while ask("GET", "/readyz") != 200:
            time.sleep(0.02)
        found = {"start": time.perf_counter() - started}
        token = {"Authorization": f"Bearer {(store / 'token').read_text().strip()}"}
        token["Content-Type"] = "application/json"
        seconds = []
        for i in range(300):
            seconds.append(timed(lambda i=i: ask("GET", f"/v1/nodes/{i}/similar?n=10"))["seconds"])
        found["look-up"] = statistics.median(seconds)
        seconds = []
        for i in range(100):
            body = json.dumps({"name": 9000 + i, "edges": [i, i + 9, i + 70], "features": [0.0] * 1433})
            seconds.append(timed(lambda body=body: ask("POST", "/v1/nodes", body, token))["seconds"])
        found["insert"] = statistics.median(seconds)
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                found["peak_mb"] = int(line.split()[1]) / 1000
        return found
    finally:
        process.terminate()
        process.wait()


def measure(task, paths, folder):
    """Return the figures of a task with the version whose source is first in ``paths``."""
    environment = thread_environment(2) | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    if task == "service":
        with tempfile.TemporaryDirectory() as own:
            return serve(environment, own)
    command = [sys.executable, "-m", "benchmarks.versions", "--one", task, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--tasks", default="")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.one:
        found = do(*given.one)
        print(json.dumps(found | {"peak_mb": resident()}))
        return
    rows = {}
    machine = describe("scipy", "numba")
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", RELEASED, "src"], capture_output=True, check=True, cwd=ROOT
        )
        Path(folder, "released.tar").write_bytes(archive.stdout)
        with tarfile.open(Path(folder, "released.tar")) as opened:
            opened.extractall(folder, filter="data")
        sources = {"0.1.0": Path(folder, "src"), "now": ROOT / "src"}
        for task in (task for task in TASKS if task.startswith(tuple(given.tasks.split(",")))):
            runs = {version: [] for version in VERSIONS}
            for _ in range(given.repeats):
                for version in VERSIONS:
                    runs[version].append(measure(task, [sources[version], ROOT], folder))
            for key in runs["now"][0]:
                old, new = (statistics.median(run[key] for run in runs[version]) for version in VERSIONS)
                row = f"{task}, {key}"
                rows[row] = {"0.1.0": round(old, 5), "now": round(new, 5), "ratio": round(new / old, 3)}
                print(f"{row:<30}{old:>12.4f}{new:>12.4f}{new / old:>8.2f}", flush=True)
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}}
    RESULTS.write_text(json.dumps({"machine": machine, "rows": stored["rows"] | rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
