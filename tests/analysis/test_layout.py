"""Maps: near vectors are near on paper, again and again the same."""

import sys

import numpy as np
import pytest
from scipy.spatial import KDTree

from spinegraph.analysis import layout as landmarks
from spinegraph.analysis.layout import layout
from spinegraph.errors import MissingPackageError, ParameterError


def clouds(n, groups=12, dim=20, seed=0):
    """Return vectors of groups that are flat, each in a direction of its own, and the groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(groups, size=n)
    centres, directions = rng.normal(size=(groups, dim)), rng.normal(size=(groups, 2, dim))
    inside = np.einsum("nc,ncd->nd", rng.normal(size=(n, 2)), directions[group])
    return (centres[group] + 0.2 * inside).astype(np.float32), group


def share_kept(vectors, places, count=10, rows=300):
    """Return the share of nearest neighbours by angle that are nearest on the map."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    some = np.arange(len(vectors))[:rows]
    kept = []
    for row in some:
        near = [
            np.linalg.norm(table - table[row], axis=1).argsort()[1 : count + 1] for table in (unit, places)
        ]
        kept.append(len(np.intersect1d(*near)) / count)
    return float(np.mean(kept))


@pytest.mark.parametrize(("n", "method"), [(300, "tsne"), (4000, "landmarks")])
def test_groups_stay_together_and_neighbours_are_kept_better_than_by_pca(n, method, monkeypatch):
    monkeypatch.setattr(landmarks, "_NUM_LANDMARKS", 300)
    vectors, group = clouds(n)
    places = layout(vectors)
    assert np.array_equal(places, layout(vectors, method=method))
    nearest = KDTree(places).query(places, 2)[1][:, 1]
    assert (group[nearest] == group).mean() > 0.95
    assert share_kept(vectors, places) > 1.2 * share_kept(vectors, layout(vectors, method="pca"))


def test_the_map_is_scaled_and_the_length_of_vectors_plays_no_part():
    vectors, _ = clouds(200)
    places = layout(vectors, method="pca")
    assert places.dtype == np.float32
    assert places.mean(axis=0) == pytest.approx([0, 0], abs=1e-5)
    assert places.std(axis=0).max() == pytest.approx(1)
    lengths = np.random.default_rng(1).uniform(0.5, 2, size=(200, 1)).astype(np.float32)
    assert layout(lengths * vectors, method="pca") == pytest.approx(places, abs=1e-4)


@pytest.mark.parametrize(
    "method", ["auto", "tsne", "landmarks", "pca", pytest.param("umap", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "vectors",
    [np.zeros((0, 4)), np.ones((1, 4)), np.eye(2), np.eye(3), np.zeros((40, 3)), np.ones((7, 1))],
    ids=["none", "one", "two", "three", "all zero", "one dimension"],
)
def test_few_or_equal_vectors_have_a_finite_map(method, vectors):
    places = layout(vectors, method=method)
    assert places.shape == (len(vectors), 2)
    assert np.isfinite(places).all()


def test_many_equal_vectors_have_a_finite_map(monkeypatch):
    monkeypatch.setattr(landmarks, "_NUM_LANDMARKS", 300)
    vectors = np.zeros((4000, 5), np.float32)
    vectors[:30] = np.random.default_rng(0).normal(size=(30, 5))
    assert np.isfinite(layout(vectors)).all()


@pytest.mark.slow
def test_umap_is_deterministic():
    vectors, _ = clouds(60)
    assert np.array_equal(layout(vectors, method="umap"), layout(vectors, method="umap"))


def test_a_missing_umap_is_an_error_with_the_way_out(monkeypatch):
    vectors, _ = clouds(60)
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'spinegraph\[umap\]'"):
        layout(vectors, method="umap")


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((3, 0)), [[np.nan, 1]], [[np.inf, 1]]])
def test_what_is_no_table_of_vectors_is_refused(bad):
    with pytest.raises(ParameterError, match="vectors must be"):
        layout(bad)


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"'landmarks', 'pca', 'umap'\); got 'mds'"):
        layout(np.eye(3), method="mds")
