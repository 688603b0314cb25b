"""The durable store: a log of changes in SQLite beside the base graph and the state they apply to."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from spinegraph.apps.server.live import Change, Live
from spinegraph.atomic import read_signed, whole_file, write_signed
from spinegraph.errors import ModelFormatError, ParameterError, SpineError
from spinegraph.graph.describe import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few
from spinegraph.parts.generator import Generator
from spinegraph.parts.paper import PaperGenerator
from spinegraph.storage.model_folder import graph_arrays, graph_of

FORMAT = "2"
_FILE = "store.sqlite3"
_MIN_PAGE = 512  # bytes; the smallest page of SQLite
_ADVICE = "restore the store from a copy, or choose another folder with --store"


class Entry(NamedTuple):
    """One row of the log."""

    version: int
    change: Change
    is_last: bool  # of changes whose vectors were updated together: a replay updates there too


class Store:
    """A folder with all changes since a model was fitted; for one process at a time.

    SQLite checks its pages when the store is opened, and every row has a checksum. The owner is the
    fingerprints of model and graph; a store of another owner is refused.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._reading():
            self._require_database()
        self._database = sqlite3.connect(
            folder / _FILE, timeout=1, isolation_level=None, check_same_thread=False
        )
        try:
            with self._reading():
                self._open(owner)
        except BaseException:
            self._database.close()
            raise
        self._sweep()

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
        with self._transaction():
            run("CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
            columns = "version INTEGER PRIMARY KEY, change TEXT NOT NULL, is_last INTEGER NOT NULL"
            run(f"CREATE TABLE IF NOT EXISTS changes ({columns})")
            self._about: dict[str, str] = dict(run("SELECT key, value FROM about").fetchall())
            if not self._about and run("SELECT count(*) FROM changes").fetchone() == (0,):
                self._write_about(format=FORMAT, owner=owner, base="0", last="0")
        about = self._about
        if about.get("format", FORMAT) != FORMAT:
            raise ParameterError(
                f"{self.folder}: the store has format {about['format']!r}, this program reads {FORMAT!r}; "
                "serve it with the program that wrote it"
            )
        if about.get("seal") != self._about_checksum():
            raise ModelFormatError("the description of the store does not match its checksum")
        if about["owner"] != owner:
            raise ParameterError(
                f"{self.folder}: the store was made for another model or graph; choose another folder "
                "with --store, or serve the model and graph it belongs to"
            )

    def _about_checksum(self) -> str:
        lines = (f"{key} {value}" for key, value in sorted(self._about.items()) if key != "seal")
        return _checksum("\n".join(lines))

    def _write_about(self, **rows: str) -> None:
        """Write rows of the table ``about`` and its checksum; within a transaction."""
        self._about |= rows
        self._about["seal"] = self._about_checksum()
        written = [(key, self._about[key]) for key in (*rows, "seal")]
        self._database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", written)

    def _transaction(self) -> sqlite3.Connection:
        """Begin a transaction that ``with`` commits or rolls back."""
        self._database.execute("BEGIN IMMEDIATE")
        return self._database

    def _sweep(self) -> None:
        """Remove files that a stopped process wrote but never used."""
        used = {f"base-{self.base_version}.safetensors", f"state-{self.state_version}.safetensors"}
        for file in [*self.folder.glob("base-*.safetensors"), *self.folder.glob("state-*.safetensors")]:
            if file.name not in used:
                file.unlink(missing_ok=True)

    @property
    def base_version(self) -> int:
        """The version of the base graph."""
        return int(self._about["base"])

    @property
    def state_version(self) -> int | None:
        """The version of the saved state, if there is one."""
        found = self._about.get("state")
        return None if found is None else int(found)

    def load(self) -> tuple[Graph | None, dict[str, NDArray[Any]] | None, list[Entry]]:
        """Return the base graph of the last compaction, the saved state, and the changes since that base."""
        base, state = self.base_version, self.state_version
        with self._reading():
            rows = self._database.execute("SELECT version, change, is_last FROM changes ORDER BY version")
            entries, last = [_read_row(*row) for row in rows.fetchall()], int(self._about["last"])
            if [entry.version for entry in entries] != list(range(base + 1, last + 1)):
                raise ModelFormatError(f"changes are missing from the log, which ends with version {last}")
            return (
                graph_of(self._load(f"base-{base}")) if base else None,
                None if state is None else self._load(f"state-{state}"),
                entries,
            )

    def append(self, entries: Sequence[Entry]) -> None:
        """Write changes to disk, all or none; afterwards they survive any stop."""
        rows = [_written_row(entry) for entry in entries]
        with self._transaction() as database:
            database.executemany("INSERT INTO changes VALUES (?, ?, ?)", rows)
            self._write_about(last=str(entries[-1].version))

    def write_state(self, version: int, state: dict[str, NDArray[Any]]) -> None:
        """Write the state at a version, in any thread; it counts after :meth:`use_state`."""
        self._save(f"state-{version}", state)

    def use_state(self, version: int) -> None:
        """Make a restart begin from a written state; the log stays as it is."""
        if self.state_version != version and (self.folder / f"state-{version}.safetensors").exists():
            with self._transaction():
                self._write_about(state=str(version))
            self._sweep()

    def compact(self, version: int, base: Graph, state: dict[str, NDArray[Any]]) -> None:
        """Replace the changes up to a version by a new base graph."""
        self._save(f"base-{version}", graph_arrays(base))
        self._save(f"state-{version}", state)
        with self._transaction() as database:
            self._write_about(base=str(version), state=str(version))
            database.execute("DELETE FROM changes WHERE version <= ?", (version,))
        self._sweep()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        with whole_file(self.folder / f"{name}.safetensors") as partial:
            write_signed(partial, arrays, {})

    def _load(self, name: str) -> dict[str, NDArray[Any]]:
        return read_signed(self.folder / f"{name}.safetensors")[0]


def _written_row(entry: Entry) -> tuple[int, str, int]:
    version, text, is_last = entry.version, entry.change.to_text(), int(entry.is_last)
    return version, f"{_checksum(f'{version} {is_last} {text}')} {text}", is_last


def _read_row(version: int, row: Any, is_last: int) -> Entry:
    checksum, _, text = str(row).partition(" ")
    if checksum != _checksum(f"{version} {is_last} {text}"):
        raise ModelFormatError(f"change {version} does not match its checksum")
    return Entry(version, Change.from_text(text), bool(is_last))


def _checksum(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


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
        for entry in entries:
            if entry.version <= (store.state_version or 0):
                live.replay(entry.change)
        live.load_state(state)
    for entry in entries[live.snapshot.version - store.base_version :]:
        live.stage(entry.change)
        if entry.is_last:
            live.update()
    return live
