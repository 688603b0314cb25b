"""What the vectors are worth, part by part, beside strong controls that learn nothing.

Run with ``python -m benchmarks.accuracy``; prints a table and writes ``benchmarks/results/accuracy.json``. A
cell is a task, a row and a seed. Stored cells are not measured again, so a run can be stopped at any time.

    --tasks features,alone       tasks whose name begins so
    --seeds 10                   how many seeds, or which: 5:10
    --rows SPINE                 rows whose name begins so
    --jobs 2                     processes
    --fresh                      measure again what is asked for
    --show                       print the stored cells and measure nothing
    --page                       the same, and write the tables of docs/study.md
    --bootstrap                  compare SPINE with the best control on Twitch over resampled nodes
    --bounds                     how alike the ten nearest of planted organisations could be at most
    --variants                   what other constants of content and learning would give, on splits that no
                                 task uses: 20 labels a class, tested on nodes outside the public test set
"""

import os

# Tasks are small problems one after another: BLAS threads wait for each other more than they help.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path

import numpy as np
from benchmarks.machine import describe
from paper.originals import load_ppi
from paper.probe import probe, probe_cv
from paper.protocols import Removal, lengths, links, load, mirror_network, once, probe_multilabel, stacked
from scipy.sparse import csr_array, diags_array, eye_array, issparse
from scipy.stats import pearsonr
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.utils.extmath import randomized_svd

from spinegraph import SPINE, Graph, made, rooted_pagerank
from spinegraph.analysis.baselines import node2vec
from spinegraph.config import MACHINE_SETTINGS, Config
from spinegraph.errors import SpineWarning
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.synthetic import _hire
from spinegraph.parts import content
from spinegraph.structure.similarity import as_rows, comparison
from spinegraph.structure.smoothing import Smoother

RESULTS = Path(__file__).parent / "results" / "accuracy.json"
PAGE = Path(__file__).parents[1] / "docs" / "study.md"
FIRST, LAST = (
    "<!-- accuracy tables, written by benchmarks.accuracy --page -->",
    "<!-- end of accuracy tables -->",
)
DIM, NEAREST, RESAMPLES = 200, 10, 1000
SPINE_ROWS = {
    "SPINE": {},
    "content": {"parts": ("content",)},
    "place": {"parts": ("place",)},
    "role": {"parts": ("role",)},
    "no learning": {"learning": False},
}
WHOLE = ("raw features", *(f"T F {b}" for b in (0.5, 0.7, 0.9)), "SSGC")
CONTROLS = (*WHOLE, *(f"PCA of {name}" for name in WHOLE[1:]))
OWN = ("raw features", "PCA of raw features", "PCA of T F 0.5")
ALONE = ("node2vec", "spectral")
STRUCTURE = ("log degree",)
FEW_COLUMNS = ("ppi", "tolokers", "table")  # tasks whose features are at most 200 columns
CITATIONS = ("cora", "citeseer", "pubmed")


# Rows: a function from the training graph and a seed to a function from a graph to its vectors.


def embedder(row, train, seed):
    """Return the function from a graph to the vectors of all its nodes, fitted on a graph or on several."""
    if row in SPINE_ROWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpineWarning)  # that several networks have no place
            model = SPINE(**SPINE_ROWS[row], dim=DIM, seed=seed, threads=1).fit(train)
            fitted = train if isinstance(train, list) else [train]
            own = model.embeddings_ if isinstance(train, list) else [model.embeddings_]
        known = {id(graph): each.vectors for graph, each in zip(fitted, own, strict=True)}
        return lambda graph: known[id(graph)] if id(graph) in known else model.transform(graph).vectors
    train = Graph.union(train, keys=range(len(train))) if isinstance(train, list) else train
    if row == "node2vec":
        return lambda graph: node2vec(graph, DIM, seed)
    if row == "spectral":
        return spectral
    if row == "log degree":
        return lambda graph: np.log1p(graph.degrees)[:, None]
    encoder = FeatureEncoder.for_matrix(train.features, "auto", train.feature_names)
    if row.startswith("PCA of "):
        return principal(row.removeprefix("PCA of "), encoder, train)
    return lambda graph: smoothed(row, encoder, graph)


