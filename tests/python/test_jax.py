import unittest

import numpy as np

import selectivbench as sb
from common import has, small


@unittest.skipUnless(has("jax"), "jax is not installed")
class JaxTest(unittest.TestCase):
    def test_arrays_travel_by_dlpack(self):
        import jax

        (batch,) = sb.Task(2, grammar=small(), length=20).batches("train", 4, count=4)
        for array in (batch.frames, batch.symbols, batch.elements):
            np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(array)), array)

    def test_scores_take_its_arrays(self):
        import jax

        of = sb.Task(1, grammar=small(), length=20)
        score = sb.Score(of)
        for batch in of.batches("test", 8, count=16):
            score.update(batch, jax.nn.one_hot(np.maximum(batch.targets, 0), of.answers))
        self.assertEqual(score.result(0).accuracy, 1.0)


if __name__ == "__main__":
    unittest.main()
