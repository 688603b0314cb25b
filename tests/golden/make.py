"""Make the golden folders: what version 0.1.0 saved, for later versions to open.

Run from anywhere, with version 0.1.0 and no other (a checkout of it in OLD)::

    PYTHONPATH=OLD/src python tests/golden/make.py

Everything goes to ``0.1.0`` beside this file. That folder is never overwritten: no later version could make
it again. ``vectors.npz`` holds, as ``<folder>.<what>``, the vectors that 0.1.0 gave.
"""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from datetime import date, timedelta
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa

import spinegraph as sg

VERSION = "0.1.0"
FOLDER = Path(__file__).resolve().parent / VERSION
SETTINGS = {"dim": 16, "steps": 30, "seed": 0}
_COMMAND = [sys.executable, "-c", "from spinegraph.apps.cli import main; main()"]


def pairs(n, seed):
    """Return edges between positions: a ring with groups, the last node alone."""
    rng = np.random.default_rng(seed)
    groups, found = np.arange(n - 1) * 5 // (n - 1), {(i, i + 1) for i in range(n - 2)}
    while len(found) < 3 * n:
        a, b = sorted(rng.integers(0, n - 1, 2).tolist())
        if a != b and (groups[a] == groups[b] or rng.random() < 0.05):
            found.add((a, b))
    return sorted(found)


