"""One league: SPINE, its parts, strong controls and self-supervised networks, on every kind of task.

Run with ``python -m benchmarks.league``; writes ``benchmarks/results/league.json``. A cell is a setup, a
method, a seed and a device, measured in a process of its own; one setup may give the scores of several tasks.
Cells are stored as they are done and not measured again, so a run can be stopped at any time.

    --setups whole,later         setups whose name begins so; --methods likewise, or whole names
    --seeds 3                    how many seeds, or which: 3:10; the first seed of everything comes first
    --jobs 2 --threads 1         processes, and threads of each
    --device cuda --gpu-jobs 2   neural methods on a GPU, so many at once beside the other processes
    --minutes 8                  start no cell after so many minutes
    --cell-minutes 10            give a cell up after so many
    --out FILE, --merge FILE     another file of results; add the cells of another machine's
    --retry, --fresh             measure again what failed; or everything that is asked for
    --times                      time and memory alone, of whole networks: each cell held to two cores
    --list                       print which cells are missing
    --show                       print the tables and measure nothing
    --figure, --page             draw docs/figures/league.svg and .png; write the tables of docs/league.md
                                 and of the README
"""

import argparse
import json
import multiprocessing
import os
import re
import signal
import sys
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from benchmarks import accuracy
from benchmarks.accuracy import principal, settings, smoothed, twenty_a_class, without_features
from benchmarks.machine import describe, resident, thread_environment
from paper.probe import probe, probe_cv
from paper.protocols import Removal, load, stacked
from scipy.sparse import csr_array, diags_array, eye_array, issparse
from scipy.special import iv

from spinegraph import SPINE, Graph, made
from spinegraph.analysis import baselines
from spinegraph.analysis.evaluation import hide_edges, neighbour_scores, random_split, score_links
from spinegraph.errors import SpineWarning
from spinegraph.graph.encoder import FeatureEncoder

RESULTS = Path(__file__).parent / "results" / "league.json"
DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "league.md"
FIRST, LAST = "<!-- league tables, written by benchmarks.league --page -->", "<!-- end of league tables -->"
DIM, CONTROL = 200, "Adamic-Adar"
TWO_CORES = "two cores"  # in the key of a cell that tells time and memory alone
NETWORKS = ("cora", "citeseer", "pubmed", "amazon_photo")
LINKED = NETWORKS[:2]  # whose links are hidden
ALONE = ", links alone"


# Methods: a function from the training graph, or several, to a function from a graph to its vectors.


class Run(NamedTuple):
    """What a method is told beside the graph."""

    seed: int = 0
    device: str = "cpu"
    threads: int = 1
    jobs: int = 1  # processes that share the machine
    cores: tuple[int, ...] = ()  # that the process is held to; any where empty
    is_trial: bool = False  # of what is compiled and loaded once; two epochs are enough


FITTED, LATER, OTHER = range(3)  # whom a method has vectors for: fitted nodes, later ones, other networks


class Method(NamedTuple):
    """A row of the league."""

    fit: Callable[..., Any]
    reads: str  # "both", "features" (needs them) or "links" (alone: features change nothing)
    reach: int
    what: str  # the setting, in words
    is_neural: bool = False
    kinds: tuple[str, ...] = ()  # of tasks, where it has only some


def spine(**changes):
    def fit(train, run):
        model = SPINE(dim=DIM, seed=run.seed, threads=run.threads, **changes)
        return _fitted_spine(model, train)

    return fit


def spine_paper(train, run):
    return _fitted_spine(SPINE.paper(dim=DIM, seed=run.seed, threads=run.threads), train)


def _fitted_spine(model, train):
    model.fit(train)
    several = isinstance(train, list)
    own = zip(train, model.embeddings_, strict=True) if several else [(train, model.embeddings_)]
    known = {id(graph): each.vectors for graph, each in own}
    return lambda graph: known[id(graph)] if id(graph) in known else model.transform(graph).vectors


def columns(row, is_compressed=False):
    """Return a control by the columns: as they are, smoothed, or beside their means over one and two hops."""

    def fit(train, run):
        train = united(train)
        encoder = FeatureEncoder.for_matrix(train.features, "auto", train.feature_names)
        if is_compressed:
            return principal(row, encoder, train)
        if row == "hop means":
            return baselines.hop_means(
                lambda graph: encoder.transform(graph.features), train, run.seed, run.threads
            )
        return lambda graph: smoothed(row, encoder, graph)

    return fit


def by_links(function, dim):
    def fit(train, run):
        return lambda graph: function(graph, dim, run.seed)

    return fit


