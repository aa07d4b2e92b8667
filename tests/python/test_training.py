"""sb.train: what it refuses before it trains, what it computes, what it shows, and that it resumes."""
import io
import signal
import subprocess
import sys
import unittest
from unittest import mock

import selectivbench as sb
from common import TemporaryFolder, has, needs_torch

if has("torch"):
    import torch

    import models_for_training
    from models_for_training import SETTINGS, SHORT, Gru


class Terminal(io.StringIO):
    def isatty(self):
        return True


@needs_torch
class DivergenceTest(unittest.TestCase):
    """Values of an update are read at once, or during the next update as on a GPU."""

    class Breaks(torch.nn.Module if has("torch") else object):
        """Not finite from the fourth update on. ``asserts``: then it raises an error if its weights are not finite."""

        def __init__(self, asserts=False):
            super().__init__()
            torch.manual_seed(1)
            self.out, self.made, self.asserts = torch.nn.Linear(6, 10), 0, asserts

        def forward(self, frames):
            if self.asserts and not torch.isfinite(self.out.weight).all():
                raise ArithmeticError("weights are not finite")
            if self.training:
                self.made += 1
            return self.out(frames) / (0.0 if self.made > 3 else 1.0)

    @staticmethod
    def late(late):
        return mock.patch.object(sb.training, "_late", lambda device: late)

    def test_history_does_not_depend_on_when_values_are_read(self):
        def history(late):
            with self.late(late):
                return sb.train(Gru(8), sb.Config(SHORT), progress=False).history

        self.assertEqual(history(True), history(False))
        self.assertEqual([row["update"] for row in history(True) if "loss" in row], list(range(12)))

    def test_names_the_update_that_diverged(self):
        for late in (False, True):
            for asserts in (False, True):
                with self.subTest(late=late, asserts=asserts), self.late(late):
                    rows, model = [], self.Breaks(asserts)
                    with self.assertRaisesRegex(RuntimeError, r"\[train\] diverged at update 3, "):
                        sb.train(model, sb.Config({**SHORT, "eval.every": 0}), progress=rows.append)
                    self.assertEqual([row["update"] for row in rows], [0, 1, 2])
                    self.assertEqual(bool(torch.isfinite(model.out.weight).all()), not late)

    def test_progress_sees_the_model_after_the_step(self):
        model, seen = torch.nn.Linear(6, 10), []
        before = model.weight.detach().clone()
        sb.train(model, sb.Config(SHORT), progress=lambda row: seen.append(torch.equal(model.weight, before)))
        self.assertNotIn(True, seen)


