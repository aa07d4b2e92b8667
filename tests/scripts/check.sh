#!/usr/bin/env bash
# check.sh PROGRAM PLAIN: what `check` says of each kind of run folder, in text and JSON, its exit code, and that `table` and `eval` agree.
set -uo pipefail
program=$1
plain=$2 # without libtorch, for tables: it starts at once
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
small=$(dirname "$0")/small.toml

run=$("$program" train "$small" --out "$work/runs" 2> /dev/null | tail -n 1)
id=$(basename "$run")
[[ -f $run/result.json ]] || { echo "FAILED: no run"; exit 1; }
newest=$(cd "$run" && ls -- *.safetensors | grep -v final | tail -n 1)
update=$(grep -o '[0-9]*' <<< "$newest" | head -n 1 | sed 's/^0*//')

# says CODE STATE [LINE…]: of the run in $work/odd, which is then made anew from the whole one.
says() {
  local code=$1 state=$2 folder=$work/odd/$id kind=${2%% at *}
  kind=${kind%%:*}
  shift 2
  "$program" check "$work/odd" --json "$work/out.json" > "$work/out" 2> "$work/err"
  local got=$?
  [[ $got -eq $code ]] || fail "$state: exit code $got, expected $code"
  [[ ! -s $work/err ]] || fail "$state: $(cat "$work/err")"
  printf '%s\n' "$folder: $state" "$@" > "$work/expected"
  printf '1 run: 1 %s\n' "$kind" >> "$work/expected"
  diff "$work/expected" "$work/out" || fail "$state: other lines"
  grep -q "\"state\": \"${kind/intact/whole}\"" "$work/out.json" || fail "$state: not in the JSON $(cat "$work/out.json")"
  fresh
}
fresh() { rm -rf "$work/odd" && mkdir "$work/odd" && cp -r "$run" "$work/odd/"; }
# evaluates CODE, tables CODE: of the run in $work/odd.
evaluates() { "$program" eval "$work/odd/$id" --samples 4 > /dev/null 2>&1; [[ $? -eq $1 ]] || fail "eval: expected $1"; }
tables() { "$plain" table "$work/odd" > "$work/table" 2> "$work/err"; [[ $? -eq $1 ]] || fail "table: expected $1"; }
# reseal FILE: the digest a file carries of itself, after a change.
reseal() {
  sed -i -E 's/"sha256":"[0-9a-f]{64}"/"sha256":"'"$(printf '0%.0s' {1..64})"'"/' "$1"
  local digits
  digits=$(sha256sum < "$1" | cut -c1-64)
  sed -i -E 's/"sha256":"0{64}"/"sha256":"'"$digits"'"/' "$1"
}
fresh
odd=$work/odd/$id

evaluates 0 && tables 0
says 0 intact

# A run given twice, in other words too, is one run.
ln -s "$work/odd" "$work/link"
for twice in "$work/odd/" "$odd" "$work/link" "$work/odd/../odd/$id/."; do
  "$program" check "$work/odd" "$twice" > "$work/out" || fail "check $twice: exit code $?"
  tail -n 1 "$work/out" | grep -qx "1 run: 1 intact" || fail "check $twice: $(tail -n 1 "$work/out")"
done

rm "$odd/final.safetensors"
evaluates 2 && tables 0
"$program" eval "$odd" --samples 4 --checkpoint > "$work/eval" || fail "eval --checkpoint"
grep -q "^weights: checkpoint after $update updates$" "$work/eval" || fail "eval --checkpoint: $(head -n 1 "$work/eval")"
says 0 "intact without weights" \
  "  final.safetensors is missing: tables include the run, eval tests the checkpoint after $update updates with --checkpoint"
