"""docs/tour.py runs, and says what is true. Its ranking is made at a tiny scale with made-up peers."""
import io
import json
import os
import re
import runpy
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from common import SOURCE, TemporaryFolder, needs_torch
from test_rank import tiny_peers

TOUR = SOURCE / "docs" / "tour.py"


class TourTest(TemporaryFolder):
    def test_cells_are_text_or_code(self):
        for cell in re.split(r"^# %%", TOUR.read_text(), flags=re.M)[1:]:
            kind, _, body = cell.partition("\n")
            if kind.strip() == "[markdown]":
                self.assertRegex(body.strip(), r"\A(#.*\n?)+\Z")
            else:
                compile(body, str(TOUR), "exec")

    @needs_torch
    def test_it_runs_to_the_card(self):
        peers, out = self.folder / "peers.json", self.folder / "out"
        peers.write_text(json.dumps(tiny_peers()))
        settings = {"TOUR_BUDGET": "10min", "TOUR_PEERS": str(peers), "TOUR_OUT": str(out)}
        with mock.patch.dict(os.environ, settings), redirect_stdout(io.StringIO()) as said, redirect_stderr(io.StringIO()):
            found = runpy.run_path(str(TOUR))
        text = said.getvalue()
        self.assertRegex(text, r"(?m)^symbol  state  certainty.*\n +\d+ +\d+  [01]\.\d\d$")
        first, second, third = found["baselines"].n_gram[:3]
        self.assertGreater(found["accuracy"], second)  # so it is above the first two, as the page of the tour says
        self.assertAlmostEqual(third, found["ceiling"].accuracy, delta=0.01)
        self.assertIn(f"above the 2-gram, {second:.3f}", text)
        self.assertNotIn("FAILED", text)
        self.assertRegex(text, r"(?m)^task 1: rank 2 of 3, possible \d to \d$")
        self.assertIn("nearest models: ", text)
        self.assertTrue((out / "card.html").exists())


if __name__ == "__main__":
    unittest.main()
