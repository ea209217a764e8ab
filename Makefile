# demo  run the main job on embedded text      test   run the tests
# check lint, format and types                 bench  run the benchmarks (BENCH=--quick for a smoke run)
# docs  build the documentation in build/site  package  build the wheel and install it into an empty environment
# Each does its own set-up in .venv; the demo installs the package alone.

PYTHON ?= python3
BENCH ?=
RUN := .venv/bin/
# Tests start many processes, which share compiled modules
unexport PYTHONDONTWRITEBYTECODE
BENCHMARKS := $(notdir $(shell grep -l __main__ benchmarks/*.py))

.PHONY: demo test slow coverage check docs bench published real package clean

demo: .venv/base
	$(RUN)contstim demo

# Two workers for two cores; one worker runs all tests of a file, because they share fixtures
test: .venv/ready
	OMP_NUM_THREADS=1 $(RUN)python -m pytest -m "not published and not slow and not real" -n 2 --dist loadfile

slow: .venv/ready
	OMP_NUM_THREADS=1 $(RUN)python -m pytest -m slow -n 2 --dist worksteal

# Lines that no test of `make test` runs; takes 1.5 times as long
coverage: .venv/ready
	$(RUN)python -m coverage erase
	OMP_NUM_THREADS=1 $(RUN)python -m coverage run -m pytest -q -m "not published and not slow and not real" -n 2 --dist loadfile
	$(RUN)python -m coverage combine --quiet
	$(RUN)python -m coverage report --skip-covered

published: .venv/ready
	$(RUN)python -m pytest -m published

# Tests on the pretrained model in the folder CONTSTIM_REAL_MODEL
real: .venv/ready
	OMP_NUM_THREADS=1 $(RUN)python -m pytest -m real

check: .venv/ready
	$(RUN)ruff check contstim tests benchmarks docs
	$(RUN)ruff format --check contstim tests benchmarks docs
	$(RUN)mypy
	$(RUN)python tests/plain_english.py

# Executes the tutorials and describes all commands and names; a warning is an error
docs: .venv/ready
	$(RUN)python -m sphinx -q -W --keep-going -b html docs build/site
	$(RUN)python docs/extensions/links.py build/site

# `make -j2` runs two at a time: for a smoke run, not for figures
bench: $(BENCHMARKS:%=run-%)

run-%: .venv/ready
	@echo "== $*"; $(RUN)python benchmarks/$* $(BENCH)

package: .venv/ready
	PYTHON=$(abspath $(RUN)python) .ci/package

clean:
	rm -rf .venv contstim-demo

.venv/base: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "contstim needs Python 3.11 or later; $(PYTHON) was not found. Name yours: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "contstim needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version). Name another: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

# Packages that checks and tests need
.venv/ready: .venv/base
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@# kenlm, which reads the binary files of KenLM, is compiled on installation
	@if command -v cmake >/dev/null && { command -v c++ || command -v g++ || command -v clang++; } >/dev/null; \
	then $(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[kenlm]'; \
	else echo "kenlm is not installed, because there is no C++ compiler with CMake: binary files of KenLM cannot be read."; fi
	@touch $@
