"""The plan of :func:`rank`: what a run costs on this machine, and which runs fit the budget."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import torch

from .config import Config
from .network import Network
from .peers import CHOICE_SEED, LEAST_GRAMMARS, Peers, TaskName
from .training import _forward

_UPDATES, _SECONDS = 5, 0.5  # measured at least
_RESERVE = 1.1  # checks before training, ceilings, files


class Job(TypedDict):
    """One training: of a task on a grammar, or of a rate on the grammar of choices (``rate``, else None)."""

    key: str
    task: TaskName
    seed: int
    rate: float | None
    updates: int
    seconds: float


@dataclass(frozen=True)
class Cost:
    """Measured seconds of a run of a task, and training tokens (frames) per second."""

    choice: float
    run: float
    tokens_per_second: float


def cost_of(
    network: Callable[[int], Network], peers: Peers, task: TaskName, device: torch.device, precision: str, eval_batch: int
) -> Cost:
    """Measures a few updates and one evaluated batch."""
    config = peers.config(task, CHOICE_SEED)
    t, e = config.values["train"], config.values["eval"]
    model = network(1).to(device).train()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-6)
    made, frames, began = -1, 0, 0.0
    for batch in config.task.batches("train", t["batch"]):
        logits = _forward(model, batch, device, precision)
        targets = batch.torch().targets.to(device)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        adam.zero_grad()
        made += 1
        frames += batch.shape[0] * batch.shape[1]
        if made == 0:  # the first is slower
            _wait(device)
            frames, began = 0, time.monotonic()
        elif made >= _UPDATES and time.monotonic() - began > _SECONDS:
            break
    _wait(device)
    update = (time.monotonic() - began) / made
    test = config.task.batch("test", range(eval_batch))
    model.eval()
    with torch.no_grad():
        for _ in range(2):  # the first is slower
            _wait(device)
            began = time.monotonic()
            _forward(model, test, device, precision)
            _wait(device)
    batch_seconds = time.monotonic() - began
    longer = sum(config.task.at(point).batch("test", [0]).shape[1] / test.shape[1] for point in points(config))
    batches = (e["test_samples"] + e["valid_samples"] + e["grid_samples"] * longer) / eval_batch
    choice = update * t["updates"] + batch_seconds * 5 * e["valid_samples"] / eval_batch
    run = update * t["updates"] + batch_seconds * batches
    return Cost(_RESERVE * choice, _RESERVE * run, frames / (update * made))


def points(config: Config) -> list[int]:
    """Values of the task's test axis at which a run is tested."""
    axis = config.task._native.axis
    found: list[int] = config.values["eval"][axis[1]] if axis else []
    return found


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def make_plan(peers: Peers, costs: dict[TaskName, Cost], limit: float, spent: float = 0.0) -> list[Job]:
    """Jobs that fit the limit: rates, then tasks on two grammars each, then further grammars; ValueError if the first does not fit.

    ``spent``: seconds of the limit that have passed.
    """

    def job(task: TaskName, seed: int, rate: float | None = None) -> Job:
        key = f"{'task' if isinstance(task, int) else ''}{task}-grammar{seed}" if rate is None else f"rate-{rate:g}"
        seconds = costs[task].run if rate is None else costs[task].choice
        return Job(key=key, task=task, seed=seed, rate=rate, updates=peers.config(task, seed)["train.updates"], seconds=round(seconds, 1))

    start, *others = peers.tasks
    seeds = {task: peers.seeds(task) for task in peers.tasks}
    first = [job(start, CHOICE_SEED, rate) for rate in peers.rates] + [job(start, seed) for seed in seeds[start][:LEAST_GRAMMARS]]
    needed = spent + sum(each["seconds"] for each in first)
    if needed > limit:
        raise ValueError(
            f"[rank] budget {clock(limit)} is too small: {len(peers.rates)} learning rates and two grammars of task {start} would take about "
            f"{clock(needed)} at the speed measured now ({costs[start].tokens_per_second:,.0f} tokens/s); other load on this machine counts: "
            "try again when it is idle, or give a larger budget"
        )
    blocks = [[job(task, seed) for seed in seeds[task][:LEAST_GRAMMARS]] for task in others]
    most = max(len(found) for found in seeds.values())
    for index in range(LEAST_GRAMMARS, most):
        blocks += [[job(task, found[index])] for task, found in seeds.items() if index < len(found)]
    jobs, left = first, limit - needed
    for block in blocks:
        took = sum(each["seconds"] for each in block)
        began = block and (block[0]["task"] == start or len(block) > 1 or any(each["task"] == block[0]["task"] for each in jobs))
        if began and took <= left:
            jobs, left = jobs + block, left - took
    return jobs


def plan_text(plan: dict[str, Any], name: str, peers: Peers) -> str:
    """The plan in words."""
    jobs: list[Job] = plan["jobs"]
    total = sum(each["seconds"] for each in jobs)
    speed = plan["tokens_per_second"]
    lines = [
        f"{name}: width {plan['width']}, {plan['parameters']:,} parameters, {speed:,} training tokens/s",
        f"plan: about {clock(total)} of {clock(plan['identity']['budget'])}, compared at scale {peers.scale}",
        f"  learning rate: {len(peers.rates)} rates on task {peers.tasks[0]}, grammar {CHOICE_SEED}, about "
        + clock(sum(each["seconds"] for each in jobs if each["rate"] is not None)),
    ]
    for task in peers.tasks:
        mine = [each for each in jobs if each["task"] == task and each["rate"] is None]
        took = clock(sum(each["seconds"] for each in mine))
        seeds = ", ".join(str(each["seed"]) for each in mine)
        models = len(peers.models(task))
        if mine:
            lines.append(f"  task {task}: grammars {seeds}, against {models} models, about {took}")
        elif models:
            lines.append(f"  task {task}: does not fit")
    return "\n".join(lines)


def clock(seconds: float) -> str:
    """A time in minutes and seconds.

    >>> from selectivbench._rank_plan import clock
    >>> clock(75), clock(4000), clock(9.2)
    ('1:15', '1:06:40', '0:10')
    """
    whole = int(-(-seconds // 1))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
