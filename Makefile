# Python 3.11+, make and a package index are all that is needed: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
unexport PYTHONDONTWRITEBYTECODE # else each of the tests' many processes compiles foreplan once more

.PHONY: install dev demo test chaos checked check bench docs system clean

install: $(VENV)/installed
dev: $(VENV)/built

# What the compiled kernels are made from: when one is edited, they are built again.
KERNELS := setup.py $(wildcard kernel_build/*.py) src/foreplan/sorting.py src/foreplan/ends.py $(wildcard src/foreplan/*/kernels/*.py)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml $(KERNELS) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77' 'Cython>=3.1' 'numpy>=2'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[dev]'
	@touch $@ $(VENV)/installed $(VENV)/built

$(VENV)/built: $(VENV)/installed-dev $(KERNELS)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@ $(VENV)/installed

demo: install
	@mkdir -p out && rm -rf out/words out/history && cp -r examples/words out/words
	$(BIN)/foreplan plan examples/montage.yaml -p examples/cluster.yaml \
		--gantt out/montage.html --gantt out/montage.png
	@echo "-- the first run is blind, the second knows what tasks take --"
	FOREPLAN_HOME=out/history $(BIN)/foreplan run out/words/pipeline.yaml --dir out/words
	FOREPLAN_HOME=out/history $(BIN)/foreplan run out/words/pipeline.yaml --dir out/words --force
	$(BIN)/foreplan report last --dir out/words --html out/words.html --gantt out/words.png
	@echo
	@echo "Open out/montage.html (a plan) and out/words.html (a run, plan against fact) in a"
	@echo "browser: zoom with the wheel, hover for details. The work itself is in out/words."

# All tests, or those of one room: make test ROOM=engine
ROOM ?=
test: dev system
	$(BIN)/python -m pytest $(addprefix tests/,$(ROOM))

# The tests that kill coordinators, workers and disks, and those of random cases, with as many
# repetitions as FOREPLAN_CHAOS says: with 50, the coordinator is killed up to 90 times in the middle of
# runs of 200 tasks, and 300 times it, its commands or both in random workflows: these kills are counted
# at the end, by kind. The seed is printed; with FOREPLAN_SEED it is the same again.
FOREPLAN_CHAOS ?= 50
chaos: FOREPLAN_SEED ?= $(shell date +%s)
chaos: dev
	FOREPLAN_CHAOS=$(FOREPLAN_CHAOS) FOREPLAN_SEED=$(FOREPLAN_SEED) $(BIN)/python -m pytest tests/chaos \
		$$(grep -rl '^from repeated import' tests --include='test_*.py')

# Plans, simulations and pebble games with kernels that check every place in an array.
checked: dev
	$(BIN)/python setup.py --quiet build_ext --inplace --force --checked
	$(BIN)/python -m pytest $(addprefix tests/,scheduling engine policies simulation ic); code=$$?; \
	$(BIN)/python setup.py --quiet build_ext --inplace --force; exit $$code

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: install
	$(BIN)/foreplan bench quality
	$(BIN)/foreplan bench plan --full --million
	$(BIN)/foreplan bench simulate --million
	$(BIN)/foreplan bench start

# The manual as a site; whatever Sphinx warns of, as a link that leads nowhere, fails.
docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs out/site
	@echo "Open out/site/index.html in a browser."

$(VENV)/installed-docs: $(VENV)/installed pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# A browser for the test of the chart page. Without it (or without root) that test is skipped.
system:
	@command -v chromium >/dev/null 2>&1 || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
		&& echo "installing chromium for the chart page's test" \
		&& apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	|| echo "no chromium: the chart page's browser test will be skipped"

clean:
	rm -rf $(VENV) build dist wheelhouse src/foreplan/_native.* out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
