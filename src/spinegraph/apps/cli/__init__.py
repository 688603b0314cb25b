"""The ``spine`` command."""

import signal
import sys
from collections.abc import Sequence
from threading import current_thread, main_thread
from typing import Any


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``spine`` command with these arguments, by default those of the process, and exit."""
    stopped = list[int]()

    def stop(number: int, _: Any) -> None:
        stopped.append(number)
        sys.exit(128 + number)

    if current_thread() is main_thread():
        # Raised as an exception, so that unfinished files are removed.
        signal.signal(signal.SIGTERM, stop)
    try:
        from spinegraph.apps.cli.app import app  # here, so that an interrupt while it loads is handled

        app(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception:
        if not stopped:
            raise
        sys.exit(128 + stopped[0])  # compiled code that loads makes an error of its own of the exit


__all__ = ["main"]
