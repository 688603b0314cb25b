"""Lesson: what W_M is learned from, as the stages before learning leave it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinegraph.learning.sampling import PairSampler
from spinegraph.structure.smoothing import Smoothed


@dataclass(frozen=True, eq=False)
class Lesson:
    """What training reads.

    Attributes
    ----------
    smoothed : Smoothed (m, f)
        T F of the training nodes.
    past : float32 array (m, s) or None
        Their structural columns, where these go past T.
    sampler : PairSampler
        Draws the pairs.
    power : float
        Power of the length that the generator divides content by.

    Examples
    --------
    >>> from scipy.sparse import csr_array, eye_array
    >>> from spinegraph import Config, made
    >>> from spinegraph.learning.sampling import gather_corpus
    >>> graph, config = made.karate(), Config()
    >>> sampler = PairSampler(gather_corpus(graph, config), None, graph.degrees, config)
    >>> one_hot = csr_array(eye_array(34, dtype=np.float32))
    >>> Lesson(Smoothed(one_hot, one_hot, 1), None, sampler, 0.5).smoothed.shape
    (34, 34)
    """

    smoothed: Smoothed
    past: NDArray[np.float32] | None
    sampler: PairSampler
    power: float
