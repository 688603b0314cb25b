"""Vectors in the user's own PostgreSQL: one transaction that writes what changed, all of it or nothing."""

import json
import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict

from spinegraph.analysis.explain import shown
from spinegraph.embeddings import Embeddings
from spinegraph.errors import MissingPackageError, OutputError, ParameterError
from spinegraph.graph.names import first_few
from spinegraph.storage.model_folder import write_settings

_FORM = "postgresql://user:password@host:port/database"
_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_PORTS = re.compile(r"[\d,]*")
_PATIENCE = "10"  # seconds to connect, where nobody says otherwise
_ADVICE = {
    "0A000": "pgvector has to be installed on the server: https://github.com/pgvector/pgvector",
    "42704": "the server's pgvector may be too old: HNSW came with 0.5, halfvec with 0.7",
    "42501": "the user needs the right to do so; an index is the table owner's to make, or pass --no-index",
    "3F000": "make the schema first",
    "25006": "this server takes no writes; pass the address of the primary one",
    "42P10": "the column name must be the table's primary key, or unique",
}


@dataclass(frozen=True)
class Address:
    """Where a database is.

    Attributes
    ----------
    url : str
        As given.
    shown : str
        As it may be printed.
    """

    url: str = field(repr=False)
    shown: str
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, url: str) -> "Address":
        """Read an address; what is wrong with one is said without quoting it."""
        scheme, _, rest = url.partition("://")
        if scheme not in ("postgresql", "postgres"):
            got = f"; got {scheme}://" if rest and scheme.replace("+", "").isalnum() else ""
            raise ParameterError(f"--to must be {_FORM}{got}")
        unreadable = ParameterError(
            f"--to cannot be read as {_FORM}; in user and password write "
            "@ as %40, : as %3A, / as %2F, ? as %3F and % as %25"
        )
        try:
            parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        except psycopg.Error:
            raise unreadable from None
        host, name = parts.get("host", ""), parts.get("dbname", "")
        if "@" in host[1:] or "@" in name or not _PORTS.fullmatch(parts.get("port", "")):
            # libpq took parts of such a password for a host, a port or a database, and would print them.
            raise unreadable
        user = f"{parts['user']}@" if "user" in parts else ""
        port = f":{parts['port']}" if "port" in parts else ""
        secrets = tuple(parts[name] for name in _SECRETS if parts.get(name))
        shown = f"postgresql://{user}{'' if host[:1] in '/@' else host}{port}/{name}"
        return cls(url, shown, secrets)

    def told(self, error: Exception) -> str:
        """Return what an error says, in one line and without secrets."""
        diagnosis = getattr(error, "diag", None)
        text = getattr(diagnosis, "message_primary", None) or str(error)
        text = "; ".join(line.strip() for line in text.splitlines() if line.strip())
        for secret in self.secrets:
            text = text.replace(secret, "***")
        advice = _ADVICE.get(getattr(error, "sqlstate", None) or "")
        return f"{text}; {advice}" if advice else text


@contextmanager
def session(url: str) -> Iterator[tuple[Address, "psycopg.Connection[Any]"]]:
    """Connect, and close in the end; what was not committed is undone."""
    address = Address.of(url)
    patience: dict[str, Any] = {} if _is_patience_given(url) else {"connect_timeout": _PATIENCE}
    try:
        connection = psycopg.connect(
            url, **patience, client_encoding="UTF8", fallback_application_name="spinegraph"
        )
    except (psycopg.Error, UnicodeError) as fault:
        raise OutputError(f"{address.shown}: {address.told(fault)}") from None
    try:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.prepare_threshold = None  # poolers keep no prepared statements
        yield address, connection
    finally:
        connection.close()


@contextmanager
def all_or_nothing(address: Address, connection: "psycopg.Connection[Any]") -> Iterator[None]:
    """Commit in the end, or undo everything and say why."""
    try:
        yield
    except psycopg.Error as fault:
        raise OutputError(f"{address.shown}: {address.told(fault)}; nothing was changed") from None
    try:
        connection.commit()
    except psycopg.Error as fault:
        raise OutputError(
            f"{address.shown}: {address.told(fault)}; the end of the export was not confirmed: run it again"
        ) from None


