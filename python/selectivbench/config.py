"""Configs: the keys of the program's TOML files with its defaults, rules and checks."""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._checks import mapping, path, plain, shown

if TYPE_CHECKING:
    from .task import Task

Setting = Union[bool, int, float, str, "list[int]"]
Item = tuple[str, Any, str]


def items(settings: Mapping[str, Any], section: str = "") -> list[Item]:
    """Settings as the resolver takes them; each names itself in messages: gap_max=50."""
    prefix = section + "." if section else ""
    return [(prefix + key, plain(value), f"{key}={shown(plain(value))}") for key, value in settings.items()]


def given_items(keywords: Mapping[str, Any], section: str) -> list[Item]:
    """The same of keywords whose None is the default."""
    return items({key: value for key, value in keywords.items() if value is not None}, section)


class Config:
    """One run, resolved: every key of ``[grammar] [task] [model] [train] [eval] [quirks] [run]``.

    Keys are ``section.key`` as in a TOML file (``selectivbench config keys`` lists them, and so does
    :func:`config_keys`); defaults that follow from others follow here too.

    >>> import selectivbench as sb
    >>> config = sb.Config({"task.number": 2, "task.gap_max": 50, "train.updates": 100})
    >>> config["task.test_gap_min"], config["train.warmup"]
    (50, 15)
    >>> sb.Config({"task.number": 2, "task.gapmax": 50})
    Traceback (most recent call last):
    ValueError: [task] unknown key 'gapmax', did you mean gap_max?, task.gapmax=50
    """

    def __init__(self, settings: Mapping[str, Setting] | None = None) -> None:
        self._native = _native.Config(items({} if settings is None else mapping("config", "settings", settings)), "Config")
        self._values: dict[str, dict[str, Any]] | None = None
        self._task: Task | None = None

    @classmethod
    def from_toml(cls, file: str | os.PathLike[str], set: Iterable[str] = ()) -> Config:
        """The config of a file; ``set`` as the program's ``--set``: ``["train.lr=5e-4"]``.

        >>> import selectivbench as sb, tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        ...     print("[task]\\nnumber = 3", file=file, flush=True)
        ...     sb.Config.from_toml(file.name, set=["task.length=50", "task.gap_start=10"])["task.test_gap_start"]
        10
        """
        overrides = [set] if isinstance(set, str) else list(set)
        for each in overrides:
            if not isinstance(each, str):
                raise ValueError(f"[config] set, expected section.key=value as text, got {shown(each)}")
        return cls._of(_native.Config.read(path("config", file), overrides))

    @classmethod
    def _of(cls, native: _native.Config) -> Config:
        out = cls.__new__(cls)
        out._native, out._values, out._task = native, None, None
        return out

    @classmethod
    def _from_items(cls, pairs: list[Item], name: str, automaton: tuple[str, str] | None) -> Config:
        return cls._of(_native.Config(pairs, name, automaton))

    def with_settings(self, settings: Mapping[str, Setting]) -> Config:
        """The same with other settings on top; what follows from them follows.

        >>> import selectivbench as sb
        >>> sb.Config({"task.number": 2}).with_settings({"task.gap_max": 20})["task.test_gap_min"]
        20
        """
        pairs = self._native.items + items(mapping("config", "settings", settings))
        return Config._from_items(pairs, self._native.name, self._native.automaton)

    @property
    def values(self) -> dict[str, dict[str, Any]]:
        """Every value by section and key."""
        if self._values is None:
            self._values = json.loads(self._native.json)["values"]
        assert self._values is not None
        return self._values

    def __getitem__(self, key: str) -> Any:
        try:
            section, _, name = key.partition(".")
            return self.values[section][name]
        except (AttributeError, KeyError):
            raise KeyError(f"[config] unknown key {shown(key)}, expected section.key, as train.lr") from None

    @property
    def task(self) -> Task:
        """The task of ``[grammar]`` and ``[task]``."""
        if self._task is None:
            from .task import Task

            self._task = Task.from_config(self)
        return self._task

    @property
    def run_id(self) -> str:
        """What names the run: a digest of all that can change a number."""
        return self._native.run_id

    @property
    def toml(self) -> str:
        """A TOML file that resolves to this config."""
        return self._native.toml

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._native.canonical == other._native.canonical

    def __hash__(self) -> int:
        return hash(self._native.canonical)

    def __repr__(self) -> str:
        return f"<selectivbench.Config {self.run_id}: task {self['task.number']}, model {self['model.name']}>"

    def __reduce__(self) -> tuple[Callable[..., Config], tuple[Any, ...]]:
        return Config._from_items, (self._native.items, self._native.name, self._native.automaton)


def config_keys() -> list[dict[str, Any]]:
    """Every key of a config: name, default, range, meaning.

    >>> import selectivbench as sb
    >>> [key["range"] for key in sb.config_keys() if key["name"] == "task.noise"]
    ['[0, 100]']
    """
    keys: list[dict[str, Any]] = json.loads(_native.config_keys())
    return keys
