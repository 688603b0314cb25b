"""Where compiled kernels are kept, and what happens where they cannot be."""

import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from spinegraph.errors import ParameterError, UncachedKernelsWarning
from spinegraph.kernels.runtime import _digest, compiled, one_blas_thread, run_blocks, thread_count

KERNEL = """
from spinegraph.kernels.runtime import compiled

@compiled
def twice(number):
    return 2 * number

@compiled
def thrice(number):
    return 3 * number
"""
# A limit of 0 bytes a file stands for a full disk.
CALL = """
import resource, signal, sys, warnings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import kernel
if sys.argv[1] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    total = kernel.twice(21) + kernel.thrice(14)
print(total, *(f"{type(one.message).__name__}: {one.message}" for one in told))
"""


def call(folder, disk, **environment):
    (folder / "kernel.py").write_text(KERNEL)
    run = subprocess.run(
        [sys.executable, "-B", "-c", CALL, disk],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.compiled
def test_a_kernel_is_kept_for_the_next_process(tmp_path):
    assert call(tmp_path, "free", NUMBA_CACHE_DIR=str(tmp_path / "kept")) == "84"
    assert len(list((tmp_path / "kept").rglob("*.nbc"))) == 2
    assert call(tmp_path, "free", NUMBA_CACHE_DIR=str(tmp_path / "kept")) == "84"
    assert len(list((tmp_path / "kept").rglob("*.nbc"))) == 2


@pytest.mark.compiled
def test_a_kernel_works_where_the_disk_of_the_cache_is_full(tmp_path):
    found = call(tmp_path, "full", NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert found.startswith("84 UncachedKernelsWarning: compiled kernels cannot be cached (")
    assert "File too large" in found
    assert found.count("cannot be cached") == 1
    assert "set NUMBA_CACHE_DIR" in found


@pytest.mark.compiled
def test_a_kernel_works_where_there_is_no_folder_for_the_cache_at_all():
    place = {}
    exec("def twice(number):\n    return 2 * number", place)  # without a file, Numba has no folder for it
    with pytest.warns(UncachedKernelsWarning, match="no folder that Numba may write to"):
        twice = compiled(place["twice"])
    assert twice(21) == 42


def test_a_change_in_any_kernel_is_a_change_of_all(tmp_path):
    digests = []
    for text in ("x = 1", "x = 2"):
        folder = tmp_path / text
        folder.mkdir()
        (folder / "outer.py").write_text("import inner")
        (folder / "inner.py").write_text(text)
        digests.append(_digest(folder))
    assert digests[0] != digests[1]


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


def test_blas_has_one_thread_until_the_last_leaves_and_gets_its_threads_back():
    def threads_now():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    seen, may_leave = [], threading.Event()

    def stay():
        with one_blas_thread():
            entered.set()
            may_leave.wait()
            seen.append(threads_now())

    with threadpool_limits(2):
        pass  # whoever limited before has lifted the limit again
    before, entered = threads_now(), threading.Event()
    other = threading.Thread(target=stay)
    with one_blas_thread():
        other.start()
        entered.wait()
    assert threads_now() == {1}
    may_leave.set()
    other.join()
    assert seen == [{1}]
    assert threads_now() == before
