"""Frozen results of the program's models, which a new mixer is compared with: one JSON file per scale."""
from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Union

from . import _native
from ._checks import path, shown
from .config import Config, config_file
from .results import Run, load_runs

FORMAT = 2
TaskName = Union[int, str]  # number of one of the paper's tasks, else the name of a kind
LEAST_GRAMMARS = 2  # of a ranking: an interval needs two
BEYOND = 2  # a network has at most this multiple of the scale's parameters
CHOICE_SEED = 11  # the grammar on which rates are chosen; no table reports it
_ORDER: tuple[TaskName, ...] = (1, 3, 2)  # tasks by what they cost
SWITCH = "model.switch "
_FOLDER = pathlib.Path(__file__).parent / "frozen"
# What may differ between the models of a task: the model itself, its rate, and the seeds.
OWN = ("train.lr", "train.seed", "train.device", "train.accumulate", "train.dropout_until", "grammar.seed", "format")


@dataclass(frozen=True)
class Peers:
    """Runs of a scale, and the settings that all of them share. ``protocol``: of all runs.

    ``settings``: by task, as :class:`Config` takes them. ``runs``: one dict per run. ``target``: number of parameters that widths are
    chosen for, among multiples of ``step``. ``rates``: learning rates to choose from. ``source``: name or file they were read from.
    """

    scale: str
    version: str
    protocol: str
    layers: int
    target: int
    step: int
    rates: list[float]
    settings: dict[TaskName, dict[str, Any]]
    runs: list[dict[str, Any]] = field(repr=False)
    source: str = ""

    @property
    def tasks(self) -> list[TaskName]:
        """The tasks in the order in which they are trained."""
        return sorted(self.settings, key=lambda task: (_ORDER.index(task) if task in _ORDER else len(_ORDER), str(task)))

    def of(self, task: TaskName | None) -> Peers:
        """The same runs for a ranking on one task, by its number or the name of its kind. None: on the paper's tasks."""
        if task is None:
            chosen = [each for each in self.tasks if isinstance(each, int)] or self.tasks
            if len(chosen) > 1 and not isinstance(chosen[0], int):
                raise ValueError(f"[rank] task, expected one of {', '.join(map(str, chosen))}, the tasks of {self.source}")
        else:
            chosen = [each for each in self.tasks if str(each) == str(task)]
        if not chosen:
            kinds = _native.task_kinds()
            if str(task) not in kinds and str(task) not in ("1", "2", "3", "4"):
                import difflib

                near = difflib.get_close_matches(str(task), kinds, 1)
                raise ValueError(
                    f"[rank] task, expected 1 to 4 or a kind of task, {', '.join(sorted(kinds))}, got {shown(task)}"
                    + (f", did you mean {near[0]}?" if near else "")
                )
            if str(task) == "4" and 2 in self.tasks:
                raise ValueError("[rank] task 4 is measured with task 2, at longer gaps: rank on task 2")
            if kinds.get(str(task)):
                raise ValueError(f"[rank] task {task} is scored by squared error and cannot be ranked: ranks compare accuracies")
            raise ValueError(
                f"[rank] task, no results of {shown(task)} to compare with at scale {self.scale}, which has {', '.join(sorted(map(str, self.tasks)))}; "
                "train models on it, and name the file that `freeze` writes with peers= (docs/rank.md)"
            )
        runs = [run for run in self.runs if run["task"] in chosen]
        return replace(self, settings={each: self.settings[each] for each in chosen}, runs=runs)

    def models(self, task: TaskName) -> list[str]:
        """Names of the models with runs of this task."""
        return sorted({run["model"] for run in self.runs if run["task"] == task})

    def seeds(self, task: TaskName) -> list[int]:
        """Grammars on which every model of the task has a run."""
        have = [{run["grammar_seed"] for run in self.runs_of(task, model)} for model in self.models(task)]
        return sorted(set.intersection(*have)) if have else []

    def runs_of(self, task: TaskName, model: str, seed: int | None = None) -> list[dict[str, Any]]:
        """Runs of a model on a task, on one grammar or on all."""
        return [
            run
            for run in self.runs
            if run["task"] == task and run["model"] == model and seed in (None, run["grammar_seed"])
        ]

    def config(self, task: TaskName, seed: int, **other: Any) -> Config:
        """The config of a run on a grammar; keywords name keys with ``__`` for the dot."""
        own = {key.replace("__", "."): value for key, value in other.items()}
        seeds = {"grammar.seed": seed, "train.seed": seed, "model.layers": self.layers}
        found = {**self.settings[task], **seeds, **own}
        if found.get("train.precision") in ("amp", "tf32"):  # which only a GPU has
            found["train.device"] = "cuda"
        return Config(found)


def scales() -> list[str]:
    """Scales whose frozen results come with the package.

    >>> from selectivbench.peers import scales
    >>> "quick" in scales()
    True
    """
    return sorted(file.stem for file in _FOLDER.glob("*.json"))


def load_peers(scale: str | os.PathLike[str] = "quick") -> Peers:
    """The frozen results of a scale, or of a file that :func:`freeze` wrote.

    >>> from selectivbench.peers import load_peers
    >>> load_peers().seeds(1)[:1], load_peers().target
    ([1], 84000)
    """
    name = path("peers", scale)
    file = _FOLDER / f"{name}.json" if name in scales() else pathlib.Path(name)
    try:
        found = json.loads(file.read_text())
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}, expected {FORMAT}")
        settings = {int(task) if task.isdigit() else task: values for task, values in found["settings"].items()}
        same = ("scale", "version", "protocol", "layers", "target", "step", "rates", "runs")
        return Peers(settings=settings, source=name, **{key: found[key] for key in same})
    except FileNotFoundError:
        raise ValueError(f"[peers] expected {' or '.join(scales())} or a file, got {shown(name)}") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"[peers] {file} is not a file of frozen results: {error}") from None


