#!/usr/bin/env bash
# browser.sh PROGRAM [RUNS] [--bench]: the report page of a few small runs, or of RUNS (a folder), in Chromium with
# the network off: what is seen equals the run
# files, digit for digit. Exit code 77 (skipped) where Chromium, node or the node modules are missing.
set -uo pipefail
program=$1
shift
here=$(cd "$(dirname "$0")/.." && pwd)
skip() { echo "skipped: $*"; exit 77; }
[[ -x /usr/bin/chromium ]] || skip "no /usr/bin/chromium (apt-get install chromium)"
command -v node > /dev/null || skip "no node (apt-get install nodejs)"
[[ -d $here/browser/node_modules/playwright-core ]] || skip "no node modules (npm ci --prefix tests/browser)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

runs=$work/runs
if [[ $# -gt 0 && $1 != --* ]]; then
  runs=$(realpath "$1")
  shift
elif ! "$program" --help | grep -q "^ *train "; then  # built without libtorch
  mkdir "$runs" && tar xzf "$here/../results/quick.tar.gz" -C "$runs"
else
  for model in gla transformer; do
    for seed in 1 2; do
      "$program" train "$here/scripts/small.toml" --set model.name=$model --set run.seed=$seed --out "$runs" \
        > /dev/null 2> "$work/said" ||
        { echo "FAILED: train: $(tail -n 1 "$work/said")"; exit 1; }
    done
  done
fi
"$program" report "$runs" --out "$work/report.html" --figures "$work/figures" > "$work/said" 2>&1 ||
  { echo "FAILED: report: $(cat "$work/said")"; exit 1; }
node "$here/browser/page_test.mjs" "$work/report.html" --runs "$runs" --figures "$work/figures" "$@"
