import numpy as np
import pytest

from spinegraph.kernels.walks import GAMMA, mix, stream_starts


def draws(start: np.uint64, count: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array([mix(start + GAMMA * np.uint64(j)) for j in range(1, count + 1)], dtype=np.uint64)


def test_draws_are_splitmix64():
    # The sequence that splitmix64 is published with, for seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert draws(np.uint64(1234567), 4).tolist() == expected


def test_a_stream_depends_on_its_own_key_alone():
    keys = np.arange(100, dtype=np.uint64)
    whole = stream_starts(3, 1, keys)
    assert np.array_equal(stream_starts(3, 1, keys[::-1]), whole[::-1])
    assert stream_starts(3, 1, [42]) == whole[42]


@pytest.mark.parametrize("other", [(4, 1), (3, 2), (3 + 2**63, 1), (-3, 1)])
def test_seeds_and_stages_give_other_streams(other):
    keys = np.arange(1000, dtype=np.uint64)
    assert not np.intersect1d(stream_starts(3, 1, keys), stream_starts(*other, keys)).size


def test_streams_of_many_keys_start_apart_and_evenly():
    starts = stream_starts(0, 1, np.arange(65536))
    assert len(np.unique(starts)) == len(starts)
    counts = np.bincount((starts >> np.uint64(60)).astype(int), minlength=16)
    # Chi-square with 15 degrees of freedom: 37.7 is passed once in a thousand.
    assert ((counts - 4096) ** 2 / 4096).sum() < 37.7


def test_neighbouring_streams_are_not_correlated():
    first = np.array([draws(start, 1)[0] for start in stream_starts(0, 1, np.arange(2000))])
    unit = first / 2.0**64
    assert abs(np.corrcoef(unit[:-1], unit[1:])[0, 1]) < 0.1
