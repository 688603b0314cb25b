"""Torch's threads are the caller's again, however fits overlap."""

from threading import Event, Thread

import pytest
import torch

from spinegraph.learning.training import one_torch_thread


def seen_by_a_new_thread():
    found = []
    thread = Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture
def three():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("first_out", [0, 1])
def test_fits_side_by_side_leave_as_many_threads_as_there_were(three, first_out):
    inside, out = [Event(), Event()], [Event(), Event()]
    seen = []

    def fit(place):
        with one_torch_thread():
            seen.append(torch.get_num_threads())
            inside[place].set()
            out[place].wait(10)

    fits = [Thread(target=fit, args=(place,)) for place in (0, 1)]
    for place in (0, 1):
        fits[place].start()
        inside[place].wait(10)
    for place in (first_out, 1 - first_out):
        out[place].set()
        fits[place].join()
    assert seen == [1, 1]
    assert (torch.get_num_threads(), seen_by_a_new_thread()) == (3, 3)
