"""The maps and the roles of all nodes: made by a separate process, kept in the store."""

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.lookup import Lookup
from spinegraph.atomic import read_signed, whole_file, write_signed
from spinegraph.embeddings import Embeddings, unit_length
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
ALL = "all"  # parts together
_GROUPS, _ENOUGH = 8, 1_000  # groups by a part; nodes that are looked at for as many unlike ones
_NEAREST = 5  # nodes whose coordinates are averaged for a new node


class Atlas:
    """Coordinates of nodes on the maps, by all parts of their vectors and by each, and their roles.

    At first the coordinates are the two principal components; a better map and the roles follow within a
    minute or so, then maps and groups by each part, all kept in ``folder`` between runs. Nodes that join
    later are placed among their most similar nodes.
    """

    def __init__(
        self, model: Any, generator: Generator | PaperGenerator, lookup: Lookup, folder: Path
    ) -> None:
        self._model, self._generator, self._lookup, self._folder = model, generator, lookup, folder
        self._coordinates: dict[str, dict[Any, NDArray[np.float32]]] = {}  # by part, then by name
        self._groups: dict[str, dict[Any, int]] = {}
        self._thread: Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._drawn: set[str] = set()  # parts with a better map than principal components
        self.roles: Roles | None = None
        self._assigned: tuple[int, RoleAssignment | None] = (-1, None)  # version, roles of all nodes

    def start(self, snapshot: Snapshot) -> None:
        """Draw the map of a snapshot in the background; until then there is a rough one."""
        self._remove_folders()
        self._thread = Thread(target=self._draw, args=(snapshot,), name="atlas", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop drawing."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def method(self, by: str = ALL) -> str:
        """Return how a map was made: "t-SNE", or "pca" until that is done."""
        return "t-SNE" if by in self._drawn else "pca"

    def locate(
        self, snapshot: Snapshot, vector: NDArray[np.float32], itself: int | None = None, by: str = ALL
    ) -> NDArray[np.float64] | None:
        """Return the mean coordinates (2,) of the nodes nearest to a vector, None if none is on the map."""
        weights = None if by == ALL else {name: float(name == by) for name in snapshot.parts}
        found, on_map = (
            self._lookup.nearest(snapshot, vector, _NEAREST, itself, weights),
            self._map(snapshot, by),
        )
        known = [on_map.get(name) for name in snapshot.overlay.names_at(found.positions)]
        near = [(at, score) for at, score in zip(known, found.scores, strict=True) if at is not None]
        if not near:
            return None
        closeness = np.maximum([score for _, score in near], 1e-3) ** 8
        mean: NDArray[np.float64] = np.average([at for at, _ in near], axis=0, weights=closeness)
        return mean

    def coordinates(self, snapshot: Snapshot, by: str = ALL) -> NDArray[np.float32]:
        """Return the coordinates (n, 2) of all nodes, in the order of ``overlay.standing``."""
        names, on_map = snapshot.names(), self._map(snapshot, by)
        for name, position in zip(names, snapshot.overlay.standing.tolist(), strict=True):
            if name not in on_map:
                located = self.locate(snapshot, snapshot.vector(position), position, by)
                on_map[name] = np.asarray((0, 0) if located is None else located, np.float32)
        return np.array([on_map[name] for name in names], np.float32).reshape(-1, 2)

    def groups(self, snapshot: Snapshot) -> dict[str, list[int]]:
        """Return the numbers of the nodes' groups by each part that has them, -1 for a node that joined."""
        return {by: [known.get(name, -1) for name in snapshot.names()] for by, known in self._groups.items()}

    def _map(self, snapshot: Snapshot, by: str) -> dict[Any, NDArray[np.float32]]:
        if by not in self._coordinates:
            self._sketch(snapshot, by)
        return self._coordinates[by]

    def _sketch(self, snapshot: Snapshot, by: str) -> None:
        """Use two principal components until there is a better map."""
        columns = slice(None) if by == ALL else snapshot.parts[by]
        coordinates = layout(snapshot.vectors.take(snapshot.overlay.standing)[:, columns], method="pca")
        self._coordinates.setdefault(by, dict(zip(snapshot.names(), coordinates, strict=True)))

    def forget(self, name: Any) -> None:
        """Forget a removed node, so that a new node of its name is placed by its own vector."""
        for coordinates in self._coordinates.values():
            coordinates.pop(name, None)
        for groups in self._groups.values():
            groups.pop(name, None)

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
                for _ in process.stdout or ():  # a line whenever another map is done
                    self._use_map(snapshot)
                is_drawn = not self._is_closed and process.wait() == 0 and self._use_map(snapshot)
            if not (is_drawn or self._is_closed):
                logger.warning("no map or roles: the process that makes them failed")
        except (SpineError, OSError) as fault:
            logger.warning("no map or roles: %s", fault)
        finally:
            self._remove_folders()

    def _use_map(self, snapshot: Snapshot) -> bool:
        """Take over the maps in the folder; return whether all are there."""
        found, names = read_map(self._folder / MAP, snapshot), snapshot.names()
        if found is None:
            return False
        for by, coordinates in found.coordinates.items():
            if by not in self._drawn:
                self._coordinates[by] = dict(zip(names, coordinates, strict=True))
                self._drawn.add(by)
        for by, groups in found.groups.items():
            self._groups.setdefault(by, dict(zip(names, groups.tolist(), strict=True)))
        self.roles = found.roles
        return self._drawn >= {ALL, *drawn_parts(snapshot.parts, snapshot.known is not None)}

    def _remove_folders(self) -> None:
        for left in self._folder.glob(f"{_FOLDER}*"):
            shutil.rmtree(left, ignore_errors=True)


def drawn_parts(parts: Collection[str], is_known: bool) -> list[str]:
    """Return the parts that have maps of their own: those of several that are not zero."""
    return [name for name in parts if is_known or name != "place"] if len(parts) > 1 else []


class Maps(NamedTuple):
    """What a file of maps holds of n nodes."""

    coordinates: dict[str, NDArray[np.float32]]  # (n, 2) by part, or by all
    groups: dict[str, NDArray[np.int64]]  # (n,) by part
    roles: Roles | None


def read_map(file: Path, snapshot: Snapshot) -> Maps | None:
    """Return the maps of a snapshot's nodes and their roles, or None if the file has others."""
    try:
        arrays, about = read_signed(file, ("version", "roles"))
        written, count = json.loads(about["roles"]), len(snapshot.overlay.standing)
        if about["version"] != str(snapshot.version):
            return None
        if not np.array_equal(arrays["positions"], snapshot.overlay.standing):
            return None
        known = {ALL, *snapshot.parts}
        found = {by: arrays[f"places.{by}"] for by in known if f"places.{by}" in arrays}
        groups = {by: arrays[f"groups.{by}"] for by in known if f"groups.{by}" in arrays}
        if ALL not in found or {array.shape for array in found.values()} != {(count, 2)}:
            return None
        if {array.shape for array in groups.values()} - {(count,)}:
            return None
        return Maps(found, groups, None if written is None else Roles.from_json(written))
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
    about = {"version": str(snapshot.version), "same_network": json.dumps(snapshot.known is not None)}
    write_signed(folder / _GRAPH, arrays, about)
    command = [sys.executable, "-m", "spinegraph.apps.server.atlas", str(folder)]
    environment = {**os.environ, **_ONE_THREAD, "PYTHONSAFEPATH": "1"}
    # Nothing is ever written to its input; it ends when the input does, however the service ends.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def draw(folder: Path) -> None:
    """Make the maps and the roles of what :func:`drawing` wrote, and write them beside the folder.

    The file is written after the first map, and again after that of each part.
    """
    from spinegraph.estimator import SPINE

    arrays, about = read_signed(folder / _GRAPH, ("version", "same_network"))
    vectors, found = arrays.pop("vectors"), {"positions": arrays.pop("positions")}
    graph, is_known = graph_of(arrays), json.loads(about.pop("same_network"))
    generator = SPINE.load(folder / _MODEL).generator_.with_config(threads=1)
    found[f"places.{ALL}"] = layout(vectors)
    try:
        roles = Roles.find(graph, generator, Embeddings(graph.names, vectors, generator.parts))
        about["roles"] = json.dumps(roles.to_json())
    except SpineError as fault:  # a graph may be too small for roles; the map is drawn all the same
        print(f"no roles: {fault}", file=sys.stderr)
        about["roles"] = "null"
    for by in (ALL, *drawn_parts(generator.parts, is_known)):
        if by != ALL:
            part = np.ascontiguousarray(vectors[:, generator.parts[by]])
            found |= {f"places.{by}": layout(part), f"groups.{by}": _groups(part)}
        with whole_file(folder.parent / MAP) as partial:
            write_signed(partial, found, about)
        print(by, flush=True)


def _groups(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return numbers (n,) of groups of vectors at small angles, the largest group first."""
    from sklearn.cluster import MiniBatchKMeans

    points, count = unit_length(vectors), min(_GROUPS, len(np.unique(vectors[:_ENOUGH], axis=0)))
    found = MiniBatchKMeans(count, random_state=0, n_init=3, batch_size=2048).fit_predict(points)
    rank = np.argsort(np.argsort(-np.bincount(found, minlength=count), kind="stable"))
    return np.asarray(rank[found], np.int64)


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
