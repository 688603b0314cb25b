"""The map and the roles of all nodes: made by a separate process, kept in the store."""

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.lookup import Lookup
from spinegraph.atomic import read_signed, whole_file, write_signed
from spinegraph.embeddings import Embeddings
from spinegraph.errors import SpineError
from spinegraph.parts.generator import Generator
from spinegraph.parts.paper import PaperGenerator
from spinegraph.storage.model_folder import graph_arrays, graph_of

logger = logging.getLogger(__name__)
MAP = "map.safetensors"
_MODEL, _GRAPH = "model", "graph.safetensors"
_FOLDER = "drawing-"  # begins the names of folders for the other process
_NICENESS = 5  # of 19
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_PATIENCE = 5.0  # seconds for the process to end
_NEAREST = 5  # nodes whose coordinates are averaged for a new node


class Atlas:
    """Coordinates of nodes on the map, and their roles.

    At first the coordinates are the two principal components; a better map and the roles follow within a
    minute or so, and are kept in ``folder`` between runs. Nodes that join later are placed among their most
    similar nodes.
    """

    def __init__(
        self, model: Any, generator: Generator | PaperGenerator, lookup: Lookup, folder: Path
    ) -> None:
        self._model, self._generator, self._lookup, self._folder = model, generator, lookup, folder
        self._coordinates: dict[Any, NDArray[np.float32]] = {}
        self._thread: Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self.method = "none"
        self.roles: Roles | None = None
        self._assigned: tuple[int, RoleAssignment | None] = (-1, None)  # version, roles of all nodes

    def start(self, snapshot: Snapshot) -> None:
        """Draw the map of a snapshot: roughly at once, better in the background."""
        self._remove_folders()
        coordinates = layout(snapshot.vectors.take(snapshot.overlay.standing), method="pca")
        self._coordinates = dict(zip(snapshot.names(), coordinates, strict=True))
        self.method = "pca"
        self._thread = Thread(target=self._draw, args=(snapshot,), name="atlas", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop drawing."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def locate(
        self, snapshot: Snapshot, vector: NDArray[np.float32], itself: int | None = None
    ) -> NDArray[np.float64] | None:
        """Return the mean coordinates (2,) of the nodes nearest to a vector, None if none is on the map."""
        found = self._lookup.nearest(snapshot, vector, _NEAREST, itself)
        names = snapshot.overlay.names_at(found.positions)
        known = [self._coordinates.get(name) for name in names]
        near = [(at, score) for at, score in zip(known, found.scores, strict=True) if at is not None]
        if not near:
            return None
        weights = np.maximum([score for _, score in near], 1e-3) ** 8
        mean: NDArray[np.float64] = np.average([at for at, _ in near], axis=0, weights=weights)
        return mean

    def coordinates(self, snapshot: Snapshot) -> NDArray[np.float32]:
        """Return the coordinates (n, 2) of all nodes, in the order of ``overlay.standing``."""
        positions = snapshot.overlay.standing.tolist()
        found = np.zeros((len(positions), 2), np.float32)
        for row, (name, position) in enumerate(zip(snapshot.names(), positions, strict=True)):
            known = self._coordinates.get(name)
            if known is None:
                located = self.locate(snapshot, snapshot.vector(position), position)
                known = np.asarray((0, 0) if located is None else located, np.float32)
                self._coordinates[name] = known
            found[row] = known
        return found

    def forget(self, name: Any) -> None:
        """Forget a removed node, so that a new node of its name is placed by its own vector."""
        self._coordinates.pop(name, None)

    def roles_of(self, snapshot: Snapshot) -> RoleAssignment | None:
        """Return the roles of all nodes, or None before roles are found."""
        version, assigned = self._assigned
        if self.roles is None or version == snapshot.version:
            return assigned
        overlay = snapshot.overlay
        vectors = snapshot.vectors.take(overlay.standing)
        embeddings = Embeddings(overlay.names[overlay.standing], vectors, snapshot.parts)
        graph = overlay.materialize() if overlay.num_nodes < len(overlay) else overlay
        assigned = self.roles.assign(graph, self._generator, embeddings=embeddings)
        self._assigned = (snapshot.version, assigned)
        return assigned

    def _draw(self, snapshot: Snapshot) -> None:
        """Use the map and roles of the last run if they fit this snapshot, else have them made."""
        try:
            if self._use_map(snapshot):
                return
            with drawing(self._model, snapshot, self._folder / f"{_FOLDER}{token_hex(4)}") as process:
                self._process = process
                is_drawn = not self._is_closed and process.wait() == 0 and self._use_map(snapshot)
            if not (is_drawn or self._is_closed):
                logger.warning("no map or roles: the process that makes them failed")
        except (SpineError, OSError) as fault:
            logger.warning("no map or roles: %s", fault)
        finally:
            self._remove_folders()

    def _use_map(self, snapshot: Snapshot) -> bool:
        found = read_map(self._folder / MAP, snapshot)
        if found is not None:
            self._coordinates = dict(zip(snapshot.names(), found[0], strict=True))
            self.roles, self.method = found[1], "t-SNE"
        return found is not None

    def _remove_folders(self) -> None:
        for left in self._folder.glob(f"{_FOLDER}*"):
            shutil.rmtree(left, ignore_errors=True)


