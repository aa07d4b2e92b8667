#!/usr/bin/env python3
"""What a second rank on a second core gains: training frames a second of one run, by one rank on one core, two ranks on two cores, and one
process with two threads on the same two cores. In turn, so that a machine that gets slower or busier does so for all of them.

usage: bench/ranks.py build/release/selectivbench [--repeats 3] [--model gated_delta_net] [--width 128] [--updates 12]
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile

CONFIG = pathlib.Path(__file__).parent.parent / "configs" / "example.toml"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def rate(options, cores, world):
    """Frames a second, evaluations left out."""
    with tempfile.TemporaryDirectory() as out:
        sets = (f"model.name={options.model}", f"model.width={options.width}", "model.layers=4", f"train.updates={options.updates}",
                "task.length=200", "train.batch=8", "train.warmup=1", "train.device=cpu", "train.precision=fp32", "eval.every=0", "eval.valid_samples=1",
                "eval.test_samples=1", "eval.ceiling_samples=1", "run.checkpoint_every=0")
        command = [options.program, "train", str(CONFIG), "--out", out, "--threads", str(len(cores) // world)]
        for text in sets:
            command += ["--set", text]
        port, started = free_port(), []
        for rank in range(world):
            group = {"WORLD_SIZE": str(world), "RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            mine = set(cores) if world == 1 else {cores[rank]}
            started.append(subprocess.Popen(command, env=os.environ | (group if world > 1 else {}), stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, preexec_fn=lambda mine=mine: os.sched_setaffinity(0, mine)))
        for process in started:
            _, complained = process.communicate()
            if process.returncode:
                raise SystemExit(complained.decode())
        result, = pathlib.Path(out).glob("*/result.json")
        return json.loads(result.read_text())["made"]["tokens_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", default="gated_delta_net")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--updates", type=int, default=12)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise SystemExit("two cores are needed")
    ways = {"1 rank, 1 core": (cores[:1], 1), "2 ranks, 2 cores": (cores, 2), "1 process, 2 threads": (cores, 1)}
    rates = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, (used, world) in ways.items():
            rates[name].append(rate(options, used, world))
    first = statistics.median(rates["1 rank, 1 core"])
    for name, values in rates.items():
        ratios = [a / b for a, b in zip(values, rates["1 rank, 1 core"])]
        print(f"{name:22} {statistics.median(values):8.0f} frames/s   {statistics.median(values) / first:.2f} times one core"
              f"   ({min(ratios):.2f} to {max(ratios):.2f} in turn)")


main()
