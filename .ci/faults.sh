#!/usr/bin/env bash
# The demo under each single fault of the sandbox at 0.3, and under all of them together at 0.05. It prints a line for
# each and fails when one of them does. The first argument is the number of URLs (1000); FAULTS names some faults only.
set -uo pipefail
cd "$(dirname "$0")/.."

urls=${1:-1000}
logs=$(mktemp -d)
failed=()

# run NAME FAULTS runs one demo; its log is kept when it fails.
run() {
	local name=$1 start=$SECONDS
	if ./bin/rollcall demo --once --json --listen 127.0.0.1:0 --kind mixed --urls "$urls" --faults "$2" >"$logs/$name.out" 2>"$logs/$name.log"; then
		printf '%-20s ok      %4d s  %s\n' "$name" "$((SECONDS - start))" "$(tail -n 1 "$logs/$name.out" | grep -oE '"submitted".*"outstanding":[0-9]+')"
	else
		printf '%-20s FAILED  %4d s  %s\n' "$name" "$((SECONDS - start))" "$logs/$name.log"
		failed+=("$name")
	fi
}

all=$(./bin/rollcall sandbox --list-faults) || exit 1
for fault in ${FAULTS:-$all}; do
	run "$fault" "$fault=0.3"
done
if [ -z "${FAULTS:-}" ]; then
	run all "$(echo "$all" | sed 's/$/=0.05/' | paste -sd, -)"
fi
if [ "${#failed[@]}" -gt 0 ]; then
	echo "failed: ${failed[*]}"
	exit 1
fi
rm -r "$logs"
echo "every URL was answered for under every fault"
