"""A fitted model as a folder of JSON and safetensors: replaced atomically, checked on load, never pickle."""

import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, astuple, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from scipy.sparse import csr_array, issparse

from spinegraph import __version__
from spinegraph.atomic import JsonObject, digest, make_folder, recover, whole_folder, write_arrays
from spinegraph.config import Config, PaperConfig
from spinegraph.embeddings import embeddings_per_graph
from spinegraph.errors import GraphFormatError, ModelFormatError, ParameterError, SpineError, SpineWarning
from spinegraph.graph.describe import TrainingStats, fingerprint
from spinegraph.graph.edges import EdgeReport
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import as_array, first_few, is_range
from spinegraph.graph.store import ENCODING, StoredNames, header_digest
from spinegraph.parts.content import Content, Learned, RandomFeatures
from spinegraph.parts.generator import Generator
from spinegraph.parts.paper import Inputs, PaperGenerator, TrainingRecord
from spinegraph.parts.place import Place
from spinegraph.parts.role import Role, names_of
from spinegraph.structure.columns import COLUMNS

FORMAT, VERSION = "spinegraph.model", 2
FILES = ("config.json", "model.safetensors", "graph.safetensors", "vectors.safetensors", "place.safetensors")
CONFIG, MODEL, GRAPH, VECTORS, PLACE = FILES
MAX_CONFIG_BYTES = 2**28
Arrays = dict[str, NDArray[Any]]
Model = TypeVar("Model")
_DAMAGE = SafetensorError, OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError
_NOT_SAVED = ("device", "engine", "address")  # a model does not depend on the machines that fitted it


def save(model: Any, folder: Path, *, data: bool = True, place: bool = True) -> None:
    """Write a fitted model; an existing model folder is replaced, any other folder must be empty.

    ``place=False`` leaves out the positions and places of the training nodes.
    """
    require_replaceable(folder)
    if data and (model.graph_ is None or model.embeddings_ is None):
        reason = "loaded without its training data" if model.graph_ is None else "fitted with vectors=False"
        raise ParameterError(f"this model was {reason}; save it with data=False")
    settings, tensors = write_settings(model)
    about = {"format": FORMAT, "version": VERSION, "package": __version__, **settings, "data": None}
    files = {MODEL: {name: array for name, array in tensors.items() if not name.startswith("place.")}}
    known = getattr(model.generator_, "place", None)
    if place and known is not None and len(known.positions):
        files[PLACE] = {"place.positions": known.positions, "place.links": known.links}
        files[PLACE] |= {f"place.{key}": array for key, array in _named(known.names).items()}
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
        if not place and "place" in model.generator_.parts:
            files[VECTORS]["vectors"][:, model.generator_.parts["place"]] = 0
        about["data"] = {"graphs": len(graphs), "is_list": is_list}
    about["digests"] = {name: digest(arrays) for name, arrays in files.items()}
    about["digests"][CONFIG] = config_digest(about)
    text = json.dumps(about, indent=1)
    make_folder(folder.resolve().parent)
    with whole_folder(folder) as partial:
        for file in _hidden(folder):
            shutil.copy2(file, partial / file.name)
        (partial / CONFIG).write_text(text, encoding="utf-8")
        for name, arrays in files.items():
            write_arrays(partial / name, arrays)


def load(cls: type[Model], folder: Path) -> Model:
    """Read a model that ``save`` wrote; raise a ModelFormatError if it is invalid; no code is run."""
    text = _config_text(folder)
    try:
        with _file_errors(CONFIG):
            return _built(cls, folder, text)
    except ModelFormatError as fault:
        if _config_text(folder) != text:
            return load(cls, folder)  # it was replaced during reading
        way_out = "" if "again" in str(fault) else "; copy the whole folder again, or save the model again"
        raise ModelFormatError(f"{folder}{os.sep}{fault}{way_out}") from fault


