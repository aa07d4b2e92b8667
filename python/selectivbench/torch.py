"""Samples for torch's DataLoader: every worker draws its own indices."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import data

from ._checks import instance, whole
from .batches import Batch, Batches
from .task import Task

_BLOCK = 16  # samples drawn at a time, if they are given one by one
_PADDING = {"frames": 0.0, "targets": -1, "elements": -1, "mask": False, "symbols": -2}


class IterableDataset(data.IterableDataset):  # type: ignore[type-arg]
    """Samples of a split one by one, or batches if ``batch_size`` is given.

    For batches use ``DataLoader(dataset, batch_size=None, num_workers=n)``; their order does not depend on n. For single
    samples use ``DataLoader(dataset, batch_size=b, collate_fn=sb.torch.collate)``. ``shard=(rank, ranks)`` is for
    several processes of your own.

    >>> import selectivbench as sb, torch
    >>> task = sb.Task(2, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> loader = torch.utils.data.DataLoader(sb.torch.IterableDataset(task, count=64), batch_size=32,
    ...                                      collate_fn=sb.torch.collate)
    >>> [tuple(batch["frames"].shape) for batch in loader]
    [(32, 144, 6), (32, 168, 6)]
    """

    def __init__(
        self,
        task: Task,
        split: str = "train",
        count: int | None = None,
        start: int = 0,
        *,
        batch_size: int | None = None,
        dense: bool = True,
        order: tuple[int, int] | None = None,
        shard: tuple[int, int] = (0, 1),
        threads: int = 1,
    ) -> None:
        super().__init__()
        instance("dataset", "task", task, Task)
        self.batch_size = None if batch_size is None else whole("dataset", "batch_size", batch_size, 1, 65536)
        self.batches = Batches(
            task, split, self.batch_size or _BLOCK, start, count, dense=dense, order=order, shard=shard, threads=threads
        )

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in self._of_this_worker():
            tensors = as_tensors(batch)
            if self.batch_size is not None:
                yield tensors
                continue
            for row, end in enumerate(batch.starts[:, -1].tolist()):
                yield {
                    key: value[row] if key == "indices" else value[row, :end].clone() for key, value in tensors.items()
                }

    def _of_this_worker(self) -> Batches:
        b = self.batches
        worker = data.get_worker_info()  # type: ignore[no-untyped-call]
        rank, ranks = b.shard
        shard = b.shard if worker is None else (rank + ranks * worker.id, ranks * worker.num_workers)
        return Batches(
            b.task, b.split, b.batch_size, b.start, b.count, dense=b.dense, order=b.order, shard=shard, threads=b.threads
        )

    def __len__(self) -> int:
        if self.batch_size is not None:
            return len(self.batches)
        count, (rank, ranks) = self.batches.count, self.batches.shard
        if count is None:
            raise TypeError("[dataset] endless samples have no len(); pass count=")
        last = count // _BLOCK  # the block that is not full
        return len(range(rank, last, ranks)) * _BLOCK + (count % _BLOCK if last % ranks == rank else 0)


def as_tensors(batch: Batch) -> dict[str, torch.Tensor]:
    """A batch as tensors by name, over the same memory: frames (if dense), targets, elements, mask, symbols, indices."""
    share = torch.from_numpy
    out = {"frames": share(batch.frames)} if batch.dense else {}
    out.update(
        targets=share(batch.targets),
        elements=share(batch.elements),
        mask=share(batch.mask),
        symbols=share(batch.symbols),
        indices=share(batch.indices),
    )
    return out


def collate(samples: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Samples of an :class:`IterableDataset` as one batch, padded as a :class:`Batch` is."""
    if not samples or not all(isinstance(sample, dict) and "indices" in sample for sample in samples):
        raise ValueError("[collate] samples, expected samples of an IterableDataset without batch_size")
    out: dict[str, Any] = {"indices": torch.stack([sample["indices"] for sample in samples])}
    for key, value in _PADDING.items():
        if key in samples[0]:
            rows = [sample[key] for sample in samples]
            out[key] = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
    return out
