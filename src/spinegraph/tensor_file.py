"""Arrays as a safetensors file."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file


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