@needs_torch
class RefusalTest(unittest.TestCase):
    def refused(self, model, line, settings=None, **keys):
        rows = []
        with self.assertRaisesRegex(ValueError, line):
            sb.train(model, sb.Config(settings or SETTINGS), progress=rows.append, **keys)
        self.assertEqual(rows, [])  # before the first update

    def test_parameters_made_by_the_first_call_depend_on_the_seed_of_the_run(self):
        def weights(seed):
            model = torch.nn.LazyLinear(10)
            sb.train(model, sb.Config({**SHORT, "train.lr": 1e-12, "train.seed": seed}), progress=False)
            return model.weight.detach().clone()

        self.assertTrue(torch.equal(weights(1), weights(1)))
        self.assertFalse(torch.allclose(weights(1), weights(2)))

    def test_models_that_look_ahead(self):
        class Attention(torch.nn.Module):
            def __init__(self, masked):
                super().__init__()
                self.put, self.out, self.masked = torch.nn.Linear(6, 8), torch.nn.Linear(8, 10), masked

            def forward(self, frames):
                x = self.put(frames)
                weights = x @ x.transpose(1, 2)
                if self.masked:
                    ahead = torch.ones(frames.shape[1], frames.shape[1]).triu(1).bool()
                    weights = weights.masked_fill(ahead, -torch.inf)
                return self.out(weights.softmax(-1) @ x)

        class Convolution(torch.nn.Module):
            def __init__(self, ahead):
                super().__init__()
                self.conv, self.ahead = torch.nn.Conv1d(6, 10, 3), ahead

            def forward(self, frames):
                padded = torch.nn.functional.pad(frames.transpose(1, 2), (2 - self.ahead, self.ahead))
                return self.conv(padded).transpose(1, 2)

        class NormOverFrames(Gru):
            def forward(self, frames):
                return super().forward(frames - frames.mean(1, keepdim=True))

        for model in (Gru(bidirectional=True), Attention(False), Convolution(1), NormOverFrames()):
            self.refused(model, r"\[train\] model is not causal: its output at frame \d+ changes when only frames from \d+ on change")
        for model in (Gru(), Attention(True), Convolution(0), Gru(dropout=0.5)):
            sb.train(model, sb.Config({**SHORT, "train.updates": 1, "train.warmup": 0}))

    def test_a_head_of_zeros_is_tested_again_after_training(self):
        model = Gru(bidirectional=True)
        with torch.no_grad():
            model.out.weight.zero_()
        with self.assertRaisesRegex(ValueError, r"\[evaluate\] predict is not causal"):
            sb.train(model, sb.Config(SHORT))

    def test_models_that_remember_earlier_calls(self):
        class Stateful(Gru):
            calls = 0

            def forward(self, frames):
                self.calls += 1
                return super().forward(frames) + self.calls

        self.refused(Stateful(), r"\[train\] model gives different outputs for the same frames in eval mode")

    def test_wrong_outputs_and_wrong_calls(self):
        class Wrapped(torch.nn.Module):
            def __init__(self, act):
                super().__init__()
                self.gru, self.act = Gru(), act

            def forward(self, frames):
                return self.act(self.gru, frames)

        self.refused(Gru(answers=7), r"\[train\] model\(frames\), expected logits of shape \[4, 40, 10\] \(samples, frames, answers\), "
                                     r"got shape \[4, 40, 7\]")
        self.refused(Wrapped(lambda gru, frames: gru(frames)[:, -1]), r"expected logits of shape \[4, 40, 10\].* got shape \[4, 10\]")
        self.refused(torch.nn.GRU(6, 10, batch_first=True), r"expected logits of shape \[4, 40, 10\] .*, got tuple")
        for model in (torch.nn.Linear(5, 10), torch.nn.Embedding(6, 10), torch.nn.Bilinear(6, 6, 10)):
            self.refused(model, r"\[train\] model\(frames\) failed; expected it to take frames of shape \[4, 40, 6\] "
                                r"\(samples, frames, channels\) and to return logits of shape \[4, 40, 10\] .*, got \w+Error: \S")

    def test_what_the_loop_does_not_do(self):
        self.refused(Gru(), r"\[train\] quirks.first_lr_zero, expected false", {**SETTINGS, "quirks.first_lr_zero": True})
        self.refused(Gru(), r"\[train\] train.position_stretch, expected 1", {**SETTINGS, "train.position_stretch": 4})
        self.refused(None, r"\[train\] model, expected a torch.nn.Module, got NoneType")
        self.refused(torch.nn.Identity(), r"\[train\] model has no parameters to train")
        self.refused(Gru(), r"\[train\] expected a path", checkpoint=3)
        with self.assertRaisesRegex(ValueError, r"\[train\] config, expected a selectivbench.Config, got dict"):
            sb.train(Gru(), SETTINGS)
        with self.assertRaisesRegex(ValueError, r"\[train\] progress, expected a function, True, False or None, got 3"):
            sb.train(Gru(), sb.Config(SETTINGS), progress=3)


