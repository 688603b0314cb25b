"""How each claim is measured: one function per item, one call per data set and seed.

A function returns ``{row: {measure: list of values}}``; all rows of a call see the same draws.
"""

import hashlib
import importlib.util
from functools import cache

import numpy as np
from benchmarks.controls import dense, methods
from scipy.sparse import issparse, vstack
from scipy.stats import pearsonr, spearmanr

from spinegraph import SPINE, Graph, datasets, made, rooted_pagerank
from spinegraph.analysis.evaluation import probe, probe_cv, ranking_auc
from spinegraph.structure.distances import pair_distances

load = cache(datasets.load)
_CITATIONS = ("cora", "citeseer", "pubmed")
_RATES = (20, 40, 60, 80)
_SPLITS_PER_SEED = 10
_RESAMPLES = 1000
_found = {}  # rows that do not depend on the seed are probed once


def transductive(name, seed, settings, wanted):
    """Public split: accuracy with C from the validation nodes."""
    data = load(name)
    model = fitted(data.graph, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model, data.graph, seed), wanted):
        found = once(probe, vectors(data.graph), data.labels, data.train, data.val, data.test)
        result[row] = {"accuracy": [found.accuracy]}
    return result


def inductive(case, seed, settings, wanted):
    """Nodes removed at random, classified from kept labels; ``strict``: no link between two removed nodes.

    Training vectors come from the reduced graph, the removed nodes' from the full one.
    """
    name, rate = case.split()
    data = load(name)
    n = len(data.graph)
    order = np.random.default_rng([seed, int(rate)]).permutation(n)
    removed = np.sort(order[: round(n * int(rate) / 100)])
    kept = np.setdiff1d(np.arange(n), removed)
    train = data.graph.subgraph(data.graph.names[kept])
    strict = without_links_among(data.graph, removed)
    model = fitted(train, seed, settings)
    labels = np.concatenate([data.labels[kept], data.labels[removed], data.labels[removed]])
    known = np.flatnonzero(labels >= 0)
    trained, tested = known[known < len(kept)], known[known >= len(kept)]
    result = {}
    for row, vectors in chosen(methods(model, train, seed), wanted):
        parts = [vectors(train), vectors(data.graph)[removed], vectors(strict)[removed]]
        found = once(probe_cv, stacked(parts), labels, trained, tested, seed=seed)
        right = found.classes[found.scores.argmax(axis=1)] == labels[tested]
        is_strict = tested >= len(kept) + len(removed)
        result[row] = {"accuracy": [right[~is_strict].mean()], "strict": [right[is_strict].mean()]}
    return result


def roles(name, seed, settings, wanted):
    """Airports without features: micro-F1 over ten of the hundred splits of 80/20."""
    data = load(name)
    n = len(data.graph)
    model = fitted(data.graph, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model, data.graph, seed, role=True), wanted):
        values, scores = vectors(data.graph), []
        for split in range(seed * _SPLITS_PER_SEED, (seed + 1) * _SPLITS_PER_SEED):
            order = np.random.default_rng([split, n]).permutation(n)
            cut = round(0.8 * n)
            scores.append(probe_cv(values, data.labels, order[:cut], order[cut:], seed=split).accuracy)
        result[row] = {"micro-F1": scores}
    return result


def across(name, seed, settings, wanted):
    """Twitch: fitted and labelled in three countries, classified in a fourth, with a paired bootstrap."""
    seen = [load(f"twitch_{country}") for country in ("ES", "PTBR", "RU")]
    unseen = load(name)
    train = Graph.union([data.graph for data in seen], keys=range(len(seen)))
    model = fitted([data.graph for data in seen], seed, settings)
    labels = np.concatenate([*(data.labels for data in seen), unseen.labels])
    trained, tested = np.split(np.arange(len(labels)), [len(train)])
    result, ranked = {}, {}
    for row, vectors in chosen(methods(model, train, seed), {*wanted, "SPINE"}):
        parts = [vectors(train), vectors(unseen.graph)]
        found = once(probe_cv, stacked(parts), labels, trained, tested, seed=0)
        ranked[row] = found.scores[:, 1]
        result[row] = {"AUC": [found.auc], **bootstrap(unseen.labels == 1, ranked["SPINE"], ranked[row])}
    if "SPINE, in-domain" in wanted:
        own = fitted(unseen.graph, seed, settings).embeddings_.vectors
        part_of = np.random.default_rng(seed).permutation(len(own)) % 5
        folds = [
            probe_cv(own, unseen.labels, np.flatnonzero(part_of != part), np.flatnonzero(part_of == part))
            for part in range(5)
        ]
        result["SPINE, in-domain"] = {"AUC": [float(np.mean([fold.auc for fold in folds]))]}
    return result


