"""sb.rank: the plan, resuming and ranks, at a tiny scale with made-up peers."""
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import selectivbench as sb
from common import PROGRAM, SOURCE, TemporaryFolder, has, needs_program, needs_torch, program, trains

if has("torch"):
    import mixers
    from selectivbench import ranking

from selectivbench._peer_speeds import _config, peer_speeds
from selectivbench._svg import has_png
from selectivbench.peers import CHOICE_SEED, freeze, load_peers
from selectivbench.standing import nearest, standings

UPDATES = 30
TASKS = {1: {}, 2: {"eval.gaps": [3, 6], "eval.grid_samples": 4, "task.gap_max": 3}, 3: {"task.gap_start": 2}}


def tiny_settings(task):
    return {
        "grammar.vocab": 6, "grammar.ambiguities": 2, "grammar.depth": 3, "task.number": task, "task.length": 8,
        "train.updates": UPDATES, "train.batch": 2, "train.warmup": 2, "train.precision": "fp32",
        "eval.every": 0, "eval.valid_samples": 4, "eval.test_samples": 6, "eval.ceiling_samples": 4, **TASKS[task],
    }  # fmt: skip


def made_up(model, task, seed, accuracy):
    return {
        "model": model, "task": task, "grammar_seed": seed, "train_seed": seed, "run_id": f"{model}-{task}-{seed}", "version": "0",
        "device": "cpu", "precision": "fp32", "residual": "post", "switches": {}, "lr": 0.01, "width": 8, "params": 1500, "state_size": 8,
        "accuracy": accuracy, "stderr": 0.01, "ceiling": 1.0, "n_gram": 0.8, "n": 2,
        "grid": {"3": accuracy, "6": accuracy - 0.01} if task == 2 else {}, "by_position": [accuracy] * 8,
        "by_entropy": [[0.0, accuracy, 40], [0.5, accuracy / 2, 8]],
    }  # fmt: skip


def tiny_peers(models=("always", "never")):
    runs = [
        made_up(model, task, seed, 1.0 - 0.01 * seed if model == "always" else 0.001 * seed)
        for model in models
        for task in TASKS
        for seed in (1, 2)
    ]
    return {
        "format": 2, "scale": "tiny", "version": "0", "protocol": "corrected", "layers": 1, "target": 1500, "step": 1, "rates": [0.01, 0.02],
        "settings": {str(task): tiny_settings(task) for task in TASKS}, "runs": runs,
    }  # fmt: skip


def peers_of_a_kind():
    """tiny_peers with results of a task of another kind beside them."""
    out = tiny_peers()
    common = {key: value for key, value in tiny_settings(1).items() if key.startswith(("train.", "eval."))}
    kind = {"task.kind": "dyck", "task.types": 2, "task.share": 1, "task.depth": 2, "task.length": 8, "task.test_length": 12}
    out["settings"]["dyck"] = {**common, **kind, "eval.depths": [2, 4], "eval.grid_samples": 4}
    for model, accuracy in (("always", 1.0), ("never", 0.0)):
        out["runs"] += [{**made_up(model, "dyck", seed, accuracy), "n_gram": None, "grid": {"2": accuracy, "4": accuracy}} for seed in (1, 2)]
    return out


# Mixers that are refused before anything is written, and what is said; test_check.py has all.
CHEATS = {
    "LooksAhead": r"\[check\.causal\] LooksAhead: not causal",
    "Huge": r"\[rank\] Huge: has more than 3,000 parameters at width 1; no width gives a network of about 1,500 parameters",
    "ExitsWhenBuilt": r"\[rank\] ExitsWhenBuilt: mixer\(1\) failed: SystemExit: 3 \(mixers\.py:\d+\); no width gives a network of about 1,500 parameters",
    "Prints": r"\[check\.global state\] Prints: prints 'hello from forward'",
    "ChangesDirectory": r"\[check\.global state\] ChangesDirectory: changes the working directory",
}


