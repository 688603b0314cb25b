"""Real service processes for tests: started, asked, killed."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa

from command import ALONE, CAN_FORK, Forked, main_of
from command import SPINE as COMMAND
from spinegraph import SPINE, Graph


def small_graph(seed=0, n=90, weighted=False):
    """A few dense groups on a ring, with words as features; names n0, n1, ..."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 6, n)
    edges = {(i, (i + 1) % n) for i in range(n)}
    while len(edges) < 3 * n:
        a, b = rng.integers(0, n, 2)
        if a != b and (groups[a] == groups[b] or rng.random() < 0.05):
            edges.add((int(min(a, b)), int(max(a, b))))
    features = (rng.random((n, 12)) < 0.15 + 0.5 * (np.arange(12) // 2 == groups[:, None])).astype(np.float32)
    pairs = sorted(edges)
    return Graph.from_edges(
        [(f"n{a}", f"n{b}") for a, b in pairs],
        weights=rng.random(len(pairs)) + 0.5 if weighted else None,
        names=[f"n{i}" for i in range(n)],
        features=features,
        feature_names=[f"word {i}" for i in range(12)],
    )


def small_model(folder, graph=None):
    """Fit and save a small model; return its folder."""
    model = SPINE(dim=32, k=10).fit(small_graph() if graph is None else graph)
    model.save(folder)
    return folder


def _serve(before, draws, command):
    from spinegraph.apps.server.atlas import Atlas

    if before is not None:
        before()
    if not draws:
        Atlas._draw = lambda self, snapshot: None
    main_of(*command)


@dataclass
class Running:
    """A service process and a client for it.

    Maps and roles are made by a further process, which takes seconds: only where ``draws`` asks for it. A
    service is forked, which is quick, unless ``is_fresh`` asks for one that begins as a shell begins it.
    """

    model: Path
    store: Path
    arguments: list = field(default_factory=list)
    draws: bool = False
    is_fresh: bool = False
    before: Callable | None = None  # called in the process before anything else

    def start(self):
        command = [
            "serve",
            str(self.model),
            "--store",
            str(self.store),
            "--port",
            "0",
            "--json",
            *self.arguments,
        ]
        if CAN_FORK and not self.is_fresh:
            self.process = Forked(_serve, self.before, self.draws, command)
        else:
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            self.process = subprocess.Popen([COMMAND, *command], **pipes, text=True, env=ALONE)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate(timeout=10)[1])
        self.about = json.loads(line)
        self.token = Path(self.about["token_file"]).read_text().strip()
        self.url = self.about["url"].replace("0.0.0.0", "127.0.0.1")
        self.client = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=30, trust_env=False
        )
        return self

    def kill(self):
        """Stop at once, as a power cut would."""
        self.client.close()
        self.process.kill()
        self._ended()

    def stop(self):
        """Stop in order; return the exit status."""
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self):
        with self.process:
            self.process.communicate(timeout=30)
        return self.process.returncode

    def get(self, path, **query):
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def add(self, name, edges, features=None):
        body = {"name": name, "edges": edges, "features": {"word 1": 1} if features is None else features}
        answer = self.client.post("/v1/nodes", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def wait_for_roles(self, name, seconds=300):
        """Wait until the map is drawn and roles are found; return the answer about a node's role."""
        until = time.monotonic() + seconds
        while True:
            answer = self.client.get(f"/v1/nodes/{name}/role")
            if answer.status_code == 200:
                return answer.json()
            assert answer.status_code == 503, answer.text
            assert answer.headers["retry-after"]
            assert time.monotonic() < until, "no roles"
            time.sleep(0.2)

    def vectors(self):
        """Return (version, names, vectors) of one moment."""
        answer = self.client.get("/v1/export", params={"format": "arrow"})
        assert answer.status_code == 200
        table = pa.ipc.open_stream(answer.content).read_all()
        rows = np.array(table["vector"].to_pylist(), np.float32)
        return int(answer.headers["x-spine-version"]), table["name"].to_pylist(), rows

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
