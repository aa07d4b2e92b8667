#!/usr/bin/env bash
# kill9.sh PROGRAM COUNT [SEED [OPTIONS OF train…]]: kills training runs with SIGKILL at random moments, runs the same command again until it
# ends, and compares metrics, weights and result with those of a run nobody touched. Exit code 1 on any difference.
set -euo pipefail
program=$1
small=$(dirname "$0")/small.toml
count=$2
RANDOM=${3:-1}
options=("${@:4}")
models=(delta_net gla mamba mamba2 gated_delta_net gated_delta_product transformer)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# exec: the process that is killed is the program, not a shell around it.
train() { exec "$program" train "$small" --set "model.name=$1" --out "$2" --threads 1 "${options[@]}"; }
# What made a result (times, host) is no part of its numbers.
digest() { (cd "$1"/* && sha256sum metrics.jsonl final.safetensors && grep numbers_sha256 result.json); }

declare -A clean seconds
passed=0 resumed=0
for ((i = 0; i < count; i++)); do
  model=${models[i % ${#models[@]}]}
  if [[ -z ${clean[$model]:-} ]]; then
    began=$(date +%s%N)
    (train "$model" "$work/clean-$model") > /dev/null 2>&1
    seconds[$model]=$(($(date +%s%N) - began))
    clean[$model]=$(digest "$work/clean-$model")
  fi
  out="$work/killed-$i"
  kills=0
  while :; do
    compgen -G "$out/*/checkpoint-*" > /dev/null && resumed=$((resumed + 1))
    train "$model" "$out" > /dev/null 2>&1 &
    pid=$!
    # Anywhere in the run the first time; later attempts get longer, so that the run ends at last.
    wait_ns=$(((RANDOM * 32768 + RANDOM) % seconds[$model] * (1 + kills / 2)))
    sleep "$(printf '%d.%09d' $((wait_ns / 1000000000)) $((wait_ns % 1000000000)))"
    if kill -KILL "$pid" 2> /dev/null; then
      wait "$pid" 2> /dev/null && break
      kills=$((kills + 1))
    else
      wait "$pid" && break
    fi
  done
  if [[ $(digest "$out") == "${clean[$model]}" ]]; then
    passed=$((passed + 1))
    echo "$model: killed $kills time(s), same bytes"
  else
    echo "$model: killed $kills time(s), DIFFERENT bytes"
  fi
  rm -rf "$out"
done
echo "$passed of $count identical, $resumed attempts began at a checkpoint"
[[ $passed -eq $count && $resumed -gt 0 ]]
