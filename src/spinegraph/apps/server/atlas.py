"""The explorer's data: maps and roles, which another process computes into the store, and the node table."""

import json
import logging
import math
import os
import signal
from collections.abc import Collection
from datetime import UTC, datetime
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError
from scipy.sparse import csc_array, issparse

from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.apps.server.live import Name, Snapshot
from spinegraph.apps.server.lookup import Lookup
from spinegraph.atomic import read_signed, whole_file, write_signed
from spinegraph.embeddings import Embeddings, unit_length
from spinegraph.errors import SpineError
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.tables import is_date, is_number, parse_texts, plain
from spinegraph.kernels.runtime import one_blas_thread
from spinegraph.parts.paper import AnyGenerator

logger = logging.getLogger(__name__)
MAP = "map.safetensors"
_NO_MAP = "the map of the explorer stays rough, and roles are missing: %s; start again to retry"
_NICENESS = 19  # lowest priority, so that requests go first
_PATIENCE = 5.0  # seconds for the thread to end
ALL = "all"  # parts
_GROUPS, _ENOUGH = 8, 1_000  # groups by a part, at most the different vectors among the first nodes
_NEAREST = 5  # nodes whose coordinates are averaged for a new node
Values = list[float | str | None]
_FIELDS = {"raw": "number", "count": "number", "hashed": "text"}
_ANSWERS = ("no", "yes")
_DAY = 86_400  # seconds
_ALL_SHOWN = 60  # columns, above which rows of a matrix contain only values other than 0


