"""Unsupervised GraphSAGE by PyG, full batch: the baseline of ``paper``, tuned on Cora.

With labels it trains until the probe's validation score stops rising; the seconds are those up to the best
score, the scoring itself and all later epochs not counted. Without labels it trains 100 epochs. A network
without features gets PyG's LocalDegreeProfile.
"""

import time

import numpy as np
from benchmarks.peer_runners.runner import TooSlowError, run

EPOCHS, CHECK_EVERY = 100, 5


class GraphSage:
    """Two SAGEConv layers."""

    packages = ("torch-geometric", "torch", "numpy")
    tried = "the trained encoder on the network with the new node"

    def __init__(self, settings):
        import torch
        from paper.neural import graphsage

        import spinegraph

        torch.set_num_threads(settings.threads)
        self.settings, self.torch, self.package, self.train = settings, torch, spinegraph, graphsage

    def load(self, network):
        """Return the graph with features, and the labels' splits."""
        features = network.sparse_features()
        if features is None:
            features = self._degree_profile(network)
        graph = self.package.Graph.from_edges(network.edges, network.num_nodes, features=features)
        return graph, network.splits

    def _degree_profile(self, network):
        from torch_geometric.data import Data
        from torch_geometric.transforms import LocalDegreeProfile

        ends = np.ascontiguousarray(np.concatenate([network.edges, network.edges[:, ::-1]]).T)
        data = Data(edge_index=self.torch.from_numpy(ends), num_nodes=network.num_nodes)
        return LocalDegreeProfile()(data).x.numpy()

    def fit(self, loaded):
        """Return vectors in the order of nodes, and how training went."""
        graph, splits = loaded
        given = {"dim": self.settings.dim, "seed": self.settings.seed}
        limit = self.settings.limit
        if splits is not None:
            score, enough = (
                (lambda embed: self._score(embed(graph), splits)),
                0.6 * limit,
            )  # scoring takes time
            self.embed, info = self.train(graph, score, max_seconds=enough, **given)
            return self.embed(graph), {**info, "processor": None}  # scoring and later epochs are in it
        given |= {"max_epochs": EPOCHS, "check_every": CHECK_EVERY, "max_seconds": limit}
        self.embed, info = self.train(graph, self._always_better(), **given)
        kept = {name: info[name] for name in ("seconds", "epochs", "epoch_seconds")}
        return self.embed(graph), kept

    def _score(self, vectors, splits):
        from paper.probe import probe
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            return probe(
                vectors, splits["labels"], splits["train"], splits["val"], splits["test"]
            ).val_accuracy

    def _always_better(self):
        """Return a score that rises with every epoch, and gives up when all of them would take too long."""
        done, started = 0, time.perf_counter()

        def score(embed):
            nonlocal done
            done += CHECK_EVERY
            epoch = (time.perf_counter() - started) / done
            if epoch * EPOCHS > self.settings.limit:
                raise TooSlowError(f"{epoch:.1f} s an epoch, of which it takes {EPOCHS}")
            return done

        return score

    def unseen(self, whole):
        """Embed the network that has the last node."""
        graph, _ = self.load(whole)
        return self.embed(graph)[-1], None


if __name__ == "__main__":
    run(GraphSage)
