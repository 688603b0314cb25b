"""Cells are kept whole, by version, whoever writes them."""

import json
from multiprocessing import get_context

import pytest
from paper.cells import Cell, Cells
from paper.item import Item, Measure
from paper.run import bundles

from spinegraph.errors import GraphFormatError

CELL = Cell("table2", "cora 20", "SPINE (paper's settings)", 3)


def write_some(folder, first):
    for seed in range(first, first + 20):
        Cells(folder).write(Cell("a", "b", "c", seed), "1", {"value": seed}, 0.0)


def test_a_cell_comes_back_only_by_its_version(tmp_path):
    cells = Cells(tmp_path)
    assert cells.read(CELL, "1") is None
    cells.write(CELL, "1", {"accuracy": 0.5}, 1.0)
    assert cells.read(CELL, "1") == {"accuracy": 0.5}
    assert cells.read(CELL, "2") is None
    cells.write(Cell(CELL.item, CELL.case, CELL.method, 4), "2", {"accuracy": 0.6}, 1.0)
    assert cells.read(CELL, "1") is None
    assert cells.seeds(CELL.item, CELL.case, CELL.method) == {4: {"accuracy": 0.6}}


def test_two_processes_lose_nothing(tmp_path):
    writers = [get_context("spawn").Process(target=write_some, args=(tmp_path, first)) for first in (0, 20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert Cells(tmp_path).seeds("a", "b", "c") == {seed: {"value": seed} for seed in range(40)}


def test_files_are_json_of_one_line_a_seed(tmp_path):
    for seed in (10, 2):
        Cells(tmp_path).write(Cell("a", "b", "c", seed), "1", {"value": seed}, 0.0)
    (file,) = tmp_path.rglob("*.json")
    assert list(json.loads(file.read_text())["seeds"]) == ["2", "10"]
    assert len(file.read_text().splitlines()) == 4


def test_the_first_seed_of_everything_comes_first():
    item = Item(
        "x", "X", ("a", "b"), ("HOPE", "SPINE", "T F"), lambda *_: {}, (Measure("m", "m"),), is_drawn=False
    )
    cells = item.cells("full")
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)
    count = {name: sum(cell.method == name for cell in cells) for name in item.rows}
    assert count == {"HOPE": 2, "SPINE": 20, "T F": 2}
    assert sum(map(len, bundles(cells))) == len(cells)
    assert len(item.cells("smoke")) == 1


def test_a_file_that_is_no_cell_is_named_with_a_way_out(tmp_path):
    Cells(tmp_path).write(Cell("table1", "cora", "HOPE", 0), "1", {"accuracy": 0.5}, seconds=1.0)
    (file,) = tmp_path.rglob("HOPE.json")
    file.write_text('{"version": "1", "seeds": {')
    with pytest.raises(
        GraphFormatError, match=r"HOPE.json: is no cell of results .*delete it, and it is measured"
    ):
        Cells(tmp_path).seeds("table1", "cora", "HOPE")
