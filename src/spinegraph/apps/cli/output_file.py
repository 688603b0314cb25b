"""Where a command may write a table: checked before the work whose result would go there."""

from pathlib import Path

from spinegraph.atomic import require_writable
from spinegraph.errors import MissingFileError, ParameterError

STANDARD_OUTPUT = "-"


def require_output(output: str | Path, endings: tuple[str, ...], what: str) -> None:
    """Refuse an ending that is not known, and a folder that is not there or may not be written to.

    Examples
    --------
    >>> require_output("-", (".csv",), "roles")
    >>> require_output("roles.txt", (".csv", ".json"), "roles")
    Traceback (most recent call last):
    spinegraph.errors.ParameterError: roles.txt: roles are written as .csv, .json; got '.txt'
    """
    path = Path(output)
    if str(output) == STANDARD_OUTPUT:
        return
    if path.suffix not in endings:
        raise ParameterError(f"{output}: {what} are written as {', '.join(endings)}; got {path.suffix!r}")
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {path.parent}; make it first")
    require_writable(path)
