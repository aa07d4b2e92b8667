"""Submissions and the leaderboard: what is packed is scored again, and what is changed is refused in one line."""
import gzip
import html.parser
import io
import json
import pathlib
import re
import shutil
import tarfile
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import numpy as np

import selectivbench as sb
from common import SOURCE, TemporaryFolder, has, needs_torch
from selectivbench import _native, site, submission
from selectivbench.__main__ import main
from selectivbench.peers import load_peers
from test_rank import tiny_peers

if has("torch"):
    import mixers

ARCHIVES = [*sorted((SOURCE / "results").glob("*.tar.gz")), *sorted((SOURCE / "python" / "peers").glob("*.tar.gz"))]


@needs_torch
class SubmissionTest(TemporaryFolder):
    @classmethod
    def setUpClass(cls):
        """One ranked mixer at a scale that the package then knows."""
        root = tempfile.TemporaryDirectory()
        cls.addClassCleanup(root.cleanup)
        cls.root = pathlib.Path(root.name)
        frozen = cls.root / "frozen"
        frozen.mkdir()
        (frozen / "tiny.json").write_text(json.dumps(tiny_peers()))
        known = mock.patch("selectivbench.peers._FOLDER", frozen)
        known.start()
        cls.addClassCleanup(known.stop)
        shutil.copy(mixers.__file__, cls.root / "mine.py")
        with redirect_stderr(io.StringIO()):
            cls.ranking = sb.rank(mixers.MinGru, out=cls.root / "ranked", peers="tiny")
        cls.packed = submission.submit(cls.root / "ranked", cls.root / "min-gru", cls.root / "mine.py")

    def copy(self, name="mine"):
        return pathlib.Path(shutil.copytree(self.root / "min-gru", self.folder / name))

    def seal(self, folder, **changed):
        index = json.loads((folder / "submission.json").read_text())
        submission._seal(folder, {**{key: index[key] for key in ("format", "name", "facts")}, **changed})

    def refused(self, folder, expected):
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as said:
            self.assertEqual(main(["submit", "--check", str(folder)]), 1, out.getvalue())
        self.assertRegex(said.getvalue(), rf"^\[submit\] {re.escape(str(folder))}: {expected}")
        self.assertEqual(said.getvalue().count("\n"), 1, said.getvalue())

    def with_runs(self, change, name="mine"):
        """A sealed submission whose run folders were changed."""
        folder, runs = self.copy(name), self.folder / f"{name}-runs"
        shutil.copytree(self.root / "ranked" / "runs", runs)
        change(runs)
        _native.pack(str(runs), str(folder / "runs.tar.gz"))
        self.seal(folder)
        return folder

    def predictions(self, folder):
        with np.load(folder / "predictions.npz") as found:
            return {key: found[key] for key in found.files}

    def test_a_ranked_mixer_is_packed_and_scored_again(self):
        folder = self.root / "min-gru"
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["card.html", "mixer.py", "predictions.npz", "runs.tar.gz", "submission.json"])  # fmt: skip
        self.assertEqual((folder / "card.html").read_text(), (self.root / "ranked" / "card.html").read_text())
        self.assertEqual(self.packed.ranking.standings, self.ranking.standings)
        found = self.predictions(folder)
        self.assertEqual(len(found), 2 * (1 + 1 + 3))  # tasks 1 and 3, and task 2 with two gap lengths
        self.assertEqual({(each.dtype.name, each.shape) for each in found.values()}, {("int16", (6, 8)), ("int16", (4, 8))})
        with redirect_stdout(io.StringIO()) as out:
            self.assertEqual(main(["submit", "--check", str(folder)]), 0)
        self.assertEqual(out.getvalue(), f"{folder}: MinGru, 6 runs at scale tiny; the predictions reproduce the recorded numbers, "
                                         "training is self-reported\n")  # fmt: skip

    def test_the_source_is_packed_only_if_given(self):
        found = submission.submit(self.root / "ranked", self.folder / "closed")
        self.assertFalse((found.folder / "mixer.py").exists())
        for words, line in (
            ([self.root / "ranked", "--out", self.folder / "closed"], r"closed exists; delete it"),
            ([self.root / "ranked", "--out", self.folder / "My Mixer"], r"--out .*My Mixer, expected a folder name of lower-case letters"),
            ([self.root / "ranked", "--out", self.folder / "other", "--source", __file__], r"test_share\.py is not the file that defined the mixer when it was ranked"),
            ([self.root / "ranked", "--out", self.folder / "other", "--source", "no.py"], r"cannot read no\.py: No such file"),
            ([self.folder, "--out", self.folder / "other"], r"holds no finished ranking"),
            ([self.folder, self.folder], r"expected one folder of a ranking, got 2"),
            ([self.folder, "--check", "--out", "x"], r"--check and --card cannot be combined with --out"),
        ):
            with self.subTest(words), redirect_stderr(io.StringIO()) as said:
                self.assertEqual(main(["submit", *map(str, words)]), 2)
                self.assertRegex(said.getvalue(), rf"^\[submit\] .*{line}.*\n$")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["closed"])

    def test_a_ranking_among_other_results_is_not_packed(self):
        other = tiny_peers()
        other["runs"][0]["accuracy"] = 0.5
        (self.folder / "tiny.json").write_text(json.dumps(other))
        with mock.patch("selectivbench.peers._FOLDER", self.folder):
            with self.assertRaisesRegex(ValueError, r"was not ranked against the shipped results \(tiny\)"):
                submission.submit(self.root / "ranked", self.folder / "mine")

    def test_files_that_changed_are_refused(self):
        for name in ("card.html", "mixer.py", "predictions.npz", "runs.tar.gz"):
            folder = self.copy(name.replace("_", "-"))
            content = bytearray((folder / name).read_bytes())
            content[len(content) // 2] ^= 1
            (folder / name).write_bytes(content)
            self.refused(folder, rf"{name}: SHA-256 mismatch")
        folder = self.copy()
        index = folder / "submission.json"
        index.write_text(index.read_text().replace('"tokens_per_second":', '"tokens_per_second":9'))
        self.refused(folder, "submission.json: SHA-256 mismatch")
        self.seal(folder)
        self.refused(folder, "card.html is not the card of these runs; selectivbench")
        other = self.copy("other-source")
        (other / "mixer.py").write_text("# another file\n")
        self.seal(other)
        self.refused(other, "mixer.py is not the file that defined the mixer: its SHA-256 differs")
        (folder / "extra.html").write_text("<script>")
        self.refused(folder, "extra.html, expected only the files submission.json, runs.tar.gz")
        (self.folder / "empty").mkdir()
        self.refused(self.folder / "empty", "no submission.json")

    def test_predictions_with_other_scores_are_refused(self):
        folder = self.copy()
        good = self.predictions(folder)
        key = "task1-grammar1-test"
        (run,) = [run for run in self.packed.runs if (run.task, run.grammar_seed) == (1, 1)]
        targets = sb.Config.from_toml(self._toml(run)).task.batch("test", range(6)).states
        one = good[key].copy()
        sample, element = np.argwhere(one == targets)[0]
        one[sample, element] = (one[sample, element] + 1) % run.data["states"]
        for changed, line in (
            ({**good, key: one}, rf"{key}: accuracy, the predictions give 0\.\d+, the run says 0\.\d+"),
            ({**good, key: good[key][:5]}, rf"predictions.npz: {key}, expected integers of shape \[6, 8\], got int16 of \[5, 8\]"),
            ({**good, key: good[key].astype(float)}, rf"predictions.npz: {key}, expected integers of shape"),
            ({**good, key: good[key] - 100}, rf"predictions.npz: {key}, expected states 0\.\."),
            ({**good, "more": one}, "predictions.npz: more belongs to no run"),
            ({each: good[each] for each in good if each != key}, rf"predictions.npz: {key} is missing"),
        ):
            with self.subTest(line):
                np.savez_compressed(folder / "predictions.npz", **changed)
                self.seal(folder)
                self.refused(folder, line)
        np.savez_compressed(folder / "predictions.npz", **{key: np.array([{}], dtype=object)})
        self.seal(folder)
        self.refused(folder, "Object arrays cannot be loaded")
        np.savez_compressed(folder / "predictions.npz", **{key: np.zeros(2**27, dtype=np.int8)})
        self.seal(folder)
        self.refused(folder, "predictions.npz, expected at most 134,217,728 bytes unpacked")

    def _toml(self, run):
        return self.root / "ranked" / "runs" / run.run_id / "config.toml"

    def recorded_again(self, accuracy=None, **settings):
        """Replaces the run of task 1 on grammar 1 by one with other numbers or settings, sealed by the package."""

        def change(runs):
            (run,) = [run for run in sb.load_runs(runs) if (run.task, run.grammar_seed) == (1, 1)]
            said = {key: json.loads(value) for key, value in run.config.items() if key.startswith(("train.", "model."))}
            for key in ("model.name", "model.parameters"):
                said.pop(key, None)
            test = run.test.to_dict() if accuracy is None else {**run.test.to_dict(), "accuracy": accuracy}
            shutil.rmtree(run.folder)
            result = sb.Evaluation(self.ranking.peers.config(1, 1).task, sb.Measurement.from_json(json.dumps(test)), run.valid, run.grid)
            sb.record(runs, name="MinGru", params=run.params, state_size=run.data["state_size"], result=result, settings={**said, **settings})

        return change

    def test_a_result_with_another_accuracy_is_refused(self):
        self.refused(self.with_runs(self.recorded_again(0.987)), r"task1-grammar1-test: accuracy, the predictions give 0\.\d+, the run says 0\.987")
        folder = self.copy("unsealed")
        with tarfile.open(folder / "runs.tar.gz") as archive:
            files = [(entry, archive.extractfile(entry).read()) for entry in archive]
        with tarfile.open(folder / "runs.tar.gz", "w:gz", format=tarfile.USTAR_FORMAT) as archive:
            for entry, content in files:
                if entry.name.endswith("/result.json"):
                    content = re.sub(rb'"accuracy":0\.\d', b'"accuracy":0.9', content)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        self.seal(folder)
        self.refused(folder, r".*result\.json.*: SHA-256 mismatch")

    def test_another_protocol_is_refused(self):
        rate = self.ranking.facts["rate"]
        for number, (settings, line) in enumerate((
            ({"train.updates": 60}, "train.updates, expected 30 at scale tiny, got 60"),
            ({"train.batch": 64}, "train.batch, expected 2 at scale tiny, got 64"),
            ({"train.seed": 9}, "train.seed, expected 1 at scale tiny, got 9"),
            ({"train.lr": 0.5}, rf"learning rate, expected {rate}, got 0.5"),
            ({"model.layers": 3}, "layers, expected 1, got 3"),
        )):  # fmt: skip
            with self.subTest(line):
                self.refused(self.with_runs(self.recorded_again(**settings), f"other-{number}"), f"task 1, grammar 1: {line}")

        def dropped(runs):
            for run in sb.load_runs(runs):
                if (run.task, run.grammar_seed) == (3, 2):
                    shutil.rmtree(run.folder)

        folder = self.with_runs(dropped, "dropped")
        self.refused(folder, "predictions.npz: task3-grammar2-test belongs to no run")
        left = {key: value for key, value in self.predictions(folder).items() if not key.startswith("task3-grammar2")}
        np.savez_compressed(folder / "predictions.npz", **left)
        self.seal(folder)
        self.refused(folder, r"task 3, expected a run on each of the grammars \[1, 2\], at least the first 2, got \[1\]")
        folder = self.copy("unknown")
        facts = json.loads((folder / "submission.json").read_text())["facts"]
        self.seal(folder, facts={**facts, "scale": "mine"})
        self.refused(folder, "scale, expected tiny, got 'mine'")
        self.seal(folder, facts={})
        self.refused(folder, "malformed: KeyError")

    def test_cards_are_drawn_again_when_the_shipped_results_change(self):
        folder = self.copy()
        more = tiny_peers(("always", "never", "sometimes"))
        (self.folder / "frozen").mkdir()
        (self.folder / "frozen" / "tiny.json").write_text(json.dumps(more))
        with mock.patch("selectivbench.peers._FOLDER", self.folder / "frozen"):
            self.refused(folder, "card.html is not the card of these runs; selectivbench submit --card")
            with redirect_stdout(io.StringIO()):
                self.assertEqual(main(["submit", "--card", str(folder)]), 0)
            submission.check(folder)
        self.assertIn("sometimes", (folder / "card.html").read_text())

    def test_the_site_has_shipped_and_submitted_results(self):
        (self.folder / "submissions").mkdir()
        self.copy("submissions/min-gru")
        twin = self.copy("submissions/min-gru-2")  # of the same name: a result of its own
        out = self.folder / "site"
        said = site.build(out, ARCHIVES, self.folder / "submissions")
        self.assertRegex(said, r"site/index.html: \d+ results, \d+ runs, 2 submissions\n")
        pages = {file.name: Page(file.read_text()) for file in out.glob("*.html")}
        self.assertEqual(set(pages), {"index.html", "runs.html"})
        for name, page in pages.items():
            for link in page.links:
                file, _, anchor = link.partition("#")
                self.assertTrue((out / file).is_file(), f"{name}: {link}")
                if anchor:
                    self.assertIn(anchor, pages[file].ids)
        rows = pages["index.html"].records
        mine = [row for row in rows if row["model"] == "MinGru (external), training self-reported"]
        self.assertEqual(len(mine), 2 * (3 + 2))  # twice three tasks, and two gap lengths
        self.assertEqual({row["settings"].split(", ")[-1] for row in mine}, {"submission min-gru", "submission min-gru-2"})
        self.assertEqual({row["protocol"] for row in mine}, {"corrected"})
        (task1,) = [each for each in self.ranking.standings if each.task == 1]
        self.assertEqual({row["accuracy"] for row in mine if row["task"] == "1"}, {f"{task1.accuracy:.3f}"})
        shutil.rmtree(twin)
        site.build(out, ARCHIVES[:1], self.folder / "submissions")  # replaces its own folder
        self.assertFalse((out / "submissions" / "min-gru-2").exists())
        (self.folder / "submissions" / "min-gru" / "mixer.py").write_text("another")
        with self.assertRaisesRegex(ValueError, "mixer.py: SHA-256 mismatch"):
            site.build(out, ARCHIVES, self.folder / "submissions")


class Page(html.parser.HTMLParser):
    """Links, ids, table rows and text of a page that loads nothing from anywhere."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.rows, self.other, self.text, self.inside = [], set(), [], [], "", False
        self.feed(text)
        self.records = [dict(zip(self.rows[0], row)) for row in self.rows[1:]] if self.rows else []
        assert not re.search(r"https?:|//[a-z]|@import|url\(", text), "another host"

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        assert tag not in ("link", "img", "iframe") and "src" not in found, tag
        self.inside = tag in ("td", "th") or (tag == "a" and self.inside)
        if "id" in found:
            assert found["id"] not in self.ids, found["id"]
            self.ids.add(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        if tag == "tr":
            self.rows.append([])
            if "data-params" in found:
                self.other.append("data-other" in found)
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.text += data + " "
        if self.inside:
            self.rows[-1][-1] += data.strip()


class SiteTest(TemporaryFolder):
    def test_every_submission_of_this_repository_passes(self):
        for folder in sorted((SOURCE / "submissions").iterdir()):
            if folder.is_dir():
                with self.subTest(folder.name):
                    submission.check(folder)

    def test_shipped_results_alone_make_a_site(self):
        out = self.folder / "site"
        with redirect_stdout(io.StringIO()) as said:
            self.assertEqual(main(["site", "--out", str(out), "--submissions", str(self.folder / "none"), *map(str, ARCHIVES)]), 0)
        self.assertIn("0 submissions", said.getvalue())
        self.assertIn("There are no submissions yet.", (out / "index.html").read_text())
        for archive in ARCHIVES:
            self.assertEqual((out / "archives" / archive.name).read_bytes(), archive.read_bytes())
        page, runs = Page((out / "index.html").read_text()), set(Page((out / "runs.html").read_text()).text.split())
        self.assert_all_but_chosen_are_listed(runs, said.getvalue())
        self.assert_rows_differ(page)
        self.assert_figures_are_those_of_the_table(page)

    def assert_all_but_chosen_are_listed(self, listed, said):
        ids = lambda name, task: {run.run_id for run in sb.load_runs(SOURCE / "results" / name) if run.task == task}  # noqa: E731
        self.assertEqual((len(ids("small.tar.gz", 1) & listed), ids("choices.tar.gz", 1) & listed), (36, set()))
        # On task 3 the larger of two learning rates is better on valid.
        self.assertEqual((len(ids("task3_rate.tar.gz", 3) & listed), ids("small.tar.gz", 3) & listed), (28, set()))
        self.assertIn("\nchoices.tar.gz: no results, because its 77 runs are on grammar 11, on which settings", said)
        without = {line.partition(":")[0] for line in said.splitlines()[1:]}
        self.assertEqual(without, {"choices.tar.gz", "choices_largest.tar.gz"}, said)

    def assert_rows_differ(self, page):
        looks = [tuple(row[key] for key in ("model", "task", "settings", "scale", "protocol")) for row in page.records]
        self.assertEqual(len(looks), len(set(looks)))
        found = [(row, other) for row, other in zip(page.records, page.other) if row["task"] == "2" and row["scale"] == "small"]
        standard = {row["model"]: (row["settings"], row["n-gram"]) for row, other in found if not other}
        self.assertEqual(set(standard), {run["model"] for run in load_peers("small").runs if run["task"] == 2})
        self.assertEqual(set(standard.values()), {("", "0.966"), ("collapsed 2 of 3 runs", "0.966")})
        forgetting = {"updates 900", "a_min 0.99, updates 900", "gap_max 50, test_gap_min 50, updates 900"}
        self.assertLessEqual(forgetting, {row["settings"] for row, other in found if other})
        self.assertEqual({row["protocol"] for row in page.records}, {"corrected", "published"})
        published = {row["model"] for row, other in zip(page.records, page.other) if row["protocol"] == "published" and not other}
        self.assertLessEqual({"mamba2", "gla", "transformer"}, published)
        bf16 = {row["settings"] for row in page.records if (row["model"], row["task"], row["scale"]) == ("delta_net", "3", "small")}
        self.assertEqual(bf16, {"", "delta_bf16"})
        kinds = {row["task"].partition(",")[0] for row in page.records} - set("123")
        self.assertEqual(kinds, {"counters", "dyck", "flip_flop", "pcfg", "recall", "signals", "text", "word_problem"})
        machines = {row["settings"].partition("machine ")[2].partition(",")[0] for row in page.records if row["task"] == "word_problem"}
        self.assertEqual(machines, {"a5", "parity"})

    def assert_figures_are_those_of_the_table(self, page):
        shipped = [SOURCE / "results" / name for name in ("quick.tar.gz", "quick_seeds.tar.gz")]
        lines = [line.split() for line in sb.table(shipped).splitlines()]
        n_grams = {text for line in lines if line[:1] == ["n-gram"] for text in line[2:]}
        quick = [row for row, other in zip(page.records, page.other) if row["scale"] == "quick" and not other]
        self.assertEqual(len(quick), 7 * 7)  # models; tasks 1 to 3, and four gap lengths
        self.assertEqual({row["grammars"] for row in quick}, {"3"})  # of both archives
        for task in "123":
            self.assertEqual({row["n-gram"] for row in quick if row["task"] == task} - n_grams, set())
        self.assertEqual({row["n-gram"] for row in quick if row["task"] == "1"}, {"0.963"})
        for row in quick:
            self.assertTrue(any(row["accuracy"] in line for line in lines if line[:1] == [row["model"]]), row)

    def test_archives_without_results_are_named_with_the_reason(self):
        runs = self.folder / "runs"
        for seed in (1, 11):
            task = sb.Task(1, grammar=sb.Grammar(vocab=6, ambiguities=2, depth=3, seed=seed), length=20)
            result = sb.evaluate(lambda batch: np.eye(task.answers)[np.maximum(batch.symbols, 0)], task, samples=10, valid_samples=0)
            sb.record(runs, name="guess", params=1, result=result, settings={"model.width": 1, "model.layers": 1, "train.updates": 1})
        _native.pack(str(runs), str(self.folder / "both.tar.gz"))
        chosen = SOURCE / "results" / "choices.tar.gz"
        said = site.build(self.folder / "site", [self.folder / "both.tar.gz", chosen], self.folder / "none")
        self.assertRegex(said, r"index.html: 1 results, 1 runs, 0 submissions\nchoices.tar.gz: no results, because .* grammar 11")
        self.assertEqual([row["grammars"] for row in Page((self.folder / "site" / "index.html").read_text()).records], ["1"])

    def test_bad_input_is_refused_and_nothing_is_written(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "thesis.tex").touch()
        broken = self.folder / "broken.tar.gz"
        broken.write_bytes(gzip.compress(b"nothing"))
        sent = self.folder / "sent"
        sent.mkdir()
        shutil.copyfile(SOURCE / "results" / "quick.tar.gz", sent / "runs.tar.gz")
        (sent / "submission.json").touch()
        for words, line in (
            (["--out", self.folder / "mine", ARCHIVES[0]], r"\[site\] .*mine holds other files"),
            (["--out", self.folder / "new"], r"\[site\] expected archives of runs, or submissions in"),
            (["--out", self.folder / "new", ARCHIVES[0], ARCHIVES[0]], r"\[site\] expected archives with different names"),
            (["--out", self.folder / "new", broken], r"\[\w+\] .*broken.tar.gz"),
            (["--out", self.folder / "new", self.folder / "mine"], r"\[site\] .*mine, expected an archive of runs, got a folder"),
            (["--out", self.folder / "new", self.folder / "none.tar.gz"], r"\[site\] .*none.tar.gz, expected .*, got no file"),
            (["--out", self.folder / "new", ARCHIVES[0], sent], r"\[site\] .*sent is a submission, expected an archive of runs"),
        ):
            with self.subTest(line), redirect_stderr(io.StringIO()) as said:
                self.assertEqual(main(["site", "--submissions", str(self.folder / "none"), *map(str, words)]), 2)
                self.assertRegex(said.getvalue(), rf"^{line}.*\n$")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["broken.tar.gz", "mine", "sent"])


if __name__ == "__main__":
    unittest.main()
