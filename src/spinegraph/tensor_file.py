"""Arrays as a safetensors file, and the digest that tells whether they are still what was written."""

import os
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

_DIGEST = "digest"


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], metadata: dict[str, str] | None = None
) -> None:
    """Write arrays by name; a place that cannot be written is an OSError, as with any file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arrays(Path(folder) / "a.safetensors", {"a": np.zeros(2)})
    ...     [file.name for file in Path(folder).iterdir()]
    ['a.safetensors']
    """
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path, metadata)
    except SafetensorError as fault:
        number = re.search(r"os error (\d+)", str(fault))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from fault


def write_signed(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays and metadata with a digest of both, which ``read_signed`` checks.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_signed(Path(folder) / "a.safetensors", {"a": np.zeros(2)}, {"step": "5"})
    ...     read_signed(Path(folder) / "a.safetensors", ("step",))
    ({'a': array([0., 0.])}, {'step': '5'})
    """
    write_arrays(path, arrays, {**metadata, _DIGEST: digest(arrays, metadata)})


def read_signed(path: Path, keys: tuple[str, ...] = ()) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read every array and the metadata; ValueError where they are not what was written.

    Parameters
    ----------
    path : Path
        A file without a digest, of an older version of this package, is read as it is.
    keys : tuple of str
        Metadata that may be there; any other is refused, so that no digest is lost by its name.
    """
    with safe_open(path, framework="numpy") as file:
        metadata = dict(file.metadata() or {})
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    written = metadata.pop(_DIGEST, None)
    if not metadata.keys() <= set(keys):
        raise ValueError(f"unknown metadata {min(metadata.keys() - set(keys))!r:.40}")
    if written is not None and written != digest(arrays, metadata):
        raise ValueError("its content is not what was written: it was damaged")
    return arrays, metadata


def digest(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> str:
    """Return 32 hexadecimal digits that any change of a name, type, shape, number or metadata changes.

    Examples
    --------
    >>> digest({"a": np.zeros(2)}) == digest({"a": np.zeros(3)})
    False
    """
    found = blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).data)
    for key, text in sorted((metadata or {}).items()):
        found.update(f"{len(key)} {key} {len(text)} {text}\n".encode())
    return found.hexdigest()
