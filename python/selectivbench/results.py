"""Measurements and runs: the fields of result.json. Values that were not measured are None or empty."""
from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _native
from ._checks import path, shown

if TYPE_CHECKING:
    import numpy as np
    import pandas
    from numpy.typing import NDArray

EXTERNAL = " (external)"


@dataclass(frozen=True)
class CeilingFigure:
    """The ceiling for the same split, task and gap. With squared error, ``mse`` instead of the accuracies, which are nan."""

    stderr: float
    exact: bool
    samples: int
    accuracy: float = math.nan
    upper_bound: float = math.nan
    kl: float | None = None
    mse: float | None = None


@dataclass(frozen=True)
class Bin:
    """Accuracy in a bin that begins at ``low``."""

    low: float
    accuracy: float
    count: int


@dataclass(frozen=True)
class Confusion:
    """Counts of answers for elements of one symbol."""

    symbol: int
    right: int
    same_symbol: int
    other_symbol: int


@dataclass(frozen=True)
class Measurement:
    """Result of one pass over a split, as in result.json; ``text`` is the JSON. Made by :meth:`Score.result`.

    Tasks with squared error have ``mse``, and nan as accuracy. ``gap``, or ``at`` on another ``axis``, is the value of the task's
    test axis.
    """

    split: str
    samples: int
    elements: int
    frames: int
    stderr: float
    loss: float
    accuracy: float = math.nan
    mse: float | None = None
    gap: int | None = None
    axis: str | None = None
    at: int | None = None
    kl: float | None = None
    ceiling: CeilingFigure | None = None
    by_position: list[float | None] = field(default_factory=list)
    by_gap_frame: list[Bin] = field(default_factory=list)
    by_since_certain: list[Bin] = field(default_factory=list)
    by_entropy: list[Bin] = field(default_factory=list)
    confusion: list[Confusion] = field(default_factory=list)
    text: str = field(default="", repr=False)

    @classmethod
    def from_json(cls, text: str) -> Measurement:
        """A measurement from its JSON."""
        return cls._from_dict(json.loads(text), text)

    @classmethod
    def _from_dict(cls, found: dict[str, Any], text: str | None = None) -> Measurement:
        parts = dict(found)
        if "ceiling" in parts:
            parts["ceiling"] = CeilingFigure(**parts["ceiling"])
        for key in ("by_gap_frame", "by_since_certain", "by_entropy"):
            parts[key] = [Bin(bin["from"], bin["accuracy"], bin["count"]) for bin in parts.get(key, [])]
        parts["confusion"] = [Confusion(**each) for each in parts.get("confusion", [])]
        return cls(**parts, text=json.dumps(found) if text is None else text)

    def to_dict(self) -> dict[str, Any]:
        """The fields of result.json."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def fraction(self) -> float | None:
        """Accuracy divided by the ceiling; None unless the ceiling is exact."""
        if self.mse is not None:
            return None
        best = self.ceiling.accuracy if self.ceiling is not None and self.ceiling.exact else 0.0
        return self.accuracy / best if best > 0 else None

    @property
    def point(self) -> int | None:
        """Value of the task's test axis; None for a measurement of the task itself."""
        return self.gap if self.axis is None else self.at

    def __str__(self) -> str:
        if self.mse is not None:
            bound = "" if self.ceiling is None else f", bound {self.ceiling.mse:.4f}"
            return f"squared error {self.mse:.4f} (s.e. {self.stderr:.4f}) over {self.samples} samples{bound}"
        out = f"accuracy {self.accuracy:.4f} (s.e. {self.stderr:.4f}) over {self.samples} samples, loss {self.loss:.4f}"
        if self.kl is not None:
            out += f", KL {self.kl:.4f}"
        if self.ceiling is not None:
            best = self.ceiling.accuracy if self.ceiling.exact else self.ceiling.upper_bound
            out += f", {'ceiling' if self.ceiling.exact else 'upper bound'} {best:.4f}"
        return out


