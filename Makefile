# SPDX-License-Identifier: GPL-3.0-or-later
# `make help` lists the targets. Everything they need is installed by them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell command -v python3)
DEBIAN ?= 12
S ?= default
BUILD := $(CURDIR)/.build
BIN := $(BUILD)/venv/bin
VENV := $(BUILD)/venv/made-from-$(shell cat requirements-dev.txt | sha256sum | cut -c1-12)
LINK := $(BUILD)/ansible_collections/gpuops/tenancy

export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
export ANSIBLE_COLLECTIONS_PATH := $(BUILD)
export ANSIBLE_HOME := $(BUILD)/ansible
export PATH := $(BIN):$(PATH):/usr/sbin:/sbin
export TENANCY_DEBIAN := $(DEBIAN)

.PHONY: help
help: ## This list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: deps
deps:
	@PYTHON=$(PYTHON) tests/tools/deps.sh

$(VENV): requirements-dev.txt
	@tests/tools/venv.sh $(PYTHON) $@

$(LINK):
	@mkdir -p $(dir $@)
	@ln -sfn $(CURDIR) $@

.PHONY: venv
venv: | deps $(VENV) $(LINK) ## Controller and test tools in .build

# --- the cluster ------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: venv ## A cluster (DEBIAN=12 or 13), two tenants on it, a job of one of their users
	@python tests/demo.py --release $(DEBIAN)

.PHONY: up
up: venv ## The bare hosts only; site.yml makes a cluster of them
	@python tests/cluster/cluster.py up --release $(DEBIAN)

.PHONY: down
down: venv ## Remove the cluster: containers, networks, cgroups, files
	@python tests/cluster/cluster.py down

.PHONY: snapshot restore
snapshot restore: venv ## Keep the hosts' state under N=name, or go back to it
	@python tests/cluster/cluster.py $@ $(N)

# --- tests ------------------------------------------------------------------------------------------------------------

.PHONY: test
test: ## All tests on both Debian releases; ALL=1 also the long ones, and each on both
	@tests/test.sh

.PHONY: lint
lint: venv ## Everything that reads the source without running it
	@tests/tools/lint.sh

.PHONY: sanity
sanity: venv ## ansible-test sanity alone; ARGS go to it
	@tests/tools/sanity.sh $(ARGS)

.PHONY: unit
unit: venv ## Unit tests
	@python -m pytest -q -n 2 tests/unit $(ARGS)

.PHONY: scenario
scenario: venv ## One molecule scenario: S=name, DEBIAN=12 or 13
	@tests/tools/scenario.sh $(S)

.PHONY: bench
bench: export TENANCY_TESTBED ?= test-$(DEBIAN)
bench: venv ## One benchmark: B=name; its last line is a JSON object
	@python tests/benchmarks/$(B).py

.PHONY: show
show: venv ## One table or figure: T=name
	@python tests/show/$(T).py

.PHONY: docs
docs: venv ## Pages that are made from the source
	@python tests/tools/gen_tenant_docs.py
	@python tests/tools/gen_field_docs.py
	@python tests/tools/gen_firewall_docs.py
	@python tests/tools/gen_attest_docs.py

.PHONY: changelog
changelog: venv
	@antsibull-changelog lint

.PHONY: clean
clean: ## Remove the cluster, its images and .build
	@code=0; [ ! -x $(BIN)/python ] || python tests/cluster/cluster.py clean || code=$$?; \
	rm -rf $(BUILD) inventories/demo/secrets; exit $$code