def freeze(roots: Iterable[str | os.PathLike[str]], scale_file: str | os.PathLike[str]) -> str:
    """The JSON of the program's runs in these folders and archives. ``scale_file``: configs/scales/NAME.toml.

    All runs of a task must share every setting except the model, its learning rate, and the seeds, and have the corrected protocol and
    accuracies. Collapsed runs are left out. Needs Python 3.11.
    """
    import tomllib

    given = path("freeze", scale_file)
    scale_file = config_file("freeze", given)
    with open(scale_file, "rb") as file:
        scale = tomllib.load(file)
    if "match_target" not in scale.get("suite", {}):
        raise ValueError(f"[freeze] expected the file of a scale, such as scales/quick, got {shown(given)}")
    runs = [run for run in load_runs(*roots) if run.status == "done" and not run.external and run.test is not None]
    runs = [run for run in runs if run.grammar_seed != CHOICE_SEED and not collapsed(run)]
    if not runs:
        raise ValueError("[freeze] expected finished runs of the program's models, got none")
    settings: dict[TaskName, dict[str, Any]] = {}
    for run in runs:
        _expect_rankable(run)
        mine = _shared(run)
        first = settings.setdefault(_task(run), mine)
        for key in sorted(set(first) | set(mine)):
            if first.get(key) != mine.get(key):
                raise ValueError(
                    f"[freeze] {key} differs between runs of task {_task(run)}: {first.get(key)} and {mine.get(key)} (run {run.run_id})"
                )
    layers = {run.layers for run in runs}
    if len(layers) != 1:
        raise ValueError(f"[freeze] expected one number of layers, got {sorted(layers)}")
    suite = scale["suite"]
    out = {
        "format": FORMAT,
        "scale": pathlib.Path(path("freeze", scale_file)).stem,
        "version": _native.version,
        "protocol": "corrected",
        "layers": layers.pop(),
        "target": suite["match_target"],
        "step": suite.get("match_step", 1),
        "rates": scale["sweep"]["train.lr"] if "train.lr" in scale["sweep"] else scale["sweep"]["train"]["lr"],
        "settings": {str(task): settings[task] for task in sorted(settings, key=str)},
        "runs": [_row(run) for run in sorted(runs, key=lambda run: (str(_task(run)), run.model, run.grammar_seed, run.train_seed))],
    }
    # One line per run: a new seed is a readable change.
    rows = ",\n".join("  " + json.dumps(row) for row in out.pop("runs"))
    return json.dumps(out, indent=1)[:-2] + ',\n "runs": [\n' + rows + "\n ]\n}\n"


def _task(run: Run) -> TaskName:
    return run.task if run.kind == "gaps" else run.kind


def collapsed(run: Run) -> bool:
    """Whether training failed: the accuracy is less than 1 point above that of the 1-gram."""
    baselines = run.data.get("baselines")
    if run.test is None or run.test.mse is not None or not baselines or not baselines.get("n_gram"):
        return False
    return bool(run.test.accuracy <= baselines["n_gram"][0] + 0.01)


def _expect_rankable(run: Run) -> None:
    for key, value in run.config.items():
        if key.startswith("quirks.") and json.loads(value) is not False:
            raise ValueError(f"[freeze] run {run.run_id}: {key}, expected false as in the corrected protocol, got {value}")
    if run.test is not None and run.test.mse is not None:
        raise ValueError(f"[freeze] run {run.run_id}: task {_task(run)} is scored by squared error; ranks need accuracies")


def _shared(run: Run) -> dict[str, Any]:
    values = {key: json.loads(value) for key, value in run.config.items()}
    return {key: values[key] for key in sorted(values) if key not in OWN and not key.startswith(("model.", "quirks.", "run."))}


def _row(run: Run) -> dict[str, Any]:
    assert run.test is not None
    baselines, ceiling = run.data.get("baselines"), run.test.ceiling
    return {
        "model": run.model,
        "task": _task(run),
        "grammar_seed": run.grammar_seed,
        "train_seed": run.train_seed,
        "run_id": run.run_id,
        "version": run.data["made"]["version"],
        "device": run.data["device"],
        "precision": run.data["precision"],
        "residual": json.loads(run.config["model.residual"]),
        "switches": {key[len(SWITCH) :]: json.loads(value) for key, value in sorted(run.config.items()) if key.startswith(SWITCH)},
        "lr": run.lr,
        "width": run.width,
        "params": run.params,
        "state_size": run.data.get("state_size"),
        "accuracy": run.test.accuracy,
        "stderr": run.test.stderr,
        "ceiling": ceiling.accuracy if ceiling else None,
        "n_gram": baselines["n_gram"][baselines["n"] - 1] if baselines else None,
        "n": baselines["n"] if baselines else None,
        "grid": {str(point.point): point.accuracy for point in run.grid},
        "by_position": [None if value is None else round(value, 4) for value in run.test.by_position],
        "by_entropy": [[bin.low, round(bin.accuracy, 4), bin.count] for bin in run.test.by_entropy],
    }