def prone(graph, dim, seed, order=10, mu=0.2, theta=0.5):
    """Return ProNE's vectors (n, dim): a factorisation of the links, spread by a band-pass filter."""
    from sklearn.utils.extmath import randomized_svd

    n, dim = len(graph), min(dim, len(graph) - 1)
    links = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))
    step = csr_array(diags_array(1 / np.maximum(graph.degrees, 1)) @ links)
    drawn = np.asarray(step.sum(axis=0)).ravel() ** 0.75
    drawn /= drawn.sum()
    target = step.copy()
    target.data = np.log(step.data) - np.log(drawn[step.indices])
    left, values, _ = randomized_svd(target, dim, n_iter=5, random_state=seed)
    start = unit(left * np.sqrt(values))
    looped = links + eye_array(n)
    walk = csr_array(diags_array(1 / np.asarray(looped.sum(axis=1)).ravel()) @ looped)
    shifted = csr_array((1 - mu) * eye_array(n) - walk)
    before, here = start, 0.5 * (shifted @ (shifted @ start)) - start
    spread = iv(0, theta) * before - 2 * iv(1, theta) * here
    for i in range(2, order):
        before, here = here, shifted @ (shifted @ here) - 2 * here - before
        spread += (-1) ** i * 2 * iv(i, theta) * here
    left, values, _ = np.linalg.svd(looped @ (start - spread), full_matrices=False)
    return unit(left * np.sqrt(values)).astype(np.float32)


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def neural(name, dim):
    def fit(train, run):
        from benchmarks import league_neural  # imports Torch's networks

        epochs = 2 if run.is_trial else None
        return league_neural.fit(name, united(train), dim, run.seed, run.device, epochs)

    return fit


def united(train):
    return Graph.union(train, keys=range(len(train))) if isinstance(train, list) else train


_PART = "this part alone, 200 dimensions"
_GNN = {
    "GraphSAGE": (256, "unsupervised, mean aggregator, 2 layers, full batch, 100 epochs"),
    "DGI": (512, "1 GCN layer, 300 epochs"),
    "CCA-SSG": (512, "2 GCN layers, 20 % of columns and 40 % of links left out, lambda 1e-3, 50 epochs"),
    "GraphMAE": (512, "2 GCN layers (in place of attention), half of the nodes masked, 300 epochs"),
}
METHODS = {
    "SPINE": Method(spine(), "both", OTHER, "defaults, all parts, 200 dimensions"),
    "SPINE content": Method(spine(parts=("content",)), "features", OTHER, _PART),
    "SPINE place": Method(spine(parts=("place",)), "links", LATER, _PART),
    "SPINE role": Method(spine(parts=("role",)), "links", OTHER, _PART),
    "SPINE.paper()": Method(spine_paper, "features", OTHER, "the paper's settings, 200 dimensions"),
    "plain columns": Method(columns("raw features"), "features", OTHER, "scaled as SPINE scales them"),
    "columns + hop means": Method(
        columns("hop means"),
        "features",
        OTHER,
        "with their means over one and two hops (256 directions)",
    ),
    "T F": Method(columns("T F 0.7"), "features", OTHER, "exact T, continuation 0.7, all columns"),
    "T F, PCA": Method(columns("T F 0.7", True), "features", OTHER, "the same, 200 main directions"),
    "SSGC": Method(columns("SSGC"), "features", OTHER, "16 hops, own share 0.05, all columns"),
    "SSGC, PCA": Method(columns("SSGC", True), "features", OTHER, "the same, 200 main directions"),
    **{
        f"{name} {dim}": Method(by_links(function, dim), "links", FITTED, f"{what}, {dim} dimensions")
        for name, function, own, what in (
            (
                "node2vec",
                baselines.node2vec,
                128,
                "p = q = 1, 10 walks of 40, window 5, 5 negatives, 5 epochs",
            ),
            ("ProNE", prone, 128, "10 steps, mu 0.2, theta 0.5"),
            ("spectral", baselines.spectral, 128, "leading eigenvectors of the normalised adjacency"),
        )
        for dim in (DIM, own)
    },
    **{
        f"{name} {dim}": Method(neural(name, dim), "both", OTHER, f"{what}, {dim} dimensions", is_neural=True)
        for name, (own, what) in _GNN.items()
        for dim in (DIM, own)
    },
    "log degree": Method(
        lambda train, run: lambda graph: np.log1p(graph.degrees)[:, None],
        "links",
        OTHER,
        "one column",
        kinds=("roles", "another network"),
    ),
    CONTROL: Method(
        lambda train, run: None,
        "links",
        FITTED,
        "no vectors: common neighbours, weighted by rarity",
        kinds=("hidden links", f"hidden links{ALONE}"),
    ),
}


# Setups: a function from a case, a seed and a function that makes embedders, to the scores of tasks.


def whole(name, seed, embed, is_alone):
    """Few labels (public split; Photo: 20 of each class), and many (60 %, 20 % to choose C, 20 % asked)."""
    data = load(name)
    vectors = embed(seen := withheld(data.graph, is_alone))(seen)
    if data.train is not None:
        few = probe(vectors, data.labels, data.train, data.val, data.test)
    else:
        few = probe_cv(vectors, data.labels, *twenty_a_class(data.labels, seed), seed=seed)
    many = probe(vectors, data.labels, *random_split(data.labels, 0.6, 0.2, seed))
    return {f"{kind}: {name}": found.accuracy for kind, found in (("few labels", few), ("many labels", many))}


