"""Coverage-guided fuzzing of everything that reads what others wrote: ``python -m fuzz --seconds 20``.

Each target gets its share of the time in a process of its own. What it found is under the folder's
``TARGET/found``; a copy of such a file under ``tests/faults/corpus/TARGET`` is a test from then on.
"""

import argparse
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzz import targets

NAMES = sorted(module.name for module in pkgutil.iter_modules(targets.__path__))
# Those that fit no model first, so that they begin at once.
_LIGHT = [
    *("edges_text", "encoder_state", "graph_arrays", "graph_store", "graphml", "npz_arrays", "npz_bytes"),
    *("old_pickles", "parquet_files", "tables", "vectors"),
]
_LIMITS = [
    *("-rss_limit_mb=4096", "-max_len=65536", "-print_final_stats=1", "-verbosity=0"),
    *("-timeout=300", "-report_slow_units=300"),  # seconds; a busy machine is no finding
]
_QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def fuzz(name: str, folder: Path, limit: str, seed: int = 0) -> dict[str, object]:
    """Run one target up to one of libFuzzer's limits and return what came of it."""
    started = time.monotonic()
    command = [sys.executable, "-m", "fuzz.one", name, str(folder / name), limit, f"-seed={seed}", *_LIMITS]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **_QUIET}, check=False)
    text = done.stderr.decode(errors="replace")
    counted = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    found = sorted(file.name for file in (folder / name / "found").glob("*"))
    if done.returncode or found or counted is None:
        print(text[-6000:], file=sys.stderr)
    return {
        "target": name,
        "inputs": int(counted[1]) if counted else 0,
        "seconds": round(time.monotonic() - started, 1),
        "ended": done.returncode,
        "found": found,
    }


def main() -> int:
    """Run the targets asked for and return 0 if none of them found anything."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="for all targets together")
    parser.add_argument("--runs", type=int, help="inputs for each target instead: the same ones every time")
    parser.add_argument("--light", action="store_true", help="only the targets that begin at once")
    parser.add_argument("--target", action="append", choices=NAMES, help="only this one; repeatable")
    parser.add_argument("--folder", type=Path, help="keeps corpora and findings; a temporary one by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="add the counts to this JSON file")
    given = parser.parse_args()
    chosen = given.target or (_LIGHT if given.light else NAMES)
    seconds = f"-max_total_time={max(1, round(given.seconds / len(chosen)))}"
    limit = seconds if given.runs is None else f"-runs={given.runs}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        rows = []
        for name in chosen:
            rows.append(fuzz(name, folder, limit, given.seed))
            print(
                "{target:16} {inputs:>9,} inputs in {seconds:>6} s, found {found}".format(**rows[-1]),
                flush=True,
            )
            if given.output is not None:
                _add(given.output, rows[-1])
    print(f"{sum(row['inputs'] for row in rows):,} inputs")
    return int(any(row["found"] or row["ended"] for row in rows))


def _add(output: Path, row: dict[str, object]) -> None:
    """Add one run's counts to those of earlier runs."""
    whole = json.loads(output.read_text()) if output.exists() else {}
    before = whole.setdefault(row["target"], {"inputs": 0, "seconds": 0.0, "runs": 0})
    before["inputs"] += row["inputs"]
    before["seconds"] = round(before["seconds"] + row["seconds"], 1)
    before["runs"] += 1
    output.write_text(json.dumps(dict(sorted(whole.items())), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
