import json
import pickle
import unittest

import numpy as np

import selectivbench as sb
from common import GRAMMAR_OPTIONS, TemporaryFolder, needs_program, program, small

# Task, its keys, and the same as options.
TASKS = (
    (0, {}, []),
    (1, {}, []),
    (2, {"gap_max": 5}, ["--gap-max", 5]),
    (2, {"gap_law": "lognormal", "gap_max": 9, "gap_mu": 1.0},
     ["--gap-law", "lognormal", "--gap-max", 9, "--gap-mu", 1]),
    (3, {"gap_start": 5}, ["--gap-start", 5]),
    (4, {}, []),
)


class TaskTest(TemporaryFolder):
    def test_messages_are_those_of_configs(self):
        for number, arguments, line in [
            (2, dict(gap_min=12), "[task.gap_min] gap_min (12) > gap_max (10), gap_min=12"),
            (5, {}, "[task.number] out of range, expected 0..4, got 5, number=5"),
            (1, dict(noise=-1), "[task.noise] out of range, expected [0, 100], got -1, noise=-1"),
            (1, dict(stream="dirct"),
             "[task.stream] no such choice, expected reference or direct, got 'dirct', did you mean direct?, stream='dirct'"),
            (3, dict(length=10), "[task.gap_start] expected at most length (10), got 50, length=10"),
        ]:
            with self.assertRaises(ValueError) as raised:
                sb.Task(number, grammar=small(), **arguments)
            self.assertEqual(str(raised.exception), line)

    def test_all_faults_come_at_once_one_line_each(self):
        with self.assertRaises(ValueError) as raised:
            sb.Task(1, grammar=small(), noise=-1, length=0)
        self.assertEqual(len(str(raised.exception).splitlines()), 2)

    def test_a_file_and_line_are_named(self):
        file = self.folder / "my.toml"
        file.write_text("[task]\nnumber = 2\ngap_min = 12\n")
        with self.assertRaises(ValueError) as raised:
            sb.Task.from_toml(file)
        self.assertEqual(str(raised.exception), f"[task.gap_min] gap_min (12) > gap_max (10), {file}:3:11")

    def test_numbers_of_numpy_are_numbers(self):
        self.assertEqual(sb.Task(2, grammar=small(), gap_max=np.int64(5), noise=np.float32(0.5)).noise, 0.5)

    def test_a_grammar_is_asked_for(self):
        with self.assertRaisesRegex(ValueError, "number is missing"):
            sb.Task(None)
        with self.assertRaisesRegex(ValueError, r"\[task\] config, expected a selectivbench.Config, got NoneType"):
            sb.Task.from_config(None)
        with self.assertRaisesRegex(ValueError, r"\[task\] grammar, expected a selectivbench.Grammar, got int"):
            sb.Task(1, grammar=3)

    @needs_program
    def test_samples_are_the_programs_for_all_tasks_splits_and_streams(self):
        for number, keys, options in TASKS:
            for split in sb._checks.SPLITS:
                for stream in ("reference", "direct"):
                    task = sb.Task(number, grammar=small(), length=60, stream=stream, **keys)
                    file = self.folder / "samples.npz"
                    program("generate", *GRAMMAR_OPTIONS, "--length", 60, "--stream", stream, "--task", number, "--split", split,
                            "--start", 3, "--count", 4, *options, "--format", "npz", "--dense",
                            "--out", file)
                    self.same(task, split, np.load(file))

    def same(self, task, split, data):
        pad_to = data["frames"].shape[1]
        batch = task.batch(split, data["index"], pad_to=pad_to)
        for ours, theirs in [(batch.frames, "frames"), (batch.targets, "targets"), (batch.starts, "starts"),
                             (batch.states, "states")]:
            self.assertEqual(ours.astype(data[theirs].dtype).tobytes(), data[theirs].tobytes(), (task, split, theirs))
        wrong = data["wrong"] if "wrong" in data else np.zeros(0, np.int16)
        offsets = data["wrong_offsets"] if "wrong" in data else np.zeros(len(batch) + 1, np.int64)
        for i, index in enumerate(data["index"]):
            sample = task.sample(split, int(index))
            np.testing.assert_array_equal(sample.classes, data["classes"][i])
            np.testing.assert_array_equal(sample.gaps, data["gaps"][i] if "gaps" in data else 0)
            np.testing.assert_array_equal(sample.wrong, wrong[offsets[i]:offsets[i + 1]])

    @needs_program
    def test_a_sample_is_the_programs_line(self):
        for number in (0, 2, 3):
            file = self.folder / f"{number}.jsonl"
            program("generate", *GRAMMAR_OPTIONS, "--length", 60, "--task", number, "--split", "test", "--count", 3, "--out", file)
            task = sb.Task(number, grammar=small(), length=60)
            for line in file.read_text().splitlines():
                self.assertEqual(task.sample("test", json.loads(line)["index"]).to_dict(), json.loads(line))

    def test_targets_of_predict_are_the_next_symbols(self):
        task = sb.Task(1, grammar=small(), length=10, objective="predict")
        sample = task.sample("valid", 2)
        self.assertEqual(task.answers, 6)
        np.testing.assert_array_equal(sample.targets[::2], [*sample.classes[1:], -1])

    def test_at_gap_changes_test_gaps_alone(self):
        task = sb.Task(4, grammar=small(), length=10)
        longer = task.at_gap(20)
        self.assertEqual(set(longer.sample("test", 0).gaps), {20})
        np.testing.assert_array_equal(longer.sample("train", 0).frames, task.sample("train", 0).frames)
        np.testing.assert_array_equal(longer.sample("test", 5).states, task.sample("test", 5).states)
        self.assertEqual(pickle.loads(pickle.dumps(longer)).gap, 20)
        self.assertEqual(set(task.at_gap(0).sample("test", 0).gaps), {0})
        self.assertNotEqual(task, longer)

    def test_a_config_resolves_as_the_programs(self):
        config = sb.Config({"task.number": 2, "grammar.vocab": 6, "grammar.ambiguities": 2, "grammar.depth": 3})
        self.assertEqual(config.task, sb.Task(2, grammar=small()))
        self.assertEqual(pickle.loads(pickle.dumps(config)), config)
        self.assertEqual(config.with_settings({"train.lr": 1e-2})["train.lr"], 0.01)
        for key in ("train.rl", "train", 3):
            with self.assertRaisesRegex(KeyError, "expected section.key"):
                config[key]
        for settings, line in [([1], "expected a dict, got list"), ({1: 2}, "expected str keys, got 1"),
                               ({"train.lr": None}, "got NoneType, train.lr=None")]:
            with self.assertRaisesRegex(ValueError, line):
                sb.Config(settings)
        with self.assertRaises(ValueError) as raised:  # what is long is not said once a fault
            sb.Config({"eval.gaps": [-1] * 1000})
        self.assertLess(len(str(raised.exception)), 300_000)
        again = self.folder / "again.toml"
        again.write_text(config.toml)
        self.assertEqual(sb.Config.from_toml(again), config)


if __name__ == "__main__":
    unittest.main()
