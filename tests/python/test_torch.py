import unittest

import numpy as np

import selectivbench as sb
from common import needs_torch, small


def task():
    return sb.Task(2, grammar=small(), length=20)


@needs_torch
class TorchTest(unittest.TestCase):
    def test_tensors_share_memory(self):
        import torch

        (batch,) = task().batches("train", 4, count=4)
        for tensor in (torch.from_dlpack(batch.frames), batch.torch().frames):
            tensor[0, 0, 0] += 5
        self.assertGreater(batch.frames[0, 0, 0], 9)
        for array in (batch.targets, batch.elements, batch.symbols, batch.indices, batch.states, batch.starts):
            self.assertEqual(torch.from_dlpack(array).tolist(), array.tolist())

    def test_a_tensor_keeps_the_batch(self):
        import torch

        frames = [torch.from_dlpack(batch.frames) for batch in task().batches("train", 8, count=160)]
        for tensor, batch in zip(frames, task().batches("train", 8, count=160)):
            np.testing.assert_array_equal(tensor.numpy(), batch.frames)

    def test_workers_give_the_batches_of_one_process_in_their_order(self):
        from torch.utils.data import DataLoader

        dataset = sb.torch.IterableDataset(task(), count=100, batch_size=8)
        alone = [batch["indices"].tolist() for batch in DataLoader(dataset, batch_size=None)]
        self.assertEqual(alone, [batch.indices.tolist() for batch in task().batches("train", 8, count=100)])
        for workers in (1, 2):
            found = [batch["indices"].tolist() for batch in DataLoader(dataset, batch_size=None, num_workers=workers)]
            self.assertEqual(found, alone)

    def test_single_samples_are_collated_as_batches_are_padded(self):
        from torch.utils.data import DataLoader

        dataset = sb.torch.IterableDataset(task(), count=40)
        for batch, fresh in zip(DataLoader(dataset, batch_size=8, collate_fn=sb.torch.collate), task().batches("train", 8, count=40)):
            for key in ("frames", "targets", "elements", "mask", "symbols", "indices"):
                np.testing.assert_array_equal(batch[key].numpy(), getattr(fresh, key))
        seen = [int(sample["indices"]) for sample in DataLoader(dataset, batch_size=None, num_workers=2)]
        self.assertEqual(sorted(seen), list(range(40)))
        for count in (1, 16, 40, 64, 100):
            for rank in range(3):
                shard = sb.torch.IterableDataset(task(), count=count, shard=(rank, 3))
                self.assertEqual(len(shard), len(list(shard)))
        with self.assertRaisesRegex(ValueError, r"\[collate\] samples, expected samples of an IterableDataset"):
            sb.torch.collate([])

    def test_scores_take_tensors_of_any_float_type(self):
        import torch

        of = task()
        accuracies = []
        for kind in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
            score = sb.Score(of)
            for batch in of.batches("test", 8, count=16):
                logits = torch.nn.functional.one_hot(torch.from_numpy(batch.targets.clip(0)), of.answers).to(kind)
                score.update(batch, logits.requires_grad_())
            accuracies.append(score.result(0).accuracy)
        self.assertEqual(accuracies, [1.0] * 4)
        (batch,) = of.batches("test", 1, count=1)
        for kind in (torch.bool, torch.complex64):
            with self.assertRaisesRegex(ValueError, rf"\[score\] values, expected numbers, got {kind}"):
                sb.Score(of).update(batch, torch.zeros((1, batch.shape[1], of.answers), dtype=kind))


if __name__ == "__main__":
    unittest.main()