def tolokers(name, seed, embed, is_alone):
    """AUC on the public split of the seed."""
    return {"few labels: tolokers": accuracy.tolokers(name, seed, embed)}


def later(name, seed, embed, is_alone):
    """20 % of the nodes are removed before the fit, embedded afterwards and classified from other labels."""
    removal = Removal.draw(load(name), 20, seed)
    train, full = withheld(removal.train, is_alone), withheld(removal.full, is_alone)
    vectors = embed(train)
    rows = stacked([vectors(train), vectors(full)[removal.removed]])
    labels = np.concatenate([removal.labels[removal.kept], removal.labels[removal.removed]])
    return {f"later nodes: {name}": read_across(rows, labels, len(removal.kept), seed).accuracy}


def read_across(rows, labels, count, seed):
    """Learn from the first rows of known label and ask about the others."""
    known = np.flatnonzero(labels >= 0)
    return probe_cv(rows, labels, known[known < count], known[known >= count], seed=seed)


def twitch(name, seed, embed, is_alone):
    """Fitted and labelled in three countries, AUC in a fourth."""
    return {"another network: twitch": accuracy.twitch(name, seed, embed)}


def ppi(name, seed, embed, is_alone):
    """Fitted on 20 tissues; micro-F1 on 2 unseen, from 15,000 nodes' labels."""
    return {"another network: ppi": accuracy.ppi(name, seed, embed)}


def airports_across(case, seed, embed, is_alone):
    """Fitted and labelled in one region, accuracy in another; classes are quarters of each."""
    here, there = (load(f"airports_{name}") for name in case.split(" to "))
    vectors = embed(here.graph)
    rows, labels = stacked([vectors(here.graph), vectors(there.graph)]), np.append(here.labels, there.labels)
    return {f"another network: airports {case}": read_across(rows, labels, len(here.graph), seed).accuracy}


def organisation(name, seed, embed, is_alone):
    """Fitted and labelled in a made organisation, accuracy in another made by the same process."""
    here, there = made.planted(seed=1000 + 2 * seed), made.planted(seed=1001 + 2 * seed)
    vectors = embed(here.graph)
    rows, count = stacked([vectors(here.graph), vectors(there.graph)]), len(here.graph)
    return {
        f"another network: {what} of a made organisation": read_across(
            rows, np.append(*labels), count, seed
        ).accuracy
        for what, labels in (
            ("roles", (here.role, there.role)),
            ("departments", (here.community, there.community)),
        )
    }


def hidden_links(name, seed, embed, is_alone):
    """10 % of the links hidden from the fit; AUC and average precision against as many non-links."""
    hidden = hide_edges(withheld(load(name).graph, is_alone), 0.1, seed=seed)
    if embed.method == CONTROL:
        found = next(score for score in neighbour_scores(hidden) if score.vectors == CONTROL)
    else:
        vectors = embed(hidden.graph)(hidden.graph)
        found = next(score for score in score_links("", vectors, hidden) if score.by == "hadamard")
    return {f"hidden links: {name} AUC": found.auc, f"hidden links: {name} AP": found.average_precision}


def airports(name, seed, embed, is_alone):
    """Micro-F1 inside one region, the mean of ten splits of 80/20."""
    return {f"roles: airports {name}": accuracy.airports(name, seed, embed)}


def table(name, seed, embed, is_alone):
    """R2 of ridge regression on later nodes, with a made table of ten mixed columns, half of them noise."""
    return {"table: made table, R2": accuracy.table(name, seed, embed)}


def withheld(graph, is_alone):
    return without_features(graph) if is_alone else graph


class Setup(NamedTuple):
    """Where methods are fitted and asked."""

    measure: Callable[..., dict[str, float]]
    case: str
    is_alone: bool = False  # features are withheld, and the kinds of its tasks say so
    has_features: bool = True
    reach: int = FITTED  # what a method must have vectors for
    kinds: tuple[str, ...] = ()


_KINDS = {whole: ("few labels", "many labels"), later: ("later nodes",), hidden_links: ("hidden links",)}
SETUPS = {
    **{f"whole {name}": Setup(whole, name, kinds=_KINDS[whole]) for name in NETWORKS},
    **{f"whole alone {name}": Setup(whole, name, True, False, kinds=_KINDS[whole]) for name in NETWORKS},
    "tolokers": Setup(tolokers, "", kinds=("few labels",)),
    **{f"later {name}": Setup(later, name, reach=LATER, kinds=_KINDS[later]) for name in NETWORKS},
    **{f"later alone {name}": Setup(later, name, True, False, LATER, _KINDS[later]) for name in NETWORKS},
    "organisation": Setup(organisation, "", reach=OTHER, kinds=("another network",)),
    **{
        f"airports {case}": Setup(airports_across, case, False, False, OTHER, ("another network",))
        for case in ("europe to brazil", "brazil to europe")
    },
    "twitch": Setup(twitch, "", reach=OTHER, kinds=("another network",)),
    **{f"links {name}": Setup(hidden_links, name, kinds=_KINDS[hidden_links]) for name in LINKED},
    **{
        f"links alone {name}": Setup(hidden_links, name, True, False, kinds=_KINDS[hidden_links])
        for name in LINKED
    },
    **{
        f"roles {name}": Setup(airports, name, has_features=False, kinds=("roles",))
        for name in ("brazil", "europe")
    },
    "table": Setup(table, "", reach=LATER, kinds=("table",)),
    "ppi": Setup(ppi, "", reach=OTHER, kinds=("another network",)),
}


