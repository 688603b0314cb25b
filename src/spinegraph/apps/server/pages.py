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
# Plotly sets styles from its script; nothing else comes from anywhere but here.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Page(NamedTuple):
    """A file's bytes and what they are."""

    body: bytes
    media_type: str


def read_pages() -> dict[str, Page]:
    """Return the explorer's files by path, with Plotly's script beside them; empty where there is none.

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
        script = Path(str(files("plotly"))) / "package_data" / "plotly.min.js"
        found["/plotly.min.js"] = Page(script.read_bytes(), _TYPES[".js"])
    return found
