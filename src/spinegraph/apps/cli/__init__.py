"""The ``spine`` command."""

import signal
import sys
from collections.abc import Sequence
from threading import current_thread, main_thread


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``spine`` command with these arguments, by default those of the process, and exit."""
    if current_thread() is main_thread():
        # Raised as an exception, so that unfinished files are removed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        from spinegraph.apps.cli.app import app  # here, so that an interrupt while it loads is handled

        app(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


__all__ = ["main"]
