"""What every peer's process does: warm up, try an unseen node, fit, and write down what it took.

A peer is a class in a module beside this one; its process is ``python -m benchmarks.peer_runners.MODULE``,
run by the Python of the peer's own environment. Only NumPy is needed here. The network comes as an npz file
(:class:`Network`); vectors go to an npz file and everything else to a JSON file, which is written once
before the fit (so that a fit that never ends differs from a start that never ends) and again after it.
"""

import argparse
import json
import os
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.machine import resident

_SPLITS = ("labels", "train", "val", "test")
_FEATURES = ("data", "indices", "indptr", "shape")


class TooSlowError(Exception):
    """The fit would take longer than the limit; says how long."""


@dataclass(frozen=True, eq=False)
class Network:
    """Undirected edges, int64 (m, 2), each once; CSR features and labels where there are any."""

    edges: Any
    num_nodes: int
    features: dict[str, Any] | None = None  # the four arrays of a CSR matrix
    splits: dict[str, Any] | None = None  # labels (n,), and train, val and test positions

    @classmethod
    def read(cls, path):
        """Return the network of a file that ``write`` wrote."""
        with np.load(path) as file:
            features = {name: file[name] for name in _FEATURES} if "indptr" in file else None
            splits = {name: file[name] for name in _SPLITS} if "labels" in file else None
            return cls(file["edges"], int(file["num_nodes"]), features, splits)

    def write(self, path):
        """Write all arrays to one npz file."""
        np.savez(
            path, edges=self.edges, num_nodes=self.num_nodes, **(self.features or {}), **(self.splits or {})
        )

    def without_last(self):
        """Return the network as it was before its last node came, without labels."""
        edges = self.edges[(self.edges < self.num_nodes - 1).all(axis=1)]
        features = self.features
        if features is not None:
            indptr = features["indptr"][:-1]
            kept = {name: features[name][: indptr[-1]] for name in ("data", "indices")}
            features = {**kept, "indptr": indptr, "shape": features["shape"] - np.array([1, 0])}
        return Network(edges, self.num_nodes - 1, features)

    def neighbors_of_last(self):
        """Return the last node's neighbours, int64 (degree,)."""
        met = self.edges[(self.edges == self.num_nodes - 1).any(axis=1)]
        return np.setdiff1d(met, [self.num_nodes - 1])

    def sparse(self):
        """Return the symmetric adjacency as a SciPy CSR matrix of ones, (n, n)."""
        from scipy.sparse import csr_matrix

        ends = np.concatenate([self.edges, self.edges[:, ::-1]]).T
        return csr_matrix((np.ones(ends.shape[1]), tuple(ends)), shape=(self.num_nodes, self.num_nodes))

    def sparse_features(self):
        """Return the features as a SciPy CSR array, or None."""
        from scipy.sparse import csr_array

        if self.features is None:
            return None
        data, indices, indptr, shape = (self.features[name] for name in _FEATURES)
        return csr_array((data, indices, indptr), shape=tuple(shape))


@dataclass(frozen=True)
class Settings:
    """What every peer is given alike."""

    dim: int
    threads: int
    seed: int
    limit: float
    variant: str


def unseen_trial(peer, small):
    """Return what came of asking a peer, fitted without a network's last node, for that node's vector."""
    held = small.without_last()
    graph = peer.load(held)
    vectors, _ = peer.fit(graph)
    started = time.perf_counter()
    try:
        vector, others = peer.unseen(small)
    except Exception as error:  # whatever a peer's own code makes of a call it is not made for
        return {"can": "no", "tried": peer.tried, "answer": f"{type(error).__name__}: {error}"[:200]}
    found = {"tried": peer.tried, "seconds": time.perf_counter() - started}
    vector = np.asarray(vector).reshape(-1)
    if vector.shape != (vectors.shape[1],) or not np.isfinite(vector).all():
        return {**found, "can": "no", "answer": f"no finite vector of {vectors.shape[1]} numbers came back"}
    if others is None:
        return {**found, "can": "yes", "answer": "a vector; those of all other nodes stay as they were"}
    moved = np.linalg.norm(others - vectors, axis=1) > 1e-3 * np.linalg.norm(vectors, axis=1)
    again = peer.unseen(small)[0]
    repeats = "the same" if np.allclose(vector, again, rtol=1e-3, atol=1e-6) else "another"
    answer = f"a vector, but {moved.mean():.0%} of the others moved, and a second call gives {repeats} vector"
    return {**found, "can": "yes" if not moved.any() else "starts over", "answer": answer}


def measure(peer_class, network_file, small_file, settings, vectors_file, report_file):
    """Warm up, fit once, and write vectors and report."""
    started = time.perf_counter()
    peer = peer_class(settings)
    report = {"import_seconds": time.perf_counter() - started}
    report["versions"] = {name: version(name) for name in peer_class.packages}
    started = time.perf_counter()
    report["unseen"] = unseen_trial(peer, Network.read(small_file))
    report["warm_seconds"] = time.perf_counter() - started
    network = Network.read(network_file)
    started = time.perf_counter()
    graph = peer.load(network)
    report |= {"load_seconds": time.perf_counter() - started, "before_mb": resident("VmRSS")}
    Path(report_file).write_text(json.dumps(report))
    started, processor = time.perf_counter(), time.process_time()
    try:
        vectors, info = peer.fit(graph)
    except TooSlowError as slow:
        report |= {"status": "over", "reason": str(slow), "peak_mb": resident("VmHWM")}
    else:
        took = {"seconds": time.perf_counter() - started, "processor": time.process_time() - processor}
        report |= {"status": "ok", "peak_mb": resident("VmHWM"), **took, **info}
        if vectors.shape != (network.num_nodes, settings.dim) or not np.isfinite(vectors).all():
            raise RuntimeError(
                f"vectors of shape {vectors.shape} or not finite; {peer_class.__name__} failed"
            )
        np.savez(vectors_file, vectors=vectors.astype(np.float32))
    Path(report_file).write_text(json.dumps(report))


def run(peer_class):
    """Do what the command line says with one peer."""
    parser = argparse.ArgumentParser(description=peer_class.__doc__)
    for name in ("network", "small", "vectors", "report"):
        parser.add_argument(name)
    for name, kind in (("dim", int), ("threads", int), ("seed", int), ("limit", float), ("variant", str)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    given = parser.parse_args()
    # So many cores and no more, whatever a peer does with its threads.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    settings = Settings(given.dim, given.threads, given.seed, given.limit, given.variant)
    measure(peer_class, given.network, given.small, settings, given.vectors, given.report)