@needs_torch
class LoopTest(TemporaryFolder):
    def test_it_learns_and_repeats(self):
        config = sb.Config(SETTINGS)
        first, second = (sb.train(Gru(), config) for _ in range(2))
        self.assertEqual(first.history, second.history)
        losses = [row["loss"] for row in first.history if "loss" in row]
        self.assertEqual(len(losses), 60)
        self.assertLess(losses[-1], losses[0] / 2)
        self.assertEqual([row["update"] for row in first.history if "valid_accuracy" in row], [30])
        self.assertGreater(first.result.test.accuracy, 0.5)
        self.assertEqual(first.result.test.samples, 50)

    def test_its_updates_are_those_of_a_plain_loop(self):
        config = sb.Config({**SHORT, "task.number": 2})  # samples of different lengths: the padding has no part in the loss
        model, same = Gru(8, dropout=0.2), Gru(8, dropout=0.2)
        trained = sb.train(model, config)
        torch.manual_seed(config["train.seed"])
        adam = torch.optim.AdamW(same.parameters(), betas=(config["train.beta1"], config["train.beta2"]), eps=config["train.eps"],
                                 weight_decay=config["train.weight_decay"])
        losses = []
        for update, batch in enumerate(config.task.batches("train", 4, count=48, order=(3, 48))):
            adam.param_groups[0]["lr"] = sb.training.learning_rate(update, 2e-2, config["train.warmup"], 12)
            tensors = batch.torch()
            self.assertTrue((tensors.targets < 0).any(), "no padding")
            loss = torch.nn.functional.cross_entropy(same(tensors.frames).flatten(0, 1), tensors.targets.flatten(), ignore_index=-1)
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(same.parameters(), config["train.clip"])
            adam.step()
            losses.append(float(loss))
        self.assertEqual([row["loss"] for row in trained.history if "loss" in row], losses)
        for name, tensor in same.state_dict().items():
            self.assertTrue(torch.equal(tensor, model.state_dict()[name]), name)

    def test_it_follows_the_schedule(self):
        schedule = "{task.length = {from = 5, over = 0.5}}"
        config = sb.Config({**SHORT, "train.schedule": schedule})
        seen = []

        class Watched(Gru):
            def forward(self, frames):
                if self.training and torch.is_grad_enabled():
                    seen.append(frames.shape[1])
                return super().forward(frames)

        trained = sb.train(Watched(8), config)
        self.assertEqual(trained.settings["train.schedule"], schedule)
        lengths = [batch.shape[1] for batch in sb.training._batches(config, 0)]
        self.assertEqual(seen[-12:], lengths)
        self.assertEqual(lengths[4:], [batch.shape[1] for batch in sb.training._batches(config, 4)])
        self.assertLess(lengths[0], lengths[-1])
        plain = [batch.shape[1] for batch in sb.training._batches(sb.Config(SHORT), 0)]
        self.assertEqual(lengths[6:], plain[6:])

    def test_its_settings_are_what_record_takes(self):
        settings = {**SHORT, "model.width": 8, "model.layers": 1, "model.kind": "plain", "run.seed": 2}
        trained = sb.train(Gru(8), sb.Config(settings))
        sb.record(self.folder, name="gru", params=1, result=trained.result, settings=trained.settings)
        (run,) = sb.load_runs(self.folder)
        self.assertEqual((run.updates, run.lr, run.width, run.layers, run.train_seed, run.grammar_seed), (12, 2e-2, 8, 1, 2, 2))
        self.assertEqual((run.config["train.batch"], run.config["model.switch kind"]), ("4", '"plain"'))
        self.assertEqual((run.data["made"]["device"], run.data["precision"]), ("cpu", "fp32"))

    def test_its_settings_do_not_claim_the_size_of_a_model_of_the_program(self):
        trained = sb.train(Gru(8), sb.Config({**SHORT, "model.name": "gla", "model.width": 64, "model.layers": 2}))
        self.assertFalse([key for key in trained.settings if key.startswith("model.")])
        self.assertEqual(str(trained), str(trained.result))
        with self.assertWarnsRegex(UserWarning, r"\[record\] settings have no model\.width and no model\.layers; tables show 1 for gru"):
            sb.record(self.folder, name="gru", params=1, result=trained.result, settings=trained.settings)

    def test_precision(self):
        cpu, cuda = torch.device("cpu"), torch.device("cuda", 0)
        for given, device, expected in [({}, cpu, "fp32"), ({}, cuda, "amp"), ({"train.precision": "fp32"}, cuda, "fp32"),
                                        ({"train.precision": "fp64"}, cpu, "fp64")]:
            self.assertEqual(sb.training.precision_of(sb.Config({**SHORT, **given}), device), expected)
        with self.assertRaisesRegex(ValueError, r"\[train.precision\] amp requires a CUDA device, got cpu"):
            sb.train(Gru(), sb.Config({**SHORT, "train.device": "cuda", "train.precision": "amp"}))
        model = Gru(8)
        sb.train(model, sb.Config({**SHORT, "train.updates": 2, "train.warmup": 0, "train.precision": "fp64"}))
        self.assertEqual(model.out.weight.dtype, torch.float64)

    def test_amp_multiplies_in_bfloat16_and_returns_float32(self):
        seen = []
        model = torch.nn.Linear(6, 10)
        model.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
        batch = sb.Config(SHORT).task.batch("train", [0])
        cpu = torch.device("cpu")  # where autocast does the same
        rounded, exact = (sb.training._forward(model, batch, cpu, precision) for precision in ("amp", "fp32"))
        self.assertEqual(seen, [torch.bfloat16, torch.float32])
        self.assertEqual((rounded.dtype, exact.dtype), (torch.float32, torch.float32))
        self.assertFalse(torch.equal(rounded, exact))
        torch.testing.assert_close(rounded, exact, rtol=0.02, atol=0.02)

    @unittest.skipUnless(has("torch") and torch.cuda.is_available(), "there is no CUDA device")
    def test_it_trains_in_amp_on_a_gpu(self):
        model = Gru()
        trained = sb.train(model, sb.Config(SETTINGS), device="cuda", checkpoint=self.folder / "gpu.pt")
        self.assertGreater(trained.result.test.accuracy, 0.5)
        self.assertEqual((trained.settings["train.device"], trained.settings["train.precision"]), ("cuda", "amp"))
        self.assertEqual(model.out.weight.dtype, torch.float32)
        again = sb.train(Gru(), sb.Config(SETTINGS), device="cuda", checkpoint=self.folder / "gpu.pt")
        self.assertEqual(again.history, trained.history)


