"""What was acknowledged survives any stop, and the service goes on as if it had never stopped."""

import os
import random
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import httpx
import numpy as np
import pyarrow as pa
import pytest
from benchmarks.service import fitted, network

from running_service import Running, small_graph, small_model


def operation(number):
    """The request that leads to version ``number``: method, path, arguments; the same every time."""
    rng = np.random.default_rng(number)
    known = [f"n{i}" for i in rng.choice(60, 4, replace=False)]
    if number % 11 == 10:
        return "DELETE", f"/v1/nodes/new {number - 5}", {}
    if number % 7 == 6:
        edges = [{"source": known[0], "target": known[1]}, {"source": known[2], "target": known[3]}]
        return "POST", "/v1/edges", {"json": {"edges": edges}}
    features = {f"word {i}": float(rng.random()) for i in rng.choice(12, 3, replace=False)}
    return "POST", "/v1/nodes", {"json": {"name": f"new {number}", "edges": known[:3], "features": features}}


def exists(number):
    return number % 11 != 10 and number % 7 != 6


def requests_up_to(count):
    """Operations in order; a removal of what never was is another addition instead."""
    for number in range(1, count + 1):
        method, path, arguments = operation(number)
        if method == "DELETE" and not exists(number - 5):
            method, path = "POST", "/v1/nodes"
            arguments = {"json": {"name": f"new {number}", "edges": ["n1"], "features": {}}}
        yield number, method, path, arguments


REQUESTS = {number: rest for number, *rest in requests_up_to(4000)}


class Stream(Thread):
    """Sends requests one after the other until the service is gone; counts what was acknowledged."""

    def __init__(self, running, first):
        super().__init__(daemon=True)
        self.running, self.acknowledged = running, first - 1

    def run(self):
        headers = {"Authorization": f"Bearer {self.running.token}"}
        with httpx.Client(base_url=self.running.url, headers=headers, timeout=30, trust_env=False) as client:
            while True:
                method, path, arguments = REQUESTS[self.acknowledged + 1]
                try:
                    answer = client.request(method, path, **arguments)
                except httpx.HTTPError:
                    return
                assert answer.status_code in (200, 201), (method, path, arguments, answer.text)
                assert answer.json()["version"] == self.acknowledged + 1
                self.acknowledged += 1


def killed_again_and_again(model_folder, folder, kills, stops):
    """Kill a service at random moments of writing, end it in order at others, and restart it each time.

    Returns it with the version it came to.
    """
    rng = np.random.default_rng(5)
    running, version = Running(model_folder, folder / "killed"), 0
    ends = rng.permutation(["kill"] * kills + ["stop"] * stops)
    for turn, end in enumerate(ends):
        running.start()
        found = running.get("/readyz")["version"]
        assert version <= found <= version + 1  # the one that was on its way may have reached the disk
        stream = Stream(running, found + 1)
        stream.start()
        time.sleep(0.2 + rng.random() / 2)
        if turn % 3 == 2:
            running.client.post("/v1/compact", headers={"Content-Type": "application/json"})
        if end == "kill":
            running.kill()
        else:
            assert running.stop() == 128 + signal.SIGTERM
        stream.join(30)
        assert not stream.is_alive()
        version = stream.acknowledged
    running.start()
    found = running.get("/readyz")["version"]
    assert version <= found <= version + 1
    return running, found


def require_same(first, second):
    """Assert that two services give the same answers, bit for bit."""
    one, other = first.vectors(), second.vectors()
    assert one[:2] == other[:2]
    np.testing.assert_array_equal(one[2], other[2])
    for name in one[1][::5]:
        for path in ("", "/similar", "/profile", "/neighborhood"):
            assert first.get(f"/v1/nodes/{name}{path}") == second.get(f"/v1/nodes/{name}{path}")


def require_survival(model_folder, folder, kills, stops):
    killed, version = killed_again_and_again(model_folder, folder, kills, stops)
    assert version > kills + stops  # something was written between the stops
    try:
        with Running(model_folder, folder / "whole") as whole:
            for number in range(1, version + 1):
                method, path, arguments = REQUESTS[number]
                assert whole.client.request(method, path, **arguments).status_code in (200, 201)
            require_same(killed, whole)
            # And both go on alike.
            for number in range(version + 1, version + 6):
                method, path, arguments = REQUESTS[number]
                answers = [one.client.request(method, path, **arguments).json() for one in (killed, whole)]
                assert answers[0] == answers[1]
            require_same(killed, whole)
    finally:
        killed.kill()


def test_killed_three_times_it_answers_as_if_never_interrupted(model_folder, tmp_path):
    require_survival(model_folder, tmp_path, kills=3, stops=0)


@pytest.mark.slow
def test_killed_twenty_times_it_answers_as_if_never_interrupted(model_folder, tmp_path):
    require_survival(model_folder, tmp_path, kills=20, stops=5)


