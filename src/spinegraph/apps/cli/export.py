"""``spine export``: a model's vectors written to PostgreSQL in one transaction."""

import json as json_text
import os
import re
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import Network
from spinegraph.atomic import digest
from spinegraph.embeddings import Embeddings
from spinegraph.errors import MissingPackageError, OutputError, ParameterError
from spinegraph.graph.names import first_few
from spinegraph.storage.model_folder import write_settings

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict
except ImportError as missing:  # --help works without it
    psycopg, _MISSING = None, str(missing)  # type: ignore[assignment]

_INDEX = {"made": "HNSW by cosine, created now", "kept": "HNSW by cosine, as it was", "none": "none"}
_URL = "postgresql://user:password@host:port/database"
_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_CONNECT_TIMEOUT = "10"  # seconds, unless the URL or the environment sets one
_ADVICE = {  # by SQLSTATE
    "0A000": "install pgvector on the server: https://github.com/pgvector/pgvector",
    "42704": "the server's pgvector may be too old: HNSW needs 0.5 or newer",
    "42501": "the user lacks the privilege; only the table's owner can create an index, or pass --no-index",
    "42P10": "the column name must be the table's primary key, or unique",
}
MAX_DIM, MAX_INDEXED_DIM = 16_000, 2_000  # of pgvector's vectors, and of HNSW
_NAME = re.compile(r"[^\W\d][\w$ -]*")
_MAX_NAME = 63  # bytes; PostgreSQL truncates longer names
_BATCH = 4_096  # rows sent between two reports of progress
_LOCK = 5_317_010_077  # an arbitrary number; held while the extension or the table is created
_FIND_TABLE = """
    SELECT c.oid, n.nspname, c.relname, c.relkind::text FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)"""
_FIND_COLUMNS = """
    SELECT a.attname, t.typname, a.atttypmod FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped"""
_FIND_INDEX = """
    SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
    JOIN pg_opclass o ON o.oid = i.indclass[0]
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = %s AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'hnsw'
    AND a.attname = 'embedding' AND o.opcname = 'vector_cosine_ops'"""
_FIND_EXTENSION = """
    SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'"""
_CREATE = """
    CREATE TABLE {} (name {} PRIMARY KEY, embedding {} NOT NULL, model text NOT NULL,
    updated_at timestamptz NOT NULL)"""
_CREATE_INCOMING = "CREATE TEMP TABLE spinegraph_incoming (name {}, embedding {}) ON COMMIT DROP"
_COPY = "COPY pg_temp.spinegraph_incoming (name, embedding) FROM STDIN (FORMAT binary)"
_COUNT_KNOWN = "SELECT count(*) FROM {} JOIN pg_temp.spinegraph_incoming USING (name)"
# An unchanged row is not written: that would cost the index as much as a new one.
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


@cli.takes(how=Network)
def export(
    model: cli.Model,
    to: Annotated[
        str, typer.Option(metavar="URL", help="postgresql://user@host/app; a password belongs in PGPASSWORD.")
    ],
    table: Annotated[str, typer.Option(help="NAME or SCHEMA.NAME, created if missing.")] = "node_vectors",
    index: Annotated[bool, typer.Option(help="Create an HNSW index for cosines if there is none.")] = True,
    delete_missing: Annotated[
        bool, typer.Option("--delete-missing", help="Delete the rows of nodes that are not exported.")
    ] = False,
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    how: Network,
) -> None:
    """Write vectors to a PostgreSQL table for pgvector: all of them or none.

    Existing nodes are updated and new ones added.

    Example: spine export model --to postgresql://ann@localhost/app --table people
    """
    with cli.shown_progress(quiet=quiet) as report:
        report("connecting", 0, 0)
        with connect(to, table) as database:  # first, since making vectors takes longer
            report("making vectors", 0, 0)
            nodes = how.open(model)
            options: Any = {"index": index, "delete_missing": delete_missing, "progress": report}
            written = database.write(nodes.embeddings, model_fingerprint(nodes.model), **options)
    if json:
        cli.print_json({**asdict(written), "seconds": round(written.seconds, 3)})
    elif not quiet:
        counts = f"{written.inserted:,} added, {written.updated:,} changed"
        facts = {
            "vectors": f"{written.nodes:,} of {written.type}",
            "rows": f"{counts}, {written.unchanged:,} unchanged, {written.deleted:,} deleted",
            "index": _INDEX[written.index],
            "time": f"{written.seconds:.1f} s",
        }
        cli.print_facts(f"{written.table} in {written.to}", facts)
        for note in written.notes:
            typer.echo(f"  note: {note}")
        typer.echo(
            f"\nTen nodes most like a node:\n"
            f"  SELECT name FROM {written.table} WHERE name <> NODE ORDER BY embedding <=>\n"
            f"  (SELECT embedding FROM {written.table} WHERE name = NODE) LIMIT 10"
        )


