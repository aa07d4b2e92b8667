"""The checks of :func:`check`, one function each: it returns what it measured, or raises Failed or Skipped with the reason."""
from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import torch

from ._checks import shown
from ._mixer import (
    BATCH,
    FRAMES,
    GLOBAL_STATE,
    Failed,
    Skipped,
    Subject,
    build,
    call,
    call_without_gradients,
    expect_finite,
    expect_same,
    place_of,
    said,
)
from .causality import difference, leak

_FEW = 9  # frames for finite differences
_STEPS = (1e-6, 1e-4, 1e-2)  # of finite differences: one of them suits kinks and sums in float32
_OF_GRADIENT = 1e-3  # allowed difference of a derivative
_OF_OUTPUT = 1e-4  # allowed difference between two ways to compute the same outputs in float32
_OF_BF16 = 0.1  # allowed root mean square difference, of the outputs' root mean square


def _built(subject: Subject) -> str:
    if not isinstance(subject.mixer, torch.nn.Module):
        before, ends = [get() for _, get, _ in GLOBAL_STATE], []
        for seed in (1, 2):
            build(subject.mixer, subject.width, seed)
            _expect_state(before, "the constructor ")
            ends.append(torch.get_rng_state())
        if torch.equal(ends[0], ends[1]):
            raise Failed("the constructor sets torch's random seed; the seed belongs to the caller")
    module, again = subject.module, subject.fresh()
    ours = dict(module.named_parameters())
    for name, value in again.named_parameters():
        if name not in ours or not torch.equal(value, ours[name]):
            raise Failed(f"parameter {name} differs between two modules made after torch.manual_seed({subject.seed})")
    return f"{subject.parameters:,} parameters"


def _output(subject: Subject) -> str:
    x = subject.frames()
    given = x.clone()
    out = call(subject.module.eval(), x)
    if out.dtype != torch.float32:
        raise Failed(f"forward of float32, expected float32, got {str(out.dtype)[6:]}")
    if out.device != x.device:
        raise Failed(f"forward, expected outputs on {x.device}, the device of the input, got {out.device}")
    if not torch.equal(x, given):
        raise Failed("forward changes its input in place")
    expect_finite(out, "output")
    call(subject.module, subject.frames(1))
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
    out = call(module, x)
    if not out.requires_grad:
        raise Failed("outputs have no gradient: forward runs without grad mode, or detaches them")
    if not torch.is_grad_enabled():
        raise Failed("forward changes torch's grad mode; it belongs to the caller")
    try:
        (out * subject.frames(offset=1)).sum().backward()  # type: ignore[no-untyped-call]
    except (Exception, SystemExit) as error:
        raise Failed(f"backward failed: {said(error)}") from error
    if x.grad is None:
        raise Failed("the input gets no gradient: layers below would not be trained")
    expect_finite(x.grad, "gradient of the input")
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and parameter.grad is None:
            raise Failed(f"parameter {name} gets no gradient: it is not used, but counts as a parameter")
        if parameter.grad is not None:
            expect_finite(parameter.grad, f"gradient of {name}")
    return "finite gradients of all parameters and the input"


def _repeatable(subject: Subject) -> str:
    module, x = subject.module.eval(), subject.frames()
    first = call_without_gradients(module, x)
    call_without_gradients(module, subject.frames(offset=1))
    second = call_without_gradients(module, x)
    if not torch.equal(first, second):
        change = (first - second).abs()
        place = place_of((change == change.max()).nonzero()[0])
        count = int((first != second).sum())
        raise Failed(
            f"different outputs for the same input in eval mode: {count} of {change.numel()} values differ, by up to "
            f"{float(change.max()):.3g} at {place}; a mixer must not keep a state between calls, nor draw random numbers in eval mode"
        )
    return "identical outputs in two calls"


def _expect_state(before: list[Any], who: str = "") -> None:
    for (what, get, _), old in zip(GLOBAL_STATE, before):
        if get() != old:
            detail = f" from {old} to {get()}" if isinstance(old, (bool, int, str, torch.dtype)) else ""
            raise Failed(f"{who}changes {what}{detail}; it belongs to the caller")


