#!/usr/bin/env bash
# The drill, built with the hooks for named steps. Without arguments the short one of CI, of about two minutes; the seed
# is the day's, so that CI comes to see many, and is printed so that one that fails can be repeated (SEED=n).
set -euo pipefail
cd "$(dirname "$0")/.."

.ci/setup.sh postgres
CGO_ENABLED=0 go build -tags drill -o bin/rollcall-drill ./cmd/rollcall
keep=${KEEP:-$(mktemp -d)}
seed=${SEED:-$(date +%Y%m%d)}
[ "$#" -gt 0 ] || set -- --urls 800 --processes 2 --kills 20 --rotate 15s --deadline 8m
echo "rollcall-drill drill --seed $seed $* (logs and report in $keep)"
exec ./bin/rollcall-drill drill --seed "$seed" --json --keep "$keep" --html "$keep/drill.html" "$@"
