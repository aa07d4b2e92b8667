#!/usr/bin/env python3
"""schedule.py PROGRAM: runs with train.schedule.

Training follows the schedule from the first update on, evaluations belong to the configured task, and threads and
micro-batches change nothing but rounding. Exit code 1 where something does not hold. kill9.sh kills such runs.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

SMALL = pathlib.Path(__file__).with_name("small.toml")
SCHEDULE = "train.schedule={task.gap_max = {from = 2, over = 0.5}, task.length = {from = 5, over = 0.3}, task.noise = {from = 0, over = 1}}"
faults = []


def expect(holds, line):
    if not holds:
        faults.append(line)
        print("FAULT:", line, flush=True)


class Run:
    def __init__(self, program, work, name, *sets, threads=1):
        command = [program, "train", str(SMALL), "--out", str(work / name), "--threads", str(threads)]
        for text in ("run.checkpoint_every=0", "eval.every=0", *sets):
            command += ["--set", text]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr}")
        (self.folder,) = (path for path in (work / name).iterdir() if path.is_dir())
        self.result = json.loads((self.folder / "result.json").read_text())
        rows = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        self.losses = [row["loss"] for row in rows if row["phase"] == "train"]

    def digest(self):
        return [hashlib.sha256((self.folder / name).read_bytes()).hexdigest() for name in ("metrics.jsonl", "final.safetensors")]


def main(program):
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        scheduled = Run(program, work, "scheduled", SCHEDULE)
        expect(Run(program, work, "threads", SCHEDULE, threads=2).digest() == scheduled.digest(), "threads change bytes")
        pieces = Run(program, work, "pieces", SCHEDULE, "train.accumulate=2")
        expect(all(abs(a - b) < 1e-4 * a for a, b in zip(scheduled.losses, pieces.losses)), "micro-batches change the losses")
        # The first update is that of a run with the first values, later ones are not.
        first = Run(program, work, "first", "task.gap_max=2", "task.length=5", "task.noise=0")
        expect(first.losses[0] == scheduled.losses[0], f"update 0: {first.losses[0]} and {scheduled.losses[0]}")
        expect(first.losses[30:] != scheduled.losses[30:], "the schedule does not move")
        plain = Run(program, work, "plain")
        expect(plain.losses[0] != scheduled.losses[0], "the schedule does not begin at its first values")
        for part in ("ceiling", "samples", "frames"):
            expect(plain.result["test"].get(part) == scheduled.result["test"].get(part), f"{part} of the test differs")
        expect(plain.result["baselines"] == scheduled.result["baselines"], "baselines differ")
        config = (scheduled.folder / "config.toml").read_text()
        expect("\nschedule = {task.gap_max = {from = 2, over = 0.5}, task.length = " in config, "config.toml has no schedule")
        expect("schedule" not in (plain.folder / "config.toml").read_text(), "config.toml of a run without one has a schedule")
    print("runs follow their schedule" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
