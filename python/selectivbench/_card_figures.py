"""The charts of a card."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._svg import line_chart, scatter_chart
from .peers import TaskName
from .standing import Standing, task_title

if TYPE_CHECKING:
    from .ranked import Ranking

LEAST_IN_BIN, LEAST_OF_GRAMMAR = 300, 30  # elements that an accuracy by certainty needs, in all and on each grammar


def figures(ranking: Ranking) -> dict[str, str]:
    """SVG files by name: profile over tasks, state size, and accuracy by gap length, position and certainty."""
    out = {"profile": _profile(ranking)}
    sized = state_sizes(ranking)
    if sized:
        title, names = "Mean accuracy against state size", [ranking.label, *ranking.nearest]
        out["state"] = scatter_chart(title, "state values per layer", "mean accuracy over the tasks", sized, names)
    for each in ranking.standings:
        if each.task == 4:
            out["gaps"] = _by_axis(ranking, each, 2, "gap length", "gap length, in frames")
        else:
            axis = axis_of(ranking, each.task)
            if axis:
                out[f"axis-{each.task}"] = _by_axis(ranking, each, each.task, axis, axis)
            out[f"position-{each.task}"] = _by_position(ranking, each)
            if len(entropy_bins(ranking, each)) > 1:
                out[f"certainty-{each.task}"] = _by_certainty(ranking, each)
    return out


def axis_of(ranking: Ranking, task: TaskName) -> str:
    """Name of the test axis of a kind of task whose runs were tested along it; empty for the paper's tasks, whose task 4 shows it."""
    tested = any(row["grid"] for (of, _), row in ranking.runs.items() if of == task)
    return ranking.peers.config(task, 1).task.axis or "" if isinstance(task, str) and tested else ""


def state_sizes(ranking: Ranking) -> dict[str, tuple[float, float]]:
    """State size and mean accuracy over the tasks, the mixer first; empty if the mixer's size is not known."""
    mine = ranking.facts["state_size"]
    if not mine:
        return {}
    means: dict[str, list[float]] = {}
    for each in ranking.standings:
        for other in each.against:
            means.setdefault(other.model, []).append(other.accuracy)
    out = {ranking.label: (float(mine), sum(each.accuracy for each in ranking.standings) / len(ranking.standings))}
    for model, values in means.items():
        size = next(run["state_size"] for run in ranking.peers.runs if run["model"] == model)
        if size and len(values) == len(ranking.standings):
            out[model] = (float(size), sum(values) / len(values))
    return out


def entropy_bins(ranking: Ranking, standing: Standing) -> dict[float, int]:
    """Bins of the exact filter's entropy with enough elements on these grammars: lower bound and number of elements."""
    counts: dict[float, list[int]] = {}
    for seed in standing.seeds:
        for low, _, count in ranking.runs[standing.task, seed].get("by_entropy", []):
            if count >= LEAST_OF_GRAMMAR:
                counts.setdefault(low, []).append(count)
    return {low: sum(each) for low, each in sorted(counts.items()) if len(each) == len(standing.seeds) and sum(each) >= LEAST_IN_BIN}


def trained_gaps(ranking: Ranking) -> tuple[int, int]:
    """The shortest and the longest gap of training on task 2."""
    config = ranking.peers.config(2, 1)
    least = int(config["task.gap_min"])
    return least, least if config["task.gap_law"] == "constant" else int(config["task.gap_max"])


def _profile(ranking: Ranking) -> str:
    tasks = ranking.standings
    series: dict[str, list[float | None]] = {ranking.label: [each.accuracy for each in tasks]}
    for model in ranking.nearest:
        series[model] = [next((a.accuracy for a in each.against if a.model == model), None) for each in tasks]
    references = {"ceiling": [each.ceiling for each in tasks], "n-gram": [each.n_gram for each in tasks]}
    ticks = [f"{each.task}\n{_short(each.task)}" if isinstance(each.task, int) else str(each.task) for each in tasks]
    return line_chart("Accuracy by task", "task", ticks, series, _known(references))


