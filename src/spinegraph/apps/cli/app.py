"""The command's root: its sub-commands, its exit codes and its errors and warnings."""

import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from threading import Timer, current_thread, main_thread
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from spinegraph import __version__
from spinegraph.errors import SpineError, SpineWarning

COMMANDS = {
    "demo": "See what SPINE does, on a made organisation, in less than a minute.",
    "data": "Look at network files, and build stores of them.",
    "fit": "Learn from networks how to make vectors of nodes.",
    "embed": "Make vectors of the nodes of any network, by a model.",
    "evaluate": "Measure vectors beside controls: classes, links, clusters.",
    "similar": "Find a node's look-alikes, with reasons; or every node's.",
    "roles": "Say what parts nodes play, such as hub, bridge and periphery.",
    "report": "Write one page about a model: map, roles, look-alikes, fit, data quality.",
    "explain": "Say why two nodes are alike, or not.",
    "serve": "Serve a model over HTTP: vectors for nodes that arrive now.",
    "export": "Write vectors into PostgreSQL, for queries by pgvector.",
    "explore": "Walk through a network in the browser.",
}

_EXAMPLE = re.compile(r"^Example: (spine .+(?:\n.+)*)", re.MULTILINE)


def examples(name: str) -> list[str]:
    """Return the examples of a command's help, and of the commands below it."""
    command = load(name)
    texts = [one.help or "" for one in (command, *getattr(command, "commands", {}).values())]
    return [" ".join(found.split()) for text in texts for found in _EXAMPLE.findall(text)]


def load(name: str) -> Any:
    """Load one command of the table."""
    module = import_module(f"spinegraph.apps.cli.{name}")
    app: typer.Typer | None = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(name)(getattr(module, name))
    command = typer.main.get_command(app)
    command.name = name
    for one in (command, *getattr(command, "commands", {}).values()):
        for option in one.params:
            if getattr(option, "is_bool_flag", False):
                option.metavar = ""  # Typer's "<bool>" reads as if a value had to follow
    return command


_AGAIN = 0.02  # seconds until a lost signal is sent again
_signals: list[int] = []  # that asked this run to stop
_OUT_OF_MEMORY = "out of memory: free some, or take fewer --dim, --k or --threads, or a smaller network"


class _ToldToEnd(BaseException):
    """SIGTERM came; on its way out every open file and folder is put in order."""


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
                # Said where the disk is full, of a library's threads; the error about the disk follows.
                warnings.filterwarnings("ignore", ".*joblib will operate in serial mode")
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except SpineError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None
        except BrokenPipeError:  # the reader, such as head, has seen enough
            _forget_output()
            raise typer.Exit(0) from None
        except MemoryError as fault:
            typer.echo(f"error: {_OUT_OF_MEMORY}{f' ({fault})' if str(fault) else ''}", err=True)
            raise typer.Exit(1) from None
        except OSError as fault:
            place = f"{fault.filename}: " if fault.filename else ""
            reason = str(fault.strerror or fault)
            if reason.startswith("No usable temporary directory"):  # Python's words; PyTorch asks for one
                reason = (
                    f"temporary files cannot be written ({reason}); free space, or set TMPDIR to a folder"
                )
            typer.echo(f"error: {place}{reason}", err=True)
            _forget_output()
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stop:
            typer.echo(f"interrupted: {stop}" if str(stop) else "interrupted", err=True)
            raise typer.Exit(130) from None
        except _ToldToEnd:
            typer.echo("ended by a signal", err=True)
            raise typer.Exit(143) from None
        except Exception as fault:
            if _signals:  # Arrow and others take what a signal raises in them for a fault of their own
                is_interrupt = _signals[0] == signal.SIGINT
                typer.echo("interrupted" if is_interrupt else "ended by a signal", err=True)
                raise typer.Exit(130 if is_interrupt else 143) from None
            if not _is_memory(fault):
                raise
            typer.echo(f"error: {_OUT_OF_MEMORY}", err=True)
            raise typer.Exit(1) from None


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


def _is_memory(fault: Exception) -> bool:
    """Say whether PyTorch's or a thread's complaint is one about memory; they have no error of their own."""
    text = str(fault).lower() if isinstance(fault, RuntimeError) else ""
    return "allocate memory" in text or "out of memory" in text or "can't start new thread" in text


def _stop(number: int, *_: Any) -> NoReturn:
    _signals.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else _ToldToEnd


def _heard_again(lost: "sys.UnraisableHookArgs") -> None:
    """Send a signal again that fell into a destructor or a callback, where Python drops what is raised."""
    if isinstance(lost.exc_value, KeyboardInterrupt | _ToldToEnd) and _signals:
        again = Timer(_AGAIN, os.kill, (os.getpid(), _signals[-1]))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command with these arguments, by default the process's own, and exit."""
    if current_thread() is main_thread():
        _signals.clear()
        signal.signal(signal.SIGTERM, _stop)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is to be ignored
            signal.signal(signal.SIGINT, _stop)
        if sys.unraisablehook is sys.__unraisablehook__:
            sys.unraisablehook = _heard_again
    try:
        app(arguments)
    except _ToldToEnd:  # before a command began, or after
        sys.exit(143)
