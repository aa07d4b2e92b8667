"""Figures as Vega-Lite specifications, which ``altair.Chart.from_dict(spec)``, notebooks and web pages draw."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._checks import mapping
from .evaluation import Evaluation
from .results import Bin, Measurement, Run

Measured = Mapping[str, "Run | Evaluation | Measurement"]
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def by_position(measured: Measured) -> dict[str, Any]:
    """Accuracy by the element's position in the sample, one line per name.

    >>> import numpy as np
    >>> import selectivbench as sb
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> found = sb.evaluate(lambda b: np.zeros((*b.shape[:2], 10)), task, samples=9, valid_samples=0, ceiling_samples=0)
    >>> spec = sb.figures.by_position({"nothing": found})
    >>> spec["mark"]["type"], len(spec["data"]["values"])
    ('line', 20)
    """
    rows = [
        {"name": name, "position": place, "accuracy": accuracy}
        for name, each in mapping("figures", "measured", measured).items()
        for place, accuracy in enumerate(_test(name, each).by_position)
        if accuracy is not None
    ]
    return _lines(rows, "position", "element", "Accuracy by position")


def by_gap_frame(measured: Measured) -> dict[str, Any]:
    """Accuracy of single frames by their position in the gap; 0 is the data frame."""
    return _binned(measured, "by_gap_frame", "frame of the gap", "Accuracy by gap frame")


def by_since_certain(measured: Measured) -> dict[str, Any]:
    """Accuracy by the number of elements since the exact filter was last certain."""
    return _binned(measured, "by_since_certain", "elements since the state was certain", "Accuracy by certainty")


def by_entropy(measured: Measured) -> dict[str, Any]:
    """Accuracy by the entropy of the exact filter's belief, in nats."""
    return _binned(measured, "by_entropy", "entropy of the filter's belief, nats", "Accuracy by entropy")


def by_gap(measured: Mapping[str, Run | Evaluation]) -> dict[str, Any]:
    """Accuracy on test by gap length, one line per name, and the ceiling. Also works for other test axes and for squared error."""
    rows: list[dict[str, Any]] = []
    axes: set[str] = set()
    metrics: set[str] = set()
    for name, each in mapping("figures", "measured", measured).items():
        if not isinstance(each, (Run, Evaluation)) or not each.grid:
            raise ValueError(f"[figures] {name}, expected a run or an evaluation with points of a test axis, got {_kind(each)}")
        for point in each.grid:
            metric, axis = "accuracy" if point.mse is None else "mse", point.axis or "gap"
            metrics.add(metric)
            axes.add(axis)
            rows.append({"name": name, axis: point.point, metric: getattr(point, metric)})
            best = point.ceiling and {"name": "ceiling", axis: point.point, metric: getattr(point.ceiling, metric)}
            if best and best not in rows:  # models of one task share a ceiling
                rows.append(best)
    for what, found in (("test axis", axes), ("metric", metrics)):
        if len(found) > 1:
            raise ValueError(f"[figures] measured, expected one {what}, got {' and '.join(sorted(found))}")
    axis, metric = axes.pop() if axes else "gap", metrics.pop() if metrics else "accuracy"
    what = "Accuracy" if metric == "accuracy" else "Squared error"
    if axis == "gap":
        return _lines(rows, "gap", "gap length, frames", f"{what} by gap length", metric)
    return _lines(rows, axis, axis, f"{what} by {axis}", metric)


def _test(name: str, each: Run | Evaluation | Measurement) -> Measurement:
    found = each.test if isinstance(each, (Run, Evaluation)) else each
    if isinstance(found, Measurement) and found.mse is not None:
        raise ValueError(f"[figures] {name}, expected accuracies, got squared errors")
    if not isinstance(found, Measurement):
        raise ValueError(f"[figures] {name}, expected a measurement, or a run or evaluation with one on test, got {_kind(each)}")
    return found


def _kind(each: Any) -> str:
    return f"a {type(each).__name__} without" if isinstance(each, (Run, Evaluation)) else type(each).__name__


def _binned(measured: Measured, key: str, axis: str, title: str) -> dict[str, Any]:
    rows = []
    for name, each in mapping("figures", "measured", measured).items():
        bins: list[Bin] = getattr(_test(name, each), key)
        rows += [{"name": name, "from": bin.low, "accuracy": bin.accuracy, "count": bin.count} for bin in bins]
    return _lines(rows, "from", axis, title)


def _lines(rows: list[dict[str, Any]], x: str, axis: str, title: str, metric: str = "accuracy") -> dict[str, Any]:
    squared = metric == "mse"
    y: dict[str, Any] = {"field": metric, "type": "quantitative", "title": "squared error" if squared else "accuracy"}
    y["scale"] = {"zero": True} if squared else {"domain": [0, 1]}
    return {
        "$schema": _SCHEMA,
        "title": title,
        "data": {"values": rows},
        "mark": {"type": "line", "point": True, "tooltip": True},
        "encoding": {
            "x": {"field": x, "type": "quantitative", "title": axis},
            "y": y,
            "color": {"field": "name", "type": "nominal", "title": None},
        },
    }
