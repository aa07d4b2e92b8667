#!/usr/bin/env python3
"""500 runs made from a few finished ones, and the report page of them: at most 5 s and 6 MB.

usage: report_500.py PROGRAM RUNS [COUNT]

RUNS is a folder of finished runs (runs/quick). Copies get other seeds, so other ids, and accuracies moved by chance; they are sealed like
real ones. Weights are not copied: such runs are "whole without weights".
"""
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(text):
    """The text of an object with its seal as the last member (docs/runs.md)."""
    body = text[: text.rindex("}")].rstrip(" \n") + ',\n  "sha256":"' + "0" * 64 + '"\n}\n'
    return body.replace('"sha256":"' + "0" * 64, '"sha256":"' + digest(body))


def canonical_of(folder, seed):
    canonical = re.search(r'\n  "canonical": (.*)\n', (folder / "config.json").read_text()).group(1).rstrip(",")
    for key in ("grammar", "train"):
        canonical = re.sub(r'("%s":\{[^{}]*"seed":)\d+' % key, r"\g<1>%d" % seed, canonical)
    return canonical


def copy_of(folder, seed, root):
    config = json.loads((folder / "config.json").read_text())
    canonical = canonical_of(folder, seed)
    run_id = digest(canonical)[:16]
    chance = random.Random(run_id)
    toml = config["config_toml"] + "# a copy\n"
    out = root / run_id
    out.mkdir(parents=True)
    (out / "config.toml").write_text(toml)
    stored = '{\n  "schema": 3,\n  "run_id": "%s",\n  "updates": %d,\n  "config_toml_sha256": "%s",\n  "config_toml": %s,\n  "canonical": %s\n}' % (
        run_id, config["updates"], digest(toml), json.dumps(toml, ensure_ascii=False), canonical)
    (out / "config.json").write_text(sealed(stored))
    metrics = (folder / "metrics.jsonl").read_text()
    (out / "metrics.jsonl").write_text(metrics)
    # As text: every other number keeps its digits.
    text = (folder / "result.json").read_text()
    text = text[: text.index(',\n  "numbers_sha256"')] + "\n}\n"
    text = re.sub(r'("run_id": ")[0-9a-f]+', r"\g<1>" + run_id, text)
    text = re.sub(r'("(?:grammar|train)\.seed": ")\d+', r"\g<1>%d" % seed, text)
    text = re.sub(r'("(?:run|grammar|train)_seed": )\d+', r"\g<1>%d" % seed, text)
    text = re.sub(r'("topological_entropy": )[^,]+', r"\g<1>" + repr(1 + chance.randrange(1024) / 1024), text)
    text = re.sub(r'("metrics.jsonl": ")[0-9a-f]+', r"\g<1>" + digest(metrics), text)
    exact = lambda value: repr(round(value * 1024) / 1024)  # whose digits every writer agrees on
    moved = lambda found: found.group(1) + exact(min(0.999, max(0.001, float(found.group(2)) + chance.uniform(-0.03, 0.03))))
    text = re.sub(r'("frames":\d+,"accuracy":)([-0-9.e]+)', moved, text)
    numbers = re.sub(r'\n  "made": \{.*?\n  \},', "", text, flags=re.S)
    text = text[: text.rindex("\n}")] + ',\n  "numbers_sha256": "%s"\n}\n' % digest(numbers)
    (out / "result.json").write_text(sealed(text))


def main():
    program, runs = sys.argv[1], pathlib.Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 500
    # One run of each setting, whatever seeds there are.
    models = list({canonical_of(path.parent, 0): path.parent for path in sorted(runs.glob("*/result.json"))}.values())
    if not models:
        sys.exit(f"[report_500] expected finished runs in {runs}, got none")
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(work) / "runs"
        for i in range(count):
            copy_of(models[i % len(models)], 1 + i // len(models), root)
        page = pathlib.Path(work) / "report.html"
        seconds, worked = [], []
        for _ in range(3):
            began, before = time.monotonic(), sum(os.times()[2:4])
            subprocess.run([program, "report", str(root), "--out", str(page)], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.monotonic() - began)
            worked.append(sum(os.times()[2:4]) - before)
        data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S).group(1))
        counts = data["meta"]["counts"]
        if counts["averaged"] != count:
            sys.exit(f"[report_500] expected {count} runs averaged, got {counts}")
        size = page.stat().st_size
        print(f"{count} runs: {min(seconds):.2f} s (at most 5; {min(worked):.2f} s of a processor), {size / 1e6:.2f} MB (at most 6), {len(data['figures'])} figures")
        sys.exit(1 if min(seconds) > 5 or size > 6e6 else 0)


main()
