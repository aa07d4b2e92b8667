"""Trains a new mixer in the benchmark's network and ranks it among the program's models."""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import inspect
import io
import json
import math
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from . import _native
from ._checks import path, shown, text
from ._mixer import Make, name_of, said, state_size
from ._peer_speeds import peer_speeds
from ._rank_plan import Cost, Job, cost_of, eval_batch, make_plan, plan_text
from ._rank_progress import RankProgress
from .checking import CheckReport, check
from .config import Config
from .evaluation import Evaluation, record
from .network import RESIDUALS, Network, nearest_width, parameters
from .peers import CHOICE_SEED, LEAST_GRAMMARS, Peers, TaskName, load_peers
from .ranked import Ranking, digest_of, make_ranking, row_of, write
from .results import Measurement
from .training import precision_of, train

_FORMAT = 3
_OUT_OF_MEMORY: Any = torch.cuda.OutOfMemoryError
_SAVE_UPDATES, _SAVE_SECONDS = 25, 20  # between two checkpoints: at least so many updates, about so many seconds


def seconds_of(budget: str | float) -> float:
    """A time as text (90s, 10min, 1.5h) or as a number of seconds.

    >>> from selectivbench.ranking import seconds_of
    >>> seconds_of("10min"), seconds_of("1.5h"), seconds_of(30)
    (600.0, 5400.0, 30.0)
    """
    units = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", str(budget).strip())
    if isinstance(budget, bool) or found is None or found[2] not in units or float(found[1]) == 0:
        raise ValueError(f"[rank] budget, expected a time such as 90s, 10min or 1.5h, got {shown(budget)}")
    return float(found[1]) * units[found[2]]


def rank(
    mixer: Make,
    budget: str | float = "10min",
    *,
    out: str | os.PathLike[str] = "runs/rank",
    name: str | None = None,
    task: TaskName | None = None,
    peers: str | os.PathLike[str] | None = None,
    device: torch.device | str | None = None,
    residual: str = "post",
    skip: Sequence[str] = (),
    progress: bool = True,
) -> Ranking:
    """Ranks a mixer among the program's models: ``mixer(width)`` makes a module that maps [batch, frames, width] to the same shape.

    :func:`check` runs first: a failed check is a ``ValueError``, and nothing is written. The network around the mixer, samples and
    training are those of the program's models. The width is chosen so that the network has about as many parameters as theirs; the
    learning rate is chosen on valid on grammar 11, which is not reported. The budget decides which tasks and grammars fit, estimated by a few updates; the plan
    is shown before the first update. A budget too small for two grammars of the first task is a ``ValueError`` with the time it would take.

    ``out``: folder of the plan, runs and card. The same call resumes there after an interruption, with the same bytes on a CPU.
    ``task``: one task, by its number or the name of its kind, that ``peers`` has results of; by default all of the paper's tasks.
    ``device``: by default cuda if torch has a GPU, else cpu.
    ``peers``: scale of the shipped results, or a file that ``python3 -m selectivbench freeze`` wrote; by default ``small`` on a GPU and
    ``quick`` elsewhere. ``residual``: post or pre. ``skip``: checks to skip, which the card names. ``progress``: plan and progress on standard error.
    """
    began, limit = time.monotonic(), seconds_of(budget)
    folder = pathlib.Path(path("rank", out))
    if residual not in RESIDUALS:
        raise ValueError(f"[rank] residual, expected {' or '.join(RESIDUALS)}, got {shown(residual)}")
    if not callable(mixer) or isinstance(mixer, torch.nn.Module):
        raise ValueError(f"[rank] mixer, expected a class or function that is called with a width and returns a module, got {shown(mixer)}")
    title = text("rank", "name", name_of(mixer) if name is None else name, 80)
    place = _device(device)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"[rank] out, expected a folder, got a file, {folder}")
    others = load_peers(("small" if place.type == "cuda" else "quick") if peers is None else peers).of(task)
    first = others.tasks[0]
    if len(others.seeds(first)) < LEAST_GRAMMARS:
        raise ValueError(f"[rank] peers, expected task {first} on at least {LEAST_GRAMMARS} grammars, got {others.seeds(first)}")
    precision = precision_of(others.config(first, CHOICE_SEED), place)
    if progress:
        print(f"{title}: choosing a width, checking", file=sys.stderr, flush=True)
    ranker = _Ranker(mixer, title, others, task, place, precision, residual, folder)
    report = ranker.check(skip)
    with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []):
        with _alone(folder):
            plan = ranker.plan(limit, began, report, list(skip))
            if progress:
                print(plan_text(plan, title, others), file=sys.stderr, flush=True)
            ranking = ranker.run(plan, RankProgress(plan["jobs"], sys.stderr) if progress else None)
    return ranking


