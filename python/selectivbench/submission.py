"""Submissions: a ranked mixer as a folder for a pull request, and the check that scores its predictions again.

The folder holds the runs (configs and results), the predicted state of every test element, the card and, if its author agrees, the
source of the mixer. The check trusts none of them: it draws the test samples of the shipped scale and scores the predictions. How the
mixer was trained is self-reported.
"""
from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import re
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from ._checks import path, shown, text
from .card import as_html
from .config import Config
from .peers import BEYOND, LEAST_GRAMMARS, Peers, TaskName, load_peers, scales
from .ranked import Ranking, digest_of, make_ranking, row_of
from .results import EXTERNAL, Measurement, Run, Runs, load_runs
from .score import Score
from .task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = 1
INDEX, RUNS, PREDICTIONS, CARD, SOURCE = "submission.json", "runs.tar.gz", "predictions.npz", "card.html", "mixer.py"
_MOST_BYTES = {INDEX: 2**18, RUNS: 2**23, PREDICTIONS: 2**24, CARD: 2**21, SOURCE: 2**18}
_MOST_UNPACKED = 2**27  # bytes of predictions
_BATCH = 8  # samples scored at a time
_NOT_PREDICTED = ("loss", "kl", "by_gap_frame")  # follow from every frame's probabilities, which are not stored
# Settings that a ranking chooses, and those that change no number.
_FREE = ("train.lr", "train.device", "train.accumulate", "train.dropout_until", "eval.batch", "eval.chunk", "eval.every")
_SEAL = re.compile(r'"sha256":"([0-9a-f]{64})"')


@dataclass(frozen=True)
class Submission:
    """A checked submission."""

    folder: pathlib.Path
    ranking: Ranking
    runs: Runs

    def __str__(self) -> str:
        return (
            f"{self.folder}: {self.ranking.name}, {len(self.runs)} runs at scale {self.ranking.peers.scale}; the predictions reproduce "
            "the recorded numbers, training is self-reported"
        )


def submit(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, source: str | os.PathLike[str] | None = None) -> Submission:
    """Packs the folder of a finished ranking and checks the result. ``source``: file of the mixer, published with it."""
    root = pathlib.Path(path("submit", folder))
    if not (root / "ranking.json").is_file():
        raise ValueError(f"[submit] {root} holds no finished ranking; selectivbench rank --out {root} makes one")
    ranked = json.loads((root / "ranking.json").read_text())
    name, facts = text("submit", "name", ranked["name"], 80), ranked["facts"]
    if facts["scale"] not in scales() or facts["identity"]["peers"] != digest_of(load_peers(facts["scale"])):
        raise ValueError(f"[submit] {root} was not ranked against the shipped results ({', '.join(scales())})")
    target = pathlib.Path("submissions", _slug(name)) if out is None else pathlib.Path(path("submit", out))
    _folder_name(target)
    if target.exists():
        raise ValueError(f"[submit] {target} exists; delete it, or name another folder with --out")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".submission-", dir=target.parent) as temporary:
        made = pathlib.Path(temporary, "made")
        made.mkdir()
        left_out = _native.pack(str(root / "runs"), str(made / RUNS))
        if left_out:
            raise ValueError(f"[submit] {left_out[0]}")
        (made / PREDICTIONS).write_bytes(_collected(root, load_runs(made / RUNS)))
        if source is not None:
            (made / SOURCE).write_bytes(_source(path("submit", source), facts))
        peers = load_peers(facts["scale"])
        (made / CARD).write_text(as_html(make_ranking(name, peers, facts, _rows(load_runs(made / RUNS)))), encoding="utf-8")
        _seal(made, {"format": FORMAT, "name": name, "facts": facts})
        _checked(made, target)
        os.replace(made, target)
    return check(target)


def _source(file: str, facts: Mapping[str, Any]) -> bytes:
    """The file of the mixer, which must be the one that was ranked."""
    try:
        content = pathlib.Path(file).read_bytes()
    except OSError as error:
        raise ValueError(f"[submit] cannot read {file}: {error.strerror}") from None
    if facts.get("source_sha256") not in (None, _digest(content)):
        raise ValueError(f"[submit] {file} is not the file that defined the mixer when it was ranked: its SHA-256 differs")
    return content


