#!/usr/bin/env bash
# configs.sh PROGRAM SOURCE: every shipped config resolves against the real models; bad ones get one line, exit code 2 and
# leave no folder behind.
set -uo pipefail
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

"$program" config show "$source/configs/example.toml" > /dev/null || fail "configs/example.toml does not resolve"
for file in "$source"/configs/quick.toml "$source"/configs/{paper,ablations,cpu}/*.toml; do
  if grep -q '^\[grid\]' "$file"; then
    runs=$("$program" suite "$file" --list --out "$work/none" | wc -l)
    [[ $runs -gt 0 ]] || fail "$file has no runs"
  else
    "$program" config show "$file" > /dev/null || fail "$file does not resolve"
  fi
done

# A pipe is read once: what it holds is the config, whatever the command asks of it first.
run_id() { grep -o '"run_id": "[0-9a-f]*"'; }
from_file=$("$program" config show "$source/tests/scripts/small.toml" --json - | run_id)
from_pipe=$("$program" config show <(cat "$source/tests/scripts/small.toml") --json - | run_id)
[[ -n $from_file && $from_file == "$from_pipe" ]] || fail "from a file $from_file, from a pipe $from_pipe"
"$program" train <(cat "$source/tests/scripts/small.toml") --out "$work/piped" --set train.updates=2 --set eval.every=0 \
  --set train.warmup=1 > /dev/null 2>&1 || fail "train takes no config from a pipe"
"$program" train "$source/tests/scripts/small.toml" --out "$work/piped" --set train.updates=2 --set eval.every=0 \
  --set train.warmup=1 > /dev/null 2>&1
[[ $(find "$work/piped" -mindepth 1 -maxdepth 1 -type d | wc -l) -eq 1 ]] || fail "train takes another config from a pipe"

number=0
while IFS= read -r bad; do
  number=$((number + 1))
  "$program" train "$source/configs/example.toml" --out "$work/out" --set "$bad" > "$work/stdout" 2> "$work/stderr"
  code=$?
  [[ $code -eq 2 ]] || fail "$bad: exit code $code, expected 2"
  [[ $(wc -l < "$work/stderr") -eq 1 ]] || fail "$bad: expected one line, got $(cat "$work/stderr")"
  [[ -e $work/out ]] && fail "$bad: left a folder behind"
done <<'B'
model.name=gated_delta_nett
model.width=0
model.width=63
task.length=1
model.heads=5
model.d_state=0
model.d_state=64
model.nonsense=1
train.lr=-1
train.lr=nan
train.batch=0
train.accumulate=3
train.updates=0
train.precision=fp16
train.device=tpu
task.number=9
task.length=0
task.gap_law=sometimes
grammar.depth=0
grammar.ambiguities=13
grammar.vocab=1
grammar.density=0
grammar.automaton=no-such-file.json
eval.batch=0
eval.gaps=[-1]
quirks.nonsense=true
nonsense.key=1
nonsense
run.seed=-1
B
echo "$number bad configs refused"
exit $failed
