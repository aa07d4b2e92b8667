"""Checkpoints of :func:`train`: one file, replaced as a whole, that holds all a run needs to continue with the same numbers."""
from __future__ import annotations

import json
import os
from typing import Any

import torch

from .config import Config

_FORMAT = 1
_KEYS = ("model", "optimizer", "random", "cuda_random", "update", "history")


class Checkpoint:
    """The file of one run: what identifies the run, and how its state is saved and restored."""

    def __init__(
        self,
        file: str,
        config: Config,
        precision: str,
        device: torch.device,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
    ) -> None:
        self._file, self._device, self._model, self._optimizer = file, device, model, optimizer
        self._run = {"config": config._native.canonical, "precision": precision}

    def save(self, update: int, history: list[dict[str, float]]) -> None:
        """Writes the state before this update; a process that is killed leaves the old file or the new one."""
        cuda = self._device.type == "cuda"
        state = {
            "format": _FORMAT,
            **self._run,
            "update": update,
            "history": json.dumps(history),  # torch's safe reader knows no floats
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict()["state"],
            "random": torch.get_rng_state(),
            "cuda_random": torch.cuda.get_rng_state(self._device) if cuda else None,
        }
        folder = os.path.dirname(os.path.abspath(self._file))
        os.makedirs(folder, exist_ok=True)
        unfinished = self._file + ".tmp"
        with open(unfinished, "wb") as out:
            torch.save(state, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(unfinished, self._file)
        entry = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)

    def restore(self) -> tuple[int, list[dict[str, float]]]:
        """The next update and the history so far; 0 and none if there is no file."""
        if not os.path.exists(self._file):
            return 0, []
        state = self._read()
        for what, mine in self._run.items():
            if state[what] != mine:
                raise self._refused(f"belongs to a run with another {what}")
        try:
            self._model.load_state_dict(state["model"])
            groups = self._optimizer.state_dict()["param_groups"]
            self._optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})
        except (KeyError, RuntimeError, ValueError) as error:
            raise self._refused("belongs to another model") from error
        torch.set_rng_state(state["random"])
        if self._device.type == "cuda" and state["cuda_random"] is not None:
            torch.cuda.set_rng_state(state["cuda_random"], self._device)
        return state["update"], json.loads(state["history"])

    def _read(self) -> dict[str, Any]:
        with open(self._file, "rb") as source:
            try:
                state = torch.load(source, map_location="cpu", weights_only=True)
                found = state["format"]
                if found == _FORMAT:
                    state = {key: state[key] for key in (*self._run, *_KEYS)}
            except Exception as error:  # torch raises various types for damaged files
                raise self._refused("is not a checkpoint of sb.train, or is damaged") from error
        if found != _FORMAT:
            raise self._refused(f"has format {found}, expected {_FORMAT}")
        out: dict[str, Any] = state
        return out

    def _refused(self, what: str) -> ValueError:
        return ValueError(f"[train] checkpoint {self._file} {what}; name another file, or delete this one to start again")
