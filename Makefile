# Every target sets itself up from nothing. Another Python: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test reproduce format clean

help:
	@echo "make run     run the demo (linkmix demo)"
	@echo "make test    check style and types, run every test and every example of the docs"
	@echo "make reproduce  run the experiments of the paper, 100 trials each, into results/; goes on where it was stopped"
	@echo "make format  format the code, apply the safe fixes of the linter"
	@echo "make clean   remove $(VENV), caches, builds and the demo output"

run: $(VENV)/.installed-app
	$(BIN)/linkmix demo

# Each of the two pytest workers keeps to one thread, so that they do not fight for the cores.
test: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

reproduce: $(VENV)/.installed-app,experiments
	$(BIN)/linkmix reproduce --trials 100

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) build dist demo src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "linkmix needs Python 3.11 or newer, but PYTHON=$(PYTHON) gives:" \
			"$$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# One stamp per extra; a change of pyproject.toml installs again.
$(VENV)/.installed-%: pyproject.toml | $(VENV)/pyvenv.cfg
	@echo "Installing linkmix[$*] into $(VENV); the first time takes a minute or two"
	@$(PIP_INSTALL) --editable '.[$*]'
	@touch $@
