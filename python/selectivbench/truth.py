"""The exact filter, its score (the ceiling), and baselines without a network."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import _native
from ._checks import MOST_INDEX, instance, split as check_split, whole
from .task import Sample, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Ceiling:
    """Score of the exact filter: the best any causal model can expect. Fields are those of ``ceiling --json``.

    ``counted`` and ``kl_counted`` are the filter's actual scores on these samples. The ``kl`` fields exist only for the
    objective ``predict``, the entropies only for ``state``, and ``entropy_rate`` (nats per element, of the frames without
    noise) only if the oracle computes likelihoods. With squared error, ``mse`` is a lower bound and there is no accuracy.
    """

    stderr: float
    counted: float
    counted_stderr: float
    samples: int
    by_position: NDArray[np.float64]
    accuracy: float = math.nan
    upper_bound: float = math.nan
    exact: bool = True
    mse: float | None = None
    mean_entropy: float | None = None
    entropy_rate: float | None = None
    entropy_by_position: NDArray[np.float64] | None = None
    kl: float | None = None
    kl_stderr: float | None = None
    kl_bound: float | None = None
    kl_counted: float | None = None
    kl_by_position: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Baselines:
    """Accuracies of baselines. ``n_gram[k - 1]`` is that of the k-gram, which sees the last k symbols; ``n`` is the best k on valid.

    ``table_learner`` is NaN for kinds other than ``gaps``.
    """

    chance: float
    majority: float
    n_gram: list[float]
    n: int
    n_gram_stderr: float
    table_learner: float
    train_samples: int
    test_samples: int


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs of the exact filter about each element at its last frame; every array is [elements].

    ``best``, ``probability`` and ``entropy`` (in nats) are computed with knowledge of where elements begin and end, as in the
    metric. The ``causal_*`` arrays are computed from the frames so far only. ``named`` is the answer that the metric takes from the filter's outputs. ``since_certain`` is the
    number of elements since the state was last certain; 0: it is certain now.
    """

    states: NDArray[np.int32]
    best: NDArray[np.int32]
    probability: NDArray[np.float64]
    entropy: NDArray[np.float64]
    causal_best: NDArray[np.int32]
    causal_probability: NDArray[np.float64]
    causal_entropy: NDArray[np.float64]
    named: NDArray[np.int32]
    named_probability: NDArray[np.float64]
    since_certain: NDArray[np.int32]
    posterior: NDArray[np.float64] | None = None


def ceiling(task: Task, samples: int = 1000, *, split: str = "test", start: int = 0, threads: int = 0) -> Ceiling:
    """The score of the exact filter, with its standard error and an upper bound for every causal model.

    >>> import selectivbench as sb
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> best = sb.ceiling(task, samples=200)
    >>> round(best.accuracy, 4), best.accuracy <= best.upper_bound, best.exact
    (0.9484, True, True)
    """
    found = _native.ceiling(
        instance("ceiling", "task", task, Task)._native,
        check_split("ceiling", split),
        whole("ceiling", "start", start, 0, MOST_INDEX),
        whole("ceiling", "samples", samples, 1, 100_000_000),
        whole("ceiling", "threads", threads, 0, 1024),
    )
    return Ceiling(**found)


def filter(task: Task, sample: Sample | int, *, split: str | None = None, posterior: bool = False) -> Beliefs:
    """Beliefs of the exact filter about a sample, or about the sample of this index of ``split`` (default: test).

    ``posterior=True`` adds P(state id | frames so far), [frames, states]. The sample is drawn again: changes to its arrays
    do not matter.

    >>> import selectivbench as sb
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> beliefs = sb.filter(task, task.sample("test", 0), posterior=True)
    >>> beliefs.probability[:3], beliefs.posterior.shape
    (array([0.5098239, 1.       , 1.       ]), (40, 10))
    """
    instance("filter", "task", task, Task)
    if isinstance(sample, Sample):
        if sample.task is not task and sample.task != task:
            raise ValueError(f"[filter] sample, expected a sample of this task, got one of {sample.task}")
        index, of = sample.index, sample.split
        if split is not None and split != of:
            raise ValueError(f"[filter] split, expected {of}, the split of the sample, got {split!r}")
    else:
        index, of = whole("filter", "sample", sample, 0, MOST_INDEX), check_split("filter", "test" if split is None else split)
    found = _native.beliefs(task._native, of, index)
    return Beliefs(**found, posterior=_native.posterior(task._native, of, index) if posterior else None)


def baselines(
    task: Task,
    samples: int = 1000,
    *,
    train_samples: int = 10_000,
    split: str = "test",
    start: int = 0,
    threads: int = 0,
) -> Baselines:
    """Accuracy of chance, the most frequent state, n-grams, and a table learner that counts transitions and filters.

    The n-gram to cite is ``n_gram[n - 1]``, with ``n_gram_stderr``. Of the other kinds, ``text`` has n-grams.

    >>> import selectivbench as sb
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> found = sb.baselines(task, samples=100, train_samples=100)
    >>> found.chance, found.n_gram[0] < found.n_gram[1] < found.table_learner
    (0.1, True)
    """
    found = _native.baselines(
        instance("baselines", "task", task, Task)._native,
        check_split("baselines", split),
        whole("baselines", "start", start, 0, MOST_INDEX),
        whole("baselines", "samples", samples, 1, 100_000_000),
        whole("baselines", "train_samples", train_samples, 1, 100_000_000),
        whole("baselines", "threads", threads, 0, 1024),
    )
    return Baselines(**found)
