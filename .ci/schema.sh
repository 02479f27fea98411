#!/usr/bin/env bash
# Writes the schema that the migrations make into the file that the argument names.
set -euo pipefail
cd "$(dirname "$0")/.."

temp=$(mktemp)
trap 'rm -f "$temp"' EXIT
go run ./cmd/rollcall migrate schema >"$temp"
[ -s "$temp" ] || { echo "schema: rollcall migrate schema printed nothing" >&2; exit 1; }
cat "$temp" >"$1"
