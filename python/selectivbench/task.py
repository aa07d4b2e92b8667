"""Tasks: inputs of a model and their correct answers."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from . import _native
from ._checks import MOST_FRAMES, MOST_INDEX, MOST_SAMPLES, instance, shown, split as check_split, whole
from ._settings import given_items, items
from .batches import Batch, Batches
from .config import Config
from .grammar import Grammar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Sample:
    """One sample: its elements, and the frames that a model sees."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    @property
    def task(self) -> Task:
        """Task of the sample."""
        return self._batch.task

    @property
    def index(self) -> int:
        """Number of the sample in its split."""
        return int(self._batch.indices[0])

    @property
    def split(self) -> str:
        """train, valid, test or reference."""
        return self._batch.split

    @property
    def classes(self) -> NDArray[np.int16]:
        """Symbol of each element."""
        out: NDArray[np.int16] = self.symbols[self.starts[:-1]]
        return out

    @property
    def states(self) -> NDArray[np.int32]:
        """State id of each element; -1 of a task with real-valued targets, which has none."""
        out: NDArray[np.int32] = self._batch.states[0]
        return out

    @property
    def gaps(self) -> NDArray[np.int32]:
        """Gap frames after each element."""
        starts = self.starts
        out: NDArray[np.int32] = starts[1:] - starts[:-1] - 1
        return out

    @property
    def wrong(self) -> NDArray[np.int16]:
        """Symbols shown in gaps, concatenated; empty if gaps are blank."""
        shown = self.symbols[self._batch.gaps[0]]
        out: NDArray[np.int16] = shown[shown >= 0]
        return out

    @property
    def starts(self) -> NDArray[np.int32]:
        """Element e has the frames ``starts[e]`` to ``starts[e + 1] - 1``."""
        out: NDArray[np.int32] = self._batch.starts[0]
        return out

    @property
    def symbols(self) -> NDArray[np.int16]:
        """Symbol of each frame, -1 for a blank one."""
        out: NDArray[np.int16] = self._batch.symbols[0]
        return out

    @property
    def frames(self) -> NDArray[np.float32]:
        """Dense frames with their noise, [frames, channels]."""
        out: NDArray[np.float32] = self._batch.frames[0]
        return out

    @property
    def targets(self) -> NDArray[np.int64]:
        """Correct answer of each frame; -1 if the frame asks for none, or for numbers (:attr:`values`)."""
        out: NDArray[np.int64] = self._batch.targets[0].copy()
        if self.values is not None:
            out.fill(-1)
        return out

    @property
    def values(self) -> NDArray[np.float32] | None:
        """Wanted outputs of a task with real-valued targets, [frames, answers]; else None.

        >>> import selectivbench as sb
        >>> sb.Task(kind="tracking", length=3).sample("test", 0).values.shape
        (3, 1)
        """
        values = self._batch.values
        return None if values is None else values[0]

    @property
    def elements(self) -> NDArray[np.int32]:
        """Element that each frame belongs to."""
        out: NDArray[np.int32] = self._batch.elements[0]
        return out

    def to_dict(self) -> dict[str, Any]:
        """The sample as ``selectivbench generate`` writes it; with real-valued targets, its frames and values."""
        values = self.values
        if values is not None:
            return {"index": self.index, "frames": self.frames.tolist(), "values": values.tolist()}
        law, content = self._batch.task._gap_law(self.split) if self.task.kind == "gaps" else ("none", "")
        out: dict[str, Any] = {
            "index": self.index,
            "classes": self.classes.tolist(),
            "states": self.states.tolist(),
        }
        if law != "none":
            out["gaps"] = self.gaps.tolist()
            if content == "forbidden_symbol":
                out["wrong"] = self.wrong.tolist()
        return out

    def __repr__(self) -> str:
        return f"<selectivbench.Sample {self.index} of {self.split}: {len(self.states)} elements, {len(self.symbols)} frames>"


