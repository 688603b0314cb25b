"""Read old pickles of arrays without running anything they say.

The Planetoid files are Python 2 pickles of NumPy arrays, SciPy CSR matrices and a dict of lists. A pickle
is a program that may call anything it names; this reader gives it only stand-ins that record what they are
told, and builds the arrays afterwards from checked numbers. Any other name is refused.
"""

import io
import math
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError

_TYPES = {
    f"{kind}{size}" for kind, sizes in {"f": "48", "i": "1248", "u": "1248"}.items() for size in sizes
} | {"b1"}


def read_pickle(path: Path) -> Any:
    """Return what a Planetoid pickle holds: an array, a csr_array, or a dict of lists of integers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "graph").write_bytes(pickle.dumps({0: [1], 1: [0]}, protocol=2))
    ...     read_pickle(Path(folder) / "graph")
    {0: [1], 1: [0]}
    """
    data = path.read_bytes()
    try:
        _check_places(data)
        found = _Reader(io.BytesIO(data), encoding="latin1").load()
        whole = found.value() if isinstance(found, _Array | _Csr) else found
        if isinstance(whole, _Call | _DType | type):
            raise GraphFormatError("holds the name of a function or type, and no array")
        return whole
    except GraphFormatError as fault:
        raise GraphFormatError(f"{path}: {fault}") from fault
    except Exception as fault:  # a damaged pickle can fail in any way the opcodes allow
        raise GraphFormatError(f"{path}: not a readable pickle of arrays ({fault!r})") from fault


def _check_places(data: bytes) -> None:
    """Refuse places to remember values at that no pickle of this size needs: all below would be allocated."""
    for code, place, _ in pickletools.genops(data):
        if code.name in ("PUT", "LONG_BINPUT") and not 0 <= int(place or 0) < len(data):
            raise GraphFormatError(f"a pickle of {len(data)} bytes may not remember a value at place {place}")


class _DType:
    """Stands in for numpy.dtype."""

    def __init__(self, name: str = "", *_: Any) -> None:
        self.name, self.order = name, "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def value(self) -> np.dtype[Any]:
        """Return the type if it is one of plain numbers."""
        if self.name not in _TYPES or self.order not in ("<", ">", "|", "="):
            raise GraphFormatError(f"arrays must hold plain numbers; got dtype {self.name!r}")
        return np.dtype(self.name).newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """Stands in for numpy.ndarray: records its state."""

    state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def value(self) -> NDArray[Any]:
        """Build the array from checked parts."""
        _, shape, dtype, is_fortran, data = self.state
        raw = data.encode("latin1") if isinstance(data, str) else data
        if not isinstance(dtype, _DType) or not isinstance(raw, bytes) or not _is_shape(shape):
            raise GraphFormatError("an array's parts are not those of an array")
        kind = dtype.value()
        if len(raw) != math.prod(shape) * kind.itemsize:
            raise GraphFormatError(
                f"an array of shape {shape} must hold {math.prod(shape)} numbers of {kind}"
            )
        return np.frombuffer(raw, kind).reshape(shape, order="F" if is_fortran else "C")


class _Csr:
    """Stands in for scipy.sparse.csr_matrix: records its state."""

    state: dict[str, Any] = {}  # noqa: RUF012 - replaced, never changed

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def value(self) -> sp.csr_array:
        """Build the matrix from checked parts."""
        parts = [self.state.get(key) for key in ("data", "indices", "indptr")]
        shape = self.state.get("_shape", self.state.get("shape"))
        if not all(isinstance(part, _Array) for part in parts) or not _is_shape(shape):
            raise GraphFormatError("a matrix's parts are not those of a CSR matrix")
        data, indices, indptr = (part.value() for part in parts)  # type: ignore[union-attr]
        matrix = sp.csr_array((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        return matrix


class _Call:
    """A function that a pickle may call, and do nothing else to."""

    __slots__ = ("_function",)

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise GraphFormatError("a pickle may not change a function")


def _bytes(text: str, encoding: str) -> bytes:
    """Encode as Python 3 asks old pickles to; other codecs could do anything."""
    if encoding != "latin1":
        raise GraphFormatError(f"a pickle may not use the codec {encoding!r}")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _Call(_bytes),
    ("collections", "defaultdict"): _Call(lambda *_: {}),
    ("__builtin__", "list"): _Call(list),
    ("builtins", "list"): _Call(list),
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    **{
        (f"numpy.{core}.multiarray", "_reconstruct"): _Call(lambda *_: _Array()) for core in ("core", "_core")
    },
    **{(f"scipy.sparse.{csr}", "csr_matrix"): _Csr for csr in ("csr", "_csr")},
}


class _Reader(pickle.Unpickler):
    """An unpickler that knows only the stand-ins."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a stand-in, or refuse."""
        if (module, name) not in _ALLOWED:
            raise GraphFormatError(
                f"refused: the pickle asks for {module}.{name}, which is no array; not loaded"
            )
        return _ALLOWED[module, name]


def _is_shape(shape: Any) -> bool:
    """Say whether a value is a tuple of sizes."""
    return isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
