"""The service: vectors, similar nodes and explanations of nodes, including new ones."""

from importlib.util import find_spec

from spinegraph.errors import MissingPackageError

for _package in ("fastapi", "pydantic", "uvicorn", "prometheus_client"):
    if find_spec(_package) is None:
        raise MissingPackageError(f"serving needs {_package}: pip install 'spinegraph[serve]'")
