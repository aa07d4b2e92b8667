"""The card of a ranking, made of made-up rows: figures, Markdown and HTML."""
import json
import re
from dataclasses import replace
from unittest import mock

import selectivbench as sb
from common import TemporaryFolder, needs_torch
from selectivbench._svg import DARK
from selectivbench.card import as_html, as_markdown, figures
from selectivbench.peers import load_peers
from selectivbench.ranked import make_ranking
from test_rank import made_up, tiny_peers


class CardTest(TemporaryFolder):
    def ranking(self, state_size=8, name="mine", accuracies=(0.9, 0.9), tasks=(1,), **other):
        """A ranking of made-up rows on two grammars; ``other``: facts, and ``device`` and ``skip`` of the identity."""
        file = self.folder / "peers.json"
        file.write_text(json.dumps(tiny_peers()))
        peers = load_peers(file)
        bins = {seed: [[0.0, 0.96, 900], [0.4, 0.5 * seed, 200], [0.7, 0.1, 1 if seed == 1 else 400]] for seed in (1, 2)}
        rows = {(task, seed): {**made_up("mine", task, seed, accuracy), "by_entropy": bins[seed]}
                for task in tasks for seed, accuracy in zip((1, 2), accuracies)}
        identity = {"device": other.pop("device", "cpu"), "budget": 1.0, "residual": "post", "version": "0", "mixer": "0",
                    "skip": other.pop("skip", [])}
        facts = {"state_size": state_size, "width": 8, "layers": 1, "parameters": 1500, "tokens_per_second": 1, "machine": "m",
                 "precision": "fp32", "threads": 1, "rate": 0.01, "valid": [[0.01, 0.5]], "torch": "1", "identity": identity,
                 "tasks": [1], "diverged": [], **other}
        return make_ranking(name, peers, facts, rows)

    def card(self, *given, **other):
        """Figures and text of a card of made-up rows."""
        ranking = self.ranking(*given, **other)
        return figures(ranking), as_markdown(ranking)

    def test_an_uncertain_rank_is_marked_in_every_form(self):
        certain, uncertain = self.ranking(), self.ranking(accuracies=(0.85, 0.87))  # differences to `always`: -0.09, -0.08; -0.14, -0.11
        for form in (str, as_html, as_markdown):
            self.assertRegex(form(uncertain), r"2 of 3 \(1–2 possible\)")
            self.assertIn("Among 3 models, mine is 2nd on memorisation (1st to 2nd possible). Fewer than three grammars support no verdict.", form(uncertain))
            self.assertIn("mine is 2nd on memorisation. Fewer than three grammars support no verdict.", form(certain))
            self.assertRegex(form(certain), r"2 of 3 \(2–2 possible\)")
            self.assertIn("accuracy by grammar", form(certain))
        wide = replace(certain.standings[0], best=1, worst=3)
        self.assertIn("mine is between 1st and 3rd on memorisation.", str(replace(certain, standings=[wide])))
        three = replace(certain, standings=[replace(certain.standings[0], seeds=[1, 2, 3])])
        self.assertNotIn("verdict", str(three))
        self.assertRegex(str(three), r"2 of 3  0\.")

    def test_a_rate_at_the_edge_is_said(self):
        self.assertIn("It is the smallest rate tried: a rate beyond it may be better", str(self.ranking()))
        self.assertNotIn("rate tried", str(self.ranking(rate=0.015)))

    def test_whether_others_are_above_the_n_gram_is_said(self):
        below = self.ranking(accuracies=(0.5, 0.49))
        self.assertIn("below the n-gram on task 1, but 1 of the 2 other models are above it on task 1: it may be trained badly.", str(below))
        lower = replace(below.standings[0], n_gram=0.999)
        self.assertIn("below the n-gram on task 1, as is that of every other model.", str(replace(below, standings=[lower])))

    def test_a_share_below_the_n_gram_is_no_number(self):
        below, above = self.ranking(accuracies=(0.5, 0.49)), self.ranking()
        self.assertRegex(str(below), r"(?m)^1 memorisation .* 2 of 3 \(2–2 possible\)  < 0    0\.800")
        for form in (as_html, as_markdown):
            self.assertIn("Its accuracy is below the n-gram on task 1", form(below))
            self.assertRegex(form(below), r"2 of 3 \(2–2 possible\)(</td><td>| \| )below the n-gram(</td><td>| \| )0\.800")
            self.assertRegex(form(above), r"2 of 3 \(2–2 possible\)(</td><td>| \| )0\.50(</td><td>| \| )0\.800")
        self.assertNotIn("below the n-gram", as_html(above))

    def test_how_it_was_measured_names_samples_and_settings(self):
        found = self.ranking(tasks=(1, 2))
        for fact in (
            "updates × samples per batch | 30 × 2",
            "test samples per grammar | tasks 1, 2: 6; task 4: 4 at each of the gap lengths 6",
            "size of a grammar | 10 states, 6 symbols",
            "residual | post: mine, always, never",
            "clipped to 0 to 1; one run per model and grammar, so initial weights differ between grammars",
            "the peers: the program on cpu in fp32",
            "training speed | 1 tokens/s, measured on a few updates before training started",
        ):
            self.assertIn(fact, as_markdown(found))
            self.assertIn(fact.replace(" | ", ": "), str(found))

    @needs_torch
    def test_ids_and_commands_are_in_an_appendix_that_is_printed(self):
        found = self.ranking(name="my mixer", skip=["bf16"])
        page = as_html(found)
        before, appendix = page.split("<details open>")
        self.assertNotRegex(before, r"always-1-1|sb\.rank")
        self.assertIn("always always-1-1, never never-1-1", appendix)
        (code,) = re.findall(r"(?s)```\n(import.*?)\n```", as_markdown(found))
        self.assertLess(max(map(len, code.replace(str(self.folder), "").split("\n"))), 80)
        said = {}
        rank = mock.patch.object(sb, "rank", lambda mixer, **given: said.update(given), create=True)
        with rank:
            exec(code, {"MyMixer": object})
        self.assertEqual((said["name"], said["skip"], said["peers"], said["device"]), ("my mixer", ["bf16"], str(self.folder / "peers.json"), "cpu"))

    def test_charts_name_task_axes_and_bounds(self):
        drawn, _ = self.card(tasks=(1, 2, 3))
        for name, title in (
            ("profile", "Accuracy by task"), ("gaps", "Task 4, generalisation: accuracy by gap length"),
            ("position-1", "Task 1, memorisation: accuracy by position"), ("certainty-3", "Task 3, context-aware selectivity: accuracy by certainty"),
        ):  # fmt: skip
            self.assertRegex(drawn[name], rf'<text [^>]*font-weight="bold"[^>]*>{title}</text>')
            self.assertIn(">accuracy</text>", drawn[name])
            bounds = name != "certainty-3"  # in a bin neither is known
            self.assertEqual([f">{bound}" in drawn[name] for bound in ("ceiling", "n-gram")], [bounds, bounds], name)
        self.assertIn(">trained: 1 to 3<", drawn["gaps"])
        self.assertIn(">mean accuracy over the tasks<", drawn["state"])
        self.assertIn(">state values per layer<", drawn["state"])
        used = {colour for each in drawn.values() for colour in re.findall(r'(?:fill|stroke)="(#\w+)"', each)}
        self.assertLessEqual(used, set(DARK))

    def test_accuracy_by_certainty_is_over_all_elements_of_a_bin(self):
        drawn, text = self.card(8)
        self.assertIn("![certainty-1](card-certainty-1.svg)", text)
        ticks = re.findall(r'class="tick".*?>(.*?)<', drawn["certainty-1"])
        self.assertEqual(ticks, ["0", "1.8k", "0.4", "400"])  # with their elements; grammar 1 has one in the last bin, which is left out
        heights = [float(y) for y in re.findall(r'<circle cx="[0-9.]+" cy="([0-9.]+)" r="4"', drawn["certainty-1"])]
        self.assertEqual(heights, [34 + 200 * 0.04, 34 + 200 * 0.25])  # 0.96, and the mean of 0.5 and 1

    def test_speeds_of_the_peers_stand_beside_that_of_the_mixer(self):
        _, text = self.card(8, tokens_per_second=1000, peer_speeds={"always": 2500, "never": 10})
        self.assertIn("## Cost", text)
        rows = re.findall(r"(?m)^\| (always|mine|never) \| ([0-9,]+) \| ([0-9.]+) \|$", text)
        self.assertEqual(rows, [("always", "2,500", "2.50"), ("mine", "1,000", "1.00"), ("never", "10", "0.01")])
        self.assertNotIn("Speed of the peers", text)
        self.assertRegex(self.card(8)[1], r"Speed of the peers was not measured: .* program selectivbench \(with libtorch\) on the PATH")
        self.assertIn("Speed of the peers is measured on a CPU only.", self.card(8, device="cuda")[1])

    def test_a_known_state_size_is_drawn_beside_those_of_the_peers(self):
        drawn, text = self.card(32)
        self.assertIn("![state](card-state.svg)", text)
        self.assertEqual(re.findall(r">(mine|always|never)<", drawn["state"]), ["always", "mine", "never"])
        drawn, text = self.card(None)
        self.assertNotIn("state", drawn)
        self.assertIn("Unknown: mine has no method step and no attribute state_size, or its state grows.", text)
        drawn, text = self.card(0)
        self.assertNotIn("state", drawn)
        self.assertIn("1,500 parameters, no state.", text)
        self.assertIn("None: mine carries no values from frame to frame", text)

    def test_a_mixer_named_like_a_shipped_model_replaces_none_of_it(self):
        drawn, text = self.card(32, name="always")
        for figure in ("profile", "state", "position-1"):
            self.assertEqual(len(set(re.findall(r">(always \(external\)|always|never)<", drawn[figure]))), 3, figure)
        self.assertIn("always (external) minus the model", text)
