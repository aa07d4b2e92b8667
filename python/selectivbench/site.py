"""The leaderboard: static pages of shipped and submitted results. They need no server, no other host and, for the table, no script."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from . import _native
from ._checks import path
from ._site_page import FILTERS, INTRO, SCRIPT, STYLE
from .config import Config
from .peers import CHOICE_SEED, OWN, SWITCH, collapsed, load_peers, scales
from .results import Measurement, Run, Runs, load_runs, table
from .submission import CARD, INDEX, PREDICTIONS, RUNS, SOURCE, Submission, check

_MARK = ".selectivbench-site"  # a folder with this file is replaced
_HEAD = [
    "model", "task", "settings", "accuracy", "95 % interval", "n-gram", "ceiling", "grammars", "parameters",
    "state per layer", "scale", "protocol",
]  # fmt: skip
_NUMBERS = {"accuracy", "n-gram", "ceiling", "grammars", "parameters", "state per layer"}
_SCALES = ("paper", "small", "quick")
_WITHIN_CELL = ("grammar.seed", "train.seed", "train.order_seed", "train.lr", "train.warmup")
_FREE = (*OWN, *_WITHIN_CELL, "model.name")  # listed only if nothing else tells two rows apart
_OF_PROTOCOL = (  # listed as the differences of a run from its protocol
    "model.dropout", "model.residual", "model.switch conv",
    "quirks.delta_bf16", "quirks.first_lr_zero", "quirks.sum_accumulated",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A cell of `selectivbench table`, its runs and the names of their archives.

    ``folder``: name of the submission's folder, empty for shipped models. ``standard``: whether the settings are those of the scale's
    standard runs; None: the task has no standard runs at this scale. ``settings``: those in which the row differs, by
    key; "" has the differences from the protocol, in words.
    """

    cell: dict[str, Any]
    runs: list[Run] = field(repr=False)
    archives: list[str]
    scale: str
    protocol: str
    folder: str
    standard: bool | None
    settings: dict[str, Any]

    @property
    def task(self) -> str:
        """The task's name in tables."""
        at = "" if self.cell["gap"] is None else f", {self.cell.get('axis') or 'gap'} {self.cell['gap']}"
        return f"{self.cell['task']}{at}"

    @property
    def anchor(self) -> str:
        """Anchor of the section of its runs; the gap lengths of a task share it."""
        return "-".join(filter(None, [self.folder, self.runs[0].run_id]))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of its grammars."""
        return tuple(sorted({run.grammar_seed for run in self.runs}))

    @property
    def described(self) -> str:
        """The settings in words."""
        names = {key: key.partition(".")[2].replace("switch ", "") or key for key in self.settings}
        return ", ".join(f"{names[key]} {value}".strip() for key, value in self.settings.items())


def build(
    out: str | os.PathLike[str],
    archives: Iterable[str | os.PathLike[str]] = (),
    submissions: str | os.PathLike[str] = "submissions",
) -> str:
    """Writes the site of these archives and of the folder of submissions, each checked again.

    Returns a summary of the site, with a line for each archive without results.
    """
    target, shipped = pathlib.Path(path("site", out)), [pathlib.Path(path("site", each)) for each in archives]
    folder = pathlib.Path(path("site", submissions))
    _expect_archives(shipped)
    _expect_own(target)
    checked = [check(each) for each in sorted(folder.iterdir()) if each.is_dir()] if folder.is_dir() else []
    if not shipped and not checked:
        raise ValueError(f"[site] expected archives of runs, or submissions in {folder}, got none")
    found = {archive: _finished(archive) for archive in shipped}
    rows = _rows(found, "")
    for each in checked:
        rows += _rows({each.folder / RUNS: each.runs}, each.folder.name)
    rows = _filled(_distinct(rows))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".site-", dir=target.parent) as temporary:
        made = pathlib.Path(temporary, "site")
        (made / "archives").mkdir(parents=True)
        (made / _MARK).touch()
        for archive in shipped:
            shutil.copyfile(archive, made / "archives" / archive.name)
        for each in checked:
            shutil.copytree(each.folder, made / "submissions" / each.folder.name)
        (made / "index.html").write_text(_index(rows, shipped, checked), encoding="utf-8")
        (made / "runs.html").write_text(_runs_page(rows), encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    shown = {run.run_id for row in rows for run in row.runs}
    said = [f"{target}/index.html: {len(rows)} results, {len(shown)} runs, {len(checked)} submissions"]
    said += [_unused(archive, runs) for archive, runs in found.items() if shown.isdisjoint(run.run_id for run in runs)]
    return "\n".join(said)


def _expect_archives(files: Sequence[pathlib.Path]) -> None:
    for each in files:
        if (each / INDEX).is_file():
            hint = "--submissions names the folder that holds submissions"
            raise ValueError(f"[site] {each} is a submission, expected an archive of runs; {hint}")
        if not each.is_file():
            got = "a folder; selectivbench pack makes an archive" if each.is_dir() else "no file"
            raise ValueError(f"[site] {each}, expected an archive of runs, got {got}")
    if len({each.name for each in files}) != len(files):
        raise ValueError(f"[site] expected archives with different names, got {', '.join(map(str, files))}")


def _expect_own(target: pathlib.Path) -> None:
    """The folder is new, empty or a site."""
    if target.exists() and not (target.is_dir() and ((target / _MARK).exists() or not any(target.iterdir()))):
        raise ValueError(f"[site] {target} holds other files; name another folder with --out")


def _finished(archive: pathlib.Path) -> Runs:
    found = load_runs(archive)
    if found.notes:
        raise ValueError(f"[site] {found.notes[0]}")
    return found


def _excluded(run: Run) -> str:
    """Why a run is in no row; empty if it may be in one."""
    if run.grammar_seed == CHOICE_SEED:
        return f"on grammar {CHOICE_SEED}, on which settings are chosen"
    return "scored by squared error" if run.test is not None and run.test.mse is not None else ""


def _unused(archive: pathlib.Path, runs: Runs) -> str:
    otherwise = "diverged, or trained with a learning rate or warm-up other than the chosen one"
    reasons = {_excluded(run) or otherwise for run in runs}
    why = f"its {len(runs)} runs are {' or '.join(sorted(reasons))}" if runs else "it has no finished runs"
    return f"{archive.name}: no results, because {why}"


def _rows(found: Mapping[pathlib.Path, Runs], folder: str) -> list[Row]:
    """The cells of the table of these archives without excluded runs."""
    kept = {run.run_id: (archive, run) for archive, runs in found.items() for run in runs if not _excluded(run)}
    if not kept:
        return []
    with tempfile.TemporaryDirectory(prefix="selectivbench-site-") as root:
        for place, archive in enumerate(found):
            folders = {run.folder for at, run in kept.values() if at == archive}
            _unpack(archive, folders, pathlib.Path(root, str(place)))
        cells = json.loads(table(root, "json"))["cells"]
    out = []
    for cell in cells:
        if cell["mean"] is None:
            continue
        runs = [kept[each][1] for each in cell["run_ids"]]
        runs.sort(key=lambda run: (run.grammar_seed, run.train_seed))
        scale, label = _native.scale_and_protocol(runs[0].config)
        protocol, _, other = (label or "corrected").partition(" but ")  # a submission's protocol was checked
        expected = _standard(runs[0], scale)
        settings = {"": other} if other else {}
        settings.update({} if expected is None else _differences(runs[0], expected))
        standard = None if expected is None else not settings
        lost = sum(collapsed(run) for run in runs)
        if lost:
            settings["collapsed"] = f"{lost} of {len(runs)} runs"
        names = [kept[run.run_id][0].name for run in runs]
        out.append(Row({**cell, **_figures(cell, runs)}, runs, names, scale, protocol, folder, standard, settings))
    return out


def _unpack(archive: pathlib.Path, folders: set[str], target: pathlib.Path) -> None:
    """Files of these runs, without saved evaluations, which would be cells of their own."""
    wanted = {pathlib.PurePath(os.path.relpath(each, archive)) for each in folders}
    with tarfile.open(archive) as files:
        for entry in files:
            name = pathlib.PurePath(entry.name)
            content = files.extractfile(entry)
            if content is not None and name.parent in wanted and not name.name.startswith("eval-"):
                (target / name.parent).mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(content.read())


def _figures(cell: Mapping[str, Any], runs: Sequence[Run]) -> dict[str, Any]:
    """The cell's means, not rounded: a number rounded twice may differ from the one on cards and in tables."""
    measured = [_measured(run, cell["gap"]) for run in runs]
    best = [each.ceiling for each in measured if each.ceiling is not None]
    whole = len(best) == len(runs)
    baselines = [run.data["baselines"] for run in runs] if cell["n_gram"] is not None else []
    return {
        "mean": _mean([each.accuracy for each in measured]),
        "n_gram": _mean([each["n_gram"][each["n"] - 1] for each in baselines]) if baselines else None,
        "ceiling": _mean([each.accuracy for each in best]) if whole else None,
        "upper_bound": _mean([each.upper_bound for each in best]) if whole else None,
    }


