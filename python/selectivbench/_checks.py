"""Arguments, checked with the words of the program: [where] what, expected X, got Y."""
from __future__ import annotations

import operator
import os
from typing import Any

SPLITS = ("train", "valid", "test", "reference")
MOST_INDEX = 2**62


def whole(where: str, what: str, value: Any, least: int, most: int) -> int:
    """An integer in a range; numpy's count as integers, truth values do not."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"[{where}] {what}, expected an integer, got {_shown(value)}") from None
    if not least <= number <= most:
        raise ValueError(f"[{where}] {what}, expected {least}..{most}, got {number}")
    return number


def split(where: str, value: Any) -> str:
    """One of the four splits."""
    if not isinstance(value, str) or value not in SPLITS:
        raise ValueError(f"[{where}] split, expected {', '.join(SPLITS)}, got {_shown(value)}")
    return value


def text(where: str, what: str, value: Any, most: int = 200) -> str:
    """A line of text."""
    if not isinstance(value, str) or not value or len(value) > most or any(ord(c) < 32 for c in value):
        raise ValueError(f"[{where}] {what}, expected 1..{most} characters on one line, got {_shown(value)}")
    return value


def path(value: str | os.PathLike[str]) -> str:
    """A path as text."""
    return os.fspath(value)


def plain(value: Any) -> Any:
    """Numbers of numpy and paths as Python's own, for the config's reader."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and scalars
        return plain(value.tolist())
    return value


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
