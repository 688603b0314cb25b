"""The npz layout that the paper's networks are kept in, on disk and in the cache."""

import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFileError

_UNREADABLE = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, KeyError, NotImplementedError)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read every array of an npz file; pickled objects are refused, never loaded.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arrays(Path(folder) / "tiny.npz", {"edges": np.array([[0, 1]])})
    ...     read_arrays(Path(folder) / "tiny.npz")["edges"].tolist()
    [[0, 1]]
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise GraphFormatError(f"{path}: expected an npz archive, found a single array")
            return {key: np.asarray(archive[key]) for key in archive.files}
    except GraphFormatError:
        raise
    except _UNREADABLE as fault:
        raise GraphFormatError(
            f"{path}: not a readable npz archive of plain arrays ({fault}); fetch or write the file again"
        ) from fault


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a compressed npz, whole or not at all.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arrays(Path(folder) / "tiny.npz", {"num_nodes": np.int64(2)})
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['tiny.npz']
    """
    path = Path(path)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            np.savez_compressed(
                out, allow_pickle=False, **{key: np.asarray(value) for key, value in arrays.items()}
            )  # type: ignore[arg-type]
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def features_of(arrays: Mapping[str, NDArray[Any]], place: str) -> sp.csr_array | None:
    """Build the (n, f) float32 features of the layout, or None where it holds none.

    Examples
    --------
    >>> import numpy as np
    >>> features_of({"edges": np.zeros((0, 2), int)}, "tiny.npz") is None
    True
    """
    keys = ("feat_data", "feat_indices", "feat_indptr", "feat_shape")
    present = [key for key in keys if key in arrays]
    if not present:
        return None
    if len(present) < len(keys):
        raise GraphFormatError(f"{place}: features need {', '.join(keys)}; found only {', '.join(present)}")
    data, indices, indptr, shape = (arrays[key] for key in keys)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise GraphFormatError(f"{place}: feat_shape must be two integers; got {shape.dtype} {shape.shape}")
    try:
        features = sp.csr_array((data.astype(np.float32), indices, indptr), shape=tuple(shape.tolist()))
        features.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as fault:
        raise GraphFormatError(f"{place}: the features are not a valid CSR matrix: {fault}") from fault
    if not np.isfinite(features.data).all():
        raise GraphFormatError(f"{place}: feat_data holds NaN or infinite values")
    features.sort_indices()
    return features
