"""The map and the roles of all nodes: made beside the work, kept in the store, and grown with new nodes."""

import json
import logging
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.lookup import Lookup
from spinegraph.atomic import whole_file
from spinegraph.embeddings import Embeddings
from spinegraph.errors import SpineError
from spinegraph.generator import Generator

logger = logging.getLogger(__name__)
_NEAR = 5  # nodes whose places a new node's place is the mean of


class Atlas:
    """Where nodes lie on the map and which roles they play.

    At first places are the two principal directions; a better map and the roles follow within a minute or
    so. Nodes that join later lie among the nodes they are most like.

    Parameters
    ----------
    generator : Generator
    lookup : Lookup
    folder : Path
        Where the finished map is kept between runs.
    """

    def __init__(self, generator: Generator, lookup: Lookup, folder: Path) -> None:
        self._generator, self._lookup, self._folder = generator, lookup, folder
        self._places: dict[Any, NDArray[np.float32]] = {}
        self._thread: Thread | None = None
        self.method = "none"
        self.roles: Roles | None = None
        self._told: tuple[int, RoleAssignment | None] = (-1, None)  # version, roles of all nodes

    def begin(self, snapshot: Snapshot) -> None:
        """Draw the map of a snapshot, roughly at once and better in a while."""
        self._place(snapshot, "pca")
        self._thread = Thread(target=self._finish, args=(snapshot,), name="atlas", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until map and roles are finished."""
        if self._thread is not None:
            self._thread.join()

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
        names = snapshot.overlay.names[positions].tolist()
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

    def _place(self, snapshot: Snapshot, method: str) -> None:
        standing = snapshot.overlay.standing
        places = layout(snapshot.vectors.matrix()[standing], method=method)  # type: ignore[arg-type]
        names = snapshot.overlay.names[standing].tolist()
        self._places = dict(zip(names, places, strict=True))
        self.method = "pca" if method == "pca" else "t-SNE"

    def _finish(self, snapshot: Snapshot) -> None:
        try:
            if not self._recall(snapshot):
                self._place(snapshot, "auto")
                self._find_roles(snapshot)
                self._keep(snapshot)
        except (SpineError, OSError) as fault:
            logger.warning("no map or roles: %s", fault)

    def _find_roles(self, snapshot: Snapshot) -> None:
        graph = snapshot.overlay.materialize()
        embeddings = Embeddings(graph.names, snapshot.vectors.matrix()[snapshot.overlay.standing])
        self.roles = Roles.find(graph, self._generator, embeddings)

    def _keep(self, snapshot: Snapshot) -> None:
        """Keep map and roles for the next start at the same version."""
        standing = snapshot.overlay.standing
        places = np.stack([self._places[name] for name in snapshot.overlay.names[standing].tolist()])
        roles = None if self.roles is None else self.roles.to_json()
        about = {"version": str(snapshot.version), "roles": json.dumps(roles), "method": self.method}
        with whole_file(self._folder / "map.safetensors") as partial:
            save_file({"positions": standing, "places": places}, partial, about)

    def _recall(self, snapshot: Snapshot) -> bool:
        """Take map and roles from the last run where they are of this graph."""
        from safetensors import SafetensorError, safe_open

        file = self._folder / "map.safetensors"
        try:
            arrays = load_file(file)
            with safe_open(file, framework="numpy") as opened:
                about = opened.metadata() or {}
            if about.get("version") != str(snapshot.version):
                return False
            roles = json.loads(about["roles"])
            self.roles = None if roles is None else Roles.from_json(roles)
        except (OSError, SafetensorError, SpineError, ValueError, KeyError):
            return False
        if not np.array_equal(arrays["positions"], snapshot.overlay.standing):
            return False
        names = snapshot.overlay.names[snapshot.overlay.standing].tolist()
        self._places = dict(zip(names, arrays["places"], strict=True))
        self.method = about.get("method", "t-SNE")
        return True
