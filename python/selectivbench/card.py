"""The card of a ranking: one HTML page without scripts, the same in Markdown, and a summary for the terminal."""
from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ._card_facts import appendix, call, measured, network, speed
from ._card_figures import LEAST_IN_BIN, LEAST_OF_GRAMMAR, axis_of, entropy_bins, figures as figures, state_sizes
from ._svg import DARK, has_png
from .peers import TaskName
from .standing import QUESTIONS, VERDICT_GRAMMARS, Standing, task_title

if TYPE_CHECKING:
    from .ranked import Ranking

Table = tuple[list[str], list[list[str]]]
Content = list[tuple[str, Any]]

_FEW_UNCERTAIN = f"fewer than two bins of the filter's entropy have {LEAST_IN_BIN} elements, {LEAST_OF_GRAMMAR} of them on each grammar"
_BELOW = "below the n-gram"
_DARK = " ".join(f'svg [{what}="{light}"] {{ {what}: {dark}; }}' for light, dark in DARK.items() for what in ("fill", "stroke"))
_STYLE = f""":root {{ color-scheme: light dark; --page: #fff; --text: #1a1a1a; --line: #d5dae1; --raised: #f4f5f7; }}
body {{ font: 15px/1.45 sans-serif; max-width: 1020px; margin: 1.5em auto; padding: 0 1em; }}
body {{ color: var(--text); background: var(--page); }} p {{ margin: 0.5em 0; }}
h1, h2 {{ line-height: 1.2; break-after: avoid; }} h1 {{ margin: 0; }} h2 {{ font-size: 1.25em; margin: 1.4em 0 0.4em; }}
.lead {{ font-size: 1.15em; }}
table {{ border-collapse: collapse; margin: 0.5em 0; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 3px 9px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }}
th, td {{ white-space: nowrap; }} tr {{ break-inside: avoid; }} .wide {{ overflow-x: auto; }}
.facts td {{ white-space: normal; overflow-wrap: anywhere; }} .facts th {{ font-weight: normal; }}
pre {{ background: var(--raised); padding: 0.6em; white-space: pre-wrap; overflow-wrap: anywhere; }}
.figures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 0.5em 1.5em; }}
figure {{ margin: 0; break-inside: avoid; }} svg {{ max-width: 100%; height: auto; }} svg text {{ fill: var(--text); }}
details p, summary {{ break-after: avoid; }} pre {{ break-inside: avoid; }}
details {{ font-size: 12px; }} summary h2 {{ display: inline-block; }}
@media screen and (prefers-color-scheme: dark) {{
:root {{ --page: #121418; --text: #e9ebee; --line: #363d49; --raised: #1a1d23; }} {_DARK} }}
@media print {{
@page {{ size: A4; margin: 14mm 15mm; }} body {{ font-size: 9.5pt; max-width: none; margin: 0; padding: 0; }}
details {{ font-size: 7pt; }}
th, td {{ padding: 2px 6px; }} .wide {{ overflow: visible; }} .figures {{ grid-template-columns: 1fr 1fr; }}
details::details-content {{ content-visibility: visible; block-size: auto; }} }}"""


def summary(ranking: Ranking) -> str:
    """The ranking in a few lines."""
    facts = [f"{name}: {value}" for name, value in measured(ranking)]
    lines = [*_aligned(_ranks(ranking, "< 0")), "", *_aligned(_accuracies(ranking)), "", *facts, *ranking.notes]
    png = "" if has_png() else " (no PNG figures: rsvg-convert of librsvg2-bin is not installed)"
    return "\n".join([_sentence(ranking), _compared(ranking), "", *lines, f"card: {ranking.folder}/card.html{png}"])


