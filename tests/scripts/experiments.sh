#!/usr/bin/env bash
# experiments.sh PROGRAM: the catalogue against the real models: every experiment at every scale, its costs, the queue, and a run of one
# experiment cut to a few updates.
set -uo pipefail
program=$(realpath "$1")
results=$(realpath "$(dirname "$0")/../../results")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

"$program" experiments --json "$work/list.json" > "$work/list" || fail "experiments: exit code $?"
python3 - "$work/list.json" << 'P' || failed=1
import json, sys
experiments = json.load(open(sys.argv[1]))["experiments"]
assert len(experiments) == 25, len(experiments)
for each in experiments:
    assert [s["scale"] for s in each["scales"]] == ["quick", "small", "paper"], each["name"]
    for scale in each["scales"]:
        assert scale["runs"] > 0 and scale["gpu_hours"] > 0 and scale["cpu_hours"] > 0, (each["name"], scale)
        # A run takes a second at least, and no GPU is slower than two cores at the paper's scale.
        assert scale["gpu_hours"] * 3600 > scale["runs"]
        assert scale["scale"] == "quick" or scale["gpu_hours"] < scale["cpu_hours"], (each["name"], scale)
P
for name in main_table task1_complexity task1_size task2 task3 task4 complementary_gating fast_forgetting channel_mixing published_faults newer_mixers curriculum mlp_or_mixing mlp_or_mixing_flops capacity dyck recall word_problems pcfg counters flip_flop signals tracking text; do
  grep -q "^$name: " "$work/list" || fail "$name is not listed"
done

# Everything of the queue is missing; what is done of it is not asked for again.
(cd "$work" && "$program" experiments queue --json -) > "$work/queue.json" || fail "queue: exit code $?"
python3 - "$work/queue.json" << 'P' || failed=1
import json, sys
queue = json.load(open(sys.argv[1]))
assert queue["next"].startswith("selectivbench experiments run reproduction --scale paper --where task.number=1"), queue["next"]
# A run that two steps ask for is missing in, and costs, the first of them alone.
for step in queue["steps"]:
    assert step["done"] == 0 and step["missing"] + step["of_steps_above"] == step["runs"], step
    assert (step["missing"] > 0) == (step["seconds"] > 0), step
assert queue["steps"][0]["of_steps_above"] == 0 and any(step["of_steps_above"] > 0 for step in queue["steps"])
P
"$program" experiments queue --results "$results" --json "$work/shipped.json" > /dev/null || fail "queue with the shipped results: exit code $?"
python3 - "$work/shipped.json" << 'P' || failed=1
import json, sys
first = json.load(open(sys.argv[1]))["steps"][0]
assert first["missing"] < first["runs"], first
P
for scale in small paper; do
  "$program" experiments run main_table --scale $scale --where task.number=1 --where run.seed=1 --list --out "$work/none" > "$work/said" 2>&1 ||
    fail "$scale: $(tail -n 1 "$work/said")"
done
"$program" experiments run main_table --scale small --where task.number=1 --where run.seed=1 --list --out "$work/none" 2> /dev/null |
  sed -E 's/.*  ([0-9,]+) parameters.*/\1/' | tr -d , | while read -r parameters; do
  ((parameters > 4535000 && parameters < 4865000)) || fail "$parameters parameters at the scale small"
done

cut=(--set train.updates=4 --set train.warmup=1 --set eval.test_samples=4 --set eval.valid_samples=4 --set eval.ceiling_samples=4)
"$program" experiments run task3 --scale quick "${cut[@]}" --where run.seed=1 --where model.name=gla,mamba2 --out "$work/runs" > "$work/said" 2> "$work/err" ||
  fail "run: exit code $? $(tail -n 2 "$work/err")"
[[ -f $work/runs/task3.json && $(ls -d "$work"/runs/*/ | wc -l) -eq 2 ]] || fail "no table, or not two runs"
"$program" experiments queue --results "$work/runs" > /dev/null || fail "queue with results"

for bad in "run task33" "run task3 --scale tiny" "run task3 --where nonsense" "queue --results $work/nowhere" "runn"; do
  "$program" experiments $bad > "$work/said" 2> "$work/err"
  [[ $? -eq 2 && $(wc -l < "$work/err") -eq 1 ]] || fail "experiments $bad: $(cat "$work/err")"
done
# Every experiment's claims have only switches of their models.
for name in $(python3 -c 'import json, sys; print(*[e["name"] for e in json.load(open(sys.argv[1]))["experiments"]])' "$work/list.json"); do
  "$program" experiments verdict "$name" "$results/quick.tar.gz" > "$work/said" 2> "$work/err"
  ! grep -q "no switch" "$work/err" || fail "verdict $name: $(cat "$work/err")"
done
printf '%s\n' '[[scale]]' 'name = "quick"' '[[claim]]' 'id = "c"' 'title = "t"' 'sentence = "x"' \
  'comparisons = [{a = {model = "mamba2", complementry = false}, b = "mamba"}]' > "$work/mine.toml"
"$program" experiments verdict c "$results/quick.tar.gz" --claims "$work/mine.toml" > "$work/said" 2> "$work/err"
[[ $? -eq 2 ]] && grep -q "mamba2 has no switch 'complementry', did you mean complementary" "$work/err" || fail "misspelt switch: $(cat "$work/err")"
[[ $failed -eq 0 ]] && echo "the catalogue holds"
exit $failed
