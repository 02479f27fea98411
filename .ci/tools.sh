#!/usr/bin/env bash
# Installs the named tools into .tools/bin, each only when it is missing or of another version than the one pinned here.
set -euo pipefail
cd "$(dirname "$0")/.."

# pinned prints a tool's package, module and version.
pinned() {
	case "$1" in
	golangci-lint) echo github.com/golangci/golangci-lint/v2/cmd/golangci-lint github.com/golangci/golangci-lint/v2 v2.15.0 ;;
	gofumpt) echo mvdan.cc/gofumpt mvdan.cc/gofumpt v0.12.0 ;;
	govulncheck) echo golang.org/x/vuln/cmd/govulncheck golang.org/x/vuln v1.9.0 ;;
	*) echo "unknown tool $1" >&2 && return 1 ;;
	esac
}

# installed tells whether the tool there is the pinned one, built by the Go in use (linters must not be older than it).
installed() {
	local info
	info=$(go version -m ".tools/bin/$1" 2>/dev/null) || return 1
	[[ $info == *": $(go env GOVERSION)"* ]] && grep -qE "^\s+mod\s+$2\s+$3\s" <<<"$info"
}

for name in "$@"; do
	read -r package module version <<<"$(pinned "$name")"
	[ -n "$version" ]
	if ! installed "$name" "$module" "$version"; then
		echo "tools: installing $name $version" >&2
		GOBIN="$PWD/.tools/bin" GOFLAGS= go install "$package@$version"
	fi
done
