#!/usr/bin/env python3
"""crowd.py PROGRAM [--suites 16] [--runs 6] [--seconds 60] [--preload LIBRARY] [--seed N]: many processes start the same suite on one folder.

For so many seconds their processes, suites and runs alike, are killed (SIGKILL) or put to sleep for longer than the heartbeat (SIGSTOP,
SIGCONT); suites that were killed are started again. Then they are left alone. Every run must have one result, with the bytes and the
table of a suite nobody touched, and nothing may lie around. --preload: a library that takes O_TMPFILE and flock away.
"""
import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from run_digests import digests

HERE = pathlib.Path(__file__).resolve().parent
BEAT = 0.25  # seconds; six of them missing is dead
SLEEP = 8 * BEAT


def family(pids):
    """These processes and their children, of our program alone."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat[stat.rindex(")") + 1:].split()[1])
            except OSError:
                pass
    out = set(pids)
    while True:
        more = {pid for pid, parent in parents.items() if parent in out} - out
        if not more:
            return sorted(out)
        out |= more


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--suites", type=int, default=16)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--preload")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    chance = random.Random(options.seed)
    environment = dict(os.environ, SELECTIVBENCH_HEARTBEAT=str(BEAT))
    if options.preload:
        environment["LD_PRELOAD"] = options.preload
    with tempfile.TemporaryDirectory(prefix="selectivbench-crowd-") as folder:
        work = pathlib.Path(folder)
        seeds = ", ".join(str(seed) for seed in range(1, options.runs + 1))
        (work / "suite.toml").write_text(f'[suite]\nname = "crowd"\n[grid]\nrun.seed = [{seeds}]\n' + (HERE / "small.toml").read_text())

        def start(root, jobs="1"):
            return subprocess.Popen([options.program, "suite", str(work / "suite.toml"), "--out", str(root), "--jobs", jobs, "--threads", jobs],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(work / "errors", "ab"), env=environment)

        plain, root = work / "plain", work / "runs"
        if start(plain, "2").wait() != 0:
            sys.exit("FAILED: the suite nobody touched\n" + (work / "errors").read_text())
        expected = digests(plain)
        assert len(expected) == options.runs
        crowd = [start(root) for _ in range(options.suites)]
        asleep, kills, sleeps = {}, 0, 0
        until = time.monotonic() + options.seconds
        while time.monotonic() < until:
            time.sleep(chance.uniform(0.05, 0.4))
            pid = chance.choice(family([each.pid for each in crowd if each.poll() is None]) or [0])
            if pid and chance.random() < 0.5:
                kills += 1
                sent = signal.SIGKILL
            else:
                sleeps += 1
                sent = signal.SIGSTOP
                asleep[pid] = time.monotonic() + SLEEP
            for each, when in list(asleep.items()):
                if time.monotonic() >= when:
                    del asleep[each]
                    wake(each)
            if pid:
                try:
                    os.kill(pid, sent)
                except ProcessLookupError:
                    pass
            crowd = [each if each.poll() is None or each.returncode >= 0 else start(root) for each in crowd]
        for each in asleep:
            wake(each)
        # Who was stopped in the middle, or found runs in the hands of another, leaves work behind: 75, and the command goes on.
        for each in crowd:
            each.wait()
        bad = [each.returncode for each in crowd if each.returncode not in (0, 1, 75, -9)]
        if bad:
            sys.exit(f"FAILED: exit codes {bad}\n" + (work / "errors").read_text()[-4000:])
        last = start(root)
        if last.wait() != 0:
            sys.exit(f"FAILED: the last one ended with {last.returncode}\n" + (work / "errors").read_text()[-4000:])
        if digests(root) != expected:
            sys.exit("FAILED: other bytes than those of a suite nobody touched")
        if (root / "table.json").read_bytes() != (plain / "table.json").read_bytes():
            sys.exit("FAILED: another table")
        if subprocess.run([options.program, "check", str(root)], stdout=subprocess.DEVNULL).returncode != 0:
            sys.exit("FAILED: a run is damaged")
        litter = [str(path.relative_to(root)) for path in root.glob("*/*") if ".partial-" in path.name]
        if litter:
            sys.exit(f"FAILED: left behind: {litter}")
        print(f"{options.suites} suites on {options.runs} runs, {kills} kills, {sleeps} sleeps of {SLEEP} s: one result a run, same bytes")


def wake(pid):
    if pid:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


main()