def can(method, setup):
    """Whether a method has vectors for a setup."""
    return (
        (setup.has_features or method.reads != "features")
        and method.reach >= setup.reach
        and (not method.kinds or any(kind in method.kinds for kind in kinds_of(setup)))
    )


def is_run(method, name):
    """Whether a cell is measured: links alone say it all about a method that reads nothing else."""
    setup = SETUPS[name]
    is_twice = method.reads == "links" and setup.has_features and alone_name(name) in SETUPS
    return can(method, setup) and not is_twice


def alone_name(name):
    """Return the name of the same setup without features."""
    first, _, rest = name.partition(" ")
    return f"{first} alone {rest}"


# Cells


class Embedder:
    """What a setup calls: fits, embeds, scales, and keeps time and memory.

    All vectors of a cell are divided by one number, the root mean square length of those of the first graph
    that is embedded, so that the grid of C means the same for every method.
    """

    def __init__(self, method, run):
        self.method, self.run = method, run
        self.seconds, self.memory, self.scale = 0.0, 0.0, None

    def __call__(self, train):
        embed = self._timed(METHODS[self.method].fit, train, self.run)

        def scaled(graph):
            vectors = self._timed(embed, graph)
            vectors = vectors if issparse(vectors) else np.asarray(vectors, np.float32)
            if self.scale is None:
                squares = (
                    vectors.multiply(vectors) if issparse(vectors) else np.square(vectors, dtype=np.float64)
                )
                self.scale = max(float(np.sqrt(squares.sum() / vectors.shape[0])), 1e-12)
            return vectors * (1 / self.scale)

        return scaled

    def _timed(self, function, *arguments):
        started = time.perf_counter()
        found = function(*arguments)
        self.seconds += time.perf_counter() - started
        self.memory = max(self.memory, resident())
        return found


def measure(name, method, run):
    """Return one cell; what is compiled or loaded once is not timed."""
    warnings.simplefilter("ignore", SpineWarning)  # that several networks have no place
    torch.set_num_threads(run.threads)
    setup = SETUPS[name]
    if method != CONTROL:
        trial(METHODS[method], setup, run._replace(is_trial=True))
    before = resident("VmRSS")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the highest resident size counts from here
    except OSError:
        before = None  # and the peak is that of the whole process
    if run.device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    embed = Embedder(method, run)
    if run.cores:
        graph = load(setup.case).graph
        graph = without_features(graph) if setup.is_alone else graph
        embed(graph)(graph)
        scores = {}
    else:
        scores = setup.measure(setup.case, run.seed, embed, setup.is_alone)
    suffix = ALONE if setup.is_alone else ""
    return {
        "scores": {with_suffix(task, suffix): round(100 * float(score), 4) for task, score in scores.items()},
        "seconds": round(embed.seconds, 4),
        "memory_mb": round(embed.memory, 1),
        "before_mb": None if before is None else round(before, 1),
        "gpu_mb": None if run.device == "cpu" else round(torch.cuda.max_memory_allocated() / 1e6, 1),
        "threads": run.threads,
        "jobs": run.jobs,
        "cores": os.cpu_count(),
    }


def with_suffix(task, suffix):
    kind, _, case = task.partition(": ")
    return f"{kind}{suffix}: {case}"


def trial(method, setup, run):
    """Fit a very small network, and embed it and another."""
    club = made.karate()
    values = np.random.default_rng(0).random((len(club), 8)).round().astype(np.float32)
    for given in (values, csr_array(values)) if setup.has_features else (None,):
        whole = club if given is None else club.with_features(given)
        part = whole.subgraph(whole.names[:30])
        embed = method.fit([whole, part] if setup.measure in (twitch, ppi) else part, run)
        embed(part)
        if method.reach >= LATER:
            embed(whole)


