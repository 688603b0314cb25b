"""Growth: time and memory of made networks from 10,000 to 3,000,000 nodes, and of one beyond memory.

Run with ``python -m benchmarks.growth``; prints a table, writes ``benchmarks/results/growth.json``, the
figure ``docs/figures/growth`` and the tables of ``docs/scale.md``. ``--limit 1500M`` adds a run in less
memory than the store has, alone with ``--sizes --alone-nodes 0``; ``--page`` writes figure and tables.

- Networks: ``made.random_graph`` with 10 edges a node, degrees by a power law, 100 sparse feature columns.
  The store is written first; that time stands apart.
- Each size is a process of its own held to ``--threads`` threads, which has first fitted a network of 300
  nodes so that imports and compiled code are loaded. It opens the store, fits with defaults
  (``vectors=False``) and embeds all nodes into Parquet shards.
- Memory is the highest resident size of that process, libraries and mapped pages of the store included.
- The exponent is the slope of log seconds over log nodes, least squares: over all sizes, and from 100,000
  nodes on, where constant costs matter less.
- One more network has no features.
- The limited run embeds a store with 500 dense columns inside a memory cgroup smaller than its files, which
  are dropped from the system's cache before. Its nodes are numbered so that most neighbours are near (a link
  to a node at distance d or more has a chance of 8 / d), as crawls and registrations number them: with random
  numbers every look at a row would be a read from disk, once rows do not fit.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import describe, resident, thread_environment

SIZES = (10_000, 100_000, 1_000_000, 3_000_000)
RESULTS = Path(__file__).parent / "results" / "growth.json"
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
PAGE = FIGURES.parent / "scale.md"
_MARKS = "<!-- growth results -->", "<!-- end of growth results -->"


def near_graph(nodes):
    """Return a network of 10 edges a node whose neighbours have near numbers, with 500 dense columns."""
    import numpy as np

    import spinegraph as sg

    rng = np.random.default_rng(0)
    steps = np.minimum(8 / (1 - rng.random(10 * nodes)), nodes - 1).astype(np.int64)
    sources = np.repeat(np.arange(nodes), 10)
    features = rng.random((nodes, 500), dtype=np.float32)
    edges = np.stack([sources, (sources + steps) % nodes], axis=1)
    return sg.Graph.from_edges(edges, num_nodes=nodes, features=features)


def make(nodes, folder, *, is_near, features):
    """Make a network and write its store; print the seconds and the size of its files."""
    import spinegraph as sg

    started = time.perf_counter()
    if is_near:
        graph = near_graph(nodes)
    else:
        graph = sg.made.random_graph(nodes, 10, seed=0, features=features or None, heavy_tailed=True)
    made = time.perf_counter()
    sg.write_store(graph, folder)
    written = time.perf_counter()
    size = sum(file.stat().st_size for file in Path(folder).iterdir())
    facts = {"make_seconds": made - started, "write_seconds": written - made, "store_mb": size / 1e6}
    print(json.dumps({**facts, "edges": graph.num_edges}))


def fit_and_embed(store, model, output, threads):
    """Fit on a store and embed it into shards; print seconds by stage and the memory that it took."""
    import spinegraph as sg
    from spinegraph.engines.engine import embed_to_folder

    settings = {"threads": threads}
    small = sg.SPINE(**settings).fit(sg.made.random_graph(300, 3, features=20))
    embed_to_folder(small.generator_, small.graph_, f"{output}-small")
    before = resident("VmRSS")
    clock = Stages()
    graph = sg.open_store(store)
    fitted = sg.SPINE(**settings).fit(graph, vectors=False, progress=clock)
    clock("embedding", 0, 0)
    fit_seconds, fit_peak = clock.total(), resident("VmHWM")
    embed_to_folder(fitted.generator_, graph, output)
    clock("end", 0, 0)
    seconds = clock.total()
    fitted.save(model, data=False)
    facts = {"seconds": seconds, "fit_seconds": fit_seconds, "embed_seconds": seconds - fit_seconds}
    facts |= {"peak_mb": resident("VmHWM"), "fit_peak_mb": fit_peak, "before_mb": before}
    rate = len(graph) / (seconds - fit_seconds) / threads
    print(
        json.dumps({**facts, "stages": clock.stages, "embedded_per_core_second": rate, **structural(graph)})
    )


def structural(graph, count=20_000):
    """Return how many profiles one core computes in a second, on a sample of nodes."""
    import numpy as np

    from spinegraph.config import Config
    from spinegraph.parts.role import profile_of

    some = np.random.default_rng(0).permutation(len(graph))[:count]
    started = time.perf_counter()
    profile_of(graph, Config(threads=1), np.sort(some))
    return {"profiles_per_core_second": len(some) / (time.perf_counter() - started)}


class Stages:
    """Seconds between the first report of each stage and that of the next."""

    def __init__(self):
        self.stages, self._start, self._stage, self._begun = {}, time.perf_counter(), "opening", None
        self._begun = self._start

    def __call__(self, stage, done, total):
        if stage != self._stage:
            now = time.perf_counter()
            self.stages[self._stage] = self.stages.get(self._stage, 0) + now - self._begun
            self._stage, self._begun = stage, now

    def total(self):
        """Return the seconds since the start."""
        return time.perf_counter() - self._start


def embed_limited(store, output, threads):
    """Embed a store inside whatever limits this process; print seconds and memory."""
    import spinegraph as sg
    from spinegraph.engines.engine import embed_to_folder

    generator, graph = sg.SPINE(threads=threads).fit(near_graph(2_000)).generator_, sg.open_store(store)
    started = time.perf_counter()
    embed_to_folder(generator, graph, output)
    seconds = time.perf_counter() - started
    rate = len(graph) / seconds / threads
    print(json.dumps({"seconds": seconds, "peak_mb": resident("VmHWM"), "embedded_per_core_second": rate}))


def call(*arguments, threads, within=None):
    """Run a part of this benchmark in a process of its own, perhaps within a cgroup, and return its facts."""
    command = [sys.executable, "-m", "benchmarks.growth", *map(str, arguments)]
    enter = None if within is None else lambda: (within / "cgroup.procs").write_text(str(os.getpid()))
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=thread_environment(threads) | {"OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=enter,
    )
    if done.returncode:
        sys.exit(f"failed with code {done.returncode}: {' '.join(command)}")
    return json.loads(done.stdout.splitlines()[-1])


def memory_group(limit):
    """Make a memory cgroup below this process's own, version 2 or 1, and return its folder."""
    groups = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    second = Path("/sys/fs/cgroup", groups.get("", "/").lstrip("/"))
    first = Path("/sys/fs/cgroup/memory", groups.get("memory", "/").lstrip("/"))
    is_second = "memory" not in groups and (second / "cgroup.controllers").exists()
    folder = (second if is_second else first) / f"spinegraph-growth-{os.getpid()}"
    folder.mkdir()
    (folder / ("memory.max" if is_second else "memory.limit_in_bytes")).write_text(str(limit))
    return folder


