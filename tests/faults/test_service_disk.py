"""A service whose disk fills up takes no more changes, goes on answering, and keeps what it acknowledged."""

import pytest

import running_service
from injected import require_plain
from running_service import Running, small_graph, small_model

LIMITED = """
import resource, signal
from spinegraph.apps.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size},) * 2)
main()
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    made = small_model(folder / "model", small_graph(n=40).with_features(None))
    with Running(made, folder / "warm") as running:  # what is compiled is compiled, and kept
        assert add(running, 0).status_code == 201
    return made


def add(running, number):
    body = {"name": f"new {number}", "edges": [f"n{number % 40}", f"n{(number + 7) % 40}"]}
    return running.client.post("/v1/nodes", json=body)


def check(model, folder, size, monkeypatch, injected):
    monkeypatch.setattr(running_service, "_START", LIMITED.format(size=size))
    acknowledged = []
    with Running(model, folder) as running:
        for number in range(60):
            answer = add(running, number)
            assert answer.status_code in (201, 503), answer.text
            if answer.status_code == 503:
                break
            acknowledged.append(f"new {number}")
        assert 0 < len(acknowledged) < 60, "the disk must fill up on the way"
        assert add(running, 99).status_code == 503
        assert running.get(f"/v1/nodes/{acknowledged[-1]}")["version"] == len(acknowledged)
        running.client.close()
        running.process.kill()
        require_plain(running.process.communicate()[0])
    monkeypatch.undo()
    with Running(model, folder) as running:
        found = set(running.vectors()[1])
        assert set(acknowledged) <= found
        assert add(running, 100).status_code == 201
    injected("full disks", 1)


def test_a_full_disk_costs_no_acknowledged_change(model, tmp_path, monkeypatch, injected):
    check(model, tmp_path / "store", 80_000, monkeypatch, injected)


@pytest.mark.slow
@pytest.mark.parametrize("size", [40_000, 60_000, 100_000, 150_000, 200_000, 250_000])
def test_a_disk_full_at_any_size_costs_no_acknowledged_change(model, tmp_path, size, monkeypatch, injected):
    check(model, tmp_path / "store", size, monkeypatch, injected)
