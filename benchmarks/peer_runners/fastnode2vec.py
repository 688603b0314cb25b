"""fastnode2vec: node2vec with p = q = 1 and as many walks as PecanPy's defaults (10 of 80 steps, window 10).

It has no defaults for these. No seed is set: it would be set again for every batch of walks.
"""

import numpy as np
from benchmarks.peer_runners.runner import run


class FastNode2Vec:
    """Node2vec by Numba and gensim, walks drawn while training."""

    packages = ("fastnode2vec", "gensim", "numba", "numpy")
    tried = "`model.wv[node]`"

    def __init__(self, settings):
        import fastnode2vec

        self.settings, self.package = settings, fastnode2vec

    def load(self, network):
        """Return the package's graph, and how many nodes there are: it sees no isolated ones."""
        graph = self.package.Graph(network.edges.tolist(), directed=False, weighted=False, verbose=False)
        return graph, network.num_nodes

    def fit(self, loaded):
        """Return vectors in the order of nodes, zero for isolated ones."""
        graph, n = loaded
        dim, threads = self.settings.dim, self.settings.threads
        self.model = self.package.Node2Vec(graph, dim=dim, walk_length=80, window=10, workers=threads)
        self.model.train(epochs=10, verbose=False)
        vectors = np.zeros((n, dim), dtype=np.float32)
        vectors[graph.node_names] = self.model.wv[graph.node_names]
        return vectors, {}

    def unseen(self, whole):
        """Ask for the vector of the last node."""
        return self.model.wv[whole.num_nodes - 1], None


if __name__ == "__main__":
    run(FastNode2Vec)
