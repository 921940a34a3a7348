# Howdah. `make` alone lists what there is.
.DEFAULT_GOAL := help

GO      ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
HOME_DIR ?=
HOWDAH   = bin/howdah
# Only given when asked for: howdah knows its default home itself.
HOME_FLAG = $(if $(HOME_DIR),--home $(HOME_DIR))

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: install build ## install what is missing, build, run Howdah, and make a Multi-AZ instance "demo"
	@$(HOWDAH) up $(HOME_FLAG) --detach
	@$(HOWDAH) demo $(HOME_FLAG)

down: ## stop everything of the home on this machine; data stay
	@$(HOWDAH) down $(HOME_FLAG)

install: ## install what Howdah needs and is missing; with POSTGRESQL=17,18 these versions of PostgreSQL too
	@scripts/install $(if $(POSTGRESQL),--postgresql $(POSTGRESQL))

build: ## build the one program, bin/howdah
	@$(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(HOWDAH) ./cmd/howdah

test: ## all tests: unit, engines, faults, journeys (35 minutes at most; as root on Debian 12)
	@scripts/test

test-versions: ## what depends on PostgreSQL's version: engines, extension, faults and journeys on 17 and 18, and assertions (as root)
	@scripts/test versions

test-drivers: ## AWS's driver wrappers for Java, Python and Node.js through ten failovers each (ten minutes; as root)
	@scripts/test drivers

test-extensions: ## install all extensions, and try each: create, use, escape, fail over, dump, restore, drop (ten minutes; as root)
	@scripts/install --extensions all
	@scripts/test extensions

soak: ## random operations and faults on a fleet, for 20 minutes or SOAK=2h; SEED=7 REPLAY=file SHRINK=30m (as root)
	@HOWDAH_SOAK=$(or $(SOAK),20m) HOWDAH_SOAK_SEED=$(SEED) HOWDAH_SOAK_REPLAY=$(abspath $(REPLAY)) HOWDAH_SOAK_SHRINK=$(SHRINK) \
		HOWDAH_SOAK_DIR=$(CURDIR)/bin scripts/test soak

pauses: ## failovers while random processes stand still for moments, for 20 minutes or PAUSES=2h (as root)
	@HOWDAH_TEST_PAUSES=$(or $(PAUSES),20m) scripts/test pauses

test-programs: ## real programs against it, which it installs: Django's and SQLAlchemy's tests, pgbench, Flyway, pools, Prisma, pgloader (half an hour; as root)
	@scripts/test programs

check: ## format, vet and lint: before every commit
	@scripts/check

bench-ha: build ## measure failovers, endpoints and memory on real processes (about two hours; as root)
	@$(GO) build -o bin/bench-ha ./test/bench/ha
	@bin/bench-ha -howdah $(HOWDAH) $(BENCH_FLAGS)

bench-scale: ## measure a control plane with 100, 1,000 and 10,000 instances on pretended hosts (six minutes)
	@$(GO) build -o bin/bench-scale ./test/bench/scale
	@bin/bench-scale $(BENCH_FLAGS)

bench-backup: build ## measure snapshots, restores, clones and drills of 5 GB against plain tools (about an hour; as root)
	@$(GO) build -o bin/bench-backup ./test/bench/backup
	@bin/bench-backup -howdah $(HOWDAH) $(BENCH_FLAGS)

generate: ## rewrite api/ from the public service models, docs/cli.md, docs/guide/api.md and what the table of extensions says
	@scripts/install --test
	@HOWDAH_BOTOCORE=$$(echo $$(scripts/install --print-test-dir)/botocore-*.whl) $(GO) generate ./api
	@$(GO) run ./cmd/howdah gen-docs docs/cli.md
	@$(GO) run ./cmd/howdah gen-api docs/guide/api.md
	@$(GO) run ./cmd/howdah gen-extensions docs/guide/extensions.md
	@$(GO) run ./cmd/howdah gen-extension-list scripts/extensions.txt

clean: ## remove what was built
	@rm -rf bin

bench-observe: ## measure what observing a server costs it, alternating (nine minutes)
	@$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 1h ./test/bench/observe -args $(BENCH_FLAGS)

bench-ccm: build ## measure failovers with a warm and a cold cache, alternating (20 minutes; as root)
	@$(GO) build -o bin/bench-ccm ./test/bench/ccm
	@bin/bench-ccm -howdah $(HOWDAH) $(BENCH_FLAGS)

.PHONY: help up down install build test test-versions test-drivers test-extensions soak pauses test-programs check bench-ha bench-scale bench-backup bench-ccm bench-observe generate clean