def _short(task: TaskName) -> str:
    """The last word of a task's name, which fits below its place."""
    return task_title(task).split()[-1]


def _by_axis(ranking: Ranking, standing: Standing, trained: TaskName, name: str, label: str) -> str:
    """Accuracy along the test axis of a task."""
    points = sorted({int(point) for (of, _), row in ranking.runs.items() if of == trained for point in row["grid"]})
    series = {
        model: [_mean([row["grid"].get(str(point)) for row in rows]) for point in points]
        for model, rows in _rows(ranking, trained, standing.seeds)
    }
    band: tuple[str, int] | None = None
    if trained == 2:
        least, most = trained_gaps(ranking)
        band = (f"trained: {least} to {most}", sum(point <= most for point in points))
    title = f"{_title(standing.task)}: accuracy by {name}"
    return line_chart(title, label, [str(point) for point in points], series, _means(standing, len(points)), band)


def _by_position(ranking: Ranking, standing: Standing) -> str:
    places = range(max(len(ranking.runs[standing.task, seed]["by_position"]) for seed in standing.seeds))
    series = {
        name: [_mean([_at(row["by_position"], place) for row in rows]) for place in places]
        for name, rows in _rows(ranking, standing.task, standing.seeds)
    }
    ticks = [str(place) for place in places]
    title = f"{_title(standing.task)}: accuracy by position"
    return line_chart(title, "position of the element in the sample", ticks, series, _means(standing, len(places)))


def _by_certainty(ranking: Ranking, standing: Standing) -> str:
    """No n-gram and no ceiling: both are known only as means over all bins."""
    bins = entropy_bins(ranking, standing)
    rows = _rows(ranking, standing.task, standing.seeds)
    series = {name: [_mean_in_bin(found, low) for low in bins] for name, found in rows}
    ticks = [f"{low:g}\n{_brief(count)}" for low, count in bins.items()]
    title = f"{_title(standing.task)}: accuracy by certainty"
    return line_chart(title, "lower bound of the filter's entropy, in nats; below: number of elements", ticks, series)


def _brief(count: int) -> str:
    return f"{count}" if count < 1000 else f"{count / 1000:.1f}k" if count < 10000 else f"{count / 1000:.0f}k"


def _title(task: TaskName) -> str:
    return f"Task {task}, {task_title(task)}" if isinstance(task, int) else f"Task {task}"


def _means(standing: Standing, places: int) -> dict[str, list[float | None]]:
    """The task's mean ceiling and n-gram, the same at every place."""
    return _known({"ceiling, mean": [standing.ceiling] * places, "n-gram, mean": [standing.n_gram] * places})


def _known(references: dict[str, list[float | None]]) -> dict[str, list[float | None]]:
    return {name: values for name, values in references.items() if any(value is not None for value in values)}


def _rows(ranking: Ranking, task: TaskName, seeds: list[int]) -> list[tuple[str, list[Any]]]:
    """Rows of the mixer and of the nearest models with runs of this task, on these grammars."""
    models = [model for model in ranking.nearest if model in ranking.peers.models(task)]
    mine: list[Any] = [ranking.runs[task, seed] for seed in seeds]
    theirs = [(model, [row for seed in seeds for row in ranking.peers.runs_of(task, model, seed)]) for model in models]
    return [(ranking.label, mine), *theirs]


def _at(values: list[float | None], place: int) -> float | None:
    return values[place] if place < len(values) else None


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _mean_in_bin(rows: list[Any], low: float) -> float | None:
    """Accuracy over all elements of a bin."""
    found = [(accuracy, count) for row in rows for at, accuracy, count in row.get("by_entropy", []) if abs(at - low) < 1e-9]
    total = sum(count for _, count in found)
    return sum(accuracy * count for accuracy, count in found) / total if total else None
