#!/usr/bin/env python3
"""Records layers of the models' authors: runs their own step-by-step code, in float64, from checkouts of their
repositories (README.md). Needs numpy and torch; none of their code is here.

    tests/golden/record_authors.py FOLDER CHECKOUTS    # writes FOLDER/*_authors_d32.safetensors

CHECKOUTS holds the folders flash-linear-attention, xlstm and mlstm_kernels. Their layers call fused kernels for a GPU:
in their place stand the repositories' naive recurrences, and the norm, the convolution and the l2 norm by definition.
"""

import importlib
import pathlib
import re
import sys
import types

import numpy as np
import torch
from torch.nn import functional as F

import record_layers

torch.set_default_dtype(torch.float64)


class ShortConvolution(torch.nn.Module):
    """A causal convolution of every channel, then SiLU."""

    def __init__(self, hidden_size, kernel_size, bias, activation):
        super().__init__()
        assert not bias and activation == "silu"
        self.weight = torch.nn.Parameter(torch.zeros(hidden_size, 1, kernel_size))

    def forward(self, x, **_):
        width = self.weight.shape[-1]
        y = F.conv1d(F.pad(x.transpose(1, 2), (width - 1, 0)), self.weight, groups=self.weight.shape[0])
        return F.silu(y).transpose(1, 2), None


class NormGated(torch.nn.Module):
    """RMS norm of x, times the sigmoid of g."""

    def __init__(self, width, activation, eps):
        super().__init__()
        assert activation == "sigmoid"
        self.weight, self.eps = torch.nn.Parameter(torch.ones(width)), eps

    def forward(self, x, g):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight * torch.sigmoid(g)


def rearrange(x, pattern, **sizes):
    if pattern == "... (h d) -> ... h d":
        return x.unflatten(-1, (-1, sizes["d"]))
    assert pattern == "b t h d -> b t (h d)", pattern
    return x.flatten(2)


def package(name, folder=None, **members):
    """A module that is not read from a file; its submodules are those of the folder."""
    module = types.ModuleType(name)
    module.__path__ = [str(folder)] if folder else []
    vars(module).update(members)
    sys.modules[name] = module


def in_double(path):
    """The names that a file defines, with float64 for every float32."""
    names = {"__name__": path.stem}
    text = re.sub(r"torch\.float32", "torch.float64", path.read_text().replace(".float()", ".double()"))
    exec(compile("from __future__ import annotations\n" + text, str(path), "exec"), names)
    return names


def gated_delta_net2(checkouts):
    root = checkouts / "flash-linear-attention/fla"
    naive = in_double(root / "ops/gdn2/naive.py")["naive_recurrent_gdn2"]

    def recurrence(q, k, use_qk_l2norm_in_kernel, initial_state, output_final_state, cu_seqlens, **rest):
        assert use_qk_l2norm_in_kernel and initial_state is None
        q, k = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (q, k))
        return naive(q, k, **rest)

    package("einops", rearrange=rearrange, repeat=None)
    for name in ("fla", "fla.layers", "fla.ops"):
        package(name)
    package("fla.modules", FusedRMSNormGated=NormGated, ShortConvolution=ShortConvolution)
    package("fla.ops.gdn2", chunk_gdn2=recurrence, fused_recurrent_gdn2=recurrence)
    package("fla.layers.utils", get_layer_cache=lambda *_: None, update_layer_cache=lambda *_, **__: None,
            unpad_hidden_states=lambda x, lengths, *_: (x, None, lengths), repad_hidden_states=lambda x, *_: x)
    layer = in_double(root / "layers/gdn2.py")["GatedDeltaNet2"](
        hidden_size=32, num_heads=2, head_dim=16, expand_v=2, norm_eps=1e-5)
    return layer, lambda x: layer(x)[0]


def mlstm(checkouts):
    kernels = "mlstm_kernels.torch"
    package("mlstm_kernels")
    package(kernels)
    package(kernels + ".recurrent", checkouts / "mlstm_kernels/mlstm_kernels/torch/recurrent")
    package(kernels + ".recurrent.triton_step", mlstm_recurrent_step__triton_fw=None)
    package(kernels + ".recurrent.triton_step_alternate", mlstm_recurrent_step__triton_alternate_fw=None)
    sequence = importlib.import_module(kernels + ".recurrent.native_sequence").mlstm_recurrent_sequence__native_fw

    class Backend(torch.nn.Module):
        def __init__(self, config):
            super().__init__()

        def forward(self, **operands):
            # eps 0: the published 1e-6 guards a denominator that is at least e^-m here.
            return sequence(**operands, eps=0, dtype_state=torch.float64, return_last_states=True)

    class Settings:
        pass

    package(kernels + ".backend_module", mLSTMBackendConfig=Settings, mLSTMBackend=Backend, ChunkwiseKernelType=str,
            SequenceKernelType=str, StepKernelType=str, DtypeType=str, BackendModeType=str)
    package("xlstm")
    package("xlstm.xlstm_large", checkouts / "xlstm/xlstm/xlstm_large")
    package("xlstm.xlstm_large.generate", generate_tokens=None, get_sampling_fn=None)
    model = importlib.import_module("xlstm.xlstm_large.model")
    layer = model.mLSTMLayer(model.mLSTMLayerConfig(embedding_dim=32, num_heads=2, norm_reduction_force_float32=False,
                                                    mlstm_backend=Settings()))
    return layer, lambda x: layer(x)[0]


def record(folder, model, layer, forward):
    rng = np.random.default_rng(sum(model.encode()))
    batch, frames, width = 2, 70, 32
    x, cot = (record_layers.bf16(rng.standard_normal((batch, frames, width))) for _ in range(2))
    stored = {"x": ("BF16", x), "cot": ("BF16", cot)}
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            value = record_layers.bf16(record_layers.initial(name, tuple(parameter.shape), rng))
            parameter.copy_(torch.from_numpy(value))
            stored["p." + name] = ("BF16", value)
    leaf = torch.from_numpy(x).requires_grad_()
    y = forward(leaf)
    assert y.dtype == torch.float64
    y.backward(torch.from_numpy(cot))
    stored["y"], stored["dx"] = ("F32", y.detach().numpy()), ("F32", leaf.grad.numpy())
    for name, parameter in layer.named_parameters():
        if "g." + name not in record_layers.LEFT_OUT | {"g.fgate_preact.bias"}:
            stored["g." + name] = ("F32", parameter.grad.numpy())
    record_layers.write(folder / (model + "_authors_d32.safetensors"), stored,
                        {"layer": model, "d_model": str(width), "n_head": "2", "B": str(batch), "T": str(frames),
                         "source": "tests/golden/record_authors.py"})
    print(model, "y", float(y.abs().max()), "dx", float(leaf.grad.abs().max()))


if __name__ == "__main__":
    for make in (gated_delta_net2, mlstm):
        record(pathlib.Path(sys.argv[1]), make.__name__, *make(pathlib.Path(sys.argv[2])))