def work(name, method, run, answer):
    """Measure a cell in a process of its own and send it back."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if run.cores:
        os.sched_setaffinity(0, run.cores)
    try:
        found = measure(name, method, run)
    except Exception:
        found = {"error": traceback.format_exc()[-2000:]}
    answer.send(found)
    answer.close()


class Store:
    """The results file: whole or not at all."""

    def __init__(self, path):
        self.path, self.written = path, 0.0
        stored = json.loads(path.read_text()) if path.exists() else {}
        self.cells = stored.get("cells", {})
        self.machine = stored.get("machine")
        if stored and stored["config"] != settings():
            old = [key for key in self.cells if key.split("|")[1].startswith("SPINE")]
            old = [key for key in old if key.split("|")[1] != "SPINE.paper()"]
            print(
                f"{len(old)} cells of SPINE were measured with other defaults and are dropped",
                file=sys.stderr,
            )
            for key in old:
                del self.cells[key]

    def write(self, is_last=False):
        if not is_last and time.monotonic() < self.written + 2:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        machine = self.machine or describe("scipy", "scikit-learn", "torch")
        about = {"machine": machine, "config": settings(), "cells": self.cells}
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")
        draft.replace(self.path)
        self.written = time.monotonic()


def wanted(arguments, store):
    """Return the missing cells, the first seed of everything first."""
    first, _, last = arguments.seeds.rpartition(":")
    found = []
    for seed in range(int(first or 0), int(last)):
        for name in SETUPS:
            for title, method in METHODS.items():
                chosen = begins(name, arguments.setups) and begins(title, arguments.methods)
                if not chosen or not is_run(method, name):
                    continue
                if arguments.times and not is_timed(method, name):
                    continue
                device = arguments.device if method.is_neural else "cpu"
                key = f"{name}|{title}|{seed}|{TWO_CORES if arguments.times else device}"
                failed = "error" in store.cells.get(key, ())
                if arguments.fresh or key not in store.cells or (arguments.retry and failed):
                    jobs = arguments.jobs + arguments.gpu_jobs * (arguments.device != "cpu")
                    found.append((key, name, title, Run(seed, device, arguments.threads, jobs)))
    return found


def is_timed(method, name):
    """Whether a setup is a whole network with all that a method reads."""
    return name in {spent_on(method, network) for network in NETWORKS}


def begins(name, prefixes):
    """Whether a name is one of those listed, or begins like one that is not whole."""
    listed = [prefix.strip() for prefix in prefixes.split(",")]
    return name in listed or name.startswith(tuple(each for each in listed if each not in METHODS))


def run_all(cells, store, arguments):
    """Measure cells, each in a fresh process, so many at once."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that its processes end with it
    context = multiprocessing.get_context("fork")  # nothing was computed yet: no threads, no GPU
    stop = time.monotonic() + 60 * arguments.minutes
    running, waiting, done = {}, list(cells), 0
    pairs = list(zip(*[iter(sorted(os.sched_getaffinity(0)))] * 2, strict=False))
    free = pairs[: arguments.jobs] if arguments.times else []
    while running or (waiting and time.monotonic() < stop):
        while waiting and time.monotonic() < stop:
            on_gpu = sum(run.device != "cpu" for _, _, run, _ in running.values())
            room = {"cpu": arguments.jobs - (len(running) - on_gpu), "gpu": arguments.gpu_jobs - on_gpu}
            fits = (
                i for i, cell in enumerate(waiting) if room["cpu" if cell[3].device == "cpu" else "gpu"] > 0
            )
            index = next(fits, None)
            if index is None:
                break
            key, name, title, run = waiting.pop(index)
            if arguments.times:
                run = run._replace(cores=free.pop())
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(name, title, run, theirs), daemon=True)
            process.start()
            theirs.close()
            running[ours] = key, process, run, time.monotonic()
        for answer in wait(list(running), timeout=1):
            key, process, run, _ = running.pop(answer)
            free += [run.cores] * bool(run.cores)
            try:
                found = answer.recv()
            except EOFError:
                found = {"error": "the process died"}
            process.join()
            done += 1
            keep(store, key, found, f"{done} of {len(cells)}")
        for answer, (key, process, run, started) in list(running.items()):
            if time.monotonic() - started > 60 * arguments.cell_minutes:
                process.kill()
                del running[answer]
                free += [run.cores] * bool(run.cores)
                done += 1
                keep(
                    store,
                    key,
                    {"error": f"over {arguments.cell_minutes:g} minutes"},
                    f"{done} of {len(cells)}",
                )
    store.write(is_last=True)
    if waiting:
        print(f"{len(waiting)} cells are left for another run", file=sys.stderr)


def keep(store, key, found, count):
    store.cells[key] = found
    store.write()
    said = found["error"].strip().splitlines()[-1] if "error" in found else found["scores"]
    print(f"{count} {key}: {said} {found.get('seconds', '')}", file=sys.stderr, flush=True)


# Tables


def scores_of(cells):
    """Return {task: {method: {seed: score}}}; a method that reads links alone has the same with features."""
    found = defaultdict(lambda: defaultdict(dict))
    for key, cell in sorted(cells.items()):
        _, title, seed, _ = key.split("|")
        if title not in METHODS:
            continue
        for task, score in cell.get("scores", {}).items():
            found[task][title][int(seed)] = score
            kind, _, case = task.partition(": ")
            if METHODS[title].reads == "links" and kind.endswith(ALONE):
                found[f"{kind.removesuffix(ALONE)}: {case}"][title][int(seed)] = score
    return {
        task: found[task] for task in sorted(found, key=lambda task: (kinds().index(kind_of(task)), task))
    }


def kinds():
    """Return the kinds of tasks in order."""
    plain = "few labels", "many labels", "later nodes", "hidden links"
    return [*(kind + suffix for kind in plain for suffix in ("", ALONE)), "another network", "roles", "table"]


