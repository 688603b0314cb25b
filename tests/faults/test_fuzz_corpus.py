"""Every input that ever made a reader fail, and the fuzzer's seeds: each is answered plainly."""

import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("atheris", reason="fuzzing needs Linux and a Python that atheris has a wheel for")

from fuzz import outcome, targets

from spinegraph.errors import GraphFormatError

CORPUS = Path(__file__).parent / "corpus"
NAMES = sorted(module.name for module in pkgutil.iter_modules(targets.__path__))


@pytest.mark.parametrize("name", NAMES)
def test_what_was_found_and_what_it_began_with_is_answered_plainly(name, tmp_path):
    module = importlib.import_module(f"fuzz.targets.{name}")
    target = module.begin(tmp_path)
    kept = sorted((CORPUS / name).glob("*"))
    with warnings.catch_warnings():
        outcome.strict_warnings()
        for place, data in [*enumerate(module.SEEDS), *((file.name, file.read_bytes()) for file in kept)]:
            fault = outcome.fault_of(target, data)
            assert fault is None, f"{name} {place}: {fault!r}"


def test_every_kept_input_has_its_target():
    assert {folder.name for folder in CORPUS.iterdir() if folder.is_dir()} <= set(NAMES)
    assert sys.version_info >= (3, 11)


@pytest.mark.parametrize("words", ["", " \n", "one line\nand another"])
def test_an_error_without_words_or_of_several_lines_counts_as_a_fault(words):
    def target(data):
        raise GraphFormatError(words)

    assert "not one line of words" in str(outcome.fault_of(target, b""))
