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
        self.assertEqual(out.getvalue(), f"{folder}: MinGru, 6 runs at scale tiny; the predictions give the recorded numbers, "
                                         "training is self-reported\n")  # fmt: skip

    def test_the_source_is_packed_only_if_given(self):
        found = submission.submit(self.root / "ranked", self.folder / "closed")
        self.assertFalse((found.folder / "mixer.py").exists())
        for words, line in (
            ([self.root / "ranked", "--out", self.folder / "closed"], r"closed exists; delete it"),
            ([self.root / "ranked", "--out", self.folder / "My Mixer"], r"--out .*My Mixer, expected a folder name of lower-case letters"),
            ([self.root / "ranked", "--out", self.folder / "other", "--source", __file__], r"test_share\.py is not the file that was ranked"),
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
            with self.assertRaisesRegex(ValueError, r"was ranked among other results than the shipped ones \(tiny\)"):
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
        self.refused(folder, "card.html is not the card of these runs among the shipped models")
        other = self.copy("other-source")
        (other / "mixer.py").write_text("# another file\n")
        self.seal(other)
        self.refused(other, "mixer.py is not the file that was ranked: its SHA-256 differs")
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
            self.refused(folder, "card.html is not the card of these runs among the shipped models; selectivbench submit --card")
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
        self.assertRegex(said, r"site/index.html: \d+ results, \d+ runs, 2 submissions$")
        pages = {file.name: Page(file.read_text()) for file in out.glob("*.html")}
        self.assertEqual(set(pages), {"index.html", "runs.html"})
        for name, page in pages.items():
            for link in page.links:
                file, _, anchor = link.partition("#")
                self.assertTrue((out / file).is_file(), f"{name}: {link}")
                if anchor:
                    self.assertIn(anchor, pages[file].ids)
        rows = pages["index.html"].rows[1:]
        mine = [row for row in rows if row[0] == "MinGru (external)"]
        self.assertEqual(len(mine), 2 * (3 + 2))  # twice three tasks, and two gap lengths
        self.assertEqual({row[-1] for row in mine}, {"self-reported"})
        self.assertEqual({row[-2] for row in mine}, {"corrected"})
        (task1,) = [each for each in self.ranking.standings if each.task == 1]
        self.assertEqual({row[2] for row in mine if row[1] == "1"}, {f"{task1.accuracy:.3f}"})
        quick = {(row[0], row[1]): row for row in rows if row[9] == "quick"}
        self.assertEqual(quick["delta_net", "1"][6], "2")  # grammars, of two archives
        self.assertEqual({row[10] for row in rows if row[9] == "paper"} & {"published", "corrected"}, {"published", "corrected"})
        chosen = {run.run_id for run in sb.load_runs(SOURCE / "results" / "choices.tar.gz")}
        self.assertEqual(chosen & set(pages["runs.html"].text.split()), set())
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
        self.links, self.ids, self.rows, self.text, self.inside = [], set(), [], "", False
        self.feed(text)
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
        self.assertEqual({row[1][0] for row in Page((out / "index.html").read_text()).rows[1:]}, set("123"))  # no other kinds
        for archive in ARCHIVES:
            self.assertEqual((out / "archives" / archive.name).read_bytes(), archive.read_bytes())

    def test_bad_input_is_refused_and_nothing_is_written(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "thesis.tex").touch()
        broken = self.folder / "broken.tar.gz"
        broken.write_bytes(gzip.compress(b"nothing"))
        for words, line in (
            (["--out", self.folder / "mine", ARCHIVES[0]], r"\[site\] .*mine holds other files"),
            (["--out", self.folder / "new"], r"\[site\] expected archives of runs, or submissions in"),
            (["--out", self.folder / "new", ARCHIVES[0], ARCHIVES[0]], r"\[site\] expected archives with different names"),
            (["--out", self.folder / "new", broken], r"\[\w+\] .*broken.tar.gz"),
        ):
            with self.subTest(line), redirect_stderr(io.StringIO()) as said:
                self.assertEqual(main(["site", "--submissions", str(self.folder / "none"), *map(str, words)]), 2)
                self.assertRegex(said.getvalue(), rf"^{line}.*\n$")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["broken.tar.gz", "mine"])


if __name__ == "__main__":
    unittest.main()