def check(folder: str | os.PathLike[str]) -> Submission:
    """Checks seals, protocol and card, and scores the predictions again; a ValueError of one line says what is wrong."""
    root = pathlib.Path(path("submit", folder))
    _folder_name(root)
    return _checked(root, root)


def redraw(folder: str | os.PathLike[str]) -> Submission:
    """Checks all but the card, and draws that again: ranks change with the shipped results."""
    root = pathlib.Path(path("submit", folder))
    _folder_name(root)
    found = _checked(root, root, card=False)
    (root / CARD).write_text(as_html(found.ranking), encoding="utf-8")
    index = json.loads((root / INDEX).read_text())
    _seal(root, {key: index[key] for key in ("format", "name", "facts")})
    return check(root)


def _checked(root: pathlib.Path, shown_as: pathlib.Path, card: bool = True) -> Submission:
    """Errors name ``shown_as``."""
    try:
        return _check(root, card)
    except Exception as error:  # whatever a hostile file makes a reader do
        said = str(error).strip().partition("\n")[0].replace(f"{root}{os.sep}", "")
        if not isinstance(error, (OSError, ValueError)):  # a file with other fields or types than we write
            said = f"malformed: {type(error).__name__}: {said}"
        raise ValueError(f"[submit] {shown_as}: {said}") from error


def _check(root: pathlib.Path, card: bool) -> Submission:
    index = _opened(root)
    name, facts = text("submit", "name", index["name"], 80), index["facts"]
    if facts["scale"] not in scales():
        raise ValueError(f"scale, expected {' or '.join(scales())}, got {shown(facts['scale'])}")
    peers = load_peers(facts["scale"])
    runs = load_runs(root / RUNS)
    if runs.notes:
        raise ValueError(runs.notes[0])
    predicted = _predictions(root / PREDICTIONS)
    for run in runs:
        config = _protocol(run, name, facts, peers)
        _score_again(run, config, predicted)
    if predicted:
        raise ValueError(f"{PREDICTIONS}: {min(predicted)} belongs to no run")
    _complete(runs, facts, peers)
    ranking = make_ranking(name, peers, facts, _rows(runs))
    if card and (root / CARD).read_text(encoding="utf-8") != as_html(ranking):
        raise ValueError(f"{CARD} is not the card of these runs; selectivbench submit --card draws it again")
    return Submission(root, ranking, runs)


def _opened(root: pathlib.Path) -> dict[str, Any]:
    """The sealed index of a folder whose files are those it names."""
    if not (root / INDEX).is_file():
        raise ValueError(f"no {INDEX}; selectivbench submit makes the folder")
    for file in sorted(root.iterdir()):
        if file.name not in _MOST_BYTES or file.is_symlink() or not file.is_file():
            raise ValueError(f"{file.name}, expected only the files {', '.join(_MOST_BYTES)}")
        if file.stat().st_size > _MOST_BYTES[file.name]:
            raise ValueError(f"{file.name}, expected at most {_MOST_BYTES[file.name]:,} bytes, got {file.stat().st_size:,}")
    content = (root / INDEX).read_text(encoding="utf-8")
    seals = _SEAL.findall(content)
    if len(seals) != 1 or seals[0] != _digest(_SEAL.sub(_blank(), content).encode()):
        raise ValueError(f"{INDEX}: SHA-256 mismatch")
    index: dict[str, Any] = json.loads(content)
    if index["format"] != FORMAT:
        raise ValueError(f"{INDEX}: format, expected {FORMAT}, got {shown(index['format'])}")
    found = {file.name for file in root.iterdir()} - {INDEX}
    if found != set(index["files"]) or not {RUNS, PREDICTIONS, CARD} <= found:
        raise ValueError(f"{INDEX} names the files {', '.join(sorted(index['files']))}, got {', '.join(sorted(found))}")
    for file_name, digest in index["files"].items():
        if _digest((root / file_name).read_bytes()) != digest:
            raise ValueError(f"{file_name}: SHA-256 mismatch")
    if SOURCE in found:
        (root / SOURCE).read_text(encoding="utf-8")
        if index["facts"].get("source_sha256") not in (None, index["files"][SOURCE]):
            raise ValueError(f"{SOURCE} is not the file that defined the mixer: its SHA-256 differs")
    return index


