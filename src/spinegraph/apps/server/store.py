"""The durable store: a log of changes in SQLite, and files of the base graph and the state."""

import gc
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from spinegraph.apps.server.live import Change, Live, checksum
from spinegraph.atomic import read_signed, whole_file, write_signed
from spinegraph.errors import ModelFormatError, OutputError, ParameterError, SpineError
from spinegraph.graph.describe import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few
from spinegraph.parts.generator import Generator
from spinegraph.parts.paper import PaperGenerator
from spinegraph.storage.model_folder import graph_arrays, graph_of

FORMAT, _READABLE = "3", ("2", "3")
_FILE = "store.sqlite3"
_MIN_PAGE = 512  # bytes of SQLite's smallest page
_MAX_KEYS = 100_000  # idempotency keys to keep
_ADVICE = "restore the store from a copy, or choose another folder with --store"


class Entry(NamedTuple):
    """One row of the log."""

    version: int
    change: Change
    is_last: bool  # of changes whose vectors were updated together, so that a replay does the same


class Applied(NamedTuple):
    """The change with an idempotency key."""

    version: int
    digest: str  # of the request


class Store:
    """A folder with all changes since a model was fitted, for one process at a time.

    SQLite checks its pages when the store is opened, and every row has a checksum. ``owner`` is the
    fingerprints of model and graph; opening a store of another owner raises an error.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder, self._owner = folder, owner
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._connect()

    def _connect(self) -> None:
        with self._reading():
            self._require_database()
            settings: Any = {"timeout": 1, "isolation_level": None, "check_same_thread": False}
            self._database = sqlite3.connect(self.folder / _FILE, **settings)
            try:
                self._open(self._owner)
            except BaseException:
                self._database.close()
                raise
        self._sweep()

    def read_back(self) -> None:
        """Reopen the database after an error to find out what it contains; raise if it cannot be read."""
        with suppress(sqlite3.Error):
            self._database.close()
        gc.collect()  # a cursor in the traceback of an error would keep SQLite's lock
        self._connect()

    def try_writing(self) -> None:
        """Write all that was read back, and a row, to disk; raise if the disk does not accept it."""
        if self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise sqlite3.OperationalError("the write-ahead log is in use")
        with self._writing(last=self._about["last"]):
            pass

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of a damaged or locked store into one that names the folder and what to do."""
        try:
            yield
        except ModelFormatError as fault:
            raise ModelFormatError(f"{self.folder}: {fault}; {_ADVICE}") from fault
        except SpineError:
            raise
        except (sqlite3.DatabaseError, SafetensorError, OSError, ValueError, LookupError, TypeError) as fault:
            why = " ".join(str(fault).split())[:200]
            if isinstance(fault, sqlite3.OperationalError) and "locked" in why:
                why = "another process is using it; choose another folder with --store"
                raise ParameterError(f"{self.folder}: {why}") from fault
            paths = [path for path in (self.folder, self.folder / _FILE) if path.exists()]
            is_writable = all(os.access(path, os.W_OK) for path in paths)
            if "readonly" in why or isinstance(fault, PermissionError) or not is_writable:
                why = "the store is read-only; make the folder and its files writable, or choose another"
                raise OutputError(f"{self.folder}: {why} with --store") from fault
            if isinstance(fault, sqlite3.OperationalError) and ("full" in why or "I/O" in why):
                why = f"the store cannot be read or written now ({why}); it was not changed"
                raise OutputError(f"{self.folder}: {why}") from fault
            raise ModelFormatError(f"{self.folder}: the store is damaged ({why}); {_ADVICE}") from fault

    def _require_database(self) -> None:
        """Raise if the database is truncated, or missing but a base graph exists: SQLite would create one."""
        path = self.folder / _FILE
        if path.exists() and path.stat().st_size < _MIN_PAGE:
            raise ModelFormatError(f"{_FILE} is truncated; if nothing was ever stored here, delete it")
        if not path.exists() and any(self.folder.glob("base-*.safetensors")):
            raise ModelFormatError(f"{_FILE} is missing, but there is a base graph")

    def _open(self, owner: str) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        if (found := run("PRAGMA quick_check(1)").fetchone()) != ("ok",):
            raise sqlite3.DatabaseError(found[0])
        tables = {name for (name,) in run("SELECT name FROM sqlite_master")}
        if not {"about", "changes", "keys"} <= tables:
            run("BEGIN IMMEDIATE")
            with self._database:
                for table in _TABLES:
                    run(f"CREATE TABLE IF NOT EXISTS {table}")
        self._about: dict[str, str] = dict(run("SELECT key, value FROM about").fetchall())
        if not self._about and run("SELECT count(*) FROM changes").fetchone() == (0,):
            with self._writing(format=FORMAT, owner=owner, base="0", last="0"):
                pass
        about = self._about
        if about.get("format", FORMAT) not in _READABLE:
            raise ParameterError(
                f"{self.folder}: the store has format {about['format']!r}, this version reads {FORMAT!r}; "
                "serve it with the version of spinegraph that wrote it"
            )
        if about.get("seal") != _seal(about):
            raise ModelFormatError("the table 'about' does not match its checksum")
        if about["owner"] != owner:
            raise ParameterError(
                f"{self.folder}: the store belongs to another model or graph; choose another folder "
                "with --store, or serve that model and graph"
            )
        rows = run("SELECT key, version, digest FROM keys").fetchall()
        self.keys = {key: Applied(version, digest) for key, version, digest in rows}

    @contextmanager
    def _writing(self, **rows: str) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, with rows of the table ``about``, which are kept once committed."""
        about = {**self._about, **rows, "format": FORMAT}
        about["seal"] = _seal(about)
        self._database.execute("BEGIN IMMEDIATE")
        with self._database as database:
            yield database
            database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())
        self._about = about

    def _sweep(self) -> None:
        used = {f"base-{self.base_version}.safetensors", f"{self._state_name()}.safetensors"}
        for file in [*self.folder.glob("base-*.safetensors"), *self.folder.glob("state-*.safetensors")]:
            if file.name not in used:
                with suppress(OSError):  # the next sweep removes it
                    file.unlink(missing_ok=True)

    @property
    def base_version(self) -> int:
        """The version of the base graph."""
        return int(self._about["base"])

    @property
    def last_version(self) -> int:
        """The version of the last change."""
        return int(self._about["last"])

    @property
    def state_version(self) -> int | None:
        """The version of the saved state, or None."""
        found = self._about.get("state")
        return None if found is None else int(found)

    def _state_name(self, version: int | None = None) -> str:
        """Return the name of the saved state, or of one to save; each belongs to one base graph."""
        name = f"state-{self.base_version}-{self.state_version if version is None else version}"
        if version is None and not (self.folder / f"{name}.safetensors").exists():
            return f"state-{self.state_version}"  # of version 0.1.0
        return name

    def load(self) -> tuple[Graph | None, dict[str, NDArray[Any]] | None, list[Entry]]:
        """Return the base graph of the last compaction, the saved state, and the changes since that base."""
        base, state = self.base_version, self.state_version
        with self._reading():
            rows = self._database.execute("SELECT version, change, is_last FROM changes ORDER BY version")
            entries, last = [_read_row(*row) for row in rows.fetchall()], self.last_version
            if [entry.version for entry in entries] != list(range(base + 1, last + 1)):
                raise ModelFormatError(f"changes are missing from the log, which must end at version {last}")
            graph = graph_of(self._load(f"base-{base}")) if base else None
            return graph, None if state is None else self._load(self._state_name()), entries

    def append(self, entries: Sequence[Entry], boundary: int | None = None) -> None:
        """Write changes to disk, all or none; once this returns, they survive a crash.

        ``boundary`` is a version after which vectors were updated meanwhile. After an error, call
        :meth:`read_back` to find out whether the changes are there.
        """
        keyed = [(entry.change.key, entry.version) for entry in entries]
        keys = {pair[0]: Applied(version, pair[1]) for pair, version in keyed if pair is not None}
        with self._writing(last=str(entries[-1].version)) as database:
            rows = [_written_row(entry) for entry in entries]
            found = database.execute("SELECT * FROM changes WHERE version = ?", (boundary,)).fetchone()
            if found is not None:
                rows.append(_written_row(_read_row(*found)._replace(is_last=True)))
            database.executemany("INSERT OR REPLACE INTO changes VALUES (?, ?, ?)", rows)
            listed = [(key, *applied) for key, applied in keys.items()]
            database.executemany("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", listed)
        self.keys |= keys

    def write_state(self, version: int, state: dict[str, NDArray[Any]]) -> None:
        """Write the state at a version, in any thread; it is used after :meth:`use_state`."""
        self._save(self._state_name(version), state)

    def use_state(self, version: int) -> None:
        """Let a restart begin from a written state; this does not change the log."""
        path = self.folder / f"{self._state_name(version)}.safetensors"
        if self.state_version != version and path.exists():
            with self._writing(state=str(version)):
                pass
            self._sweep()

    def compact(self, version: int, base: Graph, state: dict[str, NDArray[Any]]) -> None:
        """Replace the changes up to a version by a new base graph."""
        self._save(f"base-{version}", graph_arrays(base))
        self._save(f"state-{version}-{version}", state)
        oldest = version - _MAX_KEYS
        with self._writing(base=str(version), state=str(version)) as database:
            database.execute("DELETE FROM changes WHERE version <= ?", (version,))
            database.execute("DELETE FROM keys WHERE version <= ?", (oldest,))
        self.keys = {key: applied for key, applied in self.keys.items() if applied.version > oldest}
        self._sweep()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        with whole_file(self.folder / f"{name}.safetensors") as partial:
            write_signed(partial, arrays, {})

    def _load(self, name: str) -> dict[str, NDArray[Any]]:
        return read_signed(self.folder / f"{name}.safetensors")[0]


_TABLES = (
    "about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "changes (version INTEGER PRIMARY KEY, change TEXT NOT NULL, is_last INTEGER NOT NULL)",
    "keys (key TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID",
)


def _seal(about: dict[str, str]) -> str:
    return checksum("\n".join(f"{key} {value}" for key, value in sorted(about.items()) if key != "seal"))


def _written_row(entry: Entry) -> tuple[int, str, int]:
    version, text, is_last = entry.version, entry.change.to_text(), int(entry.is_last)
    return version, f"{checksum(f'{version} {is_last} {text}')} {text}", is_last


def _read_row(version: int, row: Any, is_last: int) -> Entry:
    written, _, text = str(row).partition(" ")
    if written != checksum(f"{version} {is_last} {text}"):
        raise ModelFormatError(f"change {version} does not match its checksum")
    return Entry(version, Change.from_text(text), bool(is_last))


def open_store(model: Any, graph: Graph, folder: Path) -> Store:
    """Open or create the store of a fitted model and a graph, whose node names must be text or integers."""
    other = [name for name in graph.names.tolist() if not isinstance(name, str | int)]
    if other:
        raise ParameterError(
            f"node names of a service must be text or integers; got {first_few(other, 3)}. "
            "Give the graph such names: graph.relabel(map(str, graph.names))"
        )
    return Store(folder, f"{model.fingerprint_} {_digest(model.generator_)} {fingerprint(graph)}")


def _digest(generator: Generator | PaperGenerator) -> str:
    """Return a digest of the fitted arrays; only of W_M for the paper's generator, as in version 0.1.0."""
    if isinstance(generator, PaperGenerator):
        return blake2b(np.ascontiguousarray(generator.weights).data, digest_size=8).hexdigest()
    found = blake2b(json.dumps(dict(generator.weights), sort_keys=True).encode(), digest_size=8)
    for _, array in sorted(generator.state()[1].items()):
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def restore(model: Any, graph: Graph, store: Store, tolerance: float | None = None) -> Live:
    """Return the state after all changes in the store, as if the service had never stopped.

    Changes up to the saved state are replayed only on the graph. Later ones are applied again in order, and
    vectors are updated after the same changes as before.
    """
    model.generator_.require_features(graph)
    base, state, entries = store.load()
    live = Live(model.generator_, base or graph, tolerance, version=store.base_version)
    if state is None:
        is_known = model.embeddings_ is not None and model.fingerprint_ == fingerprint(base or graph)
        live.compute_all(model.embeddings_.vectors if is_known else None)
    else:
        saved = (store.state_version or 0) - store.base_version
        live.replay([entry.change for entry in entries[:saved]])
        live.load_state(state)
        entries = entries[saved:]
    live.resume([(entry.change, entry.is_last) for entry in entries])
    return live
