#!/usr/bin/env bash
# Writes everything that is made from something else, except migrations/schema.sql, which needs a database (schema.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

go tool templ generate >&2

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
go build -o "$temp/rollcall" ./cmd/rollcall
"$temp/rollcall" settings --format env >"$temp/env"
cp "$temp/env" .env.example

if [ -f README.md ]; then
	"$temp/rollcall" settings --format markdown >"$temp/table"
	# What stands between the two marks is replaced by the table.
	awk -v table="$temp/table" '
		/^<!-- settings -->$/ { print; print ""; while ((getline line < table) > 0) print line; print ""; inside = 1; next }
		/^<!-- \/settings -->$/ { inside = 0 }
		!inside { print }
	' README.md >"$temp/readme"
	cp "$temp/readme" README.md
fi
