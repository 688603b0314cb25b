"""Search against brute force, and what it promises about zero vectors, ties and odd requests."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spinegraph import Embeddings
from spinegraph.analysis.search import Match, Search, unit_rows
from spinegraph.errors import ParameterError, UnknownNodeError


def brute_force_cosine(one, other):
    one, other = one.astype(np.float64), other.astype(np.float64)
    lengths = np.linalg.norm(one), np.linalg.norm(other)
    if not all(lengths):
        return float(not any(lengths))
    return one @ other / (lengths[0] * lengths[1])


def brute_force(vectors, place, n):
    """All other positions by rounded cosine, ties by position."""
    scores = [round(brute_force_cosine(vectors[place], row), 6) for row in vectors]
    order = sorted((i for i in range(len(vectors)) if i != place), key=lambda i: (-scores[i], i))
    return [(i, scores[i]) for i in order[:n]]


def embeddings_of(vectors):
    return Embeddings(np.arange(len(vectors)), vectors)


def random_vectors(n=400, d=24, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(8, d))
    return (centers[rng.integers(8, size=n)] + 0.3 * rng.normal(size=(n, d))).astype(np.float32)


def test_search_finds_what_brute_force_finds():
    vectors = random_vectors()
    search = Search(embeddings_of(vectors))
    for place in range(0, 400, 7):
        found = search.similar(place, 10)
        expected = brute_force(vectors, place, 10)
        assert [match.name for match in found] == [i for i, _ in expected]
        np.testing.assert_allclose([match.score for match in found], [s for _, s in expected], atol=1.1e-6)


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 12), st.integers(1, 4)),
        elements=st.sampled_from([0.0, 1.0, -1.0, 2.0, 1e-30, 1e30]),
    ),
    st.integers(1, 15),
)
def test_search_keeps_its_promises_on_any_vectors(vectors, n):
    search = Search(embeddings_of(vectors))
    for place in range(len(vectors)):
        found = search.similar(place, n)
        names, scores = [match.name for match in found], [match.score for match in found]
        assert len(found) == min(n, len(vectors) - 1)
        assert place not in names
        assert len(set(names)) == len(names)
        assert scores == sorted(scores, reverse=True)
        assert all(-1 <= score <= 1 for score in scores)
        assert all(one.name < other.name for one, other in pairwise(found) if one.score == other.score)
        for match in found:
            assert match.score == pytest.approx(
                brute_force_cosine(vectors[place], vectors[match.name]), abs=2e-6
            )


def test_a_zero_vector_is_like_other_zero_vectors_and_nothing_else():
    vectors = np.array([[0, 0], [1, 0], [0, 0], [-1, 0]], dtype=np.float32)
    search = Search(embeddings_of(vectors))
    assert search.similar(0, 3) == [Match(2, 1.0), Match(1, 0.0), Match(3, 0.0)]
    assert search.similar(1, 3) == [Match(0, 0.0), Match(2, 0.0), Match(3, -1.0)]
    assert search.similar_to([0, 0], 1) == [Match(0, 1.0)]


def test_equal_vectors_come_in_graph_order_wherever_they_lie():
    vectors = np.tile(random_vectors(1, 37), (1001, 1))
    assert [match.name for match in Search(embeddings_of(vectors)).similar(500, 4)] == [0, 1, 2, 3]


def test_the_length_of_a_vector_does_not_matter():
    vectors = random_vectors(60, 5)
    scaled = vectors * np.float32(2.0) ** np.arange(-30, 30, dtype=np.float32)[:, None]
    plain, stretched = Search(embeddings_of(vectors)), Search(embeddings_of(scaled))
    assert plain.similar(3, 59) == stretched.similar(3, 59)


def test_similar_to_a_nodes_vector_begins_with_the_node():
    vectors = random_vectors()
    search = Search(embeddings_of(vectors))
    first, *rest = search.similar_to(vectors[17], 6)
    assert first == Match(17, 1.0)
    assert rest == search.similar(17, 5)


def test_neighbors_are_the_answers_of_similar():
    search = Search(embeddings_of(random_vectors(90)))
    steps = []
    found = search.neighbors(n=4, progress=lambda done, total: steps.append((done, total)))
    for place in range(90):
        matches = search.similar(place, 4)
        assert found.positions[place].tolist() == [match.name for match in matches]
        assert found.scores[place].tolist() == [match.score for match in matches]
    assert search.neighbors([5], n=4).positions.tolist() == [found.positions[5].tolist()]


def test_cosines_are_those_of_similar():
    search = Search(embeddings_of(random_vectors(50)))
    cosines = search.cosines(7)
    assert cosines[7] == 1
    for match in search.similar(7, 49):
        assert cosines[match.name] == pytest.approx(match.score, abs=2e-6)


PARTS = {"content": slice(0, 4), "place": slice(4, 7), "role": slice(7, 8)}


def vectors_with_parts(n=60, seed=0):
    """Vectors of three parts of very different lengths; some parts of some nodes are zero."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 8)) * np.repeat([10, 1, 0.01], [4, 3, 1])
    vectors[:5, PARTS["place"]] = 0
    return Embeddings(np.arange(n), vectors, PARTS)


