"""At least one cell of each item is measured for real, stored, printed and drawn."""

import json

import pytest
from paper.cells import Cell, Cells
from paper.items import case_study, item
from paper.names import NAMES
from paper.output import write_item
from paper.page import page
from paper.run import fill, missing
from paper.tables import markdown, paired, summary
from typer.testing import CliRunner

from spinegraph.apps.cli.app import app
from spinegraph.errors import ParameterError
from spinegraph.graph import datasets


def has_data():
    try:
        datasets.load("cora", download=False)
    except OSError:
        return False
    return True


needs_data = pytest.mark.skipif(not has_data(), reason="the paper's networks are not in SPINEGRAPH_DATA")


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("name", NAMES)
def test_a_cell_of_each_item_is_measured_stored_and_printed(name, tmp_path, monkeypatch):
    monkeypatch.setattr(case_study, "_PEERS", ("HOPE", "raw features"))  # the item's own take a minute
    (cell,) = item(name).cells("smoke")
    assert fill(tmp_path, [cell]) == 1
    assert fill(tmp_path, [cell]) == 0
    assert missing(tmp_path, [cell]) == []
    if cell.case in item(name).cases:
        files = write_item(item(name), tmp_path)
        assert all(file.stat().st_size > 100 for file in files)
        assert cell.method in (tmp_path / f"{name}.md").read_text()
        assert json.loads((tmp_path / f"{name}.json").read_text())["rows"]


@pytest.mark.data
@needs_data
def test_the_command_goes_on_where_it_was(tmp_path):
    arguments = [
        "reproduce",
        "table1",
        "--quick",
        "--methods",
        "HOPE",
        "--cases",
        "cora",
        "--out",
        str(tmp_path),
    ]
    first = CliRunner().invoke(app, [*arguments, "--json"])
    assert first.exit_code == 0, first.output
    stored = Cells(tmp_path).seconds("table1", "cora", "HOPE")
    again = CliRunner().invoke(app, arguments)
    assert Cells(tmp_path).seconds("table1", "cora", "HOPE") == stored
    assert "| HOPE |" in again.output
    assert "67.2" in again.output  # the paper's


def test_the_command_says_what_it_knows(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "table7", "--out", str(tmp_path)])
    assert result.exit_code == 2
    none = CliRunner().invoke(app, ["reproduce", "table1", "--methods", "spine", "--out", str(tmp_path)])
    assert none.exit_code == 1
    assert "no cell of table1 at this level has --methods spine" in none.output
    both = CliRunner().invoke(app, ["reproduce", "all", "--quick", "--full", "--out", str(tmp_path)])
    assert both.exit_code == 1
    with pytest.raises(ParameterError, match="table1"):
        item("table7")


def test_paper_and_ours_stand_side_by_side(tmp_path):
    cells, table = Cells(tmp_path), item("table1")
    for seed, value in enumerate((0.83, 0.84)):
        for name, change in (("SPINE", 0.0), ("GraphSAGE", -0.02 - 0.001 * seed)):
            version = table.version("cora", name)
            cells.write(Cell("table1", "cora", name, seed), version, {"accuracy": value + change}, 1.0)
    text = markdown(table, cells)
    assert "| SPINE | 72.6 |  | 83.7 | **83.5 ± 0.7 (2)** | 78.5 |  |" in text
    (found,) = [entry for entry in paired(table, cells, table.measures[0]) if entry["case"] == "cora"]
    assert (found["row"], found["verdict"], found["seeds"]) == ("GraphSAGE", "above", 2)
    assert len(summary(table, cells)["rows"]) == 2


def test_an_exact_mirror_is_no_ratio_and_a_figure_no_number(tmp_path):
    cells, mirror, ppi = Cells(tmp_path), item("mirror"), item("ppi")
    cells.write(Cell("mirror", "equal", "T F", 0), mirror.version("equal", "T F"), {"ratio": None}, 1.0)
    cells.write(Cell("ppi", "PPI", "Random", 0), ppi.version("PPI", "Random"), {"micro": 0.4}, 1.0)
    assert "| T F | exact |  |" in markdown(mirror, cells)
    assert "| Random | figure only | 40.0 (1) | figure only |  |" in markdown(ppi, cells)


def test_the_page_holds_every_item(tmp_path):
    text = page(tmp_path, "../results")
    assert all(item(name).title in text for name in NAMES)
    assert "| `table2` |" in text
