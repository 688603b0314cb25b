"""PecanPy: node2vec by its own defaults (p = q = 1, 10 walks of 80 steps a node, window 10, one epoch).

The mode is FirstOrderUnweighted, which PecanPy's command recommends over its default SparseOTF, and over
PreComp, for these defaults on unweighted networks; the walks have the same distribution in all three.
"""

import numpy as np
from benchmarks.peer_runners.runner import run


class PecanPy:
    """Node2vec by Numba and gensim."""

    packages = ("pecanpy", "gensim", "numba", "numpy")
    tried = "`model.transform(node)`; no method takes a new node, and `embed` returns an array alone"

    def __init__(self, settings):
        from pecanpy import pecanpy

        self.settings, self.mode = settings, getattr(pecanpy, settings.variant or "FirstOrderUnweighted")

    def load(self, network):
        """Return the model with its CSR arrays set as ``read_npz`` sets them."""
        model = self.mode(p=1, q=1, workers=self.settings.threads, random_state=self.settings.seed)
        matrix = network.sparse()
        model.indptr = matrix.indptr.astype(np.uint32)
        model.indices = matrix.indices.astype(np.uint32)
        model.data = matrix.data.astype(np.float32)
        model.set_node_ids(None, implicit_ids=True, num_nodes=network.num_nodes)
        self.model = model
        return model

    def fit(self, model):
        """Return vectors in the order of nodes."""
        return model.embed(dim=self.settings.dim, num_walks=10, walk_length=80, window_size=10), {}

    def unseen(self, whole):
        """Ask for the vector of the last node."""
        return self.model.transform(str(whole.num_nodes - 1)), None


if __name__ == "__main__":
    run(PecanPy)
