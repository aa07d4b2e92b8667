"""Training loop in torch that follows the program's protocol. You provide only the model."""
from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_

from ._checkpoint import Checkpoint
from ._checks import instance, path, shown
from ._progress import Progress
from ._settings import Setting
from .batches import Batch
from .causality import check_causal
from .config import Config
from .evaluation import Evaluation, evaluate, measure
from .task import Task


@dataclass(frozen=True)
class Trained:
    """Result of :func:`train`.

    ``history`` has one row per update and per evaluation. ``settings`` says how the model was trained, as :func:`record` takes
    it. If the config names a model of the program, its keys of ``[model]`` describe that model and are not in ``settings``: add
    your model's ``model.width`` and ``model.layers``.
    """

    result: Evaluation
    history: list[dict[str, float]]
    settings: dict[str, Setting] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.result)


def learning_rate(update: int, peak: float, warmup: int, updates: int) -> float:
    """Linear warm-up, then a cosine to 0.

    >>> import selectivbench as sb
    >>> [round(sb.training.learning_rate(u, 1e-3, 2, 10), 6) for u in (0, 1, 2, 6, 10)]
    [0.0005, 0.001, 0.001, 0.0005, 0.0]
    """
    if update < warmup:
        return peak * (update + 1) / warmup
    return peak * (1 + math.cos(math.pi * (update - warmup) / (updates - warmup))) / 2


def precision_of(config: Config, device: torch.device) -> str:
    """``train.precision`` if the config gives it, else amp on a CUDA device and fp32 elsewhere.

    >>> import selectivbench as sb, torch
    >>> sb.training.precision_of(sb.Config(), torch.device("cuda")), sb.training.precision_of(sb.Config(), torch.device("cpu"))
    ('amp', 'fp32')
    """
    cuda = device.type == "cuda"
    if not any(name == "train.precision" for name, _, _ in config._native.items):
        return "amp" if cuda else "fp32"
    precision: str = config["train.precision"]
    if precision in ("amp", "tf32") and not cuda:
        raise ValueError(f"[train.precision] {precision} requires a CUDA device, got {device}")
    return precision


@contextlib.contextmanager
def _exact_or_tf32(precision: str, device: torch.device) -> Iterator[None]:
    """float32 products on a CUDA device as the precision says: exact, or in TF32. amp leaves torch's switches alone."""
    if device.type != "cuda" or precision == "amp":
        yield
        return
    products, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, cudnn.allow_tf32
    products.allow_tf32 = cudnn.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        products.allow_tf32, cudnn.allow_tf32 = before


