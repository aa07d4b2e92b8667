#!/usr/bin/env bash
# eval.sh PROGRAM: `eval` believes a run folder only after its files have been compared, measures what it was asked for, and
# keeps what it found.
set -uo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
small=$(dirname "$0")/small.toml

train() { "$program" train "$small" --out "$work/runs" "$@" 2> /dev/null | tail -n 1; }
one=$(train --set task.number=2 --set run.seed=1)
two=$(train --set task.number=2 --set run.seed=2)
[[ -f $one/result.json && -f $two/result.json ]] || { echo "FAILED: no runs"; exit 1; }

# refused NAME FOLDER [ARGUMENT…]: exit code 2, nothing on standard output, a last line that names NAME.
refused() {
  local name=$1
  shift
  "$program" eval "$@" > "$work/stdout" 2> "$work/stderr"
  local code=$?
  [[ $code -eq 2 ]] || fail "$*: exit code $code, expected 2"
  [[ ! -s $work/stdout ]] || fail "$*: wrote $(head -c 200 "$work/stdout")"
  tail -n 1 "$work/stderr" | grep -q -- "$name" || fail "$*: no $name in $(cat "$work/stderr")"
  ! grep -q internal "$work/stderr" || fail "$*: $(cat "$work/stderr")"
}
copy() { rm -rf "$work/copy" && cp -r "$one" "$work/copy"; }

copy && sed -i 's/^length = .*/length = 21/' "$work/copy/config.toml" && refused config.toml "$work/copy"
copy && rm "$work/copy/final.safetensors" && refused final.safetensors "$work/copy"
copy && printf x >> "$work/copy/metrics.jsonl" && refused metrics.jsonl "$work/copy"
refused config.json "$work/none"

