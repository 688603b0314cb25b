"""What a Ray cluster of several nodes on this machine costs and gains, beside the local engine.

Run with ``python -m benchmarks.ray_scale``; prints a table and writes ``benchmarks/results/ray_scale.json``.

- Embedding: a made network of ``--nodes`` nodes, 10 edges a node and 100 sparse columns, as a store; a model
  fitted on a small network of the same kind. ``embed_to_folder`` with one and two threads here, with one and
  two nodes of one core on the cluster, and with two of which one is killed when half of the shards are done.
  Every folder's checksums are compared with those of the first.
- Starting: seconds from nothing to a cluster that has answered, and for the first task of a process.

Two workers need two cores that nothing else uses. ``--page`` writes the table of the page from the JSON.
"""

import argparse
import json
import os
import re
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from benchmarks.machine import describe

RESULTS = Path(__file__).parent / "results" / "ray_scale.json"
PAGE = Path(__file__).parents[1] / "docs" / "cluster.md"
FIGURES = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
COLUMNS, EDGES, ROWS = 100, 10, 16_384
MEMORY = 400 * 2**20
QUIET = {"num_cpus": 1, "object_store_memory": MEMORY}


@contextmanager
def cluster_of(nodes):
    """Start a head without cores and so many nodes of one core; yield the cluster and seconds it took."""
    import ray
    from ray.cluster_utils import Cluster

    from spinegraph.engines.ray import connect

    begun = time.perf_counter()
    head = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    added = [cluster.add_node(**QUIET) for _ in range(nodes)]
    connect(cluster.address)
    try:
        yield cluster, added, time.perf_counter() - begun
    finally:
        ray.shutdown()
        cluster.shutdown()


def timed(call):
    begun = time.perf_counter()
    found = call()
    return time.perf_counter() - begun, found


def digests(folder):
    return [part["digest"] for part in json.loads((folder / "manifest.json").read_text())["parts"]]


class Embedding:
    """The network, the model, and folders of vectors made in several ways."""

    def __init__(self, nodes, place):
        from spinegraph import SPINE, made
        from spinegraph.graph.store import open_store, write_store

        small = made.random_graph(5_000, EDGES, seed=1, features=COLUMNS)
        self.generator = SPINE(threads=1).fit(small).generator_
        write_store(made.random_graph(nodes, EDGES, seed=2, features=COLUMNS), place / "store")
        self.graph, self.place, self.nodes = open_store(place / "store"), place, nodes
        self.first, self.rows = None, []

    def run(self, name, embed, **about):
        folder = self.place / "vectors"
        seconds, _ = timed(lambda: embed(folder))
        found = digests(folder)
        self.first = self.first or found
        row = {"engine": name, **about, "seconds": seconds, "nodes_per_second": self.nodes / seconds}
        self.rows.append({**row, "identical": found == self.first})
        print(f"{name:<28}{seconds:8.1f} s{self.nodes / seconds:12,.0f} nodes/s", found == self.first)
        shutil.rmtree(folder)

    def here(self, threads):
        from spinegraph.engines.local import LocalEngine

        generator = self.generator.with_config(threads=threads)
        self.run(
            f"local, {threads} threads",
            lambda folder: LocalEngine().embed_to_folder(generator, self.graph, folder, rows=ROWS),
            threads=threads,
        )

    def there(self, workers, cluster, victim=None):
        from spinegraph.engines.ray import RayEngine

        def progress(stage, done, total):
            if victim is not None and done >= total / 2 and victim in cluster.worker_nodes:
                cluster.remove_node(victim, allow_graceful=False)

        def embed(folder):
            engine = RayEngine()
            return engine.embed_to_folder(self.generator, self.graph, folder, rows=ROWS, progress=progress)

        killed = victim is not None
        name = f"ray, {workers} workers" + ", one killed" * killed
        self.run(name, embed, workers=workers, killed=killed)


def first_task():
    """Seconds for a process of the cluster to start and embed its first few nodes."""
    import ray

    def work():
        from spinegraph import SPINE, made

        SPINE(dim=8).fit(made.karate())

    seconds, _ = timed(lambda: ray.get(ray.remote(num_cpus=1)(work).remote()))
    return seconds


def counted(number, noun):
    return f"{number} {noun}{'s' * (number != 1)}"


def figures(found):
    """Return the figures of a run as tables of Markdown."""
    lines = [
        f"{found['nodes']:,} nodes, {EDGES} edges per node, {COLUMNS} sparse columns, shards of "
        f"{found['rows_per_shard']:,}, on {found['machine']['cores']} cores. The load at the start was "
        f"{found['machine']['load_average_at_start']}; above about 1, compare only ratios. Each node of the "
        "cluster is a process on this machine with one core (`python -m benchmarks.ray_scale`).\n",
        "| vectors to a folder | seconds | nodes per second | identical files |",
        "|---|--:|--:|---|",
    ]
    for row in found["embedding"]:
        who = counted(row["threads"], "thread") + ", local" if "threads" in row else ""
        who = who or f"Ray, {counted(row['workers'], 'worker')}"
        who += ", one killed half-way" * row.get("killed", False)
        same = "yes" if row["identical"] else "**no**"
        lines.append(f"| {who} | {row['seconds']:.1f} | {row['nodes_per_second']:,.0f} | {same} |")
    start = found["start_seconds"]
    lines.append(f"\nCluster start: {start['cluster']:.1f} s. First task: {start['first_task']:.1f} s.")
    return "\n".join(lines) + "\n"


def write_page(found):
    """Write the figures of a run into the page."""
    PAGE.write_text(FIGURES.sub(lambda _: figures(found), PAGE.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=300_000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true", help="measure nothing; the table from the JSON")
    given = parser.parse_args()
    if given.page:
        write_page(json.loads(RESULTS.read_text()))
        return
    # Processes of a cluster give way to others by default, and would do so to this one too.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    machine = describe("ray", "torch")
    with tempfile.TemporaryDirectory(prefix="ray-scale-") as place:
        embedding = Embedding(given.nodes, Path(place))
        for threads in (1, 2):
            embedding.here(threads)
        for workers in (1, 2):
            with cluster_of(workers) as (cluster, added, started):
                task = first_task()
                embedding.there(workers, cluster)
                if workers == 2:
                    embedding.there(workers, cluster, victim=added[0])
        found = {
            "machine": machine,
            "nodes": given.nodes,
            "rows_per_shard": ROWS,
            "start_seconds": {"cluster": started, "first_task": task},
            "embedding": embedding.rows,
        }
    given.output.write_text(json.dumps(found, indent=1) + "\n")
    if given.output == RESULTS:
        write_page(found)


if __name__ == "__main__":
    main()