def kind_of(task):
    return task.partition(": ")[0]


def distances(scores):
    """Return {method: {task: how far its mean is below the best method's}}."""
    found = defaultdict(dict)
    for task, rows in scores.items():
        means = {title: np.mean(list(values.values())) for title, values in rows.items()}
        for title, mean in means.items():
            found[title][task] = max(means.values()) - mean
    return {title: found[title] for title in METHODS if title in found}


def task_tables(scores):
    """Yield one table for each kind of task: methods by networks."""
    for kind in kinds():
        tasks = [task for task in scores if kind_of(task) == kind]
        if not tasks:
            continue
        yield f"**{kind[0].upper()}{kind[1:]}**\n"
        yield f"| method | {' | '.join(task.partition(': ')[2].replace('amazon_', '') for task in tasks)} |"
        yield "|---|" + "--:|" * len(tasks)
        best = {
            task: max(np.mean(list(values.values())) for values in scores[task].values()) for task in tasks
        }
        for title in METHODS:
            if any(title in scores[task] for task in tasks):
                shown = (cell_text(scores[task].get(title), best[task]) for task in tasks)
                yield f"| {title} | {' | '.join(shown)} |"
        yield ""


def cell_text(values, best):
    """Return mean and deviation over seeds; the best in bold."""
    if not values:
        return ""
    numbers = np.array(list(values.values()))
    deviation = f" ± {numbers.std(ddof=1):.1f}" if len(numbers) > 1 and numbers.std() > 0.005 else ""
    mean = f"{numbers.mean():.1f}"
    return f"**{mean}**{deviation}" if numbers.mean() >= best - 1e-9 else mean + deviation


def distance_table(scores):
    """Yield the mean distance to the best, for each method and kind of task."""
    found = distances(scores)
    shown = [kind for kind in kinds() if any(kind_of(task) == kind for task in scores)]
    yield f"| method | tasks | all | {' | '.join(shown)} |"
    yield "|---|--:|--:|" + "--:|" * len(shown)
    for title, below in found.items():
        means = []
        for kind in shown:
            some = [points for task, points in below.items() if kind_of(task) == kind]
            means.append(f"{np.mean(some):.1f}" if some else missing(METHODS[title], kind))
        yield f"| {title} | {len(below)} | {np.mean(list(below.values())):.1f} | {' | '.join(means)} |"


def missing(method, kind):
    """Return what stands where a method has no score: that it cannot, or nothing where it was not run."""
    of_kind = (setup for setup in SETUPS.values() if kind in kinds_of(setup))
    return "" if any(can(method, setup) for setup in of_kind) else "cannot"


def kinds_of(setup):
    return [kind + ALONE * setup.is_alone for kind in setup.kinds]


def paired_table(scores):
    """Yield how far SPINE is above each method over the tasks that both have, on the seeds of both."""
    yield "| SPINE compared with | tasks | mean of SPINE | mean of the other | SPINE is higher in |"
    yield "|---|--:|--:|--:|--:|"
    for title in METHODS:
        pairs = []
        for rows in scores.values():
            same = set(rows.get(title, ())) & set(rows.get("SPINE", ()))
            if same:
                pairs.append([np.mean([rows[each][seed] for seed in same]) for each in ("SPINE", title)])
        if title != "SPINE" and pairs:
            ours, theirs = np.array(pairs).T
            means = f"{ours.mean():.1f} | {theirs.mean():.1f}"
            yield f"| {title} | {len(pairs)} | {means} | {int((ours > theirs).sum())} |"


def costs(cells):
    """Return {method: {device: {setup: (seconds, peak memory in MB)}}}, medians over seeds.

    Of those cells that had the machine most to themselves.
    """
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for key, cell in cells.items():
        name, title, _, device = key.split("|")
        if "seconds" in cell and title in METHODS:
            memory = cell["gpu_mb"] if device == "cuda" else cell["memory_mb"]
            found[title][device][name].append((cell["jobs"], cell["seconds"], memory))
    for setups in (setups for devices in found.values() for setups in devices.values()):
        for name, measured in setups.items():
            least = min(measured)[0]
            setups[name] = tuple(np.median([rest for jobs, *rest in measured if jobs == least], axis=0))
    return found


def spent(title, cost):
    """Return device and {network: (seconds, MB)} of fits on whole networks, on two cores if measured."""
    for device in sorted(cost.get(title, {}), key=(TWO_CORES, "cpu", "cuda").index):
        some = {name: cost[title][device].get(spent_on(METHODS[title], name)) for name in NETWORKS}
        some = {name: value for name, value in some.items() if value}
        if some:
            return device, some
    return None, {}


def spent_on(method, network):
    """Return the setup whose time counts: links alone for a method that reads nothing else."""
    return f"whole {'alone ' * (method.reads == 'links')}{network}"