@pytest.mark.parametrize("weights", [None, {"role": 0}, {"content": 0.5, "place": 3}])
def test_the_score_is_the_weighted_mean_of_the_parts_cosines(weights):
    embeddings = vectors_with_parts()
    factors = dict.fromkeys(PARTS, 1) | (weights or {})
    for match in Search(embeddings, weights=weights).similar(20, 50):
        if match.name < 5:
            continue
        cosines = {
            name: brute_force_cosine(*embeddings.vectors[[20, match.name], columns])
            for name, columns in PARTS.items()
        }
        mean = sum(factors[name] * cosines[name] for name in PARTS) / sum(factors.values())
        assert match.score == pytest.approx(mean, abs=2e-6)


def test_a_part_that_is_zero_at_both_nodes_does_not_count():
    embeddings = vectors_with_parts()
    search, others = Search(embeddings), Search(embeddings, weights={"place": 0})
    assert search.cosines(0)[1:5] == pytest.approx(others.cosines(0)[1:5], abs=1e-6)
    assert abs(search.cosines(0)[20]) < abs(others.cosines(0)[20])


@pytest.mark.parametrize("by", PARTS)
def test_search_by_one_part_sees_that_part_alone(by):
    embeddings = vectors_with_parts()
    one, alone = Search(embeddings, by=by), Search(embeddings_of(embeddings.part(by).vectors))
    assert one.similar(20, 59) == alone.similar(20, 59)


@pytest.mark.parametrize("how", [{}, {"by": "place"}, {"weights": {"content": 2, "role": 0.5}}])
def test_a_whole_vector_is_weighted_like_those_it_is_compared_with(how):
    embeddings = vectors_with_parts()
    search = Search(embeddings, **how)
    first, *rest = search.similar_to(embeddings.vectors[20], 6)
    assert first == Match(20, 1.0)
    assert rest == search.similar(20, 5)


@pytest.mark.parametrize(
    ("how", "rule"),
    [
        ({"by": "colour"}, "no part 'colour'; these vectors have content, place and role"),
        ({"weights": {"colour": 1}}, "weights must map some of"),
        ({"weights": dict.fromkeys(PARTS, 0)}, "not all of them 0"),
        ({"by": "role", "weights": {"role": 1}}, "weights are for all parts together"),
    ],
)
def test_unknown_parts_and_wrong_weights_are_refused(how, rule):
    with pytest.raises(ParameterError, match=rule):
        Search(vectors_with_parts(), **how)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3"])
def test_a_wrong_number_is_refused(n):
    with pytest.raises(ParameterError, match="n must be a whole number >= 1"):
        Search(embeddings_of(random_vectors(5))).similar(0, n)


def test_unknown_nodes_and_wrong_vectors_are_refused():
    search = Search(embeddings_of(random_vectors(5, 3)))
    with pytest.raises(UnknownNodeError, match="no vector for 'ann'"):
        search.similar("ann")
    with pytest.raises(UnknownNodeError):
        search.similar([1])
    with pytest.raises(ParameterError, match="3 finite numbers; got shape"):
        search.similar_to([1, 2])
    with pytest.raises(ParameterError, match="with NaN or infinity"):
        search.similar_to([1, 2, np.nan])


def test_the_index_finds_nearly_all_and_orders_them_exactly():
    pytest.importorskip("usearch")
    vectors = random_vectors(3000, 16)
    exact, indexed = Search(embeddings_of(vectors)), Search(embeddings_of(vectors), exact=False)
    assert exact.exact
    assert not indexed.exact
    assert exact.recall() == 1
    assert indexed.recall(10) > 0.95
    scores = dict(zip(range(3000), exact.cosines(5), strict=True))
    found = indexed.similar(5, 20)
    assert len(found) == 20
    assert 5 not in [match.name for match in found]
    assert [match.score for match in found] == sorted([match.score for match in found], reverse=True)
    assert all(match.score == pytest.approx(scores[match.name], abs=2e-6) for match in found)


def test_the_index_knows_zero_vectors():
    pytest.importorskip("usearch")
    vectors = random_vectors(300, 8)
    vectors[[10, 200]] = 0
    assert Search(embeddings_of(vectors), exact=False).similar(10, 1) == [Match(200, 1.0)]


def test_without_usearch_search_is_exact_and_says_how_to_get_the_index(monkeypatch):
    import sys

    from spinegraph.analysis import search
    from spinegraph.errors import MissingPackageError

    monkeypatch.setattr(search, "EXACT_UP_TO", 3)
    monkeypatch.setattr(search, "can_index", lambda: False)
    assert Search(embeddings_of(random_vectors(5))).exact
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'spinegraph\[search\]'"):
        Search(embeddings_of(random_vectors(5)), exact=False)


@given(hnp.arrays(np.float32, (6, 3), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_unit_rows_have_length_one(vectors):
    np.testing.assert_allclose(np.linalg.norm(unit_rows(vectors).astype(np.float64), axis=1), 1, atol=1e-6)


def test_a_single_node_is_like_nobody():
    search = Search(embeddings_of(np.ones((1, 2), np.float32)))
    assert search.similar(0) == []
    assert search.neighbors().positions.shape == (1, 0)
