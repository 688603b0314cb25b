"""Stored results: versions, several processes, the format, the order of a run."""

import json

import pytest
from paper.cells import Cell, Item, Measure, Results
from paper.run import bundles

from command import Forked
from paper import methods
from spinegraph.errors import GraphFormatError

CELL = Cell("table2", "cora 20", "SPINE", 3)


def write_some(folder, first):
    for seed in range(first, first + 20):
        Results(folder).add(Cell("a", "b", "HOPE", seed), {"value": seed}, 0.0)


def test_raising_a_version_discards_the_cells_of_the_one_before(tmp_path, monkeypatch):
    assert not Results(tmp_path).has(CELL)
    Results(tmp_path).add(CELL, {"accuracy": 0.5}, 1.0)
    assert Results(tmp_path).seeds(CELL.item, CELL.case, CELL.method) == {3: {"accuracy": 0.5}}
    monkeypatch.setattr(methods, "SPINE_VERSION", methods.SPINE_VERSION + 1)
    assert not Results(tmp_path).has(CELL)
    Results(tmp_path).add(Cell(CELL.item, CELL.case, CELL.method, 4), {"accuracy": 0.6}, 1.0)
    monkeypatch.undo()
    assert not Results(tmp_path).has(CELL)


def test_two_processes_lose_nothing(tmp_path):
    with Forked(write_some, tmp_path, 0) as one, Forked(write_some, tmp_path, 20) as other:
        assert one.communicate(60) == other.communicate(60) == ("", "")
    assert Results(tmp_path).seeds("a", "b", "HOPE") == {seed: {"value": seed} for seed in range(40)}


def test_an_item_is_one_file_with_a_cell_a_line(tmp_path):
    for seed in (10, 2):
        Results(tmp_path).add(Cell("a", "b", "HOPE", seed), {"value": seed}, 0.0)
    (file,) = tmp_path.iterdir()
    assert [cell["seed"] for cell in json.loads(file.read_text())["cells"]] == [2, 10]
    assert len(file.read_text().splitlines()) == 4


def test_the_first_seed_of_everything_comes_first():
    item = Item(
        "x", "X", ("a", "b"), ("HOPE", "SPINE", "T F"), lambda *_: {}, (Measure("m", "m"),), is_random=False
    )
    cells = item.cells("full")
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)
    count = {name: sum(cell.method == name for cell in cells) for name in item.rows}
    assert count == {"HOPE": 2, "SPINE": 20, "T F": 2}
    assert sum(map(len, bundles(cells))) == len(cells)
    assert len(item.cells("smoke")) == 1


def test_a_damaged_file_is_named_with_a_way_out(tmp_path):
    (tmp_path / "table1.json").write_text('{"item": "table1", "cells": [')
    with pytest.raises(GraphFormatError, match=r"table1.json: is no file of results .*delete it to measure"):
        Results(tmp_path).seeds("table1", "cora", "HOPE")