def smoothed(row, encoder, graph):
    """Return the encoded features, as they are or smoothed by T or by SSGC."""
    features = encoder.transform(graph.features)
    if row == "raw features":
        return features
    features = np.asarray(features.toarray() if issparse(features) else features, np.float32)
    if row == "SSGC":
        return ssgc(graph, features)
    return Smoother.of(graph, float(row.split()[-1]), tolerance=1e-3, threads=1).smooth(features)


def ssgc(graph, features, hops=16, own=0.05):
    """Return the mean over hops of S^k F, S with loops and divided by root degrees (SSGC)."""
    n = len(graph)
    weights = np.ones(len(graph.indices), np.float32) if graph.weights is None else graph.weights
    looped = csr_array((weights, graph.indices, graph.indptr), shape=(n, n)) + eye_array(n, dtype=np.float32)
    roots = diags_array(1 / np.sqrt(np.asarray(looped.sum(axis=1)).ravel()))
    steps = csr_array(roots @ looped @ roots, dtype=np.float32)
    total, here = np.zeros_like(features), features
    for _ in range(hops):
        here = steps @ here
        total += here
    return ((1 - own) / hops * total + own * features).astype(np.float32)


def principal(row, encoder, train):
    """Return the function to components along the training graph's main directions."""

    @cache
    def directions():
        values = smoothed(row, encoder, train)
        center = values.mean(axis=0)
        return center, randomized_svd(values - center, min(DIM, *values.shape), n_iter=5, random_state=0)[2].T

    def components(graph):
        center, along = directions()
        return (smoothed(row, encoder, graph) - center) @ along

    return components


def spectral(graph):
    """Return the leading eigenvectors of the walk with loops, scaled by the roots of their values."""
    n = len(graph)
    looped = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n)) + eye_array(
        n
    )
    roots = diags_array(1 / np.sqrt(np.asarray(looped.sum(axis=1)).ravel()))
    steps = csr_array(roots @ looped @ roots)
    left, values, _ = randomized_svd(steps, min(DIM, n - 1), n_iter=12, random_state=0)
    return (left * np.sqrt(values)).astype(np.float32)


# Tasks: a function from a case, a seed and a function that makes embedders, to measures.


def features(name, seed, embed):
    """Score the public split with features; Photo: 20 labels of each class, drawn by the seed."""
    data = load(name)
    return few_labels(data.graph, data, seed, embed)


def alone(name, seed, embed):
    """Score the same with the features withheld."""
    data = load(name)
    return few_labels(without_features(data.graph), data, seed, embed)


def random_links(name, seed, embed):
    """Score the same where links join any nodes, degrees kept: only own features say something."""
    data = load(name)
    return few_labels(random_edges(data.graph, seed), data, seed, embed)


def random_edges(graph, seed):
    """Return a graph whose links join any nodes, with the same degrees."""
    ends = links(graph).ravel().copy()
    np.random.default_rng([seed, 30]).shuffle(ends)
    return relinked(graph, ends.reshape(-1, 2))


def unlike_neighbors(name, seed, embed):
    """Score the same where four of five links join neighbouring classes, the others any nodes."""
    data, rng = load(name), np.random.default_rng([seed, 31])
    ends, labels = links(data.graph).copy(), data.labels
    nodes = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    ends[:, 1] = rng.integers(len(labels), size=len(ends))
    chosen = np.flatnonzero((rng.random(len(ends)) < 0.8) & (labels[ends[:, 0]] >= 0))
    wanted = (labels[ends[chosen, 0]] + rng.choice((-1, 1), len(chosen))) % len(nodes)
    ends[chosen, 1] = [rng.choice(nodes[label]) for label in wanted]
    return few_labels(relinked(data.graph, ends), data, seed, embed)


