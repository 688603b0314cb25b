"""Node classification: what a linear classifier reads off vectors, over several random splits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.evaluation import probe
from spinegraph.errors import ParameterError


@dataclass(frozen=True)
class Split:
    """Positions of the nodes that train a classifier, choose its penalty and test it.

    Attributes
    ----------
    train, val, test : int64 arrays
        Disjoint.
    """

    train: NDArray[np.int64]
    val: NDArray[np.int64]
    test: NDArray[np.int64]


@dataclass(frozen=True)
class ClassScore:
    """How well classes are read off some vectors.

    Attributes
    ----------
    vectors : str
        Which vectors.
    accuracy, deviation : float
        Mean and standard deviation over splits, of the share of test nodes that are classified rightly.
    C : tuple of float
        The inverse penalty that validation nodes chose, per split; empty where nothing was fitted.
    """

    vectors: str
    accuracy: float
    deviation: float
    C: tuple[float, ...] = ()


def class_numbers(labels: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Return labels as numbers, -1 where unknown, and the classes in order.

    Examples
    --------
    >>> class_numbers(np.array(["b", None, "a"], dtype=object))
    (array([ 1, -1,  0]), ['a', 'b'])
    """
    classes = sorted({str(label) for label in labels.tolist() if label is not None})
    place = {name: number for number, name in enumerate(classes)}
    return np.array([-1 if one is None else place[str(one)] for one in labels.tolist()], np.int64), classes


def random_split(labels: NDArray[np.int64], train: float, val: float, seed: int) -> Split:
    """Split the nodes of known label at random, each class in these shares.

    A class gives at least one node to training; what it has left goes to validation and test. One of three
    nodes or more gives some to each.

    Examples
    --------
    >>> split = random_split(np.repeat([0, 1, -1], 10), train=0.2, val=0.1, seed=0)
    >>> len(split.train), len(split.val), len(split.test)
    (4, 2, 14)
    """
    if not (0 < train < 1 and 0 < val < 1 and train + val < 1):
        raise ParameterError(f"shares of training and validation must leave some to test; got {train}, {val}")
    rng = np.random.default_rng([seed, 23])
    parts: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for number in range(int(labels.max(initial=-1)) + 1):
        nodes = rng.permutation(np.flatnonzero(labels == number))
        trained = max(1, min(round(train * len(nodes)), len(nodes) - 2))
        checked = max(1, min(round(val * len(nodes)), len(nodes) - trained - 1))
        ends = [trained, trained + checked]
        for part, some in zip(parts, np.split(nodes, ends), strict=True):
            part.append(some)
    found = [np.concatenate(part) if part else np.empty(0, np.int64) for part in parts]
    if min(map(len, found)) == 0 or len(parts[0]) < 2:
        known = int((labels >= 0).sum())
        raise ParameterError(
            f"{known} nodes of known label in {len(parts[0])} classes are too few to split into training, "
            "validation and test; label at least three nodes of each of two classes"
        )
    return Split(*found)


def score_classes(
    rows: Mapping[str, Any],
    labels: NDArray[np.int64],
    *,
    train: float = 0.2,
    val: float = 0.1,
    repeats: int = 5,
    seed: int = 0,
) -> list[ClassScore]:
    """Classify nodes by each of several vectors, on the same splits; the largest class stands last.

    Parameters
    ----------
    rows : dict of name to array or sparse matrix (n, d)
    labels : int array (n,)
        -1 where unknown.
    train, val : float
        Shares of every class; the rest is tested.
    repeats : int
        Random splits.
    seed : int

    Examples
    --------
    >>> labels = np.repeat([0, 1], 20)
    >>> for score in score_classes({"telling": labels[:, None], "empty": np.zeros((40, 1))}, labels):
    ...     print(score.vectors, score.accuracy)
    telling 1.0
    empty 0.5
    largest class 0.5
    """
    splits = [random_split(labels, train, val, seed + repeat) for repeat in range(repeats)]
    scores = []
    for name, vectors in rows.items():
        found = [probe(vectors, labels, split.train, split.val, split.test) for split in splits]
        scores.append(_score(name, [one.accuracy for one in found], tuple(one.C for one in found)))
    largest = [float((labels[s.test] == np.bincount(labels[s.train]).argmax()).mean()) for s in splits]
    return [*scores, _score("largest class", largest, ())]


def _score(name: str, accuracies: list[float], chosen: tuple[float, ...]) -> ClassScore:
    return ClassScore(name, float(np.mean(accuracies)), float(np.std(accuracies)), chosen)
