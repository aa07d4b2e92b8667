#!/usr/bin/env bash
# kinds.sh PROGRAM: train, resume, eval, table, report and config with tasks of other kinds than gaps, each beside the others.
set -uo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
has() { grep -qF -- "$2" "$1" || fail "no '$2' in $(head -c 2000 "$1")"; }

short=(--set model.width=16 --set train.updates=40 --set train.warmup=5 --set train.batch=8 --set eval.every=20
  --set eval.valid_samples=20 --set eval.test_samples=20 --set eval.grid_samples=10 --set eval.ceiling_samples=20 --set eval.batch=10)
for i in {1..500}; do echo "Line $i of a text: $((i * 7919 % 1000)) apples and $((i * 31 % 17)) pears."; done > "$work/corpus.txt"
declare -A kinds=([parity]=word_problem) models=([parity]=delta_net) points=([copying]=15 [dyck]=6 [parity]=60 [flip_flop]=98 [recall]=48 [counters]=6 [pcfg]=150 [signals]=20 [text]=3 [tracking]=75)
declare -A files=([text]=$work/corpus.txt)
for config in copying dyck parity flip_flop recall counters pcfg signals text tracking; do
  kind=${kinds[$config]:-$config} model=${models[$config]:-gru}
  own=(); [[ -z ${files[$config]:-} ]] || own=(--set "task.file=${files[$config]}")
  rates=(1e-2)
  [[ $config != copying ]] || rates=(1e-3 1e-2) # two runs of one cell
  for rate in "${rates[@]}"; do
    "$program" train $config --out "$work/runs" --set model.name=$model "${own[@]}" "${short[@]}" --set train.lr=$rate > "$work/out" 2> "$work/err" || fail "train $config: $(cat "$work/err")"
    has "$work/out" "$model, task $kind: test"
  done
  last=$(tail -n 1 "$work/out")
  "$program" check "$last" > /dev/null || fail "check $last"
  # Stopped by a signal, the same command ends in the same bytes.
  for wait in 0.6 0.9; do
    timeout -s INT $wait "$program" train $config --out "$work/again" --set model.name=$model "${own[@]}" "${short[@]}" --set train.lr=1e-2 > /dev/null 2>&1
  done
  again=$("$program" train $config --out "$work/again" --set model.name=$model "${own[@]}" "${short[@]}" --set train.lr=1e-2 2> /dev/null | tail -n 1)
  for file in metrics.jsonl final.safetensors; do cmp -s "$last/$file" "$again/$file" || fail "$config: $file differs after resuming"; done
  "$program" eval "$last" --at ${points[$config]} --samples 10 --save > "$work/eval" 2>&1 || fail "eval $config: $(cat "$work/eval")"
