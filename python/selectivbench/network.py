"""The benchmark's network around a mixer, in torch: the one that the program builds around its own."""
from __future__ import annotations

import torch

from ._mixer import Failed, Make, build, name_of, own_state
from .peers import BEYOND

RESIDUALS = ("post", "pre")
_WIDEST = 1 << 16


class Network(torch.nn.Module):
    """Frames [batch, frames, inputs] to logits [batch, frames, outputs].

    post: h <- LN(h + mixer(h));  pre: h <- h + mixer(LN(h)), and a last LN. Parameters have the program's names.
    """

    def __init__(self, make: Make, width: int, layers: int, inputs: int, outputs: int, residual: str = "post") -> None:
        super().__init__()
        self.residual = residual
        self.encoder = torch.nn.Linear(inputs, width)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(layers))
        self.layers = torch.nn.ModuleList(make(width) for _ in range(layers))
        self.last_norm = torch.nn.LayerNorm(width) if residual == "pre" else None
        self.decoder = torch.nn.Linear(width, outputs)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Logits."""
        h = self.encoder(frames)
        for norm, mixer in zip(self.norms, self.layers):
            h = norm(h + mixer(h)) if self.last_norm is None else h + mixer(norm(h))
        logits: torch.Tensor = self.decoder(h if self.last_norm is None else self.last_norm(h))
        return logits


def parameters(module: torch.nn.Module) -> int:
    """Number of parameters."""
    return sum(each.numel() for each in module.parameters())


def nearest_width(make: Make, target: int, layers: int, inputs: int, outputs: int, residual: str = "post", step: int = 1) -> int:
    """The width whose network has the number of parameters nearest to the target, among widths that the mixer accepts.

    A mixer rejects a width by raising an exception, in its constructor or when it is called.

    >>> import torch
    >>> from selectivbench.network import nearest_width
    >>> nearest_width(lambda width: torch.nn.Linear(width, width), 84_000, 2, 13, 145)
    168
    """
    with own_state():  # whatever the mixer prints or changes, sb.check says
        return _nearest_width(make, target, layers, inputs, outputs, residual, step)


def _nearest_width(make: Make, target: int, layers: int, inputs: int, outputs: int, residual: str, step: int) -> int:
    found: list[tuple[int, int, int]] = []  # distance from the target, width, parameters
    why = ""
    for width in range(step, _WIDEST, step):
        around = (inputs + outputs + 1 + 2 * (layers + (residual == "pre"))) * width + outputs
        if around > BEYOND * target:
            break
        try:
            count = around + layers * parameters(build(make, width, 0, BEYOND * target))
        except Failed as error:
            why = why or str(error)
            if "more than" in str(error):
                break
            continue
        found.append((abs(count - target), width, count))
        if count > BEYOND * target:
            break
    other: tuple[int, int] | None = None  # a width that works, and its parameters, too far from the target
    for _, width, count in sorted(found):
        try:
            with torch.no_grad():
                build(make, width, 0).eval()(torch.zeros(1, 2, width))
        except (Exception, SystemExit):  # such as heads that do not divide the width
            continue
        if target <= BEYOND * count <= BEYOND**2 * target:
            return width
        other = other or (width, count)
    if other is not None:
        raise ValueError(
            f"[rank] {name_of(make)} accepts no width near the target: the nearest, {other[0]}, gives a network of {other[1]:,} parameters, "
            f"expected about {target:,}, half to twice as many"
        )
    if found:
        return min(found)[1]  # the check of the mixer says what is wrong
    why = why or f"the least width is {step}"
    raise ValueError(f"[rank] {name_of(make)}: {why}; no width gives a network of about {target:,} parameters")
