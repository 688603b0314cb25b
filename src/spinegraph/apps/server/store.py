"""The durable store: a log of changes in SQLite, and beside it the base graph and state they go on from.

::

    store.sqlite3               the log, and which of the files below hold
    base-<version>.safetensors  the graph that compaction made; without one, the graph the service was given
    state-<version>.safetensors what the changes up to a version led to, so that a restart need not redo them

A change is acknowledged after SQLite has brought its write-ahead log to disk. Files are written whole under a
new name before the log says that they hold, so there is no moment at which a stop would leave half of one.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from spinegraph.apps.server.changes import Change
from spinegraph.atomic import whole_file
from spinegraph.errors import ModelFormatError, ParameterError
from spinegraph.graph.graph import Graph
from spinegraph.model_graph import graph_arrays, graph_of

FORMAT = "2"
_ALONE = "1"  # the format before: every change was settled alone
_FILE = "store.sqlite3"


class Entry(NamedTuple):
    """One line of the log."""

    version: int
    change: Change
    is_last: bool  # of changes that were settled together: a replay settles there as well


class Store:
    """A folder that holds what was added and removed since a model was fitted; one process at a time.

    Parameters
    ----------
    folder : Path
        Made where it is missing.
    owner : str
        What the store belongs to: the fingerprints of model and graph. Another owner is refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder), "model and graph")
    ...     store.append([Entry(1, Change("add", ["ann"]), is_last=True)])
    ...     [(entry.version, entry.change.names) for entry in store.changes()]
    ...     store.close()
    [(1, ['ann'])]
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._database = sqlite3.connect(
            folder / _FILE, timeout=1, isolation_level=None, check_same_thread=False
        )
        try:
            self._open(owner)
        except sqlite3.DatabaseError as fault:
            self._database.close()
            locked = "locked" in str(fault)
            why = "another process serves from it" if locked else f"{_FILE} is damaged ({fault})"
            raise ParameterError(f"{folder}: {why}; choose another folder with --store") from fault
        except BaseException:
            self._database.close()
            raise

    def _open(self, owner: str) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("BEGIN EXCLUSIVE")
        run("CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
        columns = "version INTEGER PRIMARY KEY, change TEXT NOT NULL, is_last INTEGER NOT NULL"
        run(f"CREATE TABLE IF NOT EXISTS changes ({columns})")
        run("INSERT OR IGNORE INTO about VALUES ('format', ?), ('owner', ?), ('base', '0')", (FORMAT, owner))
        if run("SELECT value FROM about WHERE key = 'format'").fetchone() == (_ALONE,):
            run("ALTER TABLE changes ADD COLUMN is_last INTEGER NOT NULL DEFAULT 1")
            run("UPDATE about SET value = ? WHERE key = 'format'", (FORMAT,))
        run("COMMIT")
        about = dict(run("SELECT key, value FROM about").fetchall())
        if about["format"] != FORMAT:
            raise ParameterError(
                f"{self.folder}: the store has format {about['format']!r}, this program reads {FORMAT!r}; "
                "serve it with the program that wrote it"
            )
        if about["owner"] != owner:
            raise ParameterError(
                f"{self.folder}: the store was made for another model or graph; choose another folder "
                "with --store, or serve the model and graph it belongs to"
            )
        self._sweep(about)

    @property
    def base_version(self) -> int:
        """The version that the base graph is of."""
        return int(self._about("base") or 0)

    @property
    def state_version(self) -> int | None:
        """The version of the saved state, if there is one."""
        found = self._about("state")
        return None if found is None else int(found)

    def changes(self) -> Iterator[Entry]:
        """Return the changes since the base graph, in their order."""
        rows = self._database.execute("SELECT version, change, is_last FROM changes ORDER BY version")
        for version, text, is_last in rows.fetchall():
            yield Entry(version, Change.from_text(text), bool(is_last))

    def count(self) -> int:
        """Return how many changes the log holds."""
        found = self._database.execute("SELECT count(*) FROM changes").fetchone()
        return int(found[0])

    def append(self, entries: Sequence[Entry]) -> None:
        """Bring changes to disk, all or none; afterwards they survive any stop."""
        rows = [(entry.version, entry.change.to_text(), int(entry.is_last)) for entry in entries]
        with self._transaction() as run:
            run.executemany("INSERT INTO changes VALUES (?, ?, ?)", rows)

    def base(self) -> Graph | None:
        """Return the graph that compaction made, None where there was none."""
        version = self.base_version
        return graph_of(self._load(f"base-{version}")) if version else None

    def state(self) -> dict[str, NDArray[Any]] | None:
        """Return the saved state, if there is one."""
        version = self.state_version
        return None if version is None else self._load(f"state-{version}")

    def write_state(self, version: int, state: dict[str, NDArray[Any]]) -> None:
        """Write what the changes up to a version led to; any thread may, :meth:`use_state` makes it hold."""
        self._save(f"state-{version}", state)

    def use_state(self, version: int) -> None:
        """Go on from a state that was written; the log stays as it is."""
        before = self.state_version
        if before == version or not (self.folder / f"state-{version}.safetensors").exists():
            return
        with self._transaction() as run:
            run.execute("INSERT OR REPLACE INTO about VALUES ('state', ?)", (str(version),))
        self._forget(None if before is None else f"state-{before}")

    def compact(self, version: int, base: Graph, state: dict[str, NDArray[Any]]) -> None:
        """Put a new base graph in the place of the changes up to a version."""
        old = f"base-{self.base_version}", f"state-{self.state_version}"
        self._save(f"base-{version}", graph_arrays(base))
        self._save(f"state-{version}", state)
        with self._transaction() as run:
            run.execute("INSERT OR REPLACE INTO about VALUES ('base', ?)", (str(version),))
            run.execute("INSERT OR REPLACE INTO about VALUES ('state', ?)", (str(version),))
            run.execute("DELETE FROM changes WHERE version <= ?", (version,))
        for name in old:
            self._forget(name if not name.endswith(f"-{version}") else None)

    def close(self) -> None:
        """Close the database; what was appended is on disk already."""
        self._database.close()

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._database)

    def _about(self, key: str) -> str | None:
        found = self._database.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def _save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        with whole_file(self.folder / f"{name}.safetensors") as partial:
            save_file(arrays, partial)

    def _load(self, name: str) -> dict[str, NDArray[Any]]:
        try:
            arrays: dict[str, NDArray[Any]] = load_file(self.folder / f"{name}.safetensors")
        except (OSError, SafetensorError) as fault:
            raise ModelFormatError(
                f"{self.folder}: {name}.safetensors cannot be read ({fault}); "
                "bring the store back from a copy"
            ) from fault
        return arrays

    def _forget(self, name: str | None) -> None:
        if name is not None:
            (self.folder / f"{name}.safetensors").unlink(missing_ok=True)

    def _sweep(self, about: dict[str, str]) -> None:
        """Remove files that a stopped process wrote and did not come to use."""
        held = {f"base-{about['base']}.safetensors", f"state-{about.get('state')}.safetensors"}
        for file in self.folder.glob("*.safetensors"):
            if file.name not in held and file.name.startswith(("base-", "state-")):
                file.unlink()


class _Transaction:
    """All statements or none, on disk at the end."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        self._database.execute("BEGIN IMMEDIATE")
        return self._database

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")