def _built(cls: type[Model], folder: Path, text: bytes) -> Model:
    about = _config_file(text)
    digests = JsonObject(about.get("digests", dict), "digests")
    if not digests.meta.keys() <= set(FILES):
        raise ModelFormatError("digests must name only files of a model")
    # The first models had no digest of config.json.
    if CONFIG in digests.meta and digests.get(CONFIG, str) != config_digest(about.meta):
        raise ModelFormatError("its checksum does not match: it was damaged, or changed by hand")
    arrays = _arrays(folder / MODEL, digests)
    if PLACE in digests.meta:
        arrays |= _arrays(folder / PLACE, digests)
    if about.meta["version"] > 1 and about.get("method", str) not in ("parts", "paper"):
        raise ModelFormatError(f"method must be 'parts' or 'paper'; got {about.meta['method']!r:.60}")
    is_paper = about.meta["version"] == 1 or about.meta["method"] == "paper"
    config = _config(about, PaperConfig if is_paper else Config)
    generator: Any = (_paper_generator if is_paper else _generator)(about, arrays, config)
    encoder, scaling = about.meta.get("table_encoder"), generator.encoder
    if encoder is not None:
        encoder = FeatureEncoder.from_state(encoder, _under("table_encoder.", arrays))
        if scaling is not None and encoder.num_features != scaling.num_features:
            raise ModelFormatError("table_encoder must return as many features as the generator needs")
    model: Any = cls.paper() if is_paper else cls()  # type: ignore[attr-defined]
    model.set_params(**config.to_json())
    model.config_, model.fingerprint_ = config, about.get("fingerprint", str)
    model.generator_, model.table_encoder_ = generator, encoder
    model.familiarity_ = _training_stats(about, scaling)
    model.graph_ = model.embeddings_ = None
    if is_paper:
        history = about.list_of("history", list)
        if any([type(value) for value in line] != [int, float, float] for line in history):
            raise ModelFormatError("history must be a list of [step, loss, held-out loss]")
        model.history_ = [TrainingRecord(*line) for line in history]
    if about.meta.get("data") is not None:
        _read_data(model, folder, JsonObject(about.meta["data"], "data"), digests)
    return model  # type: ignore[no-any-return]


def _read_data(model: Any, folder: Path, about: JsonObject, digests: JsonObject) -> None:
    is_list = about.get("is_list", bool)
    count = about.whole("graphs", 1, 2**31 if is_list else 1)
    arrays = _arrays(folder / GRAPH, digests)
    with _file_errors(GRAPH):
        found = len({name.partition(".")[0] for name in arrays})
        if found != count:
            raise ModelFormatError(f"contains {found} graphs; config.json says {count}")
        graphs = [graph_of(_under(f"{number}.", arrays)) for number in range(count)]
        graphs = [graph._encoded_by(model.table_encoder_) for graph in graphs]
        whole = Graph.union(graphs, keys=range(count)) if is_list else graphs[0]
        if fingerprint(whole) != model.fingerprint_:
            raise ModelFormatError(
                f"is not the data that the model was fitted on: its fingerprint is {fingerprint(whole)}, "
                f"config.json has {model.fingerprint_!r:.60}"
            )
        model.generator_.require_features(whole)
    arrays = _arrays(folder / VECTORS, digests)
    with _file_errors(VECTORS):
        vectors = floats(arrays, "vectors", (len(whole), model.generator_.dim), VECTORS)
        model.graph_ = graphs if is_list else whole
        model.embeddings_ = embeddings_per_graph(model.graph_, vectors, model.generator_.parts)


