"""The root of the ``spine`` command: its subcommands, errors, warnings and exit codes."""

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
    "fit": "Fit a model on one or more networks.",
    "embed": "Make vectors for the nodes of any network with a fitted model.",
    "evaluate": "Compare vectors with plain columns, node2vec and others: classes, links, clusters.",
    "similar": "Find the nodes most like a node, with reasons, or those of every node.",
    "roles": "Find the roles of nodes, such as hub, bridge and periphery.",
    "report": "Write one page about a model: map, roles, similar nodes, fit, data quality.",
    "explain": "Explain why two nodes are alike, or not.",
    "serve": "Serve a model over HTTP, with vectors for nodes as they arrive.",
    "export": "Write vectors to PostgreSQL, for queries with pgvector.",
    "explore": "Explore a network in the browser.",
}
_MEMORY_ERRORS = ("allocate memory", "out of memory", "can't start new thread")  # in RuntimeErrors of PyTorch


class _Commands(TyperGroup):
    """Commands that are loaded when they run and report errors in one line instead of a traceback."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._running: Any = None
        _hide_flag_types(self)
        for name, purpose in COMMANDS.items():
            self.add_command(TyperCommand(name, help=purpose))  # a placeholder; see resolve_command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the requested command."""
        name, found, rest = super().resolve_command(ctx, args)
        self._running = found and load(str(name))
        return name, self._running, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the requested command."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", SpineWarning)
                # Caused by a full disk, which is reported as an error later.
                warnings.filterwarnings("ignore", ".*joblib will operate in serial mode")
                warnings.showwarning = self._show_warning
                return super().invoke(ctx)
        except BrokenPipeError:  # the reader, such as head, closed the pipe
            _discard_output()
            raise typer.Exit(0) from None
        except typer.BadParameter as wrong:  # reworded from pydantic's messages
            wrong.message = wrong.message.removeprefix("Value error, ").replace("Input should", "must")
            raise
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
    """Return the line to print for an error by the user, the disk or memory; None for a bug."""
    if isinstance(error, SpineError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    is_memory = isinstance(error, RuntimeError) and any(part in str(error).lower() for part in _MEMORY_ERRORS)
    if is_memory or isinstance(error, MemoryError):
        return "out of memory: free some, use a smaller --dim, --k or --threads, or a smaller network"
    return None


def with_options(message: str, command: Any) -> str:
    """Return a message of the package with arguments written as options: ``header=True`` as ``--header``."""
    commands = [command, *getattr(command, "commands", {}).values()]
    options = [option for one in commands for option in getattr(one, "params", ())]
    for option in (one for one in options if one.param_type_name == "option"):
        name, typed = re.escape(option.name), option.opts[0]

        def typed_value(found: re.Match[str], typed: str = typed) -> str:
            listed = re.sub(r"['\s]|,$", "", found[3] or "")  # ('content', 'role')
            value, quote = found[2] or listed or found[4] or '""', found[1] or ""
            value = f"{quote}{value}{quote}" if " " in value else value
            return typed if value == "..." else f"{typed} {value}"

        if option.is_flag:
            off = option.secondary_opts[0] if option.secondary_opts else f"no {typed}"
            message = re.sub(rf"\b{name}=True\b", typed, message)
            message = re.sub(rf"\b{name}=False\b", off, message)
        else:
            given = r"""(['"])(.*?)\1|\(([^)]*)\)|(\.\.\.|[\w.]+)"""
            message = re.sub(rf"\b{name}=(?:{given})", typed_value, message)
        if name == "column":  # columns={'zip': 'ignore'} of an encoder
            message = re.sub(r"\bcolumns=\{'([\w.-]+)': '(\w+)'\}", rf"{typed} \1=\2", message)
            message = re.sub(r"\bcolumns=\{(.*?): '(\w+)'\}", rf"{typed} \1=\2", message)
        verbs = "must|(?:is|are)(?! column)|goes|counts|belongs|names"
        message = re.sub(rf"(?m)(^|[:;] ){name}s?(?= (?:{verbs})\b)", rf"\1{typed}", message)
    return message


def load(name: str) -> Any:
    """Load one command."""
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
    """Hide the ``<bool>`` beside a flag, which would read as if a value had to follow."""
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


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"spine {__version__}")
        raise typer.Exit


def _discard_output() -> None:
    """Discard all further standard output, including what is flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
