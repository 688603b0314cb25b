"""The command's root: its sub-commands, its exit codes and how it speaks of errors and warnings.

Exit codes: 0 done, 1 an error that the message explains, 2 wrong usage, 130 interrupted.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from spinegraph import __version__
from spinegraph.apps.cli.commands import COMMANDS, load
from spinegraph.errors import SpineError, SpineWarning


class _Commands(TyperGroup):
    """Commands that are loaded when they run, and end in one clear line instead of a traceback."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, purpose in COMMANDS.items():
            self.add_command(TyperCommand(name, help=purpose))  # its place in the list; it is loaded later

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that was asked for."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", SpineWarning)
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except SpineError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None
        except BrokenPipeError:  # the reader, such as head, has seen enough
            _forget_output()
            raise typer.Exit(0) from None
        except OSError as fault:
            place = f"{fault.filename}: " if fault.filename else ""
            typer.echo(f"error: {place}{fault.strerror or fault}", err=True)
            _forget_output()
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stop:
            typer.echo(f"interrupted: {stop}" if str(stop) else "interrupted", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="spine",
    cls=_Commands,
    help="Node vectors that know where a node lives and what role it plays.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spine {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def _forget_output() -> None:
    """Let nothing be written to the standard output any more, not even when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    typer.echo(f"{'note' if issubclass(category, SpineWarning) else category.__name__}: {message}", err=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command ``spine`` with these arguments, by default the process's own, and exit.

    Examples
    --------
    >>> import contextlib
    >>> with contextlib.suppress(SystemExit):
    ...     main(["--version"])
    spine ...
    """
    app(arguments)
