"""Libraries that take a signal's exception for a fault of their own."""

import subprocess
import sys

import pytest

SWALLOWING = """
import os, signal
from spinegraph.apps.cli import main
import spinegraph.apps.cli.app as root

def swallow(self, ctx):
    try:
        os.kill(os.getpid(), {number})
        signal.pause()
    except BaseException:
        raise TypeError("got an unexpected argument")

root.TyperGroup.invoke = swallow
main(["data", "describe", "nothing.csv"])
"""

DROPPING = """
import os, signal, time
from spinegraph.apps.cli import main
import spinegraph.apps.cli.app as root

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(1)

def drop(self, ctx):
    Dropped()
    time.sleep(20)

root.TyperGroup.invoke = drop
main(["data", "describe", "nothing.csv"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("code", [SWALLOWING, DROPPING], ids=["turned_into_an_error", "in_a_destructor"])
@pytest.mark.parametrize(
    ("number", "status", "said"), [(2, 130, "interrupted"), (15, 143, "ended by a signal")]
)
def test_a_signal_that_a_library_takes_for_itself_is_still_one(code, number, status, said):
    code = code.format(number=number)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr.strip()) == (status, said)