def run_limited(nodes, limit, place, threads):
    """Embed a store of so many nodes in so little memory."""
    store, output = place / "near.store", place / "limited"
    made = call("--make", nodes, store, "--near", threads=threads)
    size = 0
    for file in store.iterdir():
        size += file.stat().st_size
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    group = memory_group(limit)
    try:
        found = call("--embed", store, output, "--threads", threads, threads=threads, within=group)
    finally:
        group.rmdir()
    parts = len(list(output.glob("*.parquet")))
    facts = {"nodes": nodes, "limit_mb": limit / 1e6, "store_mb": size / 1e6, "parts": parts}
    return {**made, **found, **facts}


def exponent(rows):
    """Return the slope of log seconds over log nodes."""
    import numpy as np

    if len(rows) < 2:
        return None
    return float(np.polyfit(*(np.log([row[key] for row in rows]) for key in ("nodes", "seconds")), 1)[0])


def show(row):
    """Print one row of the table."""
    print(
        f"{row['nodes']:>10,}{row['edges']:>12,}{row['seconds']:>9.1f} s{row['fit_seconds']:>9.1f} s"
        f"{row['embed_seconds']:>9.1f} s{row['peak_mb']:>9,.0f} MB{row['store_mb']:>9,.0f} MB"
        f"{row['profiles_per_core_second']:>10,.0f}{row['embedded_per_core_second']:>10,.0f}",
        flush=True,
    )