def _state_kept(subject: Subject) -> str:
    printed = io.StringIO()
    before = [get() for _, get, _ in GLOBAL_STATE]
    ends = []
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        for start in (1, 2):
            torch.manual_seed(start)
            module = subject.fresh() if isinstance(subject.mixer, torch.nn.Module) else subject.mixer(subject.width)
            torch.manual_seed(start)
            call(module.train(), subject.frames().requires_grad_()).sum().backward()  # type: ignore[no-untyped-call]
            ends.append(torch.get_rng_state())
            call_without_gradients(module.eval(), subject.frames())
            _expect_state(before)
    if torch.equal(ends[0], ends[1]):
        raise Failed("sets torch's random seed in forward; the seed belongs to the caller")
    if printed.getvalue():
        raise Failed(f"prints {shown(printed.getvalue().strip().partition(chr(10))[0])}; progress and results share the terminal")
    return "unchanged, and nothing printed"


def _causal(subject: Subject) -> str:
    for mode in ("eval", "train"):
        module = subject.fresh().train(mode == "train")

        def outputs(x: torch.Tensor, module: torch.nn.Module = module) -> Any:
            torch.manual_seed(1)  # the same dropout at every call
            return call_without_gradients(module, x).double().numpy()

        x = subject.frames()
        plain = outputs(x)
        noise, size = float(difference(outputs(x), plain).max()), float(abs(plain).max())
        for cut in (1, FRAMES // 3, 64, 65, FRAMES - 1):
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
    expected = call_without_gradients(module, x)
    longer = torch.cat([x, torch.zeros(BATCH, 29, subject.width)], dim=1)
    padded = expect_same(call_without_gradients(module, longer)[:, :FRAMES], expected, _OF_OUTPUT, "29 frames of zeros after the sequence change outputs")
    expect_same(call_without_gradients(module, x[:1]), expected[:1], _OF_OUTPUT, "a sample alone and in a batch")
    return f"with padding, and with other samples in the batch: {padded}"


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
                raise Failed(f"step at frame {frame} failed: {said(error)}; expected step(x [batch, width], state) -> (y, state)") from error
            if not isinstance(out, torch.Tensor) or out.shape != x[:, frame].shape:
                got = list(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
                raise Failed(f"step at frame {frame}, expected outputs of shape {list(x[:, frame].shape)}, got {got}")
            outs.append(out)
    return expect_same(torch.stack(outs, dim=1), call_without_gradients(module, x), _OF_OUTPUT, "step by step and the whole sequence")


def _gradients(subject: Subject) -> str:
    module, x = subject.double().eval(), subject.frames(_FEW, torch.float64)
    weights = subject.frames(_FEW, torch.float64, offset=1)
    x.requires_grad_()

    def value() -> torch.Tensor:
        return (call(module, x).double() * weights).sum()

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
    expected = call_without_gradients(module, x)
    # oneDNN has no bfloat16 products on some processors; torch's own are everywhere.
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", dtype=torch.bfloat16):  # type: ignore
        got = call_without_gradients(module, x).float()
    expect_finite(got, "output under bfloat16 autocast")
    change = (got - expected).square().mean(dim=(0, 2)).sqrt()  # of each frame
    size = max(float(expected.square().mean().sqrt()), 1e-30)
    share = float(change.square().mean().sqrt()) / size
    if share > _OF_BF16:
        raise Failed(f"bfloat16 autocast changes outputs by {share:.3g} of their size, most at frame {int(change.argmax())}")
    return f"autocast changes outputs by {share:.1e} of their size"


def _extreme(subject: Subject) -> str:
    module = subject.fresh().train()
    spike = torch.zeros(BATCH, FRAMES, subject.width)
    spike[:, FRAMES // 2] = 1e4
    inputs = {"zeros": torch.zeros(BATCH, FRAMES, subject.width), "a spike of 1e4": spike}
    # Fused attention computes exp(score - log-sum) again in its backward pass, which overflows from inputs of about 1e4 on.
    inputs["inputs of size 100"] = 100 * subject.frames()
    inputs["a constant 10"] = torch.full((BATCH, FRAMES, subject.width), 10.0)
    for what, x in inputs.items():
        x.requires_grad_()
        out = call(module, x, f"forward of {what}")
        expect_finite(out, f"output for {what}")
        try:
            (gradient,) = torch.autograd.grad(out.sum(), x)
        except (Exception, SystemExit) as error:
            raise Failed(f"backward for {what} failed: {said(error)}") from error
        expect_finite(gradient, f"gradient of the input for {what}")
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
