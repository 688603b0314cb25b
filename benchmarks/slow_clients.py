"""How a service with 1,024 descriptors answers while slow clients hold connections.

``python -m benchmarks.slow_clients MODEL`` starts ``spine serve`` on a saved model; ``--server granian``
measures a bare application under Granian, and ``--server uvicorn`` under plain uvicorn, with their own
time-outs. For each kind of client it prints how long ``/healthz`` took at most over some seconds, each time
on a connection of its own, how often it failed within a second, and whether a write succeeds afterwards.
"""

import argparse
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

_DESCRIPTORS, _HEADERS, _BODIES, _IDLE = 1_024, 1_100, 300, 1_100
_PARTIAL = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
_JSON = b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
_BODY = b"POST /v1/embed HTTP/1.1\r\nHost: localhost\r\n" + _JSON
_BARE = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["method"] == "POST":
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
"""
_GRANIAN = """
from granian import Granian
from granian.http import HTTP1Settings
settings = HTTP1Settings(header_read_timeout=10_000)
if __name__ == "__main__":
    Granian("bare:app", port=PORT, interface="asgi", websockets=False, http1_settings=settings).serve()
"""


def limited():
    resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, _DESCRIPTORS))


def start(given, folder):
    """Start a server; return its process, host, port and token."""
    if given.server == "spine":
        code = "from spinegraph.apps.cli import main; main()"
        options = ["serve", str(given.model), "--store", str(folder / "store"), "--port", "0", "--json"]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *options], stdout=subprocess.PIPE, text=True, preexec_fn=limited
        )
        about = json.loads(process.stdout.readline())
        return process, urlsplit(about["url"]).port, Path(about["token_file"]).read_text().strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "bare.py").write_text(_BARE)
    (folder / "run.py").write_text(_GRANIAN.replace("PORT", str(port)))
    command = {"granian": ["run.py"], "uvicorn": ["-m", "uvicorn", "bare:app", "--port", str(port)]}
    process = subprocess.Popen(
        [sys.executable, *command[given.server]],
        cwd=folder,
        preexec_fn=limited,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(4)
    return process, port, None


def health(port):
    """Return how long an answer took, in seconds; None without one within a second."""
    started = time.perf_counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/healthz")
        return time.perf_counter() - started if connection.getresponse().status == 200 else None
    except OSError:
        return None
    finally:
        connection.close()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--server", choices=["spine", "granian", "uvicorn"], default="spine")
    parser.add_argument("--seconds", type=float, default=20, help="of each kind of client")
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kinds = {"headers": (_HEADERS, _PARTIAL), "bodies": (_BODIES, _BODY), "idle": (_IDLE, b"")}
    with tempfile.TemporaryDirectory() as folder:
        process, port, token = start(given, Path(folder))
        for name, (count, piece) in kinds.items():
            slow, times = [], []
            until = time.monotonic() + given.seconds
            while time.monotonic() < until:
                while len(slow) < count:
                    one = socket.socket()
                    one.settimeout(0.5)
                    try:
                        one.connect(("127.0.0.1", port))
                        one.sendall(piece)
                    except OSError:
                        one.close()
                        break
                    slow.append(one)
                    if len(slow) % 100 == 0:
                        times.append(health(port))
                times.append(health(port))
                time.sleep(0.2)
            for one in slow:
                one.close()
            time.sleep(0.5)
            answered = [each for each in times if each is not None]
            missing, largest = len(times) - len(answered), max(answered, default=0)
            print(
                f"{given.server:8} {name:8} {len(slow):5} held, health: {len(times)} asked, "
                f"{missing} without answer in 1 s, at most {largest:.3f} s"
                + (f", write afterwards {write(port, token, name)}" if token else ""),
                flush=True,
            )
        process.terminate()
        process.wait(30)


def write(port, token, name):
    """Return the status of adding a node."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("GET", "/v1/features", headers=headers)
    features = {"features": {}} if json.loads(connection.getresponse().read())["count"] else {}
    node = {"name": f"after {name}", "edges": [], **features}
    connection.request("POST", "/v1/nodes", json.dumps(node), headers)
    return connection.getresponse().status


if __name__ == "__main__":
    main()
