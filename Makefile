# Thin aliases; each does its own set-up. ARGS goes to the command: make test ARGS="-k lock"
#
# PYTHON       the interpreter of a new environment (default: the first that is new enough)
# VENV         the folder of the environment
# CONSTRAINTS  the file with the versions of its packages
# EXTRAS       what is installed with the kit

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
EXTRAS ?= dev
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install test lint types docs reference bench demo matrix check

install: $(STAMP)
	@:

# With uv the environment needs no pip. A broken environment is created again.
$(STAMP): pyproject.toml $(CONSTRAINTS)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python"; exit 1; }
	@echo "Installing into $(VENV); the first time that takes half a minute"
	@if uv --version >/dev/null 2>&1; then \
		$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear --without-pip $(VENV) && \
		uv pip install --quiet --python $(BIN)/python -e '.[$(EXTRAS)]' -c $(CONSTRAINTS); \
	else \
		$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) && \
		$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[$(EXTRAS)]' -c $(CONSTRAINTS); \
	fi
	@touch $@

# "exec" makes Python the child of make, so that Ctrl-C reaches it and no process is left.
demo: $(STAMP)
	@exec $(BIN)/python manage.py rk_demo $(ARGS)

# Tests start many processes, and without bytecode each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

test: $(STAMP)
	@exec $(BIN)/python -m pytest $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python docs/_ext/generate.py --check

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -b html docs docs/_build/html

# The tables of docs/reference that are made from the code.
reference: $(STAMP)
	$(BIN)/python docs/_ext/generate.py

bench: $(STAMP)
	@exec $(BIN)/python -m benchmarks $(ARGS)

matrix:
	@.ci/matrix $(ARGS)
	@.ci/database postgresql
	@.ci/database mariadb

check: $(STAMP)
	$(BIN)/python manage.py check
	$(BIN)/python manage.py makemigrations --check --dry-run
