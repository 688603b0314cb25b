"""``spine demo`` as a user runs it, and the same table in the documentation."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from spinegraph.apps.cli import demo as computing
from spinegraph.apps.cli import main
from spinegraph.apps.cli.demo import NEXT_STEPS, OWN_DATA

ROOT = Path(__file__).parents[2]
SPINE = str(Path(sys.executable).with_name("spine"))
NUMBER = r"\*{0,2}(\d+\.\d|cannot)\*{0,2}"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What the demo printed, here or in the folder where ``make test`` has just run it, and what it wrote."""
    if kept := os.environ.get("SPINEGRAPH_DEMO"):
        folder = Path(kept)
        run = SimpleNamespace(
            stdout=(folder / "out.txt").read_text(), stderr=(folder / "err.txt").read_text()
        )
    else:
        folder = tmp_path_factory.mktemp("demo")
        run = subprocess.run([SPINE, "demo"], capture_output=True, text=True, timeout=600, cwd=folder)
        assert run.returncode == 0, run.stderr
    assert sorted(file.name for file in (folder / "demo").rglob("*.*")) == [
        "config.json",
        "graph.safetensors",
        "model.safetensors",
        "place.safetensors",
        "report.html",
        "vectors.safetensors",
    ]
    run.folder = folder / "demo"
    return run


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as quicker:
        quicker.setattr(computing, "_FOLDS", 2)
        return computing.run_demo(lambda *moment: None, communities=3, size=20, dim=8)


def rows(text, between):
    """Numbers of each line that ends in four of them, by the words before."""
    line = re.compile(rf"^\W*(\w.*?)\W*{between.join(['', *[NUMBER] * 4])}\W*$", re.MULTILINE)
    return {
        found[0]: [None if value == "cannot" else float(value) for value in found[1:]]
        for found in line.findall(text)
    }


def test_it_ends_well_and_reports_stages_apart_from_results(ran):
    stages = [line.split(" s  ")[1] for line in ran.stderr.splitlines()]
    assert stages[0] == "making two organisations"
    assert "SPINE: learning from hidden links" in stages
    assert not set(stages) & set(ran.stdout.splitlines())
    assert "\x1b" not in ran.stdout + ran.stderr


def test_spine_knows_departments_and_roles_where_words_and_degrees_know_one(ran):
    found = rows(ran.stdout, r"\s+")
    spine, words, degree, largest = (
        found[name] for name in ("SPINE", "plain columns", "log degree", "largest class")
    )
    for unseen in (0, 1):
        assert spine[unseen] > words[unseen] + 10
        assert words[2 + unseen] < largest[2 + unseen] + 2
    assert spine[1] > degree[1] + 50
    assert min(spine[2:]) > 80
    content, role = (found[f"SPINE, {part} alone"] for part in ("content", "role"))
    assert min(content[:2]) > 95
    assert min(role[2:]) > max(degree[2:])
    node2vec = found["node2vec"]
    assert node2vec[1] is node2vec[3] is None
    assert node2vec[0] > 90
    assert found["spectral"][1] is found["SPINE, place alone"][1] is None
    others = ["plain columns", "columns + hop means", "smoothed columns", "structural columns", "spectral"]
    assert [*found][4:11] == [*others, "node2vec", "log degree"]
    assert "zero in the unseen one" in " ".join(ran.stdout.split())


def test_the_first_page_shows_the_same_table(ran):
    printed = rows(ran.stdout, r"\s+")
    page = rows((ROOT / "docs" / "index.md").read_text(), r"\s*\|\s*")
    assert list(page) == list(printed)
    for name, values in printed.items():
        # Sums round differently between machines; a person more or less is 0.2.
        assert page[name] == pytest.approx(values, abs=1.5), f"{name}: run python docs/refresh.py"


def test_it_names_three_look_alikes_by_each_part_and_what_to_try_next(ran):
    alike = re.findall(r"^  [01]\.\d\d  \w+ \w+, (?:leader|bridge|member|fringe), (\w+)", ran.stdout, re.M)
    assert len(alike) == 9
    assert len(set(alike[:3])) == 1
    for question in ("about the same things", "in the same place", "playing the same role"):
        assert f"\n  {question} (" in ran.stdout
    for line in [*OWN_DATA, *NEXT_STEPS.splitlines()]:
        assert f"  {line}\n" in ran.stdout


def test_it_writes_a_report_and_a_model_that_answers(ran):
    page = (ran.folder / "report.html").read_text(encoding="utf-8")
    assert "A synthetic organisation" in page
    assert "department" in page
    asked = re.search(r"spine (similar) (demo/model) '(.+)' (--by) (role)", ran.stdout).groups()
    run = subprocess.run([SPINE, *asked], capture_output=True, text=True, timeout=120, cwd=ran.folder.parent)
    assert run.returncode == 0, run.stderr


def test_a_folder_that_cannot_be_written_to_is_said_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    command = [SPINE, "demo", "-o", str(tmp_path / "file" / "demo")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    assert run.stderr.startswith(f"error: {tmp_path}/file/demo/report.html: cannot be written")


def test_no_line_is_wider_than_a_terminal(ran):
    assert max(len(line.rstrip()) for line in ran.stdout.splitlines()) <= 80


def test_json_holds_all_that_is_shown(small, monkeypatch, capsys):
    monkeypatch.setattr(computing, "run_demo", lambda progress, folder: small)
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--json"])
    assert ended.value.code in (0, None)
    found = json.loads(capsys.readouterr().out)
    assert found["scores"] == small["scores"]
    assert [len(found["alike"][part]) for part in ("content", "place", "role")] == [3, 3, 3]


def test_a_terminal_gets_colours():
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from spinegraph.apps.cli.options import shown_progress as p\n"
            "from rich.console import Console\n"
            "with p(Console(force_terminal=True, width=80)) as report:\n"
            "    report('reading', 1, 2)\n"
            "    report('training', 0, 0)",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "reading" in run.stdout
    assert "\x1b[" in run.stdout
