"""The health check of a mixer: properties without which its training has no meaning."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from ._checks import shown, whole
from ._mixer import Failed, Make, Skipped, Subject, own_state, said
from ._mixer_checks import CHECKS, NEEDED


@dataclass(frozen=True)
class Check:
    """One check: ``status`` is passed, failed or skipped; ``detail`` says what was measured, or what is wrong and where."""

    name: str
    status: str
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """Result of :func:`check`."""

    mixer: str
    width: int
    parameters: int
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> list[Check]:
        """The checks that failed."""
        return [each for each in self.checks if each.status == "failed"]

    def __str__(self) -> str:
        broad = max((len(each.name) for each in self.checks), default=0)
        marks = {"passed": "ok    ", "failed": "FAILED", "skipped": "-     "}
        lines = [f"{self.mixer}, width {self.width}, {self.parameters:,} parameters"]
        lines += [f"  {marks[each.status]}  {each.name.ljust(broad)}  {each.detail}" for each in self.checks]
        return "\n".join(lines)


def check(
    mixer: Make | torch.nn.Module,
    width: int = 64,
    *,
    seed: int = 0,
    skip: Sequence[str] = (),
    raise_on_failure: bool = False,
) -> CheckReport:
    """Checks a mixer before any training: a class or function that takes a width and returns a module, or a module of that width.

    The module maps [batch, frames, width] to a tensor of the same shape. If it has a method ``step(x, state)`` that maps one frame
    [batch, width] and the state (None at the first frame) to output and state, this is compared with the whole sequence. Failed
    checks are in the report, with the place and size of the difference; ``raise_on_failure`` raises the first as a ``ValueError``.
    ``skip`` names checks to skip.

    >>> import selectivbench as sb, torch
    >>> class Sum(torch.nn.Module):
    ...     def __init__(self, width):
    ...         super().__init__()
    ...         self.out = torch.nn.Linear(width, width)
    ...     def forward(self, x):
    ...         return self.out(x.flip(1).cumsum(1).flip(1))
    >>> [each.name for each in sb.check(Sum, width=8).failures]
    ['causal']
    """
    width = whole("check", "width", width, 1, 65536)
    if not callable(mixer):
        raise ValueError(f"[check] mixer, expected a class, a function or a torch.nn.Module, got {shown(mixer)}")
    unknown = sorted(set(skip) - {name for name, _ in CHECKS})
    if unknown:
        raise ValueError(f"[check] skip, expected {', '.join(name for name, _ in CHECKS)}, got {shown(unknown[0])}")
    subject = Subject(mixer, width, whole("check", "seed", seed, 0, 2**31))
    checks: list[Check] = []
    for name, run in CHECKS:
        if name in skip:
            checks.append(Check(name, "skipped", "skipped by the caller"))
            continue
        with own_state():
            try:
                found = Check(name, "passed", run(subject))
            except Skipped as reason:
                found = Check(name, "skipped", str(reason))
            except Failed as reason:
                found = Check(name, "failed", str(reason))
            except (Exception, SystemExit) as error:  # of the mixer, at a call that no check expects to fail
                found = Check(name, "failed", said(error))
        checks.append(found)
        if found.status == "failed" and name in NEEDED:
            break
    report = CheckReport(subject.name, width, subject.parameters, checks)
    if raise_on_failure and report.failures:
        first = report.failures[0]
        raise ValueError(f"[check.{first.name}] {subject.name}: {first.detail}")
    return report
