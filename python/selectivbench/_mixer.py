"""A mixer under examination: how it is built and called, and the global state that it must not change."""
from __future__ import annotations

import contextlib
import copy
import io
import os
import random
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from ._checks import whole

Make = Callable[[int], torch.nn.Module]

MOST_PARAMETERS = 100_000_000  # of one mixer
# Folders of code that is not the mixer's.
_OTHERS = tuple(os.path.join(folder, "") for folder in (os.path.dirname(__file__), os.path.dirname(torch.__file__), sysconfig.get_path("stdlib")))
FRAMES = 131  # more than two chunks of 64, and odd
BATCH = 3


class Failed(Exception):
    """A check failed; the text says what is wrong."""


class Skipped(Exception):
    """A check does not apply; the text says why."""


def name_of(mixer: Any) -> str:
    """What messages call a mixer."""
    function = getattr(mixer, "func", mixer)  # of functools.partial
    return str(getattr(function, "__name__", type(mixer).__name__))


def build(make: Make, width: int, seed: int, most: int = MOST_PARAMETERS) -> torch.nn.Module:
    """A new module of the mixer; Failed says what is wrong. Stops at the first parameter beyond the limit, before it is filled."""
    register, count = torch.nn.Module.register_parameter, 0

    def counted(self: torch.nn.Module, name: str, param: torch.nn.Parameter | None) -> None:
        nonlocal count
        count += 0 if param is None or torch.nn.parameter.is_lazy(param) else param.numel()
        if count > most:
            raise Failed(f"has more than {most:,} parameters at width {width}")
        register(self, name, param)

    torch.manual_seed(seed)
    torch.nn.Module.register_parameter = counted  # type: ignore[assignment]
    try:
        out = make(width)
    except (Exception, SystemExit) as error:
        if isinstance(error, Failed):
            raise
        raise Failed(f"mixer({width}) failed: {said(error)}") from error
    finally:
        torch.nn.Module.register_parameter = register  # type: ignore[assignment]
    if not isinstance(out, torch.nn.Module):
        raise Failed(f"mixer({width}), expected a torch.nn.Module, got {type(out).__name__}")
    return out


class Subject:
    """The mixer, its module in float32, and the inputs that checks share."""

    def __init__(self, mixer: Make | torch.nn.Module, width: int, seed: int) -> None:
        self.name = name_of(mixer)
        self.width, self.seed, self.parameters = width, seed, 0
        self.mixer = mixer
        self._module: torch.nn.Module | None = None

    def fresh(self) -> torch.nn.Module:
        """A new module; always with the same weights."""
        if isinstance(self.mixer, torch.nn.Module):
            return copy.deepcopy(self.mixer)
        return build(self.mixer, self.width, self.seed)

    @property
    def module(self) -> torch.nn.Module:
        """The module in float32."""
        if self._module is None:
            self._module = self.fresh()
            self.parameters = sum(each.numel() for each in self._module.parameters())
        return self._module

    def double(self) -> torch.nn.Module:
        """A new module in float64."""
        return self.fresh().double()

    def frames(self, count: int = FRAMES, dtype: torch.dtype = torch.float32, offset: int = 0) -> torch.Tensor:
        """Normally distributed inputs, always the same."""
        source = torch.Generator().manual_seed(self.seed + 7 + offset)
        return torch.randn(BATCH, count, self.width, generator=source, dtype=torch.float64).to(dtype)


def said(error: BaseException) -> str:
    """Type and first line of an error, and the last line of the mixer's own file that it passed."""
    text = str(error).strip().partition("\n")[0]
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        library = frame.filename.startswith(_OTHERS) or any(f"{os.sep}{each}-packages{os.sep}" in frame.filename for each in ("site", "dist"))
        if frame.filename.endswith(".py") and not library:
            place = f" ({os.path.basename(frame.filename)}:{frame.lineno})"
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__) + place


