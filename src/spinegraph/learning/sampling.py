"""Training data: local pairs from random walks, structural pairs by similarity."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import PaperConfig
from spinegraph.graph.graph import Graph
from spinegraph.kernels.walks import plain_walks
from spinegraph.structure.similarity import SimilarNodes

TRAINING, HELD_OUT, PRETRAINING = 1, 2, 3  # stages, with independent random streams
_HELD_OUT_SHARE, _MAX_HELD_OUT = 0.05, 2048  # of the edges
_MAX_STEPS_READ = 1 << 16  # steps of walks whose edges may be held out
ATTEMPTS = 8
_CORPUS = 101  # random stream of the training nodes, independent of the batches


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Positive pairs of training nodes, and negatives."""

    anchors: NDArray[np.int64]  # (b,)
    positives: NDArray[np.int64]  # (b,) never the anchor itself
    negatives: NDArray[np.int64]  # (s,) shared by the batch


@dataclass(frozen=True, eq=False)
class Corpus:
    """The nodes to train on, and walks over them."""

    nodes: NDArray[np.int64]  # (m,) positions in the graph, ascending
    walks: NDArray[Any]  # (w, l) indices into ``nodes``; -1 after a dead end


def gather_corpus(graph: Graph, config: PaperConfig) -> Corpus:
    """Walk from all nodes; in a graph of over ``training_nodes``, from random nodes until enough are met."""
    n = len(graph)
    if n <= config.training_nodes:
        roots, repeats = np.arange(n), config.local_walks
    else:
        rng = np.random.default_rng([config.seed, _CORPUS])
        roots, repeats = rng.permutation(n)[: config.training_nodes], 1
    length = config.local_walk_length
    walks = plain_walks(graph.adjacency(), roots, repeats, length, config.seed, threads=config.threads)
    if n <= config.training_nodes:
        return Corpus(np.arange(n), walks)
    # Keep the leading walks that meet at most so many nodes in total, by the first visit to each, and to -1.
    first = np.unique(walks, return_index=True)[1]
    new_per_walk = np.bincount(first // walks.shape[1], minlength=len(walks))
    count = int(np.searchsorted(np.cumsum(new_per_walk), config.training_nodes, side="right"))
    # One walk alone may meet too many.
    kept = walks[:count] if count else walks[:1, : np.sort(first)[config.training_nodes]]
    nodes = np.unique(kept[kept >= 0]).astype(np.int64)
    return Corpus(nodes, np.where(kept >= 0, np.searchsorted(nodes, kept), -1).astype(np.int32))


class PairSampler:
    """Draws batches of pairs: local ones from walks, structural ones from candidates.

    ``similar`` contains candidates of the m training nodes, or is None for local pairs alone. Negatives are
    drawn in proportion to degree^0.75; ``degrees`` is (m,).
    """

    def __init__(
        self, corpus: Corpus, similar: SimilarNodes | None, degrees: NDArray[Any], config: PaperConfig
    ) -> None:
        self.config, self.corpus, self.similar, self.degrees = config, corpus, similar, degrees
        walks = corpus.walks
        self.walks = walks[walks[:, 1] >= 0] if walks.shape[1] > 1 else walks[:0]
        self._num_nodes = len(corpus.nodes)
        rng = np.random.default_rng([config.seed, _CORPUS, 1])
        steps = self.walks[:, 1:].size
        some = np.arange(steps) if steps <= _MAX_STEPS_READ else rng.integers(steps, size=_MAX_STEPS_READ)
        line, first = np.divmod(some, max(walks.shape[1] - 1, 1))
        edges = np.unique(self._keys(self.walks[line, first], self.walks[line, first + 1]))
        held = min(int(np.ceil(len(edges) * _HELD_OUT_SHARE)), _MAX_HELD_OUT, max(len(edges) - 1, 0))
        order = rng.permutation(len(edges))
        self.held_out, self.edges = np.sort(edges[order[:held]]), edges[order[held:]]
        self.structural = np.zeros(0, dtype=np.int64)
        if similar is not None and similar.nodes.shape[1]:
            self.structural = np.flatnonzero(similar.nodes[:, 0] >= 0)
            self.cumulative = np.cumsum(similar.weights, axis=1)  # (m, c)
        chances = np.asarray(degrees, dtype=np.float64) ** 0.75
        chances = chances if chances.sum() > 0 else np.ones(len(chances))
        self.cumulative_negatives = np.cumsum(chances / chances.sum())

    @property
    def can_draw(self) -> bool:
        """Whether there are any pairs."""
        return len(self.edges) > 0 or len(self.structural) > 0

    def draw(self, step: int, stage: int = TRAINING, size: int | None = None) -> PairBatch:
        """Return the batch of one step; stage ``HELD_OUT`` draws edges that are never trained on."""
        config = self.config
        rng = np.random.default_rng([config.seed, stage, step])
        size = size or config.batch_size
        rate = config.structural_rate if len(self.structural) and stage != PRETRAINING else 0.0
        num_structural = int(rng.binomial(size, rate if len(self.edges) else 1.0))
        if stage == HELD_OUT and len(self.held_out):
            local = self._some_edges(rng, self.held_out, size - num_structural)
        else:
            local = self._local(rng, size - num_structural)
        structural = self._drawn_by_similarity(rng, num_structural)
        draws = rng.random(config.negative_samples)
        negatives = np.searchsorted(self.cumulative_negatives, draws, side="right")
        pairs = np.concatenate([local, structural])
        return PairBatch(pairs[:, 0], pairs[:, 1], np.minimum(negatives, len(self.cumulative_negatives) - 1))

    def _keys(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
        """Return a unique number for each unordered pair of training nodes."""
        low, high = np.minimum(left, right), np.maximum(left, right)
        return np.asarray(low.astype(np.int64) * self._num_nodes + high)

    def _local(self, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        """Draw two positions at most ``window`` apart on a walk, (size, 2).

        Pairs of one node and held-out edges are drawn again; after ``ATTEMPTS``, any training edge is drawn.
        """
        pairs = np.empty((size, 2), dtype=np.int64)
        waiting = np.arange(size)
        length = self.walks.shape[1] if size else 0
        reach = min(self.config.window, max(length - 1, 1))
        for _ in range(ATTEMPTS):
            if not len(waiting):
                return pairs
            line = self.walks[rng.integers(len(self.walks), size=len(waiting))]
            gap = rng.integers(1, reach + 1, size=len(waiting))
            first = rng.integers(0, length - gap)
            is_swapped = rng.random(len(waiting)) < 0.5
            each = np.arange(len(waiting))
            left, right = line[each, first], line[each, first + gap]
            pairs[waiting, 0] = np.where(is_swapped, right, left)
            pairs[waiting, 1] = np.where(is_swapped, left, right)
            waiting = waiting[(left == right) | np.isin(self._keys(left, right), self.held_out)]
        pairs[waiting] = self._some_edges(rng, self.edges, len(waiting))
        return pairs

    def _some_edges(self, rng: np.random.Generator, keys: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        pairs = np.stack(np.divmod(keys[rng.integers(len(keys), size=size)], self._num_nodes), axis=1)
        is_swapped = rng.random(size) < 0.5
        return np.where(is_swapped[:, None], pairs[:, ::-1], pairs)

    def _drawn_by_similarity(self, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        """Draw nodes, and a candidate of each by similarity, (size, 2)."""
        if not size or self.similar is None:
            return np.empty((0, 2), dtype=np.int64)
        anchors = self.structural[rng.integers(len(self.structural), size=size)]
        cumulative = self.cumulative[anchors]
        choice = (cumulative < rng.random((size, 1)) * cumulative[:, -1:]).sum(axis=1)
        choice = np.minimum(choice, cumulative.shape[1] - 1)
        return np.stack([anchors, self.similar.nodes[anchors, choice]], axis=1).astype(np.int64)