def _protocol(run: Run, name: str, facts: Mapping[str, Any], peers: Peers) -> Config:
    """The config that the scale gives this run; the run's own must agree with it."""
    where = f"task {run.task}, grammar {run.grammar_seed}"
    if run.task not in peers.settings or run.grammar_seed not in peers.seeds(run.task):
        raise ValueError(f"{where}, expected a task and a grammar of scale {peers.scale}")
    config = peers.config(run.task, run.grammar_seed)
    for key, value in run.config.items():
        if key.startswith("quirks.") and json.loads(value) is not False:
            raise ValueError(f"{where}: {key}, expected false as in the corrected protocol, got {value}")
        if key.startswith(("grammar.", "task.", "train.", "eval.")) and key not in _FREE and config[key] != json.loads(value):
            raise ValueError(f"{where}: {key}, expected {json.dumps(config[key])} at scale {peers.scale}, got {shown(json.loads(value))}")
    for what, expected, got in (
        ("model", name + EXTERNAL, run.model),
        ("status", "done", run.status),
        ("layers", peers.layers, run.layers),
        ("learning rate", facts["rate"], run.lr),
        ("width", facts["width"], run.width),
        ("parameters", facts["parameters"], run.params),
        ("state size", facts["state_size"], run.data.get("state_size")),
    ):
        if expected != got:
            raise ValueError(f"{where}: {what}, expected {shown(expected)}, got {shown(got)}")
    if run.lr not in peers.rates:
        raise ValueError(f"{where}: learning rate, expected one of {', '.join(map(str, peers.rates))}, got {run.lr:g}")
    if not peers.target <= BEYOND * run.params <= BEYOND**2 * peers.target:
        raise ValueError(f"{where}: parameters, expected about {peers.target:,}, got {run.params:,}")
    return config


def _score_again(run: Run, config: Config, predicted: dict[str, NDArray[Any]]) -> None:
    """Takes the run's predictions out of ``predicted`` and compares their score with the run's result."""
    if run.test is None or run.valid is None:
        raise ValueError(f"run {run.run_id} has no test or no valid accuracy")
    evals, gaps = config.values["eval"], [point.point for point in run.grid]
    if gaps != evals["gaps"]:
        raise ValueError(f"run {run.run_id}: gaps, expected {evals['gaps']}, got {gaps}")
    _compare(run, run.test, config.task, evals["test_samples"], evals["ceiling_samples"], predicted)
    for point, gap in zip(run.grid, evals["gaps"]):
        _compare(run, point, config.task.at(gap), evals["grid_samples"], evals["ceiling_samples"], predicted)


def _compare(
    run: Run, recorded: Measurement, task: Task, samples: int, ceiling_samples: int, predicted: dict[str, NDArray[Any]]
) -> None:
    key = _key(run, recorded.point)
    answers = predicted.pop(key, None)
    if answers is None:
        raise ValueError(f"{PREDICTIONS}: {key} is missing")
    if answers.dtype.kind != "i" or answers.shape != (samples, task.length):
        raise ValueError(f"{PREDICTIONS}: {key}, expected integers of shape {[samples, task.length]}, got {answers.dtype} of {list(answers.shape)}")
    if answers.min() < 0 or answers.max() >= task.answers:
        raise ValueError(f"{PREDICTIONS}: {key}, expected states 0..{task.answers - 1}, got {answers.min()}..{answers.max()}")
    found = score_answers(task, answers, ceiling_samples, breakdowns=recorded.point is None).to_dict()
    said = recorded.to_dict()
    for field in sorted(set(found) | set(said)):
        if field not in _NOT_PREDICTED and not _same(found.get(field), said.get(field)):
            raise ValueError(f"{key}: {field}, the predictions give {shown(found.get(field))}, the run says {shown(said.get(field))}")
    best = recorded.ceiling
    if best is not None and recorded.accuracy > best.upper_bound + 4 * (recorded.stderr + best.stderr):
        raise ValueError(f"{key}: accuracy {recorded.accuracy:.4f} is above the ceiling {best.upper_bound:.4f}: the mixer knows the answers")


