import json
import shutil
import unittest

import numpy as np

import selectivbench as sb
from common import TemporaryFolder, has, needs_program, needs_torch, program, small, trains

SETTINGS = {"train.updates": 40, "train.batch": 8, "train.lr": 1e-2, "model.width": 16, "model.heads": 2}


def task(**keys):
    return sb.Task(1, grammar=small(), length=20, **keys)


def guess(batch):
    """The first state of the symbol shown."""
    return np.eye(batch.task.answers)[np.maximum(batch.symbols, 0)]


def evaluated(of, predict=guess, gaps=()):
    return sb.evaluate(predict, of, gaps, samples=30, valid_samples=20, grid_samples=10, ceiling_samples=30)


class RecordTest(TemporaryFolder):
    def test_a_recorded_run_reads_back(self):
        found = evaluated(task(), gaps=[3, 5])
        weights = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4)}
        folder = sb.record(self.folder, name="guess", params=12, result=found, settings=SETTINGS, weights=weights, state_size=7)
        (run,) = sb.load_runs(self.folder)
        self.assertEqual(run.folder, folder)
        self.assertEqual((run.model, run.external, run.params, run.width, run.lr), ("guess (external)", True, 12, 16, 0.01))
        self.assertEqual(run.test.to_dict(), found.test.to_dict())
        self.assertEqual(run.valid.accuracy, found.valid.accuracy)
        self.assertEqual([point.gap for point in run.grid], [3, 5])
        self.assertEqual(run.config["model.switch heads"], '"2"')
        self.assertEqual(run.data["state_size"], 7)
        again = sb.load_weights(run)
        np.testing.assert_array_equal(again["a"], weights["a"])
        np.testing.assert_array_equal(again["b"], weights["b"])
        self.assertEqual(sb._native.check(folder), "intact")

    def test_the_id_is_of_name_parameters_task_and_settings(self):
        found = evaluated(task())
        other = evaluated(task(noise=0.1))

        def folder(**keys):
            arguments = {"name": "a", "params": 1, "result": found, "settings": SETTINGS, **keys}
            return sb.record(self.folder, **arguments)

        folders = [folder(), folder(name="b"), folder(params=2), folder(result=other), folder(settings={**SETTINGS, "train.seed": 2}),
                   folder(settings={**SETTINGS, "model.heads": 4})]
        self.assertEqual(len(set(folders)), len(folders))
        self.assertEqual(folder(), folders[0])

    def test_other_numbers_of_the_same_run_are_not_written_over_by_chance(self):
        folder = sb.record(self.folder, name="a", params=1, result=evaluated(task()), settings=SETTINGS)
        worse = evaluated(task(), lambda batch: np.zeros((*batch.shape[:2], 10)))
        with self.assertRaisesRegex(ValueError, r"\[record\] .*has a result with other numbers, expected overwrite=True"):
            sb.record(self.folder, name="a", params=1, result=worse, settings=SETTINGS)
        self.assertEqual(sb.record(self.folder, name="a", params=1, result=worse, settings=SETTINGS, overwrite=True), folder)
        self.assertEqual(sb.load_runs(self.folder)[0].test.accuracy, worse.test.accuracy)

    def test_what_was_measured_is_not_declared_otherwise(self):
        found = evaluated(task(), gaps=[3])
        for key in ("task.noise", "grammar.seed", "eval.test_samples", "quirks.select_on_test"):
            with self.assertRaisesRegex(ValueError, rf"\[record\] settings, expected keys of model, train or run, got '{key}'"):
                sb.record(self.folder, name="a", params=1, result=found, settings={key: 1})
        for result, line in [
            (sb.Evaluation(task(), found.valid), "test, expected a measurement on test with the task's own gaps, got one on valid"),
            (sb.Evaluation(task(), found.grid[0]), "test, expected .* got one on test with gaps of 3"),
            (sb.Evaluation(task(), found.test, found.test), "valid, expected a measurement on valid"),
            (sb.Evaluation(task(), found.test, None, [found.test]), "grid, expected a measurement on test with a gap length"),
            (sb.Evaluation(task(), None), "test, expected a selectivbench.Measurement, got NoneType"),
        ]:
            with self.assertRaisesRegex(ValueError, r"\[record\] " + line):
                sb.record(self.folder, name="a", params=1, result=result)
        self.assertEqual(sb.load_runs(self.folder), [])

    def test_a_run_is_not_recorded_without_settings(self):
        found = evaluated(task())
        for keys in ({}, {"settings": None}, {"settings": {}}):
            with self.assertRaisesRegex(ValueError, r'\[record\] settings= is missing, .* declare how the model was trained, such as \{"train'):
                sb.record(self.folder, name="a", params=1, result=found, **keys)
        self.assertEqual(sb.load_runs(self.folder), [])

    def test_weights_that_were_recorded_are_not_lost_by_recording_again(self):
        found = evaluated(task())

        def record(weights=None, **keys):
            return sb.record(self.folder, name="a", params=1, result=found, settings=SETTINGS, weights=weights, **keys)

        folder = record()
        self.assertEqual(record({"a": np.ones(3)}), folder)  # brought later
        for same in (None, {"a": np.ones(3)}):
            self.assertEqual(record(same), folder)
            np.testing.assert_array_equal(sb.load_weights(folder)["a"], np.ones(3))
        for other in ({"a": np.zeros(3)}, {"b": np.ones(3)}, {"a": np.ones(3, np.float32)}, {"a": np.ones((1, 3))}):
            with self.assertRaisesRegex(ValueError, "has a result with other weights, expected overwrite=True"):
                record(other)
        record({"a": np.zeros(3)}, overwrite=True)
        np.testing.assert_array_equal(sb.load_weights(folder)["a"], np.zeros(3))

    def test_seeds_are_averaged_in_one_row_of_the_table(self):
        for seed in (1, 2):
            of = sb.Task(1, grammar=small(seed=seed), length=20)
            sb.record(self.folder, name="guess", params=12, result=evaluated(of), settings={**SETTINGS, "train.seed": seed})
        cells = [cell for cell in json.loads(sb.table(self.folder, "json"))["cells"]]
        self.assertEqual(len(cells), 1)
        self.assertIn("guess (external)", sb.table(self.folder))
        self.assertEqual(sb.table(self.folder, "csv", per_run=True).count("guess (external)"), 2)

    @needs_program
    def test_the_program_shows_and_checks_it(self):
        folder = sb.record(self.folder, name="guess", params=12, result=evaluated(task()), settings=SETTINGS)
        self.assertEqual(program("table", self.folder).stdout, sb.table(self.folder))
        twice = sb.table([self.folder, str(self.folder)])
        self.assertEqual(twice, sb.table(self.folder), "a folder that is named twice is read once")
        said = program("check", self.folder).stdout
        self.assertIn("intact", said)
        with open(folder + "/result.json", "a") as file:
            file.write(" ")
        self.assertEqual(program("check", self.folder, check=False).returncode, 1)
        self.assertEqual(sb.load_runs(self.folder), [])
        self.assertTrue(any("damaged" in note for note in sb.load_runs(self.folder).notes))

    def test_bad_arguments(self):
        found = evaluated(task())
        for keys, line in [
            (dict(name=""), r"\[record\] name, expected 1\.\.200 characters on one line, got ''"),
            (dict(params=-1), r"\[record\] params, expected 0\.\."),
            (dict(settings={"train.lr": -1}), r"\[train.lr\] out of range, expected \(0, 10\], got -1, train.lr=-1"),
            (dict(settings={"train.rl": 1}), r"\[train\] unknown key 'rl'"),
            (dict(settings={"lr": 1}), r"\[config\] expected section.key, got 'lr'"),
            (dict(weights={"a": "x"}), r"\[record\] weight a, expected numbers"),
            (dict(weights=3), r"\[record\] weights, expected a dict, got int"),
            (dict(result=None), r"\[record\] result, expected a selectivbench.Evaluation, got NoneType"),
            (dict(result=found.test), r"\[record\] result, expected a selectivbench.Evaluation, got Measurement"),
            (dict(settings=[1]), r"\[record\] settings, expected a dict, got list"),
            (dict(settings={"train.lr": None}), r"wrong kind of value.*got NoneType, train.lr=None"),
            (dict(settings={"model.name": "b"}), r"\[record\] settings, expected name= instead of 'model.name'"),
            (dict(settings={"model.parameters": 2}), r"\[record\] settings, expected params= instead of 'model.parameters'"),
        ]:
            with self.assertRaisesRegex(ValueError, line):
                sb.record(self.folder, **{"name": "a", "params": 1, "result": found, "settings": SETTINGS, **keys})
        with self.assertRaisesRegex(ValueError, "expected a folder of runs or an archive"):
            sb.load_runs(self.folder / "missing")
        with self.assertRaisesRegex(ValueError, r"\[runs\] expected folders or archives, got none"):
            sb.load_runs()
        with self.assertRaisesRegex(ValueError, r"\[table\] expected folders or archives, got none"):
            sb.table([])
        for path in (None, "", "a\0b", "a\udc80", [self.folder]):
            with self.assertRaisesRegex(ValueError, r"\[record\] expected a path"):
                sb.record(path, name="a", params=1, result=found, settings=SETTINGS)
            with self.assertRaisesRegex(ValueError, r"\[runs\] expected a path"):
                sb.load_runs(path)
        for arguments, line in [((None, task()), "predict, expected a function"), ((guess, None), "task, expected a selectivbench.Task"),
                                ((guess, task(), 5), "gaps, expected integers, got 5")]:
            with self.assertRaisesRegex(ValueError, r"\[evaluate\] " + line):
                sb.evaluate(*arguments)
        with self.assertRaisesRegex(ValueError, r"\[evaluate\] kind, expected logits or probabilities, got 'logit'"):
            sb.evaluate(guess, task(), kind="logit")
        with self.assertRaisesRegex(ValueError, r"\[evaluate\] gaps, expected different lengths"):
            sb.evaluate(guess, task(), [3, 3])
        (self.folder / "file").write_text("")
        with self.assertRaises(OSError):
            sb.record(self.folder / "file", name="a", params=1, result=found, settings=SETTINGS)

    def test_stretches_that_are_yielded_score_as_the_whole(self):
        def stretches(batch):
            values = guess(batch)
            for first in range(0, batch.shape[1], 7):
                yield values[:, first : first + 7]

        self.assertEqual(evaluated(task(), stretches).test.text, evaluated(task()).test.text)
        for short, got in ((lambda batch: iter(()), 0), (lambda batch: iter([guess(batch)[:, :7]]), 7)):
            with self.assertRaisesRegex(ValueError, rf"\[evaluate\] predict, expected outputs for 40 frames of a batch, got {got}"):
                evaluated(task(), short)

    def test_predictors_that_look_ahead_are_refused(self):
        def next_frame(batch):
            return np.eye(batch.task.answers)[np.maximum(np.roll(batch.symbols, -1, axis=1), 0)]

        def mean_of_all(batch):
            return guess(batch) + guess(batch).mean(axis=1, keepdims=True)

        def with_one_ruled_out(batch):
            values = mean_of_all(batch).astype(np.float64)
            values[..., -1] = -np.inf
            return values

        def rules_out_what_comes(batch):
            values = np.zeros((*batch.shape[:2], batch.task.answers))
            values[np.roll(batch.symbols, -1, axis=1) % 2 == 0, -1] = -np.inf
            return values

        for predict, keys in ((next_frame, {}), (mean_of_all, {}), (next_frame, {"dense": False}), (with_one_ruled_out, {}),
                              (rules_out_what_comes, {})):
            with self.assertRaisesRegex(ValueError, r"\[evaluate\] predict is not causal: its output at frame \d+ changes when only"):
                sb.evaluate(predict, task(), samples=10, valid_samples=0, ceiling_samples=0, **keys)
        with self.assertRaisesRegex(ValueError, r"\[evaluate\] outputs, expected shape \[4, 40, 10\], got \[4, 40, 9\]"):
            evaluated(task(), lambda batch: guess(batch)[:, :, :9])

    def test_causal_predictors_pass_whatever_they_compute(self):
        def through_fft(batch):  # a causal convolution whose rounding carries later frames into earlier outputs
            kernel = np.fft.rfft(0.9 ** np.arange(batch.shape[1]), 2 * batch.shape[1])[None, :, None]
            spectrum = np.fft.rfft(guess(batch), 2 * batch.shape[1], axis=1)
            return np.fft.irfft(spectrum * kernel, axis=1)[:, : batch.shape[1]].astype(np.float32)

        random = np.random.default_rng(1)

        def noisy(batch):  # as sums in any order are
            return guess(batch) + 1e-3 * random.random((*batch.shape[:2], 10))

        def with_one_ruled_out(batch):
            values = guess(batch).astype(np.float64)
            values[..., -1] = -np.inf
            return values

        for predict in (guess, through_fft, noisy, with_one_ruled_out, lambda batch: random.random((*batch.shape[:2], 10)),
                        lambda batch: np.zeros((*batch.shape[:2], 10))):
            self.assertEqual(evaluated(task(), predict).test.samples, 30)

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_a_frame_has_a_line_a_run(self):
        sb.record(self.folder, name="guess", params=12, result=evaluated(task()), settings=SETTINGS)
        frame = sb.load_runs(self.folder).to_frame()
        self.assertEqual(frame.loc[0, "model"], "guess (external)")
        self.assertAlmostEqual(frame.loc[0, "fraction"], frame.loc[0, "accuracy"] / frame.loc[0, "ceiling"])

    def test_figures_are_vega_lite(self):
        found = evaluated(task(), gaps=[1, 4])
        for make in (sb.figures.by_position, sb.figures.by_gap_frame, sb.figures.by_since_certain, sb.figures.by_entropy,
                     sb.figures.by_gap):
            spec = make({"guess": found})
            self.assertTrue(spec["data"]["values"])
            json.dumps(spec)
            fields = {axis["field"] for axis in spec["encoding"].values()}
            self.assertTrue(all(fields <= row.keys() for row in spec["data"]["values"]))
        with self.assertRaisesRegex(ValueError, r"\[figures\] guess, expected a run or an evaluation with points of a test axis"):
            sb.figures.by_gap({"guess": evaluated(task())})
        with self.assertRaisesRegex(ValueError, r"\[figures\] measured, expected a dict, got list"):
            sb.figures.by_position([found])
        rows = sb.figures.by_gap({"a": found, "b": found})["data"]["values"]
        self.assertEqual([row["name"] for row in rows].count("ceiling"), 2)  # once a gap

    @unittest.skipUnless(has("altair"), "altair is not installed")
    def test_altair_takes_the_figures(self):
        import altair

        found = evaluated(task(), gaps=[1, 4])
        for make in (sb.figures.by_position, sb.figures.by_gap_frame, sb.figures.by_since_certain, sb.figures.by_entropy,
                     sb.figures.by_gap):
            spec = make({"guess": found})
            drawn = altair.Chart.from_dict(spec).to_dict()  # which checks it against Vega-Lite's schema
            self.assertEqual(drawn["encoding"]["x"]["field"], spec["encoding"]["x"]["field"])