@contextmanager
def connect(to: str, table: str) -> Iterator["Database"]:
    """Connect to the database at ``postgresql://...``; ``table`` is ``NAME`` or ``SCHEMA.NAME``."""
    if psycopg is None:
        raise MissingPackageError(
            f"exporting to PostgreSQL needs psycopg, which could not be loaded ({_MISSING}): "
            "pip install 'spinegraph[postgres]'"
        )
    parts, address = table_parts(table), Address(to)
    has_timeout = "connect_timeout" in conninfo_to_dict(to) or "PGCONNECT_TIMEOUT" in os.environ
    options: dict[str, Any] = {"client_encoding": "UTF8", "fallback_application_name": "spinegraph"}
    options |= {} if has_timeout else {"connect_timeout": _CONNECT_TIMEOUT}
    try:
        connection = psycopg.connect(to, **options)
    except (psycopg.Error, UnicodeError) as error:
        raise OutputError(f"{address.shown}: {address.message(error)}") from None
    try:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.prepare_threshold = None  # connection poolers do not support prepared statements
        yield Database(address, connection, parts)
    finally:
        connection.close()  # rolls back what was not committed


@dataclass(frozen=True)
class Written:
    """What an export did."""

    to: str  # the database, without a password
    table: str  # quoted for SQL
    type: str  # of the vectors, such as "vector(200)"
    nodes: int
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    index: str  # "made", "kept" or "none"
    model: str  # fingerprint
    seconds: float
    notes: tuple[str, ...]  # for the user


