"""A service process under load: connections that stay open, requests drawn at random, what it takes."""

import asyncio
import json
import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
from benchmarks.machine import thread_environment

_START = "from spinegraph.apps.cli import main; main()"
_TICKS = os.sysconf("SC_CLK_TCK")


class Service:
    """A service process of its own with one thread for BLAS."""

    def __init__(self, model, store):
        arguments = ["serve", str(model), "--store", str(store), "--port", "0", "--json"]
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env=thread_environment(1),
        )
        about = json.loads(self.process.stdout.readline())
        self.address, self.token = urlsplit(about["url"]), Path(about["token_file"]).read_text().strip()
        self.seconds_to_answer = time.perf_counter() - started

    def wait_for(self, path, seconds):
        """Wait until a path is answered with 200; return how long that took."""
        started = time.perf_counter()
        while True:
            connection = HTTPConnection(self.address.hostname, self.address.port, timeout=60)
            connection.request("GET", path)
            status = connection.getresponse().status
            connection.close()
            waited = time.perf_counter() - started
            if status == 200:
                return waited
            if status != 503 or waited > seconds:
                raise RuntimeError(f"{path} is answered with {status} after {waited:.0f} s")
            time.sleep(0.25)

    def resident(self):
        """Return the resident size in MB."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise RuntimeError("no VmRSS; this benchmark needs Linux")

    def processor(self):
        """Return the seconds of processor time that the process took so far, in all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

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
    """Send requests when they are due; return the time of each in milliseconds, failures, seconds."""
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
    return np.array(times) * 1000, failed, time.perf_counter() - started


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
        return [self._names[place] for place in self._rng.integers(len(self._names), size=count)]

    def _node(self):
        self._count += 1
        row = self._graph.features[[int(self._rng.integers(len(self._graph)))]]
        columns = self._graph.feature_names or range(row.shape[1])
        features = {str(columns[at]): float(value) for at, value in zip(row.indices, row.data, strict=True)}
        return {"name": f"new {self._count}", "edges": sorted(set(self._some(3))), "features": features}

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
            yield "DELETE", f"/v1/nodes/{quote(node['name'])}", None
