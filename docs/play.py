"""Run the code of a page from top to bottom, and write into the page what it prints.

Blocks of ``python`` run one after the other in one world, lines of ``sh`` blocks that begin with ``spine`` in
the same empty folder. A ``text`` block that follows such a block holds what it printed::

    python docs/play.py docs/tutorials/roles.md docs/explain.md

The tests play every page of ``PLAYED`` and compare.
"""

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLAYED = (
    "docs/quickstart.md",
    *(f"docs/api/{name}.md" for name in ("graphs", "model", "vectors", "answers", "structure", "errors")),
    "docs/explain.md",
    "docs/tutorials/roles.md",
    "docs/tutorials/tomorrow.md",
    "docs/tutorials/large.md",
)
BLOCK = re.compile(
    r"^```(?P<kind>python|sh)\n(?P<code>.*?)^```\n(?P<printed>\n```text\n.*?^```\n)?",
    re.MULTILINE | re.DOTALL,
)
SPINE = str(Path(sys.executable).with_name("spine"))
# One thread: two would wait for one another beside the tests' own.
SETTINGS = {"COLUMNS": "100", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def played(page: str, folder: Path) -> str:
    """Return a page after its code ran in a folder, with what was printed."""
    world: dict[str, object] = {}

    def run(block: re.Match[str]) -> str:
        told = _python(block["code"], world) if block["kind"] == "python" else _commands(block["code"])
        lines = "".join(f"{line.rstrip()}\n" for line in told.rstrip().splitlines())
        shown = f"\n```text\n{lines}```\n" if block["printed"] else ""
        return f"```{block['kind']}\n{block['code']}```\n{shown}"

    with chdir(folder):
        return BLOCK.sub(run, page)


def _python(code: str, world: dict[str, object]) -> str:
    with redirect_stdout(io.StringIO()) as told:
        exec(code, world)
    return told.getvalue()


def _commands(code: str) -> str:
    told = ""
    for line in code.replace("\\\n", " ").splitlines():
        command = shlex.split(line, comments=True)
        if command[:1] != ["spine"]:
            continue
        run = subprocess.run(
            [SPINE, *command[1:]], capture_output=True, text=True, timeout=300, env={**os.environ, **SETTINGS}
        )
        if run.returncode:
            raise RuntimeError(f"{line}\n{run.stderr}")
        told += run.stdout
    return told


if __name__ == "__main__":
    os.environ.update(SETTINGS)
    for name in sys.argv[1:] or PLAYED:
        page = ROOT / name
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(played(page.read_text(), Path(folder)))
