# Two commands matter: `make demo` and `make test`. Both install what they need.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Where a machine's environment forbids compiled files, each of the many Python programs of a run would compile again.
export PYTHONDONTWRITEBYTECODE :=
# A network that looks into TLS adds its certificate to the system's; uv has its own unless it is told.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS ?= true
endif
# mypy looks into a checkout, not at its place: a fresh clone takes what another one found (2 s instead of 20).
export MYPY_CACHE_DIR ?= $(or $(SPECDEC_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/specdec)/mypy

python := .venv/bin/python
check := .venv/bin

.PHONY: help
help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

.venv/.made: bootstrap pyproject.toml uv.lock
	@./bootstrap
	@touch $@

# KUBECONFIG counts with ADDRESS alone, so that one that a shell exports is never touched by accident.
.PHONY: demo
demo: .venv/.made ## Take the example models to served answers on a real cluster on this machine (KEEP=1: leave it running; KUBECONFIG=FILE ADDRESS=IP, both: on that cluster).
	@$(python) -m testbed.demo $(if $(KEEP),--keep) \
		$(if $(and $(KUBECONFIG),$(ADDRESS)),--kubeconfig '$(KUBECONFIG)' --address '$(ADDRESS)')

.PHONY: dev
dev: .venv/.made ## A cluster, and the operator as a process beside it that restarts when its code changes.
	@$(python) -m testbed.dev

.PHONY: test
test: check ## Everything: check, unit tests, a real control plane, real pods.
	@$(python) -m testbed.cluster build --helm --promtool $(shell [ "$$(id -u)" = 0 ] && echo --node)
	@[ "$$(id -u)" != 0 ] || $(python) -m testbed.runtime build
	@[ "$$(id -u)" != 0 ] || $(python) -m testbed.operator build
	@$(python) -m pytest --numprocesses=2 --max-worker-restart=0

.PHONY: check
check: .venv/.made ## Lint, types, import rules, generated files.
	@echo "check: ruff"; $(check)/ruff check --quiet . && $(check)/ruff format --check --quiet .
	@echo "check: mypy"; $(check)/mypy
	@echo "check: import rules"; $(check)/lint-imports --no-cache | tail -n 3
	@echo "check: generated files"; $(python) -m specdec_operator.api.generate --check; $(python) -m specdec_operator.runtimes.generate --check; $(python) -m specdec_operator.packaging.generate --check

.PHONY: unit
unit: .venv/.made ## Unit tests alone (seconds).
	@$(python) -m pytest tests/unit

.PHONY: generate
generate: .venv/.made ## Write what is made from the code: CRDs, docs/api.md, docs/capabilities.md, the chart's values and rights, manifests/.
	@$(python) -m specdec_operator.api.generate
	@$(python) -m specdec_operator.runtimes.generate
	@$(python) -m specdec_operator.packaging.generate
	@$(python) -m testbed.operator.manifests

.PHONY: golden
golden: .venv/.made ## Write the golden manifests of the examples; review the difference.
	@$(python) -m tests.golden.update

.PHONY: format
format: .venv/.made ## Format and fix what can be fixed.
	@$(check)/ruff check --fix . ; $(check)/ruff format .

.PHONY: clean
clean: ## Remove what a killed cluster left, and the Python environment.
	@[ ! -x $(python) ] || $(python) -m testbed.cluster clean
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
