"""The command ``spine``."""

from spinegraph.apps.cli.app import main

__all__ = ["main"]