def _measured(run: Run, point: int | None) -> Measurement:
    found = run.test if point is None else next(each for each in run.grid if each.point == point)
    assert found is not None
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _standard(run: Run, scale: str) -> dict[str, Any] | None:
    """Settings of the scale's standard runs of this task, by shipped results or the paper's config; None: there are none."""
    if run.kind != "gaps":
        return None
    if scale == "paper":
        values = Config.from_toml("paper/base", [f"task.number={run.task}"]).values
        out = {f"{section}.{key}": value for section in values for key, value in values[section].items()}
        return {key: value for key, value in out.items() if not key.startswith("model.") or key == "model.layers"}
    peers = load_peers(scale) if scale in scales() else None
    if peers is None or run.task not in peers.settings:
        return None
    out = {**peers.settings[run.task], "model.layers": peers.layers}
    out.update({"quirks.padding_correct": False, "quirks.select_on_test": False})
    for peer in peers.runs_of(run.task, run.model)[:1]:
        out.update({"model.width": peer["width"], **{SWITCH + key: value for key, value in peer["switches"].items()}})
    return out


def _differences(run: Run, standard: Mapping[str, Any]) -> dict[str, Any]:
    """Settings other than the standard ones. Those of a model without a standard run have nothing to differ from."""
    known = [key for key in run.config if _listed(key) and (key in standard or not key.startswith("model."))]
    values = {key: json.loads(run.config[key]) for key in known}
    return {key: value for key, value in values.items() if standard.get(key) != value}