def _on(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The values on the device. A copy from pinned memory to a GPU does not wait for the work before it."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


def _forward(model: torch.nn.Module, batch: Batch, device: torch.device, precision: str) -> Any:
    """The model's outputs: amp runs matrix products in bfloat16 and gives float32."""
    frames = _on(batch.torch().frames, device)
    if precision == "fp64":
        return model(frames.double())
    if precision != "amp":
        return model(frames)
    with torch.autocast(device.type, dtype=torch.bfloat16):  # type: ignore[attr-defined]
        logits = model(frames)
    return logits.float() if isinstance(logits, torch.Tensor) else logits


def gradients(
    model: torch.nn.Module, task: Task, batch: Batch, device: torch.device, precision: str, clip: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of a batch and norm of its gradients, which are then in the model's parameters, clipped."""
    logits = _forward(model, batch, device, precision)
    targets = _on(batch.torch().targets, device)
    if task.squared_error:
        asked = targets >= 0
        wanted = batch.torch().values
        assert wanted is not None
        loss = torch.nn.functional.mse_loss(logits[asked], _on(wanted, device).to(logits)[asked])
    else:
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), clip_grad_norm_(model.parameters(), clip or math.inf)


def _late(device: torch.device) -> bool:
    """Whether values of an update are read during the next one: a GPU would otherwise wait for the host after each update."""
    return device.type == "cuda"


class Losses:
    """Loss and gradient norm of each update: checked, then passed on as a row of the history.

    On a CPU ``add`` raises an error if they are not finite, and ``flush`` after the step passes them on. On a GPU they are copied
    in the background, and checked by the next ``add`` or ``flush``.
    """

    def __init__(self, device: torch.device, keep: Callable[[dict[str, float]], Any]) -> None:
        self._keep, self._device, self.late = keep, device, _late(device)
        event: Any = torch.cuda.Event
        self._copied: Any = event() if device.type == "cuda" else None
        self._waiting: tuple[int, torch.Tensor, float] | None = None

    def add(self, update: int, loss: torch.Tensor, norm: torch.Tensor, lr: float) -> None:
        """Takes the values of an update, before its step."""
        self.flush()
        both = torch.stack([loss.double(), norm.double()])
        if self._copied is not None:
            both = torch.empty(2, dtype=torch.float64, pin_memory=True).copy_(both, non_blocking=True)
            self._copied.record(torch.cuda.current_stream(self._device))
        self._waiting = update, both, lr
        if not self.late:
            self._row()

    def flush(self) -> None:
        """Passes on the values that are not yet passed on."""
        if self._waiting is not None:
            row = self._row()
            self._waiting = None
            self._keep(row)

    def _row(self) -> dict[str, float]:
        assert self._waiting is not None
        update, both, lr = self._waiting
        if self._copied is not None:
            self._copied.synchronize()
        loss, norm = both.tolist()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._waiting = None
            raise RuntimeError(f"[train] diverged at update {update}, expected a finite loss and gradient, got {loss:g}")
        return {"update": update, "loss": loss, "grad_norm": norm, "lr": lr}


def predictor(
    model: torch.nn.Module, device: torch.device | str = "cpu", precision: str = "fp32"
) -> Callable[[Batch], torch.Tensor]:
    """The model as :func:`evaluate` takes it: logits for a batch, without gradients or dropout."""
    place = torch.device(device)

    def predict(batch: Batch) -> torch.Tensor:
        model.eval()
        with torch.no_grad():
            logits: torch.Tensor = _forward(model, batch, place, precision)
        return logits

    return predict


def train(
    model: torch.nn.Module,
    config: Config,
    *,
    device: torch.device | str = "cpu",
    progress: Callable[[dict[str, float]], Any] | bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Trained:
    """Trains ``model`` (frames [batch, frames, channels] to logits [batch, frames, answers]) as the program trains its models.

    Samples, their order, schedule, clipping, Adam and evaluations are those of the config; initialisation and dropout are the
    model's own. First the model is called on a few samples: wrong shapes of the outputs and models that are
    not causal raise a ``ValueError``.

    ``device``: where the model trains. On a CUDA device the default precision is amp (weights in float32, products in bfloat16),
    as in the program; ``train.precision`` selects another. ``progress``: a function that sees each row of the history; True or
    False: progress on standard error, or none; by default it is shown in a terminal. ``checkpoint``: file to save to, after each
    evaluation and every ``run.checkpoint_every`` updates; if the file exists, training resumes from it and ends with the same
    weights, history and result on a CPU, however often it was killed.
    """
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"[train] model, expected a torch.nn.Module, got {type(model).__name__}")
    instance("train", "config", config, Config)
    for quirk, on in config.values["quirks"].items():
        if on:
            raise ValueError(f"[train] quirks.{quirk}, expected false: only the program has the faults of the published code")
    if config.values["train"].get("position_stretch", 1) != 1:
        raise ValueError("[train] train.position_stretch, expected 1: only the program's transformer has random positions")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("[train] model has no parameters to train")
    place = torch.device(device)
    precision = precision_of(config, place)
    file = None if checkpoint is None else path("train", checkpoint)
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"[train] progress, expected a function, True, False or None, got {shown(progress)}")
    with _exact_or_tf32(precision, place):
        return _train(model, config, place, precision, progress, file)