def _device(device: torch.device | str | None) -> torch.device:
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        place = torch.device(("cuda" if found else "cpu") if device is None else device)
    except (RuntimeError, TypeError):
        raise ValueError(f"[rank] device, expected cpu or cuda, got {shown(device)}") from None
    if place.type not in ("cpu", "cuda"):
        raise ValueError(f"[rank] device, expected cpu or cuda, got {shown(str(place))}")
    if place.type == "cuda" and not found:
        raise ValueError("[rank] device cuda requires a GPU and a PyTorch with CUDA; torch finds none here")
    if place.type == "cuda" and (place.index or 0) >= found:
        raise ValueError(f"[rank] device, expected cuda:0 to cuda:{found - 1}, got {shown(str(place))}")
    return place


@contextlib.contextmanager
def _alone(folder: pathlib.Path) -> Iterator[None]:
    """Two rankings in one folder would overwrite each other's plan. A folder in which nothing was written is removed."""
    lock = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(lock, "w")
    except OSError as error:
        raise ValueError(f"[rank] out, cannot write to {folder}: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"[rank] {folder} is in use by another ranking; name another folder with out= (--out)") from None
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            if [each.name for each in folder.iterdir()] == ["lock"]:
                lock.unlink()
                folder.rmdir()


def _source_digest(mixer: Make) -> str | None:
    """SHA-256 of the file that defines the mixer; None if there is none."""
    try:
        file = inspect.getsourcefile(getattr(mixer, "func", mixer))
        return None if file is None else hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()
    except (OSError, TypeError):
        return None


class _Ranker:
    """The mixer, its network, and the folder of its runs."""

    def __init__(
        self,
        mixer: Make,
        name: str,
        peers: Peers,
        only: TaskName | None,
        device: torch.device,
        precision: str,
        residual: str,
        folder: pathlib.Path,
    ) -> None:
        self.mixer, self.name, self.peers, self.only, self.residual, self.folder = mixer, name, peers, only, residual, folder
        self.device, self.precision = device, precision
        self.task = peers.config(peers.tasks[0], CHOICE_SEED).task
        self.width = nearest_width(
            mixer, peers.target, peers.layers, self.task.channels, self.task.answers, residual, peers.step
        )

    def check(self, skip: Sequence[str]) -> CheckReport:
        """The health check; a ValueError of the first failure. bfloat16 matters only on a GPU."""
        report = check(self.mixer, self.width, skip=list(skip))
        failures = [each for each in report.failures if each.name != "bf16" or self.device.type == "cuda"]
        if failures:
            raise ValueError(f"[check.{failures[0].name}] {self.name}: {failures[0].detail}")
        return report

    def network(self, seed: int) -> Network:
        """A new network with the weights of this seed."""
        torch.manual_seed(seed)
        return Network(self.mixer, self.width, self.peers.layers, self.task.channels, self.task.answers, self.residual)

    def config(self, job: Job, rate: float, **other: Any) -> Config:
        """The config of a job: evaluated only at its end. The choice of a rate measures more valid samples, and no test."""
        batch = eval_batch(self.peers.config(job["task"], job["seed"]), self.device)
        own: dict[str, Any] = {"train__lr": rate, "eval__batch": batch, "eval__every": 0, **other}
        if job["rate"] is not None:
            valid = 5 * self.peers.settings[job["task"]]["eval.valid_samples"]
            own.update(eval__valid_samples=valid, eval__test_samples=1, eval__ceiling_samples=0)
            axis = self.task._native.axis
            if axis:
                own[f"eval__{axis[1]}"] = []
        return self.peers.config(job["task"], job["seed"], **own)

    def plan(self, limit: float, began: float, report: CheckReport, skip: list[str]) -> dict[str, Any]:
        """The plan of this folder, or a new one, measured and saved. The identity says for which mixer and question it is."""
        try:
            network = self.network(1)
            digest = self._digest(network)
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error
        identity = {
            "format": _FORMAT,
            "version": _native.version,
            "name": self.name,
            "task": None if self.only is None else str(self.only),
            "mixer": digest,
            "peers": digest_of(self.peers),
            "budget": limit,
            "residual": self.residual,
            "device": self.device.type,
            "skip": sorted(skip),
        }
        file = self.folder / "plan.json"
        if file.exists():
            plan: dict[str, Any] = json.loads(file.read_text())
            for key, value in identity.items():
                if plan["identity"].get(key) != value:
                    raise ValueError(
                        f"[rank] {self.folder} holds a ranking with another {key}; name another folder with out= (--out), or delete it"
                    )
            return plan
        try:
            costs = {task: self._cost(task) for task in self.peers.tasks}
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error
        jobs = make_plan(self.peers, costs, limit, time.monotonic() - began)
        speeds = peer_speeds(self.peers, torch.get_num_threads(), limit) if self.device.type == "cpu" else {}
        plan = {
            "identity": identity,
            "width": self.width,
            "parameters": parameters(network),
            "state_size": state_size(network.layers[0], self.width),
            "precision": self.precision,
            "tokens_per_second": round(costs[self.peers.tasks[0]].tokens_per_second),
            "peer_speeds": speeds,
            "source_sha256": _source_digest(self.mixer),
            "threads": torch.get_num_threads(),
            "torch": str(torch.__version__),
            "checks": [[each.name, each.status] for each in report.checks],
            "jobs": jobs,
        }
        write(file, json.dumps(plan, indent=1) + "\n")
        return plan

    def _cost(self, task: TaskName) -> Cost:
        """A task whose batches do not fit into the GPU's memory fits no budget; the first task must fit."""
        try:
            return cost_of(self.network, self.peers, task, self.device, self.precision)
        except _OUT_OF_MEMORY:
            if task == self.peers.tasks[0]:
                raise
        torch.cuda.empty_cache()
        return Cost(math.inf, math.inf, 0.0)

    def _failure(self, error: BaseException) -> RuntimeError:
        return RuntimeError(f"[rank] {self.name} failed in training: {said(error)}; nothing was ranked")

    def _digest(self, network: Network) -> str:
        """Of the weights and outputs of a new network: another mixer, or a changed one, has other ones."""
        out = hashlib.sha256()
        for key, value in network.state_dict().items():
            out.update(key.encode() + value.numpy().tobytes())
        frames = torch.randn(1, 16, self.task.channels, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            out.update(network.eval()(frames).numpy().tobytes())
        return out.hexdigest()[:16]

    def run(self, plan: dict[str, Any], board: RankProgress | None) -> Ranking:
        """Trains what is missing and compares. Files of finished jobs are not trained again."""
        rates = {job["rate"]: self._done(job, job["rate"], board) for job in plan["jobs"] if job["rate"] is not None}
        valid = {rate: row["valid"] for rate, row in rates.items() if "diverged" not in row}
        if not valid:
            raise RuntimeError(f"[rank] training diverged at every learning rate: {', '.join(map(str, rates))}; nothing was ranked")
        rate = max(valid, key=lambda each: (valid[each], -each))
        runs, diverged = {}, []
        for job in plan["jobs"]:
            if job["rate"] is None:
                row = self._done(job, rate, board)
                if "diverged" in row:
                    diverged.append([job["task"], job["seed"], row["diverged"]])
                else:
                    runs[job["task"], job["seed"]] = row
                    self._record(job, rate, row, plan)
        if not runs:
            raise RuntimeError(f"[rank] training diverged on every grammar at rate {rate:g}; nothing was ranked")
        facts = {key: value for key, value in plan.items() if key != "jobs"}
        facts.update(rate=rate, valid=list(valid.items()), layers=self.peers.layers, machine=os.uname().machine, scale=self.peers.scale)
        facts.update(tasks=sorted({job["task"] for job in plan["jobs"]}, key=str), diverged=diverged)
        ranking = make_ranking(self.name, self.peers, facts, runs, str(self.folder))
        self._write_card(ranking)
        write(self.folder / "ranking.json", ranking.to_json())
        return ranking

    def _done(self, job: Job, rate: float, board: RankProgress | None) -> dict[str, Any]:
        """The row of a job: read, or trained now."""
        file = self.folder / "jobs" / f"{job['key']}.json"
        if file.exists():
            row: dict[str, Any] = json.loads(file.read_text())
            if board is not None:
                board.finished(job, row, was_there=True)
            return row
        file.parent.mkdir(parents=True, exist_ok=True)
        saved = file.with_suffix(".pt")
        if board is not None:
            board.begins(job)
        try:
            network = self.network(job["seed"])
            tell: Callable[[dict[str, float]], Any] | bool = board.updated if board is not None else False
            save = max(_SAVE_UPDATES, round(_SAVE_SECONDS * job["updates"] / max(job["seconds"], 0.1)))
            config = self.config(job, rate, run__checkpoint_every=save)
            trained = train(network, config, device=self.device, progress=tell, checkpoint=saved)
        except (Exception, SystemExit) as error:
            if not str(error).startswith("[train] diverged"):
                self._forget()
                raise self._failure(error) from error
            row = {"diverged": str(error)}
        else:
            found = trained.result
            assert found.valid is not None
            row = row_of(rate, found.test, found.valid, found.grid)
            if job["rate"] is None:
                write(file.with_suffix(".npz"), _packed(found.answers))
        write(file, json.dumps(row, indent=1) + "\n")
        saved.unlink(missing_ok=True)
        if board is not None:
            board.finished(job, row)
        return row

    def _forget(self) -> None:
        """Removes the plan if nothing was trained, so that the repaired mixer can use the folder."""
        jobs = self.folder / "jobs"
        if not any(jobs.iterdir()):
            jobs.rmdir()
            (self.folder / "plan.json").unlink()

    def _record(self, job: Job, rate: float, row: dict[str, Any], plan: dict[str, Any]) -> None:
        """A run folder, for the program's own tables and pages."""
        config = self.config(job, rate)
        settings = {f"train.{key}": value for key, value in config.values["train"].items()}
        settings.update({"train.device": self.device.type, "train.precision": self.precision})
        settings.update({"model.width": self.width, "model.layers": self.peers.layers, "model.residual": self.residual})
        test, valid = (Measurement.from_json(json.dumps(row[key])) for key in ("test", "valid_set"))
        points = [Measurement.from_json(json.dumps(point)) for point in row["points"]]
        record(
            self.folder / "runs",
            name=self.name,
            params=plan["parameters"],
            state_size=plan["state_size"],
            result=Evaluation(config.task, test, valid, points),
            settings=settings,
            overwrite=True,
        )

    def _write_card(self, ranking: Ranking) -> None:
        from ._svg import write_png
        from .card import as_html, as_markdown, figures

        for name, drawn in figures(ranking).items():
            write(self.folder / f"card-{name}.svg", drawn)
            write_png(self.folder / f"card-{name}.svg")
        write(self.folder / "card.html", as_html(ranking))
        write(self.folder / "card.md", as_markdown(ranking))


def _packed(answers: dict[str, Any]) -> bytes:
    """A compressed .npz; equal answers give equal bytes."""
    import numpy as np

    file = io.BytesIO()
    np.savez_compressed(file, **answers)
    return file.getvalue()
