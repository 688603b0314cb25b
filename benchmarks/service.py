"""How fast the service answers, from another process on loopback, bounded in count and time.

``python -m benchmarks.service`` measures all, ``--network cora``, ``--network made``, ``--memory`` and
``--near`` a part; ``--table`` measures nothing. Results go to ``benchmarks/results/service.json``, other
parts stay as they were, and the table in ``docs/service.md`` is written from it.

- Networks: Cora, and a made one of 100,000 nodes with 100 columns of features; models with all settings as
  by default. The service runs in a process of its own with one thread for BLAS, as its page advises, and is
  asked once ``/readyz`` says that it is ready.
- At a fixed rate: requests are sent when they are due, whether or not earlier ones are answered, and the time
  of each counts from when it was due, so a stall counts for everybody who had to wait.
- At most: some connections, each with one request at a time, as fast as answers come.
- Inserts are ``POST /v1/nodes`` of one node with three neighbours and another node's features, each on disk
  before it is answered; look-ups are ``GET /v1/nodes/NAME/similar`` for ten nodes.
- Processor time is that of the service's process, all threads; a machine busy with other things changes it
  little, and the other times much.
- Memory: the resident size of the service while 100,000 requests are answered: look-ups, nodes tried out, and
  nodes added and removed again. The slope is that of a line through the last four fifths.
- Near: 300 inserts one by one in Cora, and how far all vectors are then from ``transform`` of the graph.
"""

import argparse
import asyncio
import json
import os
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from benchmarks.machine import describe
from benchmarks.service_load import Requests, Service, at_most, at_rate
from benchmarks.service_near import near
from benchmarks.service_table import PAGE, write_table

RESULTS = Path(__file__).parent / "results" / "service.json"
_CONNECTIONS, _SAMPLES = 8, 100
_PATIENCE = 900  # seconds until the service is ready, and until the map is drawn


def network(name):
    """Return one of the networks."""
    if name == "cora":
        from spinegraph.graph.datasets import load

        return load("cora").graph
    from spinegraph.graph.synthetic import random_graph

    return random_graph(100_000, edges_per_node=5, features=100, seed=0)


def fitted(name, folder):
    """Return the folder of a network's model, fitted anew unless it is there."""
    from spinegraph import SPINE

    if not (folder / name).exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SPINE().fit(network(name)).save(folder / name)
    return folder / name


def measured(service, run):
    """Return what is worth keeping of a run."""
    before = service.processor()
    times, failed, seconds = asyncio.run(run)
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

    def run(service, what, load):
        found[what] = measured(service, load)
        print(f"  {what:<40}{found[what]}", flush=True)

    with started(model, stores / f"{name}_read") as service:
        found["seconds_to_answer"] = round(service.seconds_to_answer, 2)
        found["seconds_to_ready"] = round(
            found["seconds_to_answer"] + service.wait_for("/readyz", _PATIENCE), 2
        )
        print(f"{name}: ready after {found['seconds_to_ready']} s", flush=True)
        service.wait_for("/v1/nodes/0/role", _PATIENCE)  # map and roles are made by another process
        run(service, "look-ups at 1000/s", at_rate(service, requests.look_ups(), 1000, seconds))
        run(service, "look-ups at most", at_most(service, requests.look_ups(), seconds, _CONNECTIONS))
    with started(model, stores / f"{name}_written") as service:
        service.wait_for("/readyz", _PATIENCE)
        run(service, "inserts at 100/s, map being drawn", at_rate(service, requests.inserts(), 100, seconds))
        service.wait_for("/v1/nodes/0/role", _PATIENCE)
        run(service, "inserts at 100/s", at_rate(service, requests.inserts(), 100, seconds))
        run(service, "inserts at most", at_most(service, requests.inserts(), seconds, _CONNECTIONS))
        found["inserted"] = sum(found[what]["requests"] for what in found if what.startswith("inserts"))
        run(service, "look-ups at 500/s", at_rate(service, requests.look_ups(), 500, seconds))
        found["resident_mb"] = round(service.resident(), 1)
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
            _, failed, _ = asyncio.run(at_most(service, mixed, 600, 1, count // _SAMPLES))
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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", action="append", choices=["cora", "made"], help="measure this one")
    parser.add_argument("--memory", action="store_true", help="measure memory")
    parser.add_argument("--near", action="store_true", help="compare with a transform of the whole graph")
    parser.add_argument("--table", action="store_true", help="only write the table from the results")
    parser.add_argument("--seconds", type=float, default=15, help="of each run")
    parser.add_argument("--requests", type=int, default=100_000, help="while memory is watched")
    parser.add_argument("--models", type=Path, help="folder that keeps the fitted models for the next time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    is_all = not (given.network or given.memory or given.near or given.table)
    results = json.loads(given.results.read_text()) if given.results.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        stores, models = Path(folder) / "stores", given.models or Path(folder) / "models"
        for name in ["cora", "made"] if is_all else given.network or []:
            results[name] = measure(name, models, stores, given.seconds)
            given.results.write_text(json.dumps(results, indent=1) + "\n")
        if is_all or given.memory:
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
