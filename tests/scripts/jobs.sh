#!/usr/bin/env bash
# jobs.sh PROGRAM: a suite ends in the same bytes with one and with two processes at a time, and on one and two threads.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat - "$(dirname "$0")/small.toml" > "$work/suite.toml" <<'T'
[suite]
name = "jobs"
[grid]
model.name = ["gated_delta_net", "mamba", "transformer"]
run.seed = [1, 2]
train.updates = [20]
T
run() { "$program" suite "$work/suite.toml" --out "$work/$1" --jobs "$2" --threads "$3" > /dev/null 2>&1; }
# What made a result (times, host) is no part of its numbers.
digests() { (cd "$work/$1" && sha256sum */metrics.jsonl */final.safetensors && grep numbers_sha256 */result.json); }

run one 1 1
run two 2 2
run threads 1 2
[[ $(digests one | wc -l) -eq 18 ]] || { echo "FAILED: expected six whole runs"; exit 1; }
for other in two threads; do
  diff <(digests one) <(digests "$other") || { echo "FAILED: $other differs"; exit 1; }
  diff "$work/one/table.json" "$work/$other/table.json" || { echo "FAILED: the table of $other differs"; exit 1; }
done
echo "same bytes for --jobs 1 and 2, --threads 1 and 2"
