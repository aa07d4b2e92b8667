"""The metric of the program, fed batch by batch."""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from . import _native
from ._checks import split as check_split, whole
from .batches import Batch
from .results import Measurement
from .task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = ("logits", "probabilities")


class Score:
    """Accuracy, loss and breakdowns of a model on a split: the measurement of the program, digit for digit.

    Every call of :meth:`update` takes outputs for a batch of that split, [batch, frames, answers]; or for its next frames,
    as many calls as the caller likes. Batches are drawn again inside, so nothing done to their arrays changes the score.

    >>> import numpy as np
    >>> import selectivbench as sb
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> score = sb.Score(task)
    >>> for batch in task.batches("test", 50, count=100):
    ...     score.update(batch, np.eye(task.answers)[batch.targets])     # an oracle that cheats
    >>> found = score.result(ceiling_samples=100)
    >>> found.accuracy, round(found.loss, 4), found.fraction > 1
    (1.0, 1.4612, True)
    """

    def __init__(self, task: Task, split: str = "test", *, breakdowns: bool = True, threads: int = 0) -> None:
        self.task = task
        self.split = check_split("score", split)
        self._native = _native.Score(
            task._native, self.split, bool(breakdowns), whole("score", "threads", threads, 0, 1024)
        )
        self._lock = threading.Lock()
        self._batch: Batch | None = None  # of which frames are missing
        self._left = 0

    def update(self, batch: Batch, values: Any, kind: str = "logits") -> None:
        """Takes outputs for all frames of the batch, or for those that follow on the last call.

        ``values``: numpy or torch, any float type, [batch, frames, answers]; ``kind``: logits or probabilities.
        """
        if kind not in KINDS:
            raise ValueError(f"[score] kind, expected {' or '.join(KINDS)}, got {kind!r}")
        if not isinstance(batch, Batch):
            raise ValueError(f"[score] batch, expected one of Task.batches, got {type(batch).__name__}")
        with self._lock:
            self._update(batch, values, kind)

    def _update(self, batch: Batch, values: Any, kind: str) -> None:
        if self._batch is not None and batch is not self._batch:
            raise ValueError(f"[score] another batch, expected {self._left} more frames of the last one first")
        if batch.split != self.split or batch.task != self.task:
            raise ValueError(
                f"[score] batch, expected one of split {self.split} of this task, got one of {batch.split} of {batch.task}"
            )
        samples, frames, _ = batch.shape
        left = self._left if self._batch is batch else frames
        array = as_floats(values)
        expected = (samples, f"1..{left}", self.task.answers)
        if (
            array.ndim != 3
            or array.shape[0] != samples
            or not 1 <= array.shape[1] <= left
            or array.shape[2] != self.task.answers
        ):
            raise ValueError(
                f"[score] values, expected shape [{expected[0]}, {expected[1]}, {expected[2]}], got {list(array.shape)}"
            )
        if self._batch is None:
            self._native.begin(batch.indices, frames)
        self._batch = None  # left out where what follows raises
        if array.dtype.itemsize == 4:
            self._left = self._native.add_floats(array, kind == "logits")
        else:
            self._left = self._native.add_doubles(array, kind == "logits")
        self._batch = batch if self._left > 0 else None

    def result(self, ceiling_samples: int = 1000) -> Measurement:
        """What was measured so far, beside the ceiling over so many samples (0: without)."""
        samples = whole("score", "ceiling_samples", ceiling_samples, 0, 10_000_000)
        if self._batch is not None:
            raise ValueError(f"[score] result, expected the last {self._left} frames of a batch first")
        return Measurement.from_json(self._native.measured(samples))


def as_floats(values: Any) -> NDArray[Any]:
    """numpy or torch, any float type: float32 or float64 in C order, copied only where it must be."""
    import numpy as np

    if hasattr(values, "detach"):  # torch, without importing it
        values = values.detach().cpu()
        values = (values.double() if values.element_size() == 8 else values.float()).numpy()
    elif not isinstance(values, np.ndarray):
        values = np.asarray(values)
    if values.dtype.kind not in "fiu" and "float" not in values.dtype.name:
        raise ValueError(f"[score] values, expected numbers, got {values.dtype}")
    wide = np.float64 if values.dtype == np.float64 else np.float32
    return np.ascontiguousarray(values, dtype=wide)
