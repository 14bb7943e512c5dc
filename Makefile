# make site, make test, make serve: each sets itself up in .venv from pinned packages, once.

PYTHON ?= python3
BIN := .venv/bin
SET_UP := pyproject.toml constraints.txt
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

export NO_MKDOCS_2_WARNING := 1
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: site offline pdf serve check test lint fix parity bench drill mutants clean

site: export CLAIMS_BUILD := $(shell echo $$(date +%s)-$$$$)
site: .venv/site.stamp  ## check every page, then build site/
	$(BIN)/python -m claims check
	$(BIN)/python -m decoder assets
	$(BIN)/mkdocs build --strict

offline: .venv/site.stamp  ## build site-offline/, which works from its folder without a server
	$(BIN)/python -m decoder assets
	DIRECTORY_URLS=false SITE_URL= $(BIN)/mkdocs build --strict --site-dir site-offline
	$(BIN)/python -m claims offline site-offline

pdf: site  ## the whole book as one PDF, site/book.pdf; needs a Chromium
	$(BIN)/python -m claims pdf site site/book.pdf

serve: .venv/site.stamp  ## the author's loop: the site with live reload
	$(BIN)/python -m decoder assets
	$(BIN)/mkdocs serve

check: .venv/site.stamp  ## check every page, build nothing
	$(BIN)/python -m claims check

test: .venv/test.stamp  ## all tests, and how much they cover; those in a browser say so when there is none
	$(BIN)/python -m pytest -n 2 --durations 40 --cov

lint: .venv/lint.stamp  ## style, types, spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/codespell

fix: .venv/lint.stamp  ## what style can repair by itself
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

parity: .venv/test.stamp  ## each family against transformers, on the same random weights
	$(BIN)/python -m decoder parity

bench: .venv/test.stamp  ## every script in benchmarks/: times, as ratios within one run
	set -e; for script in benchmarks/*.py; do $(BIN)/python "$$script"; done

drill: .venv/test.stamp  ## fifty seeded changes in a copy of the book, each of which must be noticed; many minutes
	$(BIN)/python tests/drill/drill.py

mutants: .venv/test.stamp  ## change the code in every place that tests/mutation names: a test must fail each time; hours
	$(INSTALL) cosmic-ray==8.7.0
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutation/mutants.py

clean:  ## remove what was built and cached, keep .venv
	rm -rf site .cache

.venv/pip.stamp:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	touch $@

.venv/site.stamp: $(SET_UP) | .venv/pip.stamp
	$(INSTALL) -e '.[site]'
	touch $@

.venv/test.stamp: $(SET_UP) | .venv/site.stamp
	$(INSTALL) -e '.[site,test]'
	touch $@

.venv/lint.stamp: $(SET_UP) | .venv/test.stamp
	$(INSTALL) -e '.[site,test,lint]'
	touch $@
