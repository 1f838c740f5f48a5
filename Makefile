# Everything one does with this repository. `make` alone lists it.

PYTHON ?= python3
UV_VERSION := 0.13.7
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
CODE := $(wildcard src tests bench docs/*.py)
ARGS ?=

# The tests start hundreds of processes: without bytecode each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup serve test check style format bench docs lock clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## make .venv with everything for development (nothing to do when up to date)

serve: $(VENV)/.runtime ## run the server (ARGS="--port 9000" for options)
	@$(BIN)/carrel serve $(ARGS)

# Types are checked beside the tests, since that keeps one core busy for a minute and a half; what
# is wrong with them is told after the tests.
test: style ## check, and every test, against a real PostgreSQL and a real S3 server
	@mkdir -p .mypy_cache; $(BIN)/mypy $(CODE) >.mypy_cache/told 2>&1 & types=$$!; trap 'kill $$types' INT TERM; \
	$(BIN)/pytest -n 4 --dist worksteal $(ARGS); tests=$$?; \
	wait $$types; typed=$$?; cat .mypy_cache/told; exit $$((tests | typed))

check: style ## formatting, lint, types and import contracts
	$(BIN)/mypy $(CODE)

style: $(VENV)/.dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev ## put the code in its usual form
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(VENV)/.dev ## measure, side by side, and print ratios
	$(PY) -m bench $(ARGS)

docs: $(VENV)/.dev ## write docs/reference anew from the code
	$(PY) docs/generate.py

# The two locks are made together, so that they agree on every version they share.
COMPILE = $(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml
lock: $(VENV)/.uv ## choose the newest versions of all dependencies and write the locks
	$(COMPILE) --upgrade --all-extras --group dev --output-file requirements-dev.lock
	$(COMPILE) --upgrade --constraint requirements-dev.lock --output-file requirements.lock

clean: ## remove what the other targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.uv: Makefile
	@$(PYTHON) -c 'import sys; sys.exit("Carrel needs Python 3.11 or newer; say make PYTHON=…") if sys.version_info < (3, 11) else None'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION) \
		|| echo "uv is not to be had here; pip will do its work"
	@touch $@

# uv is fast, but does not read pip's settings: where only pip knows the way to a registry, pip goes.
install = $(BIN)/uv pip install --quiet --system-certs --python $(PY) $(1) \
	|| $(PY) -m pip install --quiet --disable-pip-version-check $(1)

$(VENV)/.runtime: requirements.lock pyproject.toml | $(VENV)/.uv
	@echo "installing Carrel into $(VENV)"
	@$(call install,--require-hashes -r requirements.lock)
	@$(call install,--no-deps -e .)
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml | $(VENV)/.uv
	@echo "installing Carrel and its development tools into $(VENV)"
	@$(call install,--require-hashes -r requirements-dev.lock)
	@$(call install,--no-deps -e .)
	@touch $@ $(VENV)/.runtime
