# Everything there is to do with this repository. make alone prints this list.

SHELL := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
GO_BUILD = CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
FUZZTIME ?= 10s
URLS ?= 1000

.DEFAULT_GOAL := help
.PHONY: help demo run dev build test check lint generate schema fuzz faults drill cover tools static screenshots

help: ## print this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

demo: build ## a whole Rollcall with a simulated vendor and a batch that fills; ARGS="--once --urls 50" adds flags
	@.ci/setup.sh postgres
	./bin/rollcall demo $(ARGS)

run: build ## the server with the settings of the environment and of .env
	@set -a; [ ! -f .env ] || . ./.env; set +a; \
	[ -n "$$DATABASE_URL$$DATABASE_URL_FILE" ] || .ci/setup.sh postgres; \
	exec ./bin/rollcall serve $(ARGS)

dev: ## the demo, built and started again whenever a page changes
	@.ci/setup.sh postgres
	go tool templ generate --watch --cmd "go run ./cmd/rollcall demo $(ARGS)"

build: ## bin/rollcall, static
	$(GO_BUILD) -o bin/rollcall ./cmd/rollcall

test: ## every test with the race detector; DATABASE_URL names a server to use instead of private ones
	@.ci/test.sh $(ARGS)

check: ## what CI runs: tests, generated files, formatting, lint, known vulnerabilities
	@.ci/run

lint: tools ## golangci-lint
	.tools/bin/golangci-lint run

generate: ## everything made from something else: templ, .env.example, the README's table of settings
	@.ci/generate.sh

schema: ## migrations/schema.sql, a dump to read
	@.ci/setup.sh postgres
	@.ci/schema.sh migrations/schema.sql

fuzz: ## each fuzz test for FUZZTIME (10s)
	@.ci/fuzz.sh $(FUZZTIME)

faults: build ## the demo under every fault of the sandbox at 0.3, then under all at 0.05; URLS=1000
	@.ci/setup.sh postgres
	@.ci/faults.sh $(URLS)

drill: ## about 15 minutes of kills, cuts and rotations under load, through every pair of the vendor's switches; SEED=1
	@SEED=$(or $(SEED),1) .ci/drill.sh --urls 20000 --processes 3 --kills 260 --rotate 20s --switches --deadline 40m $(ARGS)

screenshots: ## pictures of every page, light and dark, wide and narrow, in screenshots/; ARGS=folder for another
	@.ci/screenshots.sh $(ARGS)

cover: ## coverage of the tests, in total and in cover.out
	@.ci/setup.sh postgres chromium
	go test -timeout 9m -coverpkg=./... -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -n 1

tools: ## the pinned tools in .tools/bin
	@.ci/tools.sh golangci-lint gofumpt

static: ## fetch the pinned browser files into static/ again (needs npm)
	static/vendor.sh update
