"""The map and the roles of all nodes: made in a process of their own, kept in the store."""

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
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
from spinegraph.graph.graph import Graph
from spinegraph.storage.model_folder import graph_arrays, graph_of

MAP = "map.safetensors"
_MODEL, _GRAPH = "model", "graph.safetensors"
_POLITENESS = 5  # of 19
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@contextmanager
def drawing(model: Any, snapshot: Snapshot, folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Hand a model and a snapshot over in a new folder, and start the process that writes the map beside it.

    Parameters
    ----------
    model : SPINE
    snapshot : Snapshot
    folder : Path
        New; the map is ``map.safetensors`` in the folder that holds it.
    """
    folder.mkdir(mode=0o700)
    model.save(folder / _MODEL, data=False)
    standing = snapshot.overlay.standing
    arrays = graph_arrays(snapshot.overlay.materialize())
    save_file(
        {**arrays, "vectors": snapshot.vectors.take(standing), "positions": standing},
        folder / _GRAPH,
        {"version": str(snapshot.version)},
    )
    command = [sys.executable, "-m", "spinegraph.apps.server.atlas", str(folder)]
    environment = {**os.environ, **_ONE_THREAD, "PYTHONSAFEPATH": "1"}
    # It ends with the service, however that ends: nothing is ever written to it, so all it reads is the end.
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def draw(folder: Path) -> None:
    """Make the map and the roles of what was handed over, and write them beside the folder."""
    from safetensors import safe_open

    from spinegraph.estimator import SPINE

    arrays = load_file(folder / _GRAPH)
    with safe_open(folder / _GRAPH, framework="numpy") as opened:
        version = opened.metadata()["version"]
    vectors, positions = arrays.pop("vectors"), arrays.pop("positions")
    graph, places = graph_of(arrays), layout(vectors)
    generator = _on_one_thread(SPINE.load(folder / _MODEL))
    roles = _roles(graph, generator, Embeddings(graph.names, vectors))
    with whole_file(folder.parent / MAP) as partial:
        about = {"version": version, "roles": json.dumps(roles)}
        save_file({"positions": positions, "places": places}, partial, about)


def read_map(file: Path, snapshot: Snapshot) -> tuple[NDArray[np.float32], Roles | None] | None:
    """Return the places (n, 2) of a snapshot's standing nodes and their roles, where a file holds them."""
    from safetensors import SafetensorError, safe_open

    try:
        arrays = load_file(file)
        with safe_open(file, framework="numpy") as opened:
            about = opened.metadata() or {}
        written = json.loads(about["roles"])
        roles = None if written is None else Roles.from_json(written)
        places = arrays["places"]
        is_of_it = about["version"] == str(snapshot.version) and places.shape == (len(places), 2)
        is_of_it = is_of_it and np.array_equal(arrays["positions"], snapshot.overlay.standing)
        return (places, roles) if is_of_it and len(places) == len(arrays["positions"]) else None
    except (OSError, SafetensorError, SpineError, ValueError, KeyError):
        return None


def _roles(graph: Graph, generator: Generator, embeddings: Embeddings) -> dict[str, Any] | None:
    try:
        return Roles.find(graph, generator, embeddings).to_json()
    except SpineError as fault:  # a graph may be too small for roles; the map is drawn all the same
        print(f"no roles: {fault}", file=sys.stderr)
        return None


def _on_one_thread(model: Any) -> Generator:
    inputs = model.generator_.inputs
    config = replace(inputs.config, threads=1)
    return Generator(replace(inputs, config=config), model.generator_.weights)


def _end_with_the_service() -> None:
    os.read(0, 1)  # standard input, past its buffer: that would still be locked at the end
    os._exit(1)


def _main(folder: str) -> None:
    if hasattr(os, "nice"):
        os.nice(_POLITENESS)
    Thread(target=_end_with_the_service, daemon=True).start()
    try:
        draw(Path(folder))
    except (SpineError, OSError) as fault:
        sys.exit(f"no map or roles: {fault}")


if __name__ == "__main__":
    _main(*sys.argv[1:])


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