def relinked(graph, ends):
    """Return the nodes and features of a graph with other links (m, 2)."""
    apart = ends[ends[:, 0] != ends[:, 1]]
    return Graph.from_edges(apart, num_nodes=len(graph), features=graph.features)


def few_labels(graph, data, seed, embed):
    """Classify from few labels; C by validation nodes, or by cross-validation where there are none."""
    vectors = embed(graph)(graph)
    if data.train is not None:
        return once(probe, vectors, data.labels, data.train, data.val, data.test).accuracy
    train, test = twenty_a_class(data.labels, seed)
    return once(probe_cv, vectors, data.labels, train, test, seed=seed).accuracy


def twenty_a_class(labels, seed):
    """Return positions of 20 nodes of each class, and of all others with a label."""
    rng = np.random.default_rng([seed, 20])
    groups = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels[labels >= 0])]
    return (np.sort(np.concatenate(some)) for some in ([g[:20] for g in groups], [g[20:] for g in groups]))


def later(case, seed, embed):
    """Nodes removed before the fit and embedded afterwards, classified from kept labels (Table 2)."""
    name, rate = case.split()
    removal = Removal.draw(load(name), int(rate), seed)
    return removal.accuracies(embed(removal.train), seed)["accuracy"]


def later_alone(name, seed, embed):
    """Score the same with the features withheld, 20 % removed."""
    removal = Removal.draw(load(name), 20, seed)
    train, full = without_features(removal.train), without_features(removal.full)
    vectors = embed(train)
    parts = [vectors(train), vectors(full)[removal.removed]]
    labels = np.concatenate([removal.labels[removal.kept], removal.labels[removal.removed]])
    known = np.flatnonzero(labels >= 0)
    trained, tested = known[known < len(removal.kept)], known[known >= len(removal.kept)]
    return once(probe_cv, stacked(parts), labels, trained, tested, seed=seed).accuracy


def ppi(case, seed, embed):
    """PPI: fitted on 20 tissues, micro-F1 on 2 unseen; labels are approximate, so compare rows only."""
    parts = load_ppi()
    groups = parts[:20], parts[20:22], parts[22:]
    vectors = embed([part.graph for part in groups[0]])
    found = [
        (
            np.vstack([dense(vectors(part.graph)) for part in group]),
            np.vstack([part.labels for part in group]),
        )
        for group in groups
    ]
    rng = np.random.default_rng([seed, 15])
    some = np.sort(rng.permutation(len(found[0][0]))[:15_000])
    return probe_multilabel((found[0][0][some], found[0][1][some]), *found[1:]).micro


def tolokers(case, seed, embed):
    """Tolokers: AUC on the public split of the seed."""
    with np.load(Path(os.environ["SPINEGRAPH_DATA"]) / "tolokers.npz") as arrays:
        parts = [arrays[f"feat_{name}"] for name in ("data", "indices", "indptr")]
        columns = csr_array(tuple(parts), shape=arrays["feat_shape"]).toarray()
        graph = Graph.from_edges(arrays["edges"], num_nodes=int(arrays["num_nodes"]), features=columns)
        labels, masks = arrays["labels"], [arrays[f"{name}_masks"][seed] for name in ("train", "val", "test")]
    train, val, test = map(np.flatnonzero, masks)
    found = probe(dense(embed(graph)(graph)), labels, train, val, test)
    return float(roc_auc_score(labels[test] == 1, found.scores[:, 1]))


def twitch(case, seed, embed):
    """Twitch: fitted and labelled in three countries, AUC in a fourth."""
    scores, labels = twitch_scores(embed)
    return roc_auc_score(labels == 1, scores)


