#!/usr/bin/env bash
# attacks.sh PROGRAM STEP: limits (of memory, every STEP MB), odd environments, files that are none, links, damaged and hostile runs. Nothing hangs, nothing ends
# by a signal, every refusal is one line with an exit code, and what is trained is trained to the same bytes.
set -uo pipefail
program=$(realpath "$1")
step=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() { echo "FAILED: $*"; failed=1; }

# run ALLOWED-CODES NAME COMMAND…: its output in out and err.
run() {
  local allowed=$1 name=$2 code=0
  shift 2
  timeout -k 10 120 "$@" > out 2> err || code=$?
  [[ " $allowed " == *" $code "* ]] || fail "$name: exit code $code, expected $allowed: $(head -c 300 err)"
  grep -q 'internal\]\|terminate called' err && fail "$name: $(head -c 300 err)"
  return 0
}
refused() { # CODE NAME COMMAND…: one line, nothing on standard output
  local code=$1 name=$2
  shift 2
  run "$code" "$name" "$@"
  [[ $(wc -l < err) -eq 1 && ! -s out ]] || fail "$name: expected one line, got $(head -c 300 err)"
}
says() { grep -q -- "$2" "$1" || fail "expected '$2' in $(head -c 300 "$1")"; }
raw_bytes() { LC_ALL=C grep -q $'\x1b' out err && fail "$1: control characters reach the terminal"; }

cp "$here/small.toml" small.toml
short=(--set train.updates=8 --set eval.every=4 --set run.checkpoint_every=2 --set "eval.gaps=[]")
train() { "$program" train small.toml "${short[@]}" "$@"; }
# What must not differ between two runs: the result's numbers have a digest of their own.
digest() { (cd "$1"/*/ && sha256sum metrics.jsonl final.safetensors && grep -o '"numbers_sha256".*' result.json); }

run 0 "a run nobody touches" timeout -k 10 100 "$program" train small.toml "${short[@]}" --out clean
clean=$(digest clean)
folder=$(echo clean/*)
id=${folder#clean/}

# Threads as the environment will have them.
n=0
for setting in OMP_THREAD_LIMIT=1 OMP_DYNAMIC=true OMP_NUM_THREADS=1 OMP_NUM_THREADS=3 OMP_NESTED=true OPENBLAS_NUM_THREADS=64; do
  n=$((n + 1))
  run 0 "$setting" env "$setting" "$program" train small.toml "${short[@]}" --threads 3 --out "omp$n"
  [[ $(digest "omp$n") == "$clean" ]] || fail "$setting: other bytes"
done

# Memory: done with the same bytes, or exit code 2 and one line. 127: the system's loader could not even load the libraries.
limited() { # MB NAME COMMAND…: its exit code in code
  local mb=$1 name="$2 within $1 MB"
  shift 2
  code=0
  (ulimit -v $((mb * 1024)) && exec timeout -k 10 300 "$@" > out 2> err) || code=$?
  [[ $code -eq 127 ]] && grep -q 'error while loading shared libraries' err && return
  [[ $code -eq 0 || $code -eq 2 ]] || fail "$name: exit code $code: $(head -c 300 err)"
  [[ $code -eq 0 || $(grep -c '^\[' err) -eq 1 ]] || fail "$name: expected one line, got $(head -c 300 err)"
  grep -q 'internal\]\|terminate called' err && fail "$name: $(head -c 300 err)"
  return 0
}
limited 100 train "$program" train small.toml "${short[@]}" --out none
# The least limit that libraries are loaded within, to 8 MB; from there on every thread and buffer may be the one that is not to be had.
low=100 least=1424
while ((least - low > 8)); do
  middle=$(((low + least) / 2))
  limited $middle version "$program" --version
  if [[ $code -eq 0 ]]; then least=$middle; else low=$middle; fi
done
for ((mb = least; mb < least + 160; mb += step)); do
  limited $mb train "$program" train small.toml "${short[@]}" --out "memory$mb"
  [[ $code -ne 0 || $(digest "memory$mb") == "$clean" ]] || fail "train within $mb MB: other bytes"
done
for ((mb = least; mb < least + 160; mb += 4 * step)); do
  limited $mb doctor "$program" doctor
  limited $mb eval "$program" eval "$folder"
  limited $mb bench "$program" bench train --model gla --width 32 --layers 2 --batch 2 --elements 20 --repeats 1 --no-plain
done

# Less address space than the libraries need: refused before the loader fails.
for kb in 20000 150000; do
  refused 2 "address space of $kb kB" bash -c "ulimit -v $kb; exec '$program' --version"
  says err '^\[memory\]'
done

# A small stack: refused before it can overflow.
for kb in 64 128 1016; do refused 2 "a stack of $kb kB" bash -c "ulimit -s $kb; exec '$program' train small.toml --out none"; done
says err 'ulimit -s'
run 0 "a stack of 1024 kB" bash -c "ulimit -s 1024; exec '$program' train small.toml ${short[*]@Q} --out stack"
[[ $(digest stack) == "$clean" ]] || fail "a small stack: other bytes"

# What is no file, wherever a file is read.
mkfifo pipe
mkdir afolder
truncate -s 1T huge
for file in pipe /dev/zero afolder huge; do
  refused 2 "config $file" "$program" config show $file
  refused 2 "suite $file" "$program" suite $file --out none
  refused 2 "automaton $file" "$program" grammar --automaton $file
  refused 2 "config's automaton $file" "$program" train small.toml --set "grammar.automaton=$file" --out none
done
[[ -e none ]] && fail "a refused run left a folder"
run 0 "a config from a pipe" bash -c "'$program' config show <(cat small.toml)"
for name in result.json config.json final.safetensors; do
  for file in pipe /dev/zero huge; do
    rm -rf odd && cp -r clean odd && rm "odd/$id/$name"
    if [[ $file == pipe ]]; then mkfifo "odd/$id/$name"; else ln -s "$(realpath -s $file)" "odd/$id/$name"; fi
    run 1 "check of $name as $file" "$program" check odd
    says out "$name"
  done
done

# Files may not grow beyond a limit: a code and a line, not a signal.
refused 74 "RLIMIT_FSIZE, generate" bash -c "ulimit -f 1; exec '$program' generate --count 100 --out data.jsonl"
[[ -z $(ls data.jsonl* 2> /dev/null) ]] || fail "generate left something"
run 74 "RLIMIT_FSIZE, train" bash -c "ulimit -f 4; exec '$program' train small.toml ${short[*]@Q} --out limited"
says err "File too large"
run 0 "the same without the limit" "$program" train small.toml "${short[@]}" --out limited
[[ $(digest limited) == "$clean" ]] || fail "a limited run: other bytes"

# Closed standard streams: files do not take their numbers.
for closed in '0<&-' '2>&-' '0<&- 2>&-'; do
  rm -rf closed
  bash -c "exec timeout -k 10 100 '$program' train small.toml ${short[*]@Q} --out closed > /dev/null 2> err $closed" || fail "closed $closed"
  [[ $(digest closed) == "$clean" ]] || fail "closed $closed: other bytes"
  [[ $(sed -n '1p;$p;$=' closed/*/lock | tr '\n' ' ') == 'selectivbench lock 1 end 11 ' ]] || fail "closed $closed: the lock took what was printed"
