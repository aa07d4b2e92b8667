#!/usr/bin/env bash
# gpu.sh PROGRAM [MODEL…]: what training on a GPU must keep. For every model: the losses of a small run in fp32 are the CPU's to 1e-4,
# tf32 and amp stay near them, in fp64 to 1e-9, the same run twice has the same bytes; for a few, so has a run that was killed. Exit code 1 otherwise.
set -uo pipefail
program=$1
shift
small=$(dirname "$0")/small.toml
models=("$@")
[[ ${#models[@]} -gt 0 ]] || models=(transformer mamba mamba2 gla delta_net gated_delta_net gated_delta_product linear_attn linear_attn_elu s4 retnet gru)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# train MODEL OUT DEVICE PRECISION
train() (
  exec timeout --signal=KILL --foreground 120 "$program" train "$small" --set "model.name=$1" --set "train.device=$3" \
    --set "train.precision=$4" --set train.updates=30 --set eval.every=15 --out "$2" --threads 1
)
digest() { (cd "$1"/* && sha256sum metrics.jsonl final.safetensors && grep numbers_sha256 result.json); }

compare() { # NAME A B BOUND: largest relative difference of the losses
  python3 - "$@" <<'PY'
import glob, json, sys
name, a, b, bound = sys.argv[1:5]
def losses(root):
    rows = [json.loads(line) for line in open(glob.glob(root + "/*/metrics.jsonl")[0])]
    return [r["loss"] for r in rows if r["phase"] == "train"]
try:
    x, y = losses(a), losses(b)
except IndexError:
    print(f"{name}: FAILED, a run left no metrics")
    sys.exit(1)
worst = max(abs(p - q) / abs(p) for p, q in zip(x, y))
good = len(x) == len(y) == 30 and worst <= float(bound)
print(f"{name}: losses differ by {worst:.1e}, {len(y)} updates{'' if good else ', TOO MUCH'}")
sys.exit(0 if good else 1)
PY
}

one() {
  local model=$1 failed=0 precision bound
  train "$model" "$work/$model-cpu" cpu fp32 > "$work/$model-cpu.log" 2>&1
  for precision in fp32 tf32 amp; do
    train "$model" "$work/$model-$precision" cuda $precision > "$work/$model-$precision.log" 2>&1 ||
      { failed=1 && echo "$model, $precision: FAILED: $(grep -v '^$' "$work/$model-$precision.log" | tail -1)"; }
    bound=1e-4
    [[ $model == linear_attn ]] && bound=2e-3 # products of products: fp64 and fp32 differ as much on the CPU
    [[ $precision == tf32 ]] && bound=1e-2
    [[ $precision == amp ]] && bound=3e-2
    compare "$model, $precision" "$work/$model-cpu" "$work/$model-$precision" $bound || failed=1
  done
  train "$model" "$work/$model-cpu64" cpu fp64 > "$work/$model-cpu64.log" 2>&1
  train "$model" "$work/$model-fp64" cuda fp64 > "$work/$model-fp64.log" 2>&1
  compare "$model, fp64" "$work/$model-cpu64" "$work/$model-fp64" 1e-9 || failed=1
  "$program" eval "$work/$model-amp"/* --gates --threads 1 > "$work/$model-eval.log" 2>&1 ||
    { failed=1 && echo "$model, eval: FAILED: $(tail -1 "$work/$model-eval.log")"; }
  train "$model" "$work/$model-again" cuda amp > "$work/$model-again.log" 2>&1
  [[ $(digest "$work/$model-amp") == "$(digest "$work/$model-again")" ]] || { failed=1 && echo "$model: the same run twice, DIFFERENT bytes"; }
  return $failed
}

killed() {
  local model=$1 out="$work/$1-killed" pid wait
  for wait in 0 0.05 0.2; do
    "$program" train "$small" --set "model.name=$model" --set train.device=cuda --set train.precision=amp --set train.updates=30 \
      --set eval.every=15 --out "$out" --threads 1 > /dev/null 2>&1 &
    pid=$!
    # Once there is something new to go on from.
    local before
    before=$(ls "$out"/*/checkpoint-* 2> /dev/null)
    while kill -0 $pid 2> /dev/null && [[ $(ls "$out"/*/checkpoint-* 2> /dev/null) == "$before" ]]; do sleep 0.02; done
    sleep "$wait"
    kill -KILL $pid 2> /dev/null
    wait $pid 2> /dev/null
  done
  train "$model" "$out" cuda amp > /dev/null 2>&1
  [[ $(digest "$out") == "$(digest "$work/$model-amp")" ]] && echo "$model: killed and resumed, same bytes" && return 0
  echo "$model: killed and resumed, DIFFERENT bytes"
  return 1
}

failures=0
pids=()
settle() {
  local pid
  for pid in "${pids[@]}"; do wait "$pid" || failures=$((failures + 1)); done
  pids=()
}
for model in "${models[@]}"; do
  one "$model" &
  pids+=($!)
  [[ ${#pids[@]} -lt 6 ]] || settle
done
settle
for model in "${models[@]:0:5}"; do
  killed "$model" &
  pids+=($!)
done
settle
echo "$failures failures"
[[ $failures -eq 0 ]]
