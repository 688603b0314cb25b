"""The command ``spine``."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command ``spine`` with these arguments, by default the process's own, and exit.

    Examples
    --------
    >>> import contextlib
    >>> with contextlib.suppress(SystemExit):
    ...     main(["--version"])
    spine ...
    """
    try:
        from spinegraph.apps.cli.app import run  # here, so that an interrupt while it loads is handled

        run(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


__all__ = ["main"]
