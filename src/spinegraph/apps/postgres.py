"""Vectors in the user's own PostgreSQL: one transaction that writes what changed, all of it or nothing."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from spinegraph.apps.postgres_rows import copy_rows
from spinegraph.embeddings import Embeddings
from spinegraph.errors import MissingPackageError
from spinegraph.model_config import write_settings

if TYPE_CHECKING:
    from spinegraph.apps.postgres_table import Table

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
    """Return 32 hexadecimal digits that tell fitted models apart; equal ones make equal vectors.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> one, other = (SPINE(dim=4, steps=2, seed=seed).fit(made.karate()) for seed in (0, 1))
    >>> model_fingerprint(one) == model_fingerprint(other)
    False
    """
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
        from spinegraph.apps.postgres_session import all_or_nothing
        from spinegraph.apps.postgres_table import ready_table

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
        from spinegraph.apps.postgres_table import INDEXED

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

    Examples
    --------
    >>> with database("mysql://app", "people"): pass
    Traceback (most recent call last):
        ...
    spinegraph.errors.ParameterError: --to must be postgresql://...; got mysql://
    """
    try:
        import psycopg  # noqa: F401
    except ImportError as missing:
        raise MissingPackageError(
            f"exporting to PostgreSQL needs psycopg, which could not be loaded ({missing}): "
            "pip install 'spinegraph[postgres]'"
        ) from missing
    from spinegraph.apps.postgres_session import session
    from spinegraph.apps.postgres_table import table_parts

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
