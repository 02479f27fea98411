#!/usr/bin/env bash
# The drill, built with the hooks for named steps. Without arguments the short one of CI, of about two minutes. The seed
# is the same each time, so that a red run is the change's own; SEED=n plays another script.
set -euo pipefail
cd "$(dirname "$0")/.."

.ci/setup.sh postgres
echo "Building bin/rollcall-drill, with the hooks for named steps compiled in: a minute or two the first time."
CGO_ENABLED=0 go build -tags drill -o bin/rollcall-drill ./cmd/rollcall
keep=${KEEP:-$(mktemp -d)}
seed=${SEED:-20261130}
[ "$#" -gt 0 ] || set -- --urls 800 --processes 2 --kills 20 --rotate 15s --deadline 8m
echo "rollcall-drill drill --seed $seed $* (logs and report in $keep)"
exec ./bin/rollcall-drill drill --seed "$seed" --json --keep "$keep" --html "$keep/drill.html" "$@"
