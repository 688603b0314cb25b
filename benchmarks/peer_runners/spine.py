"""SPINE with its defaults; the variant "graph alone" does not see the features."""

from benchmarks.peer_runners.runner import run


class Spine:
    """Ours."""

    packages = ("spinegraph", "torch", "numba", "numpy")
    tried = "`model.transform(graph, nodes=[node])`"

    def __init__(self, settings):
        import spinegraph

        self.settings, self.package = settings, spinegraph

    def load(self, network):
        """Return the graph."""
        features = None if self.settings.variant == "graph alone" else network.sparse_features()
        return self.package.Graph.from_edges(network.edges, network.num_nodes, features=features)

    def fit(self, graph):
        """Return vectors in the order of nodes."""
        settings = {"dim": self.settings.dim, "seed": self.settings.seed, "threads": self.settings.threads}
        self.model = self.package.SPINE(**settings).fit(graph)
        return self.model.embeddings_.vectors, {}

    def unseen(self, whole):
        """Embed the last node alone."""
        last = whole.num_nodes - 1
        return self.model.transform(self.load(whole), nodes=[last])[last], None


if __name__ == "__main__":
    run(Spine)
