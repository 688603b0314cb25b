"""A fitted model as a folder of JSON and safetensors: replaced whole, checked as it is read, never pickle."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from scipy.sparse import csr_array, issparse

from spinegraph import __version__
from spinegraph.atomic import JsonObject, digest, make_folder, recover, whole_folder, write_arrays
from spinegraph.config import Config
from spinegraph.embeddings import Embeddings
from spinegraph.errors import GraphFormatError, ModelFormatError, ParameterError, SpineError
from spinegraph.generator import Generator, Inputs
from spinegraph.graph.describe import TrainingStats
from spinegraph.graph.edges import EdgeReport
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.fingerprint import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few, is_range
from spinegraph.learning.checkpoint import TrainingRecord
from spinegraph.structure.columns import COLUMNS

FORMAT, VERSION = "spinegraph.model", 1
FILES = ("config.json", "model.safetensors", "graph.safetensors", "vectors.safetensors")
CONFIG, MODEL, GRAPH, VECTORS = FILES
MAX_CONFIG_BYTES = 2**28
Arrays = dict[str, NDArray[Any]]
Model = TypeVar("Model")
_PLAIN = str | int | float | None
_NOT_SAVED = ("engine", "address")  # which cluster fitted a model is not part of it
_FORMER = ("training_workers",)  # settings of earlier versions; ignored


def save(model: Any, folder: Path, *, data: bool = True) -> None:
    """Write a fitted model; an existing model folder is replaced, anything else that is not empty is kept."""
    require_replaceable(folder)
    if data and (model.graph_ is None or model.embeddings_ is None):
        reason = "loaded without its training data" if model.graph_ is None else "fitted with vectors=False"
        raise ParameterError(f"this model was {reason}; save it with data=False")
    settings, tensors = write_settings(model)
    about = {"format": FORMAT, "version": VERSION, "package": __version__, **settings, "data": None}
    files = {MODEL: tensors}
    if data:
        is_list = isinstance(model.graph_, list)
        graphs = model.graph_ if is_list else [model.graph_]
        embeddings = model.embeddings_ if is_list else [model.embeddings_]
        files[GRAPH] = {
            f"{number}.{key}": array
            for number, graph in enumerate(graphs)
            for key, array in graph_arrays(graph).items()
        }
        files[VECTORS] = {"vectors": np.concatenate([each.vectors for each in embeddings])}
        about["data"] = {"graphs": len(graphs), "is_list": is_list}
    about["digests"] = {name: digest(arrays) for name, arrays in files.items()}
    about["digests"][CONFIG] = config_digest(about)
    text = json.dumps(about, indent=1)
    make_folder(folder.resolve().parent)
    with whole_folder(folder) as partial:
        (partial / CONFIG).write_text(text, encoding="utf-8")
        for name, arrays in files.items():
            write_arrays(partial / name, arrays)


def load(cls: type[Model], folder: Path) -> Model:
    """Read a model that ``save`` wrote; anything wrong with it is a ModelFormatError, and nothing is run."""
    text = _config_text(folder)
    try:
        with _explained(CONFIG):
            return _built(cls, folder, text)
    except ModelFormatError as fault:
        if _config_text(folder) != text:
            return load(cls, folder)  # it was replaced while it was being read
        way_out = "" if "again" in str(fault) else "; copy the whole folder again, or save the model again"
        raise ModelFormatError(f"{folder}{os.sep}{fault}{way_out}") from fault


def _built(cls: type[Model], folder: Path, text: bytes) -> Model:
    about = _config_file(text)
    digests = JsonObject(about.get("digests", dict), "digests")
    _require_as_written(about, digests)
    params, fitted = read_settings(about, _arrays(folder / MODEL, digests))
    model = cls()
    model.set_params(**params)  # type: ignore[attr-defined]
    vars(model).update(fitted, graph_=None, embeddings_=None)
    if about.meta.get("data") is not None:
        _read_data(model, folder, JsonObject(about.meta["data"], "data"), digests)
    return model


def _read_data(model: Any, folder: Path, about: JsonObject, digests: JsonObject) -> None:
    """Give a model its training graphs and their vectors."""
    is_list = about.get("is_list", bool)
    count = about.whole("graphs", 1, 2**31 if is_list else 1)
    arrays = _arrays(folder / GRAPH, digests)
    with _explained(GRAPH):
        found = len({name.partition(".")[0] for name in arrays})
        if found != count:
            raise ModelFormatError(f"holds {found} graphs; config.json says {count}")
        graphs = [graph_of(_under(f"{number}.", arrays)) for number in range(count)]
        whole = Graph.union(graphs, keys=range(count)) if is_list else graphs[0]
        if fingerprint(whole) != model.fingerprint_:
            raise ModelFormatError(
                f"is not the data that the model was fitted on: its fingerprint is {fingerprint(whole)}, "
                f"config.json has {model.fingerprint_!r:.60}"
            )
        if model.generator_.inputs.encoder is not None:
            model.generator_.inputs.require_features(whole)
    arrays = _arrays(folder / VECTORS, digests)
    with _explained(VECTORS):
        vectors = floats(arrays, "vectors", (len(whole), model.generator_.dim), VECTORS)
        rows = np.split(vectors, np.cumsum([len(graph) for graph in graphs])[:-1])
        embeddings = [Embeddings(graph.names, some) for graph, some in zip(graphs, rows, strict=True)]
    model.graph_, model.embeddings_ = (graphs, embeddings) if is_list else (graphs[0], embeddings[0])


def require_replaceable(folder: Path) -> None:
    """Raise unless the path is free, an empty folder or a model: nothing else is replaced."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ParameterError(f"{folder}: is a file; choose another name for the model's folder")
    others = sorted({file.name for file in folder.iterdir()} - set(FILES))
    if others:
        raise ParameterError(
            f"{folder}: holds {', '.join(map(repr, others[:3]))}, which saving a model here would delete; "
            "choose another folder, or empty this one"
        )
    if any(folder.iterdir()):
        try:
            with _explained(CONFIG):
                _config_file(_config_text(folder))
        except ModelFormatError as fault:
            raise ParameterError(
                f"{folder}: is not empty and not a model ({fault}); choose another folder, or empty this one"
            ) from fault


