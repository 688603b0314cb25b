"""A mixture of Gaussians over standardised rows: soft groups, and how many of them there are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]

# Added to every variance: values are counts and shares, so no group is narrower than 0.4 deviations.
BLUR = 0.15
MOST = 6  # groups that are tried; more than that nobody keeps in mind
_STARTS, _SHORT, _LONG, _STILL = 12, 60, 300, 1e-7
_NO_BETTER = 2.0  # of the criterion: then the smaller number will do
_ROWS = 4_000  # that a fit reads at most


@dataclass(frozen=True, eq=False)
class Mixture:
    """Groups with a share each, and columns that vary independently inside a group.

    Attributes
    ----------
    shares : float64 array (g,)
        Sum to 1.
    means, variances : float64 array (g, c)

    Examples
    --------
    >>> mixture = Mixture(np.array([0.5, 0.5]), np.array([[0.0], [4.0]]), np.ones((2, 1)))
    >>> mixture.memberships(np.array([[0.0], [2.0]])).round(3)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    shares: Rows
    means: Rows
    variances: Rows

    def __len__(self) -> int:
        return len(self.shares)

    def log_joint(self, rows: Rows) -> Rows:
        """Return log(share times density) of every row in every group, (n, g)."""
        precisions = 1 / self.variances
        distances = (
            np.square(rows) @ precisions.T
            - 2 * rows @ (self.means * precisions).T
            + (np.square(self.means) * precisions).sum(axis=1)
        )
        sizes = np.log(2 * np.pi * self.variances).sum(axis=1)
        joint: Rows = np.log(self.shares) - 0.5 * (distances + sizes)
        return joint

    def log_density(self, rows: Rows) -> NDArray[np.float64]:
        """Return the log density of every row, (n,)."""
        return _log_sum(self.log_joint(rows))

    def memberships(self, rows: Rows) -> Rows:
        """Return the probability of every group given a row, (n, g); rows sum to 1."""
        joint = self.log_joint(rows)
        found = np.exp(joint - joint.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def ordered(self, order: NDArray[np.int64]) -> "Mixture":
        """Return the same groups in another order."""
        return Mixture(self.shares[order], self.means[order], self.variances[order])


def distinct(rows: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """Return the different rows in sorted order and how often each occurs: node order leaves no trace.

    Of more than 4,000 rows, as many are taken at even distances of the sorted order.

    Examples
    --------
    >>> distinct(np.array([[2.0], [1.0], [2.0]]))
    (array([[1.],
           [2.]]), array([1., 2.]))
    """
    rows = rows.round(6)
    if len(rows) > _ROWS:
        rows = rows[np.lexsort(rows.T[::-1])][np.linspace(0, len(rows) - 1, _ROWS).astype(np.int64)]
    found, counts = np.unique(rows, axis=0, return_counts=True)
    return found, counts.astype(np.float64)


def fit_mixture(rows: Rows, counts: NDArray[np.float64], groups: int, seed: int = 0) -> Mixture:
    """Fit so many groups by expectation maximisation, the best of twelve starts.

    The best has the best completed likelihood, not the highest likelihood: that would be the spikiest.

    Parameters
    ----------
    rows : float64 array (m, c)
        Different rows, as ``distinct`` gives them.
    counts : float64 array (m,)
        How often each occurs.
    groups, seed : int
    """
    starts = _STARTS if groups > 1 else 1
    drawn = (_start(rows, counts, groups, np.random.default_rng([seed, groups, n])) for n in range(starts))
    short = [_climb(rows, counts, start, _SHORT) for start in drawn]
    best = min(short, key=lambda mixture: completed_likelihood(mixture, rows, counts))
    return _climb(rows, counts, best, _LONG)


def choose_mixture(
    rows: Rows, counts: NDArray[np.float64], seed: int = 0
) -> tuple[Mixture, dict[int, float]]:
    """Fit 1 to 6 groups and keep the number whose integrated completed likelihood is best.

    Returns
    -------
    Mixture, {groups: criterion}
        The smallest number within 2 of the best. The criterion is BIC plus twice the entropy of the
        memberships, lower is better: a further group has to explain the rows better *and* be told apart.

    Examples
    --------
    >>> rows = np.concatenate([np.zeros((30, 1)), np.full((30, 1), 5.0)])
    >>> mixture, scores = choose_mixture(*distinct(rows))
    >>> len(mixture), mixture.means.round(1).ravel().tolist()
    (2, [0.0, 5.0])
    """
    tried = {groups: fit_mixture(rows, counts, groups, seed) for groups in range(1, min(MOST, len(rows)) + 1)}
    scores = {groups: completed_likelihood(mixture, rows, counts) for groups, mixture in tried.items()}
    enough = min(scores.values()) + _NO_BETTER
    return next(mixture for groups, mixture in tried.items() if scores[groups] <= enough), scores


def completed_likelihood(mixture: Mixture, rows: Rows, counts: NDArray[np.float64]) -> float:
    """Return BIC plus twice the entropy of the memberships; lower is better."""
    groups, columns = mixture.means.shape
    joint = mixture.log_joint(rows)
    likelihood = float(counts @ _log_sum(joint))
    memberships = mixture.memberships(rows)
    entropy = -float(counts @ (memberships * np.log(np.maximum(memberships, 1e-300))).sum(axis=1))
    free = groups - 1 + 2 * groups * columns
    return float(-2 * likelihood + free * np.log(counts.sum()) + 2 * entropy)


def _start(rows: Rows, counts: NDArray[np.float64], groups: int, rng: np.random.Generator) -> Mixture:
    """Draw means far from each other (k-means++)."""
    means = rows[[rng.choice(len(rows), p=counts / counts.sum())]]
    while len(means) < groups:
        distances = np.square(rows[:, None] - means).sum(axis=2).min(axis=1) * counts
        means = np.vstack([means, rows[rng.choice(len(rows), p=distances / distances.sum())]])
    return Mixture(np.full(groups, 1 / groups), means, np.ones(means.shape))


def _climb(rows: Rows, counts: NDArray[np.float64], mixture: Mixture, steps: int) -> Mixture:
    """Take steps of expectation maximisation until the likelihood stands still."""
    squares, total, before = np.square(rows), counts.sum(), -np.inf
    for _ in range(steps):
        joint = mixture.log_joint(rows)
        log_density = _log_sum(joint)
        likelihood = float(counts @ log_density) / total
        if abs(likelihood - before) < _STILL:
            break
        before = likelihood
        parts = np.exp(joint - log_density[:, None]) * counts[:, None]  # (m, g)
        sizes = np.maximum(parts.sum(axis=0), 1e-9)
        means = (parts.T @ rows) / sizes[:, None]
        variances = np.maximum((parts.T @ squares) / sizes[:, None] - np.square(means), 0) + BLUR
        mixture = Mixture(sizes / sizes.sum(), means, variances)
    return mixture


def _log_sum(joint: Rows) -> NDArray[np.float64]:
    largest = joint.max(axis=1)
    found: NDArray[np.float64] = largest + np.log(np.exp(joint - largest[:, None]).sum(axis=1))
    return found
