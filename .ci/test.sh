#!/usr/bin/env bash
# Every test with the race detector, after the set-up. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=(chromium cc unzip)
[ -n "${DATABASE_URL:-}" ] || wanted+=(postgres)
.ci/setup.sh "${wanted[@]}"

# The timeout is for one package; as many packages as there are cores run at a time, each with a Postgres of its own.
# Without a browser, or unzip, the tests that need one fail here instead of being skipped.
export CGO_ENABLED=1 ROLLCALL_BROWSER=required ROLLCALL_UNZIP=required
# Two cores are what bounds it: rather memory than collections, and vet runs with the linters.
export GOGC=${GOGC:-400}
# The race detector sleeps a second at the end of each process, and tests start hundreds.
export GORACE=${GORACE:-atexit_sleep_ms=0}
# The longest first: nothing runs alone at the end.
exec go test -race -vet=off -shuffle=on -timeout 14m "$@" ./internal/pipeline ./cmd/rollcall ./web ./views ./...
