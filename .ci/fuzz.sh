#!/usr/bin/env bash
# Runs each fuzz test for the time that the argument names.
set -euo pipefail
cd "$(dirname "$0")/.."

for package in $(go list ./...); do
	dir=$(go list -f '{{.Dir}}' "$package")
	for name in $(grep -hoE '^func Fuzz\w*' "$dir"/*_test.go 2>/dev/null | sed 's/^func //'); do
		echo "== $package $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "${1:-10s}" "$package"
	done
done
