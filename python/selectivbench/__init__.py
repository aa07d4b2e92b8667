"""SelectivBench: the tasks, the exact ceiling and the score, for models written in Python.

>>> import selectivbench as sb
>>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
>>> for frames, targets, elements, mask in task.batches("train", batch_size=64, count=128):
...     pass                                       # train on them
>>> round(sb.ceiling(task, samples=100).accuracy, 2)     # the best any causal model can expect
0.95

docs/python.md is the guide. Importing this package imports neither numpy nor torch; what needs them does.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._native import version as __version__
from .batches import Batch, Batches
from .config import Config, config_keys
from .evaluation import Evaluation, evaluate, record
from .grammar import Grammar
from .results import Measurement, Run, Runs, load_runs, load_weights, table
from .score import Score
from .task import Sample, Task
from .truth import Baselines, Beliefs, Ceiling, baselines, ceiling, filter

if TYPE_CHECKING:
    from . import figures, torch, training
    from .training import train

__all__ = [
    "Baselines",
    "Batch",
    "Batches",
    "Beliefs",
    "Ceiling",
    "Config",
    "Evaluation",
    "Grammar",
    "Measurement",
    "Run",
    "Runs",
    "Sample",
    "Score",
    "Task",
    "__version__",
    "baselines",
    "ceiling",
    "config_keys",
    "evaluate",
    "figures",
    "filter",
    "load_runs",
    "load_weights",
    "record",
    "table",
    "torch",
    "train",
    "training",
]


def __getattr__(name: str) -> Any:
    """What needs torch, or is rarely needed, is imported where it is first named."""
    if name in ("figures", "torch", "training"):
        return importlib.import_module("." + name, __name__)
    if name == "train":
        return importlib.import_module(".training", __name__).train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