def twitch_scores(embed):
    """Return the scores and labels of the fourth country's nodes."""
    seen, unseen = [load(f"twitch_{country}") for country in ("ES", "PTBR", "RU")], load("twitch_ENGB")
    vectors = embed([data.graph for data in seen])
    rows = stacked([vectors(data.graph) for data in (*seen, unseen)])
    labels = np.concatenate([data.labels for data in (*seen, unseen)])
    trained, tested = np.split(np.arange(len(labels)), [len(labels) - len(unseen.labels)])
    return probe_cv(rows, labels, trained, tested, seed=0).scores[:, 1], labels[tested]


def bootstrap(other="PCA of T F 0.5"):
    """Print how far SPINE is above a control on Twitch, and 95 % of that over resampled nodes."""
    (ours, labels), (theirs, _) = (
        twitch_scores(lambda train, row=row: embedder(row, train, 0)) for row in ("SPINE", other)
    )
    rng, found = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        some = rng.integers(len(labels), size=len(labels))
        first, second = (roc_auc_score(labels[some] == 1, each[some]) for each in (ours, theirs))
        found.append(100 * (first - second))
    low, middle, high = np.percentile(found, (2.5, 50, 97.5))
    print(f"twitch: SPINE above {other} by {middle:.2f} points of AUC, 95 % from {low:.2f} to {high:.2f}")


def airports(name, seed, embed):
    """Airports without features: micro-F1, the mean of ten of a hundred splits of 80/20."""
    data = load(f"airports_{name}")
    values, n, scores = dense(embed(data.graph)(data.graph)), len(data.graph), []
    for split in range(seed * 10, (seed + 1) * 10):
        order = np.random.default_rng([split, n]).permutation(n)
        cut = round(0.8 * n)
        scores.append(probe_cv(values, data.labels, order[:cut], order[cut:], seed=split).accuracy)
    return np.mean(scores)


def correlation(name, seed, embed):
    """Pearson correlation of distances between linked nodes: of vectors, and of profiles (DTW)."""
    graph = load(name).graph
    edges = links(graph)
    profiles = as_rows(rooted_pagerank(graph, k=20, continuation=0.5).weights, "profiles")
    structural = comparison("dtw", profiles)(*np.ascontiguousarray(edges.T))
    return pearsonr(lengths(dense(embed(graph)(graph)), edges), structural).statistic


def mirror(case, seed, embed):
    """FB-686 beside its mirrored copy: mean distance of linked nodes over that of mirrored ones."""
    union, pairs = mirror_network("perturbed 0.5" if case == "perturbed" else case, seed)
    values = dense(embed(union)(union)).astype(np.float64)
    mirrored, linked = (lengths(values, ends).mean() for ends in (pairs, links(union)))
    return linked / mirrored if mirrored > 1e-5 * linked else np.inf  # but for rounding


def planted(case, seed, embed):
    """Return the share of the ten nearest that are alike, in a made organisation never seen in the fit."""
    here, there = made.planted(seed=2 * seed), made.planted(seed=2 * seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpineWarning)
        found = SPINE(dim=DIM, seed=seed, threads=1).fit(here.graph).transform(there.graph)
    role, department, both = there.role, there.community, there.role * 1000 + there.community
    by, labels = {
        "by role, role": ({"by": "role"}, role),
        "by content and place, department": ({"weights": {"role": 0}}, department),
        "by all, both": ({}, both),
    }[case]
    return nearest_alike(found.weighted(**by).vectors, labels)


def bounds(seeds=10):
    """Print how many of the ten nearest could share role and department, with all behind the ties known.

    One person in ten has the ties of a member whatever the role (``acts``), and where a department has fewer
    than ten others of a role, some of the nearest are strangers.
    """
    found = {"acts and department known": [], "role and department known": []}
    for seed in range(seeds):
        organisation = 2 * seed + 1  # as in ``planted``
        rng = np.random.default_rng([organisation, 1])
        people = _hire(8, 75, 0.9, rng)
        both = people.role * 1000 + people.department
        for known, scores in zip((people.acts, people.role), found.values(), strict=True):
            vectors = np.hstack([np.eye(4)[known], np.eye(8)[people.department]])
            vectors += 1e-3 * rng.standard_normal(vectors.shape)  # among equals any
            scores.append(100 * nearest_alike(vectors, both))
    for name, scores in found.items():
        print(f"planted, {name}: {np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f} % of ten share both")


