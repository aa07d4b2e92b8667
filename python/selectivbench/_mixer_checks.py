"""The checks of :func:`check`, one function each: it returns what it measured, or raises Failed or Skipped with the reason."""
from __future__ import annotations

import contextlib
import copy
import io
import os
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ._checks import shown
from .causality import difference, leak

Make = Callable[[int], torch.nn.Module]

MOST_PARAMETERS = 100_000_000  # of one mixer
_FRAMES = 131  # more than two chunks of 64, and odd
_FEW = 9  # frames for finite differences
_BATCH = 3
_STEPS = (1e-6, 1e-4, 1e-2)  # of finite differences: one of them suits kinks and sums in float32
_OF_GRADIENT = 1e-3  # allowed difference of a derivative
_OF_OUTPUT = 1e-4  # allowed difference between two ways to compute the same outputs in float32
_OF_BF16 = 0.1  # allowed root mean square difference, of the outputs' root mean square


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
    torch.nn.Module.register_parameter = counted  # type: ignore[method-assign]
    try:
        out = make(width)
    except (Exception, SystemExit) as error:
        if isinstance(error, Failed):
            raise
        raise Failed(f"mixer({width}) failed: {_said(error)}") from error
    finally:
        torch.nn.Module.register_parameter = register  # type: ignore[method-assign]
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

    def frames(self, count: int = _FRAMES, dtype: torch.dtype = torch.float32, offset: int = 0) -> torch.Tensor:
        """Normally distributed inputs, always the same."""
        source = torch.Generator().manual_seed(self.seed + 7 + offset)
        return torch.randn(_BATCH, count, self.width, generator=source, dtype=torch.float64).to(dtype)