rm "$odd"/*.safetensors
evaluates 2 && tables 0
"$program" eval "$odd" --samples 4 --checkpoint > /dev/null 2>&1 && fail "eval --checkpoint without one"
says 0 "intact without weights" "  final.safetensors is missing: tables include the run, eval cannot test it"

for file in config.toml metrics.jsonl final.safetensors; do
  printf x >> "$odd/$file"
  record=result.json && [[ $file == config.toml ]] && record=config.json
  says 1 damaged "  [run] $odd/$file: SHA-256 differs from that in $record"
done

rm "$odd/result.json" "$odd/final.safetensors"
evaluates 2
if [[ $update -eq 60 ]]; then left="unfinished: all 60 updates are done, but there is no readable result"; else left="unfinished at update $update of 60"; fi
says 0 "$left"

# A checkpoint of a finished run does not matter.
printf x >> "$odd/$newest"
"$program" check "$work/odd" > "$work/out" || fail "a damaged checkpoint of a finished run: exit code $?"
grep -q "not needed" "$work/out" || fail "a damaged checkpoint of a finished run: $(cat "$work/out")"
fresh

# An older result, its seal right: read by nothing, damaged by nothing, and no part of a table.
sed -i -E '0,/"schema": ?[0-9]+/s//"schema":1/' "$odd/result.json" && reseal "$odd/result.json"
evaluates 2 && tables 2
says 0 "older format" "  only the version that wrote it can read it; tables leave it out"

# A newer one.
sed -i -E '0,/"schema": ?[0-9]+/s//"schema": 9/' "$odd/result.json" && reseal "$odd/result.json"
evaluates 2 && tables 2
says 0 "newer format" "  written by a newer version of this program; tables leave it out"

# A config.json of another network than config.toml, sealed anew: eval refuses the run, so check does.
fresh
rm "$odd"/result.json "$odd"/*.safetensors
sed -i -E '/^  "canonical"/s/"width":16/"width":32/' "$odd/config.json"
forged=$(sed -nE 's/^  "canonical": (.*),$/\1/p' "$odd/config.json" | tr -d '\n' | sha256sum | cut -c1-16)
sed -i "s/\"run_id\": \"$id\"/\"run_id\": \"$forged\"/" "$odd/config.json"
reseal "$odd/config.json"
line="[run] $odd/config.toml: expected run $forged of config.json, got $id"
"$program" eval "$odd" > /dev/null 2> "$work/err"
[[ $? -eq 2 && $(cat "$work/err") == "$line" ]] || fail "eval of a forged config: $(cat "$work/err")"
says 1 damaged "  $line"

# A finished run keeps its label; a config that is missing is not put back without a word.
again() { "$program" train "$small" --out "$work/odd" "$@" 2> "$work/err" > /dev/null || fail "train again: $(cat "$work/err")"; }
again && [[ ! -s $work/err ]] || fail "train again says $(cat "$work/err")"
again --set run.label=other
grep -q "^note: the run is finished and keeps its label '', not 'other', $odd$" "$work/err" || fail "label: $(cat "$work/err")"
for pair in config.toml:config.json config.json:config.toml; do
  rm "$odd/${pair%:*}"
  again
  grep -q "${pair%:*}: was missing; restored from ${pair#*:}$" "$work/err" || fail "missing config: $(cat "$work/err")"
done

# Forged results and weights whose outer digests were all renewed: check, eval and table agree.
forged_number() { # a number changes, its digest does not
  sed -i -E '0,/"accuracy":[0-9.]+/s//"accuracy":0.5/' "$odd/result.json" && reseal "$odd/result.json"
}
fresh
forged_number
evaluates 2 && tables 2
"$program" check "$work/odd" > "$work/out" && fail "a forged accuracy: exit code 0"
fresh

# All of them at once.
mkdir "$work/all"
for kind in a b c; do cp -r "$work/odd" "$work/all/$kind"; done
rm "$work/all/b/$id/final.safetensors"
printf x >> "$work/all/c/$id/metrics.jsonl"
"$program" check "$work/all" > "$work/out"
[[ $? -eq 1 ]] || fail "one damaged of three: exit code"
tail -n 1 "$work/out" | grep -qx "3 runs: 1 intact, 1 intact without weights, 1 damaged" || fail "$(tail -n 1 "$work/out")"
exit $failed
