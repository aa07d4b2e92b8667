"""How a ranking was measured, as names and texts, and the call that repeats it."""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .peers import CHOICE_SEED, TaskName
from .ranked import rates_text

if TYPE_CHECKING:
    from .ranked import Ranking

Rows = list[tuple[str, str]]


def network(ranking: Ranking) -> str:
    """Size of the mixer's network in one sentence."""
    facts = ranking.facts
    known = f"{facts['state_size']:,} state values per layer" if facts["state_size"] else "no state"
    state = "state size unknown or growing" if facts["state_size"] is None else known
    return f"Width {facts['width']}, {facts['layers']} layers, {facts['parameters']:,} parameters, {state}."


def speed(ranking: Ranking) -> str:
    """Training speed of the mixer, and when it was measured."""
    return f"{ranking.facts['tokens_per_second']:,} tokens/s, measured on a few updates before training started"


def measured(ranking: Ranking) -> Rows:
    """Data, training and test behind the numbers."""
    facts, peers, tasks = ranking.facts, ranking.peers, [each.task for each in ranking.standings]
    identity = facts["identity"]
    configs = {task: peers.config(task, min(peers.seeds(task))) for task in tasks if task != 4}

    def by_task(key: str) -> str:
        return _by_task({task: f"{config[key]:,}" for task, config in configs.items()})

    updates = {task: f"{config['train.updates']:,} × {config['train.batch']}" for task, config in configs.items()}
    tests = {task: f"{config['eval.test_samples']:,}" for task, config in configs.items()}
    if 4 in tasks:
        gaps = sorted({int(gap) for (of, _), row in ranking.runs.items() if of == 2 for gap in row["grid"]})[1:]
        tests[4] = f"{configs[2]['eval.grid_samples']:,} at each of the gap lengths {', '.join(map(str, gaps))}"
    compared = sorted({other.model for each in ranking.standings for other in each.against})
    rows = [run for run in peers.runs if (run["task"], run["grammar_seed"]) in ranking.runs]
    residuals: dict[str, list[str]] = {identity["residual"]: [ranking.label]}
    for model in compared:
        residuals.setdefault(next(run["residual"] for run in rows if run["model"] == model), []).append(model)
    theirs = sorted({(run["device"], run["precision"]) for run in rows})
    machines = " and ".join(f"{device} in {precision}" for device, precision in theirs)
    n_grams = sorted({run["n"] for run in rows if run["n"] is not None})
    out = [
        ("grammars (seeds)", _by_task({each.task: ", ".join(map(str, each.seeds)) for each in ranking.standings})),
        ("size of a grammar", _by_task({task: _grammar(config) for task, config in configs.items() if isinstance(task, int)})),
        ("elements per sample", _by_task({task: str(config.task.length) for task, config in configs.items()})),
        ("updates × samples per batch", _by_task(updates)),
        ("test samples per grammar", _by_task(tests)),
        ("ceiling", f"exact filter; samples per grammar: {by_task('eval.ceiling_samples')}"),
        ("n-gram", f"n = {', '.join(map(str, n_grams))}, chosen on valid" if n_grams else ""),
        ("accuracy by grammar", "; ".join(f"task {task}: {each}" for task, each in _accuracies(ranking).items())),
        (
            "95 % intervals",
            "Student's t over grammars, clipped to 0 to 1; one run per model and grammar, so initial weights differ between grammars",
        ),
        ("protocol", peers.protocol),
        ("residual", "; ".join(f"{kind}: {', '.join(models)}" for kind, models in sorted(residuals.items()))),
        ("learning rate", _rates(ranking)),
        ("learning rates of the peers", _rates_of_peers(ranking, rows)),
        ("parts of the peers", _parts(rows)),
        (
            "training",
            f"{ranking.label}: torch {facts['torch']} on {identity['device']} in {facts['precision']}, with initial weights of its own; the "
            f"peers: the program on {machines}",
        ),
        ("training speed", f"{speed(ranking)} ({facts['machine']}, {identity['device']}, {facts['precision']}, threads: {facts['threads']})"),
    ]
    return [(name, text) for name, text in out if text]


