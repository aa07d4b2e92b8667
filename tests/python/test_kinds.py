"""Tasks of other kinds than the paper's."""
import os
import pickle
import re
import tempfile
import unittest

import numpy as np

import selectivbench as sb

try:
    import torch
except ImportError:
    torch = None


def kalman(task):
    """Posterior means of a batch, [batch, frames, 1]."""
    decay, noise = task.config["task.decay"], task.config["task.sensor_noise"]

    def predict(batch):
        samples, frames, _ = batch.shape
        out, mean, variance = np.zeros((samples, frames, 1), np.float32), np.zeros(samples), np.ones(samples)
        for t in range(frames):
            if t:
                mean, variance = decay * mean, decay**2 * variance + 1 - decay**2
            shown = batch.frames[:, t, 1] == 1
            gain = np.where(shown, variance / (variance + noise**2), 0)
            mean, variance = mean + gain * (batch.frames[:, t, 0] - mean), variance * (1 - gain)
            out[:, t, 0] = mean
        return out

    return predict


class KindTest(unittest.TestCase):
    def test_copying(self):
        task = sb.Task(kind="copying", symbols=4, length=3)
        batch = task.batch("test", range(20))
        assert (batch.targets[:, :3] == -1).all() and (batch.targets[:, 3:] == batch.symbols[:, :3]).all()
        assert batch.values is None and not task.squared_error

        def recall(batch):
            out = np.zeros((*batch.shape[:2], 4), np.float32)
            n = batch.shape[1] // 2
            for i in range(n):
                out[np.arange(len(batch)), n + i, batch.symbols[:, i]] = 9
            return out

        found = sb.evaluate(recall, task, [2, 7], samples=20, valid_samples=10, grid_samples=10, ceiling_samples=10)
        assert found.test.accuracy == 1 and found.test.elements == 60
        self.assertAlmostEqual(found.test.ceiling.accuracy, 1)
        assert [(point.axis, point.point) for point in found.grid] == [("length", 2), ("length", 7)]
        assert pickle.loads(pickle.dumps(task.at(7))) == task.at(7)

    def test_dyck(self):
        task = sb.Task(kind="dyck", types=3, share=1, children=3, depth=4, length=30, test_length=50)
        batch = task.batch("test", range(20))
        for symbols, targets in zip(batch.symbols, batch.targets):
            stack = []
            for symbol, target in zip(symbols, targets):
                if symbol % 2 == 0:
                    stack.append(symbol // 2)
                else:
                    assert stack.pop() == symbol // 2
                assert len(stack) <= 4 and target == (stack[-1] + 1 if stack else 0)
        self.assertAlmostEqual(sb.ceiling(task.at(7), samples=20).accuracy, 1)
        assert task.at(7).batch("test", [0]).shape[1] == 50 and task.axis == "depth"
        ambiguous = sb.Task(kind="dyck", as_task=2, length=30)
        beliefs = sb.filter(ambiguous, ambiguous.sample("test", 0))
        assert beliefs.probability.min() < 0.9 and ambiguous.noise == 0.2 and task.noise == 0
        frames = ambiguous.sample("test", 0).frames
        assert frames.shape == (330, 4) and 0 < frames[1].max() < 0.2 and frames[0].max() >= 1

    def test_word_problem(self):
        task = sb.Task(kind="word_problem", machine="cycle", length=20, asked_from=15)
        batch = task.batch("test", range(20))
        positions = np.cumsum(np.array([0, 1, -1])[batch.symbols], axis=1) % 5
        assert task.axis == "length" and (batch.targets == positions).all()
        longer = task.at(30).batch("test", range(20))
        assert (longer.targets[:, :14] == -1).all() and (longer.targets[:, 14:20] == positions[:, 14:]).all()
        self.assertAlmostEqual(sb.ceiling(task.at(30), samples=20).accuracy, 1)
        hidden = sb.Task(kind="word_problem", machine="a5", reveal=0.2, unseen=0.1, start="hidden", length=20)
        assert hidden.sample("test", 0).frames.shape == (20, 120)
        assert 0.1 < sb.ceiling(hidden, samples=100).accuracy < 0.9
        with self.assertRaisesRegex(ValueError, "task.machine.*a6"):
            sb.Task(kind="word_problem", machine="a6")

    def test_flip_flop(self):
        task = sb.Task(kind="flip_flop", length=50)
        for at, ignored in ((task, 0.8), (task.at(10), 0.1), (task.at(98), 0.98)):
            batch = at.batch("test", range(100))
            instructions, bits = batch.symbols[:, ::2], batch.symbols[:, 1::2] - 3
            assert abs((instructions[:, 1:-1] == 2).mean() - ignored) < 0.05
            for i in range(100):
                written = None
                for t in range(50):
                    if instructions[i, t] == 0:
                        written = bits[i, t]
                    assert batch.targets[i, 2 * t] == (written if instructions[i, t] == 1 else -1)
        self.assertAlmostEqual(sb.ceiling(task, samples=20).accuracy, 1)
    def test_recall(self):
        task = sb.Task(kind="recall", keys=6, values=5, pairs=3, length=20)
        batch = task.batch("test", range(20))
        for symbols, targets in zip(batch.symbols, batch.targets):
            value_of = dict(zip(symbols[0:6:2], symbols[1:6:2]))
            asked = targets >= 0
            assert asked.sum() == 3 and not asked[:6].any()
            assert [value_of[key] for key in symbols[asked]] == list(targets[asked])
        self.assertAlmostEqual(sb.ceiling(task.at(40), samples=20).accuracy, 1)
        assert task.axis == "length" and task.channels == 11 and task.answers == 5
        unsure = sb.Task(kind="recall", wrong=0.3)
        self.assertAlmostEqual(sb.ceiling(unsure, samples=20).accuracy, 0.7)
        copied = sb.Task(kind="recall", keys=0, values=4, pairs=3, layout="scattered", length=12)
        sample = copied.batch("test", [0])
        shown = sample.symbols[0, :9]
        assert list(shown[shown >= 0]) == list(sample.targets[0, 9:])

    def test_counters(self):
        task = sb.Task(kind="counters", count=3, length=30)
        batch = task.batch("test", range(20))
        assert (batch.targets[:, :-1] == batch.symbols[:, 1:]).all() and (batch.targets[:, -1] == -1).all()
        for symbols in batch.symbols:
            first = "".join("abc"[s] for s in symbols)
            assert re.match("abca|aabbcca|aaabbbccca", first)
        assert task.axis == "count" and task.at(5).batch("test", [0]).shape[1] == 30

    def test_pcfg(self):
        task = sb.Task(kind="pcfg", length=60)
        batch = task.batch("test", range(20))
        assert task.axis == "length" and (task.channels, task.answers) == (9, 25)
        assert (batch.symbols == np.where(batch.targets == 0, 0, 1 + (batch.targets - 1) // 3)).all()
        best = sb.ceiling(task, samples=100)
        assert 0.5 < best.accuracy < 0.95 and 1 < best.entropy_rate < 2
        clear = sb.Task(kind="pcfg", share=1, length=60)
        self.assertAlmostEqual(sb.ceiling(clear.at(90), samples=20).accuracy, 1)
        wrong = sb.Task(kind="pcfg", as_task=3, length=200).batch("test", range(20))
        assert wrong.symbols.shape == (20, 200) and 0.02 < (wrong.targets[:, 51:] < 0).mean() < 0.12

    def test_keys_of_the_test_axis_tell_tasks_apart(self):
        for kind, key in (("word_problem", "asked_from"), ("counters", "test_length"), ("dyck", "test_length")):
            assert sb.Task(kind=kind, **{key: 5}) == sb.Task(kind=kind, **{key: 5}) != sb.Task(kind=kind, **{key: 6})

    def test_a_ceiling_without_answers_is_one_clear_line(self):
        task = sb.Task(kind="word_problem", reveal=0.9, length=1)
        unasked = next(i for i in range(1000) if task.batch("test", [i]).targets[0, 0] < 0)
        with self.assertRaisesRegex(ValueError, "no element has an answer"):
            sb.ceiling(task, samples=1, start=unasked)

    def test_tracking_is_scored_by_squared_error(self):
        task = sb.Task(kind="tracking", missing=50, length=30)
        batch = task.batch("test", [0, 5])
        assert batch.frames.shape == (2, 30, 2) and batch.values.shape == (2, 30, 1)
        found = sb.evaluate(kalman(task), task, [0, 90], samples=300, ceiling_samples=300)
        slack = 4 * np.hypot(found.test.stderr, found.test.ceiling.stderr)
        self.assertAlmostEqual(found.test.mse, found.test.ceiling.mse, delta=slack)
        assert found.grid[0].mse < found.test.mse < found.grid[1].mse
        assert np.isnan(found.test.accuracy) and found.test.fraction is None
        assert str(found.test).startswith("squared error")
        direct = sb.ceiling(task, samples=300)
        self.assertEqual(direct.mse, found.test.ceiling.mse)
        self.assertAlmostEqual(direct.counted, found.test.mse, places=5)

    def test_samples_of_tracking_have_values_and_no_answers(self):
        task = sb.Task(kind="tracking", length=30)
        sample, batch = task.sample("test", 5), task.batch("test", [0, 5])
        assert np.array_equal(sample.values, batch.values[1]) and sample.values.std() > 0.1
        assert (sample.targets == -1).all() and (sample.states == -1).all() and (batch.states == -1).all()
        assert (batch.targets == 0).all(), "every frame is asked"
        found = sample.to_dict()
        assert set(found) == {"index", "frames", "values"} and np.allclose(found["values"], sample.values)
        assert sb.Task(kind="copying").sample("test", 0).values is None

    def test_records_and_tables(self):
        with tempfile.TemporaryDirectory() as runs:
            corpus = os.path.join(runs, "corpus.txt")
            with open(corpus, "w") as file:
                file.write("to be or not to be, that is the question. " * 40)
            kinds = ("copying", "counters", "dyck", "flip_flop", "pcfg", "recall", "signals", "text", "tracking", "word_problem")
            for kind in kinds:
                keys = {"file": corpus, "span_probability": 0.5, "span_min": 1} if kind == "text" else {}
                task = sb.Task(kind=kind, length=8 if kind == "text" else 5, **keys)
                found = sb.evaluate(
                    lambda b: np.zeros((*b.shape[:2], task.answers), np.float32), task, [4], samples=9, valid_samples=9, grid_samples=9, ceiling_samples=9
                )
                sb.record(runs, name="zero", params=0, result=found, settings={"train.updates": 1, "train.warmup": 0})
            loaded = sb.load_runs(runs)
            assert {run.kind for run in loaded} == set(kinds)
            text = sb.table(runs)
            assert "task copying" in text and "squared error" in text

    def test_frames_and_figures_of_squared_errors(self):
        task = sb.Task(kind="tracking", length=6)
        found = sb.evaluate(kalman(task), task, [0, 90], samples=9, valid_samples=9, grid_samples=9, ceiling_samples=9)
        with tempfile.TemporaryDirectory() as runs:
            sb.record(runs, name="kalman", params=0, result=found, settings={"train.updates": 1, "train.warmup": 0})
            run = sb.load_runs(runs)[0]
            row = run.row()
            assert row["mse"] == found.test.mse and row["valid_mse"] == found.valid.mse and np.isnan(row["accuracy"])
            assert row["bound_mse"] == found.test.ceiling.mse
            spec = sb.figures.by_gap({"kalman": run})
        assert spec["encoding"]["x"]["field"] == "missing" and spec["encoding"]["y"]["field"] == "mse"
        assert "domain" not in spec["encoding"]["y"]["scale"] and spec["title"] == "Squared error by missing"
        points = [(row["name"], row["missing"], row["mse"]) for row in spec["data"]["values"]]
        assert ("kalman", 90, found.grid[1].mse) in points and ("ceiling", 90, found.grid[1].ceiling.mse) in points
        with self.assertRaisesRegex(ValueError, "expected accuracies, got squared errors"):
            sb.figures.by_position({"kalman": found})

    def test_figures_over_other_axes(self):
        def evaluated(task, points):
            return sb.evaluate(
                lambda b: np.zeros((*b.shape[:2], task.answers), np.float32), task, points, samples=9, valid_samples=0, grid_samples=9, ceiling_samples=9
            )

        copying = evaluated(sb.Task(kind="copying", length=4), [2, 7])
        spec = sb.figures.by_gap({"zero": copying})
        assert spec["encoding"]["x"]["field"] == "length" and spec["encoding"]["x"]["title"] == "length"
        assert sorted({row["length"] for row in spec["data"]["values"]}) == [2, 7]
        tracking = evaluated(sb.Task(kind="tracking", length=4), [5])
        with self.assertRaisesRegex(ValueError, "expected one test axis, got length and missing"):
            sb.figures.by_gap({"a": copying, "b": tracking})

    def test_causality_is_tested_on_dense_frames(self):
        task = sb.Task(kind="tracking", length=12)

        def looks_ahead(batch):
            return np.repeat(batch.frames[:, :, :1].mean(axis=1, keepdims=True), batch.shape[1], axis=1)

        for dense in (True, False):
            with self.assertRaisesRegex(ValueError, "not causal"):
                sb.evaluate(looks_ahead, task, samples=9, dense=dense)

    def test_memory_counts_dense_frames_and_values(self):
        def amount(task, dense):
            with self.assertRaisesRegex(ValueError, "take about") as refused:
                iter(task.batches("train", sb.batches.MOST_SAMPLES, dense=dense, ahead=1, pad_to=1_000_000))
            number, unit = re.search(r"take about ([\d.]+) (\w+),", str(refused.exception)).groups()
            return float(number) * {"GB": 1e9, "TB": 1e12, "PB": 1e15}[unit]

        plain = amount(sb.Task(kind="copying", symbols=2), False)  # 20 bytes a frame
        tracking = sb.Task(kind="tracking", length=50)
        self.assertAlmostEqual(amount(tracking, False) / plain, (20 + 8 + 4) / 20, places=1)
        self.assertAlmostEqual(amount(tracking, True) / plain, (20 + 8 + 8 + 4) / 20, places=1)

    def test_text_is_known_by_its_content(self):
        with tempfile.TemporaryDirectory() as folder:
            one, two = os.path.join(folder, "one.txt"), os.path.join(folder, "two.txt")
            for path in (one, two):
                with open(path, "w") as file:
                    file.write("to be or not to be, that is the question. " * 100)
            task = sb.Task(kind="text", file=one, length=20)
            assert task == sb.Task(kind="text", file=two, length=20), "the path does not matter"
            assert task.config._native.canonical == sb.Task(kind="text", file=two, length=20).config._native.canonical
            batch = task.batch("train", range(3))
            assert batch.frames.shape == (3, 20, 256) and batch.targets.max() < 256
            assert np.array_equal(pickle.loads(pickle.dumps(task)).batch("train", range(3)).symbols, batch.symbols)
            found = sb.baselines(task, samples=20, train_samples=200)
            assert np.isnan(found.table_learner) and found.n_gram[found.n - 1] > found.majority > found.chance
            with self.assertRaisesRegex(ValueError, "no ceiling"):
                sb.ceiling(task, samples=3)
            with open(two, "a") as file:
                file.write("!")
            assert task != sb.Task(kind="text", file=two, length=20)
            with self.assertRaisesRegex(ValueError, r"\[task.file\] .*missing.txt"):
                sb.Task(kind="text", file=os.path.join(folder, "missing.txt"))
        with self.assertRaisesRegex(ValueError, r"\[task.file\] expected the path of a file"):
            sb.Task(kind="text")

    def test_the_filter_of_signals_follows_dense_frames(self):
        task = sb.Task(kind="signals", length=30, sensor_noise=1.0)
        beliefs = sb.filter(task, 4, posterior=True)
        assert beliefs.posterior.shape == (30, task.answers)
        assert np.allclose(beliefs.posterior.sum(axis=1), 1)
        assert np.array_equal(beliefs.states, task.sample("test", 4).states)
        assert 0.3 < sb.ceiling(task, samples=50).accuracy < 1

    def test_baselines_of_other_kinds_are_one_clear_line(self):
        with self.assertRaises(ValueError) as refused:
            sb.baselines(sb.Task(kind="copying"))
        self.assertEqual(str(refused.exception), "[baselines] n-grams cannot answer tasks of kind copying")

    def test_keys_of_other_kinds_are_refused(self):
        with self.assertRaisesRegex(ValueError, "has no effect with task.kind = copying"):
            sb.Task(kind="copying", gap_min=3)
        with self.assertRaisesRegex(ValueError, "no gaps"):
            sb.Task(kind="copying").at_gap(3)
        with self.assertRaisesRegex(ValueError, "no grammar"):
            sb.Task(kind="tracking").grammar
        with self.assertRaisesRegex(ValueError, "number is missing"):
            sb.Task()
        with self.assertRaisesRegex(ValueError, "expected 0 to 4, got 'dyck'; other tasks are kind='dyck'"):
            sb.Task("dyck")

    @unittest.skipIf(torch is None, "no torch")
    def test_training_learns(self):
        config = sb.Config(
            {
                "task.kind": "tracking", "task.length": 10, "train.updates": 30, "train.warmup": 3, "train.batch": 8, "train.lr": 1e-2,
                "eval.every": 10, "eval.valid_samples": 20, "eval.test_samples": 20, "eval.ceiling_samples": 20, "eval.missing": [60],
            }
        )  # fmt: skip

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.gru, self.out = torch.nn.GRU(2, 8, batch_first=True), torch.nn.Linear(8, 1)

            def forward(self, frames):
                return self.out(self.gru(frames)[0])

        torch.manual_seed(1)
        trained = sb.train(Model(), config)
        losses = [row["loss"] for row in trained.history if "loss" in row]
        assert losses[-1] < losses[0] and trained.result.grid[0].axis == "missing"


if __name__ == "__main__":
    unittest.main()
