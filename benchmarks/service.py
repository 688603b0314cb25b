"""How fast the service answers, from another process on loopback, bounded in count and time.

``python -m benchmarks.service`` measures all networks in some seven minutes, ``--network cora`` and
``--near`` a part; ``--memory`` watches memory, ``--kills 100`` kills services; ``--table`` measures nothing.
Results go to ``benchmarks/results/service.json``, other parts stay as they were, and the table in
``docs/service.md`` is written from it.

- Networks: Cora, a made one of 100,000 nodes with 100 columns of features, and ego-Twitter of
  SPINEGRAPH_DATA; models with all settings as by default. The service runs in a process of its own with one
  thread for BLAS, as its page advises, and is asked once ``/readyz`` says that it is ready. Modules are
  compiled once and kept, as an installation does.
- At a fixed rate: requests are sent when they are due, whether or not earlier ones are answered, and the time
  of each counts from when it was due, so a stall counts for everybody who had to wait.
- At most: some connections, each with one request at a time, as fast as answers come.
- Inserts are ``POST /v1/nodes`` of one node with three neighbours and another node's features, each on disk
  before it is answered; look-ups are ``GET /v1/nodes/NAME/similar`` for ten nodes.
- Processor time is that of the service's process, all threads; a machine busy with other things changes it
  little, and the other times much.
- Memory: the resident size of the service while 100,000 requests are answered: look-ups, nodes tried out, and
  nodes added and removed again. The slope is that of a line through the last four fifths.
- Kills: SIGKILL one to four seconds after the first change was answered, under look-ups, inserts and
  removals; after every restart a hundred of the nodes that were acknowledged to be added or removed are
  looked for, at the end all of them.
- Near: 300 inserts one by one in Cora, and how far all vectors are then from ``transform`` of the graph.
"""

import argparse
import asyncio
import json
import math
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
from benchmarks.machine import describe, processor_seconds, thread_environment

RESULTS = Path(__file__).parent / "results" / "service.json"
_CONNECTIONS, _SAMPLES = 8, 100
_PATIENCE = 900  # seconds until the service is ready, and until the map is drawn
_START = "from spinegraph.apps.cli import main; main()"
PAGE = Path(__file__).parents[1] / "docs" / "service.md"
_BEGIN, _END = "<!-- speed -->\n", "<!-- end of speed -->"
_NAMES = {
    "cora": "Cora, 2,708 nodes",
    "made": "made, 100,000 nodes",
    "ego_twitter": "ego-Twitter, 81,306 nodes, 1.3 M edges",
}
_RUNS = {
    "look-ups at 1000/s": "look-ups at 1,000 a second",
    "look-ups at most": "look-ups, eight connections",
    "inserts at 100/s": "inserts at 100 a second",
    "inserts at most": "inserts, eight connections",
    "mixed": "500 look-ups, 100 inserts, 20 removals a second, mixed",
    "look-ups at 500/s": "look-ups at 500 a second, after {inserted:,} inserts",
}


def network(name):
    """Return one of the networks."""
    if name == "cora":
        from paper.originals import load

        return load("cora").graph
    if name == "ego_twitter":
        from spinegraph import Graph

        with np.load(Path(os.environ["SPINEGRAPH_DATA"]) / "ego_twitter.npz", allow_pickle=False) as file:
            return Graph.from_edges(file["edges"], num_nodes=int(file["num_nodes"]))
    from spinegraph.graph.synthetic import random_graph

    return random_graph(100_000, edges_per_node=5, features=100, seed=0)


def fitted(name, folder):
    """Return the folder of a network's model, fitted unless it exists."""
    from spinegraph import SPINE

    if not (folder / name).exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SPINE().fit(network(name)).save(folder / name)
    return folder / name