class Atlas:
    """Coordinates of nodes on maps by all parts of their vectors and by each part, and their roles.

    At first the coordinates are the two principal components; a better map and the roles follow within about
    a minute, then maps and groups by each part. All are stored in ``folder``. Nodes that are added later are
    placed among their most similar nodes.
    """

    def __init__(self, generator: AnyGenerator, lookup: Lookup, folder: Path) -> None:
        self._generator, self._lookup, self._folder = generator, lookup, folder
        self._coordinates: dict[str, dict[Any, NDArray[np.float32]]] = {}  # by part, then by name
        self._groups: dict[str, dict[Any, int]] = {}
        self._thread: Thread | None = None
        self._process: BaseProcess | None = None
        self._is_closed = False
        self._drawn: set[str] = set()  # parts with a better map than principal components
        self.roles: Roles | None = None
        self._assigned: tuple[int, RoleAssignment | None] = (-1, None)  # version, roles of all nodes

    def start(self, snapshot: Snapshot) -> None:
        """Draw the maps of a snapshot in the background; until then there are rough ones."""
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
        """Return the method of a map: "t-SNE", or "pca" until that is done."""
        return "t-SNE" if by in self._drawn else "pca"

    def locate(
        self, snapshot: Snapshot, vector: NDArray[np.float32], itself: int | None = None, by: str = ALL
    ) -> NDArray[np.float64] | None:
        """Return the mean coordinates (2,) of the nodes nearest to a vector; None if none is on the map."""
        weights = None if by == ALL else {name: float(name == by) for name in snapshot.parts}
        found = self._lookup.nearest(snapshot, vector, _NEAREST, itself, weights)
        on_map = self._map(snapshot, by)
        known = [on_map.get(name) for name in snapshot.overlay.names_at(found.positions)]
        near = [(at, score) for at, score in zip(known, found.scores, strict=True) if at is not None]
        if not near:
            return None
        closeness = np.maximum([score for _, score in near], 1e-3) ** 8
        return np.asarray(np.average([at for at, _ in near], axis=0, weights=closeness))

    def coordinates(self, snapshot: Snapshot, by: str = ALL) -> NDArray[np.float32]:
        """Return the coordinates (n, 2) of all nodes, in the order of ``overlay.remaining``."""
        names, on_map = snapshot.names(), self._map(snapshot, by)
        for name, position in zip(names, snapshot.overlay.remaining.tolist(), strict=True):
            if name not in on_map:
                located = self.locate(snapshot, snapshot.vector(position), position, by)
                on_map[name] = np.asarray((0, 0) if located is None else located, np.float32)
        return np.array([on_map[name] for name in names], np.float32).reshape(-1, 2)

    def groups(self, snapshot: Snapshot) -> dict[str, list[int]]:
        """Return the numbers of the nodes' groups by each part that has any, -1 for nodes added later."""
        return {by: [known.get(name, -1) for name in snapshot.names()] for by, known in self._groups.items()}

    def _map(self, snapshot: Snapshot, by: str) -> dict[Any, NDArray[np.float32]]:
        """Return a map; two principal components until there is a better one."""
        if by not in self._coordinates:
            columns = slice(None) if by == ALL else snapshot.parts[by]
            coordinates = layout(snapshot.vectors.take(snapshot.overlay.remaining)[:, columns], method="pca")
            self._coordinates.setdefault(by, dict(zip(snapshot.names(), coordinates, strict=True)))
        return self._coordinates[by]

    def forget(self, name: Any) -> None:
        """Forget a removed node, so that a new node of that name is placed by its own vector."""
        known: list[dict[Any, Any]] = [*self._coordinates.values(), *self._groups.values()]
        for each in known:
            each.pop(name, None)

    def roles_of(self, snapshot: Snapshot) -> RoleAssignment | None:
        """Return the roles of all nodes, or None if roles are not found yet."""
        version, assigned = self._assigned
        if self.roles is None or version == snapshot.version:
            return assigned
        overlay = snapshot.overlay
        vectors = snapshot.vectors.take(overlay.remaining)
        embeddings = Embeddings(overlay.names[overlay.remaining], vectors, snapshot.parts)
        graph = overlay.materialize() if overlay.num_nodes < len(overlay) else overlay
        assigned = self.roles.assign(graph, self._generator, embeddings=embeddings)
        self._assigned = (snapshot.version, assigned)
        return assigned

    def _draw(self, snapshot: Snapshot) -> None:
        """Use the maps and roles of the last run if they fit this snapshot, else start to compute them."""
        try:
            if self._use_map(snapshot) or self._is_closed:
                return
            if hasattr(signal, "pthread_sigmask"):
                # The process inherits it from this thread, so that Ctrl+C stops only the service.
                ensure_running()  # to start it later would unblock the signal
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            process, finished = start_draw(self._folder, self._generator, snapshot)
            self._process = process
            while finished.recv() and not self._use_map(snapshot):  # after each map
                pass
        except EOFError:
            process.join()
            if not self._is_closed and process.exitcode != -signal.SIGTERM:  # which stops the service too
                logger.warning(_NO_MAP, f"their process ended with exit code {process.exitcode}")
        except (SpineError, OSError) as fault:
            logger.warning(_NO_MAP, fault)

    def _use_map(self, snapshot: Snapshot) -> bool:
        """Use the maps in the folder; return whether all are there."""
        found, names = read_map(self._folder / MAP, snapshot), snapshot.names()
        if found is None:
            return False
        arrays, self.roles = found
        for by in (ALL, *snapshot.parts):
            if by not in self._drawn and f"places.{by}" in arrays:
                self._coordinates[by] = dict(zip(names, arrays[f"places.{by}"], strict=True))
                self._drawn.add(by)
            if f"groups.{by}" in arrays:
                self._groups.setdefault(by, dict(zip(names, arrays[f"groups.{by}"].tolist(), strict=True)))
        return self._drawn >= {ALL, *drawn_parts(snapshot.parts, snapshot.known is not None)}


def drawn_parts(parts: Collection[str], is_known: bool) -> list[str]:
    """Return the parts that have their own maps: if there are several, all that are not zero."""
    return [name for name in parts if is_known or name != "place"] if len(parts) > 1 else []


def read_map(file: Path, snapshot: Snapshot) -> tuple[dict[str, NDArray[Any]], Roles | None] | None:
    """Return the arrays and roles that ``draw`` wrote for a snapshot, or None if the file has others."""
    try:
        arrays, about = read_signed(file, ("version", "roles"))
        written = json.loads(about["roles"])
        is_same = np.array_equal(arrays["positions"], snapshot.overlay.remaining)
        if about["version"] != str(snapshot.version) or not is_same or f"places.{ALL}" not in arrays:
            return None
        return arrays, None if written is None else Roles.from_json(written)
    except (OSError, SafetensorError, SpineError, ValueError, KeyError):
        return None


def start_draw(folder: Path, generator: AnyGenerator, snapshot: Snapshot) -> tuple[BaseProcess, Connection]:
    """Start the process that draws maps of a snapshot; return it and a connection for the finished ones."""
    context, remaining = get_context("spawn"), snapshot.overlay.remaining
    finished, sender = context.Pipe(duplex=False)
    drawn = snapshot.overlay.materialize(), snapshot.vectors.take(remaining)
    about = snapshot.version, remaining, snapshot.known is not None
    process = context.Process(target=draw, args=(folder, generator, *drawn, about, sender), daemon=True)
    process.start()
    sender.close()  # the process has a copy; reading ends once that is closed
    return process, finished


