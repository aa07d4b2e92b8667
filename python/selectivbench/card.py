"""The card of a ranking: one HTML page without scripts, the same in Markdown, and a summary for the terminal."""
from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from ._svg import has_png, line_chart, scatter_chart
from .peers import CHOICE_SEED, TaskName
from .standing import QUESTIONS, Standing

if TYPE_CHECKING:
    from .ranked import Ranking

Table = tuple[list[str], list[list[str]]]

_LEAST_IN_BIN = 30  # elements that an accuracy by certainty needs
_FEW_UNCERTAIN = f"the exact filter is uncertain about fewer than {_LEAST_IN_BIN} elements"
_STYLE = """body { font: 15px/1.5 sans-serif; max-width: 960px; margin: 2em auto; padding: 0 1em; color: #1a1a1a; }
table { border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; border-bottom: 1px solid #ddd; text-align: left; }
.wide { overflow-x: auto; } h1 { margin-bottom: 0; } pre { background: #f4f4f4; padding: 0.8em; overflow-x: auto; } svg { max-width: 100%; height: auto; }"""


def summary(ranking: Ranking) -> str:
    """The ranking in a few lines."""
    lines = [*_aligned(_ranks(ranking)), "", *_aligned(_accuracies(ranking))]
    png = "" if has_png() else " (no PNG figures: rsvg-convert of librsvg2-bin is not installed)"
    return "\n".join([_facts(ranking), "", *lines, "", *ranking.notes, f"card: {ranking.folder}/card.html{png}"])


