# Every target makes its own .venv and installs what it needs; a second run installs nothing.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
export SPINEGRAPH_DATA ?= $(wildcard $(CURDIR)/../shared/data)
# Two test workers on two cores: threads of BLAS inside each would wait for one another.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test check fix soak bench docs clean

$(BIN)/python:
	$(PYTHON) -m venv .venv

# The stamps carry the state of the two files that decide what is installed.
.venv/core.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable .
	touch $@

.venv/dev.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[dev]'
	touch .venv/core.stamp $@

demo: .venv/core.stamp
	$(BIN)/spine demo

test: .venv/dev.stamp check
	$(ONE_THREAD) $(BIN)/pytest --numprocesses 2 -m "not slow and not gpu"
	$(ONE_THREAD) NUMBA_DISABLE_JIT=1 $(BIN)/pytest tests/kernels -m "not slow and not gpu and not compiled"

check: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: .venv/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

soak: .venv/dev.stamp
	$(ONE_THREAD) $(BIN)/pytest -m slow

bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks

docs: .venv/dev.stamp
	$(BIN)/sphinx-build --fail-on-warning --builder html docs docs/_build

clean:
	rm -rf .venv docs/_build
