"""The header of a graph on disk as any JSON or its own changed, its files as any bytes; all verified."""

import json
from pathlib import Path

import numpy as np
from fuzz.inputs import changed
from fuzz.outcome import Target

from spinegraph.graph import store as store_header
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import digest_of, open_store, write_store

_GRAPH = Graph.from_edges(
    [("ann", "bob"), ("bob", "cy"), ("cy", "dan")],
    weights=[1, 2, 3],
    features=np.eye(4),
    feature_names=[*"wxyz"],
)


def _seeds() -> list[bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_store(_GRAPH, Path(folder, "store"))
        files = sorted(Path(folder, "store").iterdir())
        header = Path(folder, "store", store_header.HEADER).read_bytes()
        return [
            b"\0" + header,
            b"\0\0",
            b"\0\0" + bytes(range(64)),
            *(bytes([1 + place]) + file.read_bytes() for place, file in enumerate(files)),
        ]


SEEDS = _seeds()


def begin(folder: Path) -> Target:
    """Return a function that opens a store one of whose files is these bytes, signed as if its own."""
    store = folder / "store"
    write_store(_GRAPH, store)
    whole = {file.name: file.read_bytes() for file in sorted(store.iterdir())}
    about = json.loads(whole[store_header.HEADER])

    def target(data: bytes) -> None:
        for name, content in whole.items():
            (store / name).write_bytes(content)
        role = data[0] % (1 + len(whole)) if data else 0
        name = store_header.HEADER if role == 0 else sorted(whole)[role - 1]
        if name == store_header.HEADER:
            (store / name).write_bytes(_unsigned(data[1:], about))
        else:
            size = len(whole[name])
            (store / name).write_bytes(data[1 : 1 + size].ljust(size, b"\0"))
            signed = {**about, "files": {**about["files"]}}
            signed["files"][name] = {**about["files"][name], "digest": digest_of(store / name)}
            signed.pop("digest", None)
            (store / store_header.HEADER).write_text(json.dumps(signed))
        graph = open_store(store, verify=True)
        assert len(graph.names.tolist()) == len(graph)
        assert graph.indices.max(initial=0) < len(graph)
        assert graph.positions(graph.names.tolist()[:2]).tolist() == [*range(len(graph))][:2]

    return target


def _unsigned(data: bytes, sound: dict[str, object]) -> bytes:
    try:
        about = changed(data[1:], sound) if data[:1] == b"\0" else json.loads(data)
        about.pop("digest", None)
        return json.dumps(about).encode()
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return data