def call(module: torch.nn.Module, x: torch.Tensor, what: str = "forward") -> torch.Tensor:
    """The module's outputs; Failed if it raises or returns anything but one tensor of the input's shape."""
    try:
        out = module(x)
    except (Exception, SystemExit) as error:
        raise Failed(f"{what} of a {str(x.dtype)[6:]} input of shape {list(x.shape)} failed: {said(error)}") from error
    if not isinstance(out, torch.Tensor):
        hint = "; return the outputs alone" if isinstance(out, (tuple, list)) else ""
        raise Failed(f"{what}, expected a tensor of shape {list(x.shape)}, got {type(out).__name__}{hint}")
    if out.shape != x.shape:
        raise Failed(f"{what}, expected shape {list(x.shape)}, got {list(out.shape)}")
    return out


def call_without_gradients(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return call(module, x)


def place_of(at: torch.Tensor) -> str:
    sample, frame, channel = (int(i) for i in at)
    return f"sample {sample}, frame {frame}, channel {channel}"


def expect_finite(values: torch.Tensor, what: str) -> None:
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad):
        place = place_of(bad[0]) if values.dim() == 3 else f"index {bad[0].tolist()}"
        raise Failed(f"{what} is {values[tuple(bad[0])].item()} at {place} ({len(bad)} of {values.numel()} values are not finite)")


def expect_same(got: torch.Tensor, expected: torch.Tensor, tolerance: float, what: str) -> str:
    """How far two outputs differ; Failed beyond the tolerance, in shares of the largest output."""
    change = (got.double() - expected.double()).abs()
    change = torch.where(torch.isfinite(change), change, torch.full_like(change, float("inf")))
    most, size = float(change.max()), max(float(expected.abs().max()), 1e-30)
    if most > tolerance * size:
        place = place_of((change == change.max()).nonzero()[0])
        raise Failed(f"{what}: differs by {most:.3g} at {place}, where outputs reach {size:.3g}")
    return f"differs by at most {most:.1e}"


def _numpy_state() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state(legacy=True)
    return (name, np.asarray(keys).tobytes(), *rest)


def _set_numpy_state(state: tuple[Any, ...]) -> None:
    name, keys, position, has_gauss, gauss = state
    np.random.set_state((name, np.frombuffer(keys, np.uint32), position, has_gauss, gauss))


# Changes that a mixer may not make, and how they are restored.
GLOBAL_STATE: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
    ("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    ("torch's grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    ("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
    ("torch's anomaly mode", torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    ("torch's deterministic mode", torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    ("torch's precision of float32 products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    ("Python's random state", random.getstate, random.setstate),
    ("numpy's random state", _numpy_state, _set_numpy_state),
    ("the working directory", os.getcwd, os.chdir),
]


@contextlib.contextmanager
def own_state() -> Iterator[None]:
    """Context manager: hides output of the mixer and undoes its changes of global state."""
    before, state = torch.get_rng_state(), [get() for _, get, _ in GLOBAL_STATE]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for (_, get, restore), old in zip(GLOBAL_STATE, state):
            if get() != old:
                restore(old)
        torch.set_rng_state(before)


def state_size(module: torch.nn.Module, width: int) -> int | None:
    """Numbers that the mixer carries from frame to frame: counted in the state of ``step``, else its attribute ``state_size``.

    None if it has neither, if ``state_size`` is a method, or if the state grows.
    """
    step: Any = getattr(module, "step", None)
    if not callable(step):
        stated: Any = getattr(module, "state_size", None)
        return None if stated is None or callable(stated) else whole("rank", "state_size of the mixer", stated, 0, 2**53)
    sizes: list[int] = []
    state: Any = None
    reference = next(module.parameters(), torch.zeros(1))
    with torch.no_grad():
        for _ in range(4):
            try:
                _, state = step(torch.zeros(1, width, dtype=reference.dtype, device=reference.device), state)
            except (Exception, SystemExit) as error:  # the check of steps was left out
                raise ValueError(f"[rank] step of the mixer failed: {said(error)}") from error
            sizes.append(_numbers(state))
    return sizes[-1] if sizes[-1] == sizes[-2] else None


def _numbers(state: Any) -> int:
    if isinstance(state, torch.Tensor):
        return state.numel()
    several = state.values() if isinstance(state, dict) else state if isinstance(state, (list, tuple)) else ()
    return sum(_numbers(each) for each in several)