done
code=0
bash -c "exec timeout -k 10 100 '$program' check clean >&-" 2> err || code=$?
[[ $code -eq 74 ]] || fail "closed standard output: exit code $code"

# Links.
ln -s loop loop
refused 74 "a loop of links" "$program" generate --count 1 --out loop
[[ -L loop ]] || fail "the loop was replaced"
mkdir -p "linked/$id"
echo precious > precious
ln -s "$work/precious" "linked/$id/lock"
refused 74 "a lock that is a link" "$program" train small.toml "${short[@]}" --out linked
[[ $(cat precious) == precious ]] || fail "the target of the lock was changed"

# Data and manifest both or none.
mkdir data.jsonl.manifest.json
refused 74 "no place for the manifest" "$program" generate --count 10 --out data.jsonl
[[ ! -e data.jsonl ]] || fail "data without a manifest"

# Names with control characters and line breaks.
odd=$'o\x1b[31md\nd'
run 0 "a folder of an odd name" "$program" train small.toml "${short[@]}" --out "$odd"
[[ $(grep -c . out) -eq 2 ]] || fail "an odd --out: $(wc -l < out) lines"
raw_bytes "train --out"
run 0 "check of it" "$program" check "$odd"
raw_bytes "check"
run "0 2" "table of it" "$program" table "$odd"
raw_bytes "table"
run 0 "generate into it" "$program" generate --count 1 --out "$odd/data"
raw_bytes "generate"
refused 2 "a missing odd name" "$program" config show "$odd.toml"
raw_bytes "config show"
mkdir vectors
cp "$folder/final.safetensors" "vectors/$odd.safetensors"
refused 2 "verify without a usable vector" "$program" verify vectors
raw_bytes "verify"

# Runs that were tampered with.
refused 2 "check of nothing" "$program" check afolder
ln -s circle circle
refused 2 "eval of a folder that cannot be read" "$program" eval circle
says err "which cannot be read"
for name in final.safetensors metrics.jsonl result.json config.json; do
  rm -rf hurt && cp -r clean hurt && printf x >> "hurt/$id/$name"
  run 1 "check of damaged $name" "$program" check hurt
  says out "$name"
  run 0 "train on damaged $name" "$program" train small.toml "${short[@]}" --out hurt
  says err "$name"
  [[ $(digest hurt) == "$clean" ]] || fail "damaged $name: other bytes"
  run 0 "check after it" "$program" check hurt
done
rm -rf hurt && cp -r clean hurt && sed -i 's/^lr = .*/lr = 0.5/' "hurt/$id/config.toml"
run 0 "an edited config.toml" "$program" train "hurt/$id/config.toml" --out hurt --threads 1
says err "config.toml"
[[ $(ls hurt) == "$id" && $(digest hurt) == "$clean" ]] || fail "an edited config.toml was trained"
cmp -s "hurt/$id/config.toml" "clean/$id/config.toml" || fail "an edited config.toml was not restored"
# The newest checkpoint is none: the one before it is used.
rm -rf hurt && cp -r clean hurt && rm "hurt/$id/result.json"
newest=$(ls hurt/"$id"/checkpoint-*.safetensors | tail -1)
rm "$newest" && mkfifo "$newest"
run 0 "a pipe for a checkpoint" "$program" train small.toml "${short[@]}" --out hurt
says err "expected a file, got a pipe"
[[ $(digest hurt) == "$clean" ]] || fail "a pipe for a checkpoint: other bytes"

[[ $failed -eq 0 ]] && echo "every attack was met"
exit $failed
