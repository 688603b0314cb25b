"""The table of commands: what each is for, without loading it.

A command ``NAME`` is the function ``NAME`` of the module ``spinegraph.apps.cli.NAME``, or that module's
``app`` where it has commands of its own.
"""

import re
from importlib import import_module
from typing import Any

import typer

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
    "reproduce": "Measure the paper's tables and figures, beside its numbers.",
}

_EXAMPLE = re.compile(r"^Example: (spine .+(?:\n.+)*)", re.MULTILINE)


def examples(name: str) -> list[str]:
    """Return the examples of a command's help, and of the commands below it.

    Examples
    --------
    >>> examples("data")
    ['spine data describe edges.csv --features people.parquet', ...]
    """
    command = load(name)
    texts = [one.help or "" for one in (command, *getattr(command, "commands", {}).values())]
    return [" ".join(found.split()) for text in texts for found in _EXAMPLE.findall(text)]


def load(name: str) -> Any:
    """Load one command of the table.

    Examples
    --------
    >>> load("data").name
    'data'
    """
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
