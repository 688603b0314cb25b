"""The table of vectors: its name, its columns, its index."""

import re
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from spinegraph.errors import OutputError, ParameterError

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
    """Return the parts of ``NAME`` or ``SCHEMA.NAME``; letters keep their case.

    Examples
    --------
    >>> table_parts("app.People")
    ('app', 'People')
    >>> table_parts('x"; DROP TABLE people; --')
    Traceback (most recent call last):
        ...
    spinegraph.errors.ParameterError: --table must be NAME or SCHEMA.NAME, of letters, digits, ...
    """
    parts = tuple(text.split("."))
    sizes = [len(part.encode(errors="replace")) for part in parts]
    if len(parts) > 2 or max(sizes) > _MOST_BYTES or not all(map(_PART.fullmatch, parts)):
        raise ParameterError(
            "--table must be NAME or SCHEMA.NAME, of letters, digits, _, -, $ and spaces, beginning with a "
            f"letter or _, at most {_MOST_BYTES} bytes each; got {text[:80]!r}"
        )
    return parts


def vector_kind(dim: int, *, indexed: bool) -> str:
    """Return the type that vectors of a length are best stored as.

    Examples
    --------
    >>> vector_kind(200, indexed=True), vector_kind(3000, indexed=True), vector_kind(3000, indexed=False)
    ('vector', 'halfvec', 'vector')
    """
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
