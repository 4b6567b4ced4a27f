# Everything a developer runs. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
READY := $(VENV)/.ready
COMPONENT := src/habilis/sandbox/wasm/component.wasm
# Extras that the tests need. CI adds `hf`: torch alone takes 6 GB on x86-64, for 30 tests.
EXTRAS ?= dev
# Processes that test at the same time: two per core, as half of the time of a test is waiting.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(2 * (os.cpu_count() or 1), 12))')

# Folders that `make test-quick` leaves out.
SLOW := benchmarks cli crash evals flows forge/javascript house/test_docs.py models/local sandbox/cloud sandbox/docker sandbox/process \
  sandbox/remote server test_wheel.py

.DEFAULT_GOAL := help
.PHONY: help demo test pytest test-quick test-model test-crash node gradio page soak eval-local eval-forge eval-library house lint format bench recording screenshots docs wheel clean
.DELETE_ON_ERROR:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(BASE) ## Watch a sandbox at work, then a model that solves a task in it
	@if [ ! -t 0 ] && $(BIN)/habilis models | tail -1 | grep -q '^No model available: the embedded'; then \
	  $(BIN)/habilis models install --yes >/dev/null 2>&1 & fi; \
	$(BIN)/python examples/sandbox_tour.py
	@if [ -t 0 ]; then $(BIN)/habilis demo 1; else $(BIN)/habilis demo 1 --yes; fi

test: $(READY) ## Check everything: lint, types, tests, documentation
	@$(MAKE) --no-print-directory --jobs 2 --keep-going pytest lint

pytest: $(READY) ## Run the tests alone; PYTEST_ARGS='tests/sandbox -k fork' chooses some
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not model and not crash' $(PYTEST_ARGS)

test-quick: $(READY) ## Run the tests that take little time: no servers, terminals, benchmarks, pages or kills
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not model and not crash and not slow' $(SLOW:%=--ignore=tests/%) $(PYTEST_ARGS)

test-model: $(READY) ## Run the tests that ask the embedded model: some minutes, and 1.1 GB once
	$(BIN)/pytest -m model $(PYTEST_ARGS)

test-crash: $(READY) ## Kill runs at every record and at hundreds of random moments, on each store: many minutes
	$(BIN)/pytest -n $(WORKERS) -m crash $(PYTEST_ARGS)

page: ## Build the page of `habilis serve` from page/ into the package
	npm install --prefix page --no-save --no-audit --no-fund --loglevel error
	npm run --prefix page check
	npm run --prefix page build -- --logLevel warn

node: ## Install the programs and clients of npm that the tests talk to
	npm install --prefix tests/node --no-package-lock --no-audit --no-fund --loglevel error

gradio: ## Install Gradio for its example, in an environment of its own: its versions do not fit those of the tests
	$(PYTHON) -m venv .gradio
	.gradio/bin/python -m pip --disable-pip-version-check install -q -e '.[build]' gradio

soak: $(READY) ## Keep 200 runs going for half an hour, kill their workers and cut their connections; SOAK_ARGS='--minutes 2'
	$(BIN)/python -m tests.soak.soak $(SOAK_ARGS)

eval-local: $(READY) ## Solve the sets of evals/ with the embedded model; EVAL_DATA=FOLDER adds the public sets
	@$(BIN)/habilis models install --yes
	$(BIN)/python -m evals.run $(if $(EVAL_DATA),--data $(EVAL_DATA)) $(EVAL_ARGS)

eval-forge: $(READY) ## Let the embedded model build tools for EVAL_DATA=FOLDER (mbpp*.jsonl); hidden tests judge them
	@$(BIN)/habilis models install --yes
	$(BIN)/python -m evals.forge --data $(EVAL_DATA) $(EVAL_ARGS)

eval-library: $(READY) ## Let the embedded model answer families of requests, with a library of tools and without
	@$(BIN)/habilis models install --yes
	$(BIN)/python -m evals.library $(EVAL_ARGS)

eval-memory: $(READY) ## Measure the search of the memory: made-up chats, and the sets of EVAL_DATA=FOLDER
	$(BIN)/python -m evals.memory $(EVAL_ARGS)
	$(if $(EVAL_DATA),$(BIN)/python -m evals.memory --data $(EVAL_DATA) $(EVAL_ARGS))

house: $(READY) ## Print the figures of the code: rooms, circles, frames, Any, casts, long functions, repeated names
	@$(BIN)/python -m tests.house.figures $(PACKAGE)

lint: $(READY) ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright

format: $(READY) ## Format the code, and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) ## Run the benchmarks of the sandbox, the agent, the journal, the forge, MCP and the server; BENCH_ARGS='--quick'
	$(BIN)/python -m benchmarks sandbox $(BENCH_ARGS)
	$(BIN)/python -m benchmarks agent $(BENCH_ARGS)
	$(BIN)/python -m benchmarks journal $(BENCH_ARGS)
	$(BIN)/python -m benchmarks forge $(BENCH_ARGS)
	$(BIN)/python -m benchmarks mcp $(BENCH_ARGS)
	$(BIN)/python -m benchmarks server $(BENCH_ARGS)

recording: $(BASE) ## Draw docs/run.svg, the picture in the README, from a real run of the embedded model
	@$(BIN)/habilis models install --yes
	cd examples && PATH="$(CURDIR)/$(BIN):$$PATH" $(CURDIR)/$(BIN)/python ../docs/recording.py ../docs/run.svg \
		habilis run 'How many degrees warmer is it in Rome than in Oslo?' --tools weather:temperature -m local

screenshots: $(READY) ## Draw docs/screenshots, the pictures of the page of `habilis serve`; needs chromium
	$(BIN)/python -m tests.server.assistant.screenshots docs/screenshots

docs: $(READY) ## Build the documentation into site/
	$(BIN)/mkdocs build --strict

wheel: $(READY) ## Build a wheel that carries the built component, into dist/
	$(BIN)/python -m habilis.sandbox.wasm.build $(COMPONENT)
	$(BIN)/python -m build --wheel

clean: ## Remove all that was built here, the virtual environment too
	rm -rf $(VENV) .gradio build dist site tests/node/node_modules page/node_modules .hypothesis .pytest_cache .ruff_cache $(COMPONENT)
	find src tests examples evals benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The virtual environment is made anew whenever the list of dependencies changes. What the demo needs comes first.
$(BASE): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
	  echo 'Habilis needs Python 3.11 or newer, and "$(PYTHON)" was not found. Try: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Habilis needs Python 3.11 or newer; this is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'This Python cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@echo 'Setting up $(VENV) ...'
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt -e '.[build,local,server]'
	@touch $@

$(READY): $(BASE)
	@echo 'Installing what the tests need (once; about a minute) ...'
	@$(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@
