"""Downloads killed on the way: the next one finds a whole file or fetches it again."""

import hashlib
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from paper.originals import Original, fetch

from injected import begin

CONTENT = random.Random(0).randbytes(400_000)
FETCH = """
import sys
from pathlib import Path
from paper.originals import Original, fetch
print("ready", flush=True)
fetch(Original("original.bin", sys.argv[1], sys.argv[3] or None), Path(sys.argv[2]))
print("done", flush=True)
"""


class Slow(BaseHTTPRequestHandler):
    """Sends a file a little at a time."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        for start in range(0, len(CONTENT), 20_000):
            try:
                self.wfile.write(CONTENT[start : start + 20_000])
            except OSError:
                return
            time.sleep(0.005)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/original.bin"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
@pytest.mark.parametrize("times", [2, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_pinned", [True, False])
def test_a_download_killed_on_its_way_is_whole_or_not_there(address, tmp_path, times, is_pinned, injected):
    right, draw = hashlib.sha256(CONTENT).hexdigest(), random.Random(times)
    for number in range(times):
        folder = tmp_path / str(number)
        with begin(address, folder, right if is_pinned else "", code=FETCH) as run:
            assert run.stdout.readline() == "ready\n", run.stderr.read()
            time.sleep(draw.random() * 0.25)
            run.kill()
        path = folder / "original.bin"
        assert not path.exists() or path.read_bytes() == CONTENT
        again = fetch(Original("original.bin", address, right if is_pinned else None), folder)
        assert again.read_bytes() == CONTENT
    injected("killed downloads", times)