class Database:
    """A database to write vectors into; see ``connect``."""

    def __init__(self, address: "Address", connection: Any, parts: tuple[str, ...]) -> None:
        self._address, self._connection, self._parts = address, connection, parts

    def write(
        self,
        embeddings: Embeddings,
        model: str,
        *,
        index: bool = True,
        delete_missing: bool = False,
        progress: cli.Report = lambda stage, done, total: None,
    ) -> Written:
        """Write these vectors to the table, each with ``model``; readers see the old rows until the commit.

        ``index`` creates an HNSW index for cosines if there is none; ``delete_missing`` deletes other rows.
        """
        start, notes, count = time.perf_counter(), [], len(embeddings)
        if zero := int((~embeddings.vectors.any(axis=1)).sum()):
            notes.append(f"{zero:,} zero vectors have no cosine: a query through the index never finds them")
        outcome = "nothing was changed"
        try:
            self._ready_table(embeddings)
            self._send(embeddings, progress)
            progress("writing", 0, 0)
            inserted, updated, deleted = self._merge(model, delete_missing)
            progress("indexing", 0, 0)
            state = self._make_index(embeddings.dim, notes) if index else "none"
            outcome = "the export may or may not be complete; run it again"
            self._connection.commit()
        except psycopg.Error as error:
            raise OutputError(f"{self._address.shown}: {self._address.message(error)}; {outcome}") from None
        counts = inserted, updated, count - inserted - updated, deleted
        where = self._address.shown, self._table.as_string(None), f"vector({embeddings.dim})"
        return Written(*where, count, *counts, state, model, time.perf_counter() - start, tuple(notes))

    def _ready_table(self, embeddings: Embeddings) -> None:
        """Find the table, creating it and the extension if missing, and check that the vectors fit."""
        dim, names = embeddings.dim, "int8" if embeddings.names.dtype == np.int64 else "text"
        identifier = sql.Identifier(*self._parts)
        quoted = identifier.as_string(self._connection)
        if self._first(_FIND_EXTENSION) is None or self._first(_FIND_TABLE, quoted) is None:
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        (self._extension,) = self._first(_FIND_EXTENSION)
        if self._first(_FIND_TABLE, quoted) is None:
            if dim > MAX_DIM:
                raise ParameterError(f"pgvector holds vectors of up to {MAX_DIM:,} dimensions; got {dim:,}")
            kind = self._vector_type(dim)
            self._connection.execute(sql.SQL(_CREATE).format(identifier, sql.SQL(names), kind))
        self._oid, schema, name, relation = self._first(_FIND_TABLE, quoted)
        rows = self._connection.execute(_FIND_COLUMNS, (self._oid,))
        columns = {column: (kind, size) for column, kind, size in rows}
        types = [columns.get(column, ("",))[0] for column in ("name", "embedding", "model", "updated_at")]
        is_table = relation in "rp" and types[0] in ("int8", "text")
        if not is_table or types[1:] != ["vector", "text", "timestamptz"]:
            raise OutputError(
                f"{quoted} exists but is not a table of vectors, with columns name (bigint or text), "
                "embedding (vector), model (text), updated_at (timestamptz); pass another --table"
            )
        held = columns["embedding"][1]
        if held not in (dim, -1):  # -1: any
            raise OutputError(f"{quoted} has {held:,} dimensions, not {dim:,}; pass another --table")
        if types[0] == "int8" and names == "text":
            raise OutputError(f"{quoted} has whole numbers as names, not text; pass another --table")
        self._table, self._names = sql.Identifier(schema, name), types[0]

    def _vector_type(self, dim: int) -> Any:
        return sql.SQL("{}({})").format(sql.Identifier(self._extension, "vector"), sql.Literal(dim))

    def _send(self, embeddings: Embeddings, progress: cli.Report) -> None:
        """Copy the rows into a table that only this transaction sees."""
        kind = self._vector_type(embeddings.dim)
        self._connection.execute(sql.SQL(_CREATE_INCOMING).format(sql.SQL(self._names), kind))
        names = embeddings.names.tolist() if self._names == "int8" else _text_names(embeddings.names)
        stage, size = f"sending {len(names):,} vectors", 4 + 4 * embeddings.dim
        with self._connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.set_types([self._names, "bytea"])
            for start in range(0, len(names), _BATCH):
                some = slice(start, start + _BATCH)
                packed = pack_vectors(embeddings.vectors[some])
                for row, name in enumerate(names[some]):
                    copy.write_row((name, packed[row * size : (row + 1) * size]))
                progress(stage, min(start + _BATCH, len(names)), len(names))
        self._connection.execute("ANALYZE pg_temp.spinegraph_incoming (name)")

    def _merge(self, model: str, delete_missing: bool) -> tuple[int, int, int]:
        """Return how many rows were inserted, updated and deleted."""

        def run(query: str, *values: Any) -> Any:
            filled = sql.SQL(query).format(self._table, sql.Identifier(self._extension))
            return self._connection.execute(filled, values)

        # Other writers wait, so that the counts and the missing rows stay correct; readers do not wait.
        run("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE")
        (known,) = run(_COUNT_KNOWN).fetchone()
        (total,) = self._first("SELECT count(*) FROM pg_temp.spinegraph_incoming")
        written = run(_UPSERT, model).rowcount
        deleted = run(_DELETE).rowcount if delete_missing else 0
        return total - known, written - (total - known), deleted

    def _make_index(self, dim: int, notes: list[str]) -> str:
        """Index the vectors by cosine; return "made", "kept" or "none"."""
        if self._first(_FIND_INDEX, self._oid) is not None:
            return "kept"
        if dim > MAX_INDEXED_DIM:
            notes.append(
                f"no index: HNSW takes up to {MAX_INDEXED_DIM:,} dimensions, these vectors have "
                f"{dim:,}; queries compare with every row"
            )
            return "none"
        query = sql.SQL("CREATE INDEX ON {} USING hnsw (embedding {})")
        operators = sql.Identifier(self._extension, "vector_cosine_ops")
        self._connection.execute(query.format(self._table, operators))
        return "made"

    def _first(self, query: Any, *values: Any) -> Any:
        return self._connection.execute(query, values).fetchone()


