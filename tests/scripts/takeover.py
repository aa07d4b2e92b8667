#!/usr/bin/env python3
"""takeover.py PROGRAM [--kills 4] [--seed 1]: a run whose holder is killed, or sleeps through its heartbeat, goes on in other hands.

Every update that a process makes is a line of its output. Whatever happens to a holder, no more updates are made twice than lie between
two checkpoints, and the run ends with the bytes of one nobody touched; timing.jsonl then has one time of each row of metrics.jsonl.
Who waits for a lock says for how long, and leaves at once when asked to.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from run_digests import digests

HERE = pathlib.Path(__file__).resolve().parent
BEAT = 0.25  # seconds; six of them missing is dead
INTERVAL, EVALUATED, UPDATES = 10, 30, 120
A_RUN = 4  # holders of a run that come to an untimely end, at most
LIMIT = 300  # seconds for anything that must come
faults = []


def expect(holds, line):
    if not holds:
        faults.append(line)
        print("FAULT:", line, flush=True)


class Holder:
    """`suite --only`, whose standard output has a line for each update."""

    def __init__(self, command, beat=BEAT):
        self.process = subprocess.Popen(command, env=dict(os.environ, SELECTIVBENCH_HEARTBEAT=str(beat)), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.updates, self.phases, self.complaints = [], [], []
        self.readers = [threading.Thread(target=self.read), threading.Thread(target=self.read_complaints)]
        for reader in self.readers:
            reader.start()

    def read(self):
        for line in self.process.stdout:
            progress = json.loads(line)
            self.phases.append(progress["phase"])
            if progress["phase"] == "train":
                self.updates.append(progress["update"])

    def read_complaints(self):
        for line in self.process.stderr:
            self.complaints.append(line)

    def wait_until(self, holds):
        until = time.monotonic() + LIMIT
        while not holds(self) and self.process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)

    def end(self):
        self.process.wait(timeout=LIMIT)
        for reader in self.readers:
            reader.join()
        return self.process.returncode


def check_timing(folder):
    rows = {name: [(row["update"], row["phase"]) for row in map(json.loads, (folder / name).read_text().splitlines())]
            for name in ("metrics.jsonl", "timing.jsonl")}
    expect(sorted(rows["timing.jsonl"]) == sorted(rows["metrics.jsonl"]),
           f"timing.jsonl has {len(rows['timing.jsonl'])} rows of {len(set(rows['timing.jsonl']))} updates and phases, "
           f"metrics.jsonl {len(rows['metrics.jsonl'])}")


def taken_over(command, first, chance):
    """One run by holders one after the other, until it is done. How many came to an untimely end."""
    before, met = None, 0
    while True:
        holder = Holder(command)
        # The first one just after an evaluation, whose time is written before the next checkpoint.
        after = EVALUATED + 1 if before is None else chance.randint(1, UPDATES // 3)
        holder.wait_until(lambda h: len(h.updates) >= after or (before is not None and met == A_RUN and h.updates))
        last = met == A_RUN or holder.process.poll() is not None
        if before is not None:
            if before.process.poll() is None:  # a sleeper that wakes goes on until it looks at its lock
                before.process.send_signal(signal.SIGCONT)
                code = before.end()
                expect(code == 76, f"who slept ended with {code}: {''.join(before.complaints)[-300:]}")
            twice = max(before.updates, default=0) - (holder.updates[0] - 1) if holder.updates else 0
            print(f"{before.ended} after {len(before.updates)} updates: {max(0, twice)} made twice", flush=True)
            expect(twice <= INTERVAL, f"{twice} updates made twice, checkpoints are {INTERVAL} apart")
        if last:
            code = holder.end()
            expect(code == 0, f"the last one ended with {code}: {holder.complaints}")
            return met
        sleeps = (first + met) % 3 == 2
        holder.ended = "slept" if sleeps else "killed"
        holder.process.send_signal(signal.SIGSTOP if sleeps else signal.SIGKILL)
        if not sleeps:
            holder.end()
        met += 1
        before = holder


def waiting(command):
    """A holder that lives, and one who waits for it and is asked to leave."""
    holder = Holder(command, beat=10)
    holder.wait_until(lambda h: h.updates)
    holder.process.send_signal(signal.SIGSTOP)  # neither dead nor at work
    waiter = Holder(command, beat=10)
    waiter.wait_until(lambda h: "waiting" in h.phases and h.complaints)
    expect("waiting up to 60 s for it to end or be known to be dead" in "".join(waiter.complaints), f"who waits said {waiter.complaints}")
    asked = time.monotonic()
    waiter.process.send_signal(signal.SIGINT)
    code = waiter.end()
    # A second, and what a busy machine adds; less than the 60 s that it would wait.
    expect(code == 75 and time.monotonic() - asked < 50, f"asked to leave, who waits ended with {code} after {time.monotonic() - asked:.1f} s")
    holder.process.send_signal(signal.SIGKILL)
    holder.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    with tempfile.TemporaryDirectory(prefix="selectivbench-takeover-") as work:
        work = pathlib.Path(work)
        text = (HERE / "small.toml").read_text()
        for key, value in (("updates", UPDATES), ("every", EVALUATED), ("checkpoint_every", INTERVAL)):
            text = "\n".join(f"{key} = {value}" if line.startswith(key + " ") else line for line in text.splitlines())
        (work / "suite.toml").write_text('[suite]\nname = "takeover"\n' + text + "\n")
        suite = [program, "suite", str(work / "suite.toml")]
        name = subprocess.run([*suite, "--list"], capture_output=True, text=True, check=True).stdout.split()[0]

        def command(root):
            return [*suite, "--only", name, "--out", str(work / root), "--threads", "1"]

        plain = Holder(command("plain"))
        if plain.end() != 0:
            sys.exit("FAILED: the run nobody touched\n" + "".join(plain.complaints))
        expect(plain.updates == list(range(1, UPDATES + 1)), f"a run is not a line an update: {plain.updates[:5]}…")
        met, chance = 0, random.Random(options.seed)
        while met < options.kills and not faults:
            root = f"after-{met}"
            met += taken_over(command(root), met, chance)
            expect(digests(work / root) == digests(work / "plain"), "other bytes than those of a run nobody touched")
            check_timing(work / root / name)
        waiting(command("waiting"))
    sys.exit(1 if faults else 0)


main()
