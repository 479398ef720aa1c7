# Everything a person does with this repository, one target each. `make` alone lists them.
#
# The only thing outside the repository is a Python 3.11 or newer; name another one with
#     make setup PYTHON=/path/to/python3.12
# All installs go to .venv, are pinned by constraints.txt, and are repeated only when pyproject.toml or
# constraints.txt is newer than the last one (the stamp files below), so every target may be run again at no cost.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
PYTHON_CANDIDATES := $(if $(PYTHON),$(PYTHON),python3.11 python3.12 python3.13 python3)
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt

# What works with the current versions of what it needs, but asks for ones of 2022 by ==. What it really needs is in dev.
NO_DEPS := safety-gymnasium

# What has been installed into .venv so far. dev and docs contain the base, so they stamp it too.
BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup setup-browser train test check format bench figures docs constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(DEV) ## create .venv with pcpo and everything its tests need
	@echo "ready: $(BIN)/pcpo, $(BIN)/python"

# The only target that changes the machine rather than .venv, which is why no other one calls it.
setup-browser: ## install Debian's Chromium, in which the tests open the page of pcpo report (needs root)
	@find_browser() { for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do \
	  command -v $$name && return; done; return 1; }; \
	could_not() { echo "make setup-browser: $$1. Nothing was installed; without Chromium, make test says that the" \
	  "report page was not opened in a browser" >&2; exit 1; }; \
	if browser=$$(find_browser); then echo "nothing to do: there is $$browser"; exit; fi; \
	command -v apt-get > /dev/null || could_not "there is no apt-get here; install Chromium in your system's own way"; \
	[ "$$(id -u)" = 0 ] || could_not "apt-get needs root; try sudo make setup-browser"; \
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } \
	  || could_not "apt-get failed (see above)"; \
	browser=$$(find_browser) || could_not "apt-get brought no program called chromium"; \
	echo "installed: $$browser, $$("$$browser" --version 2> /dev/null)"

train: $(BASE) ## from nothing to a policy that keeps its limit, and its curves, in a new directory under runs/
	$(BIN)/pcpo train point-circle --updates 200

test: $(DEV) ## run all tests in tiers, with their times
	@$(BIN)/python tests/tiers.py

check: $(DEV) ## lint, formatting and types
	@failed=; \
	echo "ruff check"; $(BIN)/ruff check . || failed="$$failed lint"; \
	echo "ruff format --check"; $(BIN)/ruff format --check . || failed="$$failed formatting"; \
	echo "pyright"; $(BIN)/pyright || failed="$$failed types"; \
	if [ -n "$$failed" ]; then echo "make check: failed:$$failed (make format repairs formatting)" >&2; exit 1; fi

format: $(DEV) ## repair the formatting and what lint can repair by itself
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(DEV) ## run the benchmarks and print their tables
	$(BIN)/python -m pytest benchmarks -q -s

# One line for each command that draws figures for the documentation.
figures: $(DEV) ## redraw the figures of the documentation
	$(BIN)/pcpo reproduce geometry -o docs/figures
	$(BIN)/pcpo reproduce optimization-path -o docs/figures
	$(BIN)/pcpo reproduce bounds -o docs/figures
	$(BIN)/python docs/figures/tasks.py

docs: $(DOCS) ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "built: site/index.html"

# Refreshes the pinned versions: a new environment without pins, and what it came to hold.
constraints: ## install the newest versions elsewhere and pin them in constraints.txt
	@$(call find_python,found) && \
	scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	"$$found" -m venv "$$scratch" && \
	"$$scratch/bin/python" -m pip install --disable-pip-version-check --quiet -e '.[dev,docs]' && \
	"$$scratch/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps $(NO_DEPS) && \
	sed '/^[^#]/,$$d' constraints.txt > "$$scratch/pins" && \
	"$$scratch/bin/python" -m pip freeze --exclude-editable | grep -E '^[A-Za-z0-9._-]+==[^ ]+$$' >> "$$scratch/pins" && \
	cp "$$scratch/pins" constraints.txt && echo "constraints.txt is refreshed: run make check test, then commit it"

clean: ## remove .venv, caches and everything built (not runs/)
	rm -rf $(VENV) site build dist .pytest_cache .ruff_cache .hypothesis .benchmarks
	find src tests benchmarks examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# ---------------------------------------------------------------------------------------------------------------

# Shell text: sets the variable $(1) to the first candidate that is Python 3.11 or newer, or says what to do.
# A candidate that is on the path but does not work (a version manager's empty shim, say) is passed over.
define find_python
$(1)=; for candidate in $(PYTHON_CANDIDATES); do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; then $(1)=$$candidate; break; fi; \
	done; \
	if [ -z "$$$(1)" ]; then \
	  echo "pcpo needs Python 3.11 or newer; tried: $(PYTHON_CANDIDATES). Install one (Debian and Ubuntu:" >&2; \
	  echo "apt install python3 python3-venv), or name it: make $(or $(MAKECMDGOALS),setup) PYTHON=/path/to/python3.12" >&2; \
	  exit 1; \
	fi
endef

# .venv/bin/python is a link to the interpreter: where that has gone, the environment is made anew.
$(BIN)/python:
	@$(call find_python,found); \
	echo "creating $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv --clear $(VENV) || { \
	  rm -rf $(VENV); \
	  echo "$$found cannot create an environment (see above). On Debian and Ubuntu its venv module is a package" >&2; \
	  echo "of its own: apt install python3-venv" >&2; \
	  exit 1; }

$(BASE): $(BIN)/python pyproject.toml constraints.txt
	@echo "installing pcpo"
	@$(PIP_INSTALL) -e .
	@touch $@

$(DEV): $(BIN)/python pyproject.toml constraints.txt
	@echo "installing pcpo and what its tests need"
	@$(PIP_INSTALL) -e '.[dev]'
	@$(PIP_INSTALL) --no-deps $(NO_DEPS)
	@touch $(BASE) $@

$(DOCS): $(BIN)/python pyproject.toml constraints.txt
	@echo "installing pcpo and what its documentation needs"
	@$(PIP_INSTALL) -e '.[docs]'
	@touch $(BASE) $@