def _is_patience_given(url: str) -> bool:
    return "connect_timeout" in conninfo_to_dict(url) or "PGCONNECT_TIMEOUT" in os.environ


_BEGINNING = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)  # signature, flags, no extension
_END = struct.pack(">h", -1)
_ROW = [("fields", ">i2")]
_NUMBER = [("name_length", ">i4"), ("name", ">i8")]
_BATCH_BYTES = 2**20
_LARGEST_HALF = 65504.0


def text_names(names: NDArray[Any]) -> list[bytes]:
    """Return names as PostgreSQL's text holds them; (0, "ann") of several networks is ``0:ann``."""
    texts = [shown(name) for name in names.tolist()]
    for name in texts:
        if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise OutputError(
                f"node {name!r}: PostgreSQL's text holds neither the character NUL nor halves of characters; "
                "rename the node"
            )
    if len(set(texts)) < len(texts):
        seen: set[str] = set()
        again = [name for name in texts if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        raise OutputError(f"names must differ as text; several nodes would be {first_few(again)}")
    return [name.encode() for name in texts]


def copy_rows(embeddings: Embeddings, *, numbers: bool, half: bool) -> Iterator[tuple[int, bytes]]:
    """Yield a binary COPY of (name, vector) in parts, and how many rows lie in all parts up to there.

    Parameters
    ----------
    embeddings : Embeddings
    numbers : bool
        Names are bigint, else text.
    half : bool
        Vectors are halfvec, else vector.
    """
    if half and (top := float(np.abs(embeddings.vectors).max(initial=0))) > _LARGEST_HALF:
        raise OutputError(
            f"halfvec holds numbers up to {_LARGEST_HALF:,.0f}; the vectors reach {top:g}: pass --no-index, "
            "which stores them as vector"
        )
    kind = _vector_kind(embeddings.dim, half=half)
    row = np.dtype(_ROW + (_NUMBER if numbers else []) + kind)
    texts = None if numbers else text_names(embeddings.names)
    yield 0, _BEGINNING
    size, n = max(1, _BATCH_BYTES // row.itemsize), len(embeddings)
    for start in range(0, n, size):
        stop = min(start + size, n)
        rows = np.zeros(stop - start, row)
        rows["fields"] = 2
        rows["length"] = sum(np.dtype([field]).itemsize for field in kind[1:])
        rows["dim"] = embeddings.dim
        rows["values"] = embeddings.vectors[start:stop]
        if texts is None:
            rows["name_length"] = 8
            rows["name"] = embeddings.names[start:stop]
            yield stop, rows.tobytes()
        else:
            yield stop, _with_names(rows, texts[start:stop])
    yield n, _END


def _vector_kind(dim: int, *, half: bool) -> list[Any]:
    number = ">f2" if half else ">f4"
    return [("length", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("values", number, (dim,))]


def _with_names(rows: NDArray[Any], names: list[bytes]) -> bytes:
    """Put each name, whose length differs, behind its row's count of fields."""
    raw, width = memoryview(rows.tobytes()), rows.dtype.itemsize
    parts: list[bytes | memoryview] = []
    for place, name in enumerate(names):
        row = raw[place * width : (place + 1) * width]
        parts += [row[:2], struct.pack(">i", len(name)), name, row[2:]]
    return b"".join(parts)


MOST = 16_000  # dimensions of pgvector's types
INDEXED = {"vector": 2_000, "halfvec": 4_000}  # dimensions that HNSW takes
_PART = re.compile(r"[^\W\d][\w$ -]*")
_MOST_BYTES = 63  # more are cut off by PostgreSQL
_ONE_AT_A_TIME = 5_317_010_077  # any number; held while an extension or a table is made
_COLUMNS = """
    SELECT a.attname, t.typname, a.atttypmod FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped"""
_FOUND = """
    SELECT c.oid, n.nspname, c.relname, c.relkind::text FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)"""
_INDEX = """
    SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
    JOIN pg_opclass o ON o.oid = i.indclass[0]
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = %s AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'hnsw'
    AND a.attname = 'embedding' AND o.opcname = %s"""
_EXTENSION = """
    SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'"""


def table_parts(text: str) -> tuple[str, ...]:
    """Return the parts of ``NAME`` or ``SCHEMA.NAME``; letters keep their case."""
    parts = tuple(text.split("."))
    sizes = [len(part.encode(errors="replace")) for part in parts]
    if len(parts) > 2 or max(sizes) > _MOST_BYTES or not all(map(_PART.fullmatch, parts)):
        raise ParameterError(
            "--table must be NAME or SCHEMA.NAME, of letters, digits, _, -, $ and spaces, beginning with a "
            f"letter or _, at most {_MOST_BYTES} bytes each; got {text[:80]!r}"
        )
    return parts


def vector_kind(dim: int, *, indexed: bool) -> str:
    """Return the type that vectors of a length are best stored as."""
    if dim > MOST:
        raise ParameterError(f"pgvector holds vectors of up to {MOST:,} dimensions; got {dim:,}")
    return "halfvec" if indexed and INDEXED["vector"] < dim <= INDEXED["halfvec"] else "vector"


@dataclass(frozen=True)
class Table:
    """A table of vectors that is there.

    Attributes
    ----------
    number : int
        PostgreSQL's own for it.
    schema, name : str
    extension : str
        The schema that pgvector is installed in.
    names : {"int8", "text"}
    kind : {"vector", "halfvec"}
    dim : int
    """

    number: int
    schema: str
    name: str
    extension: str
    names: str
    kind: str
    dim: int

    @property
    def identifier(self) -> sql.Identifier:
        """The table, quoted."""
        return sql.Identifier(self.schema, self.name)

    @property
    def vector_type(self) -> sql.Composed:
        """The type of the vectors, quoted."""
        return _vector_type(self.extension, self.kind, self.dim)

    def is_indexed(self, connection: "Connection[Any]") -> bool:
        """Return whether nearest vectors by cosine are found through an index."""
        return _first(connection, _INDEX, (self.number, f"{self.kind}_cosine_ops")) is not None

    def make_index(self, connection: "Connection[Any]") -> None:
        """Index the vectors for the nearest by cosine."""
        operators = sql.Identifier(self.extension, f"{self.kind}_cosine_ops")
        making = sql.SQL("CREATE INDEX ON {} USING hnsw (embedding {})")
        connection.execute(making.format(self.identifier, operators))


def ready_table(
    connection: "Connection[Any]", parts: tuple[str, ...], *, numbers: bool, dim: int, indexed: bool
) -> Table:
    """Return the table of a name, made if it is missing, as is the extension; it must fit the vectors.

    Parameters
    ----------
    connection
    parts : (name,) or (schema, name)
    numbers : bool
        Whether all names are whole numbers.
    dim : int
    indexed : bool
        Whether an index is wanted.
    """
    quoted = sql.Identifier(*parts).as_string(connection)
    if _first(connection, _EXTENSION) is None or _first(connection, _FOUND, (quoted,)) is None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        if _first(connection, _FOUND, (quoted,)) is None:
            extension = _first(connection, _EXTENSION)[0]
            kind = _vector_type(extension, vector_kind(dim, indexed=indexed), dim)
            making = sql.SQL(
                "CREATE TABLE {} (name {} PRIMARY KEY, embedding {} NOT NULL, model text NOT NULL, "
                "updated_at timestamptz NOT NULL)"
            )
            names = sql.SQL("bigint" if numbers else "text")
            connection.execute(making.format(sql.Identifier(*parts), names, kind))
    return _fitting(connection, quoted, numbers=numbers, dim=dim)


def _fitting(connection: "Connection[Any]", quoted: str, *, numbers: bool, dim: int) -> Table:
    number, schema, name, relation = _first(connection, _FOUND, (quoted,))
    found = {column: (kind, more) for column, kind, more in connection.execute(_COLUMNS, (number,))}
    names, (kind, held) = found.get("name", ("nothing", 0))[0], found.get("embedding", ("nothing", 0))
    fits = (
        relation in "rp"
        and names in ("int8", "text")
        and kind in INDEXED
        and found.get("model", ("",))[0] == "text"
        and found.get("updated_at", ("",))[0] == "timestamptz"
    )
    if not fits:
        raise OutputError(
            f"{quoted} is there and no table of vectors: that has the columns name (bigint or text), "
            "embedding (vector or halfvec), model (text) and updated_at (timestamptz); pass another --table"
        )
    if held not in (dim, -1):  # -1: any
        raise OutputError(
            f"{quoted} holds vectors of {held:,} dimensions, these have {dim:,}; pass another --table"
        )
    if names == "int8" and not numbers:
        raise OutputError(f"{quoted} has whole numbers as names, these are texts; pass another --table")
    return Table(number, schema, name, _first(connection, _EXTENSION)[0], names, kind, dim)


def _vector_type(extension: str, kind: str, dim: int) -> sql.Composed:
    return sql.SQL("{}({})").format(sql.Identifier(extension, kind), sql.Literal(dim))


def _first(connection: "Connection[Any]", query: Any, values: tuple[Any, ...] = ()) -> Any:
    return connection.execute(query, values).fetchone()


Told = Callable[[str, int, int], None]  # stage, done, of how many (0 where unknown)
_INCOMING = "CREATE TEMP TABLE spinegraph_incoming (name {}, embedding {}) ON COMMIT DROP"
_COPY = "COPY pg_temp.spinegraph_incoming (name, embedding) FROM STDIN (FORMAT binary)"
_KNOWN = "SELECT count(*) FROM {} JOIN pg_temp.spinegraph_incoming USING (name)"
# A row that is as it was is left alone: writing it would cost the index as much as a new one.
_UPSERT = """
    INSERT INTO {} AS old (name, embedding, model, updated_at)
    SELECT name, embedding, %s, now() FROM pg_temp.spinegraph_incoming
    ON CONFLICT (name) DO UPDATE SET embedding = excluded.embedding, model = excluded.model,
    updated_at = excluded.updated_at
    WHERE old.embedding IS NULL OR old.embedding OPERATOR({}.<>) excluded.embedding
    OR old.model IS DISTINCT FROM excluded.model"""
_DELETE = """
    DELETE FROM {} AS old
    WHERE NOT EXISTS (SELECT FROM pg_temp.spinegraph_incoming AS new WHERE new.name = old.name)"""


@dataclass(frozen=True)
class Written:
    """What an export did.

    Attributes
    ----------
    to : str
        The database, without a password.
    table : str
        Quoted as SQL needs it.
    type : str
        Of the vectors, such as ``vector(200)``.
    nodes, inserted, updated, unchanged, deleted : int
    index : {"made", "kept", "none"}
    model : str
        Fingerprint of the model, as the table has it.
    seconds : float
    notes : tuple of str
        What the user should know.
    """

    to: str
    table: str
    type: str
    nodes: int
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    index: str
    model: str
    seconds: float
    notes: tuple[str, ...]


def model_fingerprint(model: Any) -> str:
    """Return 32 hexadecimal digits that tell fitted models apart; equal ones make equal vectors."""
    about, arrays = write_settings(model)
    about = {key: value for key, value in about.items() if key not in ("history", "changed_since_fit")}
    about["settings"] = {key: value for key, value in about["settings"].items() if key != "threads"}
    digest = blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


class Database:
    """A database to write vectors into; see ``database``."""

    def __init__(self, address: Any, connection: Any, parts: tuple[str, ...]) -> None:
        self._address, self._connection, self._parts = address, connection, parts

    def write(
        self,
        embeddings: Embeddings,
        model: str,
        *,
        index: bool = True,
        delete_missing: bool = False,
        told: Told = lambda stage, done, total: None,
    ) -> Written:
        """Make the table hold the vectors of all these nodes; readers see the old rows until it does.

        Parameters
        ----------
        embeddings : Embeddings
        model : str
            Kept beside every vector.
        index : bool
            Make an HNSW index for cosines where there is none.
        delete_missing : bool
            Delete the rows of all other names.
        told : callable (stage, done, total)
        """
        start, connection, notes = time.perf_counter(), self._connection, _notes(embeddings)
        numbers = embeddings.names.dtype == np.int64
        connection.add_notice_handler(lambda notice: _relay(notice.message_primary, notes))
        with all_or_nothing(self._address, connection):
            table = ready_table(connection, self._parts, numbers=numbers, dim=embeddings.dim, indexed=index)
            self._send(table, embeddings, told)
            told("writing", 0, 0)
            inserted, updated, deleted = self._merge(table, model, delete_missing=delete_missing)
            told("indexing", 0, 0)
            state = self._index(table, notes) if index else "none"
            if table.kind == "halfvec":
                notes.append("stored as halfvec, numbers of 16 bits: HNSW takes no longer vectors of 32 bits")
        return Written(
            to=self._address.shown,
            table=table.identifier.as_string(None),
            type=f"{table.kind}({table.dim})",
            nodes=len(embeddings),
            inserted=inserted,
            updated=updated,
            unchanged=len(embeddings) - inserted - updated,
            deleted=deleted,
            index=state,
            model=model,
            seconds=time.perf_counter() - start,
            notes=tuple(notes),
        )

    def _send(self, table: "Table", embeddings: Embeddings, told: Told) -> None:
        """Copy the rows into a table that only this transaction sees."""
        from psycopg import sql

        names = sql.SQL("bigint" if table.names == "int8" else "text")
        self._connection.execute(sql.SQL(_INCOMING).format(names, table.vector_type))
        stage = f"sending {len(embeddings):,} vectors"
        parts = copy_rows(embeddings, numbers=table.names == "int8", half=table.kind == "halfvec")
        with self._connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            for done, part in parts:
                copy.write(part)
                told(stage, done, len(embeddings))
        self._connection.execute("ANALYZE pg_temp.spinegraph_incoming (name)")

    def _merge(self, table: "Table", model: str, *, delete_missing: bool) -> tuple[int, int, int]:
        """Return how many rows were inserted, updated and deleted."""
        from psycopg import sql

        def run(query: str, *values: Any) -> Any:
            filled = sql.SQL(query).format(table.identifier, sql.Identifier(table.extension))
            return self._connection.execute(filled, values)

        # Readers go on; other writers wait, so that the counts and what is missing stay true.
        run("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE")
        known = run(_KNOWN).fetchone()[0]
        total = self._connection.execute("SELECT count(*) FROM pg_temp.spinegraph_incoming").fetchone()[0]
        written = run(_UPSERT, model).rowcount
        deleted = run(_DELETE).rowcount if delete_missing else 0
        return total - known, written - (total - known), deleted

    def _index(self, table: "Table", notes: list[str]) -> str:

        if table.is_indexed(self._connection):
            return "kept"
        if table.dim > INDEXED[table.kind]:
            notes.append(
                f"no index: HNSW takes up to {INDEXED[table.kind]:,} dimensions of {table.kind}, these "
                f"vectors have {table.dim:,}; queries compare with every row"
            )
            return "none"
        table.make_index(self._connection)
        return "made"


@contextmanager
def database(to: str, table: str) -> Iterator[Database]:
    """Connect to the database at ``postgresql://...``, to write vectors into one of its tables.

    Parameters
    ----------
    to : str
    table : str
        ``NAME`` or ``SCHEMA.NAME``; made on the first write.
    """
    try:
        import psycopg  # noqa: F401
    except ImportError as missing:
        raise MissingPackageError(
            f"exporting to PostgreSQL needs psycopg, which could not be loaded ({missing}): "
            "pip install 'spinegraph[postgres]'"
        ) from missing

    parts = table_parts(table)
    with session(to) as (address, connection):
        yield Database(address, connection, parts)


def _notes(embeddings: Embeddings) -> list[str]:
    zero = int((~embeddings.vectors.any(axis=1)).sum())
    if not zero:
        return []
    return [f"{zero:,} zero vectors have no cosine: a query through the index never finds them"]


def _relay(notice: str | None, notes: list[str]) -> None:
    if notice and "maintenance_work_mem" in notice:
        notes.append(f"{notice}: PGOPTIONS='-c maintenance_work_mem=1GB' makes the index sooner")
