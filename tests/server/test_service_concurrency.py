"""Readers beside writers: everybody sees one moment, never a mixture."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import numpy as np
import pyarrow as pa
import pytest

from running_service import Running
from spinegraph import SPINE
from spinegraph.apps.server.live import Change
from spinegraph.apps.server.store import open_store, restore
from spinegraph.apps.server.writer import Writer


@pytest.fixture(scope="module")
def service(model_folder, tmp_path_factory):
    with Running(model_folder, tmp_path_factory.mktemp("concurrency") / "store") as running:
        yield running


def client(running):
    headers = {"Authorization": f"Bearer {running.token}"}
    return httpx.Client(base_url=running.url, headers=headers, timeout=60, trust_env=False)


def test_readers_see_the_old_state_or_the_new(service):
    """Every change adds one node and one edge at n0: degree, size and vectors all follow from the version."""
    degree, size = service.get("/v1/nodes/n0")["degree"], service.get("/readyz")["nodes"]
    done, seen = Event(), {}

    def read(number):
        looks = 0
        with client(service) as own:
            while not done.is_set() or looks < 5:
                node = own.get("/v1/nodes/n0").json()
                assert node["degree"] == degree + node["version"]
                assert seen.setdefault(("node", node["version"]), node) == node
                similar = own.get("/v1/nodes/n0/similar").json()
                assert seen.setdefault(("similar", similar["version"]), similar) == similar
                if number == 0:
                    answer = own.get("/v1/export", params={"format": "arrow"})
                    table = pa.ipc.open_stream(answer.content).read_all()
                    version = int(answer.headers["x-spine-version"])
                    assert len(table) == size + version
                    vector = table["vector"][table["name"].to_pylist().index("n0")].as_py()
                    known = seen.get(("node", version))
                    assert known is None or vector == known["vector"]
                looks += 1
        return looks

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read, number) for number in range(3)]
        for number in range(60):
            service.add(f"reader {number}", ["n0"])
        done.set()
        assert all(reader.result(timeout=60) >= 5 for reader in readers)
    versions = {version for kind, version in seen if kind == "node"}
    assert len(versions) > 3


def test_writers_side_by_side_lose_nothing(service):
    before = service.get("/readyz")["version"]

    def write(which):
        with client(service) as own:
            for number in range(15):
                body = {"name": f"{which} {number}", "edges": [f"n{number}"], "features": {"word 3": 1}}
                assert own.post("/v1/nodes", json=body).status_code == 201
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(write, ["writer a", "writer b", "writer c", "writer d"]))
    assert service.get("/readyz")["version"] == before + 60
    _, names, vectors = service.vectors()
    assert {f"writer {w} {i}" for w in "abcd" for i in range(15)} <= set(names)
    assert np.isfinite(vectors).all()


def test_no_read_is_older_than_a_write_that_was_answered(service):
    """Writers read back at once, side by side: their own node's vector, and a neighbour's that it moved."""

    def write_and_read(which):
        with client(service) as own:
            for number in range(12):
                name, near = f"{which} {number}", f"n{(7 * number) % 90}"
                body = {"name": name, "edges": [near], "features": {"word 2": 1}}
                told = own.post("/v1/nodes", json=body).json()
                found, moved = (own.get(f"/v1/nodes/{one}").json() for one in (name, near))
                assert min(found["version"], moved["version"]) >= told["version"]
                if found["version"] == told["version"]:
                    assert found["vector"] == told["nodes"][0]["vector"]
                if moved["version"] == found["version"]:
                    similar = own.get(f"/v1/nodes/{name}/similar", params={"n": 1000}).json()
                    assert similar["version"] >= found["version"]
                    assert near in [match["name"] for match in similar["matches"]]
        return True

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(write_and_read, ["echo a", "echo b", "echo c"]))


def test_two_that_want_the_same_name_get_it_once(service):
    def write(_):
        with client(service) as own:
            body = {"name": "wanted", "edges": ["n1"], "features": {}}
            return own.post("/v1/nodes", json=body).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(write, range(8)))
    assert statuses == [201, *[409] * 7]


def test_while_many_requests_read_changes_are_gathered(model_folder, tmp_path):
    """Changes that come one by one share a computation while more than 200 requests a second read."""
    model, reads = SPINE.load(model_folder), [0]
    store = open_store(model, model.graph_, tmp_path / "store")
    sizes = []
    writer = Writer(
        restore(model, model.graph_, store),
        store,
        on_batch=lambda snapshots, changes, seconds: sizes.append(changes),
        num_reads=lambda: reads[0],
    )
    writer.start()

    def add(prefix, each):
        done = []
        for number in range(20):
            reads[0] += each
            done.append(
                writer.submit(
                    Change("add", [f"{prefix} {number}"], [(f"{prefix} {number}", "n0")], features=[([], [])])
                )
            )
            time.sleep(0.01)
        for future in done:
            future.result(timeout=30)
        counted = [size for size in sizes if size]
        sizes.clear()
        return counted

    gathered = add("read beside", 1000)
    assert sum(gathered) == 20
    assert len(gathered) <= 15
    assert sum(add("alone", 0)) == 20
    writer.close()