def _config_text(folder: Path) -> bytes:
    path = folder / CONFIG
    recover(folder)
    if not path.is_file():
        what = f"holds no {CONFIG}" if folder.is_dir() else "no such folder"
        raise ModelFormatError(f"{folder}: {what}; pass a folder that SPINE.save wrote")
    try:
        with path.open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as fault:
        raise ModelFormatError(f"{path}: cannot be read: {fault.strerror}") from fault
    if len(text) > MAX_CONFIG_BYTES:
        raise ModelFormatError(f"{path}: larger than {MAX_CONFIG_BYTES >> 20} MiB; save the model again")
    return text


def _config_file(text: bytes) -> JsonObject:
    about = JsonObject(json.loads(text), "top level")
    about.one_of("format", FORMAT)
    version = about.whole("version", 1, 2**31)
    if version > VERSION:
        raise ModelFormatError(
            f"{CONFIG}: format version {version}, written by spinegraph {about.meta.get('package')!r:.20}; "
            f"spinegraph {__version__} reads up to version {VERSION}: upgrade it, or save the model again"
        )
    return about


def config_digest(about: Mapping[str, Any]) -> str:
    """Return a digest of everything in config.json but itself, whatever its spacing and order."""
    others = {name: text for name, text in about["digests"].items() if name != CONFIG}
    text = json.dumps({**about, "digests": others}, sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _require_as_written(about: JsonObject, digests: JsonObject) -> None:
    """Raise if config.json was changed since it was written; the first models had no digest of it."""
    if not digests.meta.keys() <= set(FILES):
        raise ModelFormatError("digests must be of the model's own files")
    if CONFIG in digests.meta and digests.get(CONFIG, str) != config_digest(about.meta):
        raise ModelFormatError("its content is not what was written: it was damaged, or changed by hand")


def _arrays(path: Path, digests: JsonObject) -> dict[str, NDArray[Any]]:
    """Read every array of a safetensors file, whose header must agree with its size to the byte."""
    with _explained(path.name):
        if not path.is_file():
            raise ModelFormatError("is not there, but config.json expects it")
        if not os.access(path, os.R_OK):  # safetensors would call it missing
            raise ModelFormatError("may not be read; ask its owner, who can grant that again")
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if digest(arrays) != digests.get(path.name, str):
            raise ModelFormatError(
                "its content is not what config.json says: it was damaged, or belongs to another model"
            )
    return arrays


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn any error of an untrusted file into one that names it."""
    try:
        yield
    except SpineError as fault:
        is_named = isinstance(fault, ModelFormatError) and str(fault).startswith(FILES)
        raise ModelFormatError(str(fault) if is_named else f"{name}: {fault}") from fault
    except (SafetensorError, OSError, ValueError, TypeError, LookupError) as fault:
        raise ModelFormatError(f"{name}: damaged or cut off ({str(fault)[:300]})") from fault
    except MemoryError as fault:
        raise ModelFormatError(f"{name}: does not fit into memory; free some and load it again") from fault
    except (OverflowError, RecursionError) as fault:
        raise ModelFormatError(f"{name}: claims more than it holds ({str(fault)[:300]})") from fault


def write_settings(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted model without its training data, as JSON values and arrays."""
    inputs: Inputs = model.generator_.inputs
    meta, arrays = (None, {}) if inputs.encoder is None else inputs.encoder.state()
    table, table_arrays = (None, {}) if model.table_encoder_ is None else model.table_encoder_.state()
    used = _without(_NOT_SAVED, model.config_.to_json())
    params = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in _without(_NOT_SAVED, model.get_params()).items()
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
        "through": inputs.columns_smoothed,
        "past": inputs.columns_direct,
        "familiarity": model.familiarity_.to_json(),
        "history": [list(astuple(record)) for record in model.history_],
    }
    tensors = {
        "weights": model.generator_.weights,
        "structural_mean": inputs.mean,
        "structural_scale": inputs.scale,
        **{f"encoder.{key}": array for key, array in arrays.items()},
        **{f"table_encoder.{key}": array for key, array in table_arrays.items()},
    }
    return about, tensors