def _aligned(table: Table) -> list[str]:
    head, rows = table
    rows = [head, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def as_markdown(ranking: Ranking) -> str:
    """The card in Markdown; figures are the SVG files in the same folder."""
    out = [f"# {ranking.name}", "", _sentence(ranking), "", _compared(ranking), ""]
    for title, content in [*_sections(ranking), ("Appendix", _appendix(ranking))]:
        out += [f"## {title}", ""]
        for kind, value in content:
            if kind in ("table", "facts"):
                head, rows = value if kind == "table" else (["", ""], value)
                out += ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
            elif kind == "figures":
                out.append("\n\n".join(f"![{name}](card-{name}.svg)" for name in value))
            elif kind == "beside":
                name, texts = value
                out.append("\n\n".join([f"![{name}](card-{name}.svg)", *texts]))
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
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{escape(ranking.name)}: SelectivBench</title>\n<style>{_STYLE}</style></head><body>",
        f'<h1>{escape(ranking.name)}</h1>\n<p class="lead">{escape(_sentence(ranking))}</p>\n<p>{escape(_compared(ranking))}</p>',
    ]
    for title, content in _sections(ranking):
        out += [f"<h2>{escape(title)}</h2>", *_html(content, drawn)]
    out += ["<details open><summary><h2>Appendix</h2></summary>", *_html(_appendix(ranking), drawn), "</details>"]
    return "\n".join([*out, "</body></html>"]) + "\n"


def _html(content: Content, drawn: dict[str, str]) -> list[str]:
    out = []
    for kind, value in content:
        if kind == "table":
            head, rows = value
            out.append('<div class="wide" tabindex="0"><table><tr>' + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>")
            out += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
            out.append("</table></div>")
        elif kind == "facts":
            lines = "\n".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in value)
            out.append(f'<table class="facts">{lines}</table>')
        elif kind == "figures":
            out += ['<div class="figures">', *(f"<figure>{drawn[name]}</figure>" for name in value), "</div>"]
        elif kind == "beside":
            name, texts = value
            text = "".join(f"<p>{escape(each)}</p>" for each in texts)
            out.append(f'<div class="figures"><figure>{drawn[name]}</figure><div>{text}</div></div>')
        else:
            begin, end = ("<pre>", "</pre>") if kind == "code" else ("<p>", "</p>")
            out.append(f"{begin}{escape(value)}{end}")
    return out


def _sections(ranking: Ranking) -> list[tuple[str, Content]]:
    label, nearest = ranking.label, ", ".join(ranking.nearest)
    difference = (
        f"{label} minus the model, in points (hundredths of accuracy), with 95 % intervals (Student's t, one degree of freedom less than "
        "grammars) paired over common grammars, without correction for multiple comparisons."
    )
    if _few(ranking.standings):
        difference += " With two grammars, an interval rests on two differences and can be narrow by chance."
    profile = (
        f"The charts show the nearest models, {nearest}: those with the smallest root mean square difference of accuracy to {label} over "
        "the tasks."
    )
    return [
        ("Rank", [("table", _ranks(ranking, _BELOW)), ("beside", ("profile", [*_rank_texts(ranking), profile]))]),
        ("Difference to every model", [("table", _against(ranking)), ("text", difference)]),
        ("State size", _state_section(ranking)),
        *([("Cost", _cost(ranking))] if ranking.facts.get("peer_speeds") else []),
        ("Where it fails", _failures(ranking)),
        ("How it was measured", [("facts", measured(ranking)), *(("text", note) for note in ranking.notes)]),
    ]


def _appendix(ranking: Ranking) -> Content:
    repeat = f"To repeat this ranking with SelectivBench {ranking.facts['identity']['version']} and torch {ranking.facts['torch']}:"
    cite = "Cite the benchmark: Bouhadjar, Fabre, Schmidt, Neftci, arXiv:2601.12598."
    return [("text", repeat), ("code", call(ranking)), ("facts", appendix(ranking)), ("text", cite)]


