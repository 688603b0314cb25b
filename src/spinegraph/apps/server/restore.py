"""From a model, a graph and a store to the state in which the service stopped, exactly."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from spinegraph.apps.server.live import Live
from spinegraph.apps.server.store import Store
from spinegraph.errors import ModelFormatError, ParameterError
from spinegraph.fingerprint import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few


def open_store(model: Any, graph: Graph, folder: Path) -> Store:
    """Open the store of a model and a graph, or make it.

    Parameters
    ----------
    model : SPINE
        Fitted.
    graph : Graph
        Names are text or whole numbers.
    folder : Path
    """
    other = [name for name in graph.names.tolist() if not isinstance(name, str | int)]
    if other:
        raise ParameterError(
            f"a service's node names are text or whole numbers; got {first_few(other, 3)}. "
            "Give the graph such names: graph.relabel(map(str, graph.names))"
        )
    weights = blake2b(np.ascontiguousarray(model.generator_.weights).data, digest_size=8).hexdigest()
    return Store(folder, f"{model.fingerprint_} {weights} {fingerprint(graph)}")


def restore(model: Any, graph: Graph, store: Store, tolerance: float | None = None) -> Live:
    """Return the state after all changes of the store: the same as if the service had never stopped.

    Changes up to the saved state are read for the graph alone; later ones are applied again, in their order
    and settled where they were.
    """
    generator = model.generator_
    if generator.inputs.encoder is not None:
        generator.inputs.require_features(graph)
    base = store.base()
    live = Live(generator, graph if base is None else base, tolerance, version=store.base_version)
    state, at = store.state(), store.state_version or 0
    rest = []
    for entry in store.changes():
        if state is not None and entry.version <= at:
            live.pass_over(entry.change)
            _require_next(store, entry.version, live.tip.version)
        else:
            rest.append(entry)
    if state is not None:
        live.resume(state)
    else:
        is_known = model.embeddings_ is not None and model.fingerprint_ == fingerprint(live.tip.overlay.base)
        live.compute_all(model.embeddings_.vectors if is_known else None)
    for place, entry in enumerate(rest, live.tip.version + 1):
        _require_next(store, entry.version, place)
        live.take(entry.change)
        if entry.is_last:
            live.settle()
    return live


def _require_next(store: Store, found: int, expected: int) -> None:
    if found != expected:
        raise ModelFormatError(
            f"{store.folder}: the log goes on with version {found} where {expected} belongs; bring the store "
            "back from a copy"
        )