def _aligned(table: Table) -> list[str]:
    head, rows = table
    rows = [head, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def as_markdown(ranking: Ranking) -> str:
    """The card in Markdown; figures are the SVG files beside it."""
    out = [f"# {ranking.name}", "", _facts(ranking), ""]
    for title, content in _sections(ranking):
        out += [f"## {title}", ""]
        for kind, value in content:
            if kind == "table":
                head, rows = value
                out += ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
            elif kind == "figure":
                out.append(f"![{value}](card-{value}.svg)")
            elif kind == "code":
                out += ["```", value, "```"]
            else:
                out.append(value)
            out.append("")
    return "\n".join(out)


def as_html(ranking: Ranking) -> str:
    """The card as one page with its figures in it."""
    drawn = figures(ranking)
    out = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(ranking.name)}: SelectivBench</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(ranking.name)}</h1>\n<p>{escape(_facts(ranking))}</p>",
    ]
    for title, content in _sections(ranking):
        out.append(f"<h2>{escape(title)}</h2>")
        for kind, value in content:
            if kind == "table":
                head, rows = value
                out.append('<div class="wide" tabindex="0"><table><tr>' + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>")
                out += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
                out.append("</table></div>")
            elif kind == "figure":
                out.append(f"<figure>{drawn[value]}</figure>")
            else:
                begin, end = ('<pre tabindex="0">', "</pre>") if kind == "code" else ("<p>", "</p>")
                out.append(f"{begin}{escape(value)}{end}")
    return "\n".join([*out, "</body></html>"]) + "\n"


def figures(ranking: Ranking) -> dict[str, str]:
    """SVG files by name: profile over tasks, state size, and accuracy by gap length, position and certainty."""
    shown = ranking.nearest
    tasks = ranking.standings
    out = {}
    profile: dict[str, list[float | None]] = {ranking.label: [each.accuracy for each in tasks]}
    for model in shown:
        profile[model] = [next((a.accuracy for a in each.against if a.model == model), None) for each in tasks]
    out["profile"] = line_chart("Accuracy by task", "task", [str(each.task) for each in tasks], profile)
    sized = _state_sizes(ranking)
    if sized:
        out["state"] = scatter_chart("Accuracy against state size", "state values per layer; accuracy: mean over the tasks", sized)
    for each in tasks:
        if each.task == 4:
            out["gaps"] = _axis_chart(ranking, 2, each.seeds, "gap length", "gap, in frames (trained with gaps of 1 to 10)")
        else:
            axis = _axis(ranking, each.task)
            if axis:
                out[f"axis-{each.task}"] = _axis_chart(ranking, each.task, each.seeds, axis, f"task {each.task}: {axis} on test")
            places = range(max(len(row["by_position"]) for row in ranking.runs.values()))
            lines = {
                name: [_mean([_at(row["by_position"], place) for row in rows]) for place in places]
                for name, rows in _rows(ranking, each.task, each.seeds, shown)
            }
            ticks = [str(place) for place in places]
            out[f"position-{each.task}"] = line_chart(f"Task {each.task}: accuracy by position", f"task {each.task}: element of the sequence", ticks, lines)
            bins = _entropy_bins(ranking, each)
            if len(bins) > 1:
                lines = {
                    name: [_mean_in_bin(rows, low) for low in bins] for name, rows in _rows(ranking, each.task, each.seeds, shown)
                }
                label = f"task {each.task}: uncertainty of the exact filter, in nats, from"
                out[f"certainty-{each.task}"] = line_chart(
                    f"Task {each.task}: accuracy by certainty", label, [f"{low:g}" for low in bins], lines
                )
    return out


def _axis(ranking: Ranking, task: TaskName) -> str:
    """Name of the test axis of a kind of task whose runs were tested along it; empty for the paper's tasks, whose task 4 shows it."""
    tested = any(row["grid"] for (of, _), row in ranking.runs.items() if of == task)
    return ranking.peers.config(task, 1).task.axis or "" if isinstance(task, str) and tested else ""


def _axis_chart(ranking: Ranking, task: TaskName, seeds: list[int], name: str, label: str) -> str:
    """Accuracy along the test axis of a task."""
    points = sorted({int(point) for (of, _), row in ranking.runs.items() if of == task for point in row["grid"]})
    lines = {
        model: [_mean([row["grid"].get(str(point)) for row in rows]) for point in points]
        for model, rows in _rows(ranking, task, seeds, ranking.nearest)
    }
    return line_chart(f"Accuracy by {name}", label, [str(point) for point in points], lines)


def _state_sizes(ranking: Ranking) -> dict[str, tuple[float, float]]:
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


def _entropy_bins(ranking: Ranking, standing: Standing) -> list[float]:
    """Where the bins of the exact filter's entropy begin that have enough elements on these grammars."""
    counts: dict[float, int] = {}
    for seed in standing.seeds:
        for low, _, count in ranking.runs[standing.task, seed].get("by_entropy", []):
            counts[low] = counts.get(low, 0) + count
    return sorted(low for low, count in counts.items() if count >= _LEAST_IN_BIN)


def _mean_in_bin(rows: list[Any], low: float) -> float | None:
    """Accuracy over all elements of a bin."""
    found = [(accuracy, count) for row in rows for at, accuracy, count in row.get("by_entropy", []) if abs(at - low) < 1e-9]
    total = sum(count for _, count in found)
    return sum(accuracy * count for accuracy, count in found) / total if total else None


def _rows(ranking: Ranking, task: TaskName, seeds: list[int], models: list[str]) -> list[tuple[str, list[Any]]]:
    """Runs of the mixer and of these models on these grammars."""
    mine: list[Any] = [ranking.runs[task, seed] for seed in seeds]
    theirs = [(model, [row for seed in seeds for row in ranking.peers.runs_of(task, model, seed)]) for model in models]
    return [(ranking.label, mine), *theirs]


def _at(values: list[float | None], place: int) -> float | None:
    return values[place] if place < len(values) else None


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _facts(ranking: Ranking) -> str:
    facts = ranking.facts
    tested = sorted({seed for each in ranking.standings for seed in each.seeds})
    known = f"{facts['state_size']:,} state values per layer" if facts["state_size"] else "no state"
    state = "state size unknown or growing" if facts["state_size"] is None else known
    return (
        f"Width {facts['width']}, {facts['layers']} layers, {facts['parameters']:,} parameters, {state}. "
        f"{facts['tokens_per_second']:,} training tokens/s on this machine ({facts['machine']}, {facts['identity']['device']}, "
        f"{facts['precision']}, threads: {facts['threads']}). Learning rate {facts['rate']:g}. Compared with "
        f"{max((each.of - 1 for each in ranking.standings), default=0)} models of SelectivBench {ranking.peers.version} at scale "
        f"{ranking.peers.scale}, on the same samples of {len(tested)} grammars (seeds {', '.join(map(str, tested))})."
    )


def _ranks(ranking: Ranking) -> Table:
    head = ["task", "accuracy", "95 % interval", "rank", "possible ranks", "share", "n-gram", "ceiling", "grammars"]
    rows = []
    for each in ranking.standings:
        rows.append(
            [
                str(each.task),
                f"{each.accuracy:.3f}",
                _interval(each.low, each.high),
                f"{each.rank} of {each.of}",
                f"{each.best}–{each.worst}",
                _number(each.share, "{:+.2f}"),
                _number(each.n_gram),
                _number(each.ceiling),
                str(len(each.seeds)),
            ]
        )
    return head, rows


def _accuracies(ranking: Ranking) -> Table:
    """Accuracies of the mixer and of every model it was compared with, best first."""
    found: dict[str, dict[TaskName, float]] = {ranking.label: {each.task: each.accuracy for each in ranking.standings}}
    for each in ranking.standings:
        for other in each.against:
            found.setdefault(other.model, {})[each.task] = other.accuracy
    order = sorted(found, key=lambda name: -sum(found[name].values()) / len(found[name]))
    head = ["model"] + [f"task {each.task}" for each in ranking.standings]
    return head, [[name] + [_number(found[name].get(each.task)) for each in ranking.standings] for name in order]


def _against(ranking: Ranking) -> Table:
    models = sorted({a.model for each in ranking.standings for a in each.against})
    head = ["model", "parameters"] + [f"task {each.task}" for each in ranking.standings]
    rows = []
    for model in models:
        params = next(run["params"] for run in ranking.peers.runs if run["model"] == model)
        rows.append([model, f"{params:,}"] + [_difference(each, model) for each in ranking.standings])
    return head, rows


def _difference(standing: Standing, model: str) -> str:
    for each in standing.against:
        if each.model == model:
            inside = "" if each.low is None or each.high is None else f" [{100 * each.low:+.1f}, {100 * each.high:+.1f}]"
            return f"{100 * each.above:+.1f}{inside}"
    return "–"


def _number(value: float | None, form: str = "{:.3f}") -> str:
    return "–" if value is None else form.format(value)


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{max(low, 0.0):.3f} to {min(high, 1.0):.3f}"


def _state_section(ranking: Ranking) -> list[tuple[str, Any]]:
    sized = _state_sizes(ranking)
    if ranking.facts["state_size"] == 0:
        return [("text", f"None: {ranking.name} carries no values from frame to frame, so there is no figure against state size.")]
    if not sized:
        return [("text", f"Unknown: {ranking.name} has no method step and no attribute state_size, or its state grows.")]
    missing = sorted({a.model for each in ranking.standings for a in each.against} - set(sized))
    note = f" Without a fixed-size state, or not on all these tasks: {', '.join(missing)}." if missing else ""
    return [("figure", "state"), ("text", f"Mean accuracy over tasks {', '.join(str(each.task) for each in ranking.standings)}.{note}")]


def _cost(ranking: Ranking) -> list[tuple[str, Any]]:
    """Training speed beside that of the peers."""
    mine = ranking.facts["tokens_per_second"]
    speeds = {ranking.label: mine, **ranking.facts["peer_speeds"]}
    order = sorted(speeds, key=lambda name: -float(speeds[name]))
    rows = [[name, f"{speeds[name]:,}", f"{speeds[name] / mine:.2f}"] for name in order]
    text = (
        f"Training on this machine: task {ranking.peers.tasks[0]}, the same batch and threads. {ranking.label}: mean over a few updates in torch. "
        "The others: the fastest of a few updates in the program, with kernels of its own."
    )
    return [("table", (["model", "tokens/s", f"of {ranking.label}"], rows)), ("text", text)]


def _sections(ranking: Ranking) -> list[tuple[str, list[tuple[str, Any]]]]:
    tasks = [each.task for each in ranking.standings]
    questions = "".join(f"Task {task}: {QUESTIONS[task]} " for task in tasks if task in QUESTIONS)
    longer = "Task 4 is the mean over the gaps longer than in training; its n-gram and ceiling are those of task 2. " if 4 in tasks else ""
    facts = ranking.facts
    ids = ", ".join(sorted({run["run_id"] for run in ranking.peers.runs if (run["task"], run["grammar_seed"]) in ranking.runs}))
    own = [each for each in ranking.standings if each.task != 4]
    positions = [("figure", f"position-{each.task}") for each in own]
    certain = [each for each in own if len(_entropy_bins(ranking, each)) < 2]
    certainty = [("figure", f"certainty-{each.task}") for each in own if each not in certain]
    certainty += [("text", f"Task {each.task} has no chart by certainty: {_FEW_UNCERTAIN}.") for each in certain]
    gaps = [("figure", "gaps")] if 4 in tasks else []
    gaps += [("figure", f"axis-{task}") for task in tasks if task != 4 and _axis(ranking, task)]
    identity = facts["identity"]
    only = f", task={json.dumps(identity['task'])}" if identity.get("task") else ""
    call = (
        f'sb.rank({ranking.name}, budget={identity["budget"]:g}, peers={json.dumps(ranking.peers.source)}, device="{identity["device"]}", '
        f'residual="{identity["residual"]}"{only})  # with {ranking.name} imported, and out= another folder'
    )
    return [
        (
            "Rank",
            [
                ("table", _ranks(ranking)),
                (
                    "text",
                    f"{questions}Share is (accuracy − n-gram) / (ceiling − n-gram). {longer}Possible ranks are those that the 95 % intervals of "
                    "the differences leave open.",
                ),
            ],
        ),
        ("Profile against the nearest three models", [("figure", "profile")]),
        (
            "Difference to every model",
            [
                ("table", _against(ranking)),
                ("text", f"{ranking.label} minus the model, in points, with 95 % intervals (Student's t) paired over common grammars, without correction for several comparisons."),
            ],
        ),
        ("State size", _state_section(ranking)),
        *([("Cost", _cost(ranking))] if facts.get("peer_speeds") else []),
        ("Where it fails", [*gaps, *positions, *certainty]),
        ("How it was compared", [("text", note) for note in ranking.notes]),
        (
            "Repeat it",
            [
                ("code", f"import selectivbench as sb  # version {facts['identity']['version']}, torch {facts['torch']}\n{call}"),
                (
                    "text",
                    f"Digest of the mixer (weights and outputs at seed 1): {facts['identity']['mixer']}. Valid accuracy by learning rate on grammar "
                    f"{CHOICE_SEED}: {', '.join(f'{rate:g}: {value:.4f}' for rate, value in facts['valid'])}. Runs compared with: {ids}.",
                ),
                ("text", "Cite the benchmark: Bouhadjar, Fabre, Schmidt, Neftci, arXiv:2601.12598."),
            ],
        ),
    ]