def words(n, seed):
    """Return 0/1 features that go with the groups."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) * 5 // n
    return (rng.random((n, 10)) < 0.15 + 0.5 * (np.arange(10) // 2 == groups[:, None])).astype(np.float32)


def graph_with_words(n, seed, *, weighted=False):
    """Return a graph with text names that do not ascend, and features with column names."""
    edges, rng = pairs(n, seed), np.random.default_rng(seed)
    names = [f"n{i}" for i in range(n)]
    return sg.Graph.from_edges(
        [(names[a], names[b]) for a, b in edges],
        weights=rng.random(len(edges)) + 0.5 if weighted else None,
        names=names,
        features=words(n, seed),
        feature_names=[f"word {i}" for i in range(10)],
    )


def write_tables(folder, prefix, n, seed):
    """Write ``edges.csv`` with weights and ``people.csv`` with a column of every kind, and gaps."""
    rng = np.random.default_rng(seed)
    names = [f"{prefix}person {i:02d}" for i in range(n)]
    with (folder / f"{prefix}edges.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [(names[a], names[b], round(float(rng.random()) + 0.5, 3)) for a, b in pairs(n, seed)]
        csv.writer(file, lineterminator="\n").writerows([("source", "target", "weight"), *rows])
    with (folder / f"{prefix}people.csv").open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(("name", "age", "team", "joined", "remote", "town", "about"))
        for i, name in enumerate(names):
            age = "" if rng.random() < 0.1 else int(rng.integers(20, 60))
            team = "" if rng.random() < 0.1 else ("north", "south", "east", "west", "öst")[i * 5 // n]
            joined = date(2015, 1, 1) + timedelta(int(rng.integers(0, 3000)))
            remote = ("no", "yes")[int(rng.random() < 0.5)]
            about = f"likes walk {rng.integers(10**6)} and, on some days, book {rng.integers(10**6)}"
            write((name, age, team, joined, remote, f"town {min(i, 69)}", about))


class Service:
    """A service of the command line; ``vectors`` is what it serves."""

    def __init__(self, model, store):
        command = [*_COMMAND, "serve", str(model), "--store", str(store), "--port", "0", "--json"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        about = json.loads(self.process.stdout.readline())
        headers = {"Authorization": f"Bearer {(Path(store) / 'token').read_text().strip()}"}
        self.client = httpx.Client(base_url=about["url"], headers=headers, timeout=30, trust_env=False)

    def send(self, method, path, **options):
        """Send a request that must be answered well; return the answer."""
        return self.client.request(method, path, **options).raise_for_status()

    def vectors(self):
        """Return names and float32 vectors of one moment."""
        answer = self.send("GET", "/v1/export", params={"format": "arrow"})
        table = pa.ipc.open_stream(answer.content).read_all()
        return np.array(table["name"].to_pylist()), np.array(table["vector"].to_pylist(), np.float32)

    def end(self, how=signal.SIGTERM):
        """Stop in order, or as a power cut would."""
        self.client.close()
        self.process.send_signal(how)
        self.process.communicate(timeout=60)


def serve_table(service):
    """Change the graph of model_table: rows of the table, weighted edges, removals."""
    row = {"age": 31, "team": "south", "joined": "2021-05-04", "remote": "yes", "town": "town 7"}
    for name, edges, features in (
        ("zoe", [("person 03", 1.5), ("person 04", 0.5)], row),
        ("yan", [("zoe", 1.0), ("person 40", 2.0)], {"team": "öst"}),
        ("xia", [], {}),
    ):
        links = [{"to": to, "weight": weight} for to, weight in edges]
        service.send("POST", "/v1/nodes", json={"name": name, "edges": links, "features": features})
    edge = {"source": "xia", "target": "person 11", "weight": 0.7}
    service.send("POST", "/v1/edges", json={"edges": [edge]})
    service.send("DELETE", "/v1/nodes/person 20")
    service.send("DELETE", "/v1/edges", params={"source": "person 01", "target": "person 02"})


def serve_graph_alone(service):
    """Change the graph of model_graph_alone: names are numbers, no features."""
    for name, edges in ((100, [3, 4, 5]), (101, [100, 30]), (102, [])):
        service.send("POST", "/v1/nodes", json={"name": name, "edges": edges})
    service.send("POST", "/v1/edges", json={"edges": [{"source": 101, "target": 12}]})
    service.send("DELETE", "/v1/nodes/20")


def serve_features(service):
    """Change the graph of model_features, fold it into a new base graph, change it again."""
    new = [{"name": f"new {i}", "edges": [f"n{i}", f"n{i + 9}"], "features": {"word 1": 1}} for i in range(3)]
    service.send("POST", "/v1/nodes", json={"nodes": new})
    service.send("DELETE", "/v1/nodes/n20")
    service.send("POST", "/v1/compact", json={})
    service.send("POST", "/v1/nodes", json={"name": "late", "edges": ["new 1", "n5"], "features": [0.5] * 10})
    service.send("DELETE", "/v1/edges", params={"source": "n1", "target": "n2"})


def make(folder):
    """Write everything into an empty folder; return the arrays of ``vectors.npz``."""
    write_tables(folder, "", 80, 3)
    write_tables(folder, "later_", 30, 4)
    table = sg.read_graph(folder / "edges.csv", folder / "people.csv")
    # What later versions transform: a store for the first two models, two tables for the third.
    sg.write_store(graph_with_words(50, 2, weighted=True), folder / "graph_store")
    later = sg.open_store(folder / "graph_store")
    vectors = {}
    for name, graph in (
        ("model_features", graph_with_words(60, 0)),
        ("model_graph_alone", sg.Graph.from_edges(np.array(pairs(60, 1)), num_nodes=60)),
        ("model_table", table),
    ):
        model = sg.SPINE(**SETTINGS).fit(graph)
        if name == "model_table":
            tables = folder / "later_edges.csv", folder / "later_people.csv"
            later = sg.read_graph(*tables, encoder=model.table_encoder_)
        model.save(folder / name)
        for what, found in (("embeddings", model.embeddings_), ("transform", model.transform(later))):
            vectors[f"{name}.{what}_names"] = np.array(found.names.tolist())
            vectors[f"{name}.{what}"] = found.vectors
    for name, model, change, end in (
        ("service_store", "model_table", serve_table, signal.SIGTERM),
        ("service_store_killed", "model_graph_alone", serve_graph_alone, signal.SIGKILL),
        ("service_store_compacted", "model_features", serve_features, signal.SIGTERM),
    ):
        service = Service(folder / model, folder / name)
        try:
            change(service)
            vectors[f"{name}.served_names"], vectors[f"{name}.served"] = service.vectors()
        finally:
            service.end(end)
    return vectors


def main():
    """Make the folder whole or not at all."""
    if sg.__version__ != VERSION:
        sys.exit(f"this is spinegraph {sg.__version__}; golden folders are made with {VERSION}")
    if FOLDER.exists():
        sys.exit(f"{FOLDER}: is there already, and is never overwritten")
    warnings.simplefilter("ignore", sg.errors.SpineWarning)  # a column is skipped, the later data is unlike
    with tempfile.TemporaryDirectory() as place:
        partial = Path(place) / VERSION
        partial.mkdir()
        np.savez_compressed(partial / "vectors.npz", **make(partial))
        shutil.copytree(partial, FOLDER)


if __name__ == "__main__":
    main()
