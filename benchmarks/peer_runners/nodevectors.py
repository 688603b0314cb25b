"""ProNE of nodevectors with its own defaults: a randomised SVD, then spectral propagation."""

from benchmarks.peer_runners.runner import run


class ProNE:
    """ProNE, by SciPy and scikit-learn."""

    packages = ("nodevectors", "scipy", "scikit-learn", "numpy")
    tried = "`model.predict_new(neighbours)`, the mean of the neighbours' vectors"

    def __init__(self, settings):
        import nodevectors

        self.settings, self.package = settings, nodevectors

    def load(self, network):
        """Return the adjacency, which the package takes as it is."""
        return network.sparse()

    def fit(self, adjacency):
        """Return vectors in the order of nodes."""
        self.model = self.package.ProNE(n_components=self.settings.dim, verbose=False)
        return self.model.fit_transform(adjacency), {}

    def unseen(self, whole):
        """Ask for the vector of the last node."""
        return self.model.predict_new(whole.neighbors_of_last()), None


if __name__ == "__main__":
    run(ProNE)
