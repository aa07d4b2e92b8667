"""Where a model stands among its peers: means over common grammars, paired intervals, ranks."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .peers import Peers, TaskName

VERDICT_GRAMMARS = 3  # of fewer, the spread is often small by luck
QUESTIONS: dict[TaskName, str] = {
    1: "Does it use context to tell states apart?",
    2: "Does it ignore noise?",
    3: "Does it recognise wrong symbols by their context?",
    4: "Does it hold its state in gaps longer than in training?",
}
_TITLES: dict[TaskName, str] = {
    1: "memorisation",
    2: "noise rejection",
    3: "context-aware selectivity",
    4: "generalisation",
}
# 97.5 % quantiles of Student's t with 1, 2, … degrees of freedom.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
    2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Against:
    """One peer: its mean accuracy, and how far the model is above it, with the 95 % interval (None with one grammar)."""

    model: str
    accuracy: float
    above: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Standing:
    """The model on one task. ``best`` and ``worst`` are the ranks that the intervals leave possible.

    ``share``: (accuracy − n-gram) / (ceiling − n-gram), None without an n-gram. It is negative below the n-gram.
    """

    task: TaskName
    seeds: list[int]
    accuracy: float
    low: float | None
    high: float | None
    n_gram: float | None
    ceiling: float | None
    share: float | None
    rank: int
    best: int
    worst: int
    of: int
    against: list[Against] = field(default_factory=list)


def interval(values: list[float]) -> tuple[float, float] | None:
    """95 % interval of the mean by Student's t; None of fewer than two values.

    >>> from selectivbench.standing import interval
    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3), interval([1.0])
    (-0.484, 4.484, None)
    """
    n = len(values)
    if n < 2:
        return None
    mean = sum(values) / n
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    half = (_STUDENT[n - 2] if n - 2 < len(_STUDENT) else 1.96) * spread / math.sqrt(n)
    return mean - half, mean + half


def figure(row: Mapping[str, Any], task: TaskName) -> float | None:
    """Accuracy of a run on a task. Task 4: mean over all gap lengths but the shortest, the longest one in training."""
    if task != 4:
        return float(row["accuracy"])
    grid = {int(gap): float(value) for gap, value in row["grid"].items()}
    longer = [value for gap, value in grid.items() if gap > min(grid)]
    return sum(longer) / len(longer) if longer else None


def standings(peers: Peers, runs: Mapping[tuple[TaskName, int], Mapping[str, Any]]) -> list[Standing]:
    """The model's standing on every task with runs; ``runs``: rows by task and grammar. Runs of task 2 also give task 4."""
    out = []
    for task in sorted({task for task, _ in runs} | {4}, key=str):
        trained = 2 if task == 4 else task
        mine = {seed: figure(row, task) for (of, seed), row in runs.items() if of == trained}
        own = {seed: value for seed, value in mine.items() if value is not None}
        if own:
            found = _standing(peers, task, trained, own)
            if found is not None:
                out.append(found)
    return out


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _of_peer(peers: Peers, task: TaskName, trained: TaskName, model: str, seed: int) -> float | None:
    """Mean over the peer's training seeds on one grammar."""
    found = [figure(row, task) for row in peers.runs_of(trained, model, seed)]
    values = [value for value in found if value is not None]
    return _mean(values) if values else None


def _standing(peers: Peers, task: TaskName, trained: TaskName, mine: dict[int, float]) -> Standing | None:
    models = peers.models(trained)
    theirs = {model: {seed: _of_peer(peers, task, trained, model, seed) for seed in mine} for model in models}
    models = [model for model in models if any(value is not None for value in theirs[model].values())]
    seeds = sorted(seed for seed in mine if models and all(theirs[model][seed] is not None for model in models))
    if not seeds:
        return None
    against = []
    for model in models:
        values = [float(theirs[model][seed] or 0.0) for seed in seeds]
        above = [mine[seed] - value for seed, value in zip(seeds, values)]
        low, high = interval(above) or (None, None)
        against.append(Against(model, _mean(values), _mean(above), low, high))
    against.sort(key=lambda each: -each.accuracy)
    truth = [next(row for row in peers.runs if row["task"] == trained and row["grammar_seed"] == seed) for seed in seeds]
    n_grams, ceilings = [row["n_gram"] for row in truth], [row["ceiling"] for row in truth]
    n_gram = None if None in n_grams else _mean(n_grams)
    ceiling = None if None in ceilings else _mean(ceilings)
    accuracy = _mean([mine[seed] for seed in seeds])
    share = None
    if n_gram is not None and ceiling is not None and ceiling > n_gram:
        share = (accuracy - n_gram) / (ceiling - n_gram)
    low, high = interval([mine[seed] for seed in seeds]) or (None, None)
    of = len(models) + 1
    sure = [each for each in against if each.low is not None and each.high is not None]
    return Standing(
        task, seeds, accuracy, low, high, n_gram, ceiling, share,
        rank=1 + sum(each.above < 0 for each in against),
        best=1 + sum((each.high or 0.0) < 0 for each in sure),
        worst=of - sum((each.low or 0.0) > 0 for each in sure),
        of=of,
        against=against,
    )  # fmt: skip


def nearest(peers: Peers, found: list[Standing], count: int = 3) -> list[str]:
    """The peers with the smallest root mean square difference of accuracy over the tasks; those that lack a task come last."""
    squares: dict[str, list[float]] = {}
    for standing in found:
        for each in standing.against:
            squares.setdefault(each.model, []).append(each.above**2)
    return sorted(squares, key=lambda model: (-len(squares[model]), _mean(squares[model]), model))[:count]


def task_title(task: TaskName) -> str:
    """What a task asks for: the paper's name of it, or its kind.

    >>> from selectivbench.standing import task_title
    >>> task_title(1), task_title("dyck")
    ('memorisation', 'dyck')
    """
    return _TITLES.get(task, str(task))
