"""How fast the service answers, from another process on loopback, bounded in count and time.

Run with ``python -m benchmarks.service``; prints a table and writes ``benchmarks/results/service.json``.

- Networks: Cora, and a made one of 100,000 nodes with 100 columns of features; models with all settings as
  by default. The service runs in a process of its own with one thread for BLAS, as its page advises.
- At a fixed rate: requests are sent when they are due, whether or not earlier ones are answered, and the time
  of each counts from when it was due, so a stall counts for everybody who had to wait.
- At most: some connections, each with one request at a time, as fast as answers come.
- Inserts are ``POST /v1/nodes`` of one node with three neighbours and another node's features, each on disk
  before it is answered; look-ups are ``GET /v1/nodes/NAME/similar`` for ten nodes.
- Memory: the resident size of the service while 100,000 requests are answered: look-ups, nodes tried out, and
  nodes added and removed again.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from benchmarks.machine import describe, thread_environment

RESULTS = Path(__file__).parent / "results" / "service.json"
_START = "from spinegraph.apps.cli import main; main()"


def network(name):
    """Return one of the networks."""
    if name == "cora":
        from spinegraph.graph.datasets import load

        return load("cora").graph
    from spinegraph.graph.made import random_graph

    return random_graph(100_000, edges_per_node=5, features=100, seed=0)


def fitted(name, folder):
    """Fit a model on a network and save both; return the model's folder."""
    import warnings

    from spinegraph import SPINE

    warnings.simplefilter("ignore")
    SPINE().fit(network(name)).save(folder / name)
    return folder / name