@dataclass(frozen=True)
class Run:
    """A finished run; ``data`` holds every field of its result.json except the recorded samples."""

    folder: str
    run_id: str
    status: str
    model: str
    task: int
    objective: str
    label: str
    width: int
    layers: int
    params: int
    lr: float
    updates: int
    run_seed: int
    grammar_seed: int
    train_seed: int
    test: Measurement | None
    valid: Measurement | None
    grid: list[Measurement]
    saved: list[Measurement]
    config: dict[str, str]
    data: dict[str, Any] = field(repr=False)

    @property
    def external(self) -> bool:
        """Whether :func:`record` wrote this run."""
        return self.model.endswith(EXTERNAL)

    @property
    def kind(self) -> str:
        """Kind of the task: gaps, copying, ..."""
        kind: str = json.loads(self.config.get("task.kind", '"gaps"'))
        return kind

    def row(self) -> dict[str, Any]:
        """One line of :meth:`Runs.to_frame`. Runs with squared error have ``mse``, ``bound_mse`` and ``valid_mse``; accuracies are nan."""
        test, ceiling = self.test, self.test.ceiling if self.test else None
        return {
            "run_id": self.run_id,
            "model": self.model,
            "external": self.external,
            "task": self.task if self.kind == "gaps" else self.kind,
            "objective": self.objective,
            "status": self.status,
            "width": self.width,
            "layers": self.layers,
            "params": self.params,
            "lr": self.lr,
            "updates": self.updates,
            "grammar_seed": self.grammar_seed,
            "train_seed": self.train_seed,
            "accuracy": test.accuracy if test else None,
            "mse": test.mse if test else None,
            "stderr": test.stderr if test else None,
            "loss": test.loss if test else None,
            "kl": test.kl if test else None,
            "ceiling": ceiling.accuracy if ceiling else None,
            "bound_mse": ceiling.mse if ceiling else None,
            "fraction": test.fraction if test else None,
            "valid_accuracy": self.valid.accuracy if self.valid else None,
            "valid_mse": self.valid.mse if self.valid else None,
            "folder": self.folder,
        }


class Runs(list[Run]):
    """List of finished runs; ``notes`` lists excluded runs and the reasons. A subset: ``sb.Runs(run for run in runs if …)``."""

    def __init__(self, runs: Iterable[Run] = (), notes: Iterable[str] = ()) -> None:
        super().__init__(runs)
        self.notes = list(notes)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table with one line per run."""
        import pandas

        return pandas.DataFrame([run.row() for run in self])


def _run(folder: str, text: str, saved: list[str]) -> Run:
    data: dict[str, Any] = json.loads(text)
    same = (
        "run_id status model task objective label width layers params lr updates run_seed grammar_seed train_seed config"
    ).split()

    def one(key: str) -> Measurement | None:
        return Measurement._from_dict(data[key]) if key in data else None

    return Run(
        folder=folder,
        test=one("test"),
        valid=one("valid"),
        grid=[Measurement._from_dict(point) for point in data.get("grid", [])],
        saved=[Measurement.from_json(point) for point in saved],
        data=data,
        **{key: data[key] for key in same},
    )


def load_runs(*roots: str | os.PathLike[str]) -> Runs:
    """Reads all finished runs in these folders and archives, and checks each as the program does.

    >>> import selectivbench as sb, tempfile
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     sb.load_runs(empty)
    []
    """
    if not roots:
        raise ValueError("[runs] expected folders or archives, got none")
    found, notes = _native.load_runs([path("runs", root) for root in roots])
    return Runs((_run(*each) for each in found), notes)


def load_weights(run: Run | str | os.PathLike[str]) -> dict[str, NDArray[np.generic]]:
    """Weights of a finished run by name, after checking their checksum and run id. bfloat16 is converted to float32."""
    return _native.load_weights(run.folder if isinstance(run, Run) else path("weights", run))


def table(roots: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str = "text", *, per_run: bool = False) -> str:
    """The table of ``selectivbench table`` of a folder or archive, or of several: text, md, csv, json or latex.

    >>> import selectivbench as sb
    >>> sb.table([])
    Traceback (most recent call last):
    ValueError: [table] expected folders or archives, got none
    """
    if not isinstance(format, str):
        raise ValueError(f"[table.format] expected text, md, csv, json or latex, got {shown(format)}")
    several = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots)
    if not several:
        raise ValueError("[table] expected folders or archives, got none")
    return _native.table([path("table", root) for root in several], format, bool(per_run))
