#!/bin/sh
# Third-party browser files: fetched from the npm packages pinned in package.json and package-lock.json.
#   vendor.sh update   fetch, copy into vendor/ and testdata/, record SHA-256 sums (needs npm and the network)
#   vendor.sh check    compare the files with the recorded sums (needs neither)
set -eu
cd "$(dirname "$0")"

sums() {
	if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}

vendored() {
	find vendor testdata -type f | LC_ALL=C sort
}

check() {
	for file in $(vendored); do
		grep -q "  $file\$" vendor.sha256 || { echo "static/$file is not in vendor.sha256" >&2; exit 1; }
	done
	sums -c vendor.sha256 >/dev/null || { echo "static/vendor differs from vendor.sha256: run static/vendor.sh update" >&2; exit 1; }
	echo "static/vendor: all sums match"
}

# Source maps are not shipped, so their trailing references would only cause 404s.
copy() {
	sed -e '/^\/\/# sourceMappingURL=/d' -e 's|/\*# sourceMappingURL=.*\*/||' "$1" >"$2"
}

update() {
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	cp package.json package-lock.json "$tmp/"
	(cd "$tmp" && npm ci --ignore-scripts --no-audit --no-fund >&2)
	modules=$tmp/node_modules
	rm -rf vendor
	rm -rf testdata/hyparquet
	mkdir -p vendor testdata/hyparquet
	copy "$modules/htmx.org/dist/htmx.min.js" vendor/htmx.min.js
	copy "$modules/htmx.org/dist/ext/hx-sse.min.js" vendor/hx-sse.min.js
	copy "$modules/@tabler/core/dist/css/tabler.min.css" vendor/tabler.min.css
	copy "$modules/uplot/dist/uPlot.iife.min.js" vendor/uplot.min.js
	copy "$modules/uplot/dist/uPlot.min.css" vendor/uplot.min.css
	copy "$modules/axe-core/axe.min.js" testdata/axe.min.js
	for file in "$modules"/hyparquet/src/*.js; do
		copy "$file" "testdata/hyparquet/${file##*/}"
	done
	node sprite.mjs "$modules/@tabler/icons/icons/outline" icons.txt >vendor/icons.svg
	licences "$modules" >vendor/LICENSES.md
	sums $(vendored) >vendor.sha256
	check
}

licences() {
	echo "# Licences of the vendored browser files"
	for name in htmx.org @tabler/core @tabler/icons uplot axe-core hyparquet; do
		node -e 'const p=require(process.argv[1]); console.log(`\n## ${p.name} ${p.version}: ${p.license}\n`)' "$1/$name/package.json"
		if [ "$name" = axe-core ]; then
			echo "Test-only (static/testdata), not served. Its text: https://www.mozilla.org/MPL/2.0/"
		elif [ -f "$1/$name/LICENSE" ]; then
			[ "$name" != hyparquet ] || printf 'Test-only (static/testdata), not served.\n\n'
			sed 's/^/    /' "$1/$name/LICENSE"
		else
			echo "Copyright 2018-2026 The Tabler Authors, codecalm.net Paweł Kuna. MIT licence, as the text under @tabler/icons."
		fi
	done
}

case "${1:-}" in
check) check ;;
update) update ;;
*) echo "usage: $0 update|check" >&2; exit 2 ;;
esac
