"""A real Ray cluster of several nodes on this machine: the vectors of the local engine, whatever happens."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from command import QUICK, spine, write_organisation
from spinegraph import SPINE, Config, Embeddings, made
from spinegraph.engines import local
from spinegraph.engines import ray as ray_engine
from spinegraph.engines.ray import RayEngine, Shared, connect, require_package, require_ray
from spinegraph.engines.shards import ShardFolder, run_digest
from spinegraph.errors import ClusterError, MissingPackageError, ParameterError
from spinegraph.graph.store import open_store, write_store

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'spinegraph[ray]'")
SETTINGS = {"dim": 8, "threads": 1}
MEMORY = 80 * 2**20  # of a node's object store
pytestmark = [
    # Ray leaves its processes' pipes and its event loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    # Workers run at niceness 15 by default: on a busy machine they would hardly run at all.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args=head)
    found.add_node(num_cpus=1, object_store_memory=MEMORY)
    connect(found.address)
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.fixture(scope="module")
def featured():
    return SPINE(**SETTINGS).fit(made.random_graph(300, 4, features=12, seed=1))


@pytest.fixture(scope="module")
def bare():
    return SPINE(**SETTINGS).fit(made.random_graph(300, 4, seed=2))


def joined(folder):
    return np.concatenate([Embeddings.load(path).vectors for path in sorted(folder.glob("*.parquet"))])


def test_a_fit_has_the_bits_of_the_local_engine(cluster, featured, monkeypatch):
    monkeypatch.setattr(ray_engine, "ROWS", 64)
    model = SPINE(**SETTINGS, engine="ray", address=cluster.address).fit(featured.graph_)
    np.testing.assert_array_equal(model.embeddings_.vectors, featured.embeddings_.vectors)
    assert model.config_.engine == "ray"


@pytest.mark.parametrize("kind", ["featured", "bare"])
def test_vectors_of_a_large_graph_are_those_of_the_local_engine(cluster, kind, request, monkeypatch):
    model = request.getfixturevalue(kind)
    for module in (ray_engine, local):
        monkeypatch.setattr(module, "ROWS", 64)
    known = np.arange(300)
    found = RayEngine().embed(model.generator_, model.graph_, known)
    np.testing.assert_array_equal(found, model.embeddings_.vectors)


@pytest.mark.parametrize("kind", ["featured", "bare"])
def test_a_folder_holds_the_files_of_the_local_engine(cluster, kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    here = local.LocalEngine().embed_to_folder(model.generator_, model.graph_, tmp_path / "here", rows=64)
    told = []
    there = RayEngine().embed_to_folder(
        model.generator_, model.graph_, tmp_path / "there", rows=64, progress=lambda *line: told.append(line)
    )
    assert [path.name for path in sorted(there.iterdir())] == [path.name for path in sorted(here.iterdir())]
    np.testing.assert_array_equal(joined(there), joined(here))
    ShardFolder.open(there, run_digest(model.generator_, model.graph_), 300, 64).verify()
    assert told[0] == ("embedding nodes", 0, 300)
    assert any(stage == "smoothing" for stage, _, _ in told)
    assert told[-1] == ("embedding nodes", 300, 300)


def test_a_store_is_opened_by_its_path(cluster, featured, tmp_path):
    write_store(featured.graph_, tmp_path / "store")
    graph = open_store(tmp_path / "store")
    folder = RayEngine().embed_to_folder(featured.generator_, graph, tmp_path / "vectors", rows=64)
    here = local.LocalEngine().embed_to_folder(
        featured.generator_, featured.graph_, tmp_path / "here", rows=64
    )
    np.testing.assert_array_equal(joined(folder), joined(here))
    assert Shared.of(graph).reference == ()


class StoppedError(Exception):
    pass


def test_an_interrupted_run_is_resumed(cluster, featured, tmp_path):
    generator, graph = featured.generator_, featured.graph_

    def stop(stage, done, total):
        if done >= 100:
            raise StoppedError

    with pytest.raises(StoppedError):
        RayEngine().embed_to_folder(generator, graph, tmp_path / "vectors", rows=20, progress=stop)
    kept = {part.name: part.stat().st_mtime_ns for part in (tmp_path / "vectors").glob("*.parquet")}
    told = []
    found = RayEngine().embed_to_folder(
        generator, graph, tmp_path / "vectors", rows=20, progress=lambda *line: told.append(line)
    )
    assert told[0] == ("embedding nodes", told[0][1], 300)
    assert told[0][1] >= 100
    assert sum((found / name).stat().st_mtime_ns == written for name, written in kept.items()) >= 5
    here = local.LocalEngine().embed_to_folder(generator, graph, tmp_path / "here", rows=20)
    np.testing.assert_array_equal(joined(found), joined(here))
    assert not list(found.glob(".smoothed*"))


def test_a_node_that_is_killed_in_the_middle_costs_nothing_but_time(cluster, featured, tmp_path):
    victim = cluster.add_node(num_cpus=2, object_store_memory=MEMORY)
    killed = []

    def kill(stage, done, total):
        if done >= 40 and not killed:
            killed.append(done)
            cluster.remove_node(victim, allow_graceful=False)

    generator, graph = featured.generator_, featured.graph_
    found = RayEngine().embed_to_folder(generator, graph, tmp_path / "vectors", rows=10, progress=kill)
    assert killed
    here = local.LocalEngine().embed_to_folder(generator, graph, tmp_path / "here", rows=10)
    np.testing.assert_array_equal(joined(found), joined(here))
    ShardFolder.open(found, run_digest(generator, graph), 300, 10).verify()


def test_a_machine_without_the_package_is_named(cluster, tmp_path):
    (tmp_path / "spinegraph.py").write_text("raise ModuleNotFoundError('No module named spinegraph')")
    bare = cluster.add_node(num_cpus=1, object_store_memory=MEMORY, env_vars={"PYTHONPATH": str(tmp_path)})
    try:
        with pytest.raises(ClusterError, match=rf"node {bare.node_id[:8]}.*pip install 'spinegraph\[ray\]"):
            require_package(ray)
    finally:
        cluster.remove_node(bare)


def test_a_machine_without_the_store_is_told_where_to_put_it(cluster, featured, tmp_path):
    write_store(featured.graph_, tmp_path / "store")
    shared = Shared.of(open_store(tmp_path / "store"))
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    with pytest.raises(ClusterError, match=r"has no store at .*store; use a disk that all share"):
        shared.value()
    write_store(made.karate(), tmp_path / "store")
    with pytest.raises(ClusterError, match="a different graph at"):
        shared.value()


def test_an_error_in_a_task_is_the_error_of_the_call(cluster, featured, tmp_path):
    model = SPINE(**SETTINGS).fit(made.random_graph(60, 3, features=3, seed=0))
    with pytest.raises(
        ValueError, match="the model was fitted with 3 features per node, but this graph has 12"
    ):
        RayEngine().embed_to_folder(model.generator_, featured.graph_, tmp_path / "vectors", rows=64)


def test_a_model_keeps_no_address(cluster, featured, tmp_path):
    model = SPINE(**SETTINGS, engine="ray", address=cluster.address).fit(featured.graph_)
    model.save(tmp_path / "model")
    assert cluster.address not in (tmp_path / "model" / "config.json").read_text()
    assert SPINE.load(tmp_path / "model").engine == "local"


def test_transform_has_the_bits_of_the_local_engine(cluster, featured, tmp_path, monkeypatch):
    for module in (ray_engine, local):
        monkeypatch.setattr(module, "ROWS", 64)
    featured.save(tmp_path / "model")
    here, there = SPINE.load(tmp_path / "model"), SPINE.load(tmp_path / "model").set_params(engine="ray")
    found = [model.transform(featured.graph_) for model in (here, there)]
    np.testing.assert_array_equal(found[1].vectors, found[0].vectors)


@pytest.mark.slow
def test_the_command_has_the_vectors_of_the_local_engine(cluster, tmp_path):
    write_organisation(tmp_path)
    on_cluster = ("--engine", "ray", "--address", cluster.address)
    known = ("edges.csv", "--features", "people.csv")
    for name, where in (("here", ()), ("there", on_cluster)):
        fitted = spine("fit", *known, *QUICK, "-o", f"{name}-model", *where, "--quiet", cwd=tmp_path)
        assert fitted.returncode == 0, fitted.stderr
        found = spine("embed", f"{name}-model", *known, "-o", f"{name}/", *where, "--json", cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["nodes"] == 12
    np.testing.assert_array_equal(joined(tmp_path / "there"), joined(tmp_path / "here"))


@pytest.mark.parametrize("command", ["fit", "embed"])
def test_the_command_says_in_one_line_that_nobody_answers(command, featured, tmp_path):
    write_organisation(tmp_path)
    bare = SPINE(**SETTINGS).fit(made.karate())
    bare.save(tmp_path / "model")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    begin = ("fit",) if command == "fit" else ("embed", "model")
    asked = ("edges.csv", "-o", "out/", "--engine", "ray", "--address", f"127.0.0.1:{port}", "--quiet")
    found = spine(*begin, *asked, cwd=tmp_path)
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    assert f"no Ray cluster answers at 127.0.0.1:{port}" in found.stderr


def test_ray_that_is_not_installed_is_an_error_with_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'spinegraph\[ray\]'"):
        require_ray()


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "a b:1", 6379])
def test_an_address_that_is_none_is_refused_before_any_work(address):
    with pytest.raises(ParameterError, match="address must be HOST:PORT"):
        Config(address=address).check()


@pytest.mark.slow
def test_an_address_where_something_else_listens_is_refused():
    code = "import sys; from spinegraph.engines.ray import connect; connect(sys.argv[1])"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        run = subprocess.run(
            [sys.executable, "-c", code, address], capture_output=True, text=True, timeout=120
        )
    assert f"ClusterError: the Ray cluster at {address} cannot be used from here" in run.stderr


@pytest.mark.parametrize("address", ["nobody.invalid:6379", "127.0.0.1:99999", "127.0.0.1"])
def test_an_address_where_nothing_listens_is_refused_within_seconds(monkeypatch, address):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ClusterError, match=f"no Ray cluster answers at {address}"):
        connect(address)
