# Everything a contributor types. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
PROFILE ?= default
PORT ?= 3000
# An extra package index for torch, e.g. PyTorch's CPU wheels; empty: pip's own choice.
TORCH_INDEX ?=

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
UI_INSTALLED := $(VENV)/.installed-ui
BROWSERS := chromium chromium-browser google-chrome
# Stands while an install runs: where it is found at the start, the last one was cut short.
INSTALLING := .make/installing
CODE := steptp_dagster assets resources
LINTED := $(CODE) $(wildcard tests benchmarks)

.PHONY: help install dataset test check lint types doctest pytest slow zoo dev test-ui format clean clean-data

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(INSTALLED) ## Make the virtual environment and install the project into it

$(INSTALLED): pyproject.toml constraints.txt
	@mkdir -p .make
	@if [ -e $(INSTALLING) ]; then echo "The last install was cut short: starting anew."; rm -rf $(VENV); fi
	@touch $(INSTALLING)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@echo "Installing into $(VENV): minutes, and more than a gigabyte of packages."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c constraints.txt -e '.[dev]'
	@touch $@
	@rm -f $(INSTALLING)

dataset: install ## Build the data set (PROFILE=default or tiny) and say where it is
	$(BIN)/steptp build --profile $(PROFILE)

test: check pytest ## All gates, then all tests (what CI runs)

check: lint types doctest ## Lint, formatting, types, doctests

lint: install
	$(BIN)/ruff check $(LINTED)
	$(BIN)/ruff format --check $(LINTED)

types: install
	$(BIN)/mypy

doctest: install
	$(BIN)/python -m pytest -q --doctest-modules steptp_dagster

# One process per core; each keeps its numerical libraries to one thread.
pytest: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --maxschedchunk 8

slow: install ## The tests that take minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --maxschedchunk 8 -m slow

zoo: install ## The verifier on known pairs and on more than a thousand mutants (minutes)
	$(BIN)/steptp zoo

# The build first: it computes what is missing and tells Dagster of programs and runs. The server
# listens on this machine alone.
dev: install ## Build what is missing (PROFILE=default or tiny), then open the Dagster UI
	$(BIN)/steptp build --profile $(PROFILE)
	DAGSTER_HOME='$(CURDIR)/.dagster' STEPTP_PROFILE=$(PROFILE) $(BIN)/dagster dev --host 127.0.0.1 --port $(PORT)

test-ui: $(UI_INSTALLED) ## The UI in a headless browser: graph, clicks, backfill, sample record, screenshots
	@command -v $(BROWSERS) >/dev/null || { \
	  echo "No browser, so nothing was tested: install Chromium (Debian: apt-get install chromium)."; \
	  exit 1; }
	$(BIN)/python -m pytest -q -m ui tests/ui

$(UI_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[ui]'
	@touch $@

format: install ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix $(LINTED)
	$(BIN)/ruff format $(LINTED)

clean: ## Remove caches and build products (keeps the environment and data/)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find $(LINTED) -name __pycache__ -type d -prune -exec rm -rf {} +

clean-data: ## Remove everything that was built: data/ and the run history
	rm -rf data
	find .dagster -mindepth 1 ! -name dagster.yaml -delete