def table_parts(text: str) -> tuple[str, ...]:
    """Return the parts of ``NAME`` or ``SCHEMA.NAME``; letters keep their case."""
    parts = tuple(text.split("."))
    sizes = [len(part.encode(errors="replace")) for part in parts]
    if len(parts) > 2 or max(sizes) > _MAX_NAME or not all(map(_NAME.fullmatch, parts)):
        raise ParameterError(
            "--table must be NAME or SCHEMA.NAME, of letters, digits, _, -, $ and spaces, beginning with a "
            f"letter or _, at most {_MAX_NAME} bytes each; got {text[:80]!r}"
        )
    return parts


def pack_vectors(vectors: NDArray[np.float32]) -> bytes:
    """Return vectors (n, d) in pgvector's binary format: for each d, 0, and the numbers."""
    rows = np.zeros(len(vectors), [("head", "S4"), ("values", ">f4", (vectors.shape[1],))])
    rows["head"], rows["values"] = struct.pack(">hh", vectors.shape[1], 0), vectors
    return rows.tobytes()


def _text_names(names: NDArray[Any]) -> list[str]:
    """Return names as text for PostgreSQL; (0, "ann") of several networks becomes ``0:ann``."""
    from spinegraph.analysis.explain import shown

    texts = [shown(name) for name in names.tolist()]
    for name in texts:
        if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise OutputError(f"node {name!r}: PostgreSQL cannot store NUL or surrogates; rename the node")
    if len(set(texts)) < len(texts):
        repeated = [name for name, count in Counter(texts).items() if count > 1]
        raise OutputError(f"names must differ as text; several nodes would be named {first_few(repeated)}")
    return texts


def model_fingerprint(model: Any) -> str:
    """Return 32 hexadecimal digits that identify a fitted model; if equal, the vectors are equal."""
    about, arrays = write_settings(model)
    about = {key: value for key, value in about.items() if key != "history"}
    about["settings"] = {key: value for key, value in about["settings"].items() if key != "threads"}
    return digest(arrays, {"about": json_text.dumps(about, sort_keys=True)})


class Address:
    """The address of a database; ``shown`` is the address for messages, without secrets."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        if scheme not in ("postgresql", "postgres"):
            got = f"; got {scheme}://" if rest and scheme.replace("+", "").isalnum() else ""
            raise ParameterError(f"--to must be {_URL}{got}")
        unreadable = ParameterError(
            f"--to cannot be parsed as {_URL}; in user and password write "
            "@ as %40, : as %3A, / as %2F, ? as %3F and % as %25"
        )
        try:
            parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        except psycopg.Error:
            raise unreadable from None
        host, name = parts.get("host", ""), parts.get("dbname", "")
        if "@" in host[1:] or "@" in name or not re.fullmatch(r"[\d,]*", parts.get("port", "")):
            # libpq took parts of a password for a host, a port or a database, and would print them.
            raise unreadable
        user = f"{parts['user']}@" if "user" in parts else ""
        port = f":{parts['port']}" if "port" in parts else ""
        self._secrets = [parts[name] for name in _SECRETS if parts.get(name)]
        self.shown = f"postgresql://{user}{'' if host[:1] in '/@' else host}{port}/{name}"

    def message(self, error: Exception) -> str:
        """Return the message of an error as one line, without secrets and with advice."""
        text = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
        text = "; ".join(line.strip() for line in text.splitlines() if line.strip())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        advice = _ADVICE.get(getattr(error, "sqlstate", None) or "")
        return f"{text}; {advice}" if advice else text
