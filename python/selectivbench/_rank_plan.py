"""The plan of :func:`rank`: what a run costs on this machine, and which runs fit the budget."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import torch

from .config import Config
from .evaluation import measure
from .network import Network
from .peers import CHOICE_SEED, LEAST_GRAMMARS, Peers, TaskName
from .task import Task
from .training import gradients, predictor

_UPDATES, _SECONDS = 5, 1.0  # measured at least
_RESERVE = 1.1  # checks before training, ceilings, files
_EVAL_BATCH = 8  # samples: at `quick` a sequence of task 2's longest gaps has 4000 frames
_EVAL_FRAMES = 25600  # on a GPU, per batch


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
    network: Callable[[int], Network], peers: Peers, task: TaskName, device: torch.device, precision: str
) -> Cost:
    """Measures a few updates and evaluated batches, as training makes them."""
    config = peers.config(task, CHOICE_SEED)
    t, e = config.values["train"], config.values["eval"]
    model = network(1).to(device).train()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-6)
    made, frames, began = -1, 0, 0.0
    for batch in config.task.batches("train", t["batch"]):
        gradients(model, config.task, batch, device, precision, t["clip"])
        adam.step()
        made += 1
        frames += batch.shape[0] * batch.shape[1]
        if made == 0:  # the first is slower
            _wait(device)
            frames, began = 0, time.monotonic()
        elif made >= _UPDATES and time.monotonic() - began > _SECONDS:
            break
    _wait(device)
    update = (time.monotonic() - began) / made
    samples = 2 * eval_batch(config, device)
    predict = predictor(model, device, precision)
    for _ in range(2):  # the first is slower
        began = time.monotonic()
        measure(predict, config.task, "test", samples, batch_size=samples // 2)
    sample_seconds = (time.monotonic() - began) / samples
    own = frames_of(config.task)
    longer = sum(frames_of(config.task.at(point)) / own for point in points(config))
    choice = update * t["updates"] + sample_seconds * 5 * e["valid_samples"]
    run = update * t["updates"] + sample_seconds * (e["test_samples"] + e["valid_samples"] + e["grid_samples"] * longer)
    return Cost(_RESERVE * choice, _RESERVE * run, frames / (update * made))


def frames_of(task: Task) -> int:
    """Frames of the first test sample."""
    return task.batch("test", [0]).shape[1]


def eval_batch(config: Config, device: torch.device) -> int:
    """Samples per evaluated batch: 8 on a CPU, on a GPU also more if the longest test sequences leave room."""
    if device.type != "cuda":
        return _EVAL_BATCH
    longest = max(frames_of(task) for task in (config.task, *map(config.task.at, points(config))))
    return max(_EVAL_BATCH, _EVAL_FRAMES // longest)


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