VARIANTS = {
    "no contrastive steps": {"_STEPS": 0},
    "200 steps": {"_STEPS": 200},
    "temperature 0.05": {"_TEMPERATURE": 0.05},
    "temperature 0.2": {"_TEMPERATURE": 0.2},
    "no penalty": {"_PENALTY": 0.0},
    "homophily not measured": {"_HOMOPHILOUS": 1e-9},
    "h / 0.5": {"_HOMOPHILOUS": 0.5},
}


def variants(seeds=5):
    """Print accuracies with the defaults and, for other constants, how much they change, by network."""
    networks = {name: load(name) for name in (*CITATIONS, "amazon_photo")}
    print(f"| | {' | '.join(['defaults', *VARIANTS])} |\n|---|{'--:|' * (1 + len(VARIANTS))}")
    for rewired, words in ((None, ""), (random_edges, ", links at random")):
        for name, data in networks.items():
            rows = []
            for changes in ({}, *VARIANTS.values()):
                before = {key: getattr(content, key) for key in changes}
                vars(content).update(changes)
                rows.append([validated(data, rewired, 100 + seed) for seed in range(seeds)])
                vars(content).update(before)
            means = np.mean(rows, axis=1)
            shown_means = [f"{means[0]:.1f}", *(f"{mean - means[0]:+.1f}" for mean in means[1:])]
            print(f"| {name}{words} | {' | '.join(shown_means)} |", flush=True)


def validated(data, rewired, seed):
    """Return the accuracy in % on nodes outside the public test set."""
    labels = data.labels.copy()
    if data.test is not None:
        labels[data.test] = -1
    graph = data.graph if rewired is None else rewired(data.graph, seed)
    vectors = embedder("SPINE", graph, seed)(graph)
    return 100 * probe_cv(vectors, labels, *twenty_a_class(labels, seed), seed=seed).accuracy


def two_mode(case, seed, embed):
    """Users and items with eight tastes: the share of the ten nearest users of the same taste."""
    rng = np.random.default_rng([seed, 8])
    users, items, tastes, choices = 800, 400, 8, 12
    taste, kind = rng.integers(tastes, size=users), rng.integers(tastes, size=items)
    edges = []
    for user in range(users):
        own = np.flatnonzero(kind == taste[user])
        fits = rng.random(choices) < 0.7
        picked = np.where(fits, rng.choice(own, choices), rng.integers(items, size=choices))
        edges += [(user, users + item) for item in np.unique(picked)]
    graph = Graph.from_edges(np.array(edges), num_nodes=users + items)
    return nearest_alike(dense(embed(graph)(graph))[:users], taste)


