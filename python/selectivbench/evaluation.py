"""Measures your own model as the program measures its models, and records the result for the program's tables."""
from __future__ import annotations

import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from . import _native
from ._checks import instance, mapping, path, shown, text, whole
from ._settings import Setting
from .batches import Batch
from .causality import check_causal, parts
from .results import EXTERNAL, Measurement
from .score import Score, as_floats, check_kind
from .task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST_GAPS = 1000  # lengths of an evaluation


@dataclass(frozen=True)
class Evaluation:
    """Measurements of a model on a task: on test with breakdowns, on valid, and on test at other gap lengths (``grid``).

    ``answers``: what the model answered, [samples, elements], under "test" and under each gap length as text. Empty with squared
    error.
    """

    task: Task
    test: Measurement
    valid: Measurement | None = None
    grid: list[Measurement] = field(default_factory=list)
    answers: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [f"test: {self.test}"]
        if self.valid is not None:
            lines.append(f"valid: {self.valid}")
        return "\n".join(lines + [f"{self.task.axis} {point.point}: {point}" for point in self.grid])


def evaluate(
    predict: Callable[[Batch], Any],
    task: Task,
    gaps: Sequence[int] = (),
    *,
    samples: int = 1000,
    valid_samples: int = 1000,
    grid_samples: int = 1000,
    ceiling_samples: int = 1000,
    batch_size: int = 50,
    kind: str = "logits",
    dense: bool = True,
    threads: int = 0,
) -> Evaluation:
    """Measures a model as the program does: on test, on valid (unless ``valid_samples`` is 0) and at other gap lengths.

    ``gaps`` are values of the task's test axis (:attr:`Task.axis`), gap lengths for the paper's tasks.

    ``predict(batch)`` returns outputs [batch, frames, answers], or yields them stretch by stretch. It must be causal: it is first
    called on a few samples with changed later frames, and a ``ValueError`` is raised if earlier outputs change.

    >>> import numpy as np
    >>> import selectivbench as sb
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> def first_state_of_the_symbol(batch):
    ...     return np.eye(task.answers)[np.maximum(batch.symbols, 0)]
    >>> found = sb.evaluate(first_state_of_the_symbol, task, samples=100, valid_samples=50, ceiling_samples=100)
    >>> print(found.test)
    accuracy 0.1705 (s.e. 0.0068) over 100 samples, loss 2.1322, ceiling 0.9451
    """

    instance("evaluate", "task", task, Task)
    if not callable(predict):
        raise ValueError(f"[evaluate] predict, expected a function that takes a batch, got {shown(predict)}")
    check_kind("evaluate", kind)
    for what, value, least in (
        ("samples", samples, 1),
        ("valid_samples", valid_samples, 0),
        ("grid_samples", grid_samples, 1),
        ("ceiling_samples", ceiling_samples, 0),
    ):
        whole("evaluate", what, value, least, 10_000_000)
    whole("evaluate", "batch_size", batch_size, 1, 65536)
    try:
        points = [task.at(value) for value in islice(gaps, MOST_GAPS + 1)]
    except TypeError:
        raise ValueError(f"[evaluate] gaps, expected integers, got {shown(gaps)}") from None
    if len(points) > MOST_GAPS:
        raise ValueError(f"[evaluate] gaps, expected at most {MOST_GAPS}, got more")
    if len({point.point for point in points}) != len(points):
        raise ValueError(f"[evaluate] gaps, expected different lengths, got {shown(gaps)}")

    answers: dict[str, NDArray[Any]] = {}

    def measured(of: Task, split: str, count: int, breakdowns: bool, ceiling: int) -> Measurement:
        named: list[NDArray[Any]] = []
        found = measure(
            predict,
            of,
            split,
            count,
            breakdowns=breakdowns,
            ceiling_samples=ceiling,
            batch_size=batch_size,
            kind=kind,
            dense=dense,
            threads=threads,
            answers=named if split == "test" and not of.squared_error else None,
        )
        if named:
            import numpy as np

            answers["test" if of.point is None else str(of.point)] = np.concatenate(named)
        return found

    check_causal("evaluate", "predict", predict, task, dense=dense)
    valid = measured(task, "valid", valid_samples, False, 0) if valid_samples else None
    test = measured(task, "test", samples, True, ceiling_samples)
    grid = [measured(point, "test", grid_samples, False, ceiling_samples) for point in points]
    return Evaluation(task, test, valid, grid, answers)


