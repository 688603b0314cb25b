"""An environment of its own for each peer, made once and kept under ``.peers/``.

The pinned versions stand in ``benchmarks/peer_runners/requirements``. Where they cannot be installed (another
Python, another platform) the first line alone is tried, with whatever it then pulls in; what was
used is written beside every result.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".peers"
REQUIREMENTS = Path(__file__).parent / "peer_runners" / "requirements"
_PATIENCE = 900  # seconds for one installation


class InstallationError(Exception):
    """No environment could be made; says why."""


def python_of(environment, home=HOME):
    """Return the Python of an environment, made first if it is missing or its requirements have changed."""
    if environment is None:
        return sys.executable
    wanted = REQUIREMENTS / f"{environment}.txt"
    state = hashlib.sha256(f"{sys.version} {wanted.read_text()}".encode()).hexdigest()
    folder = home / environment
    python, stamp = folder / "bin" / "python", folder / "made.json"
    if stamp.exists() and json.loads(stamp.read_text())["state"] == state:
        return str(python)
    print(f"making the environment of {environment}", flush=True)
    pinned, by_name = ["--requirement", str(wanted)], [wanted.read_text().split()[0]]
    for what in (pinned, by_name):
        failure = _install(folder, python, what)
        if failure is None:
            stamp.write_text(json.dumps({"state": state, "installed": what[-1]}))
            return str(python)
    raise InstallationError(failure)


def _install(folder, python, what):
    """Make a fresh environment; return None, or why it failed."""
    shutil.rmtree(folder, ignore_errors=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    for command in ([sys.executable, "-m", "venv", str(folder)], install):
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return f"not installed after {_PATIENCE} s"
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return (errors or done.stderr.splitlines() or ["no reason given"])[-1][:300]
    return None
