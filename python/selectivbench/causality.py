"""The test that a model is causal: its output at a frame must not change if only later frames change."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .batches import Batch
from .score import as_floats
from .task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLES = 4
# Rounding may carry later frames into earlier outputs (convolutions by FFT); a model that looks ahead changes them by far
# more than these shares of what the change does to later outputs, and of the outputs themselves.
_OF_EFFECT, _OF_OUTPUT = 1e-3, 1e-5
_OF_NOISE = 10  # times what two calls on the same frames differ by: sums on a GPU may have any order
_NOT_REPEATABLE = 0.05  # of the outputs


def parts(values: Any) -> Iterator[Any]:
    """Outputs of a predictor: all at once, or the stretches that an iterator yields."""
    yield from values if hasattr(values, "__next__") else (values,)


def check_causal(
    where: str, who: str, predict: Callable[[Batch], Any], task: Task, *, dense: bool = True, repeatable: bool = False
) -> None:
    """Raises a ValueError if outputs for early frames change with later frames.

    ``predict`` sees a few test samples as they are, then with random values from some frame on. Predictors that give
    different outputs for the same frames cannot be tested: they are an error if ``repeatable`` is true, and pass otherwise.
    """
    import numpy as np

    def batch() -> Batch:
        return task.batch("test", range(_SAMPLES), dense=dense or task._native.dense)  # symbols alone would tell nothing

    plain = _outputs(where, predict, batch())
    size = float(np.abs(np.where(np.isfinite(plain), plain, 0)).max())
    noise = float(difference(_outputs(where, predict, batch()), plain).max())
    if noise > _NOT_REPEATABLE * size:
        if repeatable:
            raise ValueError(
                f"[{where}] {who} gives different outputs for the same frames in eval mode; it must not keep a state between calls"
            )
        return
    shortest = int(batch().starts[:, -1].min())
    cuts = {max(1, shortest // 3), max(1, (shortest // 2) | 1), shortest - 1}  # an odd one: blocks have even lengths
    for cut in sorted(cut for cut in cuts if 0 < cut < shortest):
        change = difference(_outputs(where, predict, _changed(batch(), cut)), plain)
        found = leak(change, cut, size, noise)
        if found is not None:
            raise ValueError(
                f"[{where}] {who} is not causal: its output at frame {found[0]} changes when only frames from {cut} on change. "
                "Scores and ceilings are for causal models: no bidirectional layers, a causal mask for attention and "
                "convolutions, no normalisation over frames"
            )


def leak(change: NDArray[Any], cut: int, size: float, noise: float = 0.0) -> tuple[int, float] | None:
    """Frame and amount of the largest change [samples, frames, values] before frame ``cut``; None if rounding explains it.

    ``size``: of the outputs; ``noise``: what two calls on the same frames differ by.
    """
    import numpy as np

    early, effect = change[:, :cut], float(change[:, cut:].max(where=np.isfinite(change[:, cut:]), initial=0))
    most = float(early.max())
    if most <= max(_OF_EFFECT * effect, _OF_OUTPUT * size, _OF_NOISE * noise):
        return None
    return int(np.unravel_index(int(early.argmax()), early.shape)[1]), most


def difference(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Sizes of the differences: 0 if an output is infinite in both (an answer ruled out with -inf), infinite if only in one."""
    import numpy as np

    both, either = np.isfinite(a) & np.isfinite(b), np.isfinite(a) | np.isfinite(b)
    out = np.where(either, np.inf, 0.0)
    out[both] = np.abs(a[both] - b[both])
    return out


def _changed(batch: Batch, cut: int) -> Batch:
    """The batch with other values from frame ``cut`` on, padding excepted."""
    import numpy as np

    random = np.random.default_rng(cut)
    later = batch.mask.copy()
    later[:, :cut] = False
    if batch.dense:
        batch.frames[later] += random.standard_normal((int(later.sum()), batch.shape[2])).astype(np.float32)
    batch.symbols[later] = random.integers(0, batch.shape[2], int(later.sum()))
    return batch


def _outputs(where: str, predict: Callable[[Batch], Any], batch: Batch) -> NDArray[Any]:
    import numpy as np

    samples, frames, _ = batch.shape
    expected = (samples, frames, batch.task.answers)
    found = [as_floats(where, "outputs", part) for part in parts(predict(batch))]
    for array in found:
        if array.ndim != 3 or (array.shape[0], array.shape[2]) != (samples, batch.task.answers):
            raise ValueError(f"[{where}] outputs, expected shape {list(expected)}, got {list(array.shape)}")
    total = sum(array.shape[1] for array in found)
    if total != frames:
        raise ValueError(f"[{where}] predict, expected outputs for {frames} frames of a batch, got {total}")
    return np.concatenate(found, axis=1)