copy && rm "$work/copy/final.safetensors" && refused "eval --checkpoint" "$work/copy"
copy && rm "$work/copy"/*.safetensors && refused "remove result.json" "$work/copy"

# A checkpoint only where it is asked for, and the output says so.
copy && rm "$work/copy/final.safetensors"
"$program" eval "$work/copy" --checkpoint > "$work/out" || fail "--checkpoint"
grep -q "^weights: checkpoint after" "$work/out" || fail "--checkpoint is not named"
newest=$(ls "$work/copy"/*.safetensors | tail -n 1)
"$program" eval "$work/copy" --checkpoint --json "$work/out.json" > /dev/null || fail "--checkpoint --json"
grep -q "\"weights_sha256\": \"$(sha256sum < "$newest" | cut -c1-64)\"" "$work/out.json" || fail "--checkpoint: another digest"

# The test set of the run is what its result calls so.
accuracy() { grep -o '"accuracy": *[0-9.e-]*' "$1" | head -n 1 | tr -d ' '; }
tested() { grep '"test":' "$1/result.json" | grep -o '"accuracy":[0-9.e-]*' | head -n 1; }
for run in "$one" "$two"; do
  "$program" eval "$run" --json "$work/out.json" > /dev/null || fail "eval $run"
  [[ $(accuracy "$work/out.json") == $(tested "$run") ]] ||
    fail "$run: eval gives $(accuracy "$work/out.json"), its result $(tested "$run")"
done
ceiling() { tr -d ' \n' < "$1" | grep -o '"ceiling":{[^}]*}' | head -n 1; }
"$program" eval "$one" --json "$work/out.json" > "$work/out" || fail "eval $one"
[[ -n $(ceiling "$work/out.json") && $(ceiling "$work/out.json") == $(ceiling "$one/result.json") ]] ||
  fail "eval gives $(ceiling "$work/out.json"), the result $(ceiling "$one/result.json")"
grep -Eq "accuracy 0\.[0-9]{4} \(s\.e\. [0-9.]+\) over [0-9]+ samples.*ceiling [01]\.[0-9]{4} \(s\.e\. [0-9.]+\) over [0-9]+ samples" "$work/out" ||
  fail "no counts in $(head -n 1 "$work/out")"
! grep -Eq '^ *[0-9]+\.0 |\.[0-9]{6}' "$work/out" || fail "long or fractional numbers: $(cat "$work/out")"
! grep -q '_seconds\|tokens_per_second' "$work/out.json" || fail "times that eval does not measure"
# The published test set: the first training samples.
published() { grep '"published_test":' "$1/result.json" | grep -o '"accuracy":[0-9.e-]*' | head -n 1; }
"$program" eval "$one" --split reference --json "$work/out.json" > /dev/null || fail "eval --split reference"
[[ $(accuracy "$work/out.json") == $(published "$one") ]] ||
  fail "eval of the published test set gives $(accuracy "$work/out.json"), the result $(published "$one")"

# Each split has its own ceiling, that of `ceiling` on the same samples.
for split in train valid test; do
  "$program" eval "$one" --split "$split" --json "$work/out.json" > /dev/null || fail "eval --split $split"
  best=$("$program" ceiling --vocab 6 --ambiguities 2 --depth 3 --seed 1 --task 2 --length 20 --split "$split" --samples 8 --json - |
    sed -n 's/^ *"ceiling": \([0-9.e-]*\),$/\1/p')
  [[ -n $best && $(ceiling "$work/out.json") == '"ceiling":{"accuracy":'"$best",* ]] ||
    fail "--split $split: eval has $(ceiling "$work/out.json"), expected $best"
done

# Gaps on every split, and the gates with them.
frames() { grep -o '"frames": *[0-9]*' "$1" | head -n 1 | grep -o '[0-9]*'; }
for split in train valid test; do
  "$program" eval "$one" --split "$split" --gap 3 --samples 4 --json "$work/out.json" > /dev/null || fail "--split $split --gap"
  elements=$(grep -o '"elements": *[0-9]*' "$work/out.json" | grep -o '[0-9]*')
  [[ $(frames "$work/out.json") -eq $((4 * elements)) ]] || fail "--split $split --gap 3: $(frames "$work/out.json") frames"
done
gap_values() { grep -o '"gap": {[^}]*}' "$1" | grep -o '"total": *[0-9]*' | head -n 1 | grep -o '[0-9]*'; }
"$program" eval "$one" --gates --gap 2 --samples 4 --json "$work/two.json" > /dev/null || fail "--gates --gap 2"
"$program" eval "$one" --gates --gap 6 --samples 4 --json "$work/six.json" > "$work/out" || fail "--gates --gap 6"
[[ $(gap_values "$work/six.json") -eq $((3 * $(gap_values "$work/two.json"))) ]] || fail "--gates ignores --gap"
grep -q "^task 2, test, gap 6: accuracy" "$work/out" || fail "a point is not labelled by its own task: $(head -n 1 "$work/out")"

# Weights trained elsewhere.
"$program" eval "$one" --weights "$two/final.safetensors" --json "$work/out.json" > "$work/out" || fail "--weights"
grep -q "not the run's own" "$work/out" || fail "--weights is not named"
grep -q '"weights": "file"' "$work/out.json" || fail "--weights is not marked"
digest=$(sha256sum < "$two/final.safetensors" | cut -c1-64)
grep -q "\"weights_sha256\": \"$digest\"" "$work/out.json" || fail "--weights: another digest than $digest"
# The run's own by another path are the run's own.
cp "$one/final.safetensors" "$work/copy.safetensors"
"$program" eval "$one" --samples 4 --json "$work/own.json" > "$work/own" || fail "eval of the final weights"
"$program" eval "$one" --samples 4 --weights "$work/copy.safetensors" --json "$work/same.json" > "$work/same" || fail "--weights of the run's own"
grep -qx "weights: $work/copy.safetensors, the run's own final.safetensors" "$work/same" || fail "the run's own weights are not said to be"
cmp "$work/own" <(grep -v "^weights: " "$work/same") || fail "the run's own weights give other numbers"
grep -q '"weights": "final"' "$work/same.json" || fail "the run's own weights are not marked"
{ head -c -16 "$two/final.safetensors" && printf 'x%.0s' {1..16}; } > "$work/changed.safetensors"
refused "SHA-256 mismatch" "$one" --weights "$work/changed.safetensors"
# Without a digest, as files of others are.
{ head -c -4096 "$two/final.safetensors" && printf '\377%.0s' {1..4096}; } | LC_ALL=C sed 's/"sha256":/"digest":/' > "$work/nan.safetensors"
refused "network output is not finite" "$one" --weights "$work/nan.safetensors"
wide=$(train --set task.number=2 --set model.width=32)
refused "do not fit" "$one" --weights "$wide/final.safetensors"
[[ $(grep -c "wrong shape" "$work/stderr") -gt 1 ]] || fail "no line for each tensor: $(cat "$work/stderr")"
gru=$(train --set task.number=2 --set model.name=gru)
refused "do not fit" "$one" --weights "$gru/final.safetensors"
grep -q "^missing: " "$work/stderr" && grep -q "^not of this model: " "$work/stderr" || fail "missing or extra tensors unnamed"
refused "$small" "$one" --weights "$small"

# Kept results: the same request again leaves the file alone; other numbers never replace it.
"$program" eval "$one" --gap 2 --gates --save > "$work/out" || fail "--save"
kept=$(sed -n 's/^saved: //p' "$work/out")
[[ -f $kept ]] || fail "--save kept nothing: $(cat "$work/out")"
! grep -q "_seconds\|tokens_per_second" "$kept" || fail "times that eval does not measure in $kept"
before=$(sha256sum "$kept")
"$program" eval "$one" --gap 2 --gates --save --threads 1 > /dev/null || fail "--save again"
[[ $(sha256sum "$kept") == "$before" ]] || fail "--save replaced the same numbers"
# One that is damaged is named before anything is measured, by check too, and replaced.
printf x >> "$kept"
"$program" check "$one" > "$work/out" && fail "check of a damaged evaluation: exit code 0"
grep -q "$(basename "$kept")" "$work/out" || fail "check does not name the damaged file: $(cat "$work/out")"
"$program" eval "$one" --gap 2 --gates --save > /dev/null 2> "$work/stderr" || fail "--save over a damaged file"
grep -q "^warning: .*$(basename "$kept").*; replaced by the new measurement$" "$work/stderr" ||
  fail "the damaged file is not named: $(cat "$work/stderr")"
"$program" check "$one" > "$work/out" || fail "the damaged file was not replaced: $(cat "$work/out")"
mv "$kept" "$work/elsewhere" && ln -s "$work/elsewhere" "$kept"
refused "$(basename "$kept")" "$one" --gap 2 --gates --save
rm "$kept" && mv "$work/elsewhere" "$kept"
# Without a grid its samples have no effect, on the id or on what is measured later.
for samples in 3 4; do
  plain=$(train --set task.number=2 --set eval.gaps=[] --set eval.grid_samples=$samples)
done
[[ $(ls "$work/runs" | wc -l) -eq 5 ]] || fail "grid_samples without gaps: $(ls "$work/runs")"
"$program" eval "$plain" --gap 1 | grep -q "over 1000 samples" || fail "eval --gap of a run without a grid"
# One sample has no spread.
"$program" eval "$one" --samples 1 > "$work/out" || fail "--samples 1"
! grep -q "s\.e\." "$work/out" || fail "a spread of one sample: $(head -n 1 "$work/out")"
[[ $failed -eq 0 ]] && echo "eval checks, measures and keeps"
exit $failed
