"""Settings and their ranges."""

import json
from dataclasses import fields

import numpy as np
import pytest

from spinegraph import Config
from spinegraph.config import PaperConfig
from spinegraph.errors import ParameterError

SETTINGS = [(kind, field.name) for kind in (Config, PaperConfig) for field in fields(kind)]
each_setting = pytest.mark.parametrize(
    ("kind", "name"), SETTINGS, ids=[f"{kind.__name__}.{name}" for kind, name in SETTINGS]
)


def test_the_defaults_pass_and_the_papers_values_are_its_own():
    assert Config().check() == Config()
    paper = PaperConfig(dim=128).check()
    assert (paper.structural_rate, paper.continuation, paper.walks, paper.walk_length) == (0.5, 0.5, 10, 40)
    assert (paper.lambda1, paper.lambda2, paper.dim) == (0.4, 0.2, 128)


def test_there_are_few_settings():
    assert len(fields(Config)) <= 25


@each_setting
@pytest.mark.parametrize(
    "value",
    [3.5j, [], {"x": 1}, object(), float("nan"), -1, np.zeros(2), "no such", 10**400],
    ids=["complex", "list", "dict", "object", "nan", "negative", "array", "words", "huge"],
)
def test_what_is_no_value_of_a_setting_is_named(kind, name, value):
    with pytest.raises(ParameterError, match=rf"^{name} must"):
        kind(**{name: value}).check()


@each_setting
def test_a_truth_value_is_no_number(kind, name):
    if name != "learning":
        with pytest.raises(ParameterError, match=rf"^{name} must"):
            kind(**{name: True}).check()


OPEN = ("threads", "patience", "address", "weights")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, name in SETTINGS if name not in OPEN])
def test_only_some_settings_may_be_none(kind, name):
    with pytest.raises(ParameterError, match=rf"^{name} must"):
        kind(**{name: None}).check()


@pytest.mark.parametrize(
    ("kind", "name", "inside", "outside"),
    [
        (Config, "dim", [1, 65536], [0, 65537, 1.5]),
        (Config, "k", [1, 4096], [0, 4097]),
        (Config, "training_nodes", [2], [1]),
        (Config, "threads", [None, 1, 1024], [0, 1025]),
        (
            Config,
            "address",
            [None, "auto", "local", "head:6379", "10.0.0.1:1"],
            ["", "head", "ray://head:10001"],
        ),
        (Config, "near", [0.001, 0.999], [0, 1, 0.0, 1.0]),
        (Config, "tolerance", [1e-9], [0, 1]),
        (Config, "learning", [True, False], [1, "yes"]),
        (Config, "seed", [0, 2**63 - 1], [-1, 2**63]),
        (Config, "device", ["cpu", "cuda", "cuda:1"], ["", "CPU", "cuda:", "gpu", "cpu:0"]),
        (Config, "parts", [("role",), ("content", "place", "role")], [(), "roles", ("role", "roles"), 3]),
        (
            Config,
            "weights",
            [None, {}, {"role": 0.0}, {"content": 1.0, "place": 2.0}],
            [
                {"roles": 1},
                {"role": -1},
                {"role": "2"},
                {"role": 10**400},
                {"content": 0, "place": 0, "role": 0},
                [1, 2],
            ],
        ),
        (PaperConfig, "local_walk_length", [2], [1]),
        (PaperConfig, "steps", [0], [-1]),
        (PaperConfig, "patience", [None, 1], [0]),
        (PaperConfig, "structural_rate", [0, 1], [-0.01, 1.01]),
        (PaperConfig, "negatives", [0, 50], [float("inf")]),
        (PaperConfig, "lambda1", [0, 0.1], [-0.1, 1.1]),
        (PaperConfig, "dropout", [0, 0.95], [1]),
        (PaperConfig, "learning_rate", [1e-9], [0, float("inf")]),
    ],
)
def test_ends_of_ranges_are_where_they_are_said_to_be(kind, name, inside, outside):
    for value in inside:
        assert getattr(kind(**{name: value}).check(), name) == value
    for value in outside:
        with pytest.raises(ParameterError, match=rf"^{name} must .*; got ") as caught:
            kind(**{name: value}).check()
        assert str(caught.value).endswith(f"; got {value!r}")


def test_parts_come_in_their_own_order():
    assert Config(parts=["role", "content", "role"]).check().parts == ("content", "role")
    assert Config(parts="place").check().parts == ("place",)


def test_every_wrong_setting_is_listed_at_once():
    with pytest.raises(ParameterError) as caught:
        PaperConfig(dim=0, structural_rate=2, activation="sin", lambda1=0.7, lambda2=0.7, seed="x").check()
    lines = str(caught.value).split("\n")
    assert [line.split(" ")[0] for line in lines] == [
        "dim",
        "seed",
        "activation",
        "structural_rate",
        "lambda1",
    ]
    assert lines[-1] == (
        "lambda1 + lambda2 must be at most 1, since the rest weights the cross terms; got 0.7 + 0.7"
    )


def test_weights_that_leave_nothing_for_the_cross_terms_pass():
    assert PaperConfig(lambda1=0.7, lambda2=0.3).check().lambda1 == 0.7
    assert PaperConfig(lambda1=0.9, lambda2=0.1).check().lambda2 == 0.1


def test_numpy_numbers_become_plain_ones():
    given = {"dim": np.int64(8), "k": np.uint8(3), "near": np.float32(0.5), "rpr_method": np.str_("walks")}
    checked = Config(**given, weights={"role": np.float32(2)}).check()
    assert checked == Config(dim=8, k=3, near=0.5, rpr_method="walks", weights={"role": 2.0})
    plain = json.loads(json.dumps(checked.to_json()))
    assert plain == {**checked.to_json(), "parts": ["content", "place", "role"]}
    assert type(Config(dim=8.0).check().dim) is int
    assert type(PaperConfig(negatives=2).check().negatives) is float


def test_settings_are_frozen():
    with pytest.raises(AttributeError):
        Config().dim = 3
