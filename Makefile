# Every target makes its own .venv and installs what it needs; a second run installs nothing.
PYTHON ?= python3
BIN := .venv/bin
# Without --no-compile pip compiles every file of every package, also the many that nothing imports.
INSTALL := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt
export SPINEGRAPH_DATA ?= $(wildcard $(CURDIR)/../shared/data)
# Compiled files pay: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
# Two test workers on two cores: threads of BLAS inside each would wait for one another.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test check warm uncompiled fuzz-light audit fix soak faults fuzz coverage mutation bench reproduce docs clean

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
	@echo "\nHere spine is $(BIN)/spine, or spine after: . $(BIN)/activate"

# Two things at a time on two cores, the longest first; the demo compiles most kernels once for both test workers, and its tests
# read what it printed here.
test: .venv/dev.stamp
	$(MAKE) --jobs 2 fuzz-light warm check uncompiled
	$(ONE_THREAD) SPINEGRAPH_DEMO=$(CURDIR)/scratch/demo $(BIN)/pytest --numprocesses 2 --dist worksteal \
		-m "not slow and not gpu"

check: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m audit --licences
	$(BIN)/mypy

warm: .venv/dev.stamp
	rm -rf scratch/demo && mkdir -p scratch/demo
	cd scratch/demo && $(ONE_THREAD) $(abspath $(BIN))/spine demo > out.txt 2> err.txt || { cat err.txt; exit 1; }

# Coverage and debuggers see into kernels that are not compiled.
uncompiled: .venv/dev.stamp
	$(ONE_THREAD) NUMBA_DISABLE_JIT=1 $(BIN)/pytest tests/kernels -m "not slow and not gpu and not compiled"

fuzz-light: .venv/dev.stamp
	$(BIN)/python -m fuzz --light --runs 500

# Asks the index of known vulnerabilities over the network, and fails on any.
audit: .venv/dev.stamp
	$(BIN)/python -m audit --strict

fix: .venv/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

soak: .venv/dev.stamp
	$(ONE_THREAD) $(BIN)/pytest -m slow
	$(ONE_THREAD) $(BIN)/pytest tests/kernels tests/structure tests/graph -m "not slow" --hypothesis-profile thorough

# Every fault of tests/faults, the long ones too; the counts are kept for docs/reliability.md.
faults: .venv/dev.stamp
	$(ONE_THREAD) SPINEGRAPH_FAULTS=tests/faults/faults.json $(BIN)/pytest tests/faults -m "slow or not slow"

FUZZ_SECONDS ?= 30
fuzz: .venv/dev.stamp
	$(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS)

# Where no file may grow and no memory is left, the counts cannot be kept either.
NOT_MEASURED := $(addprefix --deselect=tests/,$(addprefix faults/test_,full_disks.py little_memory.py service_disk.py) \
	contract/test_cli_similar.py::test_a_full_place_leaves_nothing_half_written)
# The second run sees into the kernels, which compiled code hides; some are tested with the room that uses them.
BY_HAND := tests/kernels tests/structure/test_drift.py tests/analysis/test_node2vec.py tests/paper/test_struc2vec.py \
	-k "not barbell and not copies_embed_nearer"
coverage: .venv/dev.stamp
	rm -f .coverage .coverage.*
	$(ONE_THREAD) $(BIN)/coverage run -m pytest --numprocesses 2 -m "not slow and not gpu" $(NOT_MEASURED)
	$(ONE_THREAD) NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest $(BY_HAND) -m "not slow and not gpu and not compiled"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# All of them take an hour on two cores; MUTANTS='spinegraph.structure.drift*' tries some.
mutation: .venv/dev.stamp
	$(INSTALL) mutmut
	$(ONE_THREAD) $(BIN)/mutmut run $(if $(MUTANTS),'$(MUTANTS)')
	$(BIN)/mutmut results

bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks

# The paper's tables and figures, measured into scratch/paper; ITEM=table1 LEVEL=--full measures one in full.
ITEM ?= all
LEVEL ?= --quick
reproduce: .venv/dev.stamp
	$(BIN)/python -m paper $(ITEM) $(LEVEL) --out scratch/paper

docs: .venv/dev.stamp
	$(BIN)/sphinx-build --fail-on-warning --builder html docs docs/_build

clean:
	rm -rf .venv docs/_build
