"""The leaderboard: static pages of shipped and submitted results. They need no server, no other host and, for the table, no script."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from . import _native
from ._checks import path
from ._site_page import FILTERS, INTRO, SCRIPT, STYLE
from .peers import CHOICE_SEED
from .results import Run, load_runs, table
from .submission import CARD, PREDICTIONS, RUNS, SOURCE, Submission, check

_MARK = ".selectivbench-site"  # a folder with this file is replaced
_HEAD = ["model", "task", "accuracy", "95 % interval", "n-gram", "ceiling", "grammars", "parameters", "state per layer", "scale", "protocol", "trained"]
_NUMBERS = {"accuracy", "n-gram", "ceiling", "grammars", "parameters", "state per layer"}
_SCALES = ("paper", "small", "quick")


@dataclass(frozen=True)
class Row:
    """A cell of `selectivbench table`, and its runs. ``folder``: where a submission is, empty for shipped models."""

    cell: dict[str, Any]
    runs: list[Run] = field(repr=False)
    scale: str
    protocol: str
    folder: str = ""

    @property
    def task(self) -> str:
        """As tables name it."""
        at = "" if self.cell["gap"] is None else f", {self.cell.get('axis') or 'gap'} {self.cell['gap']}"
        return f"{self.cell['task']}{at}"

    @property
    def anchor(self) -> str:
        """Of its runs; the gap lengths of a task share them."""
        return "-".join(filter(None, [self.folder, self.runs[0].run_id]))


def build(
    out: str | os.PathLike[str], archives: Iterable[str | os.PathLike[str]] = (), submissions: str | os.PathLike[str] = "submissions"
) -> str:
    """Writes the site of these archives and of the folder of submissions, each checked again. Returns what it holds, in words."""
    target, shipped = pathlib.Path(path("site", out)), [pathlib.Path(path("site", each)) for each in archives]
    folder = pathlib.Path(path("site", submissions))
    checked = [check(each) for each in sorted(folder.iterdir()) if each.is_dir()] if folder.is_dir() else []
    if not shipped and not checked:
        raise ValueError(f"[site] expected archives of runs, or submissions in {folder}, got none")
    if len({each.name for each in shipped}) != len(shipped):
        raise ValueError(f"[site] expected archives with different names, got {', '.join(map(str, shipped))}")
    rows = _rows(shipped, "") if shipped else []
    for each in checked:
        rows += _rows([each.folder / RUNS], each.folder.name)
    rows = _filled(rows)
    _empty(target)
    (target / "archives").mkdir()
    for archive in shipped:
        shutil.copyfile(archive, target / "archives" / archive.name)
    for each in checked:
        shutil.copytree(each.folder, target / "submissions" / each.folder.name)
    (target / "index.html").write_text(_index(rows, shipped, checked), encoding="utf-8")
    (target / "runs.html").write_text(_runs_page(rows), encoding="utf-8")
    return f"{target}/index.html: {len(rows)} results, {len({run.run_id for row in rows for run in row.runs})} runs, {len(checked)} submissions"


def _empty(target: pathlib.Path) -> None:
    if target.exists() and any(target.iterdir()):
        if not (target / _MARK).exists():
            raise ValueError(f"[site] {target} holds other files; name another folder with --out")
        shutil.rmtree(target)
    target.mkdir(parents=True, exist_ok=True)
    (target / _MARK).touch()


def _rows(archives: Sequence[pathlib.Path], folder: str) -> list[Row]:
    """The cells of these archives' table. Left out: runs on the grammar on which settings are chosen, and other kinds of tasks."""
    found = load_runs(*archives)
    if found.notes:
        raise ValueError(f"[site] {found.notes[0]}")
    by_id = {run.run_id: run for run in found}
    out = []
    for cell in json.loads(table(archives, "json"))["cells"]:
        runs = [by_id[each] for each in cell["run_ids"]]
        if cell["mean"] is None or not runs or "task.kind" in runs[0].config or any(run.grammar_seed == CHOICE_SEED for run in runs):
            continue
        scale, protocol = _native.scale_and_protocol(runs[0].config)
        out.append(Row(cell, runs, scale, protocol or "corrected", folder))  # a submission's protocol was checked
    return out


def _filled(rows: list[Row]) -> list[Row]:
    """Sorted by task, scale and accuracy. Submitted runs have no n-gram of their own: that of the same samples."""
    n_grams = {(row.scale, row.task, row.cell["grammars"]): row.cell["n_gram"] for row in rows if row.cell["n_gram"] is not None}
    for row in rows:
        if row.cell["n_gram"] is None:
            row.cell["n_gram"] = n_grams.get((row.scale, row.task, row.cell["grammars"]))

    def place(row: Row) -> tuple[Any, ...]:
        scale = _SCALES.index(row.scale) if row.scale in _SCALES else len(_SCALES)
        return str(row.cell["task"]), row.cell["gap"] or 0, scale, -row.cell["mean"], row.cell["model"]

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
        name = f'<a href="submissions/{row.folder}/{CARD}">{name}</a>'
    inside = "–" if cell["ci95_low"] is None else f"{max(cell['ci95_low'], 0):.3f} to {min(cell['ci95_high'], 1):.3f}"
    cells = [
        name,
        escape(row.task),
        f'<a href="runs.html#{row.anchor}">{cell["mean"]:.3f}</a>',
        inside,
        _figure(cell["n_gram"]),
        ("" if cell["ceiling_exact"] else "≤ ") + _figure(cell["ceiling"] if cell["ceiling_exact"] else cell["upper_bound"]),
        str(cell["grammars"]),
        f"{cell['params']:,}",
        "grows or unknown" if cell["state_size"] is None else f"{cell['state_size']:,}",
        row.scale or "other",
        escape(row.protocol),
        "self-reported" if row.folder else "by the program",
    ]
    data = f'data-params="{cell["params"]}" data-state="{"" if cell["state_size"] is None else cell["state_size"]}"'
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
        gaps = [point.point for point in row.runs[0].grid]
        head = ["run", "grammar", "training seed", "learning rate", "width", "test accuracy", "s.e.", "loss"]
        head += [f"{row.runs[0].grid[0].axis or 'gap'} {gap}" for gap in gaps] + ["device", "precision", "version", "archive"]
        body.append(f'<h2 id="{row.anchor}">{escape(what)}</h2><div class="wide"><table><tr>')
        body += [f"<th>{escape(name)}</th>" for name in head]
        body.append("</tr>")
        for run in row.runs:
            assert run.test is not None
            cells = [run.run_id, run.grammar_seed, run.train_seed, f"{run.lr:g}", run.width, f"{run.test.accuracy:.4f}"]
            cells += [f"{run.test.stderr:.4f}", f"{run.test.loss:.4f}"] + [f"{point.accuracy:.4f}" for point in run.grid]
            cells += [run.data["device"], run.data["precision"], run.data["made"]["version"]]
            archive = f"submissions/{row.folder}/{RUNS}" if row.folder else f"archives/{_archive(run)}"
            link = f'<td><a href="{escape(archive)}">{escape(pathlib.Path(archive).name)}</a></td>'
            body.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + link + "</tr>")
        body.append("</table></div>")
    return _page("SelectivBench: runs", body)


def _archive(run: Run) -> str:
    """Name of the archive that the run was read from."""
    return next(part for part in pathlib.PurePath(run.folder).parts if part.endswith((".tar", ".tar.gz", ".tgz")))