def short(seconds):
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def cost_table(cells):
    """Yield seconds and memory on the whole networks, and what each method has vectors for."""
    cost = costs(cells)
    titles = (f"{name.replace('amazon_', '')} {unit}" for unit in ("s", "MB") for name in NETWORKS)
    yield f"| method | setting | later nodes | another network | on | {' | '.join(titles)} |"
    yield "|---|---|---|---|---|" + "--:|" * (2 * len(NETWORKS))
    for title, method in METHODS.items():
        device, some = spent(title, cost)
        numbers = [short(some[name][0]) if name in some else _late(cells, title, name) for name in NETWORKS]
        numbers += [f"{some[name][1]:.0f}" if name in some else "" for name in NETWORKS]
        able = ("yes" if method.reach >= LATER else "no", "yes" if method.reach >= OTHER else "no")
        where = {TWO_CORES: TWO_CORES, "cpu": "CPU", "cuda": "GPU", None: ""}[device]
        yield f"| {title} | {method.what} | {' | '.join(able)} | {where} | {' | '.join(numbers)} |"


def _late(cells, title, network):
    """Return how many seconds a fit on two cores was given that did not end; nothing where it was not run."""
    cell = cells.get(f"{spent_on(METHODS[title], network)}|{title}|0|{TWO_CORES}", {})
    limit = re.fullmatch(r"over ([\d.]+) minutes", cell.get("error", ""))
    return f"over {60 * float(limit[1]):.0f}" if limit else ""


def tables(cells):
    """Yield everything that is printed and written into the page."""
    scores = scores_of(cells)
    yield "Mean distance to the best, in points, over the tasks that a method can do (lower is better):\n"
    yield from distance_table(scores)
    yield "\nSPINE compared with each method, over the tasks and seeds that both have, in %:\n"
    yield from paired_table(scores)
    yield "\nTasks in which another method has a higher mean than SPINE, and by how many points:\n"
    yield from losses_table(scores)
    yield "\nSettings, and seconds and peak memory of fitting and embedding the whole network:\n"
    yield from cost_table(cells)
    yield "\nScores in %, mean ± deviation over seeds:\n"
    yield from task_tables(scores)
    if failed := [key for key, cell in cells.items() if "error" in cell and not key.endswith(TWO_CORES)]:
        yield f"{len(failed)} cells failed:\n"
        yield from (f"- {key}: {cells[key]['error'].strip().splitlines()[-1]}" for key in sorted(failed))


def losses_table(scores):
    """Yield the tasks in which another method's mean is above SPINE's by 0.1 points or more."""
    yield "| task | SPINE | higher, by points |"
    yield "|---|--:|---|"
    for task, found in scores.items():
        means = {title: np.mean(list(values.values())) for title, values in found.items()}
        others = {
            title: mean - means["SPINE"] for title, mean in means.items() if not title.startswith("SPINE")
        }
        above = sorted((-round(by, 1), title) for title, by in others.items() if round(by, 1) >= 0.1)
        if above:
            listed = ", ".join(f"{title} {-by:.1f}" for by, title in above)
            yield f"| {task} | {means['SPINE']:.1f} | {listed} |"


_LABELS_LEFT = ("T F, PCA", "DGI 512", "node2vec 128")  # others have them on the right


def draw(cells):
    """Draw the mean distance to the best against seconds, into docs/figures/league.svg and .png."""
    from paper.figures import BLUE, GREY, RED, plotting

    plt = plotting()
    below, cost = distances(scores_of(cells)), costs(cells)
    figure, axis = plt.subplots(figsize=(9, 5.4), layout="constrained")
    for title, points in below.items():
        device, some = spent(title, cost)
        if len(points) < 3 or not some or title not in DRAWN:
            continue
        late = [float(text.split()[1]) for name in NETWORKS if (text := _late(cells, title, name))]
        seconds = np.exp(np.mean(np.log([*late, *(value[0] for value in some.values())])))
        color = BLUE if title.startswith("SPINE") else RED if METHODS[title].is_neural else GREY
        reach, height = METHODS[title].reach, max(np.mean(list(points.values())), 0.1)
        shape = "os"[device == "cuda"]
        filled = color if reach == OTHER else "white"
        axis.scatter(seconds, height, s=44, marker=shape, facecolor=filled, edgecolor=color, zorder=3)
        words = f"{title} ({len(points)})"
        is_left = title in _LABELS_LEFT
        axis.annotate(
            words,
            (seconds, height),
            (-7 if is_left else 7, -3),
            ha="right" if is_left else "left",
            textcoords="offset points",
            fontsize=8,
            color=color,
        )
    for color, words in ((BLUE, "SPINE"), (RED, "neural"), (GREY, "controls and links alone")):
        axis.scatter([], [], color=color, label=words)
    axis.scatter([], [], facecolor="white", edgecolor=GREY, label="not for another network")
    if any(spent(title, cost)[0] == "cuda" for title in DRAWN):
        axis.scatter([], [], marker="s", color=GREY, label="on a GPU")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.invert_yaxis()
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("seconds to fit and embed on two cores, geometric mean of four networks")
    axis.set_ylabel("points below the best, mean over the tasks it can do\n(in brackets: how many)")
    axis.legend(loc="lower right", fontsize=8)
    folder = DOCS / "figures"
    for suffix, about in (("svg", {"Date": None}), ("png", {"Software": None})):
        figure.savefig(folder / f"league.{suffix}", metadata=about, facecolor="white")
    plt.close(figure)
    drawn = folder / "league.svg"
    drawn.write_text("".join(f"{line.rstrip()}\n" for line in drawn.read_text().splitlines()))