def _sentence(ranking: Ranking) -> str:
    """Where the mixer stands, in words."""
    tasks = ranking.standings
    among = {each.of for each in tasks}
    ranks = []
    for each in tasks:
        of = "" if len(among) == 1 else f" of {each.of}"
        if 3 * (each.worst - each.best) > each.of:
            ranks.append(f"between {_ordinal(each.best)} and {_ordinal(each.worst)}{of} on {task_title(each.task)}")
        else:
            possible = "" if each.best == each.worst else f" ({_ordinal(each.best)} to {_ordinal(each.worst)} possible)"
            ranks.append(f"{_ordinal(each.rank)}{of} on {task_title(each.task)}{possible}")
    begin = f"Among {tasks[0].of} models, {ranking.label}" if len(among) == 1 else ranking.label
    no_verdict = " Fewer than three grammars support no verdict." if _few(tasks) else ""
    return f"{begin} is {_listed(ranks)}.{no_verdict}{_below_text(tasks)}"


def _few(tasks: Sequence[Standing]) -> bool:
    return any(len(each.seeds) < VERDICT_GRAMMARS for each in tasks)


def _below_text(tasks: Sequence[Standing]) -> str:
    """Whether the mixer is below the n-gram, and whether the others are."""
    below = [each for each in tasks if _below(each)]
    if not below:
        return ""
    where = "every task" if len(below) == len(tasks) > 1 else _tasks(below)
    others = {each.task: sum(other.accuracy >= (each.n_gram or 0.0) for other in each.against) for each in below}
    if not any(others.values()):
        return f" Its accuracy is below the n-gram on {where}, as is that of every other model."
    task, count = max(others.items(), key=lambda item: item[1])
    return (
        f" Its accuracy is below the n-gram on {where}, but {count} of the {max(each.of - 1 for each in below if each.task == task)} other models "
        f"are above it on task {task}: it may be trained badly."
    )


def _ordinal(rank: int) -> str:
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _tasks(standings: Sequence[Standing]) -> str:
    """Numbers or names of the tasks."""
    return f"task{'s' if len(standings) > 1 else ''} {_listed([str(each.task) for each in standings])}"


def _compared(ranking: Ranking) -> str:
    tested = sorted({seed for each in ranking.standings for seed in each.seeds})
    missing = [task for task in ranking.peers.tasks if task not in ranking.facts["tasks"]]
    limits = "the budget or the GPU's memory" if ranking.facts["identity"]["device"] == "cuda" else "the budget"
    left_out = f" Not ranked, because it did not fit {limits}: task {_listed(list(map(str, missing)))}." if missing else ""
    return (
        f"{network(ranking)} Compared with {max(each.of - 1 for each in ranking.standings)} models of SelectivBench "
        f"{ranking.peers.version} at scale {ranking.peers.scale}, on the same samples of {len(tested)} grammars.{left_out}"
    )


def _ranks(ranking: Ranking, below: str) -> Table:
    """``below``: shown for a share that is negative."""
    head = ["task", "accuracy", "95 % interval", "rank", "share", "n-gram", "ceiling", "grammars"]
    rows = []
    for each in ranking.standings:
        certain = each.best == each.worst and len(each.seeds) >= VERDICT_GRAMMARS
        possible = "" if certain else f" ({each.best}–{each.worst} possible)"
        rows.append(
            [
                f"{each.task} {task_title(each.task)}" if isinstance(each.task, int) else str(each.task),
                f"{each.accuracy:.3f}",
                "–" if each.low is None or each.high is None else f"{max(each.low, 0.0):.3f} to {min(each.high, 1.0):.3f}",
                f"{each.rank} of {each.of}{possible}",
                below if _below(each) else _number(each.share, "{:.2f}"),
                _number(each.n_gram),
                _number(each.ceiling),
                str(len(each.seeds)),
            ]
        )
    return head, rows


def _below(standing: Standing) -> bool:
    return standing.n_gram is not None and standing.accuracy < standing.n_gram


