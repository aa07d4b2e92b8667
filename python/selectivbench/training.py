"""A reference loop in torch with the paper's protocol: for those who want to swap only the model."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_

from ._checks import instance
from .batches import Batch
from .config import Config
from .evaluation import Evaluation, evaluate, measure


@dataclass(frozen=True)
class Trained:
    """What training left: the measurements, and a row of numbers for every update and evaluation."""

    result: Evaluation
    history: list[dict[str, float]]


def learning_rate(update: int, peak: float, warmup: int, updates: int) -> float:
    """Linear warm-up, then a cosine to 0.

    >>> import selectivbench as sb
    >>> [round(sb.training.learning_rate(u, 1e-3, 2, 10), 6) for u in (0, 1, 2, 6, 10)]
    [0.0005, 0.001, 0.001, 0.0005, 0.0]
    """
    if update < warmup:
        return peak * (update + 1) / warmup
    return peak * (1 + math.cos(math.pi * (update - warmup) / (updates - warmup))) / 2


def predictor(model: torch.nn.Module, device: torch.device | str = "cpu") -> Callable[[Batch], torch.Tensor]:
    """The model as evaluate() takes it: frames to logits, without gradients or dropout."""

    def predict(batch: Batch) -> torch.Tensor:
        model.eval()
        with torch.no_grad():
            logits: torch.Tensor = model(batch.torch().frames.to(device))
        return logits

    return predict


def train(
    model: torch.nn.Module,
    config: Config,
    *,
    device: torch.device | str = "cpu",
    progress: Callable[[dict[str, float]], Any] | None = None,
) -> Trained:
    """Trains ``model`` (frames [batch, frames, channels] to logits [batch, frames, answers]) as the program trains its own.

    Same samples in the same order, schedule, clipping, Adam and evaluations, as ``[train]`` and ``[eval]`` of the config
    say; initialisation, dropout and number format are the model's, where it computes is ``device``'s. ``progress`` sees each
    row of the history.
    """
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"[train] model, expected a torch.nn.Module, got {type(model).__name__}")
    instance("train", "config", config, Config)
    for quirk, on in config.values["quirks"].items():
        if on:
            raise ValueError(f"[train] quirks.{quirk}, expected false: faults of the published code are the program's alone")
    task, t, e = config.task, config.values["train"], config.values["eval"]
    torch.manual_seed(t["seed"])
    model.to(device)
    adam = torch.optim.AdamW(
        model.parameters(), lr=t["lr"], betas=(t["beta1"], t["beta2"]), eps=t["eps"], weight_decay=t["weight_decay"]
    )
    history: list[dict[str, float]] = []

    def keep(row: dict[str, float]) -> None:
        history.append(row)
        if progress is not None:
            progress(row)

    for update, batch in enumerate(_batches(config)):
        model.train()
        lr = learning_rate(update, t["lr"], t["warmup"], t["updates"])
        for group in adam.param_groups:
            group["lr"] = lr
        tensors = batch.torch()
        logits = model(tensors.frames.to(device))
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), tensors.targets.to(device).flatten(), ignore_index=-1
        )
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = clip_grad_norm_(model.parameters(), t["clip"] or math.inf)
        if not (math.isfinite(float(loss)) and math.isfinite(float(norm))):
            raise RuntimeError(f"[train] diverged at update {update}, expected a finite loss and gradient, got {loss:g}")
        adam.step()
        keep({"update": update, "loss": float(loss), "grad_norm": float(norm), "lr": lr})
        if e["every"] > 0 and (update + 1) % e["every"] == 0 and update + 1 < t["updates"]:
            valid = measure(predictor(model, device), task, "valid", e["valid_samples"], breakdowns=False, batch_size=e["batch"])
            keep({"update": update + 1, "valid_accuracy": valid.accuracy, "valid_loss": valid.loss})
    result = evaluate(
        predictor(model, device),
        task,
        e["gaps"],
        samples=e["test_samples"],
        valid_samples=e["valid_samples"],
        grid_samples=e["grid_samples"],
        ceiling_samples=e["ceiling_samples"],
        batch_size=e["batch"],
    )
    return Trained(result, history)


def _batches(config: Config) -> Iterator[Batch]:
    """The batches of the updates, in the program's order."""
    t = config.values["train"]
    samples = t["updates"] * t["batch"]
    order = (t["order_seed"], samples) if t["order_seed"] else None
    return iter(config.task.batches("train", t["batch"], count=samples, order=order))
