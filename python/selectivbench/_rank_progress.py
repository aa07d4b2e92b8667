"""The progress of :func:`rank`: a line per finished job, and in a terminal one that is rewritten, with the time left."""
from __future__ import annotations

import time
from typing import Any, TextIO

from ._rank_plan import Job, clock

_SECONDS = 0.5  # between two rewrites of the line


class RankProgress:
    """Follows the jobs of a plan. Times left are the plan's, scaled by how long finished jobs took."""

    def __init__(self, jobs: list[Job], stream: TextIO) -> None:
        self._jobs, self._stream, self._live = jobs, stream, stream.isatty()
        self._left = {job["key"]: job["seconds"] for job in jobs}
        self._planned = self._took = 0.0
        self._began = self._shown = time.monotonic()
        self._first = -1  # update at which the current job began or resumed
        self._job: Job | None = None

    def begins(self, job: Job) -> None:
        """A job starts."""
        self._job, self._first, self._began = job, -1, time.monotonic()

    def updated(self, row: dict[str, float]) -> None:
        """An update was made."""
        job, now = self._job, time.monotonic()
        if job is None or "loss" not in row:
            return
        made = int(row["update"]) + 1
        self._first = made if self._first < 0 else self._first
        if not self._live or now - self._shown < _SECONDS:
            return
        self._shown = now
        left = sum(self._left.values()) - job["seconds"] * made / job["updates"]
        pace = self._took / self._planned if self._planned > 0 else 1.0
        text = f"{_name(job)}: update {made}/{job['updates']}, loss {row['loss']:.4f}, {clock(left * pace)} left"
        self._stream.write("\r" + text.ljust(78))
        self._stream.flush()

    def finished(self, job: Job, row: dict[str, Any], was_there: bool = False) -> None:
        """A job is done, now or by an earlier call."""
        if not was_there:
            if self._first <= 1:  # not resumed
                self._planned += job["seconds"]
                self._took += time.monotonic() - self._began
        if self._left.pop(job["key"], None) is None:
            return
        if "diverged" in row:
            said = "diverged"
        else:
            said = f"valid accuracy {row['valid']:.4f}" if job["rate"] is not None else f"test accuracy {row['accuracy']:.4f}"
        pace = self._took / self._planned if self._planned > 0 else 1.0
        left = "from an earlier call" if was_there else f"{clock(sum(self._left.values()) * pace)} left"
        text = f"{_name(job)}: {said}, {left}"
        self._stream.write(("\r" if self._live else "") + text.ljust(78 if self._live else 0) + "\n")
        self._stream.flush()


def _name(job: Job) -> str:
    return f"task {job['task']}, grammar {job['seed']}" + ("" if job["rate"] is None else f", rate {job['rate']:g}")
