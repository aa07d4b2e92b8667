"""The program's metric, computed batch by batch."""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NoReturn

from . import _native
from ._checks import instance, shown, split as check_split, whole
from .batches import Batch
from .results import Measurement
from .task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KINDS = ("logits", "probabilities")


class Score:
    """Accuracy, loss and breakdowns of a model on a split, equal to the program's digit for digit.

    :meth:`update` takes outputs for a batch of that split, [batch, frames, answers], or for its next frames, in any number of
    calls. The score draws each batch again, so changes to the batch's arrays do not matter. Each sample counts once. If
    outputs are invalid, the whole batch is excluded.

    >>> import numpy as np
    >>> import selectivbench as sb
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> score = sb.Score(task)
    >>> for batch in task.batches("test", 50, count=100):
    ...     score.update(batch, np.eye(task.answers)[batch.targets])     # cheats
    >>> found = score.result(ceiling_samples=100)
    >>> found.accuracy, round(found.loss, 4), found.fraction > 1
    (1.0, 1.4612, True)
    """

    def __init__(self, task: Task, split: str = "test", *, breakdowns: bool = True, threads: int = 0) -> None:
        self.task = instance("score", "task", task, Task)
        self.split = check_split("score", split)
        self._native = _native.Score(
            task._native, self.split, bool(breakdowns), whole("score", "threads", threads, 0, 1024)
        )
        self._lock = threading.Lock()
        self._batch: Batch | None = None  # whose outputs are incomplete
        self._left = 0
        self._seen: set[int] = set()

    def update(self, batch: Batch, values: Any, kind: str = "logits") -> None:
        """Takes outputs for all frames of the batch, or for the frames after those of the last call.

        ``values``: numpy or torch, any float type, [batch, frames, answers]; ``kind``: logits or probabilities.
        """
        check_kind("score", kind)
        instance("score", "batch", batch, Batch)
        with self._lock:
            self._update(batch, values, kind)

    def _update(self, batch: Batch, values: Any, kind: str) -> None:
        if self._batch is not None and batch is not self._batch:
            raise ValueError(f"[score] batch, expected {self._left} more frames of the last batch first")
        if batch.split != self.split or (batch.task is not self.task and batch.task != self.task):
            raise ValueError(
                f"[score] batch, expected a batch of split {self.split} of this task, got one of {batch.split} of {batch.task}"
            )
        samples, frames, _ = batch.shape
        left = self._left if self._batch is batch else frames
        array = as_floats("score", "values", values)
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
            again = self._seen.intersection(batch._native.samples)
            if again:
                raise ValueError(f"[score] batch, expected samples that were not scored yet, got {min(again)} again")
            self._native.begin(batch._native)
        self._batch = None  # left out if the outputs are invalid
        if array.dtype.itemsize == 4:
            self._left = self._native.add_floats(array, kind == "logits")
        else:
            self._left = self._native.add_doubles(array, kind == "logits")
        if self._left > 0:
            self._batch = batch
        else:
            self._seen.update(batch._native.samples)

    @property
    def missing(self) -> int:
        """Number of frames of the last batch whose outputs are still missing."""
        return self._left if self._batch is not None else 0

    @property
    def answers(self) -> NDArray[np.int32]:
        """The model's answers for the last complete batch, [batch, elements]; -1 if an element has no frames."""
        with self._lock:
            if self._batch is not None or not self._seen:
                raise ValueError("[score] answers, expected outputs for all frames of a batch first")
            return self._native.named()

    def result(self, ceiling_samples: int = 1000) -> Measurement:
        """The measurement so far, with the ceiling over this many samples (0: without ceiling)."""
        samples = whole("score", "ceiling_samples", ceiling_samples, 0, 10_000_000)
        with self._lock:
            if self._batch is not None:
                raise ValueError(f"[score] result, expected {self._left} more frames of the last batch first")
            if not self._seen:
                raise ValueError("[score] result, expected outputs for at least one batch first, got none")
            return Measurement.from_json(self._native.measured(samples))

    def __reduce__(self) -> NoReturn:
        raise TypeError("[score] Score cannot be pickled; pickle its result() instead")


def check_kind(where: str, kind: Any) -> None:
    """Checks the kind of outputs."""
    if kind not in KINDS:
        raise ValueError(f"[{where}] kind, expected {' or '.join(KINDS)}, got {shown(kind)}")


def as_floats(where: str, what: str, values: Any) -> NDArray[Any]:
    """Converts numpy or torch arrays of any real type to float32 or float64 in C order; copies only if necessary."""
    import numpy as np

    if hasattr(values, "detach"):  # torch, without importing it
        name = str(values.dtype)
        if name == "torch.bool" or values.is_complex():
            raise ValueError(f"[{where}] {what}, expected numbers, got {name}")
        values = values.detach().cpu()
        values = (values.double() if values.element_size() == 8 else values.float()).numpy()
    elif not isinstance(values, np.ndarray):
        try:
            values = np.asarray(values)
        except ValueError:  # rows of different lengths
            raise ValueError(f"[{where}] {what}, expected an array of numbers, got {shown(values)}") from None
    if values.dtype.kind not in "fiu" and "float" not in values.dtype.name:
        raise ValueError(f"[{where}] {what}, expected numbers, got {values.dtype}")
    narrow = values.dtype.itemsize < 4 or values.dtype == np.float32
    return np.asarray(values, dtype=np.float32 if narrow else np.float64, order="C")
