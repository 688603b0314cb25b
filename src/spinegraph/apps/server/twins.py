"""Structural twins in a graph that changes: the nodes whose profiles are nearest, wherever they are."""

from threading import Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.nearest import Nearest
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.problems import ProblemError
from spinegraph.graph.graph import Graph
from spinegraph.graph.patch import REMOVED
from spinegraph.structure.distances import comparison

_EQUAL = 1e-4  # relative; distances are float32
_MOST_NOTES = 1_000  # changes that are noted one by one
_ENOUGH = 4  # times as many nodes are compared as are asked for
_PATIENCE = 4.0  # seconds that a request waits for the profiles of all nodes


class Twins:
    """Compares a node's profile by dynamic time warping with those of nodes of like degree.

    Those are the nodes with half to twice as many links; a profile alone does not tell a hub from its leaves.

    Profiles of all nodes are computed beside the work when first asked for. From then on only those are
    computed anew whose vectors were, by the same rule and within the same tolerance.

    Parameters
    ----------
    generator : Generator

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.apps.server.live import Live
    >>> model = SPINE(dim=4, steps=5).fit(made.barbell(8, bridge=3))
    >>> live = Live(model.generator_, model.graph_)
    >>> live.compute_all(model.embeddings_.vectors)
    >>> Twins(model.generator_).nearest(live.tip, 7, 1).positions  # its mirror image
    array([11])
    """

    def __init__(self, generator: Any) -> None:
        self._inputs = generator.inputs
        self._lock, self._noting = Lock(), Lock()  # the second is never held for long: the writer takes it
        self._making: Thread | None = None
        self._base: Graph | None = None
        self._rows = np.zeros((0, 0), np.float32)
        self._stale: list[tuple[int, NDArray[np.int64]]] = []  # version, what it computed anew

    def keep_up(self, snapshot: Snapshot) -> None:
        """Note what a change concerns."""
        with self._noting:
            self._stale.append((snapshot.version, snapshot.refreshed))
            if len(self._stale) > _MOST_NOTES:
                noted = np.unique(np.concatenate([positions for _, positions in self._stale]))
                self._stale = [(snapshot.version, noted)]

    def prepare(self, snapshot: Snapshot) -> None:
        """Begin to compute the profiles of all nodes, where they are not known; returns at once."""
        with self._noting:
            is_at_work = self._making is not None and self._making.is_alive()
            if not is_at_work and self._base is not snapshot.overlay.base:
                self._making = Thread(target=self._make, args=(snapshot,), name="twins", daemon=True)
                self._making.start()

    def _make(self, snapshot: Snapshot) -> None:
        rows = self._inputs.profile(snapshot.overlay).weights
        with self._lock:
            self._base, self._rows = snapshot.overlay.base, rows

    def nearest(self, snapshot: Snapshot, position: int, n: int) -> Nearest:
        """Return the ``n`` nodes whose profiles are nearest and exp(-distance), nearest first.

        Of equal profiles those come first whose vectors are more alike.
        """
        rows = self._profiles(snapshot)
        others = np.flatnonzero(snapshot.overlay.patch.places != REMOVED)
        others = _alike_in_degree(snapshot, position, others[others != position], n)
        apart = comparison("dtw", rows, rows)(np.full(len(others), position), others)
        n = min(n, len(others))
        if not n:
            return Nearest(others, np.zeros(0))
        last = np.partition(apart, n - 1)[n - 1]
        near = np.flatnonzero(apart <= last * (1 + _EQUAL) + _EQUAL)
        others, apart = others[near], apart[near].astype(np.float64)
        order = np.lexsort((-_cosines(snapshot, position, others), np.round(apart / _EQUAL)))[:n]
        return Nearest(others[order], np.exp(-apart[order]))

    def _profiles(self, snapshot: Snapshot) -> NDArray[np.float32]:
        """Return the profiles of all positions (n, k); rows that were given out never change."""
        overlay = snapshot.overlay
        self.prepare(snapshot)
        if self._making is not None:
            self._making.join(_PATIENCE)
        with self._lock:
            if self._base is not overlay.base:
                detail = "the profiles of all nodes are being computed; try again in a few seconds"
                raise ProblemError(503, detail, rule="profiles known", headers={"Retry-After": "5"})
            known = len(self._rows)
            with self._noting:
                seen = [positions for version, positions in self._stale if version <= snapshot.version]
                # What a later change concerns is left to those who see that change.
                self._stale = [note for note in self._stale if note[0] > snapshot.version]
            stale = np.concatenate([*seen, np.arange(known, len(overlay))]).astype(np.int64)
            anew = np.unique(stale[stale < len(overlay)])
            if len(anew):
                rows = np.zeros((max(known, len(overlay)), self._rows.shape[1]), np.float32)
                rows[:known] = self._rows
                rows[anew] = self._inputs.profile(overlay, anew).weights
                self._rows = rows
            return self._rows[: len(overlay)]


def _alike_in_degree(
    snapshot: Snapshot, position: int, others: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Return nodes with half to twice as many links, or where these are few those of nearest degree."""
    degrees = np.log2(snapshot.overlay.degrees + 1.0)
    apart = np.abs(degrees[others] - degrees[position])
    enough = min(_ENOUGH * n, len(others))
    if not enough:
        return others
    furthest = max(1.0, float(np.partition(apart, enough - 1)[enough - 1]))
    kept: NDArray[np.int64] = others[apart <= furthest]
    return kept


def _cosines(snapshot: Snapshot, position: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
    vector, lengths = snapshot.vector(position), snapshot.lengths[others]
    products = snapshot.vectors.take(others) @ vector
    both = np.maximum(lengths.astype(np.float64) * float(snapshot.lengths[position]), 1e-12)
    return np.asarray(products / both, np.float64)