def draw(
    folder: Path,
    generator: AnyGenerator,
    graph: Graph,
    vectors: NDArray[np.float32],
    snapshot: tuple[int, NDArray[np.int64], bool],
    sender: Connection,
) -> None:
    """Compute the maps and roles of a graph in a separate process, which ends with the service.

    The file is written after the first map, and again after the map of each part, whose name is sent to
    ``sender``. ``snapshot`` is version, positions (n,) and whether it is of the training network.
    """
    if (service := parent_process()) is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # for Windows, where Ctrl+C cannot be blocked
        Thread(target=_end_with, args=(service,), daemon=True).start()
        if hasattr(os, "nice"):
            os.nice(_NICENESS)
    version, positions, is_known = snapshot
    with one_blas_thread():
        found: dict[str, NDArray[Any]] = {"positions": positions, f"places.{ALL}": layout(vectors)}
        roles = None
        try:
            roles = Roles.find(graph, generator, Embeddings(graph.names, vectors, generator.parts)).to_json()
        except SpineError as fault:  # a graph may be too small for roles, but not for maps
            logger.warning("the roles of the nodes are missing: %s", fault)
        about = {"version": str(version), "roles": json.dumps(roles)}
        for by in (ALL, *drawn_parts(generator.parts, is_known)):
            if by != ALL:
                part = np.ascontiguousarray(vectors[:, generator.parts[by]])
                found |= {f"places.{by}": layout(part), f"groups.{by}": _groups(part)}
            with whole_file(folder / MAP) as partial:
                write_signed(partial, found, about)
            sender.send(by)


def _end_with(service: Any) -> None:
    service.join()
    os._exit(1)


