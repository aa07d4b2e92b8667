#!/usr/bin/env python3
"""Records tests/golden/layers files of layers without published vectors (README.md). Needs only numpy.

Each layer is written as a loop over frames from its equations, in float64, without chunks and without the stabilisers
of the program. Gradients are complex-step derivatives, Im f(x + i h) / h with h = 1e-30: exact to rounding, and no
backward pass is written by hand.

    tests/golden/record_layers.py FOLDER [NAME …]    # writes FOLDER/NAME.safetensors
    tests/golden/record_layers.py --check FOLDER     # compares the loops with published layers that are special cases
"""

import json
import pathlib
import struct
import sys

import numpy as np

STEP = 1e-30


def sigma(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigma(x)


def softplus(x):
    return np.log(1 + np.exp(x))


def heads(x, h):
    return x.reshape(x.shape[0], x.shape[1], h, -1)


def flat(x):
    return x.reshape(x.shape[0], x.shape[1], -1)


def conv4(x, w):
    padded = np.concatenate([np.zeros_like(x[:, :3]), x], 1)
    return sum(padded[:, i:i + x.shape[1]] * w[:, 0, i] for i in range(4))


def l2(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def rms(x, gain):
    return gain * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def layer_norm(x, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def read(q, S):
    return np.einsum("bhk,bhkv->bhv", q, S)


def outer(k, v):
    return k[..., None] * v[..., None, :]


def gated_delta_net2(x, p, h, shared):
    def mixed(n):
        return heads(silu(conv4(x @ p[n + "_proj.weight"].T, p[n + "_conv1d.weight"])), h)

    q, k, v = l2(mixed("q")), l2(mixed("k")), mixed("v")
    f = heads(x @ p["f_proj.0.weight"].T @ p["f_proj.1.weight"].T + p["dt_bias"], h)
    decay = np.exp(-np.exp(p["A_log"])[:, None] * softplus(f))
    b, w = heads(sigma(x @ p["b_proj.weight"].T), h), heads(sigma(x @ p["w_proj.weight"].T), h)
    S, out = np.zeros((x.shape[0], h, k.shape[-1], v.shape[-1]), x.dtype), []
    for t in range(x.shape[1]):
        S = decay[:, t][..., None] * S
        S = S + outer(k[:, t], w[:, t] * v[:, t] - read(b[:, t] * k[:, t], S))
        out.append(read(q[:, t], S) * k.shape[-1] ** -0.5)
    gate = sigma(x @ p["g_proj.0.weight"].T @ p["g_proj.1.weight"].T + p["g_proj.1.bias"])
    return (flat(rms(np.stack(out, 1), p["o_norm.weight"])) * gate) @ p["o_proj.weight"].T


def mlstm(x, p, h, shared):
    q, k, v = (heads(x @ p[n + ".weight"].T, h) for n in "qkv")
    i, f = (15 * np.tanh((x @ p[n + "gate_preact.weight"].T + p[n + "gate_preact.bias"]) / 15) for n in "if")
    C = np.zeros((x.shape[0], h, k.shape[-1], v.shape[-1]), x.dtype)
    n, out = np.zeros(C.shape[:3], x.dtype), []
    for t in range(x.shape[1]):
        keep, add = sigma(f[:, t])[..., None], np.exp(i[:, t])[..., None] * k[:, t]
        C, n = keep[..., None] * C + outer(add, v[:, t]), keep * n + add
        query = q[:, t] * k.shape[-1] ** -0.5
        norm = (n * query).sum(-1, keepdims=True)
        out.append(read(query, C) / np.where(np.abs(norm.real) > 1, norm * np.sign(norm.real), 1))
    normed = flat(layer_norm(np.stack(out, 1), 1e-6)) * p["multihead_norm.weight"]
    return (normed * sigma(x @ p["ogate_preact.weight"].T)) @ p["out_proj.weight"].T


def rwkv7(x, p, h, shared):
    delta = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1) - x

    def lora(name, act, y):
        y = act(y @ p[name + "_lora.lora.0.weight"].T) @ p[name + "_lora.lora.2.weight"].T
        return y + p.get(name + "_lora.lora.2.bias", 0)

    def mixed(n):
        return x + delta * p["x_" + n]

    def same(y):
        return y

    r, k, v = (mixed(n) @ p[n + "_proj.weight"].T for n in "rkv")
    decay = heads(np.exp(-np.exp(-0.5) * sigma(lora("w", np.tanh, mixed("w")))), h)
    a = sigma(lora("a", same, mixed("a")))
    v = v + sigma(lora("v", same, mixed("v"))) * (shared["v_first"] - v)
    kk = heads(k * p["k_k"], h)
    kk = kk / np.sqrt((kk * kk).sum(-1, keepdims=True))
    k = k + k * (a - 1) * p["k_a"]
    r, k, v, a = (heads(y, h) for y in (r, k, v, a))
    S, out = np.zeros((x.shape[0], h, k.shape[-1], v.shape[-1]), x.dtype), []
    for t in range(x.shape[1]):
        erased = read(kk[:, t], S)
        S = decay[:, t][..., None] * S - outer(kk[:, t] * a[:, t], erased) + outer(k[:, t], v[:, t])
        out.append(read(r[:, t], S))
    o = flat(layer_norm(np.stack(out, 1), 1e-5 * k.shape[-1])) * p["g_norm.weight"] + p["g_norm.bias"]
    o = o + flat((r * k * p["r_k"]).sum(-1, keepdims=True) * v)
    return (o * lora("g", sigma, mixed("g"))) @ p["o_proj.weight"].T


def delta_shapes(d, h):
    keys, values, rank = d, 2 * d, 2 * d // h
    return {"A_log": (h,), "dt_bias": (keys,), "q_proj.weight": (keys, d), "k_proj.weight": (keys, d),
            "v_proj.weight": (values, d), "q_conv1d.weight": (keys, 1, 4), "k_conv1d.weight": (keys, 1, 4),
            "v_conv1d.weight": (values, 1, 4), "f_proj.0.weight": (rank, d), "f_proj.1.weight": (keys, rank),
            "b_proj.weight": (keys, d), "w_proj.weight": (values, d), "g_proj.0.weight": (rank, d),
            "g_proj.1.weight": (values, rank), "g_proj.1.bias": (values,), "o_norm.weight": (values // h,),
            "o_proj.weight": (d, values)}


def mlstm_shapes(d, h):
    return {"q.weight": (d // 2, d), "k.weight": (d // 2, d), "v.weight": (d, d), "ogate_preact.weight": (d, d),
            "igate_preact.weight": (h, d), "fgate_preact.weight": (h, d), "igate_preact.bias": (h,),
            "fgate_preact.bias": (h,), "multihead_norm.weight": (d,), "out_proj.weight": (d, d)}


def rwkv7_shapes(d, h):
    shapes = {"x_" + n: (1, 1, d) for n in "rwkvag"} | {"k_k": (d,), "k_a": (d,), "r_k": (h, d // h)}
    shapes |= {n + "_proj.weight": (d, d) for n in "rkvo"}
    for n in "wvag":
        shapes |= {n + "_lora.lora.0.weight": (32, d), n + "_lora.lora.2.weight": (d, 32)}
        if n != "g":
            shapes[n + "_lora.lora.2.bias"] = (d,)
    return shapes | {"g_norm.weight": (d,), "g_norm.bias": (d,)}


# name of the file: model, function, shapes, width, heads, more metadata, names of shared tensors [B,T,d]
LAYERS = {
    "gated_delta_net2_d16": ("gated_delta_net2", gated_delta_net2, delta_shapes, 16, 2, {}, []),
    "mlstm_d16": ("mlstm", mlstm, mlstm_shapes, 16, 2, {}, []),
    "rwkv7_second_d16": ("rwkv7", rwkv7, rwkv7_shapes, 16, 2, {"layer_index": "1"}, ["v_first"]),
}


# Gradients that are not stored. The norm after mLSTM removes the scale of its heads, so that of the input gate's bias is
# nearly 0, a difference of large numbers.
LEFT_OUT = {"g.igate_preact.bias"}


def bf16(x):
    """Rounds to values that bfloat16 holds exactly."""
    bits = np.asarray(x, "<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype("<u4").view("<f4").astype("f8")


def initial(name, shape, rng):
    if name == "A_log":
        return np.log(rng.uniform(1, 4, shape)) - 3  # decays that differ, none near 0
    if name in ("o_norm.weight", "multihead_norm.weight", "g_norm.weight", "k_k", "k_a"):
        return 1 + 0.2 * rng.standard_normal(shape)
    if name.startswith("x_"):
        return rng.uniform(0, 1, shape)
    if name == "fgate_preact.bias":
        return rng.uniform(1, 4, shape)
    if len(shape) == 3:
        return rng.uniform(-0.5, 0.5, shape)
    if len(shape) == 2:
        return 1.5 * rng.standard_normal(shape) / np.sqrt(shape[1])
    return 0.5 * rng.standard_normal(shape)


def record(name, folder):
    model, layer, shapes, d, h, metadata, shared_names = LAYERS[name]
    rng = np.random.default_rng(sum(name.encode()))
    batch, frames = 2, 70
    params = {n: bf16(initial(n, s, rng)) for n, s in shapes(d, h).items()}
    x, cot = bf16(rng.standard_normal((batch, frames, d))), bf16(rng.standard_normal((batch, frames, d)))
    shared = {n: bf16(rng.standard_normal((batch, frames, d))) for n in shared_names}

    def slopes(values):
        """d <cot, y> / d values, element by element, changing `values` in place."""
        out = np.zeros(values.shape)
        for i in np.ndindex(values.shape):
            values[i] += 1j * STEP
            out[i] = (cot * layer(x_c, params_c, h, shared_c)).sum().imag / STEP
            values[i] = values[i].real
        return out

    x_c = x.astype(complex)
    params_c = {n: v.astype(complex) for n, v in params.items()}
    shared_c = {n: v.astype(complex) for n, v in shared.items()}
    y = layer(x, params, h, shared)
    tensors = {"x": ("BF16", x), "cot": ("BF16", cot), "y": ("F32", y), "dx": ("F32", slopes(x_c))}
    for n in shared_names:
        tensors["shared." + n] = ("BF16", shared[n])
        tensors["dshared." + n] = ("F32", slopes(shared_c[n]))
    for n in params:
        tensors["p." + n] = ("BF16", params[n])
    for n in params:
        if "g." + n not in LEFT_OUT:
            tensors["g." + n] = ("F32", slopes(params_c[n]))
    metadata = {"layer": model, "d_model": str(d), "n_head": str(h), "B": str(batch), "T": str(frames),
                "source": "tests/golden/record_layers.py", **metadata}
    write(folder / (name + ".safetensors"), tensors, metadata)
    print(name, "y", np.abs(y).max(), {n: float(np.abs(v[1]).max()) for n, v in tensors.items() if n[0] in "gd"})


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, values) in tensors.items():
        values = np.asarray(values, "<f4")
        raw = (values.view("<u4") >> 16).astype("<u2").tobytes() if dtype == "BF16" else values.tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header, out = json.loads(raw[8:8 + size]), {}
    header.pop("__metadata__")
    for name, at in header.items():
        begin, end = (8 + size + offset for offset in at["data_offsets"])
        if at["dtype"] == "BF16":
            values = (np.frombuffer(raw[begin:end], "<u2").astype("<u4") << 16).view("<f4")
        else:
            values = np.frombuffer(raw[begin:end], "<f4")
        out[name] = values.astype("f8").reshape(at["shape"])
    return out


def check(folder):
    """KDA is gated_delta_net2 with one gate per head; the first layer of RWKV-7 mixes in no other values."""
    def published(name):
        stored = load(folder / (name + ".safetensors"))
        return stored["x"], stored["y"], {n[2:]: v for n, v in stored.items() if n.startswith("p.")}

    def compare(name, got, expected):
        error = np.abs(got - expected).max() / np.abs(expected).max()
        print(f"{name}: relative error {error:.1e}")
        return error < 1e-6

    x, y, p = published("kda_d32")
    gate, keys, values = p["b_proj.weight"], p["k_proj.weight"].shape[0], p["v_proj.weight"].shape[0]
    p["b_proj.weight"], p["w_proj.weight"] = (np.repeat(gate, n // len(gate), 0) for n in (keys, values))
    same = compare("gated_delta_net2 as kda_d32", gated_delta_net2(x, p, 2, {}), y)
    x, y, p = published("rwkv7_d32")
    d = x.shape[-1]
    p |= {"v_lora.lora.0.weight": np.zeros((1, d)), "v_lora.lora.2.weight": np.zeros((d, 1)),
          "v_lora.lora.2.bias": np.full(d, -700.0)}
    return compare("rwkv7 as rwkv7_d32", rwkv7(x, p, 2, {"v_first": np.zeros_like(x)}), y) and same


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        sys.exit(0 if check(pathlib.Path(sys.argv[2])) else 1)
    for each in sys.argv[2:] or LAYERS:
        record(each, pathlib.Path(sys.argv[1]))
