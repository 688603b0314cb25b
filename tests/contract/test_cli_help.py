"""The help of every command, and the example in it."""

import shlex
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from docs.refresh import examples
from typer import BadParameter

from command import spine
from spinegraph.apps.cli.app import COMMANDS, load, with_options
from spinegraph.apps.cli.options import read_parts, read_weights, settings, some_settings
from spinegraph.config import Config, PaperConfig
from spinegraph.errors import ParameterError

ROOT = Path(__file__).parents[2]
# These run until they are stopped, or for long, or need a server; their own tests run them.
ELSEWHERE = {"demo", "export", "serve", "explore"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_fits_a_terminal_and_has_an_example(name):
    run = spine(name, "--help")
    assert run.returncode == 0, run.stderr
    assert max(map(len, run.stdout.splitlines())) <= 80
    assert all(example.startswith(f"spine {name}") for example in examples(name))
    assert examples(name)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ELSEWHERE])
def test_the_example_of_a_commands_help_runs(name, place, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(place, folder)
    if name == "fit":
        shutil.rmtree(folder / "model")
    for example in examples(name):
        run = spine(*shlex.split(example)[1:], cwd=folder)
        assert run.returncode == 0, f"{example}\n{run.stderr}"


def test_the_root_help_lists_every_command_without_loading_it():
    text = " ".join(spine("--help").stdout.replace("│", "").split())
    for name, purpose in COMMANDS.items():
        assert f"{name} {purpose}" in text


def test_the_page_of_the_command_is_the_commands_own():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from refresh import commands
    finally:
        sys.path.pop(0)
    page = (ROOT / "docs" / "command.md").read_text()
    assert page == commands(page), "run python docs/refresh.py"


def test_every_setting_is_an_option_of_its_own_kind():
    names = [field.name for field in fields(Config)]
    options = settings.__signature__.parameters
    assert sorted(options) == sorted(["preset", *names])
    kinds = {name: option.annotation.__args__[0] for name, option in options.items()}
    assert get_args(get_args(kinds["rpr_method"])[0]) == ("push", "walks")
    assert (kinds["dim"], kinds["near"], kinds["learning"]) == (int | None, float | None, bool | None)


def test_settings_begin_with_a_preset_and_are_checked_together():
    given = {name: None for name in settings.__signature__.parameters if name != "preset"}
    assert settings(preset="paper", **{**given, "dim": 64}) == PaperConfig(dim=64)
    assert settings(**given) == Config()
    with pytest.raises(ParameterError, match=r"dim must be .*\nk must be"):
        settings(dim=0, k=0)
    with pytest.raises(ParameterError, match=r"^--parts is not a setting of the paper's method"):
        settings(preset="paper", parts=("role",))
    assert some_settings("threads")(threads=2) == {"threads": 2}


def test_parts_and_weights_are_read_from_text():
    assert read_parts("role, content") == ("role", "content")
    assert read_weights("role=2, place=0.5") == {"role": 2.0, "place": 0.5}
    for text in ("", "roles", "content;role"):
        with pytest.raises(BadParameter, match="such as content,role"):
            read_parts(text)
    for text in ("", "role", "role=", "role=x", "role=-1", "role=nan", "hub=1", "content=0,place=0,role=0"):
        with pytest.raises(BadParameter, match=r"such as role=2,place=0\.5"):
            read_weights(text)


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("source is column 'a'; weights are column 'c'", "source is column 'a'; weights are column 'c'"),
        ("weights are strings; source must be text", "--weights are strings; --source must be text"),
        ('choose one by query="select * from t"', 'choose one by --query "select * from t"'),
        ("pass query='select a, b from ...'; or", "pass --query 'select a, b from ...'; or"),
        ("delimiter=\";\" or delimiter=''", '--delimiter ; or --delimiter ""'),
    ],
)
def test_only_arguments_in_messages_become_options(message, typed):
    assert with_options(message, load("fit")) == typed
