"""Mixers that the tests of sb.check and sb.rank use: two sound ones, and one for each way to cheat."""
import math
import os
import random
import signal
import sys

import numpy as np
import torch


class MinGru(torch.nn.Module):
    """h <- (1 - z) h + z c with gates from the input alone; has the optional method step."""

    def __init__(self, width):
        super().__init__()
        self.gates = torch.nn.Linear(width, 2 * width)
        self.out = torch.nn.Linear(width, width)

    def _cell(self, gates, h):
        z, c = gates.chunk(2, -1)
        z = torch.sigmoid(z)
        return (1 - z) * h + z * torch.tanh(c)

    def forward(self, x):
        gates, outs = self.gates(x), []
        h = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            h = self._cell(gates[:, t], h)
            outs.append(h)
        return self.out(torch.stack(outs, 1))

    def step(self, x, state):
        h = self._cell(self.gates(x), torch.zeros_like(x) if state is None else state)
        return self.out(h), h


class Attention(torch.nn.Module):
    """Causal softmax attention with four heads, and dropout; widths that do not divide by four are rejected."""

    def __init__(self, width):
        super().__init__()
        if width % 4:
            raise ValueError("width, expected a multiple of 4")
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = (each.unflatten(2, (4, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, 2))
        scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = self.dropout(scores.masked_fill(later, float("-inf")).softmax(3))
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Base(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = torch.nn.Linear(width, width)


class LooksAhead(Base):
    def forward(self, x):
        return self.out(torch.cat([x[:, 1:], x[:, :1]], 1))


class LooksAheadInTraining(Base):
    def forward(self, x):
        return self.out(x - x.mean((0, 1), keepdim=True)) if self.training else self.out(x)


class Sequence(Base):
    """Divides by the length of the sequence."""

    def forward(self, x):
        return self.out(x.cumsum(1) / x.shape[1])


class NotANumber(Base):
    def forward(self, x):
        out = self.out(x)
        return torch.where(torch.arange(x.shape[1])[:, None] == 5, torch.full_like(out, float("nan")), out)


class Overflows(Base):
    def forward(self, x):
        return self.out(x.exp())


class ZeroNorm(Base):
    def forward(self, x):
        return self.out(x / x.norm(dim=2, keepdim=True))


class Random(Base):
    def forward(self, x):
        return self.out(x + 0.1 * torch.randn_like(x))


class Remembers(Base):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return self.out(x) * (1 + 0.1 * self.calls)


class WrongShape(Base):
    def forward(self, x):
        return self.out(x)[:, :-1]


class Tuple(Base):
    def forward(self, x):
        return self.out(x), None


class Huge(Base):
    def __init__(self, width):
        super().__init__(width)
        self.table = torch.nn.Embedding(1_000_000_000, 1)

    def forward(self, x):
        return self.out(x)


class Breaks(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        raise RuntimeError("no backward today")


class NoBackward(Base):
    def forward(self, x):
        return Breaks.apply(self.out(x))


class BreaksInTraining(Base):
    """Sound until its weights have moved by more than `far` from the first ones."""

    far = 0.0

    def __init__(self, width):
        super().__init__(width)
        self.first = [self.out.weight.detach().clone()]

    def forward(self, x):
        if self.training and float((self.out.weight - self.first[0]).detach().abs().max()) > self.far:
            raise KeyError("a table that is too small")
        return self.out(x)


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient / 2


class WrongGradient(Base):
    def forward(self, x):
        return self.out(Halves.apply(x))


class Prints(Base):
    def forward(self, x):
        print("hello from forward")
        return self.out(x)


class PrintsInEvaluation(Base):
    def forward(self, x):
        if not self.training:
            print("hello from evaluation", file=sys.stderr)
        return self.out(x)


class Exits(Base):
    def forward(self, x):
        sys.exit("enough")


class ExitsWhenBuilt(torch.nn.Module):
    def __init__(self, width):
        raise SystemExit(3)


class NoBackwardInDouble(Base):
    """Its backward fails only in float64, at a check that does not expect that."""

    def forward(self, x):
        return Breaks.apply(self.out(x)) if x.dtype == torch.float64 else self.out(x)


class ChangesType(Base):
    def forward(self, x):
        torch.set_default_dtype(torch.float64)
        return self.out(x)


class ChangesTypeWhenBuilt(Base):
    def __init__(self, width):
        super().__init__(width)
        torch.set_default_dtype(torch.float64)


class SeedsWhenBuilt(Base):
    def __init__(self, width):
        torch.manual_seed(3)
        super().__init__(width)


class Mean(torch.nn.Module):
    """Without parameters."""

    def __init__(self, width):
        super().__init__()

    def forward(self, x):
        return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype).unsqueeze(-1)


class OnlySeven(Base):
    def __init__(self, width):
        if width != 7:
            raise ValueError("seven only")
        super().__init__(width)

    def forward(self, x):
        return self.out(x)


class ChangesThreads(Base):
    def forward(self, x):
        torch.set_num_threads(torch.get_num_threads() + 1)
        return self.out(x)


class ChangesGradMode(Base):
    def forward(self, x):
        out = self.out(x)
        torch.set_grad_enabled(False)
        return out


class ChangesDirectory(Base):
    def forward(self, x):
        os.chdir("/")
        return self.out(x)


class UsesPythonsRandom(Base):
    def forward(self, x):
        random.random()
        return self.out(x)


class SeedsNumpy(Base):
    def forward(self, x):
        np.random.seed(3)
        return self.out(x)


class ChangesProducts(Base):
    def forward(self, x):
        torch.set_float32_matmul_precision("medium")
        return self.out(x)


class Seeds(Base):
    def forward(self, x):
        torch.manual_seed(0)
        return self.out(x)


class NotRegistered(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.parts = [torch.nn.Linear(width, width)]

    def forward(self, x):
        return self.parts[0](x)


class Unused(Base):
    def __init__(self, width):
        super().__init__(width)
        self.spare = torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return self.out(x)


class WrongStep(MinGru):
    def step(self, x, state):
        out, h = super().step(x, state)
        return out, 0.5 * h


class BrokenStep(MinGru):
    def step(self, x, state):
        raise KeyError("no step today")


class Killed(MinGru):
    """A sound mixer whose process dies in training once the file that the environment names exists."""

    def forward(self, x):
        if self.training and os.path.exists(os.environ.get("SELECTIVBENCH_TEST_KILL", "")):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(x)


def gives_no_module(width):
    return width


class GatedDeltaNet(torch.nn.Module):
    """The program's Gated DeltaNet: S <- e^g S, S <- S + beta k (v - k^T S), o = K^-1/2 q^T S."""

    def __init__(self, width, heads=2, expand_v=1):
        super().__init__()
        self.heads, keys, values = heads, width, expand_v * width
        self.A_log = torch.nn.Parameter(torch.empty(heads).uniform_(1e-3, 16).log())
        step = torch.exp(torch.empty(heads).uniform_(math.log(0.001), math.log(0.1))).clamp(min=1e-4)
        self.dt_bias = torch.nn.Parameter(step + torch.log(-torch.expm1(-step)))
        self.q_proj = torch.nn.Linear(width, keys, bias=False)
        self.k_proj = torch.nn.Linear(width, keys, bias=False)
        self.v_proj = torch.nn.Linear(width, values, bias=False)
        self.a_proj = torch.nn.Linear(width, heads, bias=False)
        self.b_proj = torch.nn.Linear(width, heads, bias=False)
        self.q_conv1d, self.k_conv1d, self.v_conv1d = (torch.nn.Conv1d(n, n, 4, groups=n, bias=False) for n in (keys, keys, values))
        self.g_proj = torch.nn.Linear(width, values, bias=False)
        self.o_norm = torch.nn.Module()
        self.o_norm.weight = torch.nn.Parameter(torch.ones(values // heads))
        self.o_proj = torch.nn.Linear(values, width, bias=False)

    def forward(self, x):
        def convolved(project, conv):
            taps = torch.nn.functional.pad(project(x).transpose(1, 2), (3, 0))
            return torch.nn.functional.silu(conv(taps)).transpose(1, 2).unflatten(2, (self.heads, -1))

        def unit(y):
            return y / (y.square().sum(-1, keepdim=True) + 1e-6).sqrt()

        q, k = unit(convolved(self.q_proj, self.q_conv1d)), unit(convolved(self.k_proj, self.k_conv1d))
        v = convolved(self.v_proj, self.v_conv1d)
        beta = self.b_proj(x).sigmoid()
        decay = torch.exp(-self.A_log.exp() * torch.nn.functional.softplus(self.a_proj(x) + self.dt_bias))
        S = x.new_zeros(x.shape[0], self.heads, q.shape[3], v.shape[3])
        outs = []
        for t in range(x.shape[1]):
            S = decay[:, t, :, None, None] * S
            old = torch.einsum("bhk,bhkv->bhv", k[:, t], S)
            S = S + torch.einsum("bhk,bhv->bhkv", k[:, t], beta[:, t, :, None] * (v[:, t] - old))
            outs.append(torch.einsum("bhk,bhkv->bhv", q[:, t], S))
        o = torch.stack(outs, 1) * q.shape[3] ** -0.5
        o = o * (o.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * self.o_norm.weight
        gate = self.g_proj(x).unflatten(2, (self.heads, -1))
        return self.o_proj((o * torch.nn.functional.silu(gate)).flatten(2))
