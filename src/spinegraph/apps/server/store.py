"""The durable store: a log of changes in SQLite beside the base graph and the state they apply to."""

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
_MIN_PAGE = 512  # bytes; the smallest page of SQLite
_MAX_KEYS = 100_000  # idempotency keys that are kept
_ADVICE = "restore the store from a copy, or choose another folder with --store"


class Entry(NamedTuple):
    """One row of the log."""

    version: int
    change: Change
    is_last: bool  # of changes whose vectors were updated together: a replay updates there too


class Applied(NamedTuple):
    """The change that an idempotency key stands for."""

    version: int
    digest: str  # of the request


class Store:
    """A folder with all changes since a model was fitted; for one process at a time.

    SQLite checks its pages when the store is opened, and every row has a checksum. The owner is the
    fingerprints of model and graph; a store of another owner is refused.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder, self._owner = folder, owner
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._connect()
        self._sweep()

    def _connect(self) -> None:
        with self._reading():
            self._require_database()
            self._database = sqlite3.connect(
                self.folder / _FILE, timeout=1, isolation_level=None, check_same_thread=False
            )
        try:
            with self._reading():
                self._open(self._owner)
        except BaseException:
            self._database.close()
            raise

    def read_back(self) -> None:
        """Open the database again after an error and find out what is in it; raise if it cannot be read."""
        with suppress(sqlite3.Error):
            self._database.close()
        gc.collect()  # a cursor in the traceback of an error would keep SQLite's lock
        self._connect()
        self._sweep()

    def try_writing(self) -> None:
        """Bring all that was read back to disk and write a row; raise if the disk does not take it."""
        if self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise sqlite3.OperationalError("the write-ahead log is in use")
        with self._writing(last=self._about["last"]):
            pass

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what a damaged or locked store raises into one error that names the folder and the way out."""
        try:
            yield
        except ModelFormatError as fault:
            raise ModelFormatError(f"{self.folder}: {fault}; {_ADVICE}") from fault
        except SpineError:
            raise
        except (sqlite3.DatabaseError, SafetensorError, OSError, ValueError, LookupError, TypeError) as fault:
            why = " ".join(str(fault).split())[:200]
            if isinstance(fault, sqlite3.OperationalError) and "locked" in why:
                why = "another process serves from it; choose another folder with --store"
                raise ParameterError(f"{self.folder}: {why}") from fault
            if "readonly" in why or isinstance(fault, PermissionError) or _is_read_only(self.folder):
                why = "the store is read-only; make the folder and its files writable, or choose another"
                raise OutputError(f"{self.folder}: {why} with --store") from fault
            if isinstance(fault, sqlite3.OperationalError) and ("full" in why or "I/O" in why):
                why = f"the store cannot be read or written now ({why}); nothing in it was changed"
                raise OutputError(f"{self.folder}: {why}") from fault
            raise ModelFormatError(f"{self.folder}: the store is damaged ({why}); {_ADVICE}") from fault

    def _require_database(self) -> None:
        """Refuse a database that is missing or empty beside a base graph: SQLite would start a new one."""
        path = self.folder / _FILE
        if path.exists() and path.stat().st_size < _MIN_PAGE:
            raise ModelFormatError(f"{_FILE} is cut off; if nothing was ever stored here, delete it")
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
                f"{self.folder}: the store has format {about['format']!r}, this program reads {FORMAT!r}; "
                "serve it with the program that wrote it"
            )
        if about.get("seal") != _seal(about):
            raise ModelFormatError("the description of the store does not match its checksum")
        if about["owner"] != owner:
            raise ParameterError(
                f"{self.folder}: the store was made for another model or graph; choose another folder "
                "with --store, or serve the model and graph it belongs to"
            )
        rows = run("SELECT key, version, digest FROM keys").fetchall()
        self.keys = {key: Applied(version, digest) for key, version, digest in rows}

    @contextmanager
    def _writing(self, **rows: str) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, with rows of the table ``about``; known here once it is committed."""
        about = {**self._about, **rows, "format": FORMAT}
        about["seal"] = _seal(about)
        self._database.execute("BEGIN IMMEDIATE")
        with self._database as database:
            yield database
            database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())
        self._about = about

    def _sweep(self) -> None:
        """Remove files that a stopped process wrote but never used."""
        used = {f"base-{self.base_version}.safetensors", f"{self._state_name()}.safetensors"}
        for file in [*self.folder.glob("base-*.safetensors"), *self.folder.glob("state-*.safetensors")]:
            if file.name not in used:
                with suppress(OSError):  # the next one removes it
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
        """The version of the saved state, if there is one."""
        found = self._about.get("state")
        return None if found is None else int(found)

    def _state_name(self, version: int | None = None) -> str:
        """Return the name of the saved state, or of one to save: each belongs to one base graph."""
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
                raise ModelFormatError(f"changes are missing from the log, which ends with version {last}")
            return (
                graph_of(self._load(f"base-{base}")) if base else None,
                None if state is None else self._load(self._state_name()),
                entries,
            )

    def append(self, entries: Sequence[Entry], boundary: int | None = None) -> None:
        """Write changes to disk, all or none; afterwards they survive any stop.

        ``boundary`` is a version after which vectors were updated meanwhile. After an error
        :meth:`read_back` tells whether the changes are there.
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
        """Write the state at a version, in any thread; it counts after :meth:`use_state`."""
        self._save(self._state_name(version), state)

    def use_state(self, version: int) -> None:
        """Make a restart begin from a written state; the log stays as it is."""
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
    """Return the checksum of the table ``about``."""
    return checksum("\n".join(f"{key} {value}" for key, value in sorted(about.items()) if key != "seal"))


def _is_read_only(folder: Path) -> bool:
    paths = (folder, folder / _FILE)
    return any(path.exists() and not os.access(path, os.W_OK) for path in paths)


def _written_row(entry: Entry) -> tuple[int, str, int]:
    version, text, is_last = entry.version, entry.change.to_text(), int(entry.is_last)
    return version, f"{checksum(f'{version} {is_last} {text}')} {text}", is_last


def _read_row(version: int, row: Any, is_last: int) -> Entry:
    written, _, text = str(row).partition(" ")
    if written != checksum(f"{version} {is_last} {text}"):
        raise ModelFormatError(f"change {version} does not match its checksum")
    return Entry(version, Change.from_text(text), bool(is_last))


def open_store(model: Any, graph: Graph, folder: Path) -> Store:
    """Open the store of a fitted model and a graph, or make it; node names are text or integers."""
    other = [name for name in graph.names.tolist() if not isinstance(name, str | int)]
    if other:
        raise ParameterError(
            f"a service's node names are text or integers; got {first_few(other, 3)}. "
            "Give the graph such names: graph.relabel(map(str, graph.names))"
        )
    return Store(folder, f"{model.fingerprint_} {_digest(model.generator_)} {fingerprint(graph)}")


def _digest(generator: Generator | PaperGenerator) -> str:
    """Return a digest of what was fitted; of W_M alone for the paper's generator, as in version 0.1.0."""
    if isinstance(generator, PaperGenerator):
        return blake2b(np.ascontiguousarray(generator.weights).data, digest_size=8).hexdigest()
    found = blake2b(json.dumps(dict(generator.weights), sort_keys=True).encode(), digest_size=8)
    for _, array in sorted(generator.state()[1].items()):
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def restore(model: Any, graph: Graph, store: Store, tolerance: float | None = None) -> Live:
    """Return the state after all changes of the store, as if the service had never stopped.

    Changes up to the saved state are replayed on the graph alone. Later ones are applied again in their
    order, and vectors are updated after the same changes as before.
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