def _train(
    model: torch.nn.Module,
    config: Config,
    device: torch.device,
    precision: str,
    progress: Callable[[dict[str, float]], Any] | bool | None,
    file: str | None,
) -> Trained:
    task, t, e = config.task, config.values["train"], config.values["eval"]
    model.to(device)
    if precision == "fp64":
        model.double()
    predict = predictor(model, device, precision)
    _check_model(model, predict, task, device, t["seed"])
    torch.manual_seed(t["seed"])
    adam = torch.optim.AdamW(
        model.parameters(), lr=t["lr"], betas=(t["beta1"], t["beta2"]), eps=t["eps"], weight_decay=t["weight_decay"]
    )
    saved = None if file is None else Checkpoint(file, config, precision, device, model, adam)
    first, history = (0, []) if saved is None else saved.restore()
    every, updates = config["run.checkpoint_every"], t["updates"]
    shows = sys.stderr.isatty() if progress is None else progress is True
    line = Progress(updates, first, sys.stderr) if shows else None
    tell = progress if callable(progress) else line

    def keep(row: dict[str, float]) -> None:
        history.append(row)
        if tell is not None:
            tell(row)

    losses = Losses(device, keep)
    try:
        for update, batch in enumerate(_batches(config, first), first):
            model.train()
            lr = learning_rate(update, t["lr"], t["warmup"], updates)
            for group in adam.param_groups:
                group["lr"] = lr
            try:
                values = gradients(model, task, batch, device, precision, t["clip"])
            except Exception:
                losses.flush()  # the update before may have diverged, and that be the cause
                raise
            losses.add(update, *values, lr)
            adam.step()
            made = update + 1
            evaluates = e["every"] > 0 and made % e["every"] == 0 and made < updates
            saves = saved is not None and (evaluates or made == updates or (every > 0 and made % every == 0))
            if not losses.late or evaluates or saves or made == updates:
                losses.flush()
            if evaluates:
                valid = measure(predict, task, "valid", e["valid_samples"], breakdowns=False, batch_size=e["batch"])
                accuracy = {} if task.squared_error else {"valid_accuracy": valid.accuracy}
                keep({"update": made} | accuracy | {"valid_loss": valid.loss})
            if saves:
                assert saved is not None
                saved.save(made, history)
        if line is not None:
            line.evaluating()
        result = evaluate(
            predict,
            task,
            e[task._native.axis[1]] if task._native.axis else (),
            samples=e["test_samples"],
            valid_samples=e["valid_samples"],
            grid_samples=e["grid_samples"],
            ceiling_samples=e["ceiling_samples"],
            batch_size=e["batch"],
        )
    finally:
        if line is not None:
            line.end()
    return Trained(result, history, _settings(config, device, precision))


def _check_model(
    model: torch.nn.Module, predict: Callable[[Batch], torch.Tensor], task: Task, device: torch.device, seed: int
) -> None:
    """Calls the model on a few samples: it must take frames, return logits and be causal. Leaves torch's random state."""

    def seeded(batch: Batch) -> torch.Tensor:
        # Dropout that the model does not switch off is the same at every call; parameters made by the first call depend on
        # the seed of the run.
        torch.manual_seed(seed)
        samples, frames, channels = batch.shape
        expected = f"logits of shape {[samples, frames, task.answers]} (samples, frames, answers)"
        try:
            logits = predict(batch)
        except Exception as error:
            raise ValueError(
                f"[train] model(frames) failed; expected it to take frames of shape {[samples, frames, channels]} (samples, frames, "
                f"channels) and to return {expected}, got {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            ) from error
        if not isinstance(logits, torch.Tensor):
            raise ValueError(f"[train] model(frames), expected {expected}, got {type(logits).__name__}")
        if tuple(logits.shape) != (samples, frames, task.answers):
            raise ValueError(f"[train] model(frames), expected {expected}, got shape {list(logits.shape)}")
        return logits

    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        check_causal("train", "model", seeded, task, repeatable=True)


def _settings(config: Config, device: torch.device, precision: str) -> dict[str, Setting]:
    """How the model was trained: [train], the label, and [model] unless it is that of a model of the program."""
    out: dict[str, Setting] = {f"train.{key}": value for key, value in config.values["train"].items()}
    out.update({"train.device": "cuda" if device.type == "cuda" else "cpu", "train.precision": precision})
    out["run.label"] = config["run.label"]
    given = {name: value for name, value, _ in config._native.items if name.startswith("model.")}
    return out if "model.name" in given else out | given


def _batches(config: Config, first: int) -> Iterator[Batch]:
    """The batches of the updates from ``first`` on, in the program's order and with ``train.schedule``."""
    t = config.values["train"]
    batch, updates = t["batch"], t["updates"]
    order = (t["order_seed"], updates * batch) if t["order_seed"] else None
    ends = [*config.task._native.stages[1:], updates]
    for begin, end in zip(config.task._native.stages, ends):
        begin = max(begin, first)
        if begin < end:
            task = config.task._of_update(begin)
            yield from task.batches("train", batch, begin * batch, (end - begin) * batch, order=order)
