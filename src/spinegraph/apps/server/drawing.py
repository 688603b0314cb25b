"""The map and the roles of all nodes, made in a process of their own at low priority.

Inside the service they would take turns with every answer for as long as they take. The two processes share a
folder: the service writes graph, vectors and model there, this one writes the finished map beside it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import Roles
from spinegraph.apps.server.live import Snapshot
from spinegraph.atomic import whole_file
from spinegraph.embeddings import Embeddings
from spinegraph.errors import SpineError
from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.model_graph import graph_arrays, graph_of

MAP = "map.safetensors"
_MODEL, _GRAPH = "model", "graph.safetensors"
_POLITENESS = 5  # of 19
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@contextmanager
def drawing(model: Any, snapshot: Snapshot, folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Hand a model and a snapshot over in a new folder, and start the process that writes the map beside it.

    Parameters
    ----------
    model : SPINE
    snapshot : Snapshot
    folder : Path
        New; the map is ``map.safetensors`` in the folder that holds it.
    """
    folder.mkdir(mode=0o700)
    model.save(folder / _MODEL, data=False)
    standing = snapshot.overlay.standing
    arrays = graph_arrays(snapshot.overlay.materialize())
    save_file(
        {**arrays, "vectors": snapshot.vectors.take(standing), "positions": standing},
        folder / _GRAPH,
        {"version": str(snapshot.version)},
    )
    command = [sys.executable, "-m", "spinegraph.apps.server.drawing", str(folder)]
    environment = {**os.environ, **_ONE_THREAD, "PYTHONSAFEPATH": "1"}
    # It ends with the service, however that ends: nothing is ever written to it, so all it reads is the end.
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def draw(folder: Path) -> None:
    """Make the map and the roles of what was handed over, and write them beside the folder."""
    from safetensors import safe_open

    from spinegraph.estimator import SPINE

    arrays = load_file(folder / _GRAPH)
    with safe_open(folder / _GRAPH, framework="numpy") as opened:
        version = opened.metadata()["version"]
    vectors, positions = arrays.pop("vectors"), arrays.pop("positions")
    graph, places = graph_of(arrays), layout(vectors)
    generator = _on_one_thread(SPINE.load(folder / _MODEL))
    roles = _roles(graph, generator, Embeddings(graph.names, vectors))
    with whole_file(folder.parent / MAP) as partial:
        about = {"version": version, "roles": json.dumps(roles)}
        save_file({"positions": positions, "places": places}, partial, about)


def read_map(file: Path, snapshot: Snapshot) -> tuple[NDArray[np.float32], Roles | None] | None:
    """Return the places (n, 2) of a snapshot's standing nodes and their roles, where a file holds them."""
    from safetensors import SafetensorError, safe_open

    try:
        arrays = load_file(file)
        with safe_open(file, framework="numpy") as opened:
            about = opened.metadata() or {}
        written = json.loads(about["roles"])
        roles = None if written is None else Roles.from_json(written)
        places = arrays["places"]
        is_of_it = about["version"] == str(snapshot.version) and places.shape == (len(places), 2)
        is_of_it = is_of_it and np.array_equal(arrays["positions"], snapshot.overlay.standing)
        return (places, roles) if is_of_it and len(places) == len(arrays["positions"]) else None
    except (OSError, SafetensorError, SpineError, ValueError, KeyError):
        return None


def _roles(graph: Graph, generator: Generator, embeddings: Embeddings) -> dict[str, Any] | None:
    try:
        return Roles.find(graph, generator, embeddings).to_json()
    except SpineError as fault:  # a graph may be too small for roles; the map is drawn all the same
        print(f"no roles: {fault}", file=sys.stderr)
        return None


def _on_one_thread(model: Any) -> Generator:
    inputs = model.generator_.inputs
    config = replace(inputs.config, threads=1)
    return Generator(replace(inputs, config=config), model.generator_.weights)


def _end_with_the_service() -> None:
    os.read(0, 1)  # standard input, past its buffer: that would still be locked at the end
    os._exit(1)


def _main(folder: str) -> None:
    if hasattr(os, "nice"):
        os.nice(_POLITENESS)
    Thread(target=_end_with_the_service, daemon=True).start()
    try:
        draw(Path(folder))
    except (SpineError, OSError) as fault:
        sys.exit(f"no map or roles: {fault}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
