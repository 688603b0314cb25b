"""scikit-network's Spectral and GSVD with their own defaults; the variant names the class."""

import numpy as np
from benchmarks.peer_runners.runner import run


class ScikitNetwork:
    """Eigenvectors or singular vectors by Lanczos."""

    packages = ("scikit-network", "scipy", "numpy")

    def __init__(self, settings):
        from sknetwork import embedding

        self.settings, self.kind = settings, getattr(embedding, settings.variant)
        # Spectral's `predict` takes no vector any more.
        self.method = {"GSVD": "predict", "Spectral": "transform"}[settings.variant]
        self.tried = f"`model.{self.method}(adjacency_vector)`"

    def load(self, network):
        """Return the adjacency, which the package takes as it is."""
        return network.sparse()

    def fit(self, adjacency):
        """Return vectors in the order of nodes."""
        self.model = self.kind(n_components=self.settings.dim)
        return self.model.fit_transform(adjacency), {}

    def unseen(self, whole):
        """Ask for the vector of the last node, by its row of the adjacency."""
        row = np.zeros(whole.num_nodes - 1)
        row[whole.neighbors_of_last()] = 1
        return getattr(self.model, self.method)(row), None


if __name__ == "__main__":
    run(ScikitNetwork)