@needs_torch
class ProgressTest(unittest.TestCase):
    def shown(self, stream, **keys):
        with mock.patch("sys.stderr", stream):
            sb.train(Gru(8), sb.Config(SHORT), **keys)
        return stream.getvalue()

    def test_a_terminal_shows_it_and_a_file_does_not(self):
        text = self.shown(Terminal())
        self.assertRegex(text, r"\rupdate 12/12  loss \d\.\d{4}  \d+\.\d updates/s  0:00 left")
        self.assertRegex(text, r"\rupdate 5/12  valid accuracy 0\.\d{4}  valid loss \d\.\d{4} *\n")
        self.assertRegex(text, r"\revaluating *\r *\r$")
        self.assertEqual(self.shown(io.StringIO()), "")

    def test_an_error_leaves_an_empty_line(self):
        stream = Terminal()
        with self.assertRaises(KeyboardInterrupt), mock.patch("selectivbench.training.measure", side_effect=KeyboardInterrupt):
            self.shown(stream)
        self.assertRegex(stream.getvalue(), r"\rupdate [1-5]/12  [^\r]*\r *\r$")

    def test_it_can_be_asked_for_or_not(self):
        self.assertEqual(self.shown(Terminal(), progress=False), "")
        self.assertIn("update 12/12", self.shown(io.StringIO(), progress=True))
        rows = []
        self.assertEqual(self.shown(Terminal(), progress=rows.append), "")
        self.assertEqual([row["update"] for row in rows if "loss" in row], list(range(12)))


@needs_torch
class ResumeTest(TemporaryFolder):
    def test_a_killed_run_ends_in_the_same_bytes(self):
        whole = self.folder / "whole"
        whole.mkdir()
        expected = models_for_training.train_short(str(whole))
        # Before the first checkpoint, between two, at an evaluation, while one takes its name, when all updates are made.
        kills = ["1", "4", "before 1", "before 2", "10", "after 2"]
        said = subprocess.run([sys.executable, models_for_training.__file__, str(self.folder), *kills, "99"], capture_output=True, text=True)
        self.assertEqual(said.stdout.split(), [str(-signal.SIGKILL)] * len(kills) + ["0"], said.stderr)
        self.assertEqual((self.folder / "trained").read_bytes(), expected)
        self.assertEqual(models_for_training.train_short(str(self.folder)), expected)  # a run that is over
        self.assertEqual([path.name for path in whole.iterdir()], ["short.pt"])

    def test_it_says_where_it_resumes(self):
        class Enough(Exception):
            pass

        def stop(row):
            if row["update"] == 7:
                raise Enough

        file = self.folder / "new" / "folder" / "a.pt"
        with self.assertRaises(Enough):
            sb.train(Gru(8), sb.Config(SHORT), progress=stop, checkpoint=file)
        stream = Terminal()
        with mock.patch("sys.stderr", stream):
            trained = sb.train(Gru(8), sb.Config(SHORT), checkpoint=file)
        self.assertIn("resumed at update 6 of 12", stream.getvalue())
        self.assertEqual([row["update"] for row in trained.history if "loss" in row], list(range(12)))

    def test_checkpoints_of_others_are_refused(self):
        file = self.folder / "a.pt"
        sb.train(Gru(8), sb.Config(SHORT), checkpoint=file)
        before = file.read_bytes()
        for model, settings, line in [
            (Gru(8), {"train.lr": 1e-2}, "belongs to a run with another config"),
            (Gru(9), {}, "belongs to another model"),
            (torch.nn.Sequential(torch.nn.Linear(6, 10)), {}, "belongs to another model"),
        ]:
            with self.assertRaisesRegex(ValueError, rf"\[train\] checkpoint .*a.pt {line}; name another file, or delete this one"):
                sb.train(model, sb.Config({**SHORT, **settings}), checkpoint=file)
        self.assertEqual(file.read_bytes(), before)
        for damaged in (b"", b"no checkpoint", before[:-100]):
            file.write_bytes(damaged)
            with self.assertRaisesRegex(ValueError, r"is not a checkpoint of sb.train, or is damaged"):
                sb.train(Gru(8), sb.Config(SHORT), checkpoint=file)
        torch.save({"format": 1}, file)
        with self.assertRaisesRegex(ValueError, r"is not a checkpoint of sb.train, or is damaged"):
            sb.train(Gru(8), sb.Config(SHORT), checkpoint=file)
        torch.save({"format": 99}, file)
        with self.assertRaisesRegex(ValueError, r"has format 99, expected 1"):
            sb.train(Gru(8), sb.Config(SHORT), checkpoint=file)
        with self.assertRaises(OSError):
            sb.train(Gru(8), sb.Config(SHORT), checkpoint=self.folder)


class WithoutTorchTest(unittest.TestCase):
    def test_what_needs_torch_says_so(self):
        code = "import sys; sys.modules['torch'] = None\nimport selectivbench as sb\nsb.Task(1)\nsb.train"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("ImportError: selectivbench.train requires PyTorch", said.stderr)


if __name__ == "__main__":
    unittest.main()
