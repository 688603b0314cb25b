"""A newcomer's path, timed: a clone, the demo's report, vectors of one's own CSV, an answer from the service.

Run with ``python benchmarks/newcomer.py``: plain Python, since a newcomer has nothing else. It all happens in
a new folder that is deleted afterwards; nothing compiled or installed before is used, but pip may take
packages from its cache. Writes ``benchmarks/results/newcomer.json`` and the table of docs/quickstart.md.

``--installed PYTHON`` instead tries what that Python's environment has installed, warnings being errors, and
keeps what it ran with in ``benchmarks/results/installed.json`` and in the other table of that page.
"""

import argparse
import http.client
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "newcomer.json"
INSTALLED = RESULTS.with_name("installed.json")
PAGE, MARK = ROOT / "docs" / "quickstart.md", "newcomer's path"
PACKAGES = ("numpy", "scipy", "numba", "torch")


def run(*command, cwd, **extra):
    """Run a command as a newcomer would, with extra variables, and stop here if it fails."""
    # What this machine has set up for compiled code and data is not there for a newcomer.
    plain = {
        name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "VIRTUAL_ENV")
    }
    done = subprocess.run(command, cwd=cwd, env=plain | extra, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def write_own_network(folder):
    """Write what a user may have: ties and people as CSV, and both again a month later."""
    draw = random.Random(0)
    teams = ["sales", "research", "support", "finance"]
    people = [(f"person{i}", teams[i % 4], draw.randint(22, 64)) for i in range(400)]
    late = [(f"new{i}", teams[i % 4], draw.randint(22, 64)) for i in range(20)]
    ties = set()
    for name, team, _ in people + late:
        same = [other for other, where, _ in people if where == team and other != name]
        ties |= {(name, other) for other in draw.sample(same, 4)}
        ties.add((name, draw.choice([other for other, _, _ in people if other != name])))
    early = sorted(tie for tie in ties if not tie[0].startswith("new"))
    for edges, table, names, pairs in (
        ("edges.csv", "people.csv", people, early),
        ("later.csv", "people_later.csv", people + late, sorted(ties)),
    ):
        (folder / edges).write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs))
        (folder / table).write_text("node,team,age\n" + "".join(f"{n},{t},{a}\n" for n, t, a in names))


def ask_the_service(spine, folder):
    """Start the service, ask for look-alikes, store somebody new; return the answers."""
    command = [spine, "serve", "model", "--store", "changes", "--port", "0", "--json"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, cwd=folder, **quiet) as service:
        try:
            about = json.loads(service.stdout.readline())
            token = Path(folder, about["token_file"]).read_text().strip()
            asked = http.client.HTTPConnection(about["url"].split("//")[1].rstrip("/"), timeout=60)
            row = {"team": "research", "age": 31}
            body = {"name": "zoe", "edges": ["person1", "person5"], "features": row}
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            similar = _answer(asked, "GET", "/v1/nodes/person1/similar?n=3", None, {})
            return similar, _answer(asked, "POST", "/v1/nodes", json.dumps(body), headers)
        finally:
            service.send_signal(signal.SIGTERM)


def _answer(asked, *request):
    asked.request(*request)
    return json.load(asked.getresponse())


def walk(folder, python):
    """Go the whole path and return [(what a newcomer does, seconds)]."""
    steps, clone, own = [], folder / "spinegraph", folder / "own"
    own.mkdir()
    write_own_network(own)

    def step(what, do):
        started = time.perf_counter()
        found = do()
        steps.append((what, round(time.perf_counter() - started, 1)))
        print(f"{steps[-1][1]:7.1f} s  {what}", flush=True)
        return found

    step("`git clone`", lambda: run("git", "clone", "--quiet", ROOT, clone, cwd=folder))
    make = ("make", f"PYTHON={python}")
    step("`make demo`: environment and packages", lambda: run(*make, ".venv/core.stamp", cwd=clone))
    step("the demo itself, to its report", lambda: run(*make, "demo", cwd=clone))
    assert (clone / "demo" / "report.html").stat().st_size > 100_000
    spine = clone / ".venv" / "bin" / "spine"
    describe = ("data", "describe", "edges.csv", "--features", "people.csv")
    step("`spine data describe` of one's own CSV", lambda: run(spine, *describe, cwd=own))
    fit = ("fit", "edges.csv", "--features", "people.csv", "-o", "model")
    step("`spine fit`: vectors of 400 people", lambda: run(spine, *fit, cwd=own))
    embed = ("embed", "model", "later.csv", "--features", "people_later.csv", "-o", "vectors.parquet")
    step("`spine embed`: 20 more, a month later", lambda: run(spine, *embed, cwd=own))
    assert (own / "vectors.parquet").exists()
    pip = (clone / ".venv" / "bin" / "pip", "install", "--quiet", "--constraint", "constraints.txt")
    step("`pip install '.[serve,search]'`", lambda: run(*pip, ".[serve,search]", cwd=clone))
    similar, stored = step("`spine serve`, a question and a new node", lambda: ask_the_service(spine, own))
    assert len(similar["matches"]) == 3, similar
    assert stored["nodes"][0]["name"] == "zoe", stored
    return steps


