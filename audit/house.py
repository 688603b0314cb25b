"""Facts about the size and the words of the package, beside the goals of its design."""

import ast
import inspect
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "spinegraph"
# STYLE: words that cost a reader a second look.
_WORDS = re.compile(
    r"(?i:\b(?:anew|told|by heart|gone on|goes on with|whoever|in vain|nobody's affair|parted by)\b)"
    r"|_MOST_|_LEAST_"
)
# Prints the package's files that a small fit enters; what runs while a module is imported does not count.
_FIT = """
import csv, sys, threading
def write(name, *rows):
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows(rows)
write("edges.csv", ("source", "target"), *((f"n{i}", f"n{(i * i + 1) % 30}") for i in range(30)))
write("people.csv", ("node", "team", "age"), *((f"n{i}", "ab"[i % 2], 20 + i) for i in range(30)))
import spinegraph
files, importing = set(), 0
def enter(frame, event, argument):
    global importing
    if frame.f_code.co_name == "<module>":
        importing += (event == "call") - (event == "return")
    elif event == "call" and not importing:
        files.add(frame.f_code.co_filename)
threading.setprofile(enter)
sys.setprofile(enter)
model = spinegraph.SPINE(dim=8)
model.fit(spinegraph.read_graph("edges.csv", features="people.csv")).save("model")
sys.setprofile(None)
folder = spinegraph.__path__[0]
print(sum(file.startswith(folder) for file in files))
"""


def facts() -> list[tuple[str, str, str]]:
    """Return (fact, value now, goal) for each fact."""
    from spinegraph import SPINE

    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    lengths = [len(text.splitlines()) for text in texts.values()]
    source = "\n".join(texts.values())
    pages = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    )
    once = sum(len(found) == 1 for found in importers(texts).values()) / len(texts)
    return [
        ("Python modules in the package", str(len(texts)), "<= 130"),
        ("lines", f"{sum(lengths):,}", "<= 27,000"),
        ("modules with exactly one importer", f"{once:.0%}", "<= 15%"),
        ("median module, lines", f"{statistics.median(lengths):.0f}", ">= 120"),
        ("package files entered by read_graph, fit, save", str(files_entered()), "<= 35"),
        ("import layers", str(import_layers()), "<= 11"),
        ("settings of SPINE", str(len(inspect.signature(SPINE).parameters)), "<= 25"),
        ("'graph: Any' in src", str(source.count("graph: Any")), "0"),
        ("words to avoid in src", str(len(_WORDS.findall(source))), "<= 20"),
        ("words to avoid in README and docs", str(len(_WORDS.findall(pages))), "<= 20"),
        ("mean sentence in README and docs, words", f"{mean_sentence(pages):.1f}", "< 20"),
    ]


def mean_sentence(pages: str) -> float:
    """Return the mean number of words of a sentence of running text: no code, no tables, no titles."""
    prose = re.sub(r"```.*?```|<!--.*?-->|^(?:[#|]|!\[)[^\n]*", "\n\n", pages, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose)
    sentences = [
        each for block in blocks for each in re.split(r"(?<=[.!?])\s+", block) if len(each.split()) > 2
    ]
    return statistics.mean(len(sentence.split()) for sentence in sentences)


def importers(texts: dict[Path, str]) -> dict[str, set[str]]:
    """Return, for each module of the package, the modules that import it, also inside functions."""
    names = {_module_name(path): path for path in texts}
    found: dict[str, set[str]] = {name: set() for name in names}
    for importer, path in names.items():
        for node in ast.walk(ast.parse(texts[path])):
            for target in _imported(node, importer, is_package=path.name == "__init__.py"):
                while target and target not in names:  # a name of the module: the module itself
                    target = target.rpartition(".")[0]
                if target and target != importer:
                    found[target].add(importer)
    return found


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(node: ast.AST, importer: str, *, is_package: bool) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    parts = importer.split(".")
    base = parts[: len(parts) - node.level + is_package] if node.level else []
    module = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{module}.{alias.name}" for alias in node.names]


def files_entered() -> int:
    """Return how many of the package's files a small fit in a fresh process runs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-c", _FIT]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return int(run.stdout.split()[-1])


def import_layers() -> int:
    """Return the number of layers that import-linter checks."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return next(len(contract["layers"]) for contract in contracts if contract["type"] == "layers")


def print_facts() -> None:
    """Print every fact beside its goal."""
    for fact, value, goal in facts():
        print(f"{fact:<48} {value:>8}   goal {goal}")
