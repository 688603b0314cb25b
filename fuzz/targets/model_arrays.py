"""A model's arrays: anything under the names that are known, signed as if the model's own."""

import json
from pathlib import Path

from fuzz.inputs import arrays
from fuzz.outcome import Target
from safetensors.numpy import load_file, save_file

from spinegraph import atomic as tensor_file
from spinegraph.estimator import SPINE
from spinegraph.graph.synthetic import barbell
from spinegraph.storage import model_folder

_KINDS = ("<i8", "<i4", "<f4", "<f8", "|u1", "|b1")
_KEYS = {
    "model.safetensors": (
        *("role.mean", "role.scale", "role.rotation", "role.ramps.matrix", "role.ramps.offset"),
        *("content.directions", "content.mixing", "content.offset", "encoder.mean", "encoder.scale", "other"),
    ),
    "place.safetensors": tuple(
        f"place.{key}" for key in ("positions", "links", "names", "names.text", "names.ends", "names.whole")
    ),
    "graph.safetensors": tuple(
        f"0.{key}"
        for key in (
            *("indptr", "indices", "weights", "names", "names.text", "names.ends", "names.whole", "report"),
            *("features", "features.data", "features.indices", "features.indptr", "features.shape"),
            *("feature_names.text", "feature_names.ends"),
        )
    ),
    "vectors.safetensors": ("vectors", "other"),
}
SEEDS = [
    bytes([file, keep]) + bytes(range(i, i + 60)) for file in range(4) for keep in (0, 1) for i in (0, 90)
]


def begin(folder: Path) -> Target:
    """Return a function that loads a model with some of one file's arrays replaced."""
    model = SPINE(dim=3, k=4, threads=1).fit(
        barbell(4).relabel([f"n{i}" for i in range(9)][: len(barbell(4))])
    )
    model.save(folder / "model")
    path = folder / "model"
    whole = {name: load_file(path / name) for name in _KEYS}
    about = json.loads((path / "config.json").read_text())

    def target(data: bytes) -> None:
        name = sorted(_KEYS)[data[0] % 4 if data else 0]
        kept = whole[name] if data[1:2] > b"\x20" else {}
        changed = {**kept, **arrays(data[2:], _KEYS[name], _KINDS)}
        for each in _KEYS:
            content = changed if each == name else whole[each]
            save_file({key: array.copy() for key, array in content.items()}, path / each)
            about["digests"][each] = tensor_file.digest(content)
        about["digests"]["config.json"] = model_folder.config_digest(about)
        (path / "config.json").write_text(json.dumps(about))
        SPINE.load(path)

    return target
