import json
import pickle
import unittest

import numpy as np

import selectivbench as sb
from common import TemporaryFolder, needs_program, program, small

AUTOMATON = """{"states": ["A0", "A1", "B", "#"], "start_states": ["A1", "B"],
                "transitions": [[1, 3, 0.5], [1, 0, 0.5], [0, 2, 1.0], [2, 3, 1]]}"""


class GrammarTest(TemporaryFolder):
    def test_transitions_out_of_each_state_sum_to_one(self):
        grammar = small(seed=3)
        source, destination, probability = grammar.transitions
        sums = np.bincount(source, probability, len(grammar.states))
        end = grammar.states.index("#")
        self.assertEqual(sums[end], 0)
        np.testing.assert_allclose(np.delete(sums, end), 1)
        self.assertTrue((0 <= destination).all() and (destination < len(grammar.states)).all())

    def test_ids_are_a_permutation_with_0_for_the_end(self):
        grammar = small()
        self.assertEqual(sorted(grammar.ids), list(range(10)))
        self.assertEqual(grammar.ids[grammar.states.index("#")], 0)
        self.assertEqual(grammar.symbols[grammar.states.index("#")], 0)

    def test_the_automaton_is_the_programs(self):
        text = small(seed=2).to_json()
        self.assertEqual(sb.Grammar.from_json(text, seed=2).states, small(seed=2).states)
        self.assertEqual(json.loads(text)["seed"], 2)

    @needs_program
    def test_its_json_is_the_programs_byte_for_byte(self):
        for seed in (1, 2):
            said = program("grammar", "--vocab", 9, "--ambiguities", 3, "--depth", 4, "--seed", seed, "--json", "-")
            self.assertEqual(sb.Grammar(9, 3, 4, seed).to_json(), said.stdout)

    @needs_program
    def test_its_picture_is_the_programs(self):
        file = self.folder / "grammar.svg"
        program("grammar", "--vocab", 6, "--ambiguities", 2, "--depth", 3, "--svg", file)
        self.assertEqual(small()._repr_svg_(), file.read_text())
        self.assertIn("digraph", small().dot())

    def test_a_file_and_its_text_are_one_grammar(self):
        file = self.folder / "own.json"
        file.write_text(AUTOMATON)
        from_file, from_text = sb.Grammar.from_json(file), sb.Grammar.from_json(AUTOMATON)
        self.assertEqual(from_file, from_text)
        self.assertEqual(from_file.vocab, 3)
        task = sb.Task(1, grammar=from_file, length=10)
        file.unlink()  # what was read once is kept
        self.assertEqual(pickle.loads(pickle.dumps(task)), task)
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(task)).sample("test", 3).states, task.sample("test", 3).states
        )

    def test_pickles(self):
        for grammar in (small(seed=5), sb.Grammar.from_json(AUTOMATON, seed=4)):
            again = pickle.loads(pickle.dumps(grammar))
            self.assertEqual(again, grammar)
            self.assertEqual(repr(again), repr(grammar))
        self.assertNotEqual(small(seed=1), small(seed=2))

    def test_what_is_wrong_is_said_in_one_line(self):
        for arguments, line in [
            (dict(vocab=1), "[grammar.vocab] out of range, expected 2..4096, got 1, vocab=1"),
            (dict(seed=0), "[grammar.seed] out of range, expected 1..4294967295, got 0, seed=0"),
            (dict(depth="x"), "[grammar.depth] wrong kind of value, expected an integer, got 'x', depth='x'"),
            (dict(density=2.0), "[grammar.density] out of range, expected (0, 1], got 2.0, density=2.0"),
            (dict(seed=2**80), "[config] a number beyond 64 bits, seed=1208925819614629174706176"),
        ]:
            with self.assertRaises(ValueError) as raised:
                sb.Grammar(**arguments)
            self.assertEqual(str(raised.exception), line)

    def test_a_wrong_file_is_named(self):
        with self.assertRaisesRegex(ValueError, r"\[grammar.automaton\].*missing.json"):
            sb.Grammar.from_json(self.folder / "missing.json")
        with self.assertRaisesRegex(ValueError, r"\[automaton\] text: "):
            sb.Grammar.from_json('{"states": ["A"]}')


if __name__ == "__main__":
    unittest.main()