def try_installed(folder, python):
    """Try demo, command and library as installed for a Python; return what they ran with."""
    write_own_network(folder)
    spine = Path(python).parent / "spine"
    ask = "import sys, importlib.metadata as m; print(sys.version.split()[0], *map(m.version, sys.argv[1:]))"
    found = dict(
        zip(("python", *PACKAGES), run(python, "-c", ask, *PACKAGES, cwd=folder).split(), strict=True)
    )
    started = time.perf_counter()
    for command in (
        ("demo",),
        ("fit", "edges.csv", "--features", "people.csv", "-o", "model"),
        ("embed", "model", "later.csv", "--features", "people_later.csv", "-o", "vectors.parquet"),
        ("similar", "model", "person1"),
        ("explain", "model", "person1", "person5"),
        ("roles", "model"),
    ):
        said = run(spine, *command, cwd=folder, PYTHONWARNINGS="error")
        if command == ("demo",):
            found["demo_seconds"] = round(time.perf_counter() - started, 1)
            found["demo"] = next(
                line.split()[1:] for line in said.splitlines() if line.split()[:1] == ["SPINE"]
            )
    lines = (ROOT / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    assert "ann" in lines
    run(python, "-W", "error", "-c", lines.replace('"ann"', '"person1"'), cwd=folder)
    return found


def installed_table(rows):
    """Return what the package was tried with as a table of Markdown."""
    yield "| Python | NumPy | SciPy | Numba | PyTorch | SPINE's row of the demo | demo, s |"
    yield "|---|---|---|---|---|---|--:|"
    for row in rows:
        versions = " | ".join(row[name] for name in ("python", *PACKAGES))
        yield f"| {versions} | {', '.join(row['demo'])} | {row['demo_seconds']:.0f} |"


def table(found):
    """Return the path as a table of Markdown, with the sum so far."""
    yield "| step | seconds | so far |"
    yield "|---|--:|--:|"
    passed = 0.0
    for what, seconds in found["steps"]:
        passed += seconds
        yield f"| {what} | {seconds:.1f} | {int(passed // 60)}:{int(passed % 60):02d} |"
    load, cores = found["machine"]["load_average_at_start"], found["machine"]["cores"]
    if load > cores / 2:
        yield ""
        yield f"The {cores} cores were busy with other work, load average {load:g}; quiet ones are quicker."


def write_page(lines, mark):
    """Put a table into docs/quickstart.md, between its marks."""
    before, _, rest = PAGE.read_text().partition(f"<!-- {mark} -->\n")
    _, _, after = rest.partition(f"<!-- end of {mark} -->")
    text = "".join(f"{line}\n" for line in lines)
    PAGE.write_text(f"{before}<!-- {mark} -->\n{text}<!-- end of {mark} -->{after}")


def note_installed(python):
    """Try an environment and write its row; one row for each set of versions."""
    rows = json.loads(INSTALLED.read_text()) if INSTALLED.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        found = try_installed(Path(folder), python)
    versions = ("python", *PACKAGES)
    rows = [row for row in rows if any(row[name] != found[name] for name in versions)] + [found]
    rows.sort(
        key=lambda row: [[int(part) for part in row[name].split("+")[0].split(".")] for name in versions]
    )
    INSTALLED.write_text(json.dumps(rows, indent=2) + "\n")
    write_page(installed_table(rows), "installed")
    print("\n".join(installed_table(rows)))


def main():
    """Walk the path once and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", default=shutil.which("python3"), help="the newcomer's Python")
    parser.add_argument("--show", action="store_true", help="rewrite the page from the file alone")
    parser.add_argument("--installed", metavar="PYTHON", help="try what this Python has installed")
    arguments = parser.parse_args()
    if arguments.installed:
        note_installed(arguments.installed)
        return
    if not arguments.show:
        machine = {
            "cores": os.cpu_count(),
            "load_average_at_start": round(os.getloadavg()[0], 2),
            "machine": platform.machine(),
            "python": run(arguments.python, "--version", cwd=ROOT).strip(),
        }
        with tempfile.TemporaryDirectory() as folder:
            steps = walk(Path(folder), arguments.python)
        RESULTS.write_text(json.dumps({"machine": machine, "steps": steps}, indent=2) + "\n")
    found = json.loads(RESULTS.read_text())
    write_page(table(found), MARK)
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
