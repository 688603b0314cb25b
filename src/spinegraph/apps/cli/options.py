"""Options that several commands share; those of settings come from Config, and from nowhere else."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any

import typer

from spinegraph.config import Config, choices
from spinegraph.config_help import ADVICE

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]


class Preset(StrEnum):
    """Where settings start."""

    default = "default"
    paper = "paper"


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of other functions; what each makes of them is one argument.

    Examples
    --------
    >>> def pair(a: int = 1, b: int = 2): return a, b
    >>> @takes(both=pair)
    ... def show(c: int = 3, *, both): print(both, c)
    >>> list(inspect.signature(show).parameters)
    ['c', 'a', 'b']
    >>> show(a=5, b=6, c=7)
    (5, 6) 7
    """
    shared = {name: list(inspect.signature(make).parameters.values()) for name, make in makers.items()}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**given: Any) -> Any:
            made = {
                name: make(**{option.name: given.pop(option.name) for option in shared[name]})
                for name, make in makers.items()
            }
            return command(**given, **made)

        own = [one for one in inspect.signature(command).parameters.values() if one.name not in makers]
        options = [*own, *(one for options in shared.values() for one in options)]
        named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options]
        run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        return run

    return decorate


def some_settings(*names: str) -> Callable[..., dict[str, Any]]:
    """Return a function whose options are some settings; it returns those that were given.

    Examples
    --------
    >>> some_settings("seed", "threads")(seed=3, threads=None)
    {'seed': 3}
    """

    def given(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    advice = {name: advice for some in ADVICE.values() for name, advice in some.items()}
    options = [_setting(name, None, advice[name].changes) for name in names]
    given.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return given


def settings(preset: Preset = Preset.default, **given: Any) -> Config:
    """Return the settings that options ask for: those of a preset, changed where a value is given.

    Examples
    --------
    >>> settings(Preset.paper, dim=64, k=None).k
    20
    """
    changes = {name: value for name, value in given.items() if value is not None}
    return (Config.paper if preset == Preset.paper else Config)(**changes).check()


def _setting(name: str, group: str | None, changes: str) -> inspect.Parameter:
    """Return the option of one setting; None is no value."""
    chosen = choices(name)
    kind: Any = _KINDS[name] if chosen is None else _one_of(name, chosen)
    values = [_shown(getattr(config, name)) for config in (Config(), Config.paper())]
    default = values[0] if values[0] == values[1] else f"{values[0]}; paper {values[1]}"
    text = changes.replace("`", "")
    if chosen is not None:
        text = f"{', '.join(chosen[:-1])} or {chosen[-1]}: {text}"
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        help=f"{text[0].upper() if chosen is None else text[0]}{text[1:]}. Default {default}.",
        metavar="NAME" if kind in (str, str | None) or chosen is not None else "NUMBER",
        show_default=False,
        rich_help_panel=group,
    )
    return _keyword(name, Annotated[kind | None, option], None)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _one_of(name: str, chosen: tuple[str, ...]) -> Any:
    return StrEnum(name, {choice: choice for choice in chosen})  # type: ignore[misc]


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_KINDS = {field.name: field.type for field in fields(Config)}
_PRESET = typer.Option("--preset", help="Begin with these values; other options change them.")
settings.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        _keyword("preset", Annotated[Preset, _PRESET], Preset.default),
        *(
            _setting(name, f"Settings: {group[0].lower()}{group[1:]}", advice.changes)
            for group, some in ADVICE.items()
            for name, advice in some.items()
        ),
    ]
)