done
has "$work/out" "mean squared error"
! grep -q "evaluating: n-gram" "$work/err" || fail "n-grams of tracking: $(cat "$work/err")"
# A switch of the file is dropped for a model without it, and one of the command line is an error.
"$program" train parity --out "$work/gru" --set model.name=gru "${short[@]}" > /dev/null 2> "$work/err" || fail "parity with gru: $(cat "$work/err")"
has "$work/err" "note: model.negative_eigenvalues is not used: gru has no such switch, "
"$program" train parity --out "$work/never" --set model.name=gru --set model.negative_eigenvalues=on > /dev/null 2> "$work/err" && fail "negative_eigenvalues of gru accepted"
has "$work/err" "[model.negative_eigenvalues] gru has no such switch"
! grep -q accuracy "$work/out" || fail "accuracy of squared error: $(cat "$work/out")"
has "$work/eval" "missing 75"
"$program" eval "$last" --at 101 > /dev/null 2> "$work/err" && fail "eval --at 101 accepted"
has "$work/err" "expected 0..100"
"$program" eval "$last" --gap 3 > /dev/null 2> "$work/err" && fail "eval --gap of tracking accepted"
has "$work/err" "[eval --gap] has no effect with task.kind = tracking; --at tests at values of missing"
"$program" eval "$last" --split reference > /dev/null 2> "$work/err" && fail "eval --split reference of tracking accepted"
has "$work/err" "[eval --split] expected train, valid or test with task.kind = tracking, got reference"
# What the keys do not allow is rejected before training, also at points of the test axis.
"$program" train dyck --out "$work/never" --set task.share=5 > /dev/null 2> "$work/err" && fail "share of 5 of 4 types accepted"
has "$work/err" "[task.share] expected at most types (4), got 5"
"$program" train dyck --out "$work/never" --set "eval.depths=[4,40]" > /dev/null 2> "$work/err" && fail "depth 40 accepted"
has "$work/err" "[eval.depths] depth 40 with 4 types and 2 children needs more than 65536 states"
"$program" train parity --out "$work/never" --set task.machine=a6 > /dev/null 2> "$work/err" && fail "machine a6 accepted"
has "$work/err" "[task.machine]"
"$program" train flip_flop --out "$work/never" --set task.length=1 > /dev/null 2> "$work/err" && fail "flip_flop without a read accepted"
has "$work/err" "[task.length] expected at least 2, to write and to read, got 1"
"$program" train recall --out "$work/never" --set task.pairs=16 --set "eval.lengths=[64,63]" > /dev/null 2> "$work/err" && fail "63 frames accepted"
has "$work/err" "[eval.lengths] 16 pairs and 16 queries, expected at least 64 frames, got 63"
"$program" train pcfg --out "$work/never" --set task.rules=9 > /dev/null 2> "$work/err" && fail "27 rules with 24 pre-terminals accepted"
has "$work/err" "[task.rules] expected at most a third of preterminals (24), got 9"
"$program" ceiling --kind pcfg --samples 20 > "$work/out" && has "$work/out" "entropy rate"
"$program" ceiling --kind word_problem --set task.reveal=0.9 --length 1 --samples 1 > /dev/null 2> "$work/err" && fail "a ceiling without answers"
has "$work/err" "[ceiling] no ceiling: no element has an answer (samples: 1)"
# The run id of a text depends on the file's content, not on its path. What is missing or too short is one line.
mkdir "$work/moved" && cp "$work/corpus.txt" "$work/moved/other.txt"
id() { "$program" config show "$@" --json - | grep -o '"run_id": "[0-9a-f]*"'; }
printf 'extends = "text"\n[task]\nfile = "moved/other.txt"\n' > "$work/beside.toml"
[[ $(id text --set task.file="$work/corpus.txt") == "$(id "$work/beside.toml")" ]] || fail "the path changes the run id of a text"
echo "One more line." >> "$work/moved/other.txt"
[[ $(id text --set task.file="$work/corpus.txt") != "$(id "$work/beside.toml")" ]] || fail "another text has the same run id"
for bad in "" "--set task.file=$work/none.txt" "--set task.file=$work" "--set task.file=$work/beside.toml" "--set task.file=$work/corpus.txt --set task.tokens=npy"; do
  "$program" train text --out "$work/never" $bad > /dev/null 2> "$work/err"
  [[ $? -eq 2 && $(wc -l < "$work/err") -eq 1 ]] || fail "train text $bad: $(cat "$work/err")"
  has "$work/err" "[task.file]"
done
"$program" train text --out "$work/never" --set task.file="$work/corpus.txt" --set "eval.distances=[1,127]" > /dev/null 2> "$work/err" && fail "distance 127 accepted"
has "$work/err" "[eval.distances] at distance 127 a sample asks for at most 0 tokens"
for preset in selective_copying induction crossing; do "$program" config show $preset > /dev/null || fail "config show $preset"; done
[[ ! -e $work/never ]] || fail "a rejected run left a folder"
"$program" train example --out "$work/runs" --set model.name=gru "${short[@]}" > /dev/null 2>&1 || fail "train example"

"$program" table "$work/runs" > "$work/table" || fail table
for text in "task copying" "task dyck" "task word_problem" "task flip_flop" "task recall" "task counters" "task pcfg" "task signals" "task text" "task tracking" "task 1" "squared error" "length 20" "length 256" "depth 12" "ignored 98" "count 40" "length 400" "pause 50" "distance 32" "missing 90" n-gram ceiling bound; do has "$work/table" "$text"; done
for format in csv json md latex; do "$program" table "$work/runs" --format $format > "$work/table" || fail "table --format $format"; done
"$program" table "$work/runs" --per-run > /dev/null || fail "table --per-run"
"$program" report "$work/runs" --out "$work/page.html" > /dev/null || fail report
for text in "task-copying" "task-dyck" "task-word_problem" "task-flip_flop" "task-recall" "task-counters" "task-pcfg" "task-signals" "task-text" "task-tracking" "Kalman filter" "squared error"; do has "$work/page.html" "$text"; done
# A page of other kinds describes those kinds only.
"$program" train copying --out "$work/copying" --set model.name=gru "${short[@]}" > /dev/null 2>&1 || fail "train copying"
"$program" report "$work/copying" --out "$work/copying.html" --data "$work/page.json" > /dev/null || fail "report of copying"
has "$work/page.json" "the task's oracle"
! grep -qE "automaton|training gaps" "$work/page.json" || fail "the page of copying describes automata"
"$program" config keys > "$work/keys" && has "$work/keys" task.symbols
"$program" config show tracking --set task.decay=0.5 > "$work/config" || fail "config show"
has "$work/config" "decay = 0.5"
"$program" train copying --set task.noise=1 > /dev/null 2> "$work/err" && fail "a key of another kind is accepted"
has "$work/err" "[task.noise] has no effect with task.kind = copying"
exit $failed
