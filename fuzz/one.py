"""One target under libFuzzer, in a process: ``python -m fuzz.one TARGET FOLDER [libFuzzer options]``."""

import importlib
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import atheris


def main(name: str, folder: Path, options: list[str]) -> None:
    """Feed a target until libFuzzer's limits end the process."""
    with atheris.instrument_imports(include=["spinegraph"], exclude=_kernels()):
        module = importlib.import_module(f"fuzz.targets.{name}")
    from fuzz.outcome import Findings, fault_of, strict_warnings

    scratch = folder / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # what an earlier run's last input left
    scratch.mkdir(parents=True)
    target = module.begin(scratch)
    findings = Findings(folder / "found")
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, seed in enumerate(module.SEEDS):
        (corpus / f"seed-{number}").write_bytes(seed)
    strict_warnings()

    def one(data: bytes) -> None:
        fault = fault_of(target, data)
        if fault is not None:
            findings.note(fault, data)

    artifacts = f"-artifact_prefix={folder / 'found'}/"
    atheris.Setup([sys.argv[0], artifacts, *options, str(corpus)], one)
    atheris.Fuzz()


def _kernels() -> list[str]:
    """Name the modules that Numba compiles from their bytecode, which must stay as it is."""
    package = find_spec("spinegraph")
    assert package is not None
    assert package.submodule_search_locations is not None
    files = Path(package.submodule_search_locations[0], "kernels").glob("*.py")
    return ["spinegraph.kernels", *(f"spinegraph.kernels.{file.stem}" for file in files)]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
