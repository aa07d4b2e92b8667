"""What the package costs: prints each figure, its target and how many times as good as that it is."""
from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time

import selectivbench as sb


def seconds(act, repeats=3):
    """The best of several."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        act()
        best = min(best, time.perf_counter() - began)
    return best


def processor_seconds(act):
    """Of all threads of this process, system included: another program on the machine changes it little."""
    began = time.process_time()
    act()
    return time.process_time() - began


def line(name, value, unit, target, ratio):
    print(f"{name:52} {value:10.2f} {unit:10} target {target:16} {ratio:6.2f} times as good")


def import_seconds():
    """Of the processor, beyond what Python itself takes to start."""

    def spent(text):
        def now():
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime

        best = float("inf")
        for _ in range(7):
            before = now()
            subprocess.run([sys.executable, "-c", text], check=True)
            best = min(best, now() - before)
        return best

    return spent("import selectivbench") - spent("pass")


def resident():
    """Bytes in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def draw(task, samples, **keys):
    frames = 0
    for batch in task.batches("train", 64, count=samples, **keys):
        frames += batch.shape[0] * batch.shape[1]
    return frames


def main():
    spent = import_seconds()
    line("import selectivbench", 1e3 * spent, "ms", "<= 100 ms", 0.1 / spent)
    paper = sb.Task(1, grammar=sb.Grammar())
    spent = seconds(lambda: draw(paper, 200_000, dense=False), 1)
    line("an epoch of 200,000 paper-scale samples", spent, "s", "<= 6 s (2 cores)", 6 / spent)
    task2 = sb.Task(2, grammar=sb.Grammar())
    batches, shares = 200, []
    for _ in range(7):  # in turn: both see the same machine
        own = processor_seconds(lambda: sb._native.fill_seconds(task2._native, "train", 64, batches))
        shares.append(own / processor_seconds(lambda: draw(task2, 64 * batches, threads=1)))
    share = statistics.median(shares)
    line("dense batches, share of the native rate", 100 * share, "%", ">= 90 %", share / 0.9)
    small = sb.Task(2, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    draw(small, 64 * 500)
    before = resident()
    draw(small, 64 * 10_000)
    grown = (resident() - before) / 2**20
    line("growth of memory over 10,000 batches", grown, "MB", "< 8 MB", 8 / max(grown, 0.01))
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, selectivbench {sb.__version__}")


if __name__ == "__main__":
    main()
