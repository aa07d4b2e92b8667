#!/usr/bin/env bash
# pack.sh PROGRAM PLAIN COUNT: an archive has the table of its folder byte for byte; COUNT times `pack` is killed with SIGKILL at random moments,
# which leaves the archive of before or a whole new one, and no other file.
set -uo pipefail
program=$1
plain=$2 # without libtorch, for what needs none: it starts at once
count=$3
RANDOM=1
small=$(dirname "$0")/small.toml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

for seed in 1 2 3; do
  run=$("$program" train "$small" --set run.seed=$seed --out "$work/runs" 2> /dev/null | tail -n 1)
  [[ -f $run/result.json ]] || { echo "FAILED: no run"; exit 1; }
done
"$program" eval "$run" --samples 4 --save > /dev/null 2>&1 || fail "eval --save"

"$plain" pack "$work/runs" "$work/a.tar" > "$work/said" || fail "pack: exit code $?"
grep -q '^3 runs, ' "$work/said" || fail "pack says $(cat "$work/said")"
[[ $(sha256sum < "$work/a.tar" | cut -c1-64) == "$(sed -n 's/^sha256 //p' "$work/said")" ]] || fail "another digest"
for format in text md csv json latex; do
  for more in "" --per-run; do
    "$plain" table "$work/runs" --format $format $more > "$work/folder" 2> "$work/folder.err"
    "$plain" table "$work/a.tar" --format $format $more > "$work/archive" 2> "$work/archive.err"
    cmp "$work/folder" "$work/archive" || fail "table --format $format $more differs"
    cmp "$work/folder.err" "$work/archive.err" || fail "notes of --format $format $more differ"
  done
done
"$plain" check "$work/a.tar" > "$work/said" || fail "check: exit code $?"
grep -q '^3 runs: 3 intact, packed$' "$work/said" || fail "check says $(cat "$work/said")"
tar -tf "$work/a.tar" | grep -q safetensors && fail "weights in the archive"

# The same bytes from a copy, from the archive itself, and from where any tar unpacks it.
cp -r "$work/runs" "$work/copy"
mkdir "$work/unpacked" && tar -xf "$work/a.tar" -C "$work/unpacked"
for source in copy a.tar unpacked; do
  "$plain" pack "$work/$source" "$work/b.tar" > /dev/null || fail "pack $source"
  cmp "$work/a.tar" "$work/b.tar" || fail "other bytes from $source"
done
if "$plain" pack "$work/runs" "$work/a.tar.gz" > /dev/null 2>&1; then
  cmp <(gunzip < "$work/a.tar.gz") "$work/a.tar" || fail "other bytes in the compressed one"
  "$plain" table "$work/a.tar.gz" --format csv 2> /dev/null | cmp - <("$plain" table "$work/a.tar" --format csv 2> /dev/null) ||
    fail "another table of the compressed one"
fi

# Damage is found.
for ((i = 0; i < 20; i++)); do
  cp "$work/a.tar" "$work/odd.tar"
  at=$(((RANDOM * 32768 + RANDOM) % $(stat -c %s "$work/odd.tar")))
  printf '\x7f' | dd of="$work/odd.tar" bs=1 seek=$at conv=notrunc 2> /dev/null
  cmp -s "$work/a.tar" "$work/odd.tar" && continue
  "$plain" check "$work/odd.tar" > "$work/said" 2>&1
  [[ $? -eq 1 ]] || fail "a changed byte at $at: $(cat "$work/said")"
  "$plain" table "$work/odd.tar" > /dev/null 2> "$work/said"
  [[ $? -eq 2 && $(wc -l < "$work/said") -eq 1 ]] || fail "table of a changed byte at $at: $(cat "$work/said")"
done

mkdir "$work/out"
began=$(date +%s%3N)
"$plain" pack "$work/runs" "$work/out/a.tar" > /dev/null || fail "pack"
span=$(($(date +%s%3N) - began + 1)) # milliseconds
printf before > "$work/out/a.tar"
for ((i = 0; i < count; i++)); do
  "$plain" pack "$work/runs" "$work/out/a.tar" > /dev/null 2>&1 &
  pid=$!
  sleep "$(printf '%d.%03d' 0 $((RANDOM % span)))"
  kill -KILL "$pid" 2> /dev/null
  wait "$pid" 2> /dev/null
  [[ $(cat "$work/out/a.tar" 2> /dev/null | head -c 6) == before ]] || cmp "$work/a.tar" "$work/out/a.tar" || fail "kill $i left half a file"
  # A file without a name cannot replace another: for an instant, whole and written, it has a name of its own.
  for left in "$work/out"/a.tar.partial-*; do
    [[ ! -e $left ]] || { cmp "$work/a.tar" "$left" && rm "$left"; } || fail "kill $i left half a file: $left"
  done
  [[ $(ls -A "$work/out") == a.tar ]] || fail "kill $i left $(ls -A "$work/out")"
done

for bad in "$work/a.zip" "$work/out"; do
  "$plain" pack "$work/runs" "$bad" > /dev/null 2> "$work/said"
  [[ $? -eq 2 && $(wc -l < "$work/said") -eq 1 ]] || fail "pack to $bad: $(cat "$work/said")"
done
"$plain" pack "$work/nowhere" "$work/c.tar" > /dev/null 2> "$work/said"
[[ $? -eq 2 && ! -e $work/c.tar ]] || fail "pack of nothing: $(cat "$work/said")"
[[ $failed -eq 0 ]] && echo "archives as their folders, $count kills survived"
exit $failed
