"""pycleora with its own defaults: 40 rounds of propagation, whitened after each.

The variant "features" starts from the features (``embed_with_node_features``, defaults). pycleora takes as
many features as a vector has numbers, so it is given the leading singular vectors of rows of unit length.
"""

import numpy as np
from benchmarks.peer_runners.runner import run

COLUMNS = "complex::reflexive::node"


class Cleora:
    """Markov propagation in Rust."""

    packages = ("pycleora", "numpy", "scipy")
    tried = "`embed_inductive(...)` with the new node's edges"

    def __init__(self, settings):
        import pycleora

        self.settings, self.package = settings, pycleora

    def load(self, network):
        """Return the package's graph, the start where features give it, and how many nodes there are."""
        self.lines = [f"{a} {b}" for a, b in network.edges.tolist()]
        matrix = self.package.SparseMatrix
        self.graph = matrix.from_iterator(iter(self.lines), COLUMNS, num_workers=self.settings.threads)
        return self.graph, self._start(network), network.num_nodes

    def _start(self, network):
        if self.settings.variant != "features":
            return None
        from scipy.sparse.linalg import svds

        rows = network.sparse_features().astype(np.float64)
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1))
        rows = rows.multiply(1 / np.maximum(lengths, 1e-12)[:, None]).tocsr()
        rank = min(self.settings.dim, min(rows.shape) - 1)
        left, values, _ = svds(rows, k=rank, random_state=self.settings.seed)
        start = np.zeros((network.num_nodes, self.settings.dim), dtype=np.float32)
        start[:, :rank] = left * values
        return {str(node): row for node, row in enumerate(start)}

    def fit(self, loaded):
        """Return vectors in the order of nodes, zero for isolated ones, which the graph does not have."""
        graph, start, n = loaded
        dim, threads = self.settings.dim, self.settings.threads
        if start is None:
            found = self.package.embed(graph, dim, seed=self.settings.seed, num_workers=threads)
        else:
            found = self.package.embed_with_node_features(graph, start, num_workers=threads)
        self.found = found
        return self._placed(graph, found, n), {}

    def _placed(self, graph, found, n):
        vectors = np.zeros((n, self.settings.dim), dtype=np.float32)
        vectors[np.array(graph.entity_ids, dtype=np.int64)] = found
        return vectors

    def unseen(self, whole):
        """Ask for the vector of the last node; all other vectors come back with it."""
        last = whole.num_nodes - 1
        new = [f"{last} {neighbor}" for neighbor in whole.neighbors_of_last()]
        updated, found = self.package.embed_inductive(
            self.graph, self.found, self.lines, new, COLUMNS, num_workers=self.settings.threads
        )
        vectors = self._placed(updated, found, whole.num_nodes)
        return vectors[last], vectors[:last]


if __name__ == "__main__":
    run(Cleora)