def _accuracies(ranking: Ranking) -> dict[TaskName, str]:
    found: dict[TaskName, list[str]] = {}
    for task, seed in sorted(ranking.runs, key=str):
        found.setdefault(task, []).append(f"{ranking.runs[task, seed]['accuracy']:.3f}")
    return {task: ", ".join(each) for task, each in found.items()}


def _rates(ranking: Ranking) -> str:
    """How the mixer's rate was chosen, and whether a better one may lie beyond."""
    facts, rates = ranking.facts, ranking.peers.rates
    valid = ", ".join(f"{rate:g}: {value:.4f}" for rate, value in facts["valid"])
    edge = {min(rates): "smallest", max(rates): "largest"}.get(facts["rate"])
    beyond = f". It is the {edge} rate tried: a rate beyond it may be better" if edge and len(rates) > 1 else ""
    return f"{facts['rate']:g}, by valid accuracy on grammar {CHOICE_SEED} ({valid}){beyond}"


_TUNED = {
    "quick": "the same for all models, not tuned",
    "small": "chosen per model on valid on the same grammar, with residual and convolution; repeated at a lower rate, or left out, if "
    "training collapsed",
}


def _rates_of_peers(ranking: Ranking, rows: list[dict[str, Any]]) -> str:
    models: dict[str, list[str]] = {}
    for model in sorted({run["model"] for run in rows}):
        models.setdefault(rates_text(sorted({run["lr"] for run in rows if run["model"] == model})), []).append(model)
    common = max(models, key=lambda each: len(models[each]))
    others = "".join(f"; {', '.join(names)}: {rates}" for rates, names in models.items() if rates != common)
    tuned = _TUNED.get(ranking.peers.source)
    return common + others + (f" ({tuned})" if tuned else "")


def _parts(rows: list[dict[str, Any]]) -> str:
    """What the networks of the peers have besides their mixers."""
    found: dict[str, list[str]] = {}
    for model in sorted({run["model"] for run in rows}):
        switches = next(run["switches"] for run in rows if run["model"] == model)
        for part, key in (("short convolution", "short_conv"), ("output gate", "output_gate"), ("MLP", "mlp"), ("rotary positions", "rope_base")):
            if switches.get(key, "0") not in ("0", "off"):
                found.setdefault(part, []).append(model)
    listed = "; ".join(f"{part}: {', '.join(models)}" for part, models in found.items())
    return f"{listed}. A mixer without these parts is compared as it is" if found else ""


def _grammar(config: Any) -> str:
    grammar = config.task.grammar
    return f"{len(grammar.states)} states, {grammar.vocab} symbols"


def _by_task(values: Mapping[TaskName, str]) -> str:
    """Equal values once: "tasks 1, 3: 40; task 2: 20", or the value alone if it is that of all tasks."""
    same: dict[str, list[str]] = {}
    for task, value in values.items():
        same.setdefault(value, []).append(str(task))
    if len(same) < 2:
        return "".join(same)
    return "; ".join(f"task{'s' if len(tasks) > 1 else ''} {', '.join(tasks)}: {value}" for value, tasks in same.items())


def call(ranking: Ranking) -> str:
    """Python that repeats the ranking."""
    identity = ranking.facts["identity"]
    mixer, name = (ranking.name, "") if ranking.name.isidentifier() else ("MyMixer", f"name={json.dumps(ranking.name)}, ")
    skip = f", skip={json.dumps(identity['skip'])}" if identity["skip"] else ""
    only = f", task={json.dumps(identity['task'])}" if identity.get("task") else ""
    return (
        f"import selectivbench as sb\n"
        f"sb.rank({mixer}, {name}budget={identity['budget']:g}, peers={json.dumps(ranking.peers.source)},\n"
        f'        device="{identity["device"]}", residual="{identity["residual"]}"{skip}{only},\n'
        f'        out="runs/repeated")  # {mixer} is the class of the mixer'
    )


def appendix(ranking: Ranking) -> Rows:
    """Digests, choice of the rate, and the runs of the peers."""
    out = [("digest of the mixer (weights and outputs at seed 1)", ranking.facts["identity"]["mixer"])]
    for task, seed in sorted(ranking.runs, key=str):
        ids = [f"{run['model']} {run['run_id']}" for run in ranking.peers.runs if (run["task"], run["grammar_seed"]) == (task, seed)]
        out.append((f"runs of the peers, task {task}, grammar {seed}", ", ".join(ids)))
    return out
