import json
import pickle
import unittest

import numpy as np

import selectivbench as sb
from common import GRAMMAR_OPTIONS, needs_program, program, small
from selectivbench.submission import score_answers


def task(number=1, length=20, **keys):
    return sb.Task(number, grammar=small(), length=length, **keys)


def scored(of, values, count=20, split="test", kind="logits", ceiling_samples=0, batch_size=8):
    score = sb.Score(of, split)
    for batch in of.batches(split, batch_size, count=count):
        score.update(batch, values(batch), kind)
    return score.result(ceiling_samples)


def noise(batch, answers, dtype=np.float64):
    """Logits that lean to the right answer, the same for the same sample."""
    out = np.stack([np.random.default_rng(int(i)).normal(size=(batch.shape[1], answers)) for i in batch.indices])
    out += 1.5 * np.eye(answers)[np.maximum(batch.targets, 0)]
    return out.astype(dtype)


def by_hand(of, count, split="test"):
    """The metric as docs/benchmark.md defines it, in numpy."""
    right = frames = elements = 0
    loss = 0.0
    accuracies = []
    for batch in of.batches(split, 1, count=count):
        logits = noise(batch, of.answers)[0]
        p = np.exp(logits - logits.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        hits = []
        starts = batch.starts[0]
        for e in range(of.length):
            segment = slice(starts[e], starts[e + 1])
            answer = batch.targets[0, starts[e]]
            if answer < 0:
                continue
            hits.append(p[segment].sum(0).argmax() == answer)
            loss -= np.log(p[segment, answer]).sum()
            frames += starts[e + 1] - starts[e]
        right, elements = right + sum(hits), elements + len(hits)
        accuracies.append(np.mean(hits))
    return right / elements, loss / frames, np.std(accuracies) / np.sqrt(count - 1)


class ScoreTest(unittest.TestCase):
    def test_the_metric_is_the_one_of_the_definition(self):
        for of in (task(1), task(2), task(3, gap_start=2, gap_probability=0.5), task(1, objective="predict"), task(0)):
            found = scored(of, lambda batch: noise(batch, of.answers))
            accuracy, loss, error = by_hand(of, 20)
            self.assertAlmostEqual(found.accuracy, accuracy, 12)
            self.assertAlmostEqual(found.loss, loss, 6)
            self.assertAlmostEqual(found.stderr, error, 12)

    def test_answers_are_the_largest_sums_of_an_element(self):
        of = task(2)
        score = sb.Score(of)
        with self.assertRaisesRegex(ValueError, r"\[score\] answers, expected outputs for all frames of a batch first"):
            score.answers
        for batch in of.batches("test", 5, count=10):
            logits = noise(batch, of.answers)
            score.update(batch, logits[:, :30])
            with self.assertRaisesRegex(ValueError, "answers, expected outputs for all frames"):
                score.answers
            score.update(batch, logits[:, 30:])
            p = np.exp(logits - logits.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            sums = [[p[b, batch.starts[b, e] : batch.starts[b, e + 1]].sum(0) for e in range(of.length)] for b in range(5)]
            self.assertEqual(score.answers.tolist(), np.argmax(sums, -1).tolist())

    def test_answers_of_an_evaluation_give_its_score_again(self):
        of = task(2)
        found = sb.evaluate(lambda batch: noise(batch, of.answers, np.float32), of, [3, 12], samples=10, valid_samples=0, grid_samples=6,
                            ceiling_samples=0)  # fmt: skip
        self.assertEqual({key: each.shape for key, each in found.answers.items()}, {"test": (10, 20), "3": (6, 20), "12": (6, 20)})
        for measured, key, at in ((found.test, "test", of), *((point, str(point.gap), of.at(point.gap)) for point in found.grid)):
            again = score_answers(at, found.answers[key], breakdowns=key == "test")
            self.assertEqual((again.accuracy, again.stderr, again.by_position, again.by_entropy, again.confusion),
                             (measured.accuracy, measured.stderr, measured.by_position, measured.by_entropy, measured.confusion))

    def test_stretches_batches_and_threads_change_nothing(self):
        of = task(2)
        whole = scored(of, lambda batch: noise(batch, of.answers))
        for size, step in ((1, 1), (3, 7), (20, 50)):
            score = sb.Score(of, "test", threads=2)
            for batch in of.batches("test", size, count=20):
                values = noise(batch, of.answers)
                for first in range(0, batch.shape[1], step):
                    score.update(batch, values[:, first : first + step])
            self.assertEqual(score.result(0).text, whole.text)

    def test_any_float_type_and_layout(self):
        of = task(2)
        wide = scored(of, lambda batch: noise(batch, of.answers)).accuracy
        self.assertAlmostEqual(scored(of, lambda batch: noise(batch, of.answers, np.float32)).accuracy, wide, 12)
        self.assertAlmostEqual(scored(of, lambda batch: noise(batch, of.answers, np.float16)).accuracy, wide, 1)
        self.assertEqual(scored(of, lambda batch: np.asfortranarray(noise(batch, of.answers))).accuracy, wide)
        self.assertEqual(scored(of, lambda batch: noise(batch, of.answers).tolist()).accuracy, wide)

    def test_a_wide_type_is_not_narrowed(self):
        of = task(1)
        (batch,) = of.batches("test", 1, count=1)
        far = np.full((1, batch.shape[1], of.answers), 2**25, np.int64)
        np.put_along_axis(far, np.maximum(batch.targets, 0)[..., None], 2**25 + 1, -1)  # float32 cannot tell
        for dtype in (np.int64, np.longdouble, np.float64):
            score = sb.Score(of)
            score.update(batch, far.astype(dtype))
            self.assertEqual(score.result(0).accuracy, 1.0, dtype)

    def test_probabilities_and_logits_score_alike(self):
        of = task(2)

        def law(batch, dtype=np.float64):
            p = np.exp(noise(batch, of.answers))
            return (p / p.sum(-1, keepdims=True)).astype(dtype)

        wide = scored(of, lambda batch: noise(batch, of.answers))
        self.assertAlmostEqual(scored(of, law, kind="probabilities").loss, wide.loss, 7)
        self.assertEqual(scored(of, lambda b: law(b, np.float32), kind="probabilities").accuracy, wide.accuracy)

    def test_what_is_done_to_a_batch_does_not_change_the_score(self):
        of = task(1)
        before = scored(of, lambda batch: noise(batch, of.answers))

        def vandal(batch):
            values = noise(batch, of.answers)
            for array in (batch.elements, batch.states, batch.starts, batch.symbols, batch.targets, batch.indices):
                array[...] = 10**4
            return values

        self.assertEqual(scored(of, vandal).text, before.text)

    def test_bad_values_are_refused_and_the_score_goes_on(self):
        of = task(1)
        first, second = of.batches("test", 2, count=4)
        good = np.zeros((2, 40, 10))
        score = sb.Score(of)
        broken = good.copy()
        broken[1, 7, 3] = np.nan
        for values, line in [
            (broken, r"\[evaluation\] network output is not finite, test sample 1, frame 7"),
            (broken.astype(np.float32), "test sample 1, frame 7"),
            (good[:, :, :5], r"\[score\] values, expected shape \[2, 1\.\.40, 10\], got \[2, 40, 5\]"),
            (good[:1], r"got \[1, 40, 10\]"),
            (np.zeros((2, 41, 10)), r"got \[2, 41, 10\]"),
            (np.zeros(3), r"got \[3\]"),
            (np.zeros((2, 40, 10), dtype=complex), r"\[score\] values, expected numbers, got complex128"),
            (np.full((2, 40, 10), "x"), "expected numbers"),
            (np.zeros((2, 40, 10), dtype=bool), "expected numbers, got bool"),
            (None, "expected numbers, got object"),
            ([[1, 2], [3]], r"\[score\] values, expected an array of numbers, got \[\[1, 2\], \[3\]\]"),
        ]:
            with self.assertRaisesRegex(ValueError, line):
                score.update(first, values)
        with self.assertRaisesRegex(ValueError, r"sum of 0\.0+ .*test sample 0, frame 0"):
            score.update(first, good, "probabilities")
        with self.assertRaisesRegex(ValueError, r"\[score\] kind, expected logits or probabilities, got 'logit'"):
            score.update(first, good, "logit")
        with self.assertRaisesRegex(ValueError, r"\[score\] result, expected outputs for at least one batch first"):
            score.result()
        score.update(first, good[:, :39])
        with self.assertRaisesRegex(ValueError, r"\[score\] batch, expected 1 more frames of the last batch first"):
            score.update(second, good)
        with self.assertRaisesRegex(ValueError, r"\[score\] result, expected 1 more frames"):
            score.result()
        self.assertEqual(score.missing, 1)
        score.update(first, good[:, 39:])
        with self.assertRaisesRegex(ValueError, r"\[score\] batch, expected samples that were not scored yet, got 1 again"):
            score.update(of.batch("test", [7, 1]), good)
        score.update(second, good)
        self.assertEqual(score.result(0).samples, 4)

    def test_a_score_does_not_pickle_and_says_so(self):
        with self.assertRaisesRegex(TypeError, r"\[score\] Score cannot be pickled"):
            pickle.dumps(sb.Score(task(1)))

    def test_batches_of_another_task_or_split_are_refused(self):
        score = sb.Score(task(1))
        with self.assertRaisesRegex(ValueError, r"\[score\] batch, expected a batch of split test"):
            score.update(task(1).batch("valid", [0]), np.zeros((1, 40, 10)))
        with self.assertRaisesRegex(ValueError, r"\[score\] batch, expected a batch of split test"):
            score.update(task(2).batch("test", [0]), np.zeros((1, 220, 10)))

    def test_infinite_logits_are_a_mask_where_some_stay_finite(self):
        of = task(1)

        def masked(batch):
            values = np.full((*batch.shape[:2], of.answers), -np.inf)
            np.put_along_axis(values, batch.targets[..., None], 0.0, -1)
            return values

        found = scored(of, masked)
        self.assertEqual((found.accuracy, found.loss), (1.0, 0.0))


class TruthTest(unittest.TestCase):
    def options(self, number, length=20, **other):
        flags = [str(part) for key, value in other.items() for part in ("--" + key.replace("_", "-"), value)]
        return [*GRAMMAR_OPTIONS, "--length", length, "--task", number, *flags]

    @needs_program
    def test_ceilings_and_baselines_are_the_programs_digit_for_digit(self):
        said = json.loads(program("ceiling", *self.options(2), "--samples", 70, "--start", 5, "--baselines", "--train-samples", 50,
                                  "--json", "-").stdout)
        found = sb.ceiling(task(2), 70, start=5)
        for ours, theirs in [("accuracy", "ceiling"), ("stderr",) * 2, ("upper_bound",) * 2, ("counted",) * 2, ("exact",) * 2,
                             ("mean_entropy",) * 2, ("entropy_rate",) * 2, ("samples",) * 2]:
            self.assertEqual(getattr(found, ours), said[theirs], ours)
        self.assertEqual(found.by_position.tolist(), said["by_position"])
        self.assertEqual(found.entropy_by_position.tolist(), said["entropy_by_position"])
        self.assertEqual(vars(sb.baselines(task(2), 70, start=5, train_samples=50)), said["baselines"])

    @needs_program
    def test_ceilings_of_predict_are_the_programs_digit_for_digit(self):
        said = json.loads(program("ceiling", *self.options(3, 60, objective="predict", gap_start=3), "--samples", 40, "--json", "-").stdout)
        found = sb.ceiling(task(3, 60, gap_start=3, objective="predict"), 40)
        for ours, theirs in [("accuracy", "ceiling"), ("stderr",) * 2, ("kl",) * 2, ("kl_stderr",) * 2, ("kl_bound",) * 2,
                             ("kl_counted",) * 2]:
            self.assertEqual(getattr(found, ours), said[theirs], ours)
        self.assertEqual(found.kl_by_position.tolist(), said["kl_by_position"])

    def test_threads_change_no_digit(self):
        self.assertEqual(sb.ceiling(task(3, gap_start=2), 50, threads=1).accuracy, sb.ceiling(task(3, gap_start=2), 50, threads=3).accuracy)

    @needs_program
    def test_the_filters_beliefs_score_what_the_program_counts(self):
        for number, keys in ((1, {}), (3, {"gap_start": 2, "gap_probability": 0.4})):
            of = task(number, 60, **keys)
            said = json.loads(program("ceiling", *self.options(number, 60, **keys), "--samples", 60, "--json", "-").stdout)

            def beliefs(batch):
                out = np.zeros((*batch.shape[:2], of.answers))
                for row, index in enumerate(batch.indices):
                    posterior = sb.filter(of, int(index), posterior=True).posterior
                    out[row, : len(posterior)] = posterior
                return out

            found = scored(of, beliefs, 60, kind="probabilities", ceiling_samples=60)
            self.assertAlmostEqual(found.accuracy, said["counted"], 14)
            self.assertEqual(found.ceiling.accuracy, said["ceiling"])
            self.assertEqual(found.ceiling.stderr, said["stderr"])
            self.assertAlmostEqual(found.fraction, said["counted"] / said["ceiling"], 12)
            at_zero = next(bin for bin in found.by_since_certain if bin.low == 0)
            # Where the state is certain the filter is right; with wrong symbols it needs the segment for that.
            self.assertEqual(at_zero.accuracy == 1.0, number == 1)
            self.assertEqual(sum(bin.count for bin in found.by_entropy), found.elements)
            self.assertEqual(sum(c.right for c in found.confusion), round(found.accuracy * found.elements))

    def test_beliefs_of_a_sample(self):
        of = task(1)
        sample = of.sample("test", 4)
        beliefs = sb.filter(of, sample, posterior=True)
        np.testing.assert_array_equal(beliefs.states, sample.states)
        np.testing.assert_allclose(beliefs.posterior.sum(1), 1)
        sure = beliefs.probability > 1 - 1e-9
        np.testing.assert_array_equal(beliefs.best[sure], sample.states[sure])
        np.testing.assert_array_equal(beliefs.since_certain[sure], 0)
        with self.assertRaisesRegex(ValueError, r"\[filter\] sample, expected a sample of this task, got one of <selectivbench.Task 1"):
            sb.filter(task(2), sample)
        with self.assertRaisesRegex(ValueError, r"\[filter\] split, expected test, the split of the sample"):
            sb.filter(of, sample, split="valid")

    def test_bad_arguments(self):
        with self.assertRaisesRegex(ValueError, r"\[ceiling\] samples, expected 1\.\.100000000, got 0"):
            sb.ceiling(task(), 0)
        for call in (sb.ceiling, sb.baselines, sb.Score):
            with self.assertRaisesRegex(ValueError, r"task, expected a selectivbench.Task, got NoneType"):
                call(None)
        with self.assertRaisesRegex(ValueError, r"\[filter\] task, expected a selectivbench.Task, got NoneType"):
            sb.filter(None, 0)
        with self.assertRaisesRegex(ValueError, r"\[baselines\] they name states"):
            sb.baselines(task(objective="predict"))


if __name__ == "__main__":
    unittest.main()
