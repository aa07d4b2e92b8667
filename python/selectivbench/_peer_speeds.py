"""Training speed of the shipped models on this machine: measured by the whole program, if it is on the PATH."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile

from ._program import whole_program
from .peers import CHOICE_SEED, Peers

_SHARE = 0.05  # of the budget that measuring may take, beside the plan; all models at quick take a few seconds


def peer_speeds(peers: Peers, threads: int, budget: float) -> dict[str, int]:
    """Tokens per second of a training step on the CPU, by model. Empty if the program is missing or cannot measure them in time."""
    program, task = whole_program(os.environ.get("PATH", "")), peers.tasks[0]
    if program is None or not isinstance(task, int):
        return {}
    with tempfile.TemporaryDirectory(prefix="selectivbench-") as folder:
        words = [str(program), "bench", "train", "--no-plain", "--json=-", f"--threads={threads}"]
        models = peers.models(task)
        try:
            for model in models:
                file = pathlib.Path(folder, f"{model}.toml")
                file.write_text(_config(peers, task, model), encoding="utf-8")
                words.append(f"--config={file}")
            said = subprocess.run(words, check=True, capture_output=True, text=True, timeout=_SHARE * budget).stdout
            rows = json.loads(said)["rows"]
            return {model: round(row["tokens_per_second"]) for model, row in zip(models, rows)}
        except (OSError, subprocess.SubprocessError, ValueError, KeyError):
            return {}


def _config(peers: Peers, task: int, model: str) -> str:
    run = peers.runs_of(task, model)[0]
    switches = {f"model__{key}": value for key, value in run["switches"].items()}
    return peers.config(task, CHOICE_SEED, model__name=model, model__width=run["width"], model__residual=run["residual"], **switches).toml