def measured(service, load, *arguments):
    """Return what is worth keeping of a run."""
    before = service.processor()
    times, failed, seconds = load(service, *arguments)
    return {
        "per_second": round(len(times) / seconds, 1),
        "requests": len(times),
        "failed": int(failed),
        "median_ms": round(float(np.median(times)), 2),
        "p99_ms": round(float(np.percentile(times, 99)), 2),
        "largest_ms": round(float(times.max()), 2),
        "processor_ms": round((service.processor() - before) / len(times) * 1000, 3),
    }


def measure(name, models, stores, seconds):
    """Measure one network: look-ups as it was fitted, then inserts in a service of their own."""
    model, requests = fitted(name, models), Requests(network(name))
    found = {"machine": describe("numba", "uvicorn", "fastapi")}

    def run(service, what, *load):
        found[what] = measured(service, *load)
        print(f"  {what:<40}{found[what]}", flush=True)

    with started(model, stores / name) as service:
        found["seconds_to_answer"] = round(service.seconds_to_answer, 2)
        found["seconds_to_ready"] = round(
            found["seconds_to_answer"] + service.wait_for("/readyz", _PATIENCE), 2
        )
        print(f"{name}: ready after {found['seconds_to_ready']} s", flush=True)
        service.wait_for("/v1/nodes/0/role", _PATIENCE)  # map and roles are made by another process
        run(service, "look-ups at 1000/s", at_rate, requests.look_ups(), 1000, seconds)
        run(service, "look-ups at most", at_most, requests.look_ups(), seconds, _CONNECTIONS)
    with started(model, stores / name) as service:  # with the maps of the one before
        service.wait_for("/readyz", _PATIENCE)
        run(service, "inserts at 100/s", at_rate, requests.inserts(), 100, seconds)
        run(service, "inserts at most", at_most, requests.inserts(), seconds, _CONNECTIONS)
        look_ups, rest = requests.mixed_load()
        run(service, "mixed", at_rates, {"look-ups": (look_ups, 500), "changes": (rest, 120)}, seconds)
        found["inserted"] = sum(found[what]["requests"] for what in found if what.startswith("inserts"))
        run(service, "look-ups at 500/s", at_rate, requests.look_ups(), 500, seconds)
        found["resident_mb"] = round(service.resident(), 1)
        service.process.kill()
        service.process.wait(60)
    with started(model, stores / name) as service:
        found["seconds_after_kill"] = round(service.seconds_to_answer, 2)
        print(f"{name}: answers {found['seconds_after_kill']} s after a kill", flush=True)
    return found


@contextmanager
def started(model, store):
    """Yield a service that is ended afterwards."""
    service = Service(model, store)
    try:
        yield service
    finally:
        service.stop()


