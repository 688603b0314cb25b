import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference
from spinegraph.errors import ParameterError
from spinegraph.structure.similarity import warping

row_pairs = hnp.arrays(
    np.float32,
    st.tuples(st.just(2), st.integers(1, 8)),
    elements=st.one_of(st.just(0.0), st.floats(0, 1, width=32)),
).map(lambda rows: -np.sort(-rows, axis=1))


@given(row_pairs)
def test_the_steps_add_up_to_the_textbook_distance(rows):
    found = warping(*rows)
    np.testing.assert_allclose(found.distance, reference.dtw(*rows), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.costs.sum(), found.distance, rtol=1e-9, atol=1e-12)
    assert found.distance == 0 or np.isclose(found.share.sum(), 1)


@given(row_pairs)
def test_the_path_goes_on_by_one_place_and_misses_no_value(rows):
    path = warping(*rows).path
    assert path[0].tolist() == [0, 0]
    steps = np.diff(path, axis=0)
    assert set(map(tuple, steps.tolist())) <= {(0, 1), (1, 0), (1, 1)}
    for side in (0, 1):
        assert set(np.flatnonzero(rows[side])) <= set(path[:, side].tolist())


@given(row_pairs)
def test_equal_profiles_match_place_by_place_at_no_cost(rows):
    found = warping(rows[0], rows[0])
    assert found.distance == 0
    assert not found.share.any()
    assert (found.path[:, 0] == found.path[:, 1]).all()


def test_steps_where_both_profiles_have_ended_are_left_out():
    assert warping([0.6, 0.4, 0, 0, 0], [0.7, 0.3, 0, 0, 0]).path.tolist() == [[0, 0], [1, 1]]
    assert warping([1.0, 0], [0.9, 0]).path.tolist() == [[0, 0]]
    # One goes on while the other has ended, so the last steps are not on the diagonal.
    assert warping([0.5, 0.495, 0.005, 0], [0.5, 0, 0, 0]).path.tolist() == [[0, 0], [1, 0], [2, 1]]


def test_what_is_no_profile_is_refused():
    with pytest.raises(ParameterError, match=r"row_b must be one profile \(k,\)"):
        warping([1.0], [[1.0]])
    with pytest.raises(ParameterError, match="row_a and row_b must be of one length; got 1 and 2"):
        warping([1.0], [0.5, 0.5])


def test_what_is_wrong_is_said_of_the_row_it_is_in():
    for wrong in (1.0, [], [[1.0]]):
        with pytest.raises(
            ParameterError, match=r"^row_a must be one profile \(k,\) with k >= 1; got shape \("
        ):
            warping(wrong, [1.0])
        with pytest.raises(
            ParameterError, match=r"^row_b must be one profile \(k,\) with k >= 1; got shape \("
        ):
            warping([1.0], wrong)
    with pytest.raises(ParameterError, match=r"^row_a and row_b must be finite and >= 0; got values from -1"):
        warping([1.0], [-1.0])