def read_map(file: Path, snapshot: Snapshot) -> tuple[NDArray[np.float32], Roles | None] | None:
    """Return the coordinates (n, 2) of a snapshot's nodes and their roles, or None if the file has others."""
    try:
        arrays, about = read_signed(file, ("version", "roles"))
        written = json.loads(about["roles"])
        roles, coordinates = None if written is None else Roles.from_json(written), arrays["places"]
        fits = about["version"] == str(snapshot.version)
        fits = fits and np.array_equal(arrays["positions"], snapshot.overlay.standing)
        return (coordinates, roles) if fits and coordinates.shape == (len(arrays["positions"]), 2) else None
    except (OSError, SafetensorError, SpineError, ValueError, KeyError):
        return None


@contextmanager
def drawing(model: Any, snapshot: Snapshot, folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Write a model and a snapshot to a new folder, and start the process that draws the map beside it."""
    folder.mkdir(mode=0o700)
    model.save(folder / _MODEL, data=False)
    standing = snapshot.overlay.standing
    arrays = graph_arrays(snapshot.overlay.materialize())
    arrays |= {"vectors": snapshot.vectors.take(standing), "positions": standing}
    write_signed(folder / _GRAPH, arrays, {"version": str(snapshot.version)})
    command = [sys.executable, "-m", "spinegraph.apps.server.atlas", str(folder)]
    environment = {**os.environ, **_ONE_THREAD, "PYTHONSAFEPATH": "1"}
    # Nothing is ever written to its input; it ends when the input does, however the service ends.
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def draw(folder: Path) -> None:
    """Make the map and the roles of what :func:`drawing` wrote, and write them beside the folder."""
    from spinegraph.estimator import SPINE

    arrays, about = read_signed(folder / _GRAPH, ("version",))
    vectors, positions = arrays.pop("vectors"), arrays.pop("positions")
    graph, coordinates = graph_of(arrays), layout(vectors)
    generator = SPINE.load(folder / _MODEL).generator_.with_config(threads=1)
    try:
        found = Roles.find(graph, generator, Embeddings(graph.names, vectors, generator.parts))
        about["roles"] = json.dumps(found.to_json())
    except SpineError as fault:  # a graph may be too small for roles; the map is drawn all the same
        print(f"no roles: {fault}", file=sys.stderr)
        about["roles"] = "null"
    with whole_file(folder.parent / MAP) as partial:
        write_signed(partial, {"positions": positions, "places": coordinates}, about)


def _end_with_the_service() -> None:
    os.read(0, 1)  # not sys.stdin: its lock would still be held at exit
    os._exit(1)


def _main(folder: str) -> None:
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    Thread(target=_end_with_the_service, daemon=True).start()
    try:
        draw(Path(folder))
    except (SpineError, OSError) as fault:
        sys.exit(f"no map or roles: {fault}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
