"""Run benchmarks by name, all of them by default: ``python -m benchmarks [name ...]``.

Each is a module of its own with settings of its own; ``python -m benchmarks.NAME --help`` names them.
"""

import argparse
import subprocess
import sys
import time

BENCHMARKS = {
    "reading": "edge lists beside pandas and NetworkX",
    "structure": "walks, push, the structural stage and DTW",
    "explorer": "the explorer's map in a browser, frames a second",
    "fit_speed": "fitting beside GraphSAGE and Deep Graph Infomax",
    "peers": "SPINE beside other packages, each in an environment of its own",
    "growth": "made networks up to 3,000,000 nodes: time, memory, growth",
    "postgres": "vectors into PostgreSQL, and look-alikes by SQL",
    "service": "the service under load, and its memory",
    "transform_speed": "unseen nodes, a whole network and one by one",
}


def main():
    """Run the chosen benchmarks one after the other, each in a process of its own."""
    known = "\n".join(f"  {name:<17}{what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help="which to run")
    names = parser.parse_args().names or BENCHMARKS
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
