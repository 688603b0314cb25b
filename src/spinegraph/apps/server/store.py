"""The durable store: a log of changes in SQLite beside the base graph and state they apply to."""

import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
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
from spinegraph.graph.fingerprint import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few
from spinegraph.storage.model_folder import graph_arrays, graph_of

KNOWN = frozenset(("format", "owner", "base", "state", "last", "seal"))
_HEAD, _FRAME = 32, 24  # bytes of a write-ahead log's header, and of the header of each page in it
_MAGIC = (0x377F0682, 0x377F0683)


def sealed_row(version: int, text: str, is_last: bool) -> str:
    """Return a change's text behind a seal of all that its row says."""
    return f"{_seal(f'{version} {is_last:d} {text}')} {text}"


def opened_row(version: int, text: str, is_last: bool) -> str:
    """Return the text of ``sealed_row``, or raise; rows of older stores have no seal and begin with ``{``."""
    if text.startswith("{"):
        return text
    seal, _, rest = text.partition(" ")
    if seal != _seal(f"{version} {is_last:d} {rest}"):
        raise ModelFormatError(f"change {version} is not what was written: the disk damaged it")
    return rest


def about_seal(rows: Mapping[str, str]) -> str:
    """Return the seal of what a store says about itself."""
    return _seal("\n".join(f"{key} {rows[key]}" for key in sorted(rows) if key != "seal"))


def require_sealed(rows: Mapping[str, str]) -> None:
    """Refuse what a store says about itself where it is not what was written."""
    if not rows.keys() <= KNOWN or rows.get("seal", about_seal(rows)) != about_seal(rows):
        raise ModelFormatError(
            "what the store says about itself is not what was written: the disk damaged it"
        )


def require_whole_log(path: Path) -> None:
    """Refuse a write-ahead log with a page that is damaged before its last transaction.

    What a crash cut off is the last transaction, which nobody was told of. A damaged page with a later
    transaction behind it was on disk once: SQLite would drop all that follows.
    """
    if not path.exists():
        return
    data = path.read_bytes()
    if len(data) <= _HEAD:
        return
    magic, _, size = struct.unpack(">III", data[:12])
    order = ">" if magic == _MAGIC[1] else "<"
    sums = _sums(data[:24], (0, 0), order)
    if magic not in _MAGIC or sums != struct.unpack(">II", data[24:_HEAD]):
        raise ModelFormatError(f"{path.name} is damaged in its header, so that all it holds would be lost")
    salt, damaged, length = data[16:24], False, _FRAME + size
    for place in range(_HEAD, len(data) - length + 1, length):
        frame = data[place : place + length]
        if frame[8:16] != salt and not damaged:
            # Left from before the log began anew, unless more of this log follows.
            damaged = salt in (data[at + 8 : at + 16] for at in range(place, len(data) - _FRAME, length))
            if not damaged:
                return
        if damaged:
            if _is_commit(frame) and _has_commit(data, place + length, length, salt):
                raise ModelFormatError(f"{path.name} is damaged in its middle: what follows would be lost")
            continue
        sums = _sums(frame[:8], sums, order)
        sums = _sums(frame[_FRAME:], sums, order)
        damaged = sums != struct.unpack(">II", frame[16:_FRAME])
        if damaged and _is_commit(frame) and _has_commit(data, place + length, length, salt):
            raise ModelFormatError(f"{path.name} is damaged in its middle: what follows would be lost")


def _is_commit(frame: bytes) -> bool:
    return frame[4:8] != b"\0\0\0\0"


def _has_commit(data: bytes, start: int, length: int, salt: bytes) -> bool:
    """Say whether a transaction of this log ends behind a place."""
    return any(
        data[place + 8 : place + 16] == salt and _is_commit(data[place : place + _FRAME])
        for place in range(start, len(data) - length + 1, length)
    )


