"""Who is compared on what, and one cell of the table: one peer on one network, in a process of its own."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.fit_speed import splits_of
from benchmarks.machine import thread_environment
from benchmarks.peer_runners.runner import Network
from benchmarks.peers_environments import HOME, ROOT, InstallationError, python_of


class Peer(NamedTuple):
    """A row of the tables: the module that runs it, its environment (None: this one) and what it sees."""

    name: str
    module: str
    environment: str | None
    variant: str
    sees: str  # "features", "features or degrees", "graph"


OURS = "spinegraph"
PEERS = (
    Peer(OURS, "spine", None, "", "features or degrees"),
    Peer("spinegraph, graph alone", "spine", None, "graph alone", "graph"),
    Peer("GraphSAGE (PyG)", "graphsage", "graphsage", "", "features or degrees"),
    Peer("pycleora, features", "pycleora", "pycleora", "features", "features"),
    Peer("pycleora", "pycleora", "pycleora", "", "graph"),
    Peer("ProNE (nodevectors)", "nodevectors", "nodevectors", "", "graph"),
    Peer("spectral (scikit-network)", "scikit_network", "scikit_network", "Spectral", "graph"),
    Peer("GSVD (scikit-network)", "scikit_network", "scikit_network", "GSVD", "graph"),
    Peer("fastnode2vec", "fastnode2vec", "fastnode2vec", "", "graph"),
    Peer("PecanPy", "pecanpy", "pecanpy", "", "graph"),
)
MADE = {"made_10k": 10_000, "made_100k": 100_000}
NETWORKS = ("cora", "amazon_photo", "ego_twitter", *MADE)
_START = 300  # seconds for import, warming up and loading, which only a very busy machine comes near
SMALL = "small"  # 300 nodes, for warming up and for the trial with an unseen node


def network_of(name):
    """Return a network as every peer is given it."""
    from spinegraph import datasets, made

    if name == SMALL:
        return _network(made.random_graph(300, 5, features=220), None)
    if name in MADE:
        return _network(made.random_graph(MADE[name], 10, features=100), None)
    dataset = datasets.load(name)
    if dataset.labels is None:
        return _network(dataset.graph, None)
    splits = dict(zip(("train", "val", "test"), splits_of(dataset), strict=True))
    return _network(dataset.graph, {"labels": dataset.labels, **splits})


def _network(graph, splits):
    ends = np.stack([np.repeat(np.arange(len(graph)), graph.degrees), graph.indices], axis=1)
    features = graph.features
    if features is not None:
        parts = {"data": features.data, "indices": features.indices, "indptr": features.indptr}
        features = {**parts, "shape": np.array(features.shape)}
    return Network(ends[ends[:, 0] < ends[:, 1]].astype(np.int64), len(graph), features, splits)


def network_file(name):
    """Return the file of a network, written if it is not there yet."""
    path = HOME / "networks" / f"{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        network_of(name).write(path)
    return path


def skipped(peer, network):
    """Return why a peer has nothing to do on a network, or None."""
    if network.features is None and peer.sees == "features":
        return "needs features"
    if network.features is None and peer.variant == "graph alone":
        return "as spinegraph"
    return None


def measure(peer, name, settings, seed=0, python=None):
    """Return one row: what became of one peer on one network."""
    row = {"peer": peer.name, "network": name, "seed": seed, **settings}
    row["load_average"] = round(os.getloadavg()[0], 2)
    path = network_file(name)
    network = Network.read(path)
    if reason := skipped(peer, network):
        return {**row, "status": "not run", "reason": reason}
    try:
        python = python or python_of(peer.environment)
    except InstallationError as failure:
        return {**row, "status": "not installed", "reason": str(failure)}
    with tempfile.TemporaryDirectory() as folder:
        vectors_file, report_file = Path(folder) / "vectors.npz", Path(folder) / "report.json"
        command = [
            python,
            "-m",
            f"benchmarks.peer_runners.{peer.module}",
            str(path),
            str(network_file(SMALL)),
        ]
        command += [str(vectors_file), str(report_file), "--seed", str(seed), "--variant", peer.variant]
        command += [part for key, value in settings.items() for part in (f"--{key}", str(value))]
        failure = _wait(command, report_file, settings)
        report = json.loads(report_file.read_text()) if report_file.exists() else {}
        row |= {"status": "ok"} | report | (failure or {})
        if row["status"] == "ok" and network.splits is not None:
            row |= _probed(vectors_file, network.splits)
    return row


def _wait(command, report_file, settings):
    """Run a peer to its end or to the limit, counted from the start of the fit; return what went wrong."""
    environment = thread_environment(settings["threads"]) | {"RAYON_NUM_THREADS": str(settings["threads"])}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **pipes)
    started = time.time()
    try:
        while True:
            try:
                _, errors = process.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                begun = report_file.stat().st_mtime if report_file.exists() else None
                deadline = started + _START if begun is None else begun + settings["limit"]
                if time.time() > deadline:
                    return {"status": "over", "reason": "stopped" + " before the fit began" * (begun is None)}
    finally:  # over the limit, or this process itself is being ended
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        last = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
        return {"status": "failed", "reason": last[:300] or f"ended with code {process.returncode}"}
    return None


def _probed(vectors_file, splits):
    from threadpoolctl import threadpool_limits

    from spinegraph.analysis.evaluation import probe

    with np.load(vectors_file) as file, threadpool_limits(1):
        found = probe(file["vectors"], splits["labels"], splits["train"], splits["val"], splits["test"])
    return {"accuracy": found.accuracy, "C": found.C}