def _rank_texts(ranking: Ranking) -> list[str]:
    tasks = [each.task for each in ranking.standings]
    questions = " ".join(f"Task {task}: {QUESTIONS[task]}" for task in tasks if task in QUESTIONS)
    longer = "Task 4 is the mean accuracy of the runs of task 2 over gaps longer than in training; n-gram and ceiling are those of task 2."
    longer = longer if 4 in tasks else ""
    ranks = (
        "Brackets give the ranks that are compatible with the 95 % intervals of the differences, without correction for multiple "
        "comparisons. With fewer than three grammars every rank has brackets. Share is (accuracy − n-gram) / (ceiling − n-gram)."
    )
    return [text for text in (questions, longer, ranks) if text]


def _accuracies(ranking: Ranking) -> Table:
    """Accuracies of the mixer and of every model it was compared with, best first."""
    found: dict[str, dict[TaskName, float]] = {ranking.label: {each.task: each.accuracy for each in ranking.standings}}
    for each in ranking.standings:
        for other in each.against:
            found.setdefault(other.model, {})[each.task] = other.accuracy
    first = ranking.standings[0].task
    order = sorted(found, key=lambda name: -found[name].get(first, 0.0))
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
            if each.low is None or each.high is None:
                return f"{100 * each.above:+.1f}"
            inside = f" [{100 * max(each.low, -1.0):+.1f}, {100 * min(each.high, 1.0):+.1f}]"
            return f"{100 * each.above:+.1f}{inside}"
    return "–"


def _number(value: float | None, form: str = "{:.3f}") -> str:
    return "–" if value is None else form.format(value)


def _state_section(ranking: Ranking) -> Content:
    sized = state_sizes(ranking)
    if ranking.facts["state_size"] == 0:
        return [("text", f"None: {ranking.name} carries no values from frame to frame, so there is no figure against state size.")]
    if not sized:
        return [("text", f"Unknown: {ranking.name} has no method step and no attribute state_size, or its state grows.")]
    missing = sorted({a.model for each in ranking.standings for a in each.against} - set(sized))
    texts = [
        f"Mean accuracy over {_tasks(ranking.standings)}. The axis need not start at 0, and no difference in this chart was tested for significance.",
        "The nearest models have the same colours as in the other charts. They are near on each task; models with a similar mean can "
        "differ more on single tasks.",
    ]
    if missing:
        texts.append(f"Not shown, because they have no fixed-size state or no runs on all these tasks: {', '.join(missing)}.")
    return [("beside", ("state", texts))]


def _cost(ranking: Ranking) -> Content:
    """Training speed beside that of the peers."""
    mine = ranking.facts["tokens_per_second"]
    speeds = {ranking.label: mine, **ranking.facts["peer_speeds"]}
    order = sorted(speeds, key=lambda name: -float(speeds[name]))
    rows = [[name, f"{speeds[name]:,}", f"{speeds[name] / mine:.2f}"] for name in order]
    text = (
        f"Training on this machine: task {ranking.peers.tasks[0]}, the same batch and threads. {ranking.label}: {speed(ranking)}, in torch. "
        "The other models: the fastest of a few updates in the program, with its own kernels."
    )
    return [("table", (["model", "tokens/s", f"of {ranking.label}"], rows)), ("text", text)]


def _failures(ranking: Ranking) -> Content:
    tasks = [each.task for each in ranking.standings]
    own = [each for each in ranking.standings if each.task != 4]
    certain = [each for each in own if len(entropy_bins(ranking, each)) < 2]
    drawn = ["gaps"] if 4 in tasks else []
    drawn += [f"axis-{task}" for task in tasks if task != 4 and axis_of(ranking, task)]
    drawn += [f"position-{each.task}" for each in own]
    drawn += [f"certainty-{each.task}" for each in own if each not in certain]
    out: Content = [("figures", drawn)]
    if len(certain) < len(own):
        out.append(
            (
                "text",
                "By certainty: elements are binned by the entropy of the exact filter's belief about their state, 0 if it is certain. Entropy "
                "is a property of the sample, not of the model. Bins contain different elements, so accuracy can also rise with entropy.",
            )
        )
    if certain:
        out.append(("text", f"No chart by certainty for {_tasks(certain)}: {_FEW_UNCERTAIN}."))
    return out