CONFIG = """
[grammar]
vocab = 6
ambiguities = 2
depth = 3
[task]
number = 2
length = 20
gap_max = 3
[model]
name = "gru"
width = 16
layers = 2
[train]
updates = 30
batch = 8
lr = 1e-2
precision = "fp64"
device = "cpu"
[eval]
every = 0
valid_samples = 20
test_samples = 40
gaps = [1, 6]
grid_samples = 20
ceiling_samples = 40
"""


@unittest.skipUnless(trains(), "the program was built without torch")
class ProgramsRunTest(TemporaryFolder):
    """A run of the program, read and scored again."""

    def setUp(self):
        super().setUp()
        self.config = self.folder / "gru.toml"
        self.config.write_text(CONFIG)
        program("train", self.config, "--out", self.folder / "runs")
        (self.run_,) = sb.load_runs(self.folder / "runs")

    def test_it_is_read_with_its_weights(self):
        self.assertEqual((self.run_.model, self.run_.external, self.run_.status), ("gru", False, "done"))
        weights = sb.load_weights(self.run_)
        self.assertEqual(sum(array.size for array in weights.values()), self.run_.params)
        self.assertTrue(all(array.dtype == np.float64 for array in weights.values()))
        shutil.copy(self.config, self.run_.folder + "/final.safetensors")
        with self.assertRaisesRegex(ValueError, "SHA-256 differs from that in result.json"):
            sb.load_weights(self.run_)

    def test_its_config_gives_its_id_and_task(self):
        config = sb.Config.from_toml(self.run_.folder + "/config.toml")
        self.assertEqual(config.run_id, self.run_.run_id)
        self.assertEqual(config.task, sb.Task.from_toml(self.config))

    def test_ceiling_and_facts_are_those_of_its_result(self):
        of = sb.Task.from_toml(self.config)
        found = sb.ceiling(of, 40)
        self.assertEqual(found.accuracy, self.run_.test.ceiling.accuracy)
        self.assertEqual(found.upper_bound, self.run_.test.ceiling.upper_bound)
        self.assertEqual(of.grammar.entropy, self.run_.data["topological_entropy"])
        self.assertEqual(of.states, self.run_.data["states"])

    @needs_torch
    def test_its_network_in_torch_scores_the_same(self):
        import torch

        weights = {name: torch.from_numpy(array) for name, array in sb.load_weights(self.run_).items()}
        of = sb.Task.from_toml(self.config)

        def predict(batch):
            h = torch.nn.functional.linear(torch.from_numpy(batch.frames).double(), weights["encoder.weight"], weights["encoder.bias"])
            for layer in range(2):
                prefix = f"layers.{layer}."
                names = [name for name in weights if name.startswith(prefix)]
                gru = torch.nn.GRU(16, 16, batch_first=True).double()
                gru.load_state_dict({name.rsplit(".", 1)[1]: weights[name] for name in names})
                h = torch.nn.functional.layer_norm(gru(h)[0] + h, (16,), weights[f"norms.{layer}.weight"], weights[f"norms.{layer}.bias"])
            return torch.nn.functional.linear(h, weights["decoder.weight"], weights["decoder.bias"]).detach()

        found = sb.evaluate(predict, of, [1, 6], samples=40, valid_samples=20, grid_samples=20, ceiling_samples=40)
        theirs = self.run_.test.to_dict()
        ours = found.test.to_dict()
        self.assertAlmostEqual(ours.pop("loss"), theirs.pop("loss"), 6)
        self.assertEqual(ours, theirs)
        self.assertEqual(found.valid.accuracy, self.run_.valid.accuracy)
        for mine, its in zip(found.grid, self.run_.grid):
            self.assertEqual((mine.gap, mine.accuracy, mine.ceiling), (its.gap, its.accuracy, its.ceiling))


if __name__ == "__main__":
    unittest.main()
