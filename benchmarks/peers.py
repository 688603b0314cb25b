"""SPINE beside what people use today: seconds, memory, accuracy, and whether an unseen node gets a vector.

Run with ``python -m benchmarks.peers``; prints a table and writes ``benchmarks/results/peers.json``,
``docs/peers.md`` and ``docs/figures/peers.png`` and ``.svg``. Every peer has an environment of its own, made
on the first run under ``.peers/`` by pip from pinned versions.

- One process for each peer and network, held to two cores and two threads. It imports the peer, fits a made
  network of 300 nodes (which compiles what is compiled once, and serves the trial with an unseen node), reads
  the network, makes the peer's own graph object, and then fits. ``seconds`` are those of the fit alone, from
  that object to vectors in memory; import, warming up and loading are kept beside it.
- All make vectors of 200 numbers with documented defaults; what is not a default is said in the module of
  the peer in ``benchmarks/peer_runners``.
- GraphSAGE is timed up to the epoch with the best validation score, the scoring itself not counted. A network
  without features gets PyG's LocalDegreeProfile.
- Accuracy is that of one probe for all: one-vs-rest logistic regression, C chosen on validation nodes. Cora
  has its public split; amazon_photo has none and gets 20 nodes a class to train, 500 to validate and the
  rest to test, by seed 0.
- Memory is the highest resident size of the process, libraries and data included.
- A fit that has not ended after ``--limit`` seconds is stopped, and its row says so.
- Unseen: the peer is fitted without the last of the 300 nodes and then asked for its vector.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.machine import describe, thread_environment
from benchmarks.peer_runners.runner import Network

RESULTS = Path(__file__).parent / "results" / "peers.json"
# The pinned versions are in peer_runners/requirements. Where they cannot be installed (another Python or
# platform) the first line alone is tried; the versions used are written beside every result.
ROOT = Path(__file__).parents[1]
HOME = ROOT / ".peers"
REQUIREMENTS = Path(__file__).parent / "peer_runners" / "requirements"
_PATIENCE = 900  # seconds for one installation


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


def splits_of(dataset):
    """Return the public training, validation and test nodes, or made ones where there are none."""
    if dataset.train is not None:
        return dataset.train, dataset.val, dataset.test
    order = np.random.default_rng(0).permutation(len(dataset.labels))
    classes = np.unique(dataset.labels[dataset.labels >= 0])
    train = np.concatenate([order[dataset.labels[order] == each][:20] for each in classes])
    rest = order[~np.isin(order, train) & (dataset.labels[order] >= 0)]
    return train, rest[:500], rest[500:]


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
    from paper.probe import probe
    from threadpoolctl import threadpool_limits

    with np.load(vectors_file) as file, threadpool_limits(1):
        found = probe(file["vectors"], splits["labels"], splits["train"], splits["val"], splits["test"])
    return {"accuracy": found.accuracy, "C": found.C}


class InstallationError(Exception):
    """No environment could be made; says why."""


def python_of(environment, home=HOME):
    """Return the Python of an environment, made first if it is missing or its requirements have changed."""
    if environment is None:
        return sys.executable
    wanted = REQUIREMENTS / f"{environment}.txt"
    state = hashlib.sha256(f"{sys.version} {wanted.read_text()}".encode()).hexdigest()
    folder = home / environment
    python, stamp = folder / "bin" / "python", folder / "made.json"
    if stamp.exists() and json.loads(stamp.read_text())["state"] == state:
        return str(python)
    print(f"making the environment of {environment}", flush=True)
    pinned, by_name = ["--requirement", str(wanted)], [wanted.read_text().split()[0]]
    for what in (pinned, by_name):
        failure = _install(folder, python, what)
        if failure is None:
            stamp.write_text(json.dumps({"state": state, "installed": what[-1]}))
            return str(python)
    raise InstallationError(failure)


def _install(folder, python, what):
    """Make a fresh environment; return None, or why it failed."""
    shutil.rmtree(folder, ignore_errors=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    for command in ([sys.executable, "-m", "venv", str(folder)], install):
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return f"not installed after {_PATIENCE} s"
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return (errors or done.stderr.splitlines() or ["no reason given"])[-1][:300]
    return None


def merged(before, new):
    """Return all rows in order, a new one in the place of an old one of the same cell."""
    alike = [row for row in before if (row["dim"], row["threads"]) == (new["dim"], new["threads"])]
    cells = {_cell(row): row for row in [*alike, new]}
    order = {
        (peer.name, network): (NETWORKS.index(network), place)
        for place, peer in enumerate(PEERS)
        for network in NETWORKS
    }
    known = [row for row in cells.values() if (row["peer"], row["network"]) in order]
    return sorted(known, key=lambda row: (*order[row["peer"], row["network"]], row["seed"]))


def _cell(row):
    return row["peer"], row["network"], row["seed"]


def wanted(given, rows):
    """Return the cells that are asked for: peer, network and seed."""
    there = {_cell(row) for row in rows} if given.missing else set()
    chosen = [peer for peer in PEERS if peer.name in given.peers]
    every = product(given.networks, chosen, range(given.seeds))
    return [(peer, network, seed) for network, peer, seed in every if (peer.name, network, seed) not in there]


def show(row):
    """Print one row."""
    cells = [f"{row['network']:<13}{row['peer']:<27}"]
    if row["status"] == "ok":
        accuracy = f"{row['accuracy']:.4f}" if "accuracy" in row else ""
        start = row["import_seconds"] + row["warm_seconds"]
        cells += [f"{row['seconds']:>8.2f} s", f"{row['peak_mb']:>7,.0f} MB", f"{accuracy:>7}"]
        cells += [f"  load {row['load_seconds']:.2f} s, start {start:.1f} s, unseen: {row['unseen']['can']}"]
    else:
        cells.append(f"{row['status']}: {row['reason']}")
    print(*cells, flush=True)


def main():
    """Measure what is asked for, and write table, page and figure of all there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = [peer.name for peer in PEERS]
    parser.add_argument(
        "--peers", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--limit", type=float, default=300, help="seconds for one fit")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dim", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--missing", action="store_true", help="only cells without a result")
    parser.add_argument("--draw", action="store_true", help="measure nothing; page and figure from the JSON")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and with it the peer that runs
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": []}
    started = time.perf_counter()
    if not given.draw:
        settings = {"dim": given.dim, "threads": given.threads, "limit": given.limit}
        found |= {"machine": describe(), "settings": {**settings, "about": __doc__.strip()}}
        for peer, network, seed in wanted(given, found["rows"]):
            row = measure(peer, network, settings, seed)
            show(row)
            found["rows"] = merged(found["rows"], row)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")  # a run that is stopped keeps what it has
        print(f"{time.perf_counter() - started:.0f} s in all")
    from benchmarks.peers_page import draw, write_page

    write_page(found)
    draw(found)


if __name__ == "__main__":
    main()