def _said(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _call(module: torch.nn.Module, x: torch.Tensor, what: str = "forward") -> torch.Tensor:
    """The module's outputs; Failed if it raises or returns anything but one tensor of the input's shape."""
    try:
        out = module(x)
    except (Exception, SystemExit) as error:
        raise Failed(f"{what} of a {str(x.dtype)[6:]} input of shape {list(x.shape)} failed: {_said(error)}") from error
    if not isinstance(out, torch.Tensor):
        hint = "; return the outputs alone" if isinstance(out, (tuple, list)) else ""
        raise Failed(f"{what}, expected a tensor of shape {list(x.shape)}, got {type(out).__name__}{hint}")
    if out.shape != x.shape:
        raise Failed(f"{what}, expected shape {list(x.shape)}, got {list(out.shape)}")
    return out


def _quiet(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return _call(module, x)


def _place(at: torch.Tensor) -> str:
    sample, frame, channel = (int(i) for i in at)
    return f"sample {sample}, frame {frame}, channel {channel}"


def _finite(values: torch.Tensor, what: str) -> None:
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad):
        place = _place(bad[0]) if values.dim() == 3 else f"index {bad[0].tolist()}"
        raise Failed(f"{what} is {values[tuple(bad[0])].item()} at {place} ({len(bad)} of {values.numel()} values are not finite)")


def _same(got: torch.Tensor, expected: torch.Tensor, tolerance: float, what: str) -> str:
    """How far two outputs differ; Failed beyond the tolerance, in shares of the largest output."""
    change = (got.double() - expected.double()).abs()
    change = torch.where(torch.isfinite(change), change, torch.full_like(change, float("inf")))
    most, size = float(change.max()), max(float(expected.abs().max()), 1e-30)
    if most > tolerance * size:
        place = _place((change == change.max()).nonzero()[0])
        raise Failed(f"{what}: differs by {most:.3g} at {place}, where outputs reach {size:.3g}")
    return f"differs by at most {most:.1e}"


# Changes that a mixer may not make, and how they are restored.
_STATE: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
    ("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    ("torch's grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    ("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
    ("torch's anomaly mode", torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    ("torch's deterministic mode", torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    ("Python's random state", random.getstate, random.setstate),
    ("the working directory", os.getcwd, os.chdir),
]


@contextlib.contextmanager
def own_state() -> Iterator[None]:
    """Whatever the mixer prints or changes is undone."""
    before, state = torch.get_rng_state(), [get() for _, get, _ in _STATE]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for (_, get, restore), old in zip(_STATE, state):
            if get() != old:
                restore(old)
        torch.set_rng_state(before)


def _built(subject: Subject) -> str:
    module, again = subject.module, subject.fresh()
    ours = dict(module.named_parameters())
    for name, value in again.named_parameters():
        if name not in ours or not torch.equal(value, ours[name]):
            raise Failed(f"parameter {name} differs between two modules made after torch.manual_seed({subject.seed})")
    return f"{subject.parameters:,} parameters"


def _output(subject: Subject) -> str:
    x = subject.frames()
    given = x.clone()
    out = _call(subject.module.eval(), x)
    if out.dtype != torch.float32:
        raise Failed(f"forward of float32, expected float32, got {str(out.dtype)[6:]}")
    if out.device != x.device:
        raise Failed(f"forward of a tensor on {x.device}, expected outputs there, got them on {out.device}")
    if not torch.equal(x, given):
        raise Failed("forward changes its input in place")
    _finite(out, "output")
    _call(subject.module, subject.frames(1))
    return f"{list(out.shape)}, float32, finite"


def _registered(subject: Subject) -> str:
    known = {id(each) for each in subject.module.parameters()}
    for path, part in subject.module.named_modules():
        for key, value in vars(part).items():
            if key in ("_parameters", "_buffers", "_modules"):
                continue
            several = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
            for each in several:
                where = f"{path}.{key}" if path else key
                if isinstance(each, torch.nn.Module) and any(id(p) not in known for p in each.parameters()):
                    raise Failed(f"{where} holds a module that is not registered: use torch.nn.ModuleList or ModuleDict")
                if isinstance(each, torch.Tensor) and each.is_leaf and each.requires_grad and id(each) not in known:
                    raise Failed(f"{where} holds a trained tensor that is not registered: use torch.nn.Parameter or ParameterList")
    return f"{len(known)} parameter tensors"


def _backward(subject: Subject) -> str:
    module, x = subject.fresh().train(), subject.frames().requires_grad_()
    out = _call(module, x)
    if not out.requires_grad:
        raise Failed("outputs have no gradient: forward runs without grad mode, or detaches them")
    try:
        (out * subject.frames(offset=1)).sum().backward()  # type: ignore[no-untyped-call]
    except (Exception, SystemExit) as error:
        raise Failed(f"backward failed: {_said(error)}") from error
    if x.grad is None:
        raise Failed("the input gets no gradient: layers below would not be trained")
    _finite(x.grad, "gradient of the input")
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and parameter.grad is None:
            raise Failed(f"parameter {name} gets no gradient: it is not used, but counts as a parameter")
        if parameter.grad is not None:
            _finite(parameter.grad, f"gradient of {name}")
    return "finite gradients of all parameters and the input"


def _repeatable(subject: Subject) -> str:
    module, x = subject.module.eval(), subject.frames()
    first = _quiet(module, x)
    _quiet(module, subject.frames(offset=1))
    second = _quiet(module, x)
    if not torch.equal(first, second):
        change = (first - second).abs()
        place = _place((change == change.max()).nonzero()[0])
        count = int((first != second).sum())
        raise Failed(
            f"other outputs for the same input in eval mode: {count} of {change.numel()} values differ, by up to "
            f"{float(change.max()):.3g} at {place}; a mixer must not keep a state between calls"
        )
    return "the same bytes twice"


def _state_kept(subject: Subject) -> str:
    said = io.StringIO()
    before = [get() for _, get, _ in _STATE]
    ends = []
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        for start in (1, 2):
            torch.manual_seed(start)
            module = subject.fresh() if isinstance(subject.mixer, torch.nn.Module) else subject.mixer(subject.width)
            torch.manual_seed(start)
            _call(module.train(), subject.frames()).sum().backward()  # type: ignore[no-untyped-call]
            ends.append(torch.get_rng_state())
            for (what, get, _), old in zip(_STATE, before):
                if get() != old:
                    detail = f" from {old} to {get()}" if isinstance(old, (bool, int, str, torch.dtype)) else ""
                    raise Failed(f"changes {what}{detail}; it belongs to the caller")
    if torch.equal(ends[0], ends[1]):
        raise Failed("sets torch's random seed in forward; the seed belongs to the caller")
    if said.getvalue():
        raise Failed(f"prints {shown(said.getvalue().strip().partition(chr(10))[0])}; progress and results share the terminal")
    return "unchanged, and nothing printed"


def _causal(subject: Subject) -> str:
    for mode in ("eval", "train"):
        module = subject.fresh().train(mode == "train")

        def outputs(x: torch.Tensor, module: torch.nn.Module = module) -> Any:
            torch.manual_seed(1)  # the same dropout at every call
            return _quiet(module, x).double().numpy()

        x = subject.frames()
        plain = outputs(x)
        noise, size = float(difference(outputs(x), plain).max()), float(abs(plain).max())
        for cut in (1, _FRAMES // 3, 64, 65, _FRAMES - 1):
            changed = x.clone()
            changed[:, cut:] = subject.frames(offset=cut)[:, cut:]
            found = leak(difference(outputs(changed), plain), cut, size, noise)
            if found is not None:
                raise Failed(
                    f"not causal in {mode} mode: the output at frame {found[0]} changes by {found[1]:.3g} when only frames from "
                    f"{cut} on change. No bidirectional layers, a causal mask for attention and convolutions, no normalisation "
                    "over frames"
                )
    return "later frames do not change earlier outputs"


def _padded(subject: Subject) -> str:
    module, x = subject.module.eval(), subject.frames()
    expected = _quiet(module, x)
    longer = torch.cat([x, torch.zeros(_BATCH, 29, subject.width)], dim=1)
    padded = _same(_quiet(module, longer)[:, :_FRAMES], expected, _OF_OUTPUT, "29 frames of zeros after the sequence change outputs")
    _same(_quiet(module, x[:1]), expected[:1], _OF_OUTPUT, "a sample alone and in a batch")
    return f"padding after a sample and other samples beside it: {padded}"


def _stepwise(subject: Subject) -> str:
    module = subject.double().eval()
    step: Any = getattr(module, "step", None)
    if not callable(step):
        raise Skipped("no method step(x, state)")
    x = subject.frames(dtype=torch.float64)
    state: Any = None
    outs = []
    with torch.no_grad():
        for frame in range(x.shape[1]):
            try:
                out, state = step(x[:, frame], state)
            except (Exception, SystemExit) as error:
                raise Failed(f"step at frame {frame} failed: {_said(error)}; expected step(x [batch, width], state) -> (y, state)") from error
            if not isinstance(out, torch.Tensor) or out.shape != x[:, frame].shape:
                got = list(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
                raise Failed(f"step at frame {frame}, expected outputs of shape {list(x[:, frame].shape)}, got {got}")
            outs.append(out)
    return _same(torch.stack(outs, dim=1), _quiet(module, x), _OF_OUTPUT, "step by step and the whole sequence")


def state_size(module: torch.nn.Module, width: int) -> int | None:
    """Numbers that the mixer carries from frame to frame, counted in the state of ``step``; None if it has no step or grows."""
    step: Any = getattr(module, "step", None)
    if not callable(step):
        return None
    sizes: list[int] = []
    state: Any = None
    reference = next(module.parameters(), torch.zeros(1))
    with torch.no_grad():
        for _ in range(4):
            _, state = step(torch.zeros(1, width, dtype=reference.dtype, device=reference.device), state)
            sizes.append(_numbers(state))
    return sizes[-1] if sizes[-1] == sizes[-2] else None


def _numbers(state: Any) -> int:
    if isinstance(state, torch.Tensor):
        return state.numel()
    several = state.values() if isinstance(state, dict) else state if isinstance(state, (list, tuple)) else ()
    return sum(_numbers(each) for each in several)


def _gradients(subject: Subject) -> str:
    module, x = subject.double().eval(), subject.frames(_FEW, torch.float64)
    weights = subject.frames(_FEW, torch.float64, offset=1)
    x.requires_grad_()

    def value() -> torch.Tensor:
        return (_call(module, x).double() * weights).sum()

    places = [(name, each) for name, each in module.named_parameters() if each.requires_grad] + [("the input", x)]
    derivatives = torch.autograd.grad(value(), [each for _, each in places], allow_unused=True)
    floor = 1e-6 * float(value().abs()) + 1e-9
    worst = 0.0
    for index, ((name, tensor), gradient) in enumerate(zip(places, derivatives)):
        source = torch.Generator().manual_seed(index)
        direction = torch.randn(tensor.shape, generator=source, dtype=torch.float64)
        expected = 0.0 if gradient is None else float((gradient * direction).sum())
        kept, best = tensor.detach().clone(), (float("inf"), 0.0)
        with torch.no_grad():
            for step in _STEPS:
                h = step * max(1.0, float(kept.abs().max()))
                tensor.copy_(kept + h * direction)
                up = float(value())
                tensor.copy_(kept - h * direction)
                found = (up - float(value())) / (2 * h)
                tensor.copy_(kept)
                best = min(best, (abs(found - expected) / max(abs(found), abs(expected), floor), found))
        if not best[0] <= _OF_GRADIENT:
            raise Failed(f"gradient of {name}: backward gives {expected:.6g} along a random direction, finite differences {best[1]:.6g}")
        worst = max(worst, best[0])
    return f"against finite differences in float64: within {worst:.1e}"


def _low_precision(subject: Subject) -> str:
    module, x = subject.module.eval(), subject.frames()
    expected = _quiet(module, x)
    # oneDNN has no bfloat16 products on some processors; torch's own are everywhere.
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", dtype=torch.bfloat16):  # type: ignore
        got = _quiet(module, x).float()
    _finite(got, "output under bfloat16 autocast")
    change = (got - expected).square().mean(dim=(0, 2)).sqrt()  # of each frame
    size = max(float(expected.square().mean().sqrt()), 1e-30)
    share = float(change.square().mean().sqrt()) / size
    if share > _OF_BF16:
        raise Failed(f"bfloat16 autocast changes outputs by {share:.3g} of their size, most at frame {int(change.argmax())}")
    return f"autocast changes outputs by {share:.1e} of their size"


def _extreme(subject: Subject) -> str:
    module = subject.fresh().train()
    spike = torch.zeros(_BATCH, _FRAMES, subject.width)
    spike[:, _FRAMES // 2] = 1e4
    inputs = {"zeros": torch.zeros(_BATCH, _FRAMES, subject.width), "a spike of 1e4": spike}
    inputs["inputs of size 1e4"] = 1e4 * subject.frames()
    inputs["a constant 10"] = torch.full((_BATCH, _FRAMES, subject.width), 10.0)
    for what, x in inputs.items():
        x.requires_grad_()
        out = _call(module, x, f"forward of {what}")
        _finite(out, f"output for {what}")
        try:
            (gradient,) = torch.autograd.grad(out.sum(), x)
        except (Exception, SystemExit) as error:
            raise Failed(f"backward for {what} failed: {_said(error)}") from error
        _finite(gradient, f"gradient of the input for {what}")
    return "finite for zeros, a spike, large and constant inputs"


CHECKS: list[tuple[str, Callable[[Subject], str]]] = [
    ("build", _built),
    ("output", _output),
    ("parameters", _registered),
    ("backward", _backward),
    ("global state", _state_kept),
    ("repeatable", _repeatable),
    ("causal", _causal),
    ("padding", _padded),
    ("step", _stepwise),
    ("gradients", _gradients),
    ("bf16", _low_precision),
    ("extreme", _extreme),
]
NEEDED = ("build", "output", "backward", "repeatable")  # without these, later checks say nothing
