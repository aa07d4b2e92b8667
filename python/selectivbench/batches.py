"""Batches of samples: arrays over native memory, made ahead by native threads."""
from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._checks import MOST_FRAMES, MOST_INDEX, MOST_SAMPLES, pair, split as check_split, whole

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from .task import Task

_open: weakref.WeakSet[_native.BatchStream] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends native threads, and native calls of other Python threads, before the interpreter exits."""
    for stream in list(_open):
        stream.close()
    _native.end_threads()


os.register_at_fork(after_in_child=_native.forget_threads)


class TensorBatch(NamedTuple):
    """A batch as torch tensors."""

    frames: torch.Tensor
    targets: torch.Tensor
    elements: torch.Tensor
    mask: torch.Tensor
    symbols: torch.Tensor
    indices: torch.Tensor
    values: torch.Tensor | None = None


class Batch:
    """Several samples; shorter ones are padded at the end. Arrays are views of native memory and may be written to.

    ``frames, targets, elements, mask = batch`` unpacks the four arrays that training needs. Without dense frames the first
    is ``symbols``. The memory is kept while any of its arrays is in use. A pickle holds task, split and indices: the batch is
    drawn again when it is loaded, without changes made to its arrays.

    >>> import selectivbench as sb
    >>> batch = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=3).batch("test", [0])
    >>> batch.symbols, batch.targets
    (array([[ 3, -1,  0, -1,  4, -1]], dtype=int16), array([[5, 5, 0, 0, 8, 8]]))
    """

    __slots__ = ("task", "_native", "__weakref__")

    def __init__(self, task: Task, native: _native.Batch) -> None:
        self.task = task
        self._native = native

    @property
    def frames(self) -> NDArray[np.float32]:
        """Dense frames [batch, frames, channels]: one-hot plus noise, zero on padding. With ``dense=False`` each access
        makes them anew."""
        made = self._native.frames
        return self._native.expand(0, self._native.shape[1]) if made is None else made

    def dense_frames(self, first: int, last: int) -> NDArray[np.float32]:
        """Dense frames ``first`` to ``last - 1`` as a new array, for stretches of long samples."""
        end = self._native.shape[1]
        last = whole("batch", "last", last, 0, end)
        return self._native.expand(whole("batch", "first", first, 0, last), last)

    @property
    def targets(self) -> NDArray[np.int64]:
        """[batch, frames]: correct answer of each frame; -1 if the frame asks for none (``ignore_index=-1``). With squared
        error, 0 on frames that ask for ``values``."""
        return self._native.targets

    @property
    def values(self) -> NDArray[np.float32] | None:
        """[batch, frames, answers]: wanted outputs of a task with squared error, where ``targets`` is not -1; else None."""
        return self._native.values

    @property
    def elements(self) -> NDArray[np.int32]:
        """[batch, frames]: element that the frame belongs to, -1 on padding."""
        return self._native.elements

    @property
    def mask(self) -> NDArray[np.bool_]:
        """[batch, frames]: false on padding."""
        return self._native.mask

    @property
    def symbols(self) -> NDArray[np.int16]:
        """[batch, frames]: class of the symbol shown, -1 blank, -2 padding."""
        return self._native.symbols

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """[batch, frames]: true on gap frames. Models do not see this."""
        return self._native.gaps

    @property
    def starts(self) -> NDArray[np.int32]:
        """[batch, elements + 1]: element e has frames ``starts[e]`` to ``starts[e + 1] - 1``."""
        return self._native.starts

    @property
    def states(self) -> NDArray[np.int32]:
        """[batch, elements]: state id of each element; -1 if it has none, as in tasks with squared error."""
        return self._native.states

    @property
    def indices(self) -> NDArray[np.int64]:
        """[batch]: number of each sample in its split."""
        return self._native.indices

    @property
    def split(self) -> str:
        """Split of the samples."""
        return self._native.split

    @property
    def dense(self) -> bool:
        """Whether the batch holds dense frames."""
        return self._native.dense

    @property
    def shape(self) -> tuple[int, int, int]:
        """Samples, frames, channels."""
        return self._native.shape

    def torch(self) -> TensorBatch:
        """The same memory as torch tensors.

        ``torch.from_dlpack(batch.frames)`` and ``jax.dlpack.from_dlpack`` work too, except on the bool arrays: DLPack of
        numpy 1.24 does not support them.
        """
        import torch

        share = torch.from_numpy
        return TensorBatch(
            share(self.frames),
            share(self.targets),
            share(self.elements),
            share(self.mask),
            share(self.symbols),
            share(self.indices),
            None if self.values is None else share(self.values),
        )

    def __iter__(self) -> Iterator[NDArray[Any]]:
        if self.dense:
            yield self.frames
        else:
            yield self.symbols
        yield self.targets
        yield self.elements
        yield self.mask

    def __len__(self) -> int:
        return self._native.shape[0]

    def __repr__(self) -> str:
        samples, frames, channels = self.shape
        return f"<selectivbench.Batch of {self.split}: {samples} samples, {frames} frames, {channels} channels>"

    def __reduce__(self) -> tuple[Callable[..., Batch], tuple[Any, ...]]:
        return _drawn_again, (self.task, self.split, self._native.samples, self.dense, self.shape[1])


def _drawn_again(task: Task, split: str, indices: list[int], dense: bool, frames: int) -> Batch:
    return task.batch(split, indices, dense=dense, pad_to=frames)


class Batches:
    """Iterable of batches, made by :meth:`Task.batches`. Each ``iter()`` starts from the first batch. Can be pickled."""

    def __init__(
        self,
        task: Task,
        split: str,
        batch_size: int,
        start: int = 0,
        count: int | None = None,
        *,
        dense: bool = True,
        order: tuple[int, int] | None = None,
        shard: tuple[int, int] = (0, 1),
        pad_to: int | None = None,
        threads: int = 0,
        ahead: int = 4,
    ) -> None:
        self.task = task
        self.split = check_split("batches", split)
        self.batch_size = whole("batches", "batch_size", batch_size, 1, MOST_SAMPLES)
        self.start = whole("batches", "start", start, 0, MOST_INDEX)
        self.count = None if count is None else whole("batches", "count", count, 0, MOST_INDEX - self.start)
        self.dense = bool(dense)
        self.order = None
        if order is not None:
            seed, samples = pair("batches", "order", order)
            self.order = (
                whole("batches", "seed of the order", seed, 0, 2**63 - 1),
                whole("batches", "samples of the order", samples, 1, MOST_INDEX),
            )
        index, among = pair("batches", "shard", shard)
        shards = whole("batches", "shards", among, 1, 2**31)
        self.shard = (whole("batches", "shard", index, 0, shards - 1), shards)
        self.pad_to = None if pad_to is None else whole("batches", "pad_to", pad_to, 1, MOST_FRAMES)
        self.threads = whole("batches", "threads", threads, 0, 1024)
        self.ahead = whole("batches", "ahead", ahead, 1, 1024)

    def __iter__(self) -> Iterator[Batch]:
        stream = self._stream()
        _open.add(stream)
        return self._batches(stream)

    def _stream(self) -> _native.BatchStream:
        request = _native.StreamRequest()
        request.split = self.split
        request.batch = self.batch_size
        request.start = self.start
        request.count = MOST_INDEX - self.start if self.count is None else self.count
        request.order = self.order or (0, 0)
        request.shard, request.shards = self.shard
        request.dense = self.dense
        request.pad_to = self.pad_to or 0
        request.threads = self.threads
        request.ahead = self.ahead
        return _native.BatchStream(self.task._native, request)

    def _batches(self, stream: _native.BatchStream) -> Iterator[Batch]:
        try:
            while True:
                native = stream.next()
                if native is None:
                    return
                batch = Batch(self.task, native)
                del native  # so that its buffers serve again once the caller lets go
                yield batch
                del batch
        finally:
            stream.close()

    def __len__(self) -> int:
        if self.count is None:
            raise TypeError("[batches] endless batches have no len(); pass count=")
        batches = -(-self.count // self.batch_size)
        index, shards = self.shard
        return max(0, -(-(batches - index) // shards))

    def __repr__(self) -> str:
        end = "without end" if self.count is None else f"{self.count} samples"
        return f"<selectivbench.Batches of {self.split}: {self.batch_size} samples each, {end} from {self.start} on>"
