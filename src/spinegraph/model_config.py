"""What a fitted model learned and was told, as JSON and arrays, and back; what comes back is not trusted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.errors import ModelFormatError, ParameterError
from spinegraph.familiarity import Familiarity
from spinegraph.generator import Generator
from spinegraph.graph.encode import FeatureEncoder
from spinegraph.inputs import Inputs
from spinegraph.json_object import JsonObject
from spinegraph.learning.history import Moment
from spinegraph.structure.columns import COLUMNS

Arrays = dict[str, NDArray[Any]]
MODEL = "model.safetensors"  # the file that holds the arrays
_PLAIN = str | int | float | None
_NOT_SAVED = ("engine", "address", "training_workers")  # whose cluster made a model is nobody else's affair


@dataclass(frozen=True)
class Settings:
    """Constructor parameters and fitted attributes of a model."""

    params: dict[str, Any]
    fitted: dict[str, Any]


def write_settings(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return what a fitted model holds besides its training data, as JSON values and arrays."""
    inputs: Inputs = model.generator_.inputs
    meta, arrays = (None, {}) if inputs.encoder is None else inputs.encoder.state()
    table, table_arrays = (None, {}) if model.table_encoder_ is None else model.table_encoder_.state()
    used = _saved(model.config_.to_json())
    params = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in _saved(model.get_params()).items()
    }
    for name, value in params.items():
        if not isinstance(value, _PLAIN):
            raise ParameterError(f"{name} was set to {value!r} after fit, which cannot be saved; fit again")
    about = {
        "fingerprint": model.fingerprint_,
        "settings": used,
        "changed_since_fit": {name: value for name, value in params.items() if value != used[name]},
        "encoder": meta,
        "table_encoder": table,
        "structural_columns": list(inputs.columns),
        "through": inputs.through,
        "past": inputs.past,
        "familiarity": model.familiarity_.to_json(),
        "history": [list(asdict(moment).values()) for moment in model.history_],
    }
    tensors = {
        "weights": model.generator_.weights,
        "structural_mean": inputs.mean,
        "structural_scale": inputs.scale,
        **{f"encoder.{key}": array for key, array in arrays.items()},
        **{f"table_encoder.{key}": array for key, array in table_arrays.items()},
    }
    return about, tensors


def read_settings(about: JsonObject, arrays: Arrays) -> Settings:
    """Check and return what ``write_settings`` returned."""
    config = _config(about)
    weights = floats(arrays, "weights", (None, config.dim))
    generator = Generator(_inputs(about, arrays, config, weights), weights)
    changed = about.get("changed_since_fit", dict)
    if not all(isinstance(value, _PLAIN) for value in changed.values()):
        raise ModelFormatError("changed_since_fit must hold plain values")
    fitted = {
        "config_": config,
        "fingerprint_": about.get("fingerprint", str),
        "generator_": generator,
        "table_encoder_": _table_encoder(about, arrays, generator),
        "familiarity_": _familiarity(about, generator),
        "history_": _history(about),
    }
    return Settings({**config.to_json(), **changed}, fitted)


def _saved(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _NOT_SAVED}


def _config(about: JsonObject) -> Config:
    settings = about.get("settings", dict)
    known = set(_saved({field.name: field.default for field in fields(Config)}))
    if set(settings) != known:
        odd = ", ".join(sorted(map(str, known.symmetric_difference(settings)))[:5])
        raise ModelFormatError(f"settings must be those of SPINE, no more and no fewer; check {odd}")
    return Config(**settings).check()


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _table_encoder(about: JsonObject, arrays: Arrays, generator: Generator) -> FeatureEncoder | None:
    """Return the encoder of the user's own table, if the model was fitted with one."""
    meta = about.meta.get("table_encoder")
    if meta is None:
        return None
    encoder = FeatureEncoder.from_state(meta, _under("table_encoder.", arrays))
    scaling = generator.inputs.encoder
    if scaling is None or encoder.num_features != scaling.num_features:
        raise ModelFormatError("table_encoder must make as many features as the generator reads")
    return encoder


def _inputs(about: JsonObject, arrays: Arrays, config: Config, weights: NDArray[np.float32]) -> Inputs:
    columns = tuple(about.list_of("structural_columns", str))
    if len(set(columns)) < len(columns) or not set(columns) <= set(COLUMNS):
        raise ModelFormatError(f"structural_columns must be some of {', '.join(COLUMNS)}, each once")
    mean = floats(arrays, "structural_mean", (len(columns),))
    scale = floats(arrays, "structural_scale", (len(columns),))
    if not (scale > 0).all():
        raise ModelFormatError(f"{MODEL}: structural_scale must be above 0")
    encoder, meta = None, about.meta.get("encoder")
    if meta is not None:
        claimed = JsonObject(meta, "encoder")
        claimed.one_of("source", "matrix")
        claimed.whole("width", 0, len(weights))  # checked before the encoder makes room for its columns
        encoder = FeatureEncoder.from_state(meta, _under("encoder.", arrays))
    through, past = about.get("through", bool), about.get("past", bool)
    if encoder is None and not (columns and (through or past)):
        raise ModelFormatError(
            "the generator must read features or structural columns; this one reads nothing"
        )
    return Inputs(config, encoder, columns, mean, scale, through, past)


def _familiarity(about: JsonObject, generator: Generator) -> Familiarity:
    seen = JsonObject(about.meta.get("familiarity"), "familiarity")
    encoder = generator.inputs.encoder
    width = 0 if encoder is None else encoder.num_features
    blank = tuple(seen.list_of("blank_columns", int))
    if any(not 0 <= column < width for column in blank):
        raise ModelFormatError(f"familiarity: blank_columns must lie in 0 .. {width - 1}")
    num_nodes, smallest, largest = (
        seen.whole(key, 0, 2**62) for key in ("num_nodes", "smallest_degree", "largest_degree")
    )
    weighted = None if seen.meta.get("is_weighted") is None else seen.get("is_weighted", bool)
    return Familiarity(num_nodes, smallest, largest, seen.number("empty_share"), blank, weighted)


def _history(about: JsonObject) -> list[Moment]:
    lines = about.list_of("history", list)
    if any([type(value) for value in line] != [int, float, float] for line in lines):
        raise ModelFormatError("history must be a list of [step, loss, held-out loss]")
    return [Moment(*line) for line in lines]


def floats(
    arrays: Mapping[str, NDArray[Any]], key: str, shape: tuple[int | None, ...], place: str = MODEL
) -> NDArray[np.float32]:
    """Return an array of float32 that has the shape, None being any length, and is finite.

    Examples
    --------
    >>> floats({"scale": np.ones(2, np.float32)}, "scale", (3,))
    Traceback (most recent call last):
        ...
    spinegraph.errors.ModelFormatError: model.safetensors: scale must be float32 (3,); got float32 (2,)
    """
    found = arrays.get(key)
    lengths = (None,) if found is None else found.shape
    fits = len(lengths) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, lengths, strict=True)
    )
    if found is None or found.dtype != np.float32 or not fits:
        wanted = str(shape).replace("None", "any")
        what = "none" if found is None else f"{found.dtype} {found.shape}"
        raise ModelFormatError(f"{place}: {key} must be float32 {wanted}; got {what}")
    if not np.isfinite(found).all():
        raise ModelFormatError(f"{place}: {key} must be finite; got NaN or infinity")
    return found
