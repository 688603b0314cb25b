"""A connection to PostgreSQL whose errors are one line, and never hold a password."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from spinegraph.errors import OutputError, ParameterError

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

    Examples
    --------
    >>> Address.of("postgresql://ann:secret@db.example:5433/app")
    Address(shown='postgresql://ann@db.example:5433/app')
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
