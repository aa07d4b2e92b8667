"""Checks of arguments. Messages have the program's form: [where] what, expected X, got Y."""
from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import Any, TypeVar

SPLITS = ("train", "valid", "test", "reference")
MOST_INDEX = 2**62
MOST_SAMPLES = 65536  # of a batch
MOST_FRAMES = 2**24  # of a padded sample: more would not fit in memory

Kind = TypeVar("Kind")


def whole(where: str, what: str, value: Any, least: int, most: int) -> int:
    """An integer in a range. Integers of numpy are accepted, bools are not."""
    try:
        if type(value).__name__ in ("bool", "bool_"):  # Python's, and those of numpy 2 and 1
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"[{where}] {what}, expected an integer, got {shown(value)}") from None
    if not least <= number <= most:
        raise ValueError(f"[{where}] {what}, expected {least}..{most}, got {shown(number)}")
    return number


def pair(where: str, what: str, value: Any) -> tuple[Any, Any]:
    """Two values, which the caller checks."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"[{where}] {what}, expected two integers, got {shown(value)}")
    return value[0], value[1]


def instance(where: str, what: str, value: Any, kind: type[Kind]) -> Kind:
    """An instance of one of our classes."""
    if not isinstance(value, kind):
        raise ValueError(f"[{where}] {what}, expected a selectivbench.{kind.__name__}, got {type(value).__name__}")
    return value


def mapping(where: str, what: str, value: Any) -> Mapping[str, Any]:
    """A mapping with str keys."""
    if not isinstance(value, Mapping):
        raise ValueError(f"[{where}] {what}, expected a dict, got {type(value).__name__}")
    for key in value:
        if not isinstance(key, str):
            raise ValueError(f"[{where}] {what}, expected str keys, got {shown(key)}")
    return value


def split(where: str, value: Any) -> str:
    """One of the four splits."""
    if not isinstance(value, str) or value not in SPLITS:
        raise ValueError(f"[{where}] split, expected {', '.join(SPLITS)}, got {shown(value)}")
    return value


def text(where: str, what: str, value: Any, most: int = 200) -> str:
    """A line of text."""
    if not isinstance(value, str) or not value or len(value) > most or not value.isprintable():
        raise ValueError(f"[{where}] {what}, expected 1..{most} characters on one line, got {shown(value)}")
    return value


def path(where: str, value: str | os.PathLike[str]) -> str:
    """A path as str. Paths with a NUL or not in UTF-8 are rejected: they would name another file, or none."""
    try:
        out = os.fsdecode(value)
        out.encode()
    except (TypeError, UnicodeEncodeError):
        raise ValueError(f"[{where}] expected a path, in UTF-8, got {shown(value)}") from None
    if not out or "\0" in out:
        raise ValueError(f"[{where}] expected a path, got {shown(value)}")
    return out


def plain(value: Any) -> Any:
    """Converts numbers of numpy and paths to Python's own types, for the config reader."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and scalars
        return plain(value.tolist())
    return value


def shown(value: Any) -> str:
    """The value, shortened for a message."""
    try:
        out = repr(value)
    except ValueError:  # integers of more digits than Python writes
        return f"{type(value).__name__} of more than 4300 digits"
    return out if len(out) <= 60 else out[:57] + "..."
