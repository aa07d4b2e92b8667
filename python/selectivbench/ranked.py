"""A ranked mixer: its runs and what is known about it, without torch. A ranking writes it, a submission carries it."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .peers import Peers, TaskName
from .results import EXTERNAL, Measurement
from .standing import Standing, nearest, standings


@dataclass(frozen=True)
class Ranking:
    """Result of :func:`rank`: the mixer's standing on each task, and how it was found. ``str`` is the summary."""

    name: str
    peers: Peers = field(repr=False)
    standings: list[Standing]
    runs: dict[tuple[TaskName, int], dict[str, Any]] = field(repr=False)
    facts: dict[str, Any] = field(repr=False)
    notes: list[str] = field(default_factory=list)
    folder: str = ""

    @property
    def nearest(self) -> list[str]:
        """The three models with the smallest root mean square difference of accuracy over the tasks."""
        return nearest(self.peers, self.standings)

    @property
    def label(self) -> str:
        """The name, marked if a shipped model has the same one."""
        return self.name + EXTERNAL if any(run["model"] == self.name for run in self.peers.runs) else self.name

    def to_json(self) -> str:
        """The content of ``ranking.json``: name, facts, and the standing on each task. Intervals are not clipped."""
        found = {"name": self.name, "facts": self.facts, "standings": [_standing(each) for each in self.standings]}
        return json.dumps(found, indent=1) + "\n"

    def __str__(self) -> str:
        from .card import summary

        return summary(self)


def make_ranking(
    name: str, peers: Peers, facts: dict[str, Any], runs: dict[tuple[TaskName, int], dict[str, Any]], folder: str = ""
) -> Ranking:
    """The ranking of these rows, by task and grammar."""
    found = standings(peers, runs)
    return Ranking(name, peers, found, runs, facts, _notes(peers, facts, found), folder)


def row_of(rate: float, test: Measurement, valid: Measurement, grid: Sequence[Measurement]) -> dict[str, Any]:
    """The stored row of a run: the fields of a peer's row, and the measurements."""
    return {
        "lr": rate,
        "accuracy": test.accuracy,
        "valid": valid.accuracy,
        "grid": {str(point.point): point.accuracy for point in grid},
        "by_position": test.by_position,
        "by_entropy": [[bin.low, bin.accuracy, bin.count] for bin in test.by_entropy],
        "test": test.to_dict(),
        "valid_set": valid.to_dict(),
        "points": [point.to_dict() for point in grid],
    }


def digest_of(peers: Peers) -> str:
    """Digest of the results that a mixer was ranked against."""
    return hashlib.sha256(json.dumps(peers.runs, sort_keys=True).encode()).hexdigest()[:16]


def rates_text(rates: Sequence[float]) -> str:
    """Rates as text."""
    return ", ".join(f"{rate:g}" for rate in rates)


def _standing(standing: Standing) -> dict[str, Any]:
    """A standing as JSON: intervals are pairs, or null."""
    out = {key: value for key, value in vars(standing).items() if key not in ("against", "low", "high", "seeds")}
    models = [
        {"model": a.model, "accuracy": a.accuracy, "difference": a.above, "interval": _pair(a.low, a.high)}
        for a in standing.against
    ]
    return {**out, "interval": _pair(standing.low, standing.high), "grammars": standing.seeds, "models": models}


def _pair(low: float | None, high: float | None) -> list[float | None] | None:
    return None if low is None else [low, high]


def _notes(peers: Peers, facts: Mapping[str, Any], found: list[Standing]) -> list[str]:
    out = [f"Task {task}, grammar {seed}: {why}; excluded from the mean." for task, seed, why in facts["diverged"]]
    if not facts.get("peer_speeds"):
        out.append(_no_speeds(peers, facts))
    if any(len(each.seeds) < 2 for each in found):
        out.append("With one common grammar there is no interval: such a rank is no evidence.")
    if facts["identity"]["skip"]:
        out.append(f"Checks skipped: {', '.join(facts['identity']['skip'])}.")
    return out


def _no_speeds(peers: Peers, facts: Mapping[str, Any]) -> str:
    if facts["identity"]["device"] != "cpu":
        return "Speed of the peers is measured on a CPU only."
    if not isinstance(peers.tasks[0], int):
        return "Speed of the peers is measured on the paper's tasks only."
    return (
        "Speed of the peers was not measured: this needs the whole program selectivbench (with libtorch) on the PATH, and at most "
        "5 % of the budget."
    )


def write(file: pathlib.Path, content: str | bytes) -> None:
    """Replaces the file as a whole."""
    unfinished = file.with_name(file.name + ".tmp")
    unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(unfinished, file)