def require_replaceable(folder: Path) -> None:
    """Raise unless the path is free, an empty folder or a model: nothing else may be replaced."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ParameterError(f"{folder}: is a file; choose another name for the model's folder")
    others = sorted({file.name for file in set(folder.iterdir()) - set(_hidden(folder))} - set(FILES))
    if others:
        raise ParameterError(
            f"{folder}: contains {', '.join(map(repr, others[:3]))}, which saving a model here would delete; "
            "choose another folder, or empty this one"
        )
    if any(file.name in FILES for file in folder.iterdir()):
        try:
            with _file_errors(CONFIG):
                _config_file(_config_text(folder))
        except ModelFormatError as fault:
            why = f"{folder}: is not empty and not a model ({fault})"
            raise ParameterError(f"{why}; choose another folder, or empty this one") from fault


def _hidden(folder: Path) -> list[Path]:
    """Return hidden files that the system put into a folder, such as .DS_Store."""
    return [file for file in folder.glob(".*") if file.is_file()]


def _config_text(folder: Path) -> bytes:
    path = folder / CONFIG
    recover(folder)
    if not path.is_file():
        what = "is not a folder" if folder.is_file() else "no such folder"
        what = f"contains no {CONFIG}" if folder.is_dir() else what
        raise ModelFormatError(f"{folder}: {what}; pass a folder that spine fit or SPINE.save wrote")
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
    """Return a digest of config.json without this digest; spacing and order do not affect it."""
    others = {name: text for name, text in about["digests"].items() if name != CONFIG}
    return header_digest({**about, "digests": others})


def _arrays(path: Path, digests: JsonObject) -> dict[str, NDArray[Any]]:
    """Read every array of a safetensors file; its size must match the header exactly."""
    with _file_errors(path.name):
        if not path.is_file():
            raise ModelFormatError("is missing, but config.json lists it")
        if not os.access(path, os.R_OK):  # safetensors would call it missing
            raise ModelFormatError("permission denied; ask its owner for read access, and load it again")
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if digest(arrays) != digests.get(path.name, str):
            raise ModelFormatError("its checksum is not that in config.json: damaged, or of another model")
    return arrays


@contextmanager
def _file_errors(name: str) -> Iterator[None]:
    """Turn any error caused by an untrusted file into one that names the file."""
    try:
        yield
    except SpineError as fault:
        is_named = isinstance(fault, ModelFormatError) and str(fault).startswith(FILES)
        raise ModelFormatError(str(fault) if is_named else f"{name}: {fault}") from fault
    except _DAMAGE as fault:
        raise ModelFormatError(f"{name}: damaged or truncated ({str(fault)[:300]})") from fault
    except MemoryError as fault:
        raise ModelFormatError(f"{name}: does not fit into memory; free some and load it again") from fault


def write_settings(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON values and arrays of a fitted model, without its training data."""
    table, table_arrays = (None, {}) if model.table_encoder_ is None else model.table_encoder_.state()
    used = {name: value for name, value in model.config_.to_json().items() if name not in _NOT_SAVED}
    state, arrays = model.generator_.state()
    is_paper = isinstance(model.generator_, PaperGenerator)
    about = {"method": "paper" if is_paper else "parts", "fingerprint": model.fingerprint_, **state}
    about |= {"settings": used, "table_encoder": table, "familiarity": asdict(model.familiarity_)}
    if is_paper:
        about["history"] = [list(astuple(record)) for record in model.history_]
    return about, arrays | {f"table_encoder.{key}": array for key, array in table_arrays.items()}


def _generator(about: JsonObject, arrays: Arrays, config: Config) -> Generator:
    """Return the checked generator of a model with parts."""
    directed = about.get("directed", bool) if "directed" in about.meta else False
    columns = len(names_of(directed))
    content, encoder = None, _encoder(about, arrays)
    if encoder is not None:
        directions = floats(arrays, "content.directions", (encoder.num_features, None))
        mean = np.zeros(encoder.num_features, np.float32)  # older models have none
        if "content.mean" in arrays:
            mean = floats(arrays, "content.mean", mean.shape)
        mixing = floats(arrays, "content.mixing", (5 if directed else 3, directions.shape[1], None))
        offset = floats(arrays, "content.offset", (mixing.shape[2],))
        more = _random_features(arrays, "content", len(offset))
        content = Content(encoder, directions, mean, mixing, offset, about.number("content_scale"), more)
    place = _place(about, arrays)
    role = None
    if "role.mean" in arrays:
        mean, scale = (floats(arrays, f"role.{key}", (columns,)) for key in ("mean", "scale"))
        if not (scale > 0).all():
            raise ModelFormatError(f"{MODEL}: role.scale must be above 0")
        rotation = floats(arrays, "role.rotation", (columns, None))
        random_features = _random_features(arrays, "role", rotation.shape[1])
        role = Role(mean, scale, rotation, about.number("role_constant"), random_features)
    given = JsonObject(about.get("weights", dict), "weights")
    learned = about.meta.get("learned")
    if learned is not None and [type(value) for value in about.list_of("learned", float)] != [float, float]:
        raise ModelFormatError("learned must be two numbers")
    learned = None if learned is None else Learned(*learned)
    found = Generator(config, content, place, role, {}, learned, directed)
    if found.dim != config.dim or not found.parts:
        raise ModelFormatError(f"the widths of the parts must sum to {config.dim}; they sum to {found.dim}")
    return replace(found, weights={name: given.number(name) for name in found.parts})