def read_settings(about: JsonObject, arrays: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the constructor parameters and the fitted attributes that ``write_settings`` wrote, checked."""
    config = _config(about)
    weights = floats(arrays, "weights", (None, config.dim))
    inputs = _inputs(about, arrays, config, weights)
    changed = _without(_FORMER, about.get("changed_since_fit", dict))
    if not all(isinstance(value, _PLAIN) for value in changed.values()):
        raise ModelFormatError("changed_since_fit must hold plain values")
    history = about.list_of("history", list)
    if any([type(value) for value in line] != [int, float, float] for line in history):
        raise ModelFormatError("history must be a list of [step, loss, held-out loss]")
    fitted = {
        "config_": config,
        "fingerprint_": about.get("fingerprint", str),
        "generator_": Generator(inputs, weights),
        "table_encoder_": _table_encoder(about, arrays, inputs),
        "familiarity_": _training_stats(about, inputs),
        "history_": [TrainingRecord(*line) for line in history],
    }
    return {**config.to_json(), **changed}, fitted


def _without(names: tuple[str, ...], settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


def _config(about: JsonObject) -> Config:
    settings = _without(_FORMER, about.get("settings", dict))
    known = set(_without(_NOT_SAVED, Config().to_json()))
    if set(settings) != known:
        odd = ", ".join(sorted(map(str, known.symmetric_difference(settings)))[:5])
        raise ModelFormatError(f"settings must be those of SPINE, no more and no fewer; check {odd}")
    return Config(**settings).check()


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _table_encoder(about: JsonObject, arrays: Arrays, inputs: Inputs) -> FeatureEncoder | None:
    """Return the encoder of the user's own table, if the model was fitted with one."""
    meta = about.meta.get("table_encoder")
    if meta is None:
        return None
    encoder = FeatureEncoder.from_state(meta, _under("table_encoder.", arrays))
    if inputs.encoder is None or encoder.num_features != inputs.encoder.num_features:
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
        claimed.whole("width", 0, len(weights))  # before the encoder allocates its columns
        encoder = FeatureEncoder.from_state(meta, _under("encoder.", arrays))
    smoothed, direct = about.get("through", bool), about.get("past", bool)
    if encoder is None and not (columns and (smoothed or direct)):
        raise ModelFormatError(
            "the generator must read features or structural columns; this one reads nothing"
        )
    return Inputs(config, encoder, columns, mean, scale, smoothed, direct)


def _training_stats(about: JsonObject, inputs: Inputs) -> TrainingStats:
    seen = JsonObject(about.meta.get("familiarity"), "familiarity")
    width = 0 if inputs.encoder is None else inputs.encoder.num_features
    blank = tuple(seen.list_of("blank_columns", int))
    if any(not 0 <= column < width for column in blank):
        raise ModelFormatError(f"familiarity: blank_columns must lie in 0 .. {width - 1}")
    num_nodes, smallest, largest = (
        seen.whole(key, 0, 2**62) for key in ("num_nodes", "smallest_degree", "largest_degree")
    )
    weighted = None if seen.meta.get("is_weighted") is None else seen.get("is_weighted", bool)
    return TrainingStats(num_nodes, smallest, largest, seen.number("empty_share"), blank, weighted)


def floats(
    arrays: Mapping[str, NDArray[Any]], key: str, shape: tuple[int | None, ...], place: str = MODEL
) -> NDArray[np.float32]:
    """Return an array of float32 that has the shape, None being any length, and is finite."""
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


def graph_arrays(graph: Graph) -> dict[str, NDArray[Any]]:
    """Return a graph as arrays of numbers: text as UTF-8 bytes and ends; names 0 .. n-1 are left out."""
    arrays = {"indptr": graph.indptr, "indices": graph.indices}
    if graph.weights is not None:
        arrays["weights"] = graph.weights
    if graph.names.dtype != np.int64:
        arrays |= _named(graph.names.tolist())
    elif not is_range(graph.names):
        arrays["names"] = graph.names
    features: Any = graph.features
    if issparse(features):
        arrays |= {f"features.{part}": getattr(features, part) for part in ("data", "indices", "indptr")}
        arrays["features.shape"] = np.array(features.shape, dtype=np.int64)
    elif features is not None:
        arrays["features"] = features
    if graph.feature_names is not None:
        arrays |= _packed("feature_names", list(graph.feature_names))
    if graph.report is not None:
        arrays["report"] = np.array(astuple(graph.report), dtype=np.int64)
    return arrays


def graph_of(arrays: Arrays) -> Graph:
    """Build the graph of ``graph_arrays``; arrays that are not those of a graph raise a SpineError."""
    columns = _unpacked(arrays, "feature_names") if "feature_names.ends" in arrays else None
    return Graph(
        _required(arrays, "indptr", "i"),
        _required(arrays, "indices", "i"),
        arrays.get("weights"),
        _names(arrays),  # type: ignore[arg-type]
        _features(arrays),
        None if columns is None else tuple(columns),
        _report(arrays),
    )


def _report(arrays: Arrays) -> EdgeReport | None:
    if "report" not in arrays:
        return None
    counts, wanted = arrays["report"], len(fields(EdgeReport))
    if counts.dtype != np.int64 or counts.shape != (wanted,) or counts.min() < 0:
        raise ModelFormatError(f"report must be {wanted} counts; got {counts.dtype} {counts.shape}")
    return EdgeReport(*counts.tolist())


def _named(names: list[Any]) -> dict[str, NDArray[Any]]:
    is_whole = [isinstance(name, int | np.integer) and not isinstance(name, bool) for name in names]
    other = [
        name for name, whole in zip(names, is_whole, strict=True) if not (whole or isinstance(name, str))
    ]
    if other:
        raise GraphFormatError(
            f"in files node names are text or whole numbers; got {first_few(other, 3)}. Give the graph such "
            "names before fitting, graph.relabel(map(str, graph.names)), or save with data=False"
        )
    arrays = _packed("names", list(map(str, names)))
    if any(is_whole):
        arrays["names.whole"] = np.array(is_whole, dtype=np.uint8)
    return arrays


def _names(arrays: Arrays) -> Any:
    if "names.ends" not in arrays:
        return arrays.get("names")
    names: list[Any] = _unpacked(arrays, "names")
    whole = arrays.get("names.whole", np.zeros(len(names), np.uint8))
    if whole.shape != (len(names),):
        raise ModelFormatError(f"names.whole must hold one mark per name; got shape {whole.shape}")
    return [int(name) if marked else name for name, marked in zip(names, whole.tolist(), strict=True)]


def _features(arrays: Arrays) -> Any:
    if "features.indptr" not in arrays:
        return arrays.get("features")
    data, indices, indptr, shape = (
        _required(arrays, f"features.{part}", kinds)
        for part, kinds in (("data", "f"), ("indices", "i"), ("indptr", "i"), ("shape", "i"))
    )
    if shape.shape != (2,) or (shape < 0).any():
        raise ModelFormatError(f"features.shape must be two numbers, 0 or more; got {shape.tolist()!r:.60}")
    try:
        features = csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        features.check_format(full_check=True)  # before compiled code walks along them
    except ValueError as fault:
        raise ModelFormatError(f"features: {fault}") from fault
    return features


def _packed(key: str, texts: list[str]) -> dict[str, NDArray[Any]]:
    # A lone surrogate is legal in a Python str, so it must survive.
    pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return {f"{key}.text": np.frombuffer(b"".join(pieces), np.uint8), f"{key}.ends": ends}


def _unpacked(arrays: Arrays, key: str) -> list[str]:
    text, ends = _required(arrays, f"{key}.text", "u"), _required(arrays, f"{key}.ends", "i")
    bounds = np.concatenate([[0], ends])
    if text.dtype != np.uint8 or (np.diff(bounds) < 0).any() or bounds[-1] != len(text):
        raise ModelFormatError(f"{key}.ends must ascend to the length of {key}.text, {len(text)} bytes")
    raw = text.tobytes()
    return [
        raw[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def _required(arrays: Arrays, key: str, kinds: str) -> NDArray[Any]:
    found = arrays.get(key)
    if found is None or found.ndim != 1 or found.dtype.kind not in kinds:
        what = "none" if found is None else f"{found.dtype} {found.shape}"
        raise ModelFormatError(
            f"{key} must be a row of {'floats' if kinds == 'f' else 'integers'}; got {what}"
        )
    return found
