"""SelectivBench: the tasks, the exact ceiling and the score, for models written in Python.

>>> import selectivbench as sb
>>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
>>> for frames, targets, elements, mask in task.batches("train", batch_size=64, count=128):
...     pass                                       # train on them
>>> round(sb.ceiling(task, samples=100).accuracy, 2)     # the best any causal model can expect
0.95

docs/python.md is the guide. Importing this package does not import numpy or torch; they are imported on first use.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._native import version as __version__
from .batches import Batch, Batches
from .config import Config, config_keys, shipped_configs
from .evaluation import Evaluation, evaluate, record
from .grammar import Grammar
from .results import Measurement, Run, Runs, load_runs, load_weights, table
from .score import Score
from .task import Sample, Task
from .truth import Baselines, Beliefs, Ceiling, baselines, ceiling, filter

if TYPE_CHECKING:
    from . import figures, torch, training
    from .checking import check
    from .ranking import rank
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
    "check",
    "config_keys",
    "evaluate",
    "figures",
    "filter",
    "load_runs",
    "load_weights",
    "rank",
    "record",
    "shipped_configs",
    "table",
    "torch",
    "train",
    "training",
]


# Names that need torch, and their modules.
_TORCH = {"check": ".checking", "rank": ".ranking", "torch": ".torch", "train": ".training", "training": ".training"}


def __getattr__(name: str) -> Any:
    """Imports on first use what needs torch or is rarely needed."""
    if name == "figures":
        return importlib.import_module(".figures", __name__)
    if name in _TORCH:
        try:
            module = importlib.import_module(_TORCH[name], __name__)
        except ModuleNotFoundError as error:
            if error.name == "torch":
                raise ImportError(f"selectivbench.{name} requires PyTorch: pip install torch") from None
            raise
        return module if name == _TORCH[name][1:] else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
