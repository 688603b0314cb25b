"""The header of a store: what each file holds, to the byte, read without trust."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any

from spinegraph.errors import GraphFormatError, MissingFileError, ModelFormatError
from spinegraph.graph.edges import MOST_NODES, EdgeReport
from spinegraph.json_object import JsonObject

FORMAT, VERSION, HEADER = "spinegraph.store", 1, "header.json"
NAMES = ("range", "integer", "text")
_MOST_BYTES = 2**28
# File -> number of dimensions and the types it may have.
FILES = {
    "indptr.bin": (1, ("<i8",)),
    "indices.bin": (1, ("<i4",)),
    "weights.bin": (1, ("<f4",)),
    "names.bin": (1, ("<i8",)),
    "names_text.bin": (1, ("|u1",)),
    "names_ends.bin": (1, ("<i8",)),
    "names_order.bin": (1, ("<i8",)),
    "features.bin": (2, ("<f4",)),
    "features_data.bin": (1, ("<f4",)),
    "features_indices.bin": (1, ("<i4", "<i8")),
    "features_indptr.bin": (1, ("<i4", "<i8")),
}
SPARSE = ("features_data.bin", "features_indices.bin", "features_indptr.bin")


@dataclass(frozen=True)
class Entry:
    """One file: an array, and the checksum of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    digest: str

    @property
    def bytes(self) -> int:
        """Size of the file.

        >>> Entry("<i8", (3,), "").bytes
        24
        """
        return prod(self.shape) * int(self.dtype[2:])


@dataclass(frozen=True)
class Header:
    """What a store's header.json says.

    Attributes
    ----------
    names : {"range", "integer", "text"}
    is_sorted : bool
        Whether names ascend; names_order.bin is there where they do not.
    num_features : int or None
    feature_names : tuple of str or None
    report : EdgeReport or None
    fingerprint : str
        That of the graph in memory.
    files : dict of Entry
    """

    names: str
    is_sorted: bool
    num_features: int | None
    feature_names: tuple[str, ...] | None
    report: EdgeReport | None
    fingerprint: str
    files: Mapping[str, Entry]

    @property
    def num_nodes(self) -> int:
        """Number of nodes n."""
        return self.files["indptr.bin"].shape[0] - 1

    def write(self, folder: Path) -> None:
        """Write header.json."""
        about = {
            "format": FORMAT,
            "version": VERSION,
            **{
                field.name: getattr(self, field.name)
                for field in fields(self)
                if field.name not in ("report", "files")
            },
            "report": None if self.report is None else asdict(self.report),
            "files": {name: asdict(entry) for name, entry in self.files.items()},
        }
        about["digest"] = _digest(about)
        (folder / HEADER).write_text(json.dumps(about, indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Header":
        """Read header.json; anything wrong with it is a GraphFormatError that names it."""
        path = folder / HEADER
        if not path.is_file():
            what = f"holds no {HEADER}" if folder.is_dir() else "no such folder"
            raise MissingFileError(f"{folder}: {what}; pass a store, which spine data build makes")
        try:
            with path.open("rb") as file:
                about = JsonObject(json.loads(file.read(_MOST_BYTES)), "top level")
            about.one_of("format", FORMAT)
            _require_version(about)
            if about.meta.get("digest", _digest(about.meta)) != _digest(about.meta):
                raise ModelFormatError("its content is not what was written: it was damaged")
            return _checked(about)
        except (ModelFormatError, ValueError, RecursionError, OSError) as fault:
            raise GraphFormatError(f"{path}: {str(fault)[:300]}{_WAY_OUT}") from fault


_WAY_OUT = "; copy the whole folder again, or build it again"


def is_store(path: Any) -> bool:
    """Say whether a path is a store's folder.

    >>> is_store("nowhere")
    False
    """
    try:
        return (Path(path) / HEADER).is_file()
    except (OSError, ValueError):
        return False


def _digest(about: dict[str, Any]) -> str:
    """Return a digest of all that a header says besides."""
    others = {key: value for key, value in about.items() if key != "digest"}
    return blake2b(json.dumps(others, sort_keys=True).encode(), digest_size=16).hexdigest()


def _require_version(about: JsonObject) -> None:
    version = about.whole("version", 1, 2**31)
    if version > VERSION:
        raise ModelFormatError(f"is of version {version}, this spinegraph reads up to {VERSION}: upgrade it")


def _checked(about: JsonObject) -> Header:
    listed = JsonObject(about.get("files", dict), "files")
    files = {name: _entry(JsonObject(listed.meta[name], name), name) for name in sorted(listed.meta)}
    names = about.one_of("names", *NAMES)
    has_features = about.meta.get("num_features") is not None
    num_features = about.whole("num_features", 0, 2**31 - 1) if has_features else None
    columns = about.list_of("feature_names", str) if about.meta.get("feature_names") is not None else None
    if columns is not None and len(columns) != num_features:
        raise ModelFormatError(f"feature_names must name {num_features} columns; got {len(columns)}")
    report = about.meta.get("report")
    header = Header(
        names,
        about.get("is_sorted", bool),
        num_features,
        None if columns is None else tuple(columns),
        None if report is None else _report(JsonObject(report, "report")),
        about.get("fingerprint", str),
        files,
    )
    _require_shapes(header)
    return header


def _entry(entry: JsonObject, name: str) -> Entry:
    if name not in FILES:
        raise ModelFormatError(f"{name!r:.60} is no file of a store")
    dimensions, types = FILES[name]
    shape = entry.list_of("shape", int)
    if len(shape) != dimensions or not all(0 <= size < 2**62 for size in shape):
        raise ModelFormatError(f"{name}: shape must be {dimensions} sizes; got {shape!r:.60}")
    return Entry(entry.one_of("dtype", *types), tuple(shape), entry.get("digest", str))


def _report(report: JsonObject) -> EdgeReport:
    return EdgeReport(**{field.name: report.whole(field.name, 0, 2**63 - 1) for field in fields(EdgeReport)})


def _require_shapes(header: Header) -> None:
    """Refuse files that do not make up one graph."""
    shapes = {name: entry.shape for name, entry in header.files.items()}
    wanted = {"indptr.bin", "indices.bin"}
    wanted |= {"names_text.bin", "names_ends.bin"} if header.names == "text" else {"names.bin"}
    wanted |= {"weights.bin"} & set(shapes)
    wanted |= set() if header.is_sorted else {"names_order.bin"}
    if header.num_features is not None:
        wanted |= {"features.bin"} if "features.bin" in shapes else set(SPARSE)
    if wanted != set(shapes):
        raise ModelFormatError(f"expected the files {', '.join(sorted(wanted))}; got {', '.join(shapes)}")
    n = header.num_nodes
    if not 1 <= n <= MOST_NODES:
        raise ModelFormatError(f"a graph has 1 to {MOST_NODES} nodes; got {n}")
    same: dict[str, tuple[int, ...]] = {"weights.bin": shapes["indices.bin"]}
    same |= dict.fromkeys(("names.bin", "names_ends.bin", "names_order.bin"), (n,))
    if header.num_features is not None:
        same |= {"features.bin": (n, header.num_features), "features_indptr.bin": (n + 1,)}
        same |= {"features_indices.bin": shapes.get("features_data.bin", ())}
    for name, shape in same.items():
        if name in shapes and shapes[name] != shape:
            raise ModelFormatError(f"{name}: must have shape {shape}; got {shapes[name]}")
