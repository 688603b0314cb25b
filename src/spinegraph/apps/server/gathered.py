"""Answers that leave in one piece: the web server writes head and body apart, each with a system call."""

from asyncio import AbstractEventLoop
from importlib.util import find_spec
from typing import Any


class GatheredWrites:
    """A transport that sends what was written in one turn of the event loop together.

    Parameters
    ----------
    transport : asyncio transport
    loop : event loop
    """

    def __init__(self, transport: Any, loop: AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send data at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def flush(self) -> None:
        """Send what was written."""
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Send what was written, and close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def http_protocol() -> type:
    """Return uvicorn's HTTP protocol, the quicker one where httptools is installed, with gathered writes.

    Examples
    --------
    >>> http_protocol().__name__
    'GatheredProtocol'
    """
    if find_spec("httptools") is not None:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
    else:
        from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol  # type: ignore[assignment]

    class GatheredProtocol(Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(GatheredWrites(transport, self.loop))  # type: ignore[arg-type]

    return GatheredProtocol
