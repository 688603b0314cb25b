"""The map and the roles of all nodes: made beside the work, kept in the store, and grown with new nodes."""

import logging
import shutil
import subprocess
from pathlib import Path
from secrets import token_hex
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.apps.server.drawing import MAP, drawing, read_map
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.lookup import Lookup
from spinegraph.embeddings import Embeddings
from spinegraph.errors import SpineError
from spinegraph.generator import Generator

logger = logging.getLogger(__name__)
_HANDED_OVER = "drawing-"  # folders for the process that draws
_PATIENCE = 5.0  # seconds for a process to end
_NEAR = 5  # nodes whose places a new node's place is the mean of


class Atlas:
    """Where nodes lie on the map and which roles they play.

    At first places are the two principal directions; a better map and the roles follow within a minute or
    so. Nodes that join later lie among the nodes they are most like.

    Parameters
    ----------
    model : SPINE
    generator : Generator
        The model's, as the service uses it.
    lookup : Lookup
    folder : Path
        Where the finished map is kept between runs.
    """

    def __init__(self, model: Any, generator: Generator, lookup: Lookup, folder: Path) -> None:
        self._model, self._generator, self._lookup, self._folder = model, generator, lookup, folder
        self._places: dict[Any, NDArray[np.float32]] = {}
        self._thread: Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self.method = "none"
        self.roles: Roles | None = None
        self._told: tuple[int, RoleAssignment | None] = (-1, None)  # version, roles of all nodes

    def begin(self, snapshot: Snapshot) -> None:
        """Draw the map of a snapshot, roughly at once and better in a while."""
        self._sweep()
        places = layout(snapshot.vectors.take(snapshot.overlay.standing), method="pca")
        self._places = dict(zip(_names(snapshot), places, strict=True))
        self.method = "pca"
        self._thread = Thread(target=self._finish, args=(snapshot,), name="atlas", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End what is being drawn."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def place(self, snapshot: Snapshot, vector: NDArray[np.float32], itself: int | None = None) -> Any:
        """Return where a vector lies, (2,), or None before there is a map."""
        found = self._lookup.nearest(snapshot, vector, _NEAR, itself)
        names = snapshot.overlay.names_at(found.positions)
        held = [
            (self._places[name], score)
            for name, score in zip(names, found.scores, strict=True)
            if name in self._places
        ]
        if not held:
            return None
        shares = np.maximum([score for _, score in held], 1e-3) ** 8
        return np.average([place for place, _ in held], axis=0, weights=shares)

    def forget(self, name: Any) -> None:
        """Forget the place of a removed node: should its name join again, it lies where it belongs."""
        self._places.pop(name, None)

    def places(self, snapshot: Snapshot) -> NDArray[np.float32]:
        """Return the places of the nodes that stand, (n, 2), in the order of ``standing``."""
        positions = snapshot.overlay.standing
        names = _names(snapshot)
        found = np.zeros((len(names), 2), np.float32)
        for row, (name, position) in enumerate(zip(names, positions.tolist(), strict=True)):
            place = self._places.get(name)
            if place is None:
                place = self.place(snapshot, snapshot.vector(position), position)
                place = np.zeros(2, np.float32) if place is None else np.asarray(place, np.float32)
                self._places[name] = place
            found[row] = place
        return found

    def roles_of(self, snapshot: Snapshot) -> RoleAssignment | None:
        """Return the role assignment of all nodes that stand, or None before roles are found."""
        version, told = self._told
        if self.roles is None or version == snapshot.version:
            return told
        names = snapshot.overlay.names[snapshot.overlay.standing]
        embeddings = Embeddings(names, snapshot.vectors.matrix()[snapshot.overlay.standing])
        has_gaps = len(names) < len(snapshot.overlay)
        graph = snapshot.overlay.materialize() if has_gaps else snapshot.overlay
        told = self.roles.assign(graph, self._generator, embeddings=embeddings)
        self._told = (snapshot.version, told)
        return told

    def _finish(self, snapshot: Snapshot) -> None:
        """Take map and roles from the last run where they are of this graph, else have them made."""
        try:
            if self._take(snapshot):
                return
            with drawing(self._model, snapshot, self._folder / f"{_HANDED_OVER}{token_hex(4)}") as process:
                self._process = process
                is_made = not self._is_closed and process.wait() == 0 and self._take(snapshot)
            if not (is_made or self._is_closed):
                logger.warning("no map or roles: the process that makes them failed")
        except (SpineError, OSError) as fault:
            logger.warning("no map or roles: %s", fault)
        finally:
            self._sweep()

    def _take(self, snapshot: Snapshot) -> bool:
        found = read_map(self._folder / MAP, snapshot)
        if found is not None:
            self._places = dict(zip(_names(snapshot), found[0], strict=True))
            self.roles, self.method = found[1], "t-SNE"
        return found is not None

    def _sweep(self) -> None:
        for left in self._folder.glob(f"{_HANDED_OVER}*"):
            shutil.rmtree(left, ignore_errors=True)


def _names(snapshot: Snapshot) -> list[Any]:
    names: list[Any] = snapshot.overlay.names[snapshot.overlay.standing].tolist()
    return names