class Service:
    """A service process."""

    def __init__(self, model, store):
        arguments = ["serve", str(model), "--store", str(store), "--port", "0", "--json"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env=thread_environment(1),
        )
        started = time.perf_counter()
        about = json.loads(self.process.stdout.readline())
        self.seconds_to_start = time.perf_counter() - started
        self.address, self.token = urlsplit(about["url"]), Path(about["token_file"]).read_text().strip()

    def resident(self):
        """Return the resident size in MB."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise RuntimeError("no VmRSS; this benchmark needs Linux")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


class Connection:
    """One connection that stays open; one request at a time."""

    def __init__(self, service):
        self._service = service
        self._reader = None

    async def ask(self, method, path, body=None):
        """Send a request; return status and body."""
        if self._reader is None:
            where = self._service.address
            self._reader, self._writer = await asyncio.open_connection(where.hostname, where.port)
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._service.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return int(head[9:12]), await self._reader.readexactly(length)

    def close(self):
        if self._reader is not None:
            self._writer.close()


async def at_rate(service, requests, rate, seconds, connections=64):
    """Send requests when they are due; return the time of each in milliseconds, and how many failed."""
    idle = [Connection(service) for _ in range(connections)]
    free, times, failed = asyncio.Queue(), [], 0
    for one in idle:
        free.put_nowait(one)
    started = time.perf_counter() + 0.1

    async def send(due):
        nonlocal failed
        connection = await free.get()
        status, _ = await connection.ask(*next(requests))
        free.put_nowait(connection)
        times.append(time.perf_counter() - due)
        failed += status >= 400

    tasks = []
    for number in range(int(rate * seconds)):
        due = started + number / rate
        await asyncio.sleep(max(0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(send(due)))
    await asyncio.gather(*tasks)
    for one in idle:
        one.close()
    return np.array(times) * 1000, failed


async def at_most(service, requests, seconds, connections, count=None):
    """Send requests as fast as they are answered; return their times in milliseconds, failures, seconds."""
    times, failed, left = [], 0, [count if count is not None else 10**9]
    started = time.perf_counter()

    async def work():
        nonlocal failed
        connection = Connection(service)
        while time.perf_counter() - started < seconds and left[0] > 0:
            left[0] -= 1
            before = time.perf_counter()
            status, _ = await connection.ask(*next(requests))
            times.append(time.perf_counter() - before)
            failed += status >= 400
        connection.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return np.array(times) * 1000, failed, time.perf_counter() - started


class Requests:
    """Requests about one network, drawn at random."""

    def __init__(self, graph, seed=0):
        self._graph, self._rng, self._count = graph, np.random.default_rng(seed), 0
        self._names = graph.names.tolist()

    def _some(self, count):
        return [self._names[place] for place in self._rng.choice(len(self._names), count, replace=False)]

    def _node(self):
        self._count += 1
        row = self._graph.features[[int(self._rng.integers(len(self._graph)))]]
        columns = self._graph.feature_names or range(row.shape[1])
        features = {str(columns[at]): float(value) for at, value in zip(row.indices, row.data, strict=True)}
        return {"name": f"new {self._count}", "edges": self._some(3), "features": features}

    def inserts(self):
        """Yield new nodes, without end."""
        while True:
            yield "POST", "/v1/nodes", self._node()

    def look_ups(self):
        """Yield questions for look-alikes, without end."""
        while True:
            yield "GET", f"/v1/nodes/{self._some(1)[0]}/similar?n=10", None

    def mixed(self):
        """Yield look-ups, and by turns a node tried out, added, and removed again."""
        look_ups = self.look_ups()
        while True:
            for _ in range(27):
                yield next(look_ups)
            yield "POST", "/v1/embed", self._node()
            node = self._node()
            yield "POST", "/v1/nodes", node
            yield "DELETE", f"/v1/nodes/{node['name'].replace(' ', '%20')}", None


def summary(times, failed, seconds=None):
    """Return what is worth keeping of some times."""
    found = {
        "requests": len(times),
        "failed": int(failed),
        "median_ms": round(float(np.median(times)), 2),
        "p99_ms": round(float(np.percentile(times, 99)), 2),
        "largest_ms": round(float(times.max()), 2),
    }
    return found if seconds is None else {"per_second": round(len(times) / seconds, 1), **found}


def measure(name, folder, seconds, rate_of_look_ups):
    """Measure one network."""
    model = fitted(name, folder)
    service, requests = Service(model, folder / f"{name}-store"), Requests(network(name))
    print(f"{name}: started in {service.seconds_to_start:.1f} s", flush=True)
    found = {"seconds_to_start": round(service.seconds_to_start, 2)}
    time.sleep(5 if name == "cora" else 60)  # the map, roles and index are made beside the first requests
    runs = {
        "inserts at 100/s": at_rate(service, requests.inserts(), 100, seconds),
        "inserts at most": at_most(service, requests.inserts(), seconds, 8),
        f"look-ups at {rate_of_look_ups}/s": at_rate(service, requests.look_ups(), rate_of_look_ups, seconds),
        "look-ups at most": at_most(service, requests.look_ups(), seconds, 8),
    }
    try:
        for what, run in runs.items():
            found[what] = summary(*asyncio.run(run))
            print(f"  {what:<24}{found[what]}", flush=True)
    finally:
        service.stop()
    return found


def memory(folder, count):
    """Answer many requests and return the resident size as they go by."""
    service, requests = Service(folder / "cora", folder / "memory-store"), Requests(network("cora"), seed=1)
    mixed, sizes = requests.mixed(), []
    time.sleep(20)  # until map and roles are made
    try:
        for _ in range(10):
            _, failed, _ = asyncio.run(at_most(service, mixed, 600, 1, count // 10))
            assert not failed, failed
            sizes.append(round(service.resident(), 1))
            print(f"  memory after {len(sizes) * count // 10:,} requests: {sizes[-1]} MB", flush=True)
    finally:
        service.stop()
    return {
        "requests": count,
        "resident_mb": sizes,
        "growth_after_a_fifth_mb": round(sizes[-1] - sizes[1], 1),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="*", default=["cora", "made"], choices=["cora", "made"])
    parser.add_argument("--seconds", type=float, default=15, help="of each run")
    parser.add_argument(
        "--requests", type=int, default=100_000, help="while memory is watched; 0 leaves it out"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    results = {"machine": describe("numba", "uvicorn", "fastapi")}
    with tempfile.TemporaryDirectory() as folder:
        for name in given.networks:
            results[name] = measure(name, Path(folder), given.seconds, 1000 if name == "cora" else 200)
        if given.requests and "cora" in given.networks:
            results["memory"] = memory(Path(folder), given.requests)
    given.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
