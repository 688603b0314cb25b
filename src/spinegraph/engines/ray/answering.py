"""Whether a cluster answers, in bounded time: Ray itself would try for minutes."""

import socket

# A gRPC server answers the opening of HTTP/2 with its settings.
_OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_HEADER = 9  # bytes of a frame's header, of which the fourth is its kind
_SETTINGS = 4


def answers(address: str, seconds: float) -> str | None:
    """Return None where a gRPC server answers at HOST:PORT, else why not.

    Examples
    --------
    >>> answers("127.0.0.1:1", seconds=1.0)
    'Connection refused'
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not host or int(port) > 65_535:
        return "not HOST:PORT"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=seconds) as line:
            line.settimeout(seconds)
            line.sendall(_OPENING)
            head = b""
            while len(head) < _HEADER and (more := line.recv(_HEADER - len(head))):
                head += more
    except TimeoutError:
        return f"silent for {seconds:g} s"
    except OSError as fault:
        return fault.strerror or str(fault)
    return None if len(head) == _HEADER and head[3] == _SETTINGS else "something else than Ray is there"
