"""Embeddings as a folder for TensorBoard's projector: two tables and the file that names them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.atomic import whole_folder
from spinegraph.embedding_files import plain_names
from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.graph.names import first_few

VECTORS, NAMES, CONFIG = "vectors.tsv", "metadata.tsv", "projector_config.pbtxt"
_SETTINGS = f"""\
embeddings {{
  tensor_name: "nodes"
  tensor_path: "{VECTORS}"
  metadata_path: "{NAMES}"
}}
"""


def write_projector(path: Path, names: NDArray[Any], vectors: NDArray[np.float32]) -> None:
    """Write names (n,) and vectors (n, d) to a folder that ``tensorboard --logdir`` opens.

    The two tables can also be loaded into the projector's page by hand.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_projector(Path(folder) / "a.projector", np.array(["ann"]), np.eye(1, dtype=np.float32))
    ...     sorted(file.name for file in (Path(folder) / "a.projector").iterdir())
    ['metadata.tsv', 'projector_config.pbtxt', 'vectors.tsv']
    """
    texts = [str(name) for name in plain_names(names, path).tolist()]
    broken = [text for text in texts if not text or any(mark in text for mark in "\t\r\n")]
    if broken:
        raise GraphFormatError(
            f"{path}: a line holds one name, without tabs; got {first_few(broken, 3)}: save as .parquet"
        )
    try:
        lines = "".join(f"{text}\n" for text in texts).encode()
    except UnicodeEncodeError as fault:
        raise GraphFormatError(f"{path}: a name is no valid text ({fault}); save as .npz") from fault
    others = {file.name for file in path.iterdir()} - {VECTORS, NAMES, CONFIG} if path.is_dir() else set()
    if others or (path.exists() and not path.is_dir()):
        what = f"holds {min(others)!r}, which would be deleted" if others else "is a file"
        raise ParameterError(f"{path}: {what}; choose another name for the folder")
    with whole_folder(path) as partial:
        np.savetxt(partial / VECTORS, vectors, fmt="%.9g", delimiter="\t")
        (partial / NAMES).write_bytes(lines)
        (partial / CONFIG).write_text(_SETTINGS, encoding="utf-8")