def _place(about: JsonObject, arrays: Arrays) -> Place | None:
    if about.meta.get("place_dim") is None:
        return None
    dim = about.whole("place_dim", 1, 2**16)
    if "place.positions" not in arrays:
        return Place(np.zeros(0, np.int64), np.zeros((0, 0), np.float32), np.zeros((0, 2), np.int64), dim)
    positions, links = floats(arrays, "place.positions", (None, None), PLACE), arrays.get("place.links")
    n, given = len(positions), _under("place.", arrays)
    names = _names({key: array for key, array in given.items() if key.startswith("names")})
    names = np.arange(n) if names is None else as_array(names)
    if len(names) != n or positions.shape[1] > dim:
        raise ModelFormatError(f"{PLACE}: must have a name for each of {n} positions, at most {dim} wide")
    if links is None or links.dtype != np.int64 or links.ndim != 2 or links.shape[1] != 2:
        raise ModelFormatError(f"{PLACE}: place.links must be pairs of positions")
    if links.size and not 0 <= links.min() <= links.max() < n:
        raise ModelFormatError(f"{PLACE}: place.links must lie in 0 .. {n - 1}")
    return Place(names, positions, links, dim)


def _random_features(arrays: Arrays, part: str, width: int) -> RandomFeatures | None:
    if f"{part}.ramps.offset" not in arrays:
        return None
    offset = floats(arrays, f"{part}.ramps.offset", (None,))
    return RandomFeatures(floats(arrays, f"{part}.ramps.matrix", (width, len(offset))), offset)


def _config(about: JsonObject, kind: type[Any]) -> Any:
    """Return the settings: unknown ones of other versions are ignored, missing ones have their defaults."""
    known = kind().to_json()
    found = {key: value for key, value in about.get("settings", dict).items() if key not in _NOT_SAVED}
    gone = sorted(found.keys() - known.keys())
    if gone and about.meta["version"] > 1:
        warnings.warn(
            f"{CONFIG}: spinegraph {__version__} has no settings {', '.join(map(repr, gone[:10]))}, which "
            f"spinegraph {about.meta.get('package')!r:.20} had; they are ignored",
            SpineWarning,
            stacklevel=2,
        )
    return kind(**{name: value for name, value in found.items() if name in known}).check()


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _encoder(about: JsonObject, arrays: Arrays) -> FeatureEncoder | None:
    """Return the encoder that scales the features, or None if the model uses none."""
    meta = about.meta.get("encoder")
    if meta is None:
        return None
    claimed, first = JsonObject(meta, "encoder"), arrays.get("content.directions", arrays.get("weights"))
    claimed.one_of("source", "matrix")
    claimed.whole("width", 0, 0 if first is None else len(first))  # before the encoder allocates columns
    return FeatureEncoder.from_state(meta, _under("encoder.", arrays))


def _paper_generator(about: JsonObject, arrays: Arrays, config: PaperConfig) -> PaperGenerator:
    """Return the checked generator of a model of the paper's method, or of any model that 0.1.0 wrote."""
    weights = floats(arrays, "weights", (None, config.dim))
    columns = tuple(about.list_of("structural_columns", str))
    if len(set(columns)) < len(columns) or not set(columns) <= set(COLUMNS):
        raise ModelFormatError(f"structural_columns must be among {', '.join(COLUMNS)}, each once")
    mean = floats(arrays, "structural_mean", (len(columns),))
    scale = floats(arrays, "structural_scale", (len(columns),))
    if not (scale > 0).all():
        raise ModelFormatError(f"{MODEL}: structural_scale must be above 0")
    encoder = _encoder(about, arrays)
    smoothed, direct = about.get("through", bool), about.get("past", bool)
    if encoder is None and not (columns and (smoothed or direct)):
        raise ModelFormatError("the generator must use features or columns; this one uses neither")
    power = 0.0
    if encoder is not None:  # 0.1.0 saved norm_power with the settings
        power = JsonObject(about.get("settings", dict) | about.meta, "settings").number("norm_power")
    return PaperGenerator(Inputs(config, encoder, columns, mean, scale, smoothed, direct, power), weights)