def test_what_writers_side_by_side_were_told_is_there_after_a_kill(model_folder, tmp_path):
    """Their changes are computed together as they come; the log says which, so vectors are the same bits."""
    with Running(model_folder, tmp_path / "store") as running:
        told = {}

        def write(which):
            headers = {"Authorization": f"Bearer {running.token}"}
            with httpx.Client(base_url=running.url, headers=headers, timeout=30, trust_env=False) as client:
                for number in range(12):
                    name = f"{which} {number}"
                    body = {"name": name, "edges": [f"n{number}", f"n{number + 30}"], "features": {}}
                    told[name] = client.post("/v1/nodes", json=body).json()["version"]

        with ThreadPoolExecutor(5) as pool:
            list(pool.map(write, "abcde"))
        before = running.vectors()
        running.kill()
    with Running(model_folder, tmp_path / "store") as again:
        after = again.vectors()
    assert len(told) == before[0] == after[0] == max(told.values()) == 60
    assert before[1] == after[1]
    np.testing.assert_array_equal(before[2], after[2])


@pytest.mark.slow
def test_a_model_without_features_survives_as_well(tmp_path):
    plain = small_graph().with_features(None)
    folder = small_model(tmp_path / "model", plain)
    running = Running(folder, tmp_path / "store").start()
    for number in range(40):
        body = {"name": f"new {number}", "edges": [f"n{number}", f"n{(3 * number) % 90}"]}
        body["edges"] = sorted(set(body["edges"]))
        assert running.client.post("/v1/nodes", json=body).status_code == 201
    before = running.vectors()
    running.kill()
    with Running(folder, tmp_path / "store") as again:
        after = again.vectors()
    assert before[:2] == after[:2]
    np.testing.assert_array_equal(before[2], after[2])


def test_a_store_of_another_model_is_refused(model_folder, tmp_path):
    with Running(model_folder, tmp_path / "store") as running:
        running.add("new", ["n0"])
        running.stop()
    other = small_model(tmp_path / "other", small_graph(seed=1))
    with pytest.raises(RuntimeError, match="belongs to another model or graph"):
        Running(other, tmp_path / "store").start()


def test_a_damaged_store_is_an_error_and_no_traceback(model_folder, tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "store.sqlite3").write_bytes(b"no database" * 1000)
    with pytest.raises(RuntimeError, match=r"^error: .*is damaged"):
        Running(model_folder, tmp_path / "store").start()


def test_the_log_is_on_disk_before_the_answer(model_folder, tmp_path):
    with Running(model_folder, tmp_path / "store") as running:
        running.add("new", ["n0"])
        running.kill()
    with sqlite3.connect(tmp_path / "store" / "store.sqlite3") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.execute("SELECT version FROM changes").fetchall() == [(1,)]
    database.close()


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", ["cora", "ego_twitter"])
def test_kills_under_mixed_load_lose_nothing_on_real_networks(name, tmp_path):
    """SPINEGRAPH_KILLS says how often; SPINEGRAPH_MODELS is a folder that keeps the fitted models."""
    models = Path(os.environ.get("SPINEGRAPH_MODELS", tmp_path))
    folder, graph = fitted(name, models), network(name)
    running = Running(folder, tmp_path / "store")
    there, gone, rng = set(), set(), np.random.default_rng(3)
    for kill in range(int(os.environ.get("SPINEGRAPH_KILLS", "100"))):
        running.start()
        exported = running.client.get("/v1/export", params={"format": "arrow"}).content
        names = set(pa.ipc.open_stream(exported).read_all()["name"].to_pylist())
        assert there <= names
        assert not gone & names

        def write(which, kill=kill):
            headers, draw = {"Authorization": f"Bearer {running.token}"}, random.Random(f"{kill} {which}")
            names = graph.names.tolist()
            with httpx.Client(base_url=running.url, headers=headers, timeout=60, trust_env=False) as client:
                for number in range(100_000):
                    name = f"k{kill}-{which}-{number}"
                    body = {"name": name, "edges": draw.sample(names, 3)}
                    body |= {"features": {}} if graph.has_features else {}
                    try:
                        assert client.post("/v1/nodes", json=body).status_code == 201
                        there.add(name)
                        client.get(f"/v1/nodes/{draw.choice(names)}/similar")
                        if number % 5 == 4:
                            there.discard(name)
                            assert client.delete(f"/v1/nodes/{name}").status_code == 200
                            gone.add(name)
                    except httpx.HTTPError:
                        return

        writers = [Thread(target=write, args=(which,)) for which in "abc"]
        for one in writers:
            one.start()
        time.sleep(0.5 + 1.5 * rng.random())
        running.kill()
        for one in writers:
            one.join()
    print(f"{name}: {kill + 1} kills, {len(there) + 2 * len(gone)} changes acknowledged, none lost")
    assert len(there) > kill
