"""sb.check: sound mixers pass, and each way to cheat gets its message."""
import functools
import io
import os
import random
import unittest
from contextlib import redirect_stderr, redirect_stdout

import numpy as np

import selectivbench as sb
from common import has, needs_torch

if has("torch"):
    import torch

    import mixers

# Mixer, the check that fails first, and what its message says.
CHEATS = [
    ("gives_no_module", "build", "expected a torch.nn.Module, got int"),
    ("Huge", "build", "has more than 100,000,000 parameters"),
    ("ExitsWhenBuilt", "build", r"mixer\(16\) failed: SystemExit: 3"),
    ("Exits", "output", r"failed: SystemExit: enough \(mixers\.py:\d+\)"),
    ("WrongShape", "output", r"expected shape \[3, 131, 16\], got \[3, 130, 16\]"),
    ("Tuple", "output", "got tuple; return the outputs alone"),
    ("NotANumber", "output", "output is nan at sample 0, frame 5, channel 0"),
    ("NotRegistered", "parameters", "parts holds a module that is not registered"),
    ("NoBackward", "backward", "RuntimeError: no backward today"),
    ("Unused", "backward", "parameter spare gets no gradient"),
    ("Prints", "global state", "prints 'hello from forward'"),
    ("ChangesType", "global state", "changes torch's default dtype from torch.float32 to torch.float64"),
    ("ChangesTypeWhenBuilt", "build", "the constructor changes torch's default dtype from torch.float32 to torch.float64"),
    ("SeedsWhenBuilt", "build", "the constructor sets torch's random seed"),
    ("ChangesThreads", "global state", "changes torch's number of threads"),
    ("ChangesGradMode", "backward", "forward changes torch's grad mode"),
    ("ChangesDirectory", "global state", "changes the working directory from .* to /; it belongs to the caller"),
    ("ChangesProducts", "global state", "changes torch's precision of float32 products from highest to medium"),
    ("UsesPythonsRandom", "global state", "changes Python's random state"),
    ("SeedsNumpy", "global state", "changes numpy's random state"),
    ("Seeds", "global state", "sets torch's random seed"),
    ("PrintsInEvaluation", "global state", "prints 'hello from evaluation'"),
    ("Random", "repeatable", r"values differ, by up to 0\.\d+ at sample \d, frame \d+, channel \d+"),
    ("Remembers", "repeatable", "must not keep a state between calls"),
    ("LooksAhead", "causal", "the output at frame 0 changes by [0-9.]+ when only frames from 1 on change"),
    ("LooksAheadInTraining", "causal", "not causal in train mode"),
    ("Sequence", "padding", "29 frames of zeros after the sequence change outputs: differs by"),
    ("WrongStep", "step", r"step by step and the whole sequence: differs by [0-9.e-]+ at sample \d, frame"),
    ("WrongGradient", "gradients", "gradient of the input: backward gives"),
    ("NoBackwardInDouble", "gradients", "RuntimeError: no backward today"),
    ("Overflows", "extreme", "output for a spike of 1e4 is nan at sample 0, frame 65"),
    ("ZeroNorm", "extreme", "output for zeros is nan"),
]


@needs_torch
class CheckTest(unittest.TestCase):
    def test_sound_mixers_pass(self):
        for mixer in (mixers.MinGru, mixers.Attention, mixers.Mean, functools.partial(mixers.MinGru), mixers.MinGru(16)):
            report = sb.check(mixer, width=16)
            self.assertTrue(report.ok, report)
        self.assertIn("FAILED" if report.failures else "ok", str(report))
        self.assertEqual([each.name for each in sb.check(mixers.Attention, 16).checks if each.status == "skipped"], ["step"])

    def test_each_way_to_cheat_has_its_message(self):
        for name, where, said in CHEATS:
            with self.subTest(name):
                report = sb.check(getattr(mixers, name), width=16)
                self.assertEqual(report.failures[:1] and report.failures[0].name, where, report)
                self.assertRegex(report.failures[0].detail, said)

    def test_the_caller_keeps_its_state(self):
        def state():
            kept = [torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(), torch.get_float32_matmul_precision()]
            return [*kept, os.getcwd(), random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()]

        before = state()
        for name in ("ChangesType", "ChangesGradMode", "ChangesThreads", "ChangesProducts", "ChangesDirectory", "UsesPythonsRandom",
                     "SeedsNumpy", "Seeds", "Prints", "PrintsInEvaluation"):  # fmt: skip
            with self.subTest(name), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as said:
                sb.check(getattr(mixers, name), width=16)
                self.assertEqual(state(), before)
                self.assertEqual(out.getvalue() + said.getvalue(), "")

    def test_raises_only_if_asked(self):
        with self.assertRaisesRegex(ValueError, r"\[check\.causal\] LooksAhead: not causal"):
            sb.check(mixers.LooksAhead, 16, raise_on_failure=True)
        self.assertTrue(sb.check(mixers.LooksAhead, 16, skip=["causal", "padding"]).ok)
        with self.assertRaisesRegex(ValueError, r"\[check\] skip, expected .*got 'speed'"):
            sb.check(mixers.LooksAhead, 16, skip=["speed"])
        with self.assertRaisesRegex(ValueError, r"\[check\] mixer, expected"):
            sb.check(3)

    def test_a_state_is_counted_from_its_steps(self):
        from selectivbench._mixer import state_size

        self.assertEqual(state_size(mixers.MinGru(16), 16), 16)
        stateless = mixers.Attention(16)
        self.assertIsNone(state_size(stateless, 16))
        stateless.state_size = 48
        self.assertEqual(state_size(stateless, 16), 48)
        stateless.state_size = "large"
        with self.assertRaisesRegex(ValueError, r"\[rank\] state_size of the mixer, expected an integer, got 'large'"):
            state_size(stateless, 16)
        counted = mixers.MinGru(16)
        counted.state_size = 3  # what step carries counts
        self.assertEqual(state_size(counted, 16), 16)


if __name__ == "__main__":
    unittest.main()