def measure(
    predict: Callable[[Batch], Any],
    task: Task,
    split: str,
    samples: int,
    *,
    breakdowns: bool = True,
    ceiling_samples: int = 0,
    batch_size: int = 50,
    kind: str = "logits",
    dense: bool = True,
    threads: int = 0,
    answers: list[NDArray[Any]] | None = None,
) -> Measurement:
    """One pass over a split; :func:`evaluate` makes several. ``answers`` receives the model's answers for each batch."""
    score = Score(task, split, breakdowns=breakdowns, threads=threads)
    for batch in task.batches(split, batch_size, count=samples, dense=dense, threads=threads):
        frames = batch.shape[1]
        missing = frames
        for part in parts(predict(batch)):
            score.update(batch, part, kind)
            missing = score.missing
        if missing:
            raise ValueError(f"[evaluate] predict, expected outputs for {frames} frames of a batch, got {frames - missing}")
        if answers is not None:
            answers.append(score.answers.astype("int16" if task.answers < 2**15 else "int32"))
    return score.result(ceiling_samples)


def record(
    run_dir: str | os.PathLike[str],
    *,
    name: str,
    params: int,
    result: Evaluation,
    settings: Mapping[str, Setting] | None = None,
    weights: Mapping[str, Any] | None = None,
    state_size: int | None = None,
    overwrite: bool = False,
) -> str:
    """Writes a run folder, which ``selectivbench table``, ``check`` and ``report`` show with the program's own runs.

    The model is called "``name`` (external)". ``settings`` declares how it was trained, by the keys of configs:
    ``{"train.lr": 1e-3, "train.updates": 500, "train.batch": 32, "train.seed": 2, "model.width": 64}``, and further
    properties of your model as ``model.KEY``; after :func:`train`, give it ``trained.settings`` with your model's width and layers.
    The argument is required. Keys of ``train`` that are missing have the defaults of configs; width and layers are then 1, with a
    warning if the model has parameters. ``state_size``: values that a layer carries from frame to frame; None: unknown, or the state
    grows. The folder's name is a digest of name, parameters, task and
    settings. Recording the same run again changes nothing; other numbers or weights need ``overwrite``. Returns the folder.

    >>> import numpy as np, tempfile
    >>> import selectivbench as sb
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> found = sb.evaluate(lambda batch: np.zeros((*batch.shape[:2], task.answers)), task, samples=20, valid_samples=20,
    ...                     ceiling_samples=20)
    >>> with tempfile.TemporaryDirectory() as runs:
    ...     folder = sb.record(runs, name="nothing", params=0, result=found, settings={"train.updates": 1, "train.warmup": 0})
    ...     print(sb.load_runs(runs)[0].model)
    nothing (external)
    """
    root = path("record", run_dir)
    task = _checked(result)
    params = whole("record", "params", params, 0, 2**53)
    size = None if state_size is None else whole("record", "state_size", state_size, 0, 2**53)
    declared: dict[str, Setting] = {"model.width": 1, "model.layers": 1, "model.dropout": 0.0}
    declared.update(_declared(settings))
    absent = [key for key in ("model.width", "model.layers") if key not in (settings or {})]
    if absent and params:
        warnings.warn(f"[record] settings have no {' and no '.join(absent)}; tables show 1 for {name}", stacklevel=2)
    declared["model.name"] = text("record", "name", name) + EXTERNAL
    declared["model.parameters"] = params
    declared.update(_measured_settings(result))
    config = task.config.with_settings(declared)
    recorded = _native.Recorded()
    recorded.params = params
    recorded.state_size = size
    recorded.test = result.test.text
    recorded.valid = result.valid.text if result.valid else None
    recorded.grid = [point.text for point in result.grid]
    recorded.made = json.dumps(_made(config["train.device"]))
    tensors = _tensors({} if weights is None else weights)
    return _native.record(root, task._native, config._native, recorded, tensors, bool(overwrite))


