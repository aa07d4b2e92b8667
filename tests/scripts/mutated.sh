#!/usr/bin/env bash
# mutated.sh PROGRAM COUNT [SEED]: COUNT broken variants of a good config are each refused by `train` with one line a fault and
# exit code 2, and leave no folder behind. Variants that happen to be good are passed over.
set -uo pipefail
program=$1
count=$2
seed=${3:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat "$(dirname "$0")/small.toml" - > "$work/good.toml" <<'T'
[quirks]
first_lr_zero = true
T
"$program" config show "$work/good.toml" > /dev/null || { echo "FAILED: the good config does not resolve"; exit 1; }

# One or two changes: another value, a misspelt or doubled key, a lost or changed character, an end too soon.
mutate() {
  awk -v seed="$1" '
    function pick(n) { return int(rand() * n) + 1 }
    BEGIN {
      srand(seed)
      values = split("-1|0|1e400|nan|\"x\"|[]|[[1]]|true|1.5|9223372036854775808|{}|1979-05-27|\"\"|[1, \"a\"]|0x", value, "|")
      marks = split("=|[|]|\"|#|.|,|\\|{", mark, "|")
    }
    { line[NR] = $0 }
    END {
      for (changes = pick(2); changes > 0; --changes) {
        i = pick(NR)
        kind = pick(7)
        at = pick(length(line[i]) + 1)
        if (kind <= 2 && line[i] ~ /=/) sub(/=.*/, "= " value[pick(values)], line[i])
        else if (kind == 3) line[i] = substr(line[i], 1, at - 1) substr(line[i], at + 1)
        else if (kind == 4) line[i] = substr(line[i], 1, at - 1) mark[pick(marks)] substr(line[i], at)
        else if (kind == 5) line[i] = line[i] "\n" line[i]
        else if (kind == 6) line[i] = substr(line[i], 1, at - 1) "q" substr(line[i], at)
        else { line[i] = substr(line[i], 1, at - 1); last = i }
      }
      for (i = 1; i <= (last ? last : NR); ++i) print line[i]
    }' "$work/good.toml"
}

refused=0 failed=0
for ((i = 0; refused < count && i < 10 * count; i++)); do
  mutate $((seed * 100000 + i)) > "$work/bad.toml"
  "$program" config show "$work/bad.toml" > /dev/null 2>&1 && continue
  "$program" train "$work/bad.toml" --out "$work/out" > "$work/stdout" 2> "$work/stderr"
  code=$?
  refused=$((refused + 1))
  if [[ $code -ne 2 || ! -s $work/stderr || -s $work/stdout || -e $work/out ]] || grep -qv '^\[' "$work/stderr"; then
    echo "FAILED: exit code $code, $(wc -l < "$work/stderr") lines: $(head -3 "$work/stderr")"
    cat "$work/bad.toml"
    failed=1
    rm -rf "$work/out"
  fi
done
[[ $refused -eq $count ]] || { echo "FAILED: only $refused variants were broken"; failed=1; }
echo "$refused broken configs refused"
exit $failed
