"""The root of the command ``spine``: its subcommands, errors, warnings and exit codes."""

import os
import re
import sys
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from spinegraph import __version__
from spinegraph.errors import SpineError, SpineWarning

COMMANDS = {
    "demo": "See what SPINE does, on a synthetic organisation, in less than a minute.",
    "data": "Describe network files, and build stores from them.",
    "fit": "Learn from networks how to make vectors of nodes.",
    "embed": "Make vectors for the nodes of any network, with a model.",
    "evaluate": "Measure vectors beside plain columns, node2vec and others: classes, links, clusters.",
    "similar": "Find the nodes most like a node, with reasons; or those of every node.",
    "roles": "Find the roles of nodes, such as hub, bridge and periphery.",
    "report": "Write one page about a model: map, roles, similar nodes, fit, data quality.",
    "explain": "Explain why two nodes are alike, or not.",
    "serve": "Serve a model over HTTP: vectors for nodes that arrive now.",
    "export": "Write vectors into PostgreSQL, for queries by pgvector.",
    "explore": "Explore a network in the browser.",
}
_MEMORY_ERRORS = ("allocate memory", "out of memory", "can't start new thread")  # RuntimeErrors of PyTorch


class _Commands(TyperGroup):
    """Commands that are loaded when they run, and report errors in one line instead of a traceback."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._running: Any = None
        _hide_flag_types(self)
        for name, purpose in COMMANDS.items():
            self.add_command(TyperCommand(name, help=purpose))  # for the list; loaded by resolve_command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that was asked for."""
        name, found, rest = super().resolve_command(ctx, args)
        self._running = found and load(str(name))
        return name, self._running, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", SpineWarning)
                # Caused by a full disk; the error about the disk follows.
                warnings.filterwarnings("ignore", ".*joblib will operate in serial mode")
                warnings.showwarning = self._show_warning
                return super().invoke(ctx)
        except BrokenPipeError:  # the reader, such as head, has closed the pipe
            _discard_output()
            raise typer.Exit(0) from None
        except KeyboardInterrupt as stop:
            typer.echo(f"interrupted: {stop}" if str(stop) else "interrupted", err=True)
            raise typer.Exit(130) from None
        except Exception as error:
            message = error_message(error)
            if message is None:
                raise
            message = with_options(message, self._running)
            typer.echo(f"error: {message}", err=True)
            if isinstance(error, OSError) and not isinstance(error, SpineError):
                _discard_output()
            raise typer.Exit(1) from None

    def _show_warning(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        kind = "note" if issubclass(category, SpineWarning) else category.__name__
        typer.echo(f"{kind}: {with_options(str(message), self._running)}", err=True)


def error_message(error: Exception) -> str | None:
    """Return the line to print for an error of the user, the disk or memory; None for a bug."""
    if isinstance(error, SpineError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    is_memory = isinstance(error, RuntimeError) and any(part in str(error).lower() for part in _MEMORY_ERRORS)
    if is_memory or isinstance(error, MemoryError):
        return "out of memory: free some, use a smaller --dim, --k or --threads, or a smaller network"
    return None


def with_options(message: str, command: Any) -> str:
    """Return a message of the package with its arguments as options: ``header=True`` as ``--header``."""
    commands = [command, *getattr(command, "commands", {}).values()]
    options = [option for one in commands for option in getattr(one, "params", ())]
    for option in (one for one in options if one.param_type_name == "option"):
        name, typed = re.escape(option.name), option.opts[0]

        def typed_value(found: re.Match[str], typed: str = typed) -> str:
            listed = re.sub(r"['\s]|,$", "", found[2] or "")  # ('content', 'role')
            return f"{typed} {found[1] or listed or found[3]}"

        if option.is_flag:
            off = option.secondary_opts[0] if option.secondary_opts else f"no {typed}"
            message = re.sub(rf"\b{name}=True\b", typed, message)
            message = re.sub(rf"\b{name}=False\b", off, message)
        else:
            message = re.sub(rf"\b{name}=(?:'([^']*)'|\(([^)]*)\)|(\.\.\.|[\w.]+))", typed_value, message)
        message = re.sub(
            rf"(^|[:;] ){name}(?= (?:must|is|are|goes|counts|belongs)\b)", rf"\1{typed}", message
        )
    return message


def load(name: str) -> Any:
    """Load one command of the table."""
    home = "serve" if name == "explore" else name
    module = import_module(f"spinegraph.apps.cli.{home}")
    app: typer.Typer | None = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(name)(getattr(module, name))
    command = typer.main.get_command(app)
    command.name = name
    for one in (command, *getattr(command, "commands", {}).values()):
        _hide_flag_types(one)
    return command


def _hide_flag_types(command: Any) -> None:
    """Print no ``<bool>`` beside a flag: it reads as if a value had to follow."""
    for option in (*command.params, command.get_help_option(typer.Context(command))):
        if getattr(option, "is_bool_flag", False):
            option.metavar = ""


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


def _discard_output() -> None:
    """Let nothing more be written to the standard output, not even when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