def mirror(case, seed, settings, wanted):
    """FB-686 beside a mirrored copy: equal features, features shuffled over both, or both perturbed."""
    graph = load("fb686").graph
    graph = graph.subgraph(graph.names[graph.degrees > 0])
    n = len(graph)
    if case == "perturbed":
        copies = [made.perturbed(graph, keep=0.5, seed=2 * seed + copy) for copy in (0, 1)]
        union = Graph.union(copies, keys=(0, 1))
        pairs = np.column_stack([np.arange(n), n + np.arange(n)])
    else:
        union, pairs = made.mirrored(graph, seed=seed)
    if case == "shuffled":
        order = np.random.default_rng([seed, 5]).permutation(2 * n)
        union = union.with_features(union.feature_rows(order), union.feature_names)
    model = fitted(union, seed, settings)
    rows = methods(model, union, seed, role=True)
    if importlib.util.find_spec("benchmarks.struc2vec"):
        from benchmarks.struc2vec import struc2vec

        rows["struc2vec"] = lambda union: struc2vec(union, model.config_.dim, seed)
    result = {}
    for row, vectors in chosen(rows, wanted):
        values = dense(vectors(union)).astype(np.float64)
        mirrored, linked = (lengths(values, ends) for ends in (pairs, links(union)))
        if case == "equal":
            result[row] = {"largest Pm over mean Pa": [mirrored.max() / linked.mean()]}
        else:
            mean = mirrored.mean()
            result[row] = {"Pa/Pm": [linked.mean() / mean if mean > 0 else np.inf]}
    return result


def correlation(name, seed, settings, wanted):
    """Distance of vectors against structural distance, over edges."""
    graph = load(name).graph
    edges = links(graph)
    structural = pair_distances(rooted_pagerank(graph, k=20, continuation=0.5).weights, edges)
    model = fitted(graph, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model, graph, seed, role=True), wanted):
        apart = lengths(dense(vectors(graph)), edges)
        result[row] = {
            "Pearson": [pearsonr(apart, structural).statistic],
            "Spearman": [spearmanr(apart, structural).statistic],
        }
    return result


_CONTROLS = ("raw features", "T F", "PCA of T F", "PCA of T F + columns", "random W_M")
ITEMS = {  # item: (function, data sets, rows)
    "transductive": (transductive, _CITATIONS, ("SPINE", *_CONTROLS)),
    "inductive": (
        inductive,
        tuple(f"{name} {rate}" for name in _CITATIONS for rate in _RATES),
        ("SPINE", *_CONTROLS),
    ),
    "roles": (roles, ("airports_brazil", "airports_europe"), ("SPINE", *_CONTROLS, "log degree")),
    "across": (across, ("twitch_ENGB",), ("SPINE", *_CONTROLS, "SPINE, in-domain")),
    "mirror": (
        mirror,
        ("equal", "shuffled", "perturbed"),
        ("SPINE", *_CONTROLS, "log degree", "struc2vec"),
    ),
    "correlation": (correlation, ("cora",), ("SPINE", *_CONTROLS, "log degree")),
}


def fitted(graph, seed, settings):
    """Return the model; one thread, so that runs side by side do not wait for each other."""
    return SPINE(**{"threads": 1, **settings, "seed": seed}).fit(graph)


def chosen(rows, wanted):
    """Yield the rows that are wanted, SPINE first."""
    return ((row, vectors) for row, vectors in rows.items() if row in wanted)


def once(measure, vectors, *arguments, **options):
    """Return a probe's result, from memory where it has seen the same vectors and nodes."""
    print_of = hashlib.blake2b(repr(sorted(options.items())).encode())
    matrix = [vectors.data, vectors.indices, vectors.indptr] if issparse(vectors) else [vectors]
    for array in (*matrix, *arguments):
        print_of.update(np.ascontiguousarray(array).tobytes())
    key = print_of.digest()
    if key not in _found:
        _found[key] = measure(vectors, *arguments, **options)
    return _found[key]


def bootstrap(positive, spine, control):
    """Return the middle 95 % of SPINE's AUC less a control's, nodes drawn again and again."""
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(_RESAMPLES if control is not spine else 0):
        drawn = rng.integers(len(positive), size=len(positive))
        differences.append(
            ranking_auc(positive[drawn], spine[drawn]) - ranking_auc(positive[drawn], control[drawn])
        )
    return {"SPINE less this": list(np.quantile(differences, [0.025, 0.975]))} if differences else {}


def links(graph):
    """Return every edge once, as positions (m, 2)."""
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    once = rows < graph.indices
    return np.column_stack([rows[once], graph.indices[once]])


def lengths(vectors, pairs):
    """Return Euclidean distances (m,)."""
    return np.linalg.norm(vectors[pairs[:, 0]] - vectors[pairs[:, 1]], axis=1)


def without_links_among(graph, removed):
    """Return the graph without edges between two removed nodes."""
    edges = links(graph)
    gone = np.isin(edges, removed).all(axis=1)
    return Graph.from_edges(
        edges[~gone], num_nodes=len(graph), features=graph.features, feature_names=graph.feature_names
    ).relabel(graph.names)


def stacked(parts):
    """Return matrices one above the other."""
    return vstack(parts, format="csr") if issparse(parts[0]) else np.vstack(parts)
