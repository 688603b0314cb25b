"""What ``benchmarks.accuracy`` measures: one function per item, one call per data set and seed.

A function returns ``{row: {measure: list of values}}``; all rows of a call see the same draws. How things are
split and scored is :mod:`paper.protocols`, shared with the paper's tables.
"""

import numpy as np
from paper.protocols import (
    Removal,
    fitted,
    lengths,
    links,
    load,
    mirror_network,
    once,
    stacked,
    transductive_accuracy,
)
from scipy.stats import pearsonr, spearmanr

from spinegraph import Graph, rooted_pagerank
from spinegraph.analysis.baselines import CONTROLS, dense, methods
from spinegraph.analysis.evaluation import probe_cv, ranking_auc
from spinegraph.structure.similarity import pair_distances

_CITATIONS = ("cora", "citeseer", "pubmed")
_RATES = (20, 40, 60, 80)
_SPLITS_PER_SEED = 10
_RESAMPLES = 1000


def transductive(name, seed, settings, wanted):
    """Public split: accuracy with C from the validation nodes."""
    data = load(name)
    model = fitted(data.graph, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model.generator_, data.graph, seed), wanted):
        result[row] = {"accuracy": [transductive_accuracy(data, vectors(data.graph))]}
    return result


def inductive(case, seed, settings, wanted):
    """Nodes removed at random, classified from kept labels; ``strict``: no link between two removed nodes."""
    name, rate = case.split()
    removal = Removal.draw(load(name), int(rate), seed)
    model = fitted(removal.train, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model.generator_, removal.train, seed), wanted):
        found = removal.accuracies(vectors, seed)
        result[row] = {measure: [value] for measure, value in found.items()}
    return result


def roles(name, seed, settings, wanted):
    """Airports without features: micro-F1 over ten of the hundred splits of 80/20."""
    data = load(name)
    n = len(data.graph)
    model = fitted(data.graph, seed, settings)
    result = {}
    for row, vectors in chosen(methods(model.generator_, data.graph, seed, role=True), wanted):
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
    for row, vectors in chosen(methods(model.generator_, train, seed), {*wanted, "SPINE"}):
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
    union, pairs = mirror_network("perturbed 0.5" if case == "perturbed" else case, seed)
    model = fitted(union, seed, settings)
    rows = methods(model.generator_, union, seed, role=True)
    if "struc2vec" in wanted:
        from paper.baselines import struc2vec

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
    for row, vectors in chosen(methods(model.generator_, graph, seed, role=True), wanted):
        apart = lengths(dense(vectors(graph)), edges)
        result[row] = {
            "Pearson": [pearsonr(apart, structural).statistic],
            "Spearman": [spearmanr(apart, structural).statistic],
        }
    return result


ITEMS = {  # item: (function, data sets, rows)
    "transductive": (transductive, _CITATIONS, ("SPINE", *CONTROLS)),
    "inductive": (
        inductive,
        tuple(f"{name} {rate}" for name in _CITATIONS for rate in _RATES),
        ("SPINE", *CONTROLS),
    ),
    "roles": (roles, ("airports_brazil", "airports_europe"), ("SPINE", *CONTROLS, "log degree")),
    "across": (across, ("twitch_ENGB",), ("SPINE", *CONTROLS, "SPINE, in-domain")),
    "mirror": (
        mirror,
        ("equal", "shuffled", "perturbed"),
        ("SPINE", *CONTROLS, "log degree", "struc2vec"),
    ),
    "correlation": (correlation, ("cora",), ("SPINE", *CONTROLS, "log degree")),
}


def chosen(rows, wanted):
    """Yield the rows that are wanted, SPINE first."""
    return ((row, vectors) for row, vectors in rows.items() if row in wanted)


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