def contents(folder):
    """Bytes of everything a ranking leaves; run folders say when they were recorded."""
    files = [path for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file() and "runs" not in path.relative_to(folder).parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class StandingTest(TemporaryFolder):
    def test_ranks_and_paired_intervals(self):
        file = self.folder / "peers.json"
        file.write_text(json.dumps(tiny_peers()))
        peers = load_peers(file)
        rows = {(1, 1): made_up("mine", 1, 1, 0.85), (1, 2): made_up("mine", 1, 2, 0.87), (2, 1): made_up("mine", 2, 1, 0.6)}
        first, second, fourth = standings(peers, rows)
        self.assertEqual((first.rank, first.of, first.seeds), (2, 3, [1, 2]))
        always, never = first.against
        self.assertAlmostEqual(always.above, -0.125)
        self.assertAlmostEqual(always.high - always.above, 12.706 * 0.015, 9)  # differences -0.14 and -0.11
        self.assertLess(always.low, 0)
        self.assertGreater(never.low, 0)
        self.assertEqual((first.best, first.worst), (1, 2))  # above never for sure, below always not for sure
        self.assertAlmostEqual(first.share, (0.86 - 0.8) / 0.2)
        self.assertEqual((second.low, second.against[0].low, second.best, second.worst), (None, None, 1, 3))
        self.assertEqual((fourth.task, round(fourth.accuracy, 9)), (4, 0.59))

    def test_models_with_similar_accuracies_on_every_task_are_nearest(self):
        def standing(**above):
            return SimpleNamespace(against=[SimpleNamespace(model=model, above=value) for model, value in above.items()])

        found = [standing(even=0.2, opposite=0.3, one_task=0.0), standing(even=0.2, opposite=-0.3, far=0.5), standing(even=0.2, opposite=0.0)]
        self.assertEqual(nearest(None, found), ["even", "opposite", "one_task"])  # 0.2 is less than sqrt(0.06); the sum of `opposite` is 0

    def test_the_shipped_peers_are_those_of_the_archives(self):
        shipped = load_peers("quick")
        self.assertEqual(len(shipped.models(1)), 7)
        self.assertNotIn(CHOICE_SEED, shipped.seeds(1))
        if sys.version_info >= (3, 11):
            for scale in ("quick", "small"):
                archives = [SOURCE / "results" / f"{scale}.tar.gz", *sorted((SOURCE / "python" / "peers").glob(f"{scale}-*.tar.gz"))]
                archives += sorted((SOURCE / "results").glob("task2*.tar.gz")) if scale == "small" else []
                file = SOURCE / "python" / "selectivbench" / "frozen" / f"{scale}.json"
                self.assertEqual(freeze(archives, SOURCE / "configs" / "scales" / f"{scale}.toml"), file.read_text())

    def test_a_collapsed_run_is_no_peer(self):
        peers = load_peers("small")
        collapsed = [run for run in peers.runs if run["accuracy"] < 0.02]
        self.assertEqual(collapsed, [])
        repeated = peers.runs_of(2, "mamba", 2)  # at 4e-3 its training failed
        self.assertEqual([run["lr"] for run in repeated], [0.002])
        self.assertEqual(peers.seeds(2), [1, 2])  # on grammar 3 Mamba has no other run

    def test_settings_of_the_peers_are_those_of_their_runs(self):
        archives = {scale: [SOURCE / "results" / f"{scale}.tar.gz"] for scale in ("quick", "small")}
        archives["small"] += sorted((SOURCE / "results").glob("task2*.tar.gz"))
        for scale, files in archives.items():
            peers = load_peers(scale)
            for run in sb.load_runs(*files):
                config = peers.config(run.task, run.grammar_seed, train__lr=run.lr)
                for key, value in run.config.items():
                    if key.startswith(("grammar.", "task.", "train.", "eval.")) and key not in ("train.accumulate", "train.dropout_until"):
                        self.assertEqual(config[key], json.loads(value), f"{run.run_id} {key}")

    def test_runs_that_differ_in_a_setting_are_not_frozen_together(self):
        runs = sb.load_runs(SOURCE / "results" / "quick.tar.gz")
        other = SimpleNamespace(**{**vars(runs[0]), "config": {**runs[0].config, "train.updates": "7"}, "external": False, "kind": "gaps"})
        with mock.patch("selectivbench.peers.load_runs", lambda *roots: [*runs, other]):
            with self.assertRaisesRegex(ValueError, r"\[freeze\] train\.updates differs between runs of task \d: \d+ and 7"):
                freeze(["x"], SOURCE / "configs" / "scales" / "quick.toml")

    def test_runs_of_kinds_are_frozen_by_name_and_others_refused(self):
        runs = sb.load_runs(SOURCE / "results" / "quick.tar.gz")

        def frozen(**changed):
            fields = {**vars(runs[0]), "external": False, "kind": "gaps", **changed}
            with mock.patch("selectivbench.peers.load_runs", lambda *roots: [*runs, SimpleNamespace(**fields)]):
                return json.loads(freeze(["x"], SOURCE / "configs" / "scales" / "quick.toml"))

        found = frozen(kind="recall", task=0)
        self.assertEqual(list(found["settings"]), ["1", "2", "3", "recall"])
        self.assertEqual([run["run_id"] for run in found["runs"] if run["task"] == "recall"], [runs[0].run_id])
        self.assertEqual(found["protocol"], "corrected")
        with self.assertRaisesRegex(ValueError, r"\[freeze\] run \w+: quirks\.delta_bf16, expected false as in the corrected protocol, got true"):
            frozen(config={**runs[0].config, "quirks.delta_bf16": "true"})
        with self.assertRaisesRegex(ValueError, r"\[freeze\] run \w+: task tracking is scored by squared error; ranks need accuracies"):
            frozen(kind="tracking", test=SimpleNamespace(mse=0.1))

    @unittest.skipIf(sys.version_info < (3, 11), "no tomllib")
    def test_a_scale_is_named_as_shipped_configs_are(self):
        archive = SOURCE / "results" / "quick.tar.gz"
        for name in ("scales/quick", "configs/scales/quick.toml"):
            self.assertEqual(json.loads(freeze([archive], name))["scale"], "quick")
        with self.assertRaisesRegex(ValueError, r"^\[freeze\] no such file and no shipped config .*'scales/quik'; did you mean 'scales/quick'\?$"):
            freeze([archive], "scales/quik")
        with self.assertRaisesRegex(ValueError, r"^\[freeze\] expected the file of a scale, such as scales/quick, got .*example"):
            freeze([archive], "example")

    def test_a_file_that_is_none_is_an_error(self):
        (self.folder / "bad.json").write_text("{}")
        with self.assertRaisesRegex(ValueError, r"\[peers\] .*bad\.json is not a file of frozen results"):
            load_peers(self.folder / "bad.json")
        with self.assertRaisesRegex(ValueError, r"\[peers\] expected quick or small or a file, got 'huge'"):
            load_peers("huge")


@needs_torch
class RankTest(TemporaryFolder):
    def setUp(self):
        super().setUp()
        self.peers = self.folder / "peers.json"
        self.peers.write_text(json.dumps(tiny_peers()))
        self.out = self.folder / "out"

    def rank(self, mixer, budget="10min", **other):
        with redirect_stderr(io.StringIO()) as said:
            ranking = sb.rank(mixer, budget, **{"out": self.out, "peers": self.peers, **other})
        return ranking, said.getvalue()

    def test_a_mixer_gets_its_ranks_and_card(self):
        found, said = self.rank(mixers.MinGru)
        self.assertLess(said.index("plan: about"), said.index("rate 0.01: valid accuracy"))
        self.assertEqual([each.task for each in found.standings], [1, 2, 3, 4])
        for each in found.standings:
            self.assertEqual((each.rank, each.of, each.seeds), (2, 3, [1, 2]))
            row = [found.runs[min(each.task, 2) if each.task == 4 else each.task, seed] for seed in (1, 2)]
            if each.task != 4:
                self.assertAlmostEqual(each.accuracy, sum(one["test"]["accuracy"] for one in row) / 2)
        page, text = (self.out / "card.html").read_text(), (self.out / "card.md").read_text()
        self.assertNotRegex(page, r"<script|https?://(?!www\.w3\.org)|<link|@import")
        drawn = sorted(path.stem for path in self.out.glob("card-*.svg"))
        self.assertEqual(drawn, ["card-gaps", "card-position-1", "card-position-2", "card-position-3", "card-profile", "card-state"])
        self.assertEqual(page.count("<svg"), len(drawn))
        self.assertEqual(sorted(path.stem for path in self.out.glob("*.png")), drawn if has_png() else [])
        with mock.patch("shutil.which", lambda name: None):
            self.assertIn("card.html (no PNG figures: rsvg-convert of librsvg2-bin is not installed)", str(found))
        self.assertIn("No chart by certainty for tasks 1, 2 and 3", text)  # too few elements
        self.assertEqual(text.count("](card-"), len(drawn))
        self.assertIn("Speed of the peers was not measured", text)
        for figure in re.findall(r"\]\((card-.*?\.svg)\)", text):
            self.assertTrue((self.out / figure).exists(), figure)
        self.assertIn("2 of 3", text)
        self.assertIn("card.html", str(found))
        written = json.loads((self.out / "ranking.json").read_text())
        self.assertEqual((written["name"], written["facts"]["width"]), ("MinGru", found.facts["width"]))
        self.assertEqual(len(written["standings"]), 4)
        for one, each in zip(written["standings"], found.standings):
            for key in ("task", "accuracy", "rank", "best", "worst", "of", "share", "n_gram", "ceiling"):
                self.assertEqual(one[key], getattr(each, key), key)
            self.assertEqual((one["interval"], one["grammars"]), ([each.low, each.high], each.seeds))
            differences = [[a["model"], a["accuracy"], a["difference"], *a["interval"]] for a in one["models"]]
            self.assertEqual(differences, [[a.model, a.accuracy, a.above, a.low, a.high] for a in each.against])
        self.assertRegex(str(found), r"(?m)^model +task 1 +task 2 +task 3 +task 4$")
        for name in ("MinGru", "always", "never"):
            self.assertRegex(str(found), rf"(?m)^{name} +0\.\d\d\d ")
        self.assertIn(f'peers="{self.peers}"', text)
        runs = sb.load_runs(self.out / "runs")
        self.assertEqual(sorted((run.task, run.grammar_seed) for run in runs), [(task, seed) for task in TASKS for seed in (1, 2)])
        self.assertEqual({run.data["state_size"] for run in runs}, {found.facts["width"]})
        self.assertEqual({run.lr for run in runs}, {found.facts["rate"]})

        before = contents(self.out)
        with mock.patch.object(ranking, "train", side_effect=AssertionError("trained again")):
            again, said = self.rank(mixers.MinGru)
        self.assertIn("from an earlier call", said)
        self.assertEqual(again.standings, found.standings)
        self.assertEqual(contents(self.out), before)
        for other in ({"residual": "pre"}, {"budget": "11min"}, {"name": "another"}, {"mixer": mixers.Attention, "name": "MinGru"}):
            with self.subTest(other), self.assertRaisesRegex(ValueError, r"\[rank\] .*out holds a ranking with another "):
                self.rank(**{"mixer": mixers.MinGru, **other})

    def test_a_killed_ranking_resumes_to_the_same_bytes(self):
        script = (  # torch is imported once
            "import os, sys, mixers\nfrom selectivbench import ranking\nout, peers, *moments = sys.argv[1:]\n"
            "ranking._SAVE_SECONDS = 0\n"  # these jobs end before it is time to save
            "for moment in moments:\n"
            "    os.environ['SELECTIVBENCH_TEST_KILL'] = os.path.join(out, 'jobs', moment)\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        ranking.rank(mixers.Killed, out=out, peers=peers)\n"
            "        os._exit(0)\n"
            "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)\n"
        )
        paths = [str(SOURCE / "tests" / "python"), *sys.path]
        said = subprocess.run([sys.executable, "-c", script, self.out, self.peers, "rate-0.02.pt", "task3-grammar1.pt", "never"],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
        self.assertEqual(said.stdout.split(), ["-9", "-9", "0"], said.stderr)
        (self.folder / "intact").mkdir()
        (self.folder / "intact" / "plan.json").write_bytes((self.out / "plan.json").read_bytes())
        self.rank(mixers.Killed, out=self.folder / "intact")
        self.assertEqual(contents(self.folder / "intact"), contents(self.out))

    def test_a_small_budget_is_refused_with_the_time_it_would_take(self):
        with self.assertRaisesRegex(ValueError, r"\[rank\] budget 0:01 is too small: 2 learning rates and two grammars of task 1 would take about \d+:\d\d at the speed measured now .* other load on this machine counts"):
            self.rank(mixers.MinGru, 0.01)
        self.assertFalse(self.out.exists())
        for bad in ("soon", "-3s", 0, True, "10 parsecs"):
            with self.subTest(bad), self.assertRaisesRegex(ValueError, r"\[rank\] budget, expected a time"):
                self.rank(mixers.MinGru, bad)

    def test_a_gpu_evaluates_more_samples_at_once_if_sequences_are_short(self):
        import torch
        from selectivbench._rank_plan import eval_batch

        short, long = sb.Config({"task.number": 1, "task.length": 100}), sb.Config({"task.number": 2, "task.length": 100, "eval.gaps": [10, 100]})
        self.assertEqual([eval_batch(each, torch.device("cpu")) for each in (short, long)], [8, 8])
        self.assertEqual([eval_batch(each, torch.device("cuda")) for each in (short, long)], [25600 // 200, 8])

    def test_the_budget_decides_what_is_trained(self):
        from selectivbench._rank_plan import Cost, make_plan

        costs = {1: Cost(1, 2, 100), 2: Cost(1, 8, 100), 3: Cost(1, 3, 100)}
        peers = load_peers(self.peers)
        planned = {limit: [job["key"] for job in make_plan(peers, costs, limit)] for limit in (6, 12, 28)}
        first = ["rate-0.01", "rate-0.02", "task1-grammar1", "task1-grammar2"]
        self.assertEqual(planned[6], first)
        self.assertEqual(planned[12], first + ["task3-grammar1", "task3-grammar2"])
        self.assertEqual(planned[28], planned[12] + ["task2-grammar1", "task2-grammar2"])

    def test_a_task_beyond_the_memory_of_the_gpu_does_not_fit(self):
        import torch
        from selectivbench import ranking

        measured, asked = ranking.cost_of, []

        def cost_of(network, peers, task, *rest):
            asked.append(task)
            if task == full:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 4.00 GiB")
            return measured(network, peers, task, *rest)

        with mock.patch.object(ranking, "cost_of", cost_of):
            full = 2
            found, said = self.rank(mixers.MinGru)
            self.assertIn("task 2: does not fit", said)
            self.assertEqual([each.task for each in found.standings], [1, 3])
            full = 1
            with self.assertRaisesRegex(RuntimeError, r"\[rank\] MinGru failed in training: .*out of memory.*; nothing was ranked"):
                self.rank(mixers.MinGru, out=self.folder / "other")
        self.assertEqual(asked, [1, 3, 2, 1])
        self.assertFalse((self.folder / "other").exists())

    def test_a_kind_of_task_is_ranked_by_its_name(self):
        self.peers.write_text(json.dumps(peers_of_a_kind()))
        found, said = self.rank(mixers.MinGru, task="dyck")
        self.assertIn("task dyck: grammars 1, 2, against 2 models", said)
        (each,) = found.standings
        self.assertEqual((each.task, each.rank, each.of, each.seeds), ("dyck", 2, 3, [1, 2]))
        self.assertEqual(sorted(path.stem for path in (self.out / "jobs").glob("*.npz")), ["dyck-grammar1", "dyck-grammar2"])
        self.assertEqual({run.kind for run in sb.load_runs(self.out / "runs")}, {"dyck"})
        card = (self.out / "card.md").read_text()
        self.assertIn("![axis-dyck](card-axis-dyck.svg)", card)
        self.assertIn(', task="dyck",', card)
        self.assertNotRegex(card, "Task [1-4]")
        numbered = load_peers(self.peers).of(None)
        self.assertEqual(numbered.tasks, [1, 3, 2])
        self.assertEqual(numbered.of("3").tasks, [3])
        with self.assertRaisesRegex(ValueError, r"out holds a ranking with another task"):
            self.rank(mixers.MinGru, task=1)

    def test_a_task_without_results_is_refused_in_one_line(self):
        with self.assertRaisesRegex(
            ValueError, r"^\[rank\] task, no results of 'recall' to compare with at scale tiny, which has 1, 2, 3; train models on it, and name .*$"
        ):
            self.rank(mixers.MinGru, task="recall")
        with self.assertRaisesRegex(ValueError, r"^\[rank\] task, expected 1 to 4 or a kind of task, copying, .*, got 'recal', did you mean recall\?$"):
            self.rank(mixers.MinGru, task="recal")
        with self.assertRaisesRegex(ValueError, r"^\[rank\] task tracking is scored by squared error and cannot be ranked"):
            self.rank(mixers.MinGru, task="tracking")
        self.assertFalse(self.out.exists())

    def test_the_budget_counts_from_the_start(self):
        from selectivbench._rank_plan import Cost, make_plan

        costs = {task: Cost(1, 2, 100) for task in TASKS}
        self.assertEqual(len(make_plan(load_peers(self.peers), costs, 10)), 6)
        self.assertEqual(len(make_plan(load_peers(self.peers), costs, 10, spent=4)), 4)
        with self.assertRaisesRegex(ValueError, r"would take about 0:11 at the speed"):
            make_plan(load_peers(self.peers), costs, 10, spent=5)

    def test_cheats_leave_nothing(self):
        for name, said in CHEATS.items():
            with self.subTest(name), redirect_stdout(io.StringIO()) as printed:
                with self.assertRaisesRegex(ValueError, said) as caught:
                    self.rank(getattr(mixers, name))
                self.assertNotIn("\n", str(caught.exception))
                self.assertEqual(printed.getvalue(), "")
            self.assertEqual([path.name for path in self.folder.iterdir()], ["peers.json"])

    def test_a_step_that_fails_is_one_message_if_its_check_was_left_out(self):
        with self.assertRaisesRegex(ValueError, r"^\[rank\] step of the mixer failed: KeyError: 'no step today' \(mixers\.py:\d+\)$"):
            self.rank(mixers.BrokenStep, skip=["step"])
        self.assertFalse(self.out.exists())

    def test_a_mixer_that_fails_in_training_is_not_ranked(self):
        said = r"^\[rank\] BreaksInTraining failed in training: KeyError: 'a table that is too small' \(mixers\.py:\d+\); nothing was ranked$"
        with self.assertRaisesRegex(RuntimeError, said):  # while its speed is measured
            self.rank(mixers.BreaksInTraining)
        self.assertFalse(self.out.exists())
        with mock.patch.object(mixers.BreaksInTraining, "far", 0.02), self.assertRaisesRegex(RuntimeError, said):
            self.rank(mixers.BreaksInTraining)
        self.assertFalse(self.out.exists())  # so the repaired mixer can use the folder

    def test_recorded_configs_do_not_depend_on_the_speed(self):
        self.rank(mixers.MinGru)
        saved = [file.read_text() for file in self.out.glob("runs/*/config.toml")]
        every = [line for each in saved for line in each.splitlines() if line.startswith("checkpoint_every")]
        self.assertEqual(every, ["checkpoint_every = 0"] * 6)

    def test_one_ranking_at_a_time_uses_a_folder(self):
        import fcntl

        self.rank(mixers.MinGru)
        with open(self.out / "lock", "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with self.assertRaisesRegex(ValueError, r"^\[rank\] .*out is in use by another ranking; name another folder"):
                self.rank(mixers.MinGru)

    def test_a_second_ranking_cannot_start_while_the_first_one_plans(self):
        measured, said = ranking.cost_of, []

        def cost_of(*given):
            if not said:
                said.append("")
                with self.assertRaisesRegex(ValueError, r"is in use by another ranking") as caught:
                    self.rank(mixers.Attention)
                said.append(str(caught.exception))
            return measured(*given)

        with mock.patch.object(ranking, "cost_of", cost_of):
            found, _ = self.rank(mixers.MinGru)
        self.assertEqual((found.name, len(said)), ("MinGru", 2))

    def test_a_width_beyond_the_nearest_is_taken_if_that_is_far_too_small(self):
        from selectivbench.network import nearest_width

        def two(width):
            if width not in (64, 128):
                raise ValueError("64 or 128")
            return mixers.MinGru(width)

        self.assertEqual(nearest_width(two, 84_000, 2, 13, 145), 128)

    def test_bad_devices_and_folders_are_refused_before_any_work(self):
        with self.assertRaisesRegex(ValueError, r"^\[rank\] device, expected cpu or cuda, got 'tpu'$"):
            self.rank(mixers.MinGru, device="tpu")
        with mock.patch("torch.cuda.is_available", lambda: False):
            with self.assertRaisesRegex(ValueError, r"^\[rank\] device cuda requires a GPU and a PyTorch with CUDA; torch finds none here$"):
                self.rank(mixers.MinGru, device="cuda")
        self.out.write_text("")
        with self.assertRaisesRegex(ValueError, r"^\[rank\] out, expected a folder, got a file, .*out$"):
            self.rank(mixers.MinGru)
        with self.assertRaisesRegex(ValueError, r"^\[rank\] out, cannot write to /proc/x: "):
            self.rank(mixers.MinGru, out="/proc/x")

    def test_task_4_is_measured_with_task_2(self):
        with self.assertRaisesRegex(ValueError, r"^\[rank\] task 4 is measured with task 2, at longer gaps: rank on task 2$"):
            self.rank(mixers.MinGru, task="4")

    def test_a_diverged_run_is_said_and_in_no_mean(self):
        real = ranking.train

        def diverges(network, config, **other):
            if config["grammar.seed"] == 2 and config["task.number"] == 1:
                raise RuntimeError("[train] diverged at update 3, expected a finite loss and gradient, got nan")
            return real(network, config, **other)

        with mock.patch.object(ranking, "train", diverges):
            found, _ = self.rank(mixers.MinGru)
        self.assertEqual(found.standings[0].seeds, [1])
        self.assertIn("Task 1, grammar 2: [train] diverged at update 3", (self.out / "card.md").read_text())

        def diverges_at_every_rate(network, config, **other):
            raise RuntimeError("[train] diverged at update 0, expected a finite loss and gradient, got nan")

        with mock.patch.object(ranking, "train", diverges_at_every_rate):
            with self.assertRaisesRegex(RuntimeError, r"\[rank\] training diverged at every learning rate: 0\.01, 0\.02; nothing was ranked"):
                self.rank(mixers.MinGru, out=self.folder / "other")
        self.assertFalse((self.folder / "other" / "card.html").exists())


class SpeedTest(TemporaryFolder):
    def test_without_the_whole_program_there_are_none(self):
        (self.folder / "selectivbench").write_text("#!/bin/sh\n")  # the launcher of an environment
        (self.folder / "selectivbench").chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            self.assertEqual(peer_speeds(load_peers("quick"), 1, 600), {})
        (self.folder / "selectivbench").unlink()
        (self.folder / "selectivbench").symlink_to("/bin/false")  # a program that cannot measure
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            self.assertEqual(peer_speeds(load_peers("quick"), 1, 600), {})

    @needs_program
    def test_the_whole_program_measures_the_shipped_networks(self):
        if not trains():
            self.skipTest("the program was built without torch")
        peers = load_peers("quick")
        some = replace(peers, runs=[run for run in peers.runs if run["model"] in ("gla", "mamba")])
        with mock.patch.dict(os.environ, {"PATH": os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]}):
            found = peer_speeds(some, 1, 3600)
        self.assertEqual(set(found), {"gla", "mamba"})
        self.assertTrue(all(speed > 0 for speed in found.values()))
        for model in found:  # the network is that of the shipped run
            (self.folder / "one.toml").write_text(_config(peers, 1, model))
            said = program("bench", "train", "--config", self.folder / "one.toml", "--repeats", 1, "--no-plain", "--json", "-").stdout
            self.assertEqual(json.loads(said)["rows"][0]["params"], peers.runs_of(1, model)[0]["params"])


@needs_torch
class PageTest(unittest.TestCase):
    def test_the_mixer_of_the_page_passes_its_check(self):
        (example,) = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs" / "rank.md").read_text(), re.M | re.S)
        self.assertIn('print(sb.rank(MinGru, budget="10min"))', example)
        with redirect_stdout(io.StringIO()) as said:
            exec(compile(example.partition("print(sb.rank")[0], "docs/rank.md", "exec"), {"__name__": "example"})
        self.assertNotIn("FAILED", said.getvalue())
        self.assertRegex(said.getvalue(), "ok +step +differs by at most")


@needs_torch
class CommandTest(TemporaryFolder):
    MIXER = f"{SOURCE / 'tests' / 'python' / 'mixers.py'}:MinGru"

    def command(self, *arguments):
        """Exit code, output and complaint of python3 -m selectivbench, in this process."""
        from selectivbench.__main__ import main

        before, paths, modules = os.getcwd(), list(sys.path), set(sys.modules)
        os.chdir(self.folder)
        try:
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as said:
                try:
                    code = main(list(map(str, arguments)))
                except SystemExit as exit:
                    code = exit.code
        finally:
            os.chdir(before)
            sys.path[:] = paths
            for name in {"mine", "wrong"} & (set(sys.modules) - modules):
                del sys.modules[name]
        return code, out.getvalue(), said.getvalue()

    def test_bad_input_is_one_line_and_exit_code_2(self):
        mine = self.folder / "mine.py"
        mine.write_text("broken = 3\n")
        (self.folder / "wrong.py").write_text("import nothing_of_this_name\n")
        for arguments, line in (
            (["rank", "mine.py"], r"\[rank\] mixer, expected FILE:NAME"),
            (["rank", "none.py:X"], r"\[rank\] no such file: none\.py"),
            (["rank", "mine.py:X"], r"\[rank\] mine\.py has no X"),
            (["rank", "mine.py:broken"], r"\[rank\] mixer, expected a class or function"),
            (["rank", "wrong.py:X"], rf"\[rank\] wrong\.py cannot be imported: ModuleNotFoundError: .* in {re.escape(sys.executable)}"),
            (["rank", "mine.py:broken", "--budget", "soon"], r"\[rank\] budget, expected a time"),
            (["rank", "mine.py:broken", "--fast"], r"unrecognized arguments: --fast"),
            (["rank"], r"required: FILE:NAME"),
        ):
            with self.subTest(arguments):
                code, _, said = self.command(*arguments)
                self.assertEqual(code, 2, said)
                self.assertRegex(said, line)
                self.assertEqual(said.count("\n"), 1, said)

    def test_a_cheat_is_one_line_and_leaves_nothing(self):
        (self.folder / "peers.json").write_text(json.dumps(tiny_peers()))
        for name, expected in CHEATS.items():
            with self.subTest(name):
                code, out, said = self.command("rank", self.MIXER.replace("MinGru", name), "--peers", "peers.json")
                self.assertEqual((code, out), (2, ""), said)
                self.assertRegex(said, rf"\A{name}: choosing a width, checking\n{expected}.*\n\Z")
                self.assertEqual([path.name for path in self.folder.iterdir()], ["peers.json"])

    def test_check(self):
        self.assertEqual(self.command("check", self.MIXER, "--width", 8)[0], 0)
        code, out, _ = self.command("check", self.MIXER.replace("MinGru", "LooksAhead"), "--width", 8)
        self.assertEqual(code, 1)
        self.assertIn("FAILED  causal", out)

    def test_rank_from_the_shell(self):
        (self.folder / "peers.json").write_text(json.dumps(tiny_peers()))
        start = [PROGRAM, "rank", "--python", sys.executable] if PROGRAM else [sys.executable, "-m", "selectivbench", "rank"]

        def rank(*arguments):
            return subprocess.run([*start, *arguments], capture_output=True, text=True, cwd=self.folder,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

        found = rank(self.MIXER, "--peers", "peers.json", "--out", "mine", "--name", "my mixer", "--skip", "bf16", "--skip", "extreme")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("card: mine/card.html", found.stdout)
        self.assertIn("plan: about", found.stderr)
        card = (self.folder / "mine" / "card.md").read_text()
        self.assertTrue(card.startswith("# my mixer\n"))
        self.assertIn("Checks skipped: bf16, extreme.", card)
        bad = rank("none.py:X")
        self.assertEqual((bad.returncode, bad.stderr), (2, "[rank] no such file: none.py\n"))


if __name__ == "__main__":
    unittest.main()
