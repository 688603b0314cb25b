"""A fitted model as a folder of JSON and safetensors: replaced whole, read without trust, never pickle.

::

    config.json           format and version, settings, encoder, column names, provenance, history
    model.safetensors     W_M, the scaling of structural columns, the encoder's arrays
    graph.safetensors     the training graphs        } unless saved with data=False
    vectors.safetensors   the training nodes' vectors }
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from spinegraph import __version__
from spinegraph.atomic import make_folder, whole_folder
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ModelFormatError, ParameterError, SpineError
from spinegraph.fingerprint import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.json_object import JsonObject
from spinegraph.model_config import MODEL, floats, read_settings, write_settings
from spinegraph.model_graph import graph_arrays, graph_of
from spinegraph.tensor_file import digest, write_arrays

FORMAT, VERSION = "spinegraph.model", 1
CONFIG, GRAPH, VECTORS = "config.json", "graph.safetensors", "vectors.safetensors"
_MOST_CONFIG_BYTES = 2**28
Model = TypeVar("Model")


def save(model: Any, folder: Path, *, data: bool = True) -> None:
    """Write a fitted model; an existing model folder is replaced, anything else that is not empty is kept."""
    require_replaceable(folder)
    if data and (model.graph_ is None or model.embeddings_ is None):
        reason = "loaded without its training data" if model.graph_ is None else "fitted with vectors=False"
        raise ParameterError(f"this model was {reason}; save it with data=False")
    about, tensors = write_settings(model)
    about = {"format": FORMAT, "version": VERSION, "package": __version__, **about}
    files = {MODEL: tensors}
    if data:
        graphs, embeddings = _listed(model.graph_), _listed(model.embeddings_)
        files[GRAPH] = {
            f"{place}.{key}": array
            for place, graph in enumerate(graphs)
            for key, array in graph_arrays(graph).items()
        }
        files[VECTORS] = {"vectors": np.concatenate([each.vectors for each in embeddings])}
    about["data"] = {"graphs": len(graphs), "is_list": isinstance(model.graph_, list)} if data else None
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
        if _config_text(folder) == text:
            way_out = (
                "" if "again" in str(fault) else "; copy the whole folder again, or save the model again"
            )
            raise ModelFormatError(f"{folder}{os.sep}{fault}{way_out}") from fault
        return load(cls, folder)  # it was replaced while it was being read


def _built(cls: type[Model], folder: Path, text: bytes) -> Model:
    about = _config(text)
    digests = JsonObject(about.get("digests", dict), "digests")
    _require_as_written(about, digests)
    settings = read_settings(about, _arrays(folder / MODEL, digests))
    model = cls(**settings.params)
    vars(model).update(settings.fitted, graph_=None, embeddings_=None)
    if about.meta.get("data") is not None:
        _read_data(model, folder, JsonObject(about.meta["data"], "data"), digests)
    return model


def _read_data(model: Any, folder: Path, about: JsonObject, digests: JsonObject) -> None:
    """Give a model its training graphs and their vectors."""
    is_list = about.get("is_list", bool)
    count = about.whole("graphs", 1, 2**31 if is_list else 1)
    arrays = _arrays(folder / GRAPH, digests)
    with _explained(GRAPH):
        graphs = _graphs(arrays, count)
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


def _graphs(arrays: Mapping[str, NDArray[Any]], count: int) -> list[Graph]:
    parts: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        place, _, key = name.partition(".")
        parts.setdefault(place, {})[key] = array
    if len(parts) != count:
        raise ModelFormatError(f"holds {len(parts)} graphs; config.json says {count}")
    return [graph_of(parts[str(place)]) for place in range(count)]


def require_replaceable(folder: Path) -> None:
    """Refuse to replace what is no model: a file, or a folder with anything else in it."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ParameterError(f"{folder}: is a file; choose another name for the model's folder")
    others = sorted({file.name for file in folder.iterdir()} - {CONFIG, MODEL, GRAPH, VECTORS})
    if others:
        raise ParameterError(
            f"{folder}: holds {', '.join(map(repr, others[:3]))}, which saving a model here would delete; "
            "choose another folder, or empty this one"
        )
    if any(folder.iterdir()):
        try:
            with _explained(CONFIG):
                _config(_config_text(folder))
        except ModelFormatError as fault:
            raise ParameterError(
                f"{folder}: is not empty and not a model ({fault}); choose another folder, or empty this one"
            ) from fault


def _config_text(folder: Path) -> bytes:
    path = folder / CONFIG
    if not path.is_file():
        what = f"holds no {CONFIG}" if folder.is_dir() else "no such folder"
        raise ModelFormatError(f"{folder}: {what}; pass a folder that SPINE.save wrote")
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_CONFIG_BYTES + 1)
    except OSError as fault:
        raise ModelFormatError(f"{path}: cannot be read: {fault.strerror}") from fault
    if len(text) > _MOST_CONFIG_BYTES:
        raise ModelFormatError(f"{path}: larger than {_MOST_CONFIG_BYTES >> 20} MiB; save the model again")
    return text


def _config(text: bytes) -> JsonObject:
    about = JsonObject(json.loads(text), "top level")
    about.one_of("format", FORMAT)
    version = about.whole("version", 1, 2**31)
    if version > VERSION:
        raise ModelFormatError(
            f"{CONFIG}: format version {version}, written by spinegraph {about.meta.get('package')!r:.20}; "
            f"spinegraph {__version__} reads up to version {VERSION}: upgrade it, or save the model again"
        )
    return about


def _arrays(path: Path, digests: JsonObject) -> dict[str, NDArray[Any]]:
    """Read every array of a safetensors file, whose header must agree with its size to the byte."""
    with _explained(path.name):
        if not path.is_file():
            raise ModelFormatError("is not there, but config.json expects it")
        if not os.access(path, os.R_OK):  # safetensors would say that it is not there
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
    """Turn whatever an untrusted file raises into one error that names it."""
    try:
        yield
    except SpineError as fault:
        is_named = isinstance(fault, ModelFormatError) and str(fault).startswith(
            (CONFIG, MODEL, GRAPH, VECTORS)
        )
        raise ModelFormatError(str(fault) if is_named else f"{name}: {fault}") from fault
    except (SafetensorError, OSError, ValueError, TypeError, LookupError) as fault:
        raise ModelFormatError(f"{name}: damaged or cut off ({str(fault)[:300]})") from fault
    except MemoryError as fault:
        raise ModelFormatError(f"{name}: does not fit into memory; free some and load it again") from fault
    except (OverflowError, RecursionError) as fault:
        raise ModelFormatError(f"{name}: claims more than it holds ({str(fault)[:300]})") from fault


def config_digest(about: Mapping[str, Any]) -> str:
    """Return a digest of everything in config.json but itself; how it is spaced and ordered does not count.

    Examples
    --------
    >>> config_digest({"version": 1, "digests": {}}) == config_digest({"digests": {CONFIG: ""}, "version": 1})
    True
    """
    others = {name: text for name, text in about["digests"].items() if name != CONFIG}
    text = json.dumps({**about, "digests": others}, sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _require_as_written(about: JsonObject, digests: JsonObject) -> None:
    """Refuse a config.json that was changed since it was written; the first models had no digest of it."""
    if not digests.meta.keys() <= {CONFIG, MODEL, GRAPH, VECTORS}:
        raise ModelFormatError("digests must be of the model's own files")
    if CONFIG in digests.meta and digests.get(CONFIG, str) != config_digest(about.meta):
        raise ModelFormatError("its content is not what was written: it was damaged, or changed by hand")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