def _checked(result: Evaluation) -> Task:
    """The task of a result whose measurements are on the right splits and gaps."""
    instance("record", "result", result, Evaluation)
    task = instance("record", "task of the result", result.task, Task)
    if task.point is not None:
        raise ValueError(f"[record] result, expected a result of the task itself, got one at {task.axis} {task.point}")
    places: list[tuple[str, str, Any]] = [("test", "test", result.test)]
    if result.valid is not None:
        places.append(("valid", "valid", result.valid))
    places += [("grid", "test", point) for point in result.grid]
    for what, split, found in places:
        instance("record", what, found, Measurement)
        at = "a gap length" if what == "grid" else "the task's own gaps"
        if found.split != split or (found.point is None) == (what == "grid"):
            got = f"{found.split} with {'its own gaps' if found.point is None else f'gaps of {found.point}'}"
            raise ValueError(f"[record] {what}, expected a measurement on {split} with {at}, got one on {got}")
    return task


_ARGUMENTS = {"model.name": "name", "model.parameters": "params"}  # settings that are arguments of record()


def _declared(settings: Mapping[str, Setting] | None) -> dict[str, Setting]:
    """Settings that distinguish models; the evaluation says what was measured on."""
    if settings is None or (isinstance(settings, Mapping) and not settings):
        raise ValueError(
            "[record] settings= is missing, so the run would be recorded as trained with the defaults of configs; declare how "
            'the model was trained, such as {"train.updates": 500, "train.batch": 32, "train.lr": 1e-3, "train.seed": 1}, or pass '
            "the settings of the result of sb.train"
        )
    for key in mapping("record", "settings", settings):
        if "." in key and key.partition(".")[0] not in ("model", "train", "run"):
            raise ValueError(f"[record] settings, expected keys of model, train or run, got '{key}', which comes from the result")
        if key in _ARGUMENTS:
            raise ValueError(f"[record] settings, expected {_ARGUMENTS[key]}= instead of '{key}'")
    return dict(settings)


def _measured_settings(result: Evaluation) -> dict[str, Setting]:
    """Keys of [eval] that follow from the measurements."""
    out: dict[str, Setting] = {"eval.test_samples": result.test.samples, "eval.every": 0}
    out["eval.ceiling_samples"] = result.test.ceiling.samples if result.test.ceiling else 0
    if result.valid:
        out["eval.valid_samples"] = result.valid.samples
    if result.task._native.axis is not None:
        out["eval." + result.task._native.axis[1]] = [point.point for point in result.grid if point.point is not None]
    if result.grid:
        out["eval.grid_samples"] = result.grid[0].samples
    return out


def _tensors(weights: Mapping[str, Any]) -> list[tuple[str, NDArray[Any]]]:
    return [
        (text("record", "name of a weight", name), as_floats("record", f"weight {name}", value))
        for name, value in mapping("record", "weights", weights).items()
    ]


def _made(device: str) -> dict[str, Any]:
    torch = sys.modules.get("torch")
    return {
        "version": _native.version,
        "commit": _native.commit,
        "compiler": _native.compiler,
        "libtorch": str(getattr(torch, "__version__", "none")),
        "blas": "none",
        "instructions": platform.machine(),
        "device": device,
        "host": platform.node() or "unknown",
        "threads": os.cpu_count() or 1,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
