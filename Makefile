# Set-up, the main job and the tests; `make help` lists the targets.
#
# PYTHON=python3.12    interpreter for a new environment (default: the one of .venv, else python3)
# JOBS=4               test processes
# PYTEST_FLAGS="-x"    further options for pytest
# LOCK_FLAGS=--upgrade with `make lock`: also move the pins that still fit

VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
ACCELERATORS := cuda cuda12 tpu
JOBS ?= 2
PYTEST_FLAGS ?=
LOCK_FLAGS ?=

ifeq ($(wildcard $(VENV)/.created-*),)
PYTHON ?= python3
else
PYTHON ?= $(BIN)/python
endif
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
SUPPORTED := $(shell $(PYTHON) -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null)
FOUND = $(if $(VERSION),$(VERSION),nothing that runs)
CREATED := $(VENV)/.created-$(VERSION)

export UV_PYTHON_DOWNLOADS := never

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev quickstart test lint types lock clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/.setup  ## Create .venv with everything that training needs

setup-dev: $(VENV)/.setup-dev  ## The same with everything that the tests need

quickstart: setup  ## Set up, then train, evaluate and plot the main example
	$(BIN)/python -m launch.train --config=configs/quickstart.py --workdir=runs/quickstart

test: setup-dev lint  ## Set up, then run every check
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest -n $(JOBS) --dist=loadfile \
	  --no-loadscope-reorder -rs --durations=20 $(PYTEST_FLAGS)

lint: setup-dev  ## Check style
	$(BIN)/python -m ruff check --quiet .

types: setup-dev  ## Check annotations statically; advice, the tests check them at run time
	$(BIN)/python -m mypy

lock: $(BIN)/uv  ## Pin exact versions within pyproject.toml's ranges, for every supported Python
	$(call compile,requirements.txt)
	$(call compile,requirements-dev.txt,--extra dev --constraint requirements.txt)
	$(foreach extra,$(ACCELERATORS),$(call compile_extra,$(extra)))

clean:  ## Remove .venv and caches; runs/ stays
	rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than the pins it was made from, so that set-up does nothing when nothing changed.
$(VENV)/.setup: requirements.txt $(CREATED)
	$(call install,$<)
	@touch $@

$(VENV)/.setup-dev: requirements-dev.txt $(CREATED)
	$(call install,$<)
	@touch $(VENV)/.setup $@

$(CREATED):
	$(if $(filter True,$(SUPPORTED)),,$(error expected Python 3.11 or newer, found $(FOUND) as $(PYTHON); choose one with PYTHON=, as in `make setup PYTHON=python3.12`))
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(BIN)/uv: $(CREATED)
	$(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	@touch $@

# uv takes a third of pip's time, and compiles byte-code, as pip does, when it is told to: the first
# start is a second or two sooner. It does not read pip's configuration, so pip goes on alone where
# that names an index of its own, and takes over wherever uv cannot be had or fails.
define install
	@echo "Installing $(1) into $(VENV) (Python $(VERSION))"
	@if $(BIN)/python -m pip config list | grep -q -E '[.](index-url|no-index)=' \
	  || ! $(BIN)/python -m pip install --quiet uv==$(UV_VERSION) \
	  || ! $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r $(1); then \
	  $(BIN)/python -m pip install --quiet --require-hashes -r $(1); fi
endef

define compile
	$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
	  --output-file $(1) $(2) $(LOCK_FLAGS)
endef

# Only what an extra adds to requirements.txt: the two are installed together.
define compile_extra
	$(call compile,requirements-$(1).txt,--extra $(1) --constraint requirements.txt \
	  $$(sed -nE 's/^([a-z0-9-]+)==.*/--no-emit-package=\1/p' requirements.txt | sort -u))

endef
