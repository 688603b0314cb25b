import os
import threading

import numba
import numpy as np
import pytest

from spinegraph.errors import ParameterError
from spinegraph.kernels.runtime import run_blocks, thread_count


@pytest.mark.parametrize("threads", [1, 2, 8, None])
def test_blocks_cover_the_range_once_and_come_back_in_order(threads):
    assert run_blocks(lambda start, stop: (start, stop), 7, block=3, threads=threads) == [
        (0, 3),
        (3, 6),
        (6, 7),
    ]
    assert run_blocks(lambda start, stop: stop, 0, block=3, threads=threads) == []


def test_blocks_run_at_once():
    meeting = threading.Barrier(2, timeout=30)
    run_blocks(lambda start, stop: meeting.wait(), 2, block=1, threads=2)


def test_an_error_in_a_block_reaches_the_caller():
    def fail(start, stop):
        raise ZeroDivisionError(f"block {start}")

    with pytest.raises(ZeroDivisionError, match="block"):
        run_blocks(fail, 4, block=1, threads=2)


def test_the_settings_of_numba_and_numpy_stay_the_callers():
    before = numba.get_num_threads(), np.geterr()
    run_blocks(lambda start, stop: None, 4, block=1, threads=1)
    assert (numba.get_num_threads(), np.geterr()) == before


def test_all_cores_that_the_process_may_use_is_the_default():
    assert 1 <= thread_count(None) <= os.cpu_count()


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "all"])
def test_other_numbers_of_threads_are_refused(threads):
    with pytest.raises(ParameterError, match=f"threads must be a whole number >= 1.*got {threads!r}"):
        thread_count(threads)