def score_answers(task: Task, answers: NDArray[Any], ceiling_samples: int = 0, *, breakdowns: bool = True) -> Measurement:
    """The score of these answers, [samples, elements], on the first samples of test.

    >>> import numpy as np
    >>> import selectivbench as sb
    >>> from selectivbench.submission import score_answers
    >>> task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3), length=20)
    >>> result = sb.evaluate(lambda batch: np.eye(task.answers)[np.maximum(batch.symbols, 0)], task, samples=50, valid_samples=0)
    >>> score_answers(task, result.answers["test"]).accuracy == result.test.accuracy
    True
    """
    import numpy as np

    score = Score(task, "test", breakdowns=breakdowns)
    sure = np.eye(task.answers, dtype=np.float32)
    done = 0
    for batch in task.batches("test", _BATCH, count=len(answers), dense=False):
        mine = answers[done : done + batch.shape[0]].astype(np.int64)
        done += batch.shape[0]
        frames = np.take_along_axis(mine, np.maximum(batch.elements, 0).astype(np.int64), 1)
        score.update(batch, sure[frames], "probabilities")
    return score.result(ceiling_samples)


def _complete(runs: Runs, facts: Mapping[str, Any], peers: Peers) -> None:
    """No grammar is left out: those of a task are the first of the scale, without gaps; diverged ones are named."""
    have = sorted([(run.task, run.grammar_seed) for run in runs] + [(task, seed) for task, seed, _ in facts["diverged"]])
    tasks = sorted({task for task, _ in have})
    if tasks != sorted(facts["tasks"]) or 1 not in tasks:
        raise ValueError(f"tasks, expected task 1 and those of the plan, {facts['tasks']}, got runs of {tasks}")
    for task in tasks:
        seeds = [seed for of, seed in have if of == task]
        if len(seeds) < LEAST_GRAMMARS or seeds != peers.seeds(task)[: len(seeds)]:
            raise ValueError(f"task {task}, expected a run on each of the grammars {peers.seeds(task)}, at least the first {LEAST_GRAMMARS}, got {seeds}")


def _rows(runs: Runs) -> dict[tuple[TaskName, int], dict[str, Any]]:
    out: dict[tuple[TaskName, int], dict[str, Any]] = {}
    for run in runs:
        assert run.test is not None and run.valid is not None
        out[run.task, run.grammar_seed] = row_of(run.lr, run.test, run.valid, run.grid)
    return out


def _predictions(file: pathlib.Path) -> dict[str, NDArray[Any]]:
    import numpy as np

    with zipfile.ZipFile(file) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > _MOST_UNPACKED:
            raise ValueError(f"{file.name}, expected at most {_MOST_UNPACKED:,} bytes unpacked")
    with np.load(file, allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def _collected(root: pathlib.Path, runs: Runs) -> bytes:
    """One file of the predictions of all runs; the ranking keeps one per run."""
    import numpy as np

    out = {}
    for run in runs:
        with np.load(root / "jobs" / f"task{run.task}-grammar{run.grammar_seed}.npz", allow_pickle=False) as arrays:
            out[_key(run, None)] = arrays["test"]
            out.update({_key(run, point.point): arrays[str(point.point)] for point in run.grid})
    file = io.BytesIO()
    np.savez_compressed(file, **out)
    return file.getvalue()


def _key(run: Run, gap: int | None) -> str:
    return f"task{run.task}-grammar{run.grammar_seed}-" + ("test" if gap is None else f"gap{gap}")


def _same(a: Any, b: Any) -> bool:
    """Equal, up to what another machine's arithmetic may change: one element is far more."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-9
    return bool(a == b)


def _seal(root: pathlib.Path, index: dict[str, Any]) -> None:
    files = {file.name: _digest(file.read_bytes()) for file in sorted(root.iterdir()) if file.name != INDEX}
    content = json.dumps({**index, "files": files, "sha256": "0" * 64}, indent=1, separators=(",", ":")) + "\n"
    sealed = _SEAL.sub(f'"sha256":"{_digest(content.encode())}"', content)
    (root / INDEX).write_text(sealed, encoding="utf-8")


def _blank() -> str:
    return '"sha256":"' + "0" * 64 + '"'


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _folder_name(folder: pathlib.Path) -> None:
    """The name becomes part of an address."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,79}", folder.resolve().name):
        raise ValueError(f"[submit] --out {folder}, expected a folder name of lower-case letters, digits, '-' and '.', got {shown(folder.name)}")