def _listed(key: str) -> bool:
    return key not in _FREE and key not in _OF_PROTOCOL and not key.startswith("eval.")


def _distinct(rows: list[Row]) -> list[Row]:
    """Adds settings in which rows differ: within a task that has no standard runs, then among rows that look alike."""
    for row in rows:
        if row.standard is None:
            same = [each for each in rows if (each.cell["task"], each.scale) == (row.cell["task"], row.scale)]
            models = [each for each in same if each.cell["model"] == row.cell["model"]]
            row.settings.update(_varying(row, same, lambda key: _listed(key) and not key.startswith("model.")))
            row.settings.update(_varying(row, models, lambda key: _listed(key) and key.startswith("model.")))
    looks: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        looks.setdefault((row.cell["model"], row.task, row.described, row.scale, row.protocol), []).append(row)
    for alike in looks.values():
        for row, found in [(row, _varying(row, alike, lambda key: key not in _WITHIN_CELL)) for row in alike]:
            names = {"label": row.runs[0].label, "submission": row.folder} if len(alike) > 1 else {}
            row.settings.update(found or {key: name for key, name in names.items() if name})
    return rows


def _varying(row: Row, among: Sequence[Row], wanted: Callable[[str], bool]) -> dict[str, Any]:
    """The row's settings with another value in one of these rows."""
    config = row.runs[0].config
    keys = [key for key in config if wanted(key) and any(each.runs[0].config.get(key) != config[key] for each in among)]
    return {key: json.loads(config[key]) for key in keys}


def _filled(rows: list[Row]) -> list[Row]:
    """Sorted by task, scale, settings and accuracy. Submitted runs have the n-gram of standard runs on the same grammars."""
    known = [row for row in rows if row.standard and row.cell["n_gram"] is not None]
    n_grams = {(row.scale, row.task, row.seeds): row.cell["n_gram"] for row in known}
    for row in rows:
        if row.folder and row.cell["n_gram"] is None:
            row.cell["n_gram"] = n_grams.get((row.scale, row.task, row.seeds))

    def place(row: Row) -> tuple[Any, ...]:
        scale = _SCALES.index(row.scale) if row.scale in _SCALES else len(_SCALES)
        comparable = str({key: value for key, value in row.settings.items() if key.startswith(("task.", "train."))})
        task = (str(row.cell["task"]), row.cell["gap"] or 0, scale)
        return *task, row.standard is False, comparable, -row.cell["mean"], row.cell["model"]

    return sorted(rows, key=place)


