"""README, changelog and documentation: their code runs, and their values are the code's."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import spinegraph
from spinegraph.apps.cli.demo import NEXT_STEPS
from spinegraph.config import Config, PaperConfig

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
from play import PLAYED, SETTINGS, played  # noqa: E402
from refresh import parameters  # noqa: E402

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("*/*.md")),
]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def organisation(tmp_path, monkeypatch):
    """Work in a folder with the files that the pages speak of."""
    names = ["ann", "bob", "cy", "dan", "eve", "flo", "gus", "hal"]
    edges = [f"ann,{name}" for name in names[1:6]] + ["bob,cy", "dan,eve", "flo,gus", "gus,hal"]
    people = [f"{name},{'north' if i % 2 else 'south'},{25 + i}" for i, name in enumerate(names)]
    for file, lines in (("edges.csv", ["source,target", *edges]), ("people.csv", ["node,team,age", *people])):
        (tmp_path / file).write_text("\n".join(lines))
    (tmp_path / "later.csv").write_text("\n".join(["source,target", *edges, "ann,zed", "bob,zed"]))
    (tmp_path / "people_later.csv").write_text("\n".join(["node,team,age", *people, "zed,north,33"]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def code_of(page):
    return PYTHON.findall((ROOT / page).read_text())


def test_the_readmes_code_runs_and_is_the_demos(organisation):
    (code,) = code_of("README.md")
    assert code == NEXT_STEPS
    exec(code, {})
    assert (organisation / "report.html").exists()
    assert len(spinegraph.SPINE.load("model").embeddings_) == 8


@pytest.mark.parametrize("page", ["index", "which_part", "coming_from", "graphs", "features", "report"])
def test_the_code_of_a_page_runs_from_top_to_bottom(page, organisation):
    world: dict[str, object] = {}
    blocks = code_of(f"docs/{page}.md")
    assert blocks
    for block in blocks:
        exec(block, world)


@pytest.mark.parametrize("page", PLAYED)
def test_a_page_shows_what_its_code_prints(page, tmp_path, monkeypatch):
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    text = (ROOT / page).read_text()
    assert text == played(text, tmp_path), f"run python docs/play.py {page}"


def test_every_tutorial_is_played():
    tutorials = {f"docs/tutorials/{path.name}" for path in (ROOT / "docs" / "tutorials").glob("*.md")}
    assert tutorials <= set(PLAYED)


def test_the_parameters_page_lists_every_setting_with_its_values():
    page = (ROOT / "docs" / "parameters.md").read_text()
    for config, text in zip((Config, PaperConfig), page.split("## SPINE.paper"), strict=True):
        listed = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
        assert listed == [field.name for field in fields(config)]
    assert page == parameters(page), "run python docs/refresh.py"


def test_the_api_pages_have_every_public_name_and_examples():
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    assert {f"docs/api/{page.name}" for page in pages} <= set(PLAYED)
    text = "".join(page.read_text() for page in pages)
    modules = {
        "datasets": "graph.datasets",
        "errors": "errors",
        "made": "graph.synthetic",
        "plot": "analysis.plots",
    }
    code = "".join(block for page in pages for block in code_of(page))
    for name in set(spinegraph.__all__) - {"__version__"}:
        assert f":: spinegraph.{modules.get(name, name)}\n" in text, name
        assert name in ("datasets", "Generator") or re.search(rf"\b(sg|spinegraph)\.{name}\b", code), name


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert next(version for version in versions if version != "Unreleased") == spinegraph.__version__


def test_the_citation_names_this_version_and_its_day():
    citation = (ROOT / "CITATION.cff").read_text()
    (day,) = re.findall(
        r"^## \[.+?\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )[:1]
    assert f"\nversion: {spinegraph.__version__}\n" in citation
    assert f"\ndate-released: {day}\n" in citation


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert link.startswith("https://") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_place_on_somebodys_machine(page):
    assert not re.search(r"(?<![\w.])/(home|root|work|Users|tmp)/", page.read_text())


def test_the_documentation_builds_without_a_warning(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", ROOT / "docs", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (run.returncode, run.stderr) == (0, "")
    index = (tmp_path / "index.html").read_text()
    assert "largest class" in index
    assert "sg.SPINE" in re.sub(r"<[^>]+>", "", index)
