#!/usr/bin/env bash
# gpu.sh PROGRAM [MODEL…]: what a GPU must keep. For every model: the losses of a small run are the CPU's to 1e-4 in fp32 and to 1e-9
# in fp64, and so is what it evaluates to (valid, test, gaps up to 2,500 frames: more than one stretch); tf32 and amp stay near; `eval` of
# a run finds what its result says; the same run twice has the same bytes; for a few, so has a run that was killed. In a small part of
# the memory batches are split by themselves, a number that does not fit is refused with the one that does, and what cannot be had at all
# is one line. One rank over NCCL has the bytes of a plain run. Exit code 1 otherwise.
set -uo pipefail
program=$1
shift
small=$(dirname "$0")/small.toml
models=("$@")
[[ ${#models[@]} -gt 0 ]] || models=(transformer mamba mamba2 gla delta_net gated_delta_net gated_delta_product linear_attn linear_attn_elu s4 retnet gru)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Gaps of 40 and 99 behind 25 elements make 1,025 and 2,500 frames.
same=(--set train.updates=30 --set eval.every=15 --set task.length=25 --set 'eval.gaps=[4, 40, 99]' --threads 1)
# train MODEL OUT DEVICE PRECISION
train() (
  exec timeout --signal=KILL --foreground 120 "$program" train "$small" --set "model.name=$1" --set "train.device=$3" \
    --set "train.precision=$4" "${same[@]}" --out "$2"
)
digest() { (cd "$1"/* && sha256sum metrics.jsonl final.safetensors && grep numbers_sha256 result.json); }

compare() { # NAME A B BOUND [BOUND OF EVALUATIONS]: largest relative differences of the losses
  python3 - "$@" <<'PY'
import glob, json, sys
name, a, b, bound = sys.argv[1:5]
def one(pattern):
    found = glob.glob(pattern)
    if not found:
        print(f"{name}: FAILED, {pattern.split('/')[-1]} is missing")
        sys.exit(1)
    return open(found[0])
def rows(root, phase):
    return [r for r in map(json.loads, one(root + "/*/metrics.jsonl")) if r["phase"] == phase]
def measured(root):  # name -> (loss, accuracy, elements)
    result = json.load(one(root + "/*/result.json"))
    out = {f"valid after {r['update']}": (r["loss"], r["accuracy"], result["valid"]["elements"]) for r in rows(root, "valid")}
    for m in [result["test"]] + result["grid"]:
        out[f"test, gap {m.get('gap')}"] = (m["loss"], m["accuracy"], m["elements"])
    return out
def apart(p, q):
    return abs(p - q) / abs(p)
x, y = ([r["loss"] for r in rows(root, "train")] for root in (a, b))
worst = max(map(apart, x, y))
good = len(x) == len(y) == 30 and worst <= float(bound)
print(f"{name}: losses differ by {worst:.1e}, {len(y)} updates{'' if good else ', TOO MUCH'}")
if len(sys.argv) > 5:
    p, q = measured(a), measured(b)
    if p.keys() != q.keys() or len(p) != 6:
        print(f"{name}: evaluations, expected two of valid, a test and three gaps twice, got {sorted(p)} and {sorted(q)}")
        sys.exit(1)
    worst = max(apart(p[k][0], q[k][0]) for k in p)
    # One element may tip over.
    tipped = [k for k in p if abs(p[k][1] - q[k][1]) * p[k][2] > 1.5]
    fine = worst <= float(sys.argv[5]) and not tipped
    print(f"{name}: evaluations differ by {worst:.1e}{', accuracies of ' + ', '.join(tipped) if tipped else ''}{'' if fine else ', TOO MUCH'}")
    good = good and fine
sys.exit(0 if good else 1)
PY
}

# NAME RUN [GAP…]: `eval` of a run against its own result, to the last digit
evaluated() {
  local name=$1 run=$2 options=() gap
  shift 2
  for gap in "$@"; do options+=(--gap "$gap"); done
  if ! "$program" eval "$run"/* "${options[@]}" --json "$run.eval.json" --threads 1 > "$run.eval.log" 2>&1; then
    echo "$name: FAILED: $(tail -1 "$run.eval.log")"
    return 1
  fi
  python3 - "$name" "$run" "$@" <<'PY'
import glob, json, sys
name, run, gaps = sys.argv[1], sys.argv[2], [int(g) for g in sys.argv[3:]]
result = json.load(open(glob.glob(run + "/*/result.json")[0]))
found = json.load(open(run + ".eval.json"))
expected = [m for m in result["grid"] if m["gap"] in gaps] if gaps else [result["test"]]
figures = lambda all: [[m.get("gap"), m["samples"], m["frames"], m["accuracy"], m["loss"]] for m in all]
if len(expected) != max(1, len(gaps)) or figures(found["points"]) != figures(expected):
    print(f"{name}: DIFFERENT from the run's result: {figures(found['points'])}, expected {figures(expected)}")
    sys.exit(1)
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
    local evaluations=()
    [[ $precision == fp32 ]] && evaluations=("${bound/e-/0e-}") # states of gaps never trained on
    [[ $precision == tf32 ]] && bound=1e-2
    [[ $precision == amp ]] && bound=3e-2
    compare "$model, $precision" "$work/$model-cpu" "$work/$model-$precision" "$bound" "${evaluations[@]}" || failed=1
  done
  train "$model" "$work/$model-cpu64" cpu fp64 > "$work/$model-cpu64.log" 2>&1
  train "$model" "$work/$model-fp64" cuda fp64 > "$work/$model-fp64.log" 2>&1
  # Probabilities are counted in float.
  compare "$model, fp64" "$work/$model-cpu64" "$work/$model-fp64" 1e-9 1e-7 || failed=1
  for precision in fp32 fp64 amp; do
    evaluated "$model, $precision, eval" "$work/$model-$precision" || failed=1
    evaluated "$model, $precision, eval of gaps" "$work/$model-$precision" 40 99 || failed=1
  done
  "$program" eval "$work/$model-amp"/* --gates --threads 1 > "$work/$model-eval.log" 2>&1 ||
    { failed=1 && echo "$model, eval --gates: FAILED: $(tail -1 "$work/$model-eval.log")"; }
  for precision in fp32 amp; do
    train "$model" "$work/$model-$precision-again" cuda $precision > "$work/$model-again.log" 2>&1
    [[ $(digest "$work/$model-$precision") == "$(digest "$work/$model-$precision-again")" ]] ||
      { failed=1 && echo "$model, $precision: the same run twice, DIFFERENT bytes"; }
  done
  return $failed
}

killed() {
  local model=$1 out="$work/$1-killed" pid wait before unfinished=0
  for wait in 0 0.05 0.2; do
    "$program" train "$small" --set "model.name=$model" --set train.device=cuda --set train.precision=amp "${same[@]}" --out "$out" \
      > /dev/null 2>&1 &
    pid=$!
    # Once there is something new to go on from.
    before=$(ls "$out"/*/checkpoint-* 2> /dev/null)
    while kill -0 $pid 2> /dev/null && [[ $(ls "$out"/*/checkpoint-* 2> /dev/null) == "$before" ]]; do sleep 0.02; done
    sleep "$wait"
    kill -KILL $pid 2> /dev/null
    wait $pid 2> /dev/null
    [[ -n $(ls "$out"/*/checkpoint-* 2> /dev/null) && -z $(ls "$out"/*/result.json 2> /dev/null) ]] && unfinished=$((unfinished + 1))
  done
  train "$model" "$out" cuda amp > /dev/null 2>&1
  if [[ $unfinished -eq 0 ]]; then
    echo "$model: every kill came after the end: NOTHING was resumed"
    return 1
  fi
  [[ $(digest "$out") == "$(digest "$work/$model-amp")" ]] && echo "$model: killed $unfinished time(s) and resumed, same bytes" && return 0
  echo "$model: killed $unfinished time(s) and resumed, DIFFERENT bytes"
  return 1
}

# One hundredth of an H200's memory holds no batch of 64 at width 256.
small_memory() {
  local out="$work/memory" few=PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.01 none=PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.000001
  local large=(train "$small" --set grammar.vocab=41 --set grammar.ambiguities=40 --set grammar.depth=40 --set task.number=1
    --set task.length=200 --set model.name=gated_delta_net --set model.width=256 --set model.layers=8 --set train.batch=64
    --set train.updates=3 --set train.warmup=1 --set eval.every=0 --set eval.batch=5 --set eval.valid_samples=5 --set eval.test_samples=5
    --set eval.ceiling_samples=2 --set 'eval.gaps=[]' --set train.device=cuda --set train.precision=amp)
  local log="$work/memory.log" split asked status
  env "$few" timeout -k 10 300 "$program" "${large[@]}" --out "$out" > "$log" 2>&1 || { echo "small memory: FAILED: $(tail -1 "$log")" && return 1; }
  split=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["made"]["accumulate"])' "$out"/*/result.json)
  [[ ${split:-1} -gt 1 ]] || { echo "small memory: expected batches to be split, got accumulate ${split:-none}" && return 1; }
  env "$few" "$program" "${large[@]}" --set train.accumulate=1 --out "$out-asked" > "$log" 2>&1
  status=$?
  asked=$(sed -n 's/.*\[train.accumulate\].* expected \([0-9]*\) or more.*/\1/p' "$log")
  [[ $status -eq 2 && $asked == "$split" ]] ||
    { echo "small memory: accumulate=1, expected exit code 2 and $split micro-batches, got $status: $(tail -1 "$log")" && return 1; }
  env "$none" "$program" eval "$out"/* > "$log" 2>&1
  status=$?
  [[ $status -eq 2 && $(wc -l < "$log") -eq 1 && $(head -c 6 "$log") == "[eval]" ]] ||
    { echo "no memory: eval, expected exit code 2 and one line, got $status: $(tail -1 "$log")" && return 1; }
  echo "small memory: $split micro-batches"
}

# WORLD RANK PRECISION OUT: a rank of a run on GPUs
rank() (
  export WORLD_SIZE=$1 RANK=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port SELECTIVBENCH_RANK_TIMEOUT=60
  train mamba2 "$4" cuda "$3"
)

# A group of one rank makes its sums over NCCL too: same bytes as without, killed in between as well. Ranks without a GPU of their own
# are refused.
nccl() {
  local backend precision out log pid status_0 status_1 port
  backend=$("$program" doctor --json - | python3 -c 'import json, sys; print(json.load(sys.stdin)["ranks_on_gpus"])')
  [[ $backend == nccl ]] || { echo "nccl: skipped, this build has none" && return 0; }
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  for precision in fp32 amp; do
    out="$work/nccl-$precision" log="$work/nccl-$precision.log"
    train mamba2 "$out-plain" cuda $precision > "$log" 2>&1 || { echo "nccl, plain run: FAILED: $(tail -1 "$log")" && return 1; }
    NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$out.debug" rank 1 0 $precision "$out" > "$log" 2>&1 ||
      { echo "nccl, $precision: FAILED: $(grep -v '^$' "$log" | tail -1)" && return 1; }
    grep -q "nranks 1" "$out.debug" || { echo "nccl, $precision: NO communicator of one rank was made" && return 1; }
    [[ $(digest "$out") == "$(digest "$out-plain")" ]] || { echo "nccl, $precision: one rank, DIFFERENT bytes" && return 1; }
  done
  out="$work/nccl-killed" log="$work/nccl-killed.log"
  env WORLD_SIZE=1 RANK=0 MASTER_ADDR=127.0.0.1 "MASTER_PORT=$port" "$program" train "$small" --set model.name=mamba2 \
    --set train.device=cuda --set train.precision=amp "${same[@]}" --out "$out" > "$log" 2>&1 &
  pid=$!
  while kill -0 $pid 2> /dev/null && [[ -z $(ls "$out"/*/checkpoint-* 2> /dev/null) ]]; do sleep 0.02; done
  kill -KILL $pid 2> /dev/null
  wait $pid 2> /dev/null
  [[ -n $(ls "$out"/*/checkpoint-* 2> /dev/null) ]] || { echo "nccl: it ended before its first checkpoint: $(tail -1 "$log")" && return 1; }
  [[ -z $(ls "$out"/*/result.json 2> /dev/null) ]] || { echo "nccl: the kill came after the end: NOTHING was resumed" && return 1; }
  rank 1 0 amp "$out" > "$log" 2>&1 || { echo "nccl, resumed: FAILED: $(grep -v '^$' "$log" | tail -1)" && return 1; }
  [[ $(digest "$out") == "$(digest "$work/nccl-amp-plain")" ]] || { echo "nccl, resumed: DIFFERENT bytes" && return 1; }
  rank 2 0 fp32 "$work/nccl-two" > "$log" 2>&1 &
  pid=$!
  rank 2 1 fp32 "$work/nccl-two" > "$log.1" 2>&1
  status_1=$?
  wait $pid
  status_0=$?
  [[ $status_0 -eq 2 && $status_1 -eq 2 ]] && grep -q '\[LOCAL_RANK\] expected one GPU per rank' "$log" ||
    { echo "nccl, two ranks on a GPU: expected exit code 2 and why, got $status_0 and $status_1: $(tail -1 "$log")" && return 1; }
  LOCAL_RANK=2 CUDA_VISIBLE_DEVICES=0,1 rank 3 2 fp32 "$work/nccl-none" > "$log.1" 2>&1
  status_1=$?
  [[ $status_1 -eq 2 ]] && grep -q '^\[LOCAL_RANK\] expected the number of a GPU' "$log.1" ||
    { echo "nccl, a rank without a GPU: expected exit code 2 and why, got $status_1: $(tail -1 "$log.1")" && return 1; }
  echo "nccl: one rank, same bytes"
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
small_memory || failures=$((failures + 1))
nccl || failures=$((failures + 1))
echo "$failures failures"
[[ $failures -eq 0 ]]