def _training_stats(about: JsonObject, encoder: FeatureEncoder | None) -> TrainingStats:
    seen = JsonObject(about.meta.get("familiarity"), "familiarity")
    width = 0 if encoder is None else encoder.num_features
    blank = tuple(seen.list_of("blank_columns", int))
    if any(not 0 <= column < width for column in blank):
        raise ModelFormatError(f"familiarity: blank_columns must lie in 0 .. {width - 1}")
    keys = ("num_nodes", "smallest_degree", "largest_degree")
    nodes, smallest, largest = (seen.whole(key, 0, 2**62) for key in keys)
    weighted = None if seen.meta.get("is_weighted") is None else seen.get("is_weighted", bool)
    return TrainingStats(nodes, smallest, largest, seen.number("empty_share"), blank, weighted)


def floats(
    arrays: Mapping[str, NDArray[Any]], key: str, shape: tuple[int | None, ...], place: str = MODEL
) -> NDArray[np.float32]:
    """Return a finite float32 array of this shape, in which None is any length."""
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
    """Return a graph as numeric arrays: text as UTF-8 bytes and ends; names 0 .. n-1 are left out."""
    arrays = {"indptr": graph.indptr, "indices": graph.indices, **graph._rows.values, **_named(graph.names)}
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
    """Return the graph of ``graph_arrays``; raise a SpineError if the arrays are not those of a graph."""
    columns = tuple(_unpacked(arrays, "feature_names")) if "feature_names.ends" in arrays else None
    counts, wanted = arrays.get("report"), len(fields(EdgeReport))
    if counts is not None and (counts.dtype != np.int64 or counts.shape != (wanted,) or counts.min() < 0):
        raise ModelFormatError(f"report must be {wanted} counts; got {counts.dtype} {counts.shape}")
    report = None if counts is None else EdgeReport(*counts.tolist())
    indptr, indices = (_required(arrays, key, "i") for key in ("indptr", "indices"))
    weights, *flows = map(arrays.get, ("weights", "outward", "inward"))
    return Graph(indptr, indices, weights, _names(arrays), _features(arrays), columns, report, *flows)


def _named(listed: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if listed.dtype == np.int64:
        return {} if is_range(listed) else {"names": listed}
    names = listed.tolist()
    is_whole = [isinstance(name, int | np.integer) and not isinstance(name, bool) for name in names]
    other = [name for name in names if not isinstance(name, str | int | np.integer) or isinstance(name, bool)]
    if other:
        raise GraphFormatError(
            f"saved node names must be text or whole numbers; got {first_few(other, 3)}. Give the graph such "
            "names before fitting, graph.relabel(map(str, graph.names)), or save with data=False, place=False"
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
        raise ModelFormatError(f"names.whole must have one mark per name; got shape {whole.shape}")
    return [int(name) if marked else name for name, marked in zip(names, whole.tolist(), strict=True)]


def _features(arrays: Arrays) -> Any:
    if "features.indptr" not in arrays:
        return arrays.get("features")
    data, parts = _required(arrays, "features.data", "f"), ("indices", "indptr", "shape")
    indices, indptr, shape = (_required(arrays, f"features.{part}", "i") for part in parts)
    return csr_array((data, indices, indptr), shape=tuple(shape.tolist()))  # as_features checks the parts


def _packed(key: str, texts: list[str]) -> dict[str, NDArray[Any]]:
    pieces = [text.encode(*ENCODING) for text in texts]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return {f"{key}.text": np.frombuffer(b"".join(pieces), np.uint8), f"{key}.ends": ends}


def _unpacked(arrays: Arrays, key: str) -> list[str]:
    text, ends = _required(arrays, f"{key}.text", "u"), _required(arrays, f"{key}.ends", "i")
    bounds = np.concatenate([[0], ends])
    if text.dtype != np.uint8 or (np.diff(bounds) < 0).any() or bounds[-1] != len(text):
        raise ModelFormatError(f"{key}.ends must ascend to the length of {key}.text, {len(text)} bytes")
    return StoredNames(text, ends).tolist()


def _required(arrays: Arrays, key: str, kinds: str) -> NDArray[Any]:
    found = arrays.get(key)
    if found is None or found.ndim != 1 or found.dtype.kind not in kinds:
        what = "none" if found is None else f"{found.dtype} {found.shape}"
        raise ModelFormatError(f"{key} must be {'float' if kinds == 'f' else 'integer'}s; got {what}")
    return found
