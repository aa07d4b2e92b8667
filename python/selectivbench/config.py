"""Configs: the keys of the program's TOML files with its defaults, rules and checks."""
from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from . import _native
from ._checks import mapping, path, shown
from ._settings import Item, Setting, items

if TYPE_CHECKING:
    from .task import Task

_SHIPPED = pathlib.Path(__file__).parent / "configs"


def shipped_configs() -> list[str]:
    """Names of the configs that come with the package, as :meth:`Config.from_toml` takes them.

    >>> import selectivbench as sb
    >>> "example" in sb.shipped_configs(), "paper/base" in sb.shipped_configs()
    (True, True)
    """
    return sorted(str(file.relative_to(_SHIPPED).with_suffix("")) for file in _SHIPPED.rglob("*.toml"))


def config_file(where: str, file: str) -> str:
    """The file of this path, or the shipped config of this name."""
    if os.path.exists(file) and not os.path.isdir(file):
        return file
    name = file[len("configs/") :] if file.startswith("configs/") else file
    name = name[: -len(".toml")] if name.endswith(".toml") else name
    names = shipped_configs()
    if name in names:
        return str(_SHIPPED / (name + ".toml"))
    if os.path.isdir(file):
        raise ValueError(f"[{where}] {shown(file)} is a folder, expected a file; the config of a run is FOLDER/config.toml")
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else "sb.shipped_configs() lists the names"
    raise ValueError(f"[{where}] no such file and no shipped config of this name: {shown(file)}; {hint}")


class Config:
    """Every setting of one run: ``[grammar] [task] [model] [train] [eval] [quirks] [run]``.

    Keys are ``section.key``, as in a TOML file; :func:`config_keys` lists them. Some defaults depend on other settings.

    >>> import selectivbench as sb
    >>> config = sb.Config({"task.number": 2, "task.gap_max": 50, "train.updates": 100})
    >>> config["task.test_gap_min"], config["train.warmup"]
    (50, 15)
    >>> sb.Config({"task.number": 2, "task.gapmax": 50})
    Traceback (most recent call last):
    ValueError: [task] unknown key 'gapmax', did you mean gap_max?, task.gapmax=50
    """

    _make_task: ClassVar[Callable[[Config], Task]]  # set by task.py, which imports this module

    def __init__(self, settings: Mapping[str, Setting] | None = None) -> None:
        self._native = _native.Config(items({} if settings is None else mapping("config", "settings", settings)), "Config")
        self._values: dict[str, dict[str, Any]] | None = None
        self._task: Task | None = None

    @classmethod
    def from_toml(cls, file: str | os.PathLike[str], set: Iterable[str] = ()) -> Config:
        """Reads a TOML file, or the shipped config of this name (:func:`shipped_configs`).

        ``set`` replaces values, as the program's ``--set``: ``["train.lr=5e-4"]``. The ``config.toml`` of a run's folder
        gives that run's :attr:`run_id`. A suite is a ``ValueError``: it holds several runs.

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
        return cls._of(_native.Config.read(config_file("config", path("config", file)), overrides, str(_SHIPPED)))

    @classmethod
    def _of(cls, native: _native.Config) -> Config:
        out = cls.__new__(cls)
        out._native, out._values, out._task = native, None, None
        return out

    @classmethod
    def _from_items(
        cls, pairs: list[Item], name: str, automaton: tuple[str, str] | None, run_id: str | None = None
    ) -> Config:
        out = cls._of(_native.Config(pairs, name, automaton))
        out._native.run_id = run_id
        return out

    def with_settings(self, settings: Mapping[str, Setting]) -> Config:
        """A copy with other settings. Defaults that depend on them change too.

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
            raise KeyError(f"[config] unknown key {shown(key)}, expected section.key, such as train.lr") from None

    @property
    def task(self) -> Task:
        """The task of ``[grammar]`` and ``[task]``."""
        if self._task is None:
            self._task = Config._make_task(self)
        return self._task

    @property
    def run_id(self) -> str | None:
        """Id of the run whose folder this config was read from; None for every other config.

        The id depends on all values, including the defaults of the model's switches, which this package does not know.
        ``selectivbench config show FILE`` prints the id of a config that has no run yet.
        """
        return self._native.run_id

    @property
    def toml(self) -> str:
        """Text of a TOML file that resolves to this config."""
        return self._native.toml

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._native.canonical == other._native.canonical

    def __hash__(self) -> int:
        return hash(self._native.canonical)

    def __repr__(self) -> str:
        run = "" if self.run_id is None else f" of run {self.run_id}"
        return f"<selectivbench.Config{run}: task {self.values['task'].get('number', self['task.kind'])}, model {self['model.name']}>"

    def __reduce__(self) -> tuple[Callable[..., Config], tuple[Any, ...]]:
        native = self._native
        return Config._from_items, (native.items, native.name, native.automaton, native.run_id)


def config_keys() -> list[dict[str, Any]]:
    """Every key of a config, with default, range and meaning.

    >>> import selectivbench as sb
    >>> [key["range"] for key in sb.config_keys() if key["name"] == "train.lr"]
    ['(0, 10]']
    """
    keys: list[dict[str, Any]] = json.loads(_native.config_keys())
    return keys