README = DOCS.parent / "README.md"
README_MARKS = "<!-- league -->\n", "<!-- end of league -->"
README_ROWS = {
    "SPINE": "**SPINE**",
    "plain columns": "plain columns",
    "columns + hop means": "columns and means over neighbours",
    "T F, PCA": "PCA of smoothed features",
    "node2vec 128": "node2vec",
    "ProNE 128": "ProNE",
    "spectral 128": "spectral",
    "GraphSAGE 256": "GraphSAGE",
    "DGI 512": "Deep Graph Infomax",
    "CCA-SSG 512": "CCA-SSG",
    "GraphMAE 512": "GraphMAE",
}
DRAWN = {
    *README_ROWS,
    "SPINE content",
    "SPINE place",
    "SPINE role",
    "SPINE.paper()",
    "SSGC, PCA",
    "node2vec 128",
}
README_KINDS = {
    "few labels": "with features",
    "few labels, links alone": "links alone",
    "later nodes": "later nodes",
    "hidden links": "hidden links",
    "another network": "another network",
    "roles": "roles",
    "table": "a table",
}


def readme_table(scores):
    """Yield the README's table: the mean score of a kind of task, over what all rows with any have."""
    yield f"| | {' | '.join(README_KINDS.values())} |"
    yield "|---|" + "--:|" * len(README_KINDS)
    means = defaultdict(dict)
    for kind in README_KINDS:
        tasks = [task for task in scores if kind_of(task) == kind]
        listed = [title for title in README_ROWS if any(title in scores[task] for task in tasks)]
        common = [task for task in tasks if all(title in scores[task] for title in listed)]
        for title in listed:
            means[kind][title] = np.mean([np.mean(list(scores[task][title].values())) for task in common])
    for title, shown in README_ROWS.items():
        cells = []
        for kind in README_KINDS:
            value = means[kind].get(title)
            text = "" if value is None else f"{value:.1f}"
            cells.append(f"**{text}**" if value is not None and value == max(means[kind].values()) else text)
        yield f"| {shown} | {' | '.join(cells)} |"


def write_readme(cells):
    """Write the README's table."""
    first, last = README_MARKS
    before, _, rest = README.read_text().partition(first)
    table = "\n".join(readme_table(scores_of(cells)))
    README.write_text(f"{before}{first}{table}\n{last}{rest.partition(last)[2]}")


def write_page(cells):
    """Write the tables into the page."""
    before, _, rest = PAGE.read_text().partition(FIRST)
    if not rest:
        sys.exit(f"{PAGE.name} must hold the line {FIRST}")
    picture = "![Points below the best against seconds](figures/league.svg)\n\n"
    drawn = picture if (DOCS / "figures" / "league.svg").exists() else ""
    written = drawn + "\n".join(tables(cells)).rstrip()
    PAGE.write_text(f"{before}{FIRST}\n{written}\n{LAST}{rest.partition(LAST)[2]}")


def main():
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("--setups", "--tasks"):
        parser.add_argument(name, default="", dest="setups")
    parser.add_argument("--methods", default="")
    parser.add_argument("--seeds", default="3")
    parser.add_argument("--jobs", default=2, type=int)
    parser.add_argument("--gpu-jobs", default=2, type=int)
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--minutes", default=1e6, type=float)
    parser.add_argument("--cell-minutes", default=10, type=float)
    parser.add_argument("--out", default=RESULTS, type=Path)
    parser.add_argument("--merge", default=[], type=Path, nargs="+")
    for name in ("--retry", "--fresh", "--times", "--list", "--show", "--figure", "--page"):
        parser.add_argument(name, action="store_true")
    arguments = parser.parse_args()
    if arguments.times:
        arguments.seeds, arguments.threads, arguments.device = "1", 2, "cpu"
    store = Store(arguments.out)
    for path in arguments.merge:
        store.cells.update(Store(path).cells)
    if arguments.merge:
        store.write(is_last=True)
    cells = wanted(arguments, store)
    if arguments.list:
        print("\n".join(key for key, *_ in cells))
    is_reading = arguments.list or arguments.show or arguments.figure or arguments.page or arguments.merge
    if not is_reading:
        environment = thread_environment(arguments.threads)
        if environment != dict(os.environ):  # libraries read it when they are imported
            os.execve(sys.executable, [sys.executable, "-m", "benchmarks.league", *sys.argv[1:]], environment)
        run_all(cells, store, arguments)
    if arguments.show:
        print("\n".join(tables(store.cells)))
    if arguments.figure:
        draw(store.cells)
    if arguments.page:
        write_page(store.cells)
        write_readme(store.cells)


if __name__ == "__main__":
    main()
