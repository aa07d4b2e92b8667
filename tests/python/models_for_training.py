"""Networks that the tests of sb.train use, and a program that trains one and is killed: models_for_training.py FOLDER WHEN."""
import os
import pickle
import signal
import sys
from unittest import mock

import torch

import selectivbench as sb

SETTINGS = {
    "grammar.vocab": 6,
    "grammar.ambiguities": 2,
    "grammar.depth": 3,
    "task.number": 1,
    "task.length": 20,
    "train.updates": 60,
    "train.batch": 16,
    "train.lr": 2e-2,
    "train.order_seed": 3,
    "eval.every": 30,
    "eval.valid_samples": 20,
    "eval.test_samples": 50,
    "eval.ceiling_samples": 50,
}
SHORT = {**SETTINGS, "train.updates": 12, "train.batch": 4, "eval.every": 5, "run.checkpoint_every": 3, "eval.test_samples": 20,
         "eval.ceiling_samples": 20}


class Gru(torch.nn.Module):
    """A small network; dropout makes its updates depend on torch's random state."""

    def __init__(self, width=24, answers=10, dropout=0.0, bidirectional=False):
        super().__init__()
        torch.manual_seed(1)
        self.gru = torch.nn.GRU(6, width, batch_first=True, bidirectional=bidirectional)
        self.dropout = torch.nn.Dropout(dropout)
        self.out = torch.nn.Linear((1 + bidirectional) * width, answers)

    def forward(self, frames):
        return self.out(self.dropout(self.gru(frames)[0]))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def train_short(folder, progress=None):
    """Trains with a checkpoint; what training leaves, as bytes."""
    model = Gru(8, dropout=0.2)
    trained = sb.train(model, sb.Config(SHORT), progress=progress, checkpoint=os.path.join(folder, "short.pt"))
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    return pickle.dumps((trained.history, trained.result.test.text, trained.result.valid.text, weights))


def run(folder, when):
    """Killed at an update, or before or after the n-th checkpoint takes its name: "7", "before 2", "after 2"."""
    moment, _, number = when.rpartition(" ")
    left = int(number)
    real = os.replace

    def replace(*names):
        nonlocal left
        left -= 1
        if left == 0 and moment == "before":
            die()
        real(*names)
        if left == 0:
            die()

    def at_update(row):
        if row["update"] == int(number):
            die()

    with mock.patch("os.replace", replace if moment else real):
        out = train_short(folder, None if moment else at_update)
    with open(os.path.join(folder, "trained"), "wb") as file:
        file.write(out)


def main(folder, *moments):
    """Runs one after another, each in a process of its own that need not import torch again; prints their exit codes."""
    for when in moments:
        child = os.fork()
        if child == 0:
            run(folder, when)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
