#!/usr/bin/env bash
# Every test with the race detector, after the set-up. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=(chromium cc unzip)
[ -n "${DATABASE_URL:-}" ] || wanted+=(postgres)
.ci/setup.sh "${wanted[@]}"

# The timeout is for one package: the slowest takes 6 minutes, and took over 25 on a machine with dear system calls. As many
# packages as there are cores run at a time, each with a Postgres of its own.
# Without a browser, or unzip, the tests that need one fail here instead of being skipped.
export CGO_ENABLED=1 ROLLCALL_BROWSER=required ROLLCALL_UNZIP=required
# Two cores are what bounds it: rather memory than collections, and vet runs with the linters.
export GOGC=${GOGC:-400}
# The race detector sleeps a second at the end of each process, and tests start hundreds.
export GORACE=${GORACE:-atexit_sleep_ms=0}
# With the race detector the compiler spends a minute of processor time on improving the pages' code, which is
# compiled once for its own tests and once for everybody else's, and wins nothing in tests that wait for a database or a
# browser. The pipeline, the store and what they stand on, where time and memory are claims, are compiled as ever.
plain=()
for package in views web cmd/rollcall; do
	plain+=("-gcflags=rollcall/$package=-N -l")
done
# The longest first: nothing runs alone at the end.
exec go test -race -vet=off "${plain[@]}" -shuffle=on -timeout 40m "$@" ./internal/pipeline ./cmd/rollcall ./web ./views ./...
