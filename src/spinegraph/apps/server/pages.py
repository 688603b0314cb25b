"""Plain files of the explorer, read once at the start: no request ever names a file."""

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
# Nothing comes from anywhere but here, and no text may become markup or code.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


class Page(NamedTuple):
    """A file's bytes and what they are."""

    body: bytes
    media_type: str


def read_pages() -> dict[str, Page]:
    """Return the explorer's files by path.

    Examples
    --------
    >>> all(path.startswith("/") for path in read_pages())
    True
    """
    root = Path(str(files("spinegraph.apps"))) / "explorer"
    found = {}
    for file in sorted(root.rglob("*")) if root.is_dir() else []:
        if file.is_file() and file.suffix in _TYPES:
            path = f"/{file.relative_to(root).as_posix()}"
            found[path] = Page(file.read_bytes(), _TYPES[file.suffix])
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found
