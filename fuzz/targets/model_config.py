"""A model's settings: any JSON or sound ones changed, signed as if its own, beside sound arrays."""

import json
from pathlib import Path

from fuzz.inputs import changed
from fuzz.outcome import Target

from spinegraph.estimator import SPINE
from spinegraph.graph.synthetic import barbell
from spinegraph.storage import model_folder


def _model() -> SPINE:
    return SPINE(dim=3, k=4, threads=1).fit(barbell(4))


def _config(folder: Path) -> bytes:
    _model().save(folder / "model")
    return (folder / "model" / "config.json").read_bytes()


def _seeds() -> list[bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        text = _config(Path(folder))
    about = json.loads(text)
    small = {**about, "data": None, "history": []}
    return [
        text,
        json.dumps(about).encode(),
        json.dumps(small).encode(),
        b"{}",
        b"[]",
        b"\0",
        b"\0" + bytes(range(64)),
    ]


SEEDS = _seeds()


def begin(folder: Path) -> Target:
    """Return a function that loads a model whose config.json is these bytes, signed if it can be."""
    sound = json.loads(_config(folder))
    path = folder / "model" / "config.json"
    graph = barbell(4)

    def target(data: bytes) -> None:
        drawn = json.dumps(changed(data[1:], sound)).encode() if data[:1] == b"\0" else data
        path.write_bytes(_signed(drawn))
        model = SPINE.load(folder / "model")
        assert model.transform(graph).vectors.shape == (len(graph), 3)

    return target


def _signed(data: bytes) -> bytes:
    try:
        about = json.loads(data)
        about["digests"]["config.json"] = model_folder.config_digest(about)
        return json.dumps(about).encode()
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return data
