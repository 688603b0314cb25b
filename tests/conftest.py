"""Settings that every test shares, and the count of faults that were injected."""

import gc
import json
import os
from collections import Counter
from pathlib import Path

import _pytest.nodes
import pytest
from hypothesis import Phase, settings

# Looked through for doctests, two of the first would be modules of one name, and the other would fit a model.
collect_ignore_glob = ["*/conftest.py", "*/warmed.py"]

# No deadline: a kernel's first call compiles it, whichever example that is. make test tries the same few
# examples every time, make soak many others: tests set no number of their own, so that it can.
settings.register_profile("quick", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=250)
settings.load_profile("quick")

if "MUTANT_UNDER_TEST" in os.environ:
    # Whether a mutant lives must not depend on luck, and nobody looks at the smallest example.
    plain = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", deadline=None, derandomize=True, database=None, phases=plain)
    settings.load_profile("mutants")
    # mutmut 3.8 asks for an attribute that pytest no longer has.
    if not hasattr(_pytest.nodes.Node, "_nodeid"):
        _pytest.nodes.Node._nodeid = property(lambda node: node.nodeid)


def pytest_collection_modifyitems(items):
    """Skip tests of real networks where there are none."""
    if not os.environ.get("SPINEGRAPH_DATA"):
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(pytest.mark.skip(reason="SPINEGRAPH_DATA names no folder of networks"))


def pytest_collection_finish():
    """Keep what was imported out of the garbage collector: looking through it takes 0.3 s each time."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Say how many faults were injected; SPINEGRAPH_FAULTS names a JSON file for each kind's newest count."""
    found = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties if report.when == "call" else ():
            if name == "faults":
                found[value[0]] += value[1]
    if not found:
        return
    terminalreporter.write_line(f"{sum(found.values()):,} faults injected")
    if file := os.environ.get("SPINEGRAPH_FAULTS"):
        before = json.loads(Path(file).read_text()) if Path(file).exists() else {}
        Path(file).write_text(json.dumps(dict(sorted({**before, **found}.items())), indent=1) + "\n")