class Task:
    """A task of the paper (1 to 4; 0: sequences without gaps) on a grammar. Keywords are the keys of ``[task]`` in TOML files.

    ``gap_*`` are the gaps in training, ``test_gap_*`` those of the other splits, which follow from ``gap_*`` by default.

    >>> import selectivbench as sb
    >>> small = sb.Grammar(vocab=6, ambiguities=2, depth=3)
    >>> task = sb.Task(2, grammar=small, length=20, gap_max=5)
    >>> task
    <selectivbench.Task 2: 20 elements, 6 channels, 10 answers, noise 0.2>
    >>> task.longest("train"), task.config["task.test_gap_min"]
    (120, 5)
    >>> sb.Task(2, gap_min=12)
    Traceback (most recent call last):
    ValueError: [task.gap_min] gap_min (12) > gap_max (10), gap_min=12

    Other kinds of tasks have keys of their own, which ``selectivbench config keys`` lists:

    >>> sb.Task(kind="copying", symbols=4, length=3)
    <selectivbench.Task copying: 6 elements, 4 channels, 4 answers>
    """

    def __init__(
        self,
        number: int | None = None,
        *,
        kind: str | None = None,
        grammar: Grammar | None = None,
        length: int | None = None,
        stream: str | None = None,
        objective: str | None = None,
        noise: float | None = None,
        gap_law: str | None = None,
        gap_min: int | None = None,
        gap_max: int | None = None,
        gap_probability: float | None = None,
        gap_start: int | None = None,
        gap_content: str | None = None,
        gap_mu: float | None = None,
        gap_sigma: float | None = None,
        test_gap_law: str | None = None,
        test_gap_min: int | None = None,
        test_gap_max: int | None = None,
        test_gap_probability: float | None = None,
        test_gap_start: int | None = None,
        test_gap_content: str | None = None,
        test_gap_mu: float | None = None,
        test_gap_sigma: float | None = None,
        **keys: Any,
    ) -> None:
        given = {key: value for key, value in locals().items() if key not in ("self", "grammar", "keys")} | keys
        if isinstance(number, str):
            raise ValueError(f"[task] number, expected 0 to 4, got {shown(number)}; other tasks are kind={shown(number)}")
        if number is None and kind in (None, "gaps"):
            raise ValueError("[task] number is missing, expected 0 to 4, or the kind of another task")
        if grammar is not None:
            instance("task", "grammar", grammar, Grammar)
        pairs = grammar._given() if grammar is not None else []
        automaton = grammar._native.config.automaton if grammar is not None else None
        self._native = _native.Task(_native.Config(pairs + given_items(given, "task"), "Task", automaton), None)
        self._config: Config | None = None
        self._grammar = grammar

    @classmethod
    def from_config(cls, config: Config) -> Task:
        """The task of a config's ``[grammar]`` and ``[task]``."""
        return cls._of(instance("task", "config", config, Config)._native, None)

    @classmethod
    def from_toml(cls, file: str | os.PathLike[str], set: Iterable[str] = ()) -> Task:
        """The task of a config file, or of the shipped config of this name; see :meth:`Config.from_toml`."""
        return cls.from_config(Config.from_toml(file, set))

    @classmethod
    def _of(cls, config: _native.Config, point: int | None) -> Task:
        out = cls.__new__(cls)
        out._native, out._config, out._grammar = _native.Task(config, point), None, None
        return out

    @classmethod
    def _from_config(cls, config: Config, point: int | None) -> Task:
        return cls._of(config._native, point)

    @property
    def config(self) -> Config:
        """Config with every setting of the task, and defaults for the rest of a run."""
        if self._config is None:
            self._config = Config._of(self._native.config)
        return self._config

    @property
    def grammar(self) -> Grammar:
        """Grammar that generates the sequences."""
        if self.kind != "gaps":
            raise ValueError(f"[task] a task of the kind {self.kind} has no grammar")
        if self._grammar is None:
            self._grammar = Grammar._of(self._native.config)
        return self._grammar

    @property
    def number(self) -> int:
        """Number of the paper's task; 0: sequences without gaps, or another kind of task."""
        return self._native.number

    @property
    def kind(self) -> str:
        """Kind of task: ``gaps`` (the paper's tasks), ``copying``, ``tracking``, …"""
        return self._native.kind

    @property
    def axis(self) -> str | None:
        """Name of the quantity that :meth:`at` varies; None if the task has no test axis."""
        return None if self._native.axis is None else self._native.axis[0]

    @property
    def point(self) -> int | None:
        """Value of the test axis, for a task made by :meth:`at`; else None."""
        return self._native.point

    @property
    def squared_error(self) -> bool:
        """Whether the task asks for numbers (``batch.values``), not for one of several answers (``batch.targets``)."""
        return self._native.squared_error

    @property
    def gap(self) -> int | None:
        """Frames of every test gap, for a task made by :meth:`at_gap`; else None."""
        return self._native.point if self.axis == "gap" else None

    @property
    def objective(self) -> str:
        """``state``: name the hidden state; ``predict``: predict the next symbol."""
        return self._native.objective

    @property
    def noise(self) -> float:
        """Amplitude of the uniform noise added to each channel of every frame."""
        return self._native.noise

    @property
    def channels(self) -> int:
        """Width of a dense frame."""
        return self._native.channels

    @property
    def answers(self) -> int:
        """Number of outputs of a model."""
        return self._native.answers

    @property
    def length(self) -> int:
        """Number of elements of a sample."""
        return self._native.length

    @property
    def states(self) -> int:
        """Number of hidden states of the grammar."""
        return self._native.states

    def longest(self, split: str) -> int:
        """Largest possible number of frames of a sample of the split."""
        return self._native.longest(check_split("task", split))

    def at_gap(self, gap: int) -> Task:
        """The same task with gaps of this many frames on valid and test: a point of the generalisation grid.

        >>> import selectivbench as sb
        >>> sb.Task(4, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20).at_gap(50).longest("test")
        1020
        """
        if self.axis != "gap":
            raise ValueError(f"[task] a task of the kind {self.kind} has no gaps")
        return self.at(whole("task", "gap", gap, 0, 100_000))

    def at(self, value: int) -> Task:
        """The same task at a value of its test axis (:attr:`axis`) on valid and test.

        >>> import selectivbench as sb
        >>> sb.Task(kind="copying", symbols=4, length=3).at(5).longest("test")
        10
        """
        out = Task.__new__(Task)
        out._native = self._native.at(whole("task", self.axis or "value", value, 0, 100_000))
        out._config, out._grammar = self._config, self._grammar
        return out

    def _of_update(self, update: int) -> Task:
        """The task that this update trains on, which ``train.schedule`` may change."""
        out = Task.__new__(Task)
        out._native = self._native.of_update(update)
        out._config, out._grammar = self._config, self._grammar
        return out

    def sample(self, split: str, index: int) -> Sample:
        """A sample. It depends only on seed, split and index.

        >>> import selectivbench as sb
        >>> sample = sb.Task(3, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=60).sample("test", 7)
        >>> sample.states[:5], sample.frames.shape == (60 + sample.gaps.sum(), 6)
        (array([3, 9, 4, 6, 0], dtype=int32), True)
        """
        return Sample(self.batch(split, [index]))

    def batch(self, split: str, indices: Iterable[int], *, dense: bool = True, pad_to: int | None = None) -> Batch:
        """A batch of the samples with these indices.

        >>> import selectivbench as sb
        >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
        >>> task.batch("valid", [3, 1]).frames.shape
        (2, 40, 6)
        """
        try:
            each = iter(indices)
        except TypeError:
            raise ValueError(f"[batch] indices, expected integers, got {shown(indices)}") from None
        samples = [whole("batch", "index", index, 0, MOST_INDEX) for index in islice(each, MOST_SAMPLES + 1)]
        if not 1 <= len(samples) <= MOST_SAMPLES:
            raise ValueError(f"[batch] samples, expected 1..{MOST_SAMPLES}, got {len(samples) and 'more'}")
        padded = 0 if pad_to is None else whole("batch", "pad_to", pad_to, 1, MOST_FRAMES)
        native = _native.make_batch(
            self._native, check_split("batch", split), samples, bool(dense), padded
        )
        return Batch(self, native)

    def batches(
        self,
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
    ) -> Batches:
        """Batches of the samples ``start``, ``start + 1``, …, made ahead by native threads.

        ``count``: number of samples; None: endless. ``dense=False`` leaves the frames out, for models that embed symbols.
        ``order=(seed, n)``: the order of ``train.order_seed`` over a training set of n samples. ``shard=(i, n)``: only the
        batches i, i + n, …. ``threads`` 0: all cores; results do not depend on it. Each ``iter()`` starts from the beginning.

        >>> import selectivbench as sb
        >>> task = sb.Task(2, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
        >>> for frames, targets, elements, mask in task.batches("train", 32, count=64):
        ...     print(frames.shape, targets.dtype, mask.sum(axis=1).max() == frames.shape[1])
        (32, 144, 6) int64 True
        (32, 168, 6) int64 True
        """
        return Batches(
            self,
            split,
            batch_size,
            start,
            count,
            dense=dense,
            order=order,
            shard=shard,
            pad_to=pad_to,
            threads=threads,
            ahead=ahead,
        )

    def _gap_law(self, split: str) -> tuple[str, str]:
        prefix = "gap_" if split == "train" else "test_gap_"
        law: str = self.config["task." + prefix + "law"]
        if self.gap is not None and split != "train":
            law = "constant" if self.gap > 0 else "none"
        return law, self.config["task." + prefix + "content"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self._native.text == other._native.text

    def __hash__(self) -> int:
        return hash(self._native.text)

    def __repr__(self) -> str:
        name, noise = (self.number, f", noise {self.noise:g}") if self.kind == "gaps" else (self.kind, "")
        at = "" if self.point is None else f", {self.axis} {self.point}"
        return (
            f"<selectivbench.Task {name}: {self.length} elements, {self.channels} channels, "
            f"{self.answers} answers{noise}{at}>"
        )

    def __reduce__(self) -> tuple[Callable[..., Task], tuple[Any, ...]]:
        return Task._from_config, (self.config, self.point)


Config._make_task = Task.from_config
