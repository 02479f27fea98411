#!/usr/bin/env bash
# Pictures of every page: each state of the storybook wide and narrow, light and dark, and the running demo as its users
# see it. They go to the folder named, screenshots/ by default, and replace what is there.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/setup.sh chromium postgres

folder=$(realpath -m "${1:-screenshots}")
rm -rf "$folder"
mkdir -p "$folder"
export ROLLCALL_SCREENSHOTS=$folder ROLLCALL_BROWSER=required
go test -count=1 -timeout 30m -run 'InABrowser|InBrowsers|AxeFindsNothing' ./views ./cmd/rollcall
echo "$(find "$folder" -name '*.png' | wc -l) pictures in $folder"
