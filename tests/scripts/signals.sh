#!/usr/bin/env bash
# signals.sh PROGRAM COUNT [SEED]: stops a suite of four runs at COUNT random moments each by SIGINT to its process group,
# SIGTERM to the suite, and SIGTERM to the suite and all its runs. Each time it must exit with 75, no run may have lost more
# than one update, and the same command must go on to the bytes of a suite nobody touched.
set -uo pipefail
program=$1
count=$2
RANDOM=${3:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Nothing is saved but at signals and at the end.
cat - "$(dirname "$0")/small.toml" > "$work/suite.toml" <<'T'
[suite]
name = "signals"
[grid]
model.name = ["gla", "mamba2"]
train.lr = [0.001, 0.002]
train.updates = [60]
eval.every = [0]
run.checkpoint_every = [0]
T
suite() { exec setsid "$program" suite "$work/suite.toml" --out "$1" --jobs 2 --threads 2; }
compared() {  # digests of what must not depend on interruptions
  (cd "$1" && for run in */; do
    sha256sum "$run"metrics.jsonl "$run"final.safetensors
    python3 - "$run"result.json <<'P'
import json, sys
result = json.load(open(sys.argv[1]))
for varying in ("made", "sha256"): result.pop(varying, None)
print(json.dumps(result))
P
  done)
}
watches() {  # stop signals are blocked by the launcher or handled by the engine, no longer the shell's before them
  grep -q 'Sig\(Cgt\|Blk\):.*[4567cdef]...$' "/proc/$1/status" 2> /dev/null
}
fail() { echo "FAILED: $1"; cat "$work/err"; failed=1; }

began=$(date +%s%3N)
(suite "$work/clean") > /dev/null 2> "$work/err" || { fail "the clean suite"; exit 1; }
span=$(($(date +%s%3N) - began))  # milliseconds
clean=$(compared "$work/clean")
[[ $(wc -l <<< "$clean") -eq 12 ]] || { fail "expected four whole runs"; exit 1; }
failed=0 stops=0 saved=0
for ((i = 0; i < count; i++)); do
  for kind in group parent everyone; do
    out="$work/stopped"
    rm -rf "$out"
    (suite "$out") > /dev/null 2> "$work/err" &
    pid=$!
    until watches "$pid" || ! kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
    moment=$(((RANDOM * 32768 + RANDOM) % span))
    sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
    case $kind in
      group) kill -INT -- "-$pid" ;;
      parent) kill -TERM "$pid" ;;
      everyone) kill -TERM "$pid" $(pgrep -P "$pid") ;;
    esac 2> /dev/null
    wait "$pid"
    code=$?
    whole=$(ls "$out"/*/result.json 2> /dev/null | wc -l)
    [[ $code -eq 75 || ($code -eq 0 && $whole -eq 4) ]] || fail "$kind after $moment ms: exit code $code"
    [[ $code -eq 75 ]] && stops=$((stops + 1))
    # The last line has the updates that stopped runs had made: none of them is lost.
    mapfile -t said < <(sed -nE 's/.* stopped \(update ([^)]*)\).*/\1/p' "$work/err" | sed -E 's/ of [0-9]+//g; s/, /\n/g' | sort -n)
    mapfile -t kept < <(for run in "$out"/*/; do
      [[ -e $run/result.json ]] || ls "$run" | sed -nE 's/checkpoint-0*([0-9]+)\.safetensors/\1/p' | sort -n | tail -1
    done | sort -n)
    offset=$((${#kept[@]} - ${#said[@]}))
    [[ $offset -ge 0 ]] || fail "$kind: ${#said[@]} runs said they made updates, ${#kept[@]} saved some"
    for ((k = 0; k < ${#said[@]} && offset >= 0; k++)); do
      [[ ${kept[k + offset]} -ge $((said[k] - 1)) ]] || fail "$kind: said updates ${said[*]} and saved ${kept[*]}"
      saved=$((saved + 1))
    done
    (suite "$out") > /dev/null 2> "$work/err"
    code=$?
    [[ $code -eq 0 ]] || fail "$kind: going on ended with exit code $code"
    diff <(echo "$clean") <(compared "$out") > /dev/null || fail "$kind after $moment ms: other bytes"
    echo "$((i + 1)) $kind: after $moment of $span ms, $whole runs were done"
  done
done
[[ $count -lt 5 || ($stops -gt 0 && $saved -gt 0) ]] || fail "no trial stopped a run in the middle"
echo "$((3 * count)) trials, $stops stopped, $saved runs in the middle of their updates"
exit $failed
