"""Settings and their ranges."""

import json
from dataclasses import asdict, fields

import numpy as np
import pytest

from spinegraph import Config
from spinegraph.errors import ParameterError

NAMES = [field.name for field in fields(Config)]


def test_the_defaults_and_the_papers_values_pass():
    assert Config().check() == Config()
    paper = Config.paper(dim=128).check()
    assert (paper.structural_rate, paper.continuation, paper.walks, paper.walk_length) == (0.5, 0.5, 10, 40)
    assert (paper.lambda1, paper.lambda2, paper.dim) == (0.4, 0.2, 128)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value",
    [True, [], {}, object(), float("nan"), -1, np.zeros(2), "no such", 10**400],
    ids=["bool", "list", "dict", "object", "nan", "negative", "array", "words", "huge"],
)
def test_what_is_no_value_of_a_setting_is_named(name, value):
    with pytest.raises(ParameterError, match=rf"^{name} must"):
        Config(**{name: value}).check()


OPEN = ("threads", "patience", "structural_share", "address")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OPEN])
def test_only_some_settings_may_be_none(name):
    with pytest.raises(ParameterError, match=rf"^{name} must"):
        Config(**{name: None}).check()


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("dim", [1, 65536], [0, 65537, 1.5]),
        ("k", [1, 4096], [0, 4097]),
        ("local_walk_length", [2], [1]),
        ("steps", [0], [-1]),
        ("training_nodes", [2], [1]),
        ("threads", [None, 1, 1024], [0, 1025]),
        ("patience", [None, 1], [0]),
        ("address", [None, "auto", "local", "head:6379", "10.0.0.1:1"], ["", "head", "ray://head:10001"]),
        ("continuation", [0.001, 0.999], [0, 1, 0.0, 1.0]),
        ("tolerance", [1e-9], [0, 1]),
        ("structural_rate", [0, 1], [-0.01, 1.01]),
        ("structural_share", [0, 1], [1.01]),
        ("negatives", [0, 50], [float("inf")]),
        ("lambda1", [0, 0.1], [-0.1, 1.1]),
        ("dropout", [0, 0.95], [1]),
        ("learning_rate", [1e-9], [0, float("inf")]),
        ("seed", [0, 2**63 - 1], [-1, 2**63]),
        ("device", ["cpu", "cuda", "cuda:1", "mps"], ["", "CPU", "cuda:", "../x"]),
    ],
)
def test_ends_of_ranges_are_where_they_are_said_to_be(name, inside, outside):
    for value in inside:
        assert getattr(Config(**{name: value}).check(), name) == value
    for value in outside:
        with pytest.raises(ParameterError, match=rf"^{name} must .*; got {value!r}$"):
            Config(**{name: value}).check()


def test_every_wrong_setting_is_listed_at_once():
    with pytest.raises(ParameterError) as caught:
        Config(dim=0, structural_rate=2, activation="sin", lambda1=0.7, lambda2=0.7, seed="x").check()
    lines = str(caught.value).split("\n")
    assert [line.split(" ")[0] for line in lines] == [
        "dim",
        "seed",
        "activation",
        "structural_rate",
        "lambda1",
    ]
    assert lines[-1] == (
        "lambda1 + lambda2 must be at most 1, the rest weighs the cross terms; got 0.7 + 0.7"
    )


def test_weights_that_leave_nothing_for_the_cross_terms_pass():
    assert Config(lambda1=0.7, lambda2=0.3).check().lambda1 == 0.7
    assert Config(lambda1=0.9, lambda2=0.1).check().lambda2 == 0.1


def test_numpy_numbers_become_plain_ones():
    given = Config(
        dim=np.int64(8), steps=np.uint8(3), continuation=np.float32(0.5), activation=np.str_("relu")
    )
    checked = given.check()
    assert checked == Config(dim=8, steps=3, continuation=0.5, activation="relu")
    assert json.loads(json.dumps(checked.to_json())) == asdict(checked)
    assert type(Config(dim=8.0).check().dim) is int
    assert type(Config(negatives=2).check().negatives) is float


def test_settings_are_frozen():
    with pytest.raises(AttributeError):
        Config().dim = 3
