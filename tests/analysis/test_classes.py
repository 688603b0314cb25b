"""Node classification over random splits."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spinegraph.analysis.scores import class_numbers, random_split, score_classes
from spinegraph.errors import ParameterError


@given(
    st.lists(st.integers(3, 40), min_size=2, max_size=5),
    st.floats(0.05, 0.5),
    st.floats(0.05, 0.4),
    st.integers(0, 2**32),
)
@example([3, 3], 0.5, 0.25, 0)  # half of three is two, and one is to be tested
def test_a_split_parts_the_labelled_nodes_class_by_class(sizes, train, val, seed):
    labels = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), [-1, -1]])
    split = random_split(labels, train, val, seed)
    together = np.concatenate([split.train, split.val, split.test])
    assert sorted(together.tolist()) == list(range(sum(sizes)))
    for number, size in enumerate(sizes):
        assert (labels[split.train] == number).sum() == max(1, min(round(train * size), size - 2))
        assert all(number in labels[part] for part in (split.train, split.val, split.test))
    again = random_split(labels, train, val, seed)
    np.testing.assert_array_equal(split.test, again.test)


def test_telling_vectors_are_read_and_empty_ones_give_the_largest_class():
    labels = np.repeat([0, 1, -1], [40, 20, 5])
    rows = {"telling": labels[:, None].astype(float), "empty": np.zeros((65, 2))}
    telling, empty, largest = score_classes(rows, labels, repeats=3)
    assert (telling.accuracy, telling.deviation, len(telling.C)) == (1.0, 0.0, 3)
    assert empty.accuracy == largest.accuracy == pytest.approx(2 / 3, abs=0.02)
    assert largest.C == ()


def test_labels_become_numbers_in_the_order_of_their_names():
    numbers, classes = class_numbers(np.array(["west", None, "east", "west"], dtype=object))
    assert (numbers.tolist(), classes) == ([1, -1, 0, 1], ["east", "west"])


@pytest.mark.parametrize("labels", [[-1, -1], [0] * 10, [0, 1], [0, 1, 1]])
def test_too_few_labels_are_refused(labels):
    with pytest.raises(ParameterError, match="too few to split"):
        random_split(np.array(labels), 0.2, 0.1, 0)


@pytest.mark.parametrize(("train", "val"), [(0, 0.1), (0.5, 0.5), (1.2, 0.1)])
def test_shares_leave_some_to_test(train, val):
    with pytest.raises(ParameterError, match="leave some to test"):
        random_split(np.repeat([0, 1], 10), train, val, 0)
