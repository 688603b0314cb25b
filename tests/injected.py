"""Faults to inject, and the one question asked of each: the right result, a plain error, or worse?"""

import random
import subprocess
import sys
import warnings
from collections import Counter

from command import ALONE, CAN_FORK, Forked
from spinegraph.errors import SpineError, SpineWarning

MAIN = "from spinegraph.apps.cli import main; main()"


def cuts(content):
    """Return a file cut at every class of length: nothing, a byte, in its head, middle, before its end."""
    size = len(content)
    places = {0, 1, 4, 8, 9, 32, 64, size // 4, size // 2, 3 * size // 4, size - 8, size - 2, size - 1}
    return [content[:place] for place in sorted(places) if 0 <= place < size]


def flips(content, count, seed=0):
    """Return a file with one bit flipped, ``count`` times, at places all over it and more at its two ends."""
    draw = random.Random(seed)
    for number in range(count):
        near = min(256, len(content))
        place = draw.randrange(len(content))
        if number % 4 == 1:
            place = draw.randrange(near)
        elif number % 4 == 2:
            place = len(content) - 1 - draw.randrange(near)
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        yield bytes(damaged)


def outcome(read, expected):
    """Return "right", "error", "wrong" or worse; anything but a SpineError is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpineWarning)
        try:
            found = read()
        except SpineError as error:
            words = str(error).strip()
            return "error" if words and "\n" not in words else "error that is not one line"
    return "right" if found == expected else "wrong"


def damage(path, contents, read, expected):
    """Put damaged contents in the place of a file, one after the other, and count what comes of it."""
    whole, found = path.read_bytes(), Counter()
    for content in contents:
        path.write_bytes(content)
        found[outcome(read, expected)] += 1
    path.write_bytes(whole)
    assert outcome(read, expected) == "right", "the file itself must be sound"
    assert set(found) <= {"right", "error", "wrong"}
    return found


def begin(*arguments, code=MAIN, **options):
    """Start the command, or other code, as a process whose first output line can be waited for.

    The command is a new process, since it may be stopped before it has begun.
    """
    if CAN_FORK and code is not MAIN:
        return Forked(_run_code, code, *map(str, arguments), **options)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ALONE,
        **options,
    )


def _run_code(code, *arguments):
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})


def require_plain(stderr):
    """Assert that a process ended in words for its user."""
    assert "Traceback" not in stderr, stderr
