# Needs Python 3.11+ and make. Without make, see "Without make" in README.md.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# Compiled tests are kept between runs, which halves the time until the first of them starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all test-postgres test-sign-in test-walks test-spark test-package test-container checks audit lint types loops doctests bench papers pictures clean

run: $(STAMP)-run
	$(BIN)/streamlit run app.py

test: checks
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

test-all: checks
	$(BIN)/pytest -n auto --dist worksteal

# Against Debian's PostgreSQL, which the tests start (apt install postgresql).
test-postgres: $(STAMP)-dev
	$(BIN)/pytest tests/ledger/test_postgresql.py

# Four people in four browsers, with an identity provider that the tests start, and through the proxy that we ship.
test-sign-in: $(STAMP)-dev
	$(BIN)/pytest tests/app/test_sign_in.py tests/app/test_sign_in_browser.py tests/app/test_sign_in_proxy.py

# The longest two of the walks that every change must pass; the others that are as long run with test-all.
test-walks: $(STAMP)-dev
	$(BIN)/pytest -n 2 tests/app/test_release_browser.py tests/app/test_ux.py -k "full_review or accessible"

# With Java from Debian (apt install default-jre-headless); installs pyspark first, which takes minutes.
test-spark: $(STAMP)-spark
	$(BIN)/pytest tests/table/engines/test_spark.py tests/app/test_server_tables_spark.py

# Builds the wheel, installs it in a clean environment and starts it; takes minutes, most of them for installing.
test-package: $(STAMP)-dev
	$(BIN)/pytest tests/package/test_wheel.py

# Builds and starts the image; needs buildah, and root with debootstrap where no registry of images can be reached.
test-container: $(STAMP)-dev
	$(BIN)/pytest tests/package/test_container.py

# Fresh seeds, which are logged; the page and the summary that the app shows are written anew.
audit: $(STAMP)-dev
	$(BIN)/python -m tests.audit --deep --write docs/audit.md

checks: $(STAMP)-dev
	$(MAKE) -j 2 lint types loops doctests

lint: $(STAMP)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)-dev
	$(BIN)/mypy

# Once, instead of in every process of the tests at the same time.
loops: $(STAMP)-dev
	$(BIN)/python -m dpsynth_core.runs.warm_up

# The examples in the core's docstrings.
doctests: loops
	$(BIN)/pytest --quiet --doctest-modules dpsynth_core

bench: $(STAMP)-dev
	$(BIN)/python -m benchmarks

# Every experiment of the papers at reduced repetitions, and their figures; goes on where it was stopped. With published
# data: make papers DATA=FOLDER
papers: $(STAMP)-dev
	$(BIN)/python -m benchmarks.papers.everything $(if $(DATA),--data $(DATA))

pictures: $(STAMP)-dev
	$(BIN)/python -m docs.pictures.make

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(STAMP)-run: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(STAMP)-dev: requirements.txt requirements-gan.txt requirements-postgres.txt requirements-dev.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@ $(STAMP)-run

$(STAMP)-spark: $(STAMP)-dev requirements-spark.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-spark.txt
	touch $@
