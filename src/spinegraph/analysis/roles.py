"""Roles: soft groups of nodes that stand alike in their networks, wherever they live."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.roles_communities import Communities, find_communities
from spinegraph.analysis.roles_json import read_parts
from spinegraph.analysis.roles_mixture import MOST, Mixture, choose_mixture, distinct, fit_mixture
from spinegraph.analysis.roles_signature import (
    COLUMNS,
    LEAST_SCALE,
    coordinates,
    neighbors_of,
    signature,
    usual_clustering,
)
from spinegraph.analysis.roles_titles import MOST_TITLES, titles
from spinegraph.analysis.roles_words import Typical, describe
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.generator import Generator
from spinegraph.graph.overlay import Overlay

_STRANGE = 0.01  # the share of the first network's nodes that count as unlike any role


@dataclass(frozen=True, eq=False)
class RoleAssignment:
    """Which nodes play which role.

    Attributes
    ----------
    names : array (n,)
    memberships : float64 array (n, r)
        Probabilities; rows sum to 1.
    roles : int64 array (n,)
        The likeliest role of each node.
    typicality : float64 array (n,)
        Log density of the node; the higher, the more it is like others.
    is_strange : bool array (n,)
        Nodes less typical than 99 % of those that the roles were found on.
    """

    names: NDArray[Any]
    memberships: NDArray[np.float64]
    roles: NDArray[np.int64]
    typicality: NDArray[np.float64]
    is_strange: NDArray[np.bool_]

    def examples(self, role: int, count: int = 3) -> list[Any]:
        """Name the most typical nodes of a role, the clearest first."""
        members = np.flatnonzero(self.roles == role)
        sure = np.minimum(self.memberships[members, role], 0.95)  # beyond that, how typical counts
        order = np.lexsort((-self.typicality[members].round(6), -sure.round(6)))
        return list(self.names[members[order[:count]]].tolist())

    def shares(self) -> NDArray[np.float64]:
        """Return the share of the nodes that each role is the likeliest of, (r,)."""
        counts = np.bincount(self.roles, minlength=self.memberships.shape[1])
        return np.asarray(counts / max(len(self.roles), 1))


@dataclass(frozen=True, eq=False)
class Roles:
    """Roles found on one network, with words for them, that can be told on any other.

    Attributes
    ----------
    titles, descriptions : list of str
        A short name, and what sets the role apart.
    typical : list of Typical
        Typical numbers of each role.
    whole : Typical
        Typical numbers of the network.
    scores : dict {number of roles: criterion}
        Integrated completed likelihood, lower is better; empty where the number was given.
    mixture : Mixture
        Over standardised coordinates.
    usual : float
        The network's mean clustering, that of nodes with few neighbours is drawn to it.
    mean, scale : float64 array (c,)
        Of the coordinates.
    communities : Communities or None
        As regions of the vectors; None where there are none, or the model reads no features.
    least_typical : float
        Log density below which a node is like none of the roles.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> graph = made.barbell(10, bridge=5)
    >>> generator = SPINE(dim=8, steps=5).fit(graph).generator_
    >>> roles = Roles.find(graph, generator)
    >>> roles.titles
    ['core member', 'clique member', 'chain']
    >>> roles.assign(graph, generator, nodes=[0, 9, 12]).roles.tolist()
    [1, 0, 2]
    """

    titles: list[str]
    descriptions: list[str]
    typical: list[Typical]
    whole: Typical
    scores: dict[int, float]
    mixture: Mixture
    usual: float
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    communities: Communities | None
    least_typical: float

    def __len__(self) -> int:
        return len(self.titles)

    @classmethod
    def find(
        cls,
        graph: Any,
        generator: Generator,
        embeddings: Embeddings | None = None,
        *,
        count: int | None = None,
        seed: int = 0,
    ) -> "Roles":
        """Find the roles of a network.

        A node is known by how many neighbours it has, how far they know each other, how its degree stands to
        theirs, and, where the model reads features, to how many communities they belong; communities are
        regions of the vectors. Over these numbers lies a mixture of Gaussians. Edge weights are not read.

        Parameters
        ----------
        graph : Graph
        generator : Generator
        embeddings : Embeddings, optional
            The generator's vectors of all nodes, where they are at hand.
        count : int, optional
            How many roles; by default the smallest number from 1 to 6 that is within 2 of the best integrated
            completed likelihood: BIC, and twice the entropy of the memberships.
        seed : int
        """
        _require_count(count)
        vectors = _vectors(graph, generator, embeddings)
        communities = None if vectors is None else find_communities(neighbors_of(graph), vectors, seed)
        numbers = signature(graph, generator, communities, None, vectors)
        usual = usual_clustering(numbers)
        rows = coordinates(numbers, usual)
        mean, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), LEAST_SCALE[: rows.shape[1]])
        places = (rows - mean) / scale
        different, counts = distinct(places)
        scores: dict[int, float] = {}
        if count is None:
            mixture, scores = choose_mixture(different, counts, seed)
        elif count > len(different):
            raise ParameterError(
                f"count must be at most {len(different)}, the different places of this network; got {count}"
            )
        else:
            mixture = fit_mixture(different, counts, count, seed)
        # From the centre of the network to its rim.
        mixture = mixture.ordered(np.lexsort((mixture.means[:, 1], -mixture.means[:, 0])))
        memberships = mixture.memberships(places)
        apart = np.array([_apart(places, weights) for weights in memberships.T])
        typical = [Typical.of(numbers, weights) for weights in memberships.T]
        rest = [Typical.of(numbers, 1 - weights) for weights in memberships.T]
        words = [describe(*each) for each in zip(typical, rest, apart, strict=True)]
        whole = Typical.of(numbers, np.ones(len(numbers)))
        least = float(np.quantile(mixture.log_density(places), _STRANGE))
        return cls(
            titles(apart, typical),
            words,
            typical,
            whole,
            scores,
            mixture,
            usual,
            mean,
            scale,
            communities,
            least,
        )

    def assign(
        self,
        graph: Any,
        generator: Generator,
        nodes: Iterable[Any] | None = None,
        *,
        embeddings: Embeddings | None = None,
    ) -> RoleAssignment:
        """Tell the roles of nodes of any network, without finding them anew.

        Parameters
        ----------
        graph : Graph or Overlay
        generator : Generator
            Of the model that the roles were found with.
        nodes : iterable of names, optional
            Just these, at the cost of them and of what is two steps around.
        embeddings : Embeddings, optional
            The generator's vectors of all nodes, where they are at hand.
        """
        known = self.communities
        if known is not None and known.centers.shape[1] != generator.dim:
            raise ParameterError(
                f"the roles were found with vectors of {known.centers.shape[1]} dimensions, this model "
                f"makes {generator.dim}; find them again with this model"
            )
        positions = None if nodes is None else graph.positions(nodes)
        if nodes is None and isinstance(graph, Overlay) and graph.num_nodes < len(graph):
            positions = graph.standing  # those that were removed play no role
        vectors = None if embeddings is None else _vectors(graph, generator, embeddings)
        numbers = signature(graph, generator, known, positions, vectors)
        places = (coordinates(numbers, self.usual) - self.mean) / self.scale
        memberships = self.mixture.memberships(places)
        density = self.mixture.log_density(places)
        names = graph.names if positions is None else graph.names[positions]
        strange = density < self.least_typical - 1e-9
        return RoleAssignment(names, memberships, memberships.argmax(axis=1), density, strange)

    def to_json(self) -> dict[str, Any]:
        """Return the roles as plain values; ``from_json`` reads them."""
        return {
            "columns": list(COLUMNS[: len(self.mean)]),
            "roles": [
                {"title": title, "description": words, "typical": typical.to_json()}
                for title, words, typical in zip(self.titles, self.descriptions, self.typical, strict=True)
            ],
            "whole": self.whole.to_json(),
            "scores": {str(count): score for count, score in self.scores.items()},
            "shares": self.mixture.shares.tolist(),
            "means": self.mixture.means.tolist(),
            "variances": self.mixture.variances.tolist(),
            "usual": self.usual,
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "communities": None
            if self.communities is None
            else {
                "centers": self.communities.centers.tolist(),
                "member_of": self.communities.member_of.tolist(),
            },
            "least_typical": self.least_typical,
        }

    @classmethod
    def from_json(cls, meta: Any) -> "Roles":
        """Read what ``to_json`` returned, trusting none of it.

        Examples
        --------
        >>> Roles.from_json({"columns": []})
        Traceback (most recent call last):
        spinegraph.errors.ModelFormatError: roles: columns must be the first 3 or 4 of neighbors, acquainted,
        prominence, communities; got []
        """
        return cls(**read_parts(meta))


def _vectors(graph: Any, generator: Generator, embeddings: Embeddings | None) -> NDArray[np.float32] | None:
    """Return the vectors of all nodes, or None where they hold no place: a model that reads no features."""
    if generator.inputs.encoder is None:
        return None
    if embeddings is None:
        return generator.embed(graph)
    if embeddings.vectors.shape != (len(graph), generator.dim):
        raise ParameterError(
            f"embeddings must be of all {len(graph)} nodes in {generator.dim} dimensions; "
            f"got shape {embeddings.vectors.shape}"
        )
    if not np.array_equal(embeddings.names, graph.names):
        raise ParameterError("embeddings must be of the graph's nodes in their order; got other names")
    return embeddings.vectors


def _apart(places: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how many deviations those who belong lie above those who do not, (c,)."""
    rest = 1 - weights
    if rest.sum() < 1e-9:
        return np.zeros(places.shape[1])
    return np.asarray(weights @ places / max(weights.sum(), 1e-12) - rest @ places / rest.sum())


def _require_count(count: int | None) -> None:
    is_whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if count is not None and not (is_whole and 1 <= count <= MOST_TITLES):
        raise ParameterError(
            f"count must be a whole number from 1 to {MOST_TITLES}, or None for the best of 1 to {MOST}; "
            f"got {count!r}"
        )