def table(case, seed, embed):
    """Return R2 of ridge regression on later nodes, with a made table of ten mixed columns, half noise."""
    graph, target = made_table(seed)
    n = len(graph)
    kept = np.sort(np.random.default_rng([seed, 3]).permutation(n)[: n * 4 // 5])
    removed = np.setdiff1d(np.arange(n), kept)
    train = graph.subgraph(graph.names[kept])
    vectors = embed(train)
    here, there = dense(vectors(train)), dense(vectors(graph))[removed]
    center, scale = here.mean(axis=0), np.maximum(here.std(axis=0), 1e-9)
    model = RidgeCV(np.logspace(-2, 5, 15)).fit((here - center) / scale, target[kept])
    return model.score((there - center) / scale, target[removed])


def made_table(seed, n=2000, groups=10):
    """Return a network with a table of five telling columns and five of noise, and a target (n,)."""
    rng = np.random.default_rng([seed, 9])
    group = rng.integers(groups, size=n)
    edges = []
    for node in range(n):
        own = np.flatnonzero(group == group[node])
        edges += [(node, other) for other in rng.choice(own, 3) if other != node]
        edges += [(node, other) for other in rng.integers(n, size=1) if other != node]
    income, age, visits = rng.lognormal(10, 0.6, n), rng.normal(45, 12, n), rng.poisson(3, n).astype(float)
    city, plan = rng.integers(50, size=n), rng.integers(4, size=n)
    city_worth, plan_worth, group_worth = (rng.normal(size=size) for size in (50, 4, groups))
    columns = {
        "income": income,
        "age": age,
        "visits": visits,
        "city": np.array([f"city {value}" for value in city], object),
        "plan": np.array([f"plan {value}" for value in plan], object),
        **{f"noise {i}": rng.normal(size=n) * 10.0**i for i in range(3)},
        "color": np.array([f"color {value}" for value in rng.integers(30, size=n)], object),
        "code": np.array([f"code {value}" for value in rng.integers(12, size=n)], object),
    }
    graph = Graph.from_edges(np.array(edges), num_nodes=n)
    encoder = FeatureEncoder().fit(columns)
    graph = graph.with_features(encoder.transform(columns), encoder.feature_names_)._encoded_by(encoder)
    near = Smoother.of(graph, 0.5, threads=1).smooth((visits[:, None] - 3).astype(np.float32))[:, 0]
    target = np.log(income) / 0.6 + (age - 45) / 12 + 3 * near + city_worth[city] + plan_worth[plan]
    target = target + group_worth[group] + rng.normal(size=n) * 1.5
    return graph, target


def hop_means(train, seed):
    """Return the control of ``table``: the columns beside their one- and two-hop means."""

    def embed(graph):
        values = dense(graph.features)
        degrees = np.maximum(graph.degrees, 1)[:, None].astype(np.float32)
        n = len(graph)
        ones = np.ones(len(graph.indices), np.float32)
        links_of = csr_array((ones, graph.indices, graph.indptr), shape=(n, n))
        one = (links_of @ values) / degrees
        return np.hstack([values, one, (links_of @ one) / degrees])

    return embed


# case: (task, case, measure in words, rows, minimum, goal)
_FEATURES, _ALONE = (*SPINE_ROWS, *CONTROLS), ("SPINE", "place", "role", *ALONE)
_LATER = ("SPINE", "content", "no learning", *CONTROLS)
TASKS = {
    **{
        f"features, {name}": (features, name, "accuracy", _FEATURES, *goal)
        for name, *goal in (
            ("cora", 82.5, 84.5),
            ("citeseer", 71.5, 74.0),
            ("pubmed", 81.0, 82.5),
            ("amazon_photo", None, None),
        )
    },
    **{
        f"alone, {name}": (alone, name, "accuracy", _ALONE, *goal)
        for name, *goal in (
            ("cora", 74, 77),
            ("citeseer", 50, 54),
            ("pubmed", 69, 74),
            ("amazon_photo", 85, 88),
        )
    },
    **{
        f"later alone, {name}": (later_alone, name, "accuracy", ("SPINE", "place", "role"), *goal)
        for name, *goal in (
            ("cora", 80, 83),
            ("citeseer", 57, 61),
            ("pubmed", 78, 81),
            ("amazon_photo", 91, 93),
        )
    },
    **{
        f"later, {name} {rate} %": (later, f"{name} {rate}", "accuracy", _LATER, None, None)
        for name in CITATIONS
        for rate in (20, 40, 60, 80)
    },
    **{
        f"{words}, {name}": (task, name, "accuracy", ("SPINE", "content", "no learning", *OWN), None, None)
        for words, task in (("links at random", random_links), ("unlike neighbours", unlike_neighbors))
        for name in ("cora", "citeseer", "amazon_photo")
    },
    "two modes": (two_mode, "", "share of 10", ("place", "SPINE", *ALONE), 90, 97),
    "ppi": (ppi, "", "micro-F1", ("SPINE", "content", "role", *CONTROLS, "log degree"), 56, None),
    "tolokers": (tolokers, "", "AUC", (*_FEATURES, "node2vec"), 80, 84),
    "twitch": (twitch, "", "AUC", ("SPINE", "content", "role", "no learning", *CONTROLS), None, None),
    **{
        f"airports, {name}": (airports, name, "micro-F1", (*_ALONE, "log degree"), *goal)
        for name, *goal in (("brazil", 77, 80), ("europe", 60, 65))
    },
    **{
        f"correlation, {name}": (correlation, name, "Pearson", ("role", "SPINE", "log degree"), floor, 85)
        for name, floor in (("cora", 77), ("citeseer", 72), ("pubmed", 78))
    },
    **{
        f"mirror, {case}": (mirror, case, "ratio", ("role", "SPINE", "log degree"), None, None)
        for case in ("equal", "shuffled", "perturbed")
    },
    **{
        f"planted, {case}": (planted, case, "share of 10", ("SPINE",), *goal)
        for case, *goal in (
            ("by role, role", 85, 90),
            ("by content and place, department", 95, 98),
            ("by all, both", 80, 85),
        )
    },
    "table": (table, "", "R2", ("SPINE", "content", "no learning", "raw features", "hop means"), None, None),
}


def without_features(graph):
    """Return the graph alone."""
    edges = links(graph)
    weights = None
    if graph.weights is not None:
        rows = np.repeat(np.arange(len(graph)), graph.degrees)
        weights = graph.weights[rows < graph.indices]
    return Graph.from_edges(edges, num_nodes=len(graph), weights=weights).relabel(graph.names)


def dense(matrix):
    """Return a matrix as a float32 array."""
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix, dtype=np.float32)


def nearest_alike(vectors, labels):
    """Return the share of the ten nearest by cosine, the node itself left out, that have its label."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argpartition(-cosines, NEAREST, axis=1)[:, :NEAREST]
    return (labels[nearest] == labels[:, None]).mean()


def measure(name, row, seed):
    """Return one cell: what was measured, times 100 but for ratios, and the seconds it took."""
    task, case, kind, *_ = TASKS[name]
    started = time.perf_counter()
    make = hop_means if row == "hop means" else lambda train, seed: embedder(row, train, seed)
    value = float(task(case, seed, lambda train: make(train, seed)))
    value = value if kind == "ratio" else 100 * value
    return {"value": value if np.isfinite(value) else None, "seconds": time.perf_counter() - started}


def read():
    """Return the stored cells by "task/row/seed"; other settings than today's are refused."""
    if not RESULTS.exists():
        return {}
    stored = json.loads(RESULTS.read_text())
    if stored.get("config") != settings():
        sys.exit(f"{RESULTS} has results of other settings; delete or move it")
    return stored["cells"]


def settings():
    """Return the defaults that the cells were measured with."""
    return json.loads(
        json.dumps({k: v for k, v in Config().to_json().items() if k not in ("seed", *MACHINE_SETTINGS)})
    )


def write(cells):
    """Store all cells; whole or not at all."""
    RESULTS.parent.mkdir(exist_ok=True)
    about = {"machine": describe("scipy", "scikit-learn"), "config": settings(), "cells": cells}
    draft = RESULTS.with_suffix(".draft")
    draft.write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")
    draft.replace(RESULTS)


def values_of(cells, name, row):
    """Return the values of a row, by seed."""
    found = {}
    for key, cell in cells.items():
        task, other, seed = key.split("/")
        if (task, other) == (name, row):
            found[int(seed)] = np.inf if cell["value"] is None else cell["value"]
    return dict(sorted(found.items()))


def shown(values, digits=1):
    """Return mean and deviation."""
    if not values:
        return ""
    numbers = np.array(list(values.values()))
    if not np.isfinite(numbers).all():
        return "exact"
    deviation = f" ± {numbers.std(ddof=1):.{digits}f}" if len(numbers) > 1 and numbers.std() > 0 else ""
    return f"{numbers.mean():.{digits}f}{deviation}"


def best_control(cells, name):
    """Return the row of the best control of at most 200 columns, and of any width, by mean."""
    means = {}
    for row in TASKS[name][3]:
        if row not in SPINE_ROWS and (found := values_of(cells, name, row)):
            means[row] = np.mean(list(found.values()))
    few = WHOLE[:1] if name in FEW_COLUMNS else ()
    narrow = {row: mean for row, mean in means.items() if row not in WHOLE or row in few}
    return (max(some, key=some.get, default=None) for some in (narrow, means))


def beside(cells, name, row):
    """Return a control's score and, where it has fewer seeds, that of SPINE with the same ones."""
    if row is None:
        return ""
    theirs, ours = values_of(cells, name, row), values_of(cells, name, "SPINE")
    same = {seed: value for seed, value in ours.items() if seed in theirs}
    note = f"; SPINE with the same seeds {shown(same)}" if same and len(same) < len(ours) else ""
    return f"{shown(theirs)} ({row}{note})"


def lines(cells):
    """Return the table of all tasks."""
    titles = "SPINE, all parts", *list(SPINE_ROWS)[1:], "best control", "best of any width"
    yield f"| task | minimum / goal | {' | '.join(titles)} |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for name, (_, _, kind, _, minimum, goal) in TASKS.items():
        if not any(key.startswith(f"{name}/") for key in cells):
            continue
        wanted = "" if minimum is None else f"{minimum} / {'' if goal is None else goal}"
        ours = [shown(values_of(cells, name, row)) for row in SPINE_ROWS]
        others = [beside(cells, name, row) for row in best_control(cells, name)]
        yield f"| {name} ({kind}) | {wanted} | {' | '.join([*ours, *others])} |"


def write_page(cells):
    """Write the table into the page."""
    before, _, rest = PAGE.read_text().partition(FIRST)
    if not rest:
        sys.exit(f"{PAGE.name} must hold the line {FIRST}")
    table = "\n".join(lines(cells))
    PAGE.write_text(f"{before}{FIRST}\n{table}\n{LAST}{rest.partition(LAST)[2]}")


def main():
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", default="")
    parser.add_argument("--rows", default="")
    parser.add_argument("--seeds", default="10")
    parser.add_argument("--jobs", default=2, type=int)
    parser.add_argument("--limit", default=1e9, type=float, help="stop after so many seconds")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--bootstrap", action="store_true")
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--variants", action="store_true")
    arguments = parser.parse_args()
    for name, run in (("bootstrap", bootstrap), ("bounds", bounds), ("variants", variants)):
        if getattr(arguments, name):
            run()
            return
    first, _, last = arguments.seeds.rpartition(":")
    cells = read()
    wanted = [
        (name, row, seed)
        for seed in range(int(first or 0), int(last))
        for name, (_, _, _, rows, *_) in TASKS.items()
        if name.startswith(tuple(arguments.tasks.split(",")))
        for row in rows
        if row.startswith(tuple(arguments.rows.split(",")))
        if arguments.fresh or f"{name}/{row}/{seed}" not in cells
    ]
    if arguments.show or arguments.page:
        wanted = []
    stop = time.monotonic() + arguments.limit
    with ProcessPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(measure, *each): each for each in wanted}
        for done in as_completed(running):
            name, row, seed = running[done]
            if done.cancelled():
                continue
            cells[f"{name}/{row}/{seed}"] = done.result()
            print(f"{name}/{row}/{seed}: {done.result()}", file=sys.stderr, flush=True)
            write(cells)
            if time.monotonic() > stop:
                for other in running:
                    other.cancel()
    print("\n".join(lines(cells)))
    if arguments.page:
        write_page(cells)


if __name__ == "__main__":
    main()
