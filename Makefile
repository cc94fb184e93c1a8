# Every target sets itself up from nothing. Another Python: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test docs browser sanitize torture lowest lock wheels reproduce format clean

help:
	@echo "make run     run the demo (linkmix demo)"
	@echo "make test    check style and types, run every test and every example of the docs"
	@echo "make docs    build the site into build/site: pages, gallery, reference; a warning is an error"
	@echo "make reproduce  run the experiments of the paper, 100 trials each, into results/; goes on where it was stopped"
	@echo "make sanitize  run the tests of the native core and CALLS=50000 random calls under the address and"
	@echo "               undefined-behaviour sanitizers; SEED=0 is the first seed of the calls"
	@echo "make torture    try EXAMPLES=10000 random problems and damaged files, and kill servers, commands"
	@echo "                and workers KILLS=200 times"
	@echo "make lowest  run the tests of the library with the lowest versions of all that it needs"
	@echo "make lock    write requirements-dev.lock anew, with the newest versions of all that make test needs"
	@echo "make wheels  build the source distribution and the wheels of all systems into dist/, and try them"
	@echo "make format  format the code, apply the safe fixes of the linter"
	@echo "make clean   remove $(VENV), caches, builds and the demo output"

run: $(VENV)/.installed-app
	$(BIN)/linkmix demo

# Each of the two pytest workers keeps to one thread, so that they do not fight for the cores.
test: $(VENV)/.installed-dev browser
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2
	OMP_NUM_THREADS=1 LINKMIX_NATIVE=0 $(BIN)/pytest -n 2 tests/engine/test_em.py tests/mixture/test_mixture.py tests/mixture/test_trials.py \
		tests/couplings/test_couplings.py tests/couplings/test_uncertain_links.py tests/densities/test_densities.py

# The gallery is written beside the pages, so the site is built from a copy of them.
SITE := build/site
docs: $(VENV)/.installed-docs
	rm -rf $(SITE) $(SITE)-source
	mkdir -p build
	cp -r docs $(SITE)-source
	OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m sphinx -q -W --keep-going -b html $(SITE)-source $(SITE)
	@echo "Open $(SITE)/index.html in a browser"

# The tests of the labelling page need Chromium. On Debian as root it is installed; elsewhere they say why they are skipped.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing chromium for the tests of the labelling page"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium >/dev/null; \
	else echo "There is no chromium here: the tests of the labelling page are skipped"; fi

# The core is built apart, so that the sanitizers do not stay in the installation. Python itself leaks at its end.
SANITIZED := build/sanitized
UNDER_SANITIZERS = PYTHONPATH=$(SANITIZED):tests PYTHONMALLOC=malloc OMP_NUM_THREADS=2 LINKMIX_NATIVE=1 \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096 \
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)"
CALLS ?= 50000
SEED ?= 0
sanitize: $(VENV)/.installed-dev
	rm -rf $(SANITIZED)
	mkdir -p $(SANITIZED)
	cp -r src/linkmix $(SANITIZED)/linkmix
	rm -f $(SANITIZED)/linkmix/native/_core*
	$(CC) -shared -fPIC -O1 -g -ffp-contract=fast -fsanitize=address,undefined -fno-sanitize-recover=undefined \
		-I"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')" src/linkmix/native/core.c -lm \
		-o "$(SANITIZED)/linkmix/native/_core$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')"
	$(UNDER_SANITIZERS) $(BIN)/python -m pytest tests/native
	$(UNDER_SANITIZERS) $(BIN)/python tests/random_calls.py --calls $(CALLS) --seed $(SEED)

EXAMPLES ?= 10000
KILLS ?= 200
torture: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 LINKMIX_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -n 2 tests/faults
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.label_server --kills $(KILLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.kills --fit $$(($(KILLS) / 2)) --compare $$(($(KILLS) * 3 / 10)) --reproduce $$(($(KILLS) / 5))
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.dask_kills --kills $$(($(KILLS) / 4))

# The lower bounds of pyproject.toml, in an environment of its own; the tools of the tests are the newest ones.
LOWEST := build/lowest
LOWEST_TESTS ?= $(addprefix tests/,engine mixture densities couplings links search rivals tables columns test_distributed.py)
lowest: $(VENV)/pyvenv.cfg
	$(PIP_INSTALL) uv
	rm -rf $(LOWEST)
	mkdir -p build
	$(BIN)/python -m venv $(LOWEST)
	$(BIN)/uv pip install --python $(LOWEST)/bin/python --resolution lowest-direct \
		'.[app,dask,experiments,parquet,xlsx]'
	$(BIN)/uv pip install --python $(LOWEST)/bin/python pytest pytest-xdist hypothesis polars==1.10.0
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n 2 -W ignore::DeprecationWarning -W ignore::pytest.PytestRemovedIn10Warning $(LOWEST_TESTS)

lock: $(VENV)/pyvenv.cfg
	$(PIP_INSTALL) uv
	echo '# What linkmix[dev] was tested with, for every Python from 3.11 on; written by make lock.' > requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --upgrade --no-header --no-annotate \
		--no-emit-index-url --no-emit-package linkmix pyproject.toml >> requirements-dev.lock

# The wheel of this system is installed into an environment of its own, and tried without the sources. The cibuildwheel
# of the workflow reads its settings, so that a version that does not know them is found here.
WHEEL := build/wheel
CIBUILDWHEEL = $(shell sed -n 's/.*cibuildwheel@v//p' .github/workflows/wheels.yml)
wheels: $(VENV)/pyvenv.cfg
	$(PIP_INSTALL) auditwheel build check-jsonschema cibuildwheel==$(CIBUILDWHEEL) twine ziglang zizmor
	rm -rf dist $(WHEEL)
	mkdir -p $(WHEEL)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --config .github/zizmor.yml .github/workflows
	$(BIN)/cibuildwheel --print-build-identifiers --platform linux
	$(BIN)/python packaging/wheels.py --out dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/auditwheel show dist/*manylinux2014_x86_64.whl
	$(BIN)/python -m venv $(WHEEL)/environment
	$(WHEEL)/environment/bin/python -m pip install --quiet --disable-pip-version-check --find-links dist \
		'linkmix[app,dask,experiments,xlsx]' pytest pytest-xdist hypothesis polars
	tar --extract --strip-components=1 --directory $(WHEEL) --file dist/linkmix-*.tar.gz
	rm -rf $(WHEEL)/src
	cd $(WHEEL) && OMP_NUM_THREADS=1 environment/bin/python -m pytest -n 2 $(LOWEST_TESTS) tests/native

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

# One stamp per extra; a change of pyproject.toml installs again. The lock makes it the same everywhere; an index that
# lacks one of its versions gives the newest ones instead, which is said.
$(VENV)/.installed-%: pyproject.toml setup.py requirements-dev.lock src/linkmix/native/core.c \
		$(wildcard src/linkmix/native/*.h) | $(VENV)/pyvenv.cfg
	@rm -f src/linkmix/native/_core.*
	@echo "Installing linkmix[$*] into $(VENV); the first time takes a minute or two"
	@$(PIP_INSTALL) --constraint requirements-dev.lock --editable '.[$*]' || { \
		echo "The versions of requirements-dev.lock are not to be had here: installing the newest ones"; \
		$(PIP_INSTALL) --editable '.[$*]'; }
	@touch $@
