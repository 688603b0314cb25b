"""What a request may ask for, in one place."""

from dataclasses import dataclass
from ipaddress import ip_address


@dataclass(frozen=True)
class Limits:
    """Bounds on requests.

    Attributes
    ----------
    body : int
        Bytes of a request's body.
    requests : int
        Requests worked on at the same time.
    changes : int
        Changes that wait for the writer.
    seconds : float
        Until a request is given up; exports may take longer.
    """

    body: int = 4 * 2**20
    requests: int = 256
    changes: int = 1024
    seconds: float = 30.0


MOST_NODES = 1_000  # a request
MOST_EDGES = 10_000  # a request
MOST_MATCHES = 1_000
MOST_AROUND = 500  # nodes of a neighbourhood
MOST_NAME = 256  # characters


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches an address to listen on.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
