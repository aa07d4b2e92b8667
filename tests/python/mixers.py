"""Mixers that the tests of sb.check and sb.rank use: two sound ones, and one for each way to cheat."""
import os
import signal

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


class ChangesType(Base):
    def forward(self, x):
        torch.set_default_dtype(torch.float64)
        return self.out(x)


class ChangesThreads(Base):
    def forward(self, x):
        torch.set_num_threads(torch.get_num_threads() + 1)
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


class Killed(MinGru):
    """A sound mixer whose process dies at the training call that the environment names."""

    calls = 0

    def forward(self, x):
        if self.training and torch.is_grad_enabled():
            Killed.calls += 1
            if Killed.calls == int(os.environ.get("SELECTIVBENCH_TEST_KILL", "0")):
                os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(x)


def gives_no_module(width):
    return width