def measure(arguments):
    """Measure every size, and the limited run where one is asked for; return what the JSON holds."""
    rows, limited, alone = [], None, None
    place = Path(tempfile.mkdtemp(prefix="growth-", dir=arguments.place))
    print("     nodes       edges      total        fit      embed      peak       store  profiles  embedded")
    try:
        for nodes, columns in [*((nodes, 100) for nodes in arguments.sizes), (arguments.alone_nodes, 0)]:
            if not nodes:
                continue
            store, model, vectors = (
                place / f"{nodes}-{columns}.{what}" for what in ("store", "model", "out")
            )
            made = call("--make", nodes, store, "--columns", columns, threads=arguments.threads)
            fit = ("--fit", store, model, vectors, "--threads", arguments.threads)
            row = {"nodes": nodes, **made, **call(*fit, threads=arguments.threads)}
            show(row)
            shutil.rmtree(vectors)
            shutil.rmtree(store)
            if columns:
                rows.append(row)
            else:
                alone = row
        if arguments.limit:
            most = size_of(arguments.limit)
            limited = run_limited(arguments.limited_nodes, most, place, arguments.threads)
            print(
                f"{limited['nodes']:,} nodes, a store of {limited['store_mb']:,.0f} MB, within "
                f"{limited['limit_mb']:,.0f} MB: embedded in {limited['seconds']:.1f} s"
            )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    larger = [row for row in rows if row["nodes"] >= 100_000]
    found = {"rows": rows, "exponent": exponent(rows), "exponent_from_100k": exponent(larger)}
    return (found if rows else {}) | {"alone": alone, "limited": limited}


def size_of(text):
    """Return a size such as 400M in bytes."""
    return int(float(text[:-1]) * UNITS[text[-1]])


def block(found):
    """Return everything between the page's marks."""
    machine, rows = found["machine"], found["rows"]
    lines = [
        f"Seconds and MB, with {found['threads']} threads on {machine['cores']} cores "
        f"({machine['machine']}), Python {machine['python']}, "
        f"load {machine['load_average_at_start']} at the start.",
        "",
        "| nodes | edges | total | fit | embed | peak memory | store | writing the store "
        "| profiles per core-second | nodes embedded per core-second |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['nodes']:,} | {row['edges']:,} | {row['seconds']:,.1f} | {row['fit_seconds']:,.1f} "
        f"| {row['embed_seconds']:,.1f} | {row['peak_mb']:,.0f} | {row['store_mb']:,.0f} "
        f"| {row['write_seconds']:,.1f} | {row['profiles_per_core_second']:,.0f} "
        f"| {row['embedded_per_core_second']:,.0f} |"
        for row in rows
    ]
    if found["exponent"] is not None:
        later = found["exponent_from_100k"]
        more = f"; from 100,000 nodes on, to the power of {later:.2f}" if later is not None else ""
        lines += ["", f"Time grows with nodes to the power of {found['exponent']:.2f}{more}.", ""]
    lines += ["", *_stages(rows[-1]), ""]
    if found.get("alone"):
        one = found["alone"]
        lines += [
            f"Without features, {one['nodes']:,} nodes and {one['edges']:,} edges: fit "
            f"{one['fit_seconds']:,.1f} s, embed {one['embed_seconds']:,.1f} s, peak memory "
            f"{one['peak_mb']:,.0f} MB.",
            "",
        ]
    if found.get("limited"):
        one = found["limited"]
        lines += [
            f"Beyond memory: a store of {one['store_mb']:,.0f} MB ({one['nodes']:,} nodes, {one['edges']:,} "
            f"edges) is embedded within a limit of {one['limit_mb']:,.0f} MB in {one['seconds']:,.1f} s, "
            f"{one['embedded_per_core_second']:,.0f} nodes per core-second.",
            "",
        ]
    return "\n".join([*lines, "![Seconds and memory over nodes](figures/growth.svg)"])