def _page(title: str, body: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">\n'
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def _index(rows: list[Row], shipped: list[pathlib.Path], checked: list[Submission]) -> str:
    body = ["<h1>SelectivBench: results</h1>", INTRO, FILTERS]
    body.append('<div class="wide"><table id="results"><thead><tr>')
    body += [f'<th{_number_class(name)} scope="col">{escape(name)}</th>' for name in _HEAD]
    body.append("</tr></thead><tbody>")
    body += [_line(row) for row in rows]
    body.append("</tbody></table></div>")
    body.append("<h2>Submissions</h2>" if checked else "<p>There are no submissions yet.</p>")
    for each in checked:
        files = [(CARD, "card"), (RUNS, "runs"), (PREDICTIONS, "predictions"), (SOURCE, "source")]
        links = ", ".join(
            f'<a href="submissions/{each.folder.name}/{file}">{name}</a>' for file, name in files if (each.folder / file).exists()
        )
        body.append(f"<p>{escape(each.ranking.name)}: {links}</p>")
    if shipped:
        links = ", ".join(f'<a href="archives/{escape(each.name)}">{escape(each.name)}</a>' for each in shipped)
        body.append(f"<h2>Archives of the shipped runs</h2><p>{links}</p>")
    return _page("SelectivBench: results", [*body, f"<script>{SCRIPT}</script>"])


def _line(row: Row) -> str:
    cell = row.cell
    name = escape(cell["model"])
    if row.folder:
        name = f'<a href="submissions/{row.folder}/{CARD}">{name}</a>, training self-reported'
    inside = "–" if cell["ci95_low"] is None else f"{max(cell['ci95_low'], 0):.3f}–{min(cell['ci95_high'], 1):.3f}"
    cells = [
        name,
        escape(row.task),
        escape(row.described),
        f'<a href="runs.html#{row.anchor}">{cell["mean"]:.3f}</a>',
        inside,
        _figure(cell["n_gram"]),
        ("" if cell["ceiling_exact"] else "≤") + _figure(cell["ceiling"] if cell["ceiling_exact"] else cell["upper_bound"]),
        str(cell["grammars"]),
        f"{cell['params']:,}",
        "grows or unknown" if cell["state_size"] is None else f"{cell['state_size']:,}",
        row.scale or "other",
        escape(row.protocol),
    ]
    data = f'data-params="{cell["params"]}" data-state="{"" if cell["state_size"] is None else cell["state_size"]}"'
    data += ' data-other=""' if row.standard is False else ""
    return f"<tr {data}>" + "".join(f"<td{_number_class(head)}>{text}</td>" for head, text in zip(_HEAD, cells)) + "</tr>"


def _number_class(head: str) -> str:
    return ' class="number"' if head in _NUMBERS else ""


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _runs_page(rows: list[Row]) -> str:
    """A section for each set of runs that a number of the table is the mean of."""
    body = ["<h1>Runs</h1>", '<p><a href="index.html">All results</a>. s.e. is the standard error over samples.</p>']
    seen = set()
    for row in rows:
        if row.anchor in seen:
            continue
        seen.add(row.anchor)
        what = f"{row.cell['model']}, task {row.cell['task']}, {row.scale or 'other scale'}, {row.protocol}"
        what += f", {row.described}" if row.settings else ""
        gaps = [point.point for point in row.runs[0].grid]
        head = ["run", "grammar", "training seed", "learning rate", "width", "test accuracy", "s.e.", "loss"]
        head += [f"{row.runs[0].grid[0].axis or 'gap'} {gap}" for gap in gaps] + ["device", "precision", "version", "archive"]
        body.append(f'<h2 id="{row.anchor}">{escape(what)}</h2><div class="wide"><table><tr>')
        body += [f"<th>{escape(name)}</th>" for name in head]
        body.append("</tr>")
        for run, name in zip(row.runs, row.archives):
            assert run.test is not None
            cells = [run.run_id, run.grammar_seed, run.train_seed, f"{run.lr:g}", run.width, f"{run.test.accuracy:.4f}"]
            cells += [f"{run.test.stderr:.4f}", f"{run.test.loss:.4f}"] + [f"{point.accuracy:.4f}" for point in run.grid]
            cells += [run.data["device"], run.data["precision"], run.data["made"]["version"]]
            archive = f"submissions/{row.folder}/{RUNS}" if row.folder else f"archives/{name}"
            link = f'<td><a href="{escape(archive)}">{escape(pathlib.Path(archive).name)}</a></td>'
            body.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + link + "</tr>")
        body.append("</table></div>")
    return _page("SelectivBench: runs", body)
