#!/usr/bin/env bash
# benches.sh PROGRAM: the benchmarks of kernels, layers and train steps run, agree with the plain forms and say so in JSON.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
expect() { grep -q -- "$2" "$1" || { echo "FAILED: no $2 in $1"; cat "$1"; exit 1; }; }

"$program" bench kernels --quick --only log_sigmoid --seconds 0.001 --json "$work/kernel.json" > "$work/kernel.txt" 2> /dev/null
[[ $(grep -c '"kernel": "log_sigmoid"' "$work/kernel.json") -eq 4 ]] || { echo "FAILED: expected four shapes"; exit 1; }
for key in forward_ms both_ms share_both gemm_gflops copy_gbytes '"gradients_compared": true'; do expect "$work/kernel.json" "$key"; done
expect "$work/kernel.txt" "vs plain"

"$program" bench kernels --only rope --width 128 --time 30 --seconds 0.001 --json - > "$work/one.json" 2> /dev/null
[[ $(grep -c '"kernel": "rope"' "$work/one.json") -eq 1 ]] || { echo "FAILED: expected one shape"; exit 1; }
expect "$work/one.json" '"width": 128'
status=0
"$program" bench kernels --width 100 > "$work/wrong.txt" 2>&1 || status=$?
[[ $status -eq 2 && $(wc -l < "$work/wrong.txt") -eq 1 ]] || { echo "FAILED: expected one line and exit code 2"; cat "$work/wrong.txt"; exit 1; }

"$program" bench kernels --quick --only "layer linear_attn_elu" --seconds 0.001 --json - > "$work/layer.json" 2> /dev/null
[[ $(grep -c '"kernel": "layer linear_attn_elu"' "$work/layer.json") -eq 4 ]] || { echo "FAILED: expected four shapes"; exit 1; }
expect "$work/layer.json" '"bound": "gemm"'

"$program" bench train --model mamba2 --model transformer --width 16 --layers 1 --batch 2 --elements 10 --repeats 1 \
  --json "$work/train.json" > "$work/train.txt" 2> /dev/null
for key in tokens_per_second share_of_gemm plain_ratio data_share peak_bytes_twice; do expect "$work/train.json" "$key"; done
expect "$work/train.txt" transformer
# Speed counts only where the numbers agree.
awk -F: '/loss_difference/ && $2 + 0 > 1e-5 { exit 1 }' "$work/train.json" || { echo "FAILED: losses differ"; exit 1; }

# A run's config has its own sizes.
"$program" bench train --config example --repeats 1 --no-plain --json "$work/config.json" > /dev/null 2>&1
[[ $(grep -c '"model"' "$work/config.json") -eq 1 ]] && expect "$work/config.json" '"model": "gated_delta_net"'
status=0
"$program" bench train --config dyck > "$work/wrong.txt" 2>&1 || status=$?
[[ $status -eq 2 && $(wc -l < "$work/wrong.txt") -eq 1 ]] || { echo "FAILED: expected one line and exit code 2"; cat "$work/wrong.txt"; exit 1; }

# Lengths have their own batches, and whole steps.
for other in "--time 400" "--batch 2" "--kernels"; do
  status=0
  # shellcheck disable=SC2086
  "$program" bench gpu --long $other > "$work/wrong.txt" 2>&1 || status=$?
  [[ $status -eq 2 ]] || { echo "FAILED: expected exit code 2"; cat "$work/wrong.txt"; exit 1; }
  expect "$work/wrong.txt" "\[bench gpu --long\] cannot be combined with ${other%% *}"
done

# What this build and machine have; where they have no GPU, one line and exit code 2.
"$program" doctor --json "$work/doctor.json" > "$work/doctor.txt"
for key in '"libtorch"' '"threads"' '"gpu"' '"missing"'; do expect "$work/doctor.json" "$key"; done
expect "$work/doctor.txt" "precisions"
if grep -q '"gpu": null' "$work/doctor.json"; then
  for command in "bench gpu" "bench gpu --long" "train $(dirname "$0")/small.toml --set train.device=cuda --out $work/none"; do
    status=0
    # shellcheck disable=SC2086
    "$program" $command > "$work/wrong.txt" 2>&1 || status=$?
    [[ $status -eq 2 && $(wc -l < "$work/wrong.txt") -eq 1 ]] || { echo "FAILED: expected one line and exit code 2"; cat "$work/wrong.txt"; exit 1; }
    expect "$work/wrong.txt" "expected cpu, got cuda"
  done
  [[ ! -e $work/none ]] || { echo "FAILED: a run that cannot start left a folder"; exit 1; }
fi
echo "benchmarks run"
