"""Run benchmarks by name, all of them by default: ``python -m benchmarks [name ...]``.

Each is a module of its own with settings of its own; ``python -m benchmarks.NAME --help`` names them.
``python -m benchmarks --pages`` measures nothing and writes all tables and figures of the pages again from
the stored results.
"""

import argparse
import subprocess
import sys
import time

BENCHMARKS = {
    "reading": "edge lists beside pandas and NetworkX",
    "structure": "walks, push, the structural stage and DTW",
    "explorer": "the explorer's map in a browser, frames a second",
    "peers": "SPINE beside other packages, each in an environment of its own",
    "growth": "made networks up to 3,000,000 nodes: time, memory, growth",
    "postgres": "vectors into PostgreSQL, and look-alikes by SQL",
    "service": "the service under load, and its memory",
    "versions": "this version beside 0.1.0: fit, one node, bulk, reading and the service",
}

# What writes tables and figures of the pages from stored results.
PAGES = (
    "benchmarks.accuracy --page",
    "benchmarks.held_out --page",
    "benchmarks.league --figure --page",
    "benchmarks.peers --draw",
    "benchmarks.growth --page",
    "benchmarks.gpu --page",
    "benchmarks.ray_scale --page",
    "benchmarks.reading --page",
    "benchmarks.service --table",
    "benchmarks.explorer --table",
    "benchmarks.planted --draw",
    "benchmarks.look_alikes --networks",
    "benchmarks.newcomer --show",
    "paper all --show --page docs/reproduce.md",
)


def write_pages():
    """Write all pages; stop at the first that fails."""
    for words in PAGES:
        print(f"python -m {words}", flush=True)
        subprocess.run([sys.executable, "-m", *words.split()], check=True, stdout=subprocess.DEVNULL)


def main():
    """Run the chosen benchmarks one after the other, each in a process of its own."""
    known = "\n".join(f"  {name:<17}{what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help="which to run")
    parser.add_argument("--pages", action="store_true", help="write the pages from stored results")
    given = parser.parse_args()
    if given.pages:
        write_pages()
        return
    names = given.names or BENCHMARKS
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    failed = []
    for name in names:
        print(f"== {name}: {BENCHMARKS[name]}", flush=True)
        started = time.perf_counter()
        code = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode
        print(f"== {name}: {time.perf_counter() - started:.0f} s{' FAILED' * bool(code)}\n", flush=True)
        failed += [name] * bool(code)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