def _sums(data: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    """Go on with the two running sums of a write-ahead log."""
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def _seal(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


FORMAT = "2"
_ALONE = "1"  # the format before: every change was settled alone
_FILE = "store.sqlite3"
_LEAST_LOG = 512  # bytes; the smallest page that a database of SQLite begins with
_WAY_OUT = "bring the store back from a copy, or choose another folder with --store"


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
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._from_a_copy():
            _require_log(folder)
            require_whole_log(folder / f"{_FILE}-wal")
        self._database = sqlite3.connect(
            folder / _FILE, timeout=1, isolation_level=None, check_same_thread=False
        )
        try:
            self._open(owner)
        except sqlite3.DatabaseError as fault:
            self._database.close()
            locked = "locked" in str(fault)
            why = "another process serves from it" if locked else f"{_FILE} is damaged ({fault})"
            way_out = "choose another folder with --store" if locked else _WAY_OUT
            raise ParameterError(f"{folder}: {why}; {way_out}") from fault
        except BaseException:
            self._database.close()
            raise

    def _open(self, owner: str) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        if (found := run("PRAGMA quick_check(1)").fetchone()) != ("ok",):
            raise sqlite3.DatabaseError(" ".join(str(found[0]).split())[:100])
        with self._transaction(), self._from_a_copy():
            self._about = self._begin(owner)
        about = self._about
        if about["owner"] != owner:
            raise ParameterError(
                f"{self.folder}: the store was made for another model or graph; choose another folder "
                "with --store, or serve the model and graph it belongs to"
            )
        self._sweep(about)

    def _begin(self, owner: str) -> dict[str, str]:
        """Return what the store says about itself, after a new one or one of the format before was set up."""
        run = self._database.execute
        run("CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
        columns = "version INTEGER PRIMARY KEY, change TEXT NOT NULL, is_last INTEGER NOT NULL"
        run(f"CREATE TABLE IF NOT EXISTS changes ({columns})")
        about = dict(run("SELECT key, value FROM about").fetchall())
        if about.get("format", FORMAT) not in (FORMAT, _ALONE):
            raise ParameterError(
                f"{self.folder}: the store has format {about['format']!r}, this program reads {FORMAT!r}; "
                "serve it with the program that wrote it"
            )
        require_sealed(about)
        if not about:
            if run("SELECT count(*) FROM changes").fetchone() != (0,):
                raise ModelFormatError("the store says nothing about itself, but holds changes")
            self._about = {}
            self._tell(format=FORMAT, owner=owner, base="0", last="0")
            return self._about
        if about.get("format") == _ALONE:
            run("ALTER TABLE changes ADD COLUMN is_last INTEGER NOT NULL DEFAULT 1")
            run("UPDATE about SET value = ? WHERE key = 'format'", (FORMAT,))
            about["format"] = FORMAT
        for key in ("format", "owner", "base"):
            if key not in about:
                raise ModelFormatError(f"the store does not say its {key}")
        held = [f"{key}-{about[key]}" for key in ("base", "state") if about.get(key, "0") != "0"]
        for name in held:
            if not (self.folder / f"{name}.safetensors").exists():
                raise ModelFormatError(f"{name}.safetensors is not there")
        return about

    def _tell(self, **rows: str) -> None:
        """Write down, within a transaction, what the store says about itself; sealed."""
        self._about |= rows
        self._about["seal"] = about_seal(self._about)
        written = [(key, self._about[key]) for key in (*rows, "seal")]
        self._database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", written)

    @contextmanager
    def _from_a_copy(self) -> Iterator[None]:
        """Name the store, and the way out, in what its seals found."""
        try:
            yield
        except ModelFormatError as fault:
            raise ModelFormatError(f"{self.folder}: {fault}; {_WAY_OUT}") from fault
        except SpineError:
            raise
        except (sqlite3.DatabaseError, SafetensorError, OSError, ValueError, LookupError, TypeError) as fault:
            raise ModelFormatError(f"{self.folder}: the store is damaged ({fault}); {_WAY_OUT}") from fault

    @property
    def base_version(self) -> int:
        """The version that the base graph is of."""
        return int(self._about["base"])

    @property
    def state_version(self) -> int | None:
        """The version of the saved state, if there is one."""
        found = self._about.get("state")
        return None if found is None else int(found)

    def changes(self) -> Iterator[Entry]:
        """Return the changes since the base graph, in their order."""
        with self._from_a_copy():
            rows = self._database.execute("SELECT version, change, is_last FROM changes ORDER BY version")
            found = [
                Entry(version, Change.from_text(opened_row(version, text, bool(is_last))), bool(is_last))
                for version, text, is_last in rows.fetchall()
            ]
            end = str(found[-1].version) if found else self._about["base"]
            if self._about.get("last", end) != end:
                raise ModelFormatError(f"the log ends with change {end} of {self._about['last']}")
        return iter(found)

    def count(self) -> int:
        """Return how many changes the log holds."""
        found = self._database.execute("SELECT count(*) FROM changes").fetchone()
        return int(found[0])

    def append(self, entries: Sequence[Entry]) -> None:
        """Bring changes to disk, all or none; afterwards they survive any stop."""
        rows = [
            (version, sealed_row(version, change.to_text(), is_last), int(is_last))
            for version, change, is_last in entries
        ]
        with self._transaction() as run:
            run.executemany("INSERT INTO changes VALUES (?, ?, ?)", rows)
            self._tell(last=str(entries[-1].version))

    def base(self) -> Graph | None:
        """Return the graph that compaction made, None where there was none."""
        version = self.base_version
        if not version:
            return None
        with self._from_a_copy():
            return graph_of(self._load(f"base-{version}"))

    def state(self) -> dict[str, NDArray[Any]] | None:
        """Return the saved state, if there is one."""
        version = self.state_version
        if version is None:
            return None
        with self._from_a_copy():
            return self._load(f"state-{version}")

    def write_state(self, version: int, state: dict[str, NDArray[Any]]) -> None:
        """Write what the changes up to a version led to; any thread may, :meth:`use_state` makes it hold."""
        self._save(f"state-{version}", state)

    def use_state(self, version: int) -> None:
        """Go on from a state that was written; the log stays as it is."""
        before = self.state_version
        if before == version or not (self.folder / f"state-{version}.safetensors").exists():
            return
        with self._transaction():
            self._tell(state=str(version))
        self._forget(None if before is None else f"state-{before}")

    def compact(self, version: int, base: Graph, state: dict[str, NDArray[Any]]) -> None:
        """Put a new base graph in the place of the changes up to a version."""
        old = f"base-{self.base_version}", f"state-{self.state_version}"
        self._save(f"base-{version}", graph_arrays(base))
        self._save(f"state-{version}", state)
        with self._transaction() as run:
            self._tell(base=str(version), state=str(version))
            run.execute("DELETE FROM changes WHERE version <= ?", (version,))
        for name in old:
            self._forget(name if not name.endswith(f"-{version}") else None)

    def close(self) -> None:
        """Close the database; what was appended is on disk already."""
        self._database.close()

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._database)

    def _save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        with whole_file(self.folder / f"{name}.safetensors") as partial:
            write_signed(partial, arrays, {})

    def _load(self, name: str) -> dict[str, NDArray[Any]]:
        try:
            return read_signed(self.folder / f"{name}.safetensors")[0]
        except (OSError, SafetensorError, ValueError) as fault:
            raise ModelFormatError(f"{name}.safetensors cannot be read ({str(fault)[:200]})") from fault

    def _forget(self, name: str | None) -> None:
        if name is not None:
            (self.folder / f"{name}.safetensors").unlink(missing_ok=True)

    def _sweep(self, about: dict[str, str]) -> None:
        """Remove files that a stopped process wrote and did not come to use."""
        held = {f"base-{about['base']}.safetensors", f"state-{about.get('state')}.safetensors"}
        for file in self.folder.glob("*.safetensors"):
            if file.name not in held and file.name.startswith(("base-", "state-")):
                file.unlink()


def _require_log(folder: Path) -> None:
    """Refuse a log that is gone or cut to nothing, which SQLite would take for a new one and begin anew."""
    path = folder / _FILE
    if path.exists() and path.stat().st_size < _LEAST_LOG:
        raise ModelFormatError(f"{_FILE} is cut off; if nothing was ever stored here, delete it")
    if not path.exists() and any(folder.glob("base-*.safetensors")):
        raise ModelFormatError(f"{_FILE} is not there, but a base graph is")


class _Transaction:
    """All statements or none, on disk at the end."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        self._database.execute("BEGIN IMMEDIATE")
        return self._database

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")


def open_store(model: Any, graph: Graph, folder: Path) -> Store:
    """Open the store of a model and a graph, or make it.

    Parameters
    ----------
    model : SPINE
        Fitted.
    graph : Graph
        Names are text or whole numbers.
    folder : Path
    """
    other = [name for name in graph.names.tolist() if not isinstance(name, str | int)]
    if other:
        raise ParameterError(
            f"a service's node names are text or whole numbers; got {first_few(other, 3)}. "
            "Give the graph such names: graph.relabel(map(str, graph.names))"
        )
    weights = blake2b(np.ascontiguousarray(model.generator_.weights).data, digest_size=8).hexdigest()
    return Store(folder, f"{model.fingerprint_} {weights} {fingerprint(graph)}")


def restore(model: Any, graph: Graph, store: Store, tolerance: float | None = None) -> Live:
    """Return the state after all changes of the store: the same as if the service had never stopped.

    Changes up to the saved state are read for the graph alone; later ones are applied again, in their order
    and settled where they were.
    """
    generator = model.generator_
    if generator.inputs.encoder is not None:
        generator.inputs.require_features(graph)
    base = store.base()
    live = Live(generator, graph if base is None else base, tolerance, version=store.base_version)
    state, at = store.state(), store.state_version or 0
    rest = []
    for entry in store.changes():
        if state is not None and entry.version <= at:
            live.pass_over(entry.change)
            _require_next(store, entry.version, live.tip.version)
        else:
            rest.append(entry)
    if state is not None:
        live.resume(state)
    else:
        is_known = model.embeddings_ is not None and model.fingerprint_ == fingerprint(live.tip.overlay.base)
        live.compute_all(model.embeddings_.vectors if is_known else None)
    for place, entry in enumerate(rest, live.tip.version + 1):
        _require_next(store, entry.version, place)
        live.take(entry.change)
        if entry.is_last:
            live.settle()
    return live


def _require_next(store: Store, found: int, expected: int) -> None:
    if found != expected:
        raise ModelFormatError(
            f"{store.folder}: the log goes on with version {found} where {expected} belongs; bring the store "
            "back from a copy"
        )
