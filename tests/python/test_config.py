import pickle
import unittest

import numpy as np

import selectivbench as sb
from common import SOURCE, TemporaryFolder, small


class ShippedTest(TemporaryFolder):
    def test_configs_are_found_by_name_and_by_path(self):
        file = sb.Config.from_toml(SOURCE / "configs" / "example.toml")
        for name in ("example", "example.toml", "configs/example.toml"):
            self.assertEqual(sb.Config.from_toml(name), file)
        self.assertEqual(sb.Task.from_toml("example"), file.task)
        self.assertEqual(sb.Config.from_toml("example", set=["train.lr=5e-4"])["train.lr"], 5e-4)
        expected = sorted(str(path.relative_to(SOURCE / "configs"))[:-5] for path in (SOURCE / "configs").rglob("*.toml"))
        self.assertEqual(sb.shipped_configs(), expected)

    def test_a_file_may_extend_a_shipped_config(self):
        (self.folder / "mine.toml").write_text('extends = "example"\n[train]\nlr = 1e-2')
        found = sb.Config.from_toml(self.folder / "mine.toml")
        self.assertEqual((found["train.lr"], found["grammar.vocab"]), (1e-2, 13))

    def test_what_is_no_config_is_told_apart(self):
        for file, line in [
            ("exampel", r"no such file and no shipped config of this name: 'exampel'; did you mean 'example'\?"),
            ("zzzzzz", r"no such file .*: 'zzzzzz'; sb.shipped_configs\(\) lists the names"),
            ("../configs/example", "no such file"),
            (self.folder, "is a folder, expected a file; the config of a run is FOLDER/config.toml"),
            ("quick", r"quick.toml is a suite of several runs, expected the config of one run; `selectivbench suite` runs a suite and "
                      r"writes each run's config to FOLDER/RUN/config.toml: read one of those"),
            (SOURCE / "configs" / "paper" / "task2.toml", "is a suite of several runs"),
        ]:
            with self.assertRaisesRegex(ValueError, r"\[config\] .*" + line):
                sb.Config.from_toml(file)


class ModelNameTest(TemporaryFolder):
    def test_unknown_names_are_refused(self):
        for name, hint in (("mambo", r", did you mean mamba\?"), ("zzzzzz", ", expected one of transformer, mamba,")):
            with self.assertRaisesRegex(ValueError, rf"\[model.name\] unknown model '{name}'{hint}.*, model.name='{name}'"):
                sb.Config({"model.name": name})
            (self.folder / "own.toml").write_text(f'[model]\nname = "{name}"')
            with self.assertRaisesRegex(ValueError, rf"\[model.name\] unknown model '{name}'.*own.toml:2:8"):
                sb.Config.from_toml(self.folder / "own.toml")
        with self.assertRaisesRegex(ValueError, r"unknown model"):
            sb.Config.from_toml("example", set=["model.name=gated_delta_ned"])

    def test_names_of_the_program_and_of_recorded_models_are_known(self):
        for name in ("gru", "gated_delta_product", "mine (external)"):
            self.assertEqual(sb.Config({"model.name": name})["model.name"], name)


class RunIdTest(TemporaryFolder):
    def test_the_config_of_a_recorded_run_gives_its_id(self):
        task = sb.Task(1, grammar=small(), length=20)
        result = sb.evaluate(lambda batch: np.zeros((*batch.shape[:2], 10)), task, samples=5, valid_samples=5, ceiling_samples=5)
        folder = sb.record(self.folder, name="nothing", params=0, result=result, settings={"train.updates": 1, "train.warmup": 0})
        config = sb.Config.from_toml(folder + "/config.toml")
        self.assertEqual(folder, str(self.folder / config.run_id))
        self.assertEqual(config.task, task)
        self.assertTrue(config.toml.startswith(f"# run {config.run_id}\n"))
        self.assertIn(f"of run {config.run_id}: task 1, model nothing (external)", repr(config))
        self.assertEqual(pickle.loads(pickle.dumps(config)).run_id, config.run_id)
        self.assertIsNone(sb.Config.from_toml(folder + "/config.toml", set=["train.lr=0.5"]).run_id)
        self.assertIsNone(config.with_settings({"train.lr": 0.5}).run_id)
        with open(folder + "/config.toml", "a") as file:
            file.write("# a note\n")  # no longer the file of the run
        self.assertIsNone(sb.Config.from_toml(folder + "/config.toml").run_id)

    def test_other_configs_have_none(self):
        config = sb.Config.from_toml("example")
        self.assertIsNone(config.run_id)
        self.assertIsNone(pickle.loads(pickle.dumps(config)).run_id)
        self.assertNotIn("# run", config.toml)
        (self.folder / "config.toml").write_text(config.toml)  # without a run's config.json beside it
        self.assertIsNone(sb.Config.from_toml(self.folder / "config.toml").run_id)
        self.assertEqual(sb.Config.from_toml(self.folder / "config.toml"), config)


if __name__ == "__main__":
    unittest.main()