def memory(models, stores, count):
    """Answer many requests and return the resident size as they go by."""
    service = Service(fitted("cora", models), stores / "memory")
    mixed, sizes = Requests(network("cora"), seed=1).mixed(), []
    try:
        service.wait_for("/readyz", _PATIENCE)
        service.wait_for("/v1/nodes/0/role", _PATIENCE)
        for sample in range(_SAMPLES):
            _, failed, _ = at_most(service, mixed, 600, 1, count // _SAMPLES)
            assert not failed, failed
            sizes.append(round(service.resident(), 1))
            if sample % 10 == 9:
                done = (sample + 1) * count // _SAMPLES
                print(f"  memory after {done:,} requests: {sizes[-1]} MB", flush=True)
    finally:
        service.stop()
    later = np.array(sizes[_SAMPLES // 5 :])
    slope = np.polyfit(np.arange(len(later)), later, 1)[0] * _SAMPLES
    return {
        "machine": describe("numba", "uvicorn", "fastapi"),
        "requests": count,
        "resident_mb": sizes,
        "slope_mb": round(float(slope * 100_000 / count), 1),
    }


def near(folder, count=300):
    """Add nodes with three edges each one by one, and compare all vectors with ``transform`` at the end."""
    from spinegraph import SPINE
    from spinegraph.apps.server.live import Live
    from spinegraph.apps.server.schemas import NewNode
    from spinegraph.apps.server.service import RequestReader

    model = SPINE.load(folder)
    live, reader = Live(model.generator_, model.graph_), RequestReader(model.graph_)
    live.compute_all(model.embeddings_.vectors)
    inserts, refreshed = Requests(model.graph_).inserts(), 0
    for _ in range(count):
        _, _, body = next(inserts)
        live.stage(reader.nodes(NewNode(**body), live.snapshot.overlay))
        refreshed += len(live.update().refreshed)
        while (work := live.next_work()) is not None:
            refreshed += len(live.take(work()).refreshed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = model.transform(live.snapshot.overlay).vectors
    found = live.snapshot.vectors.matrix()
    cosines = (found * whole).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(whole, axis=1)
    return {
        "inserted": count,
        "refreshed_each": round(refreshed / count, 1),
        "cosine_median": round(float(np.median(cosines)), 6),
        "cosine_hundredth": round(float(np.percentile(cosines, 1)), 6),
        "cosine_least": round(float(cosines.min()), 6),
    }


def kills(name, models, stores, count, found):
    """Kill a service with SIGKILL under the mixed load, again and again, and add to what was found.

    A change is lost if it was acknowledged and is not there after a restart.
    """
    found = {"kills": 0, "acknowledged": 0, "lost": 0, "starts_s": [], **(found or {})}
    found["machine"] = describe("numba", "uvicorn", "fastapi")
    seed = [2, found["kills"]]
    requests, rng = Requests(network(name), seed=seed), np.random.default_rng(seed)
    model, there, gone, version = fitted(name, models), set(), set(), 0
    for number in range(count + 1):
        service = Service(model, stores / f"{name}_killed")
        try:
            changed = sorted({*there, *gone})
            some = changed if number == count else rng.permutation(changed).tolist()[:100]
            answers = asyncio.run(statuses(service, some))
            lost = [one for one, status in answers.items() if status != (200 if one in there else 404)]
            moment = json.loads(asyncio.run(ask_once(service, "/v1/nodes/0"))[1])["version"]
            found["lost"] += len(lost) + (moment < version)
            if lost or moment < version:
                print(f"  lost after kill {number}: {lost[:5]}, version {moment} of {version}", flush=True)
            if number:
                found["starts_s"].append(round(service.seconds_to_answer, 2))
            if number < count:
                seconds = float(rng.uniform(1, 4))
                done = asyncio.run(until_killed(service, requests, seconds, there, gone))
                version = max([moment, *done])
                found["kills"] += 1
                found["acknowledged"] += len(done)
        finally:
            service.process.kill()
            service.process.wait(60)
    print(f"{name}: {found['kills']} kills, {found['acknowledged']} acknowledged, {found['lost']} lost")
    return found


async def ask_once(service, path):
    """Return status and body of one request."""
    connection = Connection(service)
    answer = await connection.ask("GET", path)
    connection.close()
    return answer


async def statuses(service, names):
    """Return whether nodes are there, by status."""
    connection, found = Connection(service), {}
    for name in names:
        found[name] = (await connection.ask("GET", f"/v1/nodes/{quote(name)}"))[0]
    connection.close()
    return found


async def until_killed(service, requests, seconds, there, gone):
    """Send the mixed load until the service is killed; return the versions of acknowledged changes.

    Names of nodes that are surely there and surely gone are kept in the sets; others are in neither.
    """
    look_ups, changes = requests.mixed_load(waiting=20)
    versions = []

    async def send(stream, pause):
        connection = Connection(service)
        try:
            while True:
                method, path, body = next(stream)
                name = body["name"] if body else path.rpartition("/")[2].replace("%20", " ")
                if method == "DELETE":
                    if name not in there:
                        continue
                    there.discard(name)
                status, answer = await connection.ask(method, path, body)
                if method != "GET" and status < 300:
                    (gone if method == "DELETE" else there).add(name)
                    versions.append(json.loads(answer)["version"])
                await asyncio.sleep(pause)
        except (OSError, asyncio.IncompleteReadError):
            pass

    async def kill():
        while not versions:  # the first change waits until a service is warm
            await asyncio.sleep(0.05)
        await asyncio.sleep(seconds)
        service.process.kill()

    loads = [send(look_ups, 0.016) for _ in range(8)] + [send(changes, 0.06) for _ in range(8)]
    await asyncio.gather(kill(), *loads)
    return versions


def _environment():
    """Return the environment of a service: one thread for BLAS, and compiled modules kept."""
    kept = Path(tempfile.gettempdir()) / "spinegraph_benchmark_modules"
    return thread_environment(1) | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(kept)}


class Service:
    """A service process of its own with one thread for BLAS."""

    def __init__(self, model, store):
        arguments = ["serve", str(model), "--store", str(store), "--port", "0", "--json"]
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
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
        return processor_seconds(self.process.pid)

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


def at_rates(service, loads, seconds, connections=64):
    """Send several loads side by side, each request when it is due; return times, failures, seconds.

    ``loads`` are requests and their rates by name; each load has connections of its own. Requests are written
    before the first one is due: the client shares the cores with the service.
    """
    client, lanes = Client(service), []
    for requests, rate in loads.values():
        count = int(rate * seconds)
        sent = [client.written(*next(requests)) for _ in range(count)]
        lanes.append(Lane(iter(sent), [number / rate for number in range(count)], connections))
    client.run(lanes)
    for name, lane in zip(loads, lanes, strict=True):
        if len(loads) > 1:
            times = np.array(lane.times) * 1000
            figures = f"median {np.median(times):.1f} ms, p99 {np.percentile(times, 99):.1f} ms"
            print(f"    {name}: {len(times)} answered, {figures}", flush=True)
    return client.found(lanes)


def at_rate(service, requests, rate, seconds):
    """Send requests when they are due; return the time of each in milliseconds, failures, seconds."""
    return at_rates(service, {"": (requests, rate)}, seconds)


def at_most(service, requests, seconds, connections, count=10**9):
    """Send requests as fast as they are answered; return their times in milliseconds, failures, seconds."""
    client = Client(service)
    lane = Lane((client.written(*next(requests)) for _ in range(count)), None, connections)
    client.run([lane], seconds)
    return client.found([lane])


class Lane:
    """Requests that share connections: in their order, each when it is due or else as soon as one is free."""

    def __init__(self, requests, due, connections):
        self._requests, self._due, self._number = requests, due, 0
        self.connections, self.idle, self.times, self.failed = connections, [], [], 0

    def next_due(self, now):
        """Return when the next request is due, None after the last."""
        if self._due is None:
            return now
        return self._due[self._number] if self._number < len(self._due) else None

    def take(self):
        """Return the next request, None after the last."""
        self._number += 1
        return next(self._requests, None)


class Client:
    """Sends requests over plain sockets, in one thread and with little work for each."""

    def __init__(self, service):
        self._service, self._poll, self._open = service, select.epoll(), {}

    def written(self, method, path, body=None):
        """Return a request as it is sent."""
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._service.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        return head.encode() + content

    def run(self, lanes, seconds=math.inf):
        """Send all requests, or those that are begun within so many seconds, and read the answers."""
        clock, active, sending = time.perf_counter, 0, list(lanes)
        started = clock()
        while sending or active:
            now, wait = clock() - started, 0.05
            for lane in list(sending):
                while lane in sending and (lane.idle or lane.connections):
                    due = lane.next_due(now) if now < seconds else None
                    if due is not None and due > now:
                        wait = min(wait, due - now)
                        break
                    if due is None or (request := lane.take()) is None:
                        sending.remove(lane)
                        break
                    one = lane.idle.pop() if lane.idle else self._connected(lane)
                    one.due, one.answer, active = due, b"", active + 1
                    one.socket.sendall(request)
            select.select([self._poll], [], [], wait)  # epoll alone would wait whole milliseconds
            for descriptor, _ in self._poll.poll(0):
                one = self._open[descriptor]
                if one.received():
                    active -= 1
                    one.lane.times.append(clock() - started - one.due)
                    one.lane.failed += one.answer[9:12] >= b"400"
                    one.lane.idle.append(one)
                elif one in one.lane.idle:  # the service ends idle connections
                    one.lane.idle.remove(one)
                    one.lane.connections += 1
                    self._open.pop(descriptor).socket.close()
        self._seconds = clock() - started
        for one in self._open.values():
            one.socket.close()

    def found(self, lanes):
        """Return the times of all lanes in milliseconds, failures, seconds."""
        times = np.concatenate([lane.times for lane in lanes]) * 1000
        return times, sum(lane.failed for lane in lanes), self._seconds

    def _connected(self, lane):
        address = self._service.address
        one = PlainConnection(lane, socket.create_connection((address.hostname, address.port)))
        self._poll.register(one.socket, select.EPOLLIN)
        self._open[one.socket.fileno()] = one
        lane.connections -= 1
        return one


class PlainConnection:
    """A socket of a lane, and the answer that is being read from it."""

    def __init__(self, lane, opened):
        self.lane, self.socket, self.due, self.answer = lane, opened, 0.0, b""
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def received(self):
        """Read what came; return whether the whole answer is there."""
        more = self.socket.recv(1 << 16)
        if not more:
            if self in self.lane.idle:
                return False
            raise ConnectionError("the service closed a connection")
        self.answer += more
        end = self.answer.find(b"\r\n\r\n")
        if end < 0:
            return False
        at = self.answer.lower().index(b"content-length:", 0, end) + 15
        return len(self.answer) >= end + 4 + int(self.answer[at : self.answer.index(b"\r\n", at)])


class Requests:
    """Requests about one network, drawn at random."""

    def __init__(self, graph, seed=0):
        self._graph, self._rng, self._count = graph, np.random.default_rng(seed), 0
        self._names = graph.names.tolist()

    def _some(self, count):
        return [self._names[place] for place in self._rng.integers(len(self._names), size=count)]

    def _node(self):
        self._count += 1
        if not self._graph.has_features:
            return {"name": f"new {self._count}", "edges": sorted(set(self._some(3)))}
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

    def mixed_load(self, waiting=100):
        """Return look-ups, and inserts with a removal of the oldest of them after every fifth."""

        def changes():
            made = []
            while True:
                for _ in range(5):
                    node = self._node()
                    made.append(node["name"])
                    yield "POST", "/v1/nodes", node
                # Of a node whose insert was answered long before.
                if len(made) > waiting:
                    yield "DELETE", f"/v1/nodes/{quote(made.pop(0))}", None
                else:
                    yield "GET", "/healthz", None

        return self.look_ups(), changes()

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


def table(results):
    """Return the table, and a line about memory, as Markdown.

    Examples
    --------
    >>> print(table({}))
    | | answers per second | median | 99 % within | processor |
    |---|--:|--:|--:|--:|
    """
    lines = ["| | answers per second | median | 99 % within | processor |", "|---|--:|--:|--:|--:|"]
    for name, title in _NAMES.items():
        found = results.get(name)
        if found is None:
            continue
        about = f"ready after {found['seconds_to_ready']:.0f} s, {found['resident_mb']:.0f} MB"
        if "seconds_after_kill" in found:
            about += f", first answer {found['seconds_after_kill']:.1f} s after a kill"
        lines.append(f"| **{title}** ({about}) | | | | |")
        for run, what in _RUNS.items():
            if one := found.get(run):
                figures = f"{one['median_ms']:.1f} ms | {one['p99_ms']:.1f} ms | {one['processor_ms']:.2f} ms"
                what = what.format(inserted=found.get("inserted", 0))
                lines.append(f"| {what} | {one['per_second']:,.0f} | {figures} |")
    if found := results.get("memory"):
        sizes = found["resident_mb"]
        lines += [
            "",
            f"Memory on Cora over {found['requests']:,} requests: {sizes[len(sizes) // 5]:.0f} MB after a",
            f"fifth of them, {sizes[-1]:.0f} MB at the end, at most {max(sizes):.0f} MB. A line fitted to",
            f"the last four fifths rises by {found['slope_mb']:.1f} MB in 100,000 requests.",
        ]
    if found := results.get("near"):
        lines += [
            "",
            f"After {found['inserted']} inserts of nodes with three edges, one by one on Cora, a change",
            f"updated {found['refreshed_each']:.0f} vectors on average. The cosine to the vectors of",
            f"`transform` of the final graph has a median of {found['cosine_median']:.6f}, a first",
            f"percentile of {found['cosine_hundredth']:.4f} and a minimum of {found['cosine_least']:.4f}.",
        ]
    for name, found in results.get("kills", {}).items():
        starts = f"{np.median(found['starts_s']):.1f} s (median) and {max(found['starts_s']):.1f} s at most"
        lines += [
            "",
            f"{_NAMES[name].partition(',')[0]}, killed {found['kills']} times with SIGKILL under look-ups,",
            f"inserts and removals: {found['acknowledged']:,} changes acknowledged, {found['lost']} lost.",
            f"The first answer came {starts} after the next start, beside other work.",
        ]
    machines = {name: found["machine"] for name, found in results.items() if "machine" in found}
    if machines:
        loads = ", ".join(
            f"{about['load_average_at_start']} before {name}" for name, about in machines.items()
        )
        cores = next(iter(machines.values()))["cores"]
        lines += ["", f"The service and the client shared {cores} cores. Load average: {loads}."]
    return "\n".join(lines)


def write_table(results, page):
    """Put the table between its marks in a page."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, found, after = rest.partition(_END)
    if not found:
        raise SystemExit(f"{page}: the marks {_BEGIN.strip()} and {_END} are not there")
    page.write_text(f"{before}{_BEGIN}\n{table(results)}\n\n{_END}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", action="append", choices=[*_NAMES], help="measure this one")
    parser.add_argument("--memory", action="store_true", help="measure memory")
    parser.add_argument("--near", action="store_true", help="compare with a transform of the whole graph")
    parser.add_argument("--kills", type=int, default=0, help="kill services so many times more")
    parser.add_argument("--table", action="store_true", help="only write the table from the results")
    parser.add_argument("--seconds", type=float, default=8, help="of each run")
    parser.add_argument("--requests", type=int, default=100_000, help="while memory is watched")
    parser.add_argument("--models", type=Path, help="folder that keeps the fitted models for the next time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    is_all = not (given.kills or given.network or given.memory or given.near or given.table)
    results = json.loads(given.results.read_text()) if given.results.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        stores, models = Path(folder) / "stores", given.models or Path(folder) / "models"
        for name in (given.network or ["cora", "ego_twitter"]) if given.kills else []:
            so_far = results.setdefault("kills", {})
            so_far[name] = kills(name, models, stores, given.kills, so_far.get(name))
            given.results.write_text(json.dumps(results, indent=1) + "\n")
        for name in [*_NAMES] if is_all else [] if given.kills else given.network or []:
            results[name] = measure(name, models, stores, given.seconds)
            given.results.write_text(json.dumps(results, indent=1) + "\n")
        if given.memory:
            results["memory"] = memory(models, stores, given.requests)
            given.results.write_text(json.dumps(results, indent=1) + "\n")
        if is_all or given.near:
            results["near"] = near(fitted("cora", models))
            given.results.write_text(json.dumps(results, indent=1) + "\n")
    if given.results == RESULTS:
        write_table(results, PAGE)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
