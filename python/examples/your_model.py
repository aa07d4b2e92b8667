"""Your model in ten minutes: a GRU in torch on a small version of task 1, its score, its row in the table.

usage: your_model.py [folder of runs] [updates]
"""
# %% The task: task 1 on a small grammar. sb.Task(1) is the one of the paper.
from __future__ import annotations

import sys

import torch

import selectivbench as sb

runs = sys.argv[1] if len(sys.argv) > 1 else "runs/python"
settings: dict[str, bool | int | float | str | list[int]] = {
    "grammar.vocab": 9,
    "grammar.ambiguities": 4,
    "grammar.depth": 4,
    "task.number": 1,
    "task.length": 50,
    "train.updates": int(sys.argv[2]) if len(sys.argv) > 2 else 400,
    "train.batch": 32,
    "train.lr": 5e-3,
    "eval.every": 100,
    "eval.valid_samples": 100,
    "eval.test_samples": 200,
    "eval.ceiling_samples": 200,
    "model.width": 64,
    "model.layers": 1,
}
config = sb.Config(settings)
task = config.task
print(task, task.grammar, sep="\n")


# %% The model: frames [batch, frames, channels] to logits [batch, frames, answers].
class Model(torch.nn.Module):
    """One layer; swap it for your own."""

    def __init__(self, channels: int, width: int, answers: int) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(channels, width, batch_first=True)  # type: ignore[no-untyped-call]
        self.out = torch.nn.Linear(width, answers)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.gru(frames)[0])
        return logits


torch.manual_seed(1)
model = Model(task.channels, 64, task.answers)
params = sum(parameter.numel() for parameter in model.parameters())


# %% Training as the program trains: its samples in its order, its schedule, clipping and evaluations. A terminal shows progress.
trained = sb.train(model, config)
print(trained.result)

# %% The model's row, beside the other runs of that folder.
folder = sb.record(
    runs, name="my gru", params=params, result=trained.result, settings=trained.settings, state_size=64, overwrite=True
)
print(folder, sb.table(runs), sep="\n\n")