def _groups(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the group numbers (n,) of vectors, clustered by angle; the largest group is 0."""
    from sklearn.cluster import MiniBatchKMeans

    points, count = unit_length(vectors), min(_GROUPS, len(np.unique(vectors[:_ENOUGH], axis=0)))
    found = MiniBatchKMeans(count, random_state=0, n_init=3, batch_size=2048).fit_predict(points)
    rank = np.argsort(np.argsort(-np.bincount(found, minlength=count), kind="stable"))
    return np.asarray(rank[found], np.int64)


class NodeTable:
    """Values of the nodes' columns: numbers and text, None if missing; dates in ISO 8601.

    ``written`` (n, c) is the user's table, in the order of the graph's nodes. Without it, and for other
    nodes, values are decoded from features. ``kinds`` of each column is "number", "date", "boolean",
    "category" or "text", or "lost" if its values are unknown.
    """

    def __init__(self, graph: Graph, encoder: FeatureEncoder | None, written: pa.Table | None = None) -> None:
        # As saved in a model folder: kinds, means, scales and levels.
        meta = {} if encoder is None else encoder.state()[0]
        self._encoded = [_EncodedColumn(about) for about in meta.get("columns", ())]
        self._rows: dict[Name, int] = {}
        self._columns: dict[str, Values] = {}
        self._numbers = {}  # of feature columns without a table
        if encoder is not None and self._encoded:
            held = {column.name: column.shown_kind for column in self._encoded}
            self.kinds = {name: held.get(name, "lost") for name in encoder.kinds_}
        else:
            names = graph.feature_names or tuple(f"feature {number}" for number in range(graph.num_features))
            self._numbers = {name: number for number, name in enumerate(names)}
            self.kinds = dict.fromkeys(names, "number")
        if written is not None:
            self._rows = {name: row for row, name in enumerate(graph.names.tolist())}
            styles = {c.name: (c.kind, c.written) for c in self._encoded if c.kind in ("number", "date")}
            for name in written.column_names:
                column = parse_texts(plain(written[name]), *styles.get(name, ("text", "")))[0]
                kind, values = column.type, column.to_pylist()
                known = self.kinds.get(name, "text")
                own = "number" if is_number(kind) else "date" if is_date(kind) else "category"
                self.kinds[name] = own if own != "category" or known in ("text", "lost", "number") else known
                self._columns[name] = [_plain(value, self.kinds[name]) for value in values]

    def fields(self) -> list[dict[str, Any]]:
        """Return the columns that a new node's row may have: name, kind, levels and typical value."""
        width = sum(column.width for column in self._encoded)
        typical = self._decoded(np.zeros((1, width), np.float32), self.kinds)
        return [
            {
                "name": column.name,
                "kind": _FIELDS.get(column.kind, column.kind),
                "levels": column.levels,
                "typical": typical[column.name][0] if column.kind in ("number", "date") else None,
            }
            for column in self._encoded
        ]

    def column(self, snapshot: Snapshot, name: str) -> Values:
        """Return a column's values for all nodes, in the order of ``overlay.remaining``."""
        overlay = snapshot.overlay
        found = self._held(snapshot, overlay.remaining, [name]).get(name, [None] * len(overlay.remaining))
        written = self._columns.get(name)
        if written is None:
            return found
        rows = [self._rows.get(node) for node in snapshot.names()]
        return [value if row is None else written[row] for value, row in zip(found, rows, strict=True)]

    def row(self, snapshot: Snapshot, name: Name, position: int) -> dict[str, float | str | None]:
        """Return a node's values by column, without columns of unknown values."""
        held = self._held(snapshot, np.array([position]), self.kinds)
        found = {column: values[0] for column, values in held.items()}
        if name in self._rows:
            found |= {column: values[self._rows[name]] for column, values in self._columns.items()}
        if len(self._numbers) > _ALL_SHOWN:
            return {column: value for column, value in found.items() if value}
        return {column: found[column] for column in self.kinds if column in found}

    def _held(self, snapshot: Snapshot, positions: NDArray[Any], names: Collection[str]) -> dict[str, Values]:
        """Return the values of some columns, decoded from the features of some nodes."""
        if not snapshot.overlay.has_features:
            return {}
        features = snapshot.overlay.feature_rows(positions)
        if self._encoded:
            return self._decoded(features, names)
        wanted = [self._numbers[name] for name in names if name in self._numbers]
        some = features[:, wanted].toarray() if issparse(features) else features[:, wanted]
        return dict(zip(names, some.T.astype(np.float64).tolist(), strict=False))

    def _decoded(self, features: Any, names: Collection[str]) -> dict[str, Values]:
        matrix, found, stop = csc_array(features), {}, 0
        for column in self._encoded:
            start, stop = stop, stop + column.width
            if column.name in names and column.shown_kind != "lost":
                found[column.name] = column.decode(matrix[:, start:stop].toarray())
        return found


class _EncodedColumn:
    """A column of the table in encoded form, as ``width`` features."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.name, self.kind, self.has_gaps = about["name"], about["kind"], about["has_gaps"]
        self.mean, self.scale = about.get("mean", 0.0), about.get("scale", 1.0)
        self.written: str = about.get("written", "")
        self.levels: list[str] = about.get("levels", [])
        width = 1 if "mean" in about else len(self.levels) + len(about.get("words", []))
        self.width = (about.get("width") or width) + self.has_gaps

    @property
    def shown_kind(self) -> str:
        """The kind of its values; "lost" if these cannot be decoded, since counts are scaled by row."""
        if self.kind in ("number", "raw"):
            return "number"
        return self.kind if self.kind in ("boolean", "category", "date") else "lost"

    def decode(self, block: NDArray[np.float32]) -> Values:
        """Return the values (n,) that were encoded as a block (n, width), None if missing."""
        if self.kind == "category":
            known, levels = block[:, : len(self.levels)], [*self.levels, None]
            codes = np.where(known.any(axis=1), known.argmax(axis=1), -1)
            return [levels[code] for code in codes.tolist()]
        values = block[:, 0].astype(np.float64)
        if self.kind in ("number", "date"):
            # Rounded to the precision of float32, so that 52000 is decoded as 52000.
            step = self.scale * max(np.abs(values).max(initial=0), 1e-3) * 2.0**-23
            values = np.round(values * self.scale + self.mean, math.floor(-math.log10(step)))
        if self.has_gaps:
            values[block[:, -1] > 0] = np.nan
        shown: Any = {"boolean": lambda value: _ANSWERS[value > 0], "date": _date}.get(self.kind, float)
        return [None if value != value else shown(value) for value in values.tolist()]


def _date(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return when.date().isoformat() if seconds % _DAY == 0 else when.isoformat()


def _plain(value: Any, kind: str) -> float | str | None:
    """Return a value of the user's table in the form for JSON."""
    if value is None or value != value:
        return None
    if kind == "number":
        return float(value) if abs(value) < float("inf") else None
    if isinstance(value, bool):
        return _ANSWERS[value]
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
