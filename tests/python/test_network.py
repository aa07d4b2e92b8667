"""The network in torch equals the program's: logits and gradients of recorded vectors."""
import functools
import json
import struct
import unittest

import numpy as np

from common import SOURCE, has, needs_torch

if has("torch"):
    import torch

    import mixers
    from selectivbench.network import Network, nearest_width, parameters

TYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "BOOL": np.bool_}


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(data[begin:end], np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data[begin:end], TYPES[entry["dtype"]])
        out[name] = torch.from_numpy(values.reshape(entry["shape"]).copy())
    return out


@needs_torch
class NetworkTest(unittest.TestCase):
    def test_logits_gradients_and_updates_are_those_of_the_program(self):
        stored = read_safetensors(SOURCE / "tests" / "golden" / "layers" / "net_gated_delta_net.safetensors")
        network = Network(functools.partial(mixers.GatedDeltaNet, heads=4, expand_v=2), 24, 2, 11, 19).double()
        network.load_state_dict({name[3:]: value for name, value in stored.items() if name.startswith("p0.")})
        adam = torch.optim.Adam(network.parameters())
        targets = torch.where(stored["mask"], stored["labels"], torch.tensor(-1)).flatten()
        self.close(network(stored["x"].double()), stored["logits0"])
        for loss, norm, adam.param_groups[0]["lr"] in zip(stored["losses"], stored["grad_norms"], stored["lrs"].tolist()):
            adam.zero_grad()
            found = torch.nn.functional.cross_entropy(network(stored["x"].double()).flatten(0, 1), targets, ignore_index=-1)
            found.backward()
            self.close(found, loss)
            self.close(torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0), norm)
            adam.step()
        for name, parameter in network.named_parameters():  # the file holds the clipped gradients of the last update
            self.close(parameter.grad, stored["g0." + name], name)
        self.close(network(stored["x"].double()), stored["logits_end"])

    def close(self, got, expected, name=""):
        np.testing.assert_allclose(got.detach(), expected, rtol=0, atol=1e-9, err_msg=name)

    def test_pre_norm_has_the_parameters_of_the_program(self):
        network = Network(lambda width: torch.nn.Identity(), 48, 2, 13, 145, "pre")
        self.assertEqual(parameters(network), 13 * 48 + 48 + 3 * 96 + 48 * 145 + 145)
        x = torch.randn(2, 5, 13)
        h = network.encoder(x)
        for norm in network.norms:
            h = h + norm(h)
        torch.testing.assert_close(network(x), network.decoder(network.last_norm(h)))

    def test_the_width_is_the_nearest_that_the_mixer_accepts(self):
        for residual in ("post", "pre"):
            width = nearest_width(mixers.MinGru, 84_000, 2, 13, 145, residual)
            sizes = {w: parameters(Network(mixers.MinGru, w, 2, 13, 145, residual)) for w in range(width - 1, width + 2)}
            self.assertEqual(min(sizes, key=lambda w: abs(sizes[w] - 84_000)), width)
        self.assertEqual(nearest_width(mixers.Attention, 84_000, 2, 13, 145) % 4, 0)
        self.assertEqual(nearest_width(functools.partial(mixers.GatedDeltaNet, heads=8), 84_000, 2, 13, 145) % 8, 0)
        self.assertEqual(nearest_width(mixers.MinGru, 84_000, 2, 13, 145, step=8) % 8, 0)
        with self.assertRaisesRegex(ValueError, r"\[rank\] Huge: .*; no width gives a network of about 84,000 parameters"):
            nearest_width(mixers.Huge, 84_000, 2, 13, 145)
        said = r"\[rank\] OnlySeven accepts no width near the target: the nearest, 7, gives a network of 1,[0-9]{3} parameters, expected about 84,000"
        with self.assertRaisesRegex(ValueError, said):
            nearest_width(mixers.OnlySeven, 84_000, 2, 13, 145)

    def test_the_width_counts_every_parameter_of_the_network(self):
        for residual in ("post", "pre"):
            below, above = (parameters(Network(mixers.MinGru, width, 2, 13, 145, residual)) for width in (20, 21))
            middle = (below + above) // 2
            self.assertEqual(nearest_width(mixers.MinGru, middle, 2, 13, 145, residual), 20, residual)
            self.assertEqual(nearest_width(mixers.MinGru, middle + 1, 2, 13, 145, residual), 21, residual)


if __name__ == "__main__":
    unittest.main()