def _stages(row):
    total = row["seconds"]
    shares = sorted(row["stages"].items(), key=lambda item: -item[1])
    listed = ", ".join(
        f"{stage} {seconds / total:.0%}" for stage, seconds in shares if seconds > 0.005 * total
    )
    return [f"Stages at {row['nodes']:,} nodes: {listed}."]


def draw(found):
    """Draw seconds and memory over nodes, both logarithmic, into docs/figures/growth.png and .svg."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 9, "svg.hashsalt": "growth", "svg.fonttype": "none"})
    nodes = [row["nodes"] for row in found["rows"]]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    for key, label, style in (
        ("seconds", "total", {"color": "#000000", "marker": "o", "linewidth": 2}),
        ("fit_seconds", "fit", {"color": "#0072B2", "marker": "s", "linestyle": "--"}),
        ("embed_seconds", "embed into shards", {"color": "#D55E00", "marker": "^", "linestyle": "-."}),
    ):
        left.plot(nodes, [row[key] for row in found["rows"]], label=label, **style)
    last = found["rows"][-1]
    line = [last["seconds"] * n / last["nodes"] for n in nodes]
    left.plot(nodes, line, color="#999999", linestyle=":", label="in proportion to nodes")
    left.set_ylabel("seconds")
    peak, store = ([row[key] for row in found["rows"]] for key in ("peak_mb", "store_mb"))
    right.plot(nodes, peak, color="#000000", marker="o", linewidth=2, label="peak memory")
    right.plot(nodes, store, color="#009E73", marker="v", linestyle="--", label="files of the store")
    right.axhline(6000, color="#999999", linestyle=":", label="6 GB")
    right.set_ylabel("MB")
    for panel in (left, right):
        panel.set(xscale="log", yscale="log", xlabel="nodes")
        panel.grid(alpha=0.25, which="major")
        panel.legend(frameon=False, fontsize=8)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / "growth.png", dpi=160)
    figure.savefig(FIGURES / "growth.svg", metadata={"Date": None})
    pyplot.close(figure)


def write_page(found):
    """Write the figure, and the tables between the page's marks."""
    draw(found)
    text = PAGE.read_text()
    before, rest = text.split(_MARKS[0], 1)
    after = rest.split(_MARKS[1], 1)[1]
    PAGE.write_text(f"{before}{_MARKS[0]}\n{block(found)}\n{_MARKS[1]}{after}")


def main():
    """Measure, print, write the JSON and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--make", nargs=2, metavar=("NODES", "STORE"), help=argparse.SUPPRESS)
    parser.add_argument("--fit", nargs=3, metavar=("STORE", "MODEL", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--embed", nargs=2, metavar=("STORE", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--near", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--columns", type=int, default=100, help=argparse.SUPPRESS)
    parser.add_argument(
        "--alone-nodes", type=int, default=1_000_000, help="of the run without features; 0: none"
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="none: those of the last run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", help="memory of the limited run, such as 1500M; it needs a memory cgroup")
    parser.add_argument("--limited-nodes", type=int, default=1_000_000, help="nodes of the limited run")
    parser.add_argument("--place", help="folder for stores and vectors; by default that of temporary files")
    parser.add_argument("--page", action="store_true", help="write figure and table again from the JSON")
    arguments = parser.parse_args()
    if arguments.make:
        make(int(arguments.make[0]), arguments.make[1], is_near=arguments.near, features=arguments.columns)
    elif arguments.fit:
        fit_and_embed(*arguments.fit, arguments.threads)
    elif arguments.embed:
        embed_limited(*arguments.embed, arguments.threads)
    else:
        if not arguments.page:
            machine = describe("torch", "numba", "scipy")
            found = {"machine": machine, "threads": arguments.threads, "about": __doc__.strip()}
            before = json.loads(RESULTS.read_text()) if RESULTS.exists() and not arguments.sizes else {}
            measured = {key: value for key, value in measure(arguments).items() if value is not None}
            found = before | (measured if before else found | measured)
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(found, indent=2) + "\n")
        write_page(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
