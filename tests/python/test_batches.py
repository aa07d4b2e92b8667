import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import selectivbench as sb
from common import small


def task(**keys):
    return sb.Task(2, grammar=small(), length=20, **keys)


def indices(batches):
    return [batch.indices.tolist() for batch in batches]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class BatchesTest(unittest.TestCase):
    def test_samples_come_in_order_whatever_the_threads(self):
        for threads in (1, 2, 5):
            found = indices(task().batches("train", 4, start=2, count=10, threads=threads, ahead=3))
            self.assertEqual(found, [[2, 3, 4, 5], [6, 7, 8, 9], [10, 11]])

    def test_a_batch_is_its_samples_side_by_side(self):
        t = task()
        (batch,) = t.batches("train", 5, start=7, count=5)
        for row, index in enumerate(batch.indices):
            sample = t.sample("train", int(index))
            end = len(sample.symbols)
            np.testing.assert_array_equal(batch.frames[row, :end], sample.frames)
            np.testing.assert_array_equal(batch.targets[row, :end], sample.targets)
            self.assertTrue((batch.frames[row, end:] == 0).all())
            self.assertTrue((batch.targets[row, end:] == -1).all())
            self.assertEqual(batch.mask[row].sum(), end)
            self.assertTrue((batch.symbols[row, end:] == -2).all())
            np.testing.assert_array_equal(batch.elements[row] >= 0, batch.mask[row])

    def test_arrays_are_views_and_outlive_their_batch(self):
        (batch,) = task().batches("train", 5, count=5)
        frames, again = batch.frames, batch.frames
        frames[0, 0, 0] = 42
        self.assertEqual(again[0, 0, 0], 42)
        self.assertFalse(frames.flags.owndata)
        before = frames.copy()
        del batch, again
        gc.collect()
        for _ in task().batches("train", 64, count=640):  # whose buffers are others
            pass
        np.testing.assert_array_equal(frames, before)

    def test_a_batch_that_is_kept_is_not_written_over(self):
        kept = list(task().batches("train", 8, count=160, ahead=2))
        for batch, fresh in zip(kept, task().batches("train", 8, count=160)):
            np.testing.assert_array_equal(batch.frames, fresh.frames)

    def test_without_dense_frames(self):
        (batch,) = task().batches("test", 3, count=3, dense=False)
        symbols, targets, elements, mask = batch
        self.assertEqual(symbols.dtype, np.int16)
        np.testing.assert_array_equal(batch.frames, task().batch("test", [0, 1, 2]).frames)
        np.testing.assert_array_equal(batch.dense_frames(5, 9), batch.frames[:, 5:9])
        with self.assertRaisesRegex(ValueError, r"\[batch\] last, expected 0\.\.220, got 221"):
            batch.dense_frames(0, 221)

    def test_symbols_that_were_overwritten_are_refused_where_they_matter(self):
        (batch,) = task().batches("test", 3, count=3, dense=False)
        batch.symbols[0, 0] = 77
        with self.assertRaisesRegex(ValueError, r"\[batch\] symbols, expected -2\.\.5, got 77"):
            batch.frames
        (batch,) = task().batches("test", 3, count=3, dense=False)
        batch.starts[1, -1] = 1 << 30
        with self.assertRaisesRegex(ValueError, r"\[batch\] starts"):
            batch.frames

    def test_shards_share_the_batches_among_them(self):
        whole = indices(task().batches("train", 4, count=30))
        parts = [indices(task().batches("train", 4, count=30, shard=(i, 3))) for i in range(3)]
        self.assertEqual([parts[i % 3][i // 3] for i in range(len(whole))], whole)
        self.assertEqual([len(task().batches("train", 4, count=30, shard=(i, 3))) for i in range(3)], [3, 3, 2])

    def test_the_order_is_that_of_train_order_seed(self):
        (batch,) = task().batches("train", 4, count=4, order=(7, 200_000))
        self.assertEqual(batch.indices.tolist(), [156767, 97926, 103844, 160759])  # docs/benchmark.md
        seen = np.concatenate([b.indices for b in task().batches("train", 16, count=100, order=(3, 100))])
        self.assertEqual(sorted(seen), list(range(100)))

    def test_every_pass_begins_anew_and_can_be_left(self):
        batches = task().batches("train", 4)
        for _ in range(3):
            self.assertEqual(next(iter(batches)).indices.tolist(), [0, 1, 2, 3])
        with self.assertRaises(TypeError):
            len(batches)

    def test_padding_to_a_fixed_number_of_frames(self):
        for batch in task().batches("train", 4, count=8, pad_to=220):
            self.assertEqual(batch.shape[1], 220)
        with self.assertRaisesRegex(ValueError, r"\[batch\] pad_to, expected at least the longest sample's"):
            list(task().batches("train", 4, count=8, pad_to=21))

    def test_what_fails_inside_fails_in_its_place_and_iteration_ends(self):
        batches = iter(task().batches("train", 4, count=8, pad_to=21))
        with self.assertRaises(ValueError):
            next(batches)
        with self.assertRaises(StopIteration):
            next(batches)

    def test_bad_arguments(self):
        for arguments, line in [
            (("train", 0), "[batches] batch_size, expected 1..65536, got 0"),
            (("trian", 4), "[batches] split, expected train, valid, test, reference, got 'trian'"),
            (("train", 4, -1), f"[batches] start, expected 0..{2**62}, got -1"),
            (("train", 2.5), "[batches] batch_size, expected an integer, got 2.5"),
            (("train", True), "[batches] batch_size, expected an integer, got True"),
        ]:
            with self.assertRaises(ValueError) as raised:
                task().batches(*arguments)
            self.assertEqual(str(raised.exception), line)
        with self.assertRaisesRegex(ValueError, r"\[batches\] shard, expected 0\.\.1, got 2"):
            task().batches("train", 4, shard=(2, 2))
        with self.assertRaisesRegex(ValueError, r"\[batches\] shard, expected two integers, got None"):
            task().batches("train", 4, shard=None)
        with self.assertRaisesRegex(ValueError, r"\[batches\] order, expected two integers, got \(1,\)"):
            task().batches("train", 4, order=(1,))
        with self.assertRaisesRegex(ValueError, r"\[batch\] indices, expected integers, got 3"):
            task().batch("train", 3)
        with self.assertRaisesRegex(ValueError, r"\[batch\] samples, expected 1\.\.65536, got 0"):
            task().batch("train", [])
        for mask in (np.array([False, True, True]), [True, False]):  # masks select nothing here
            with self.assertRaisesRegex(ValueError, r"\[batch\] .*, expected an integer, got "):
                task().batch("test", mask)

    def test_pickles(self):
        (batch,) = task().batches("test", 3, count=3, pad_to=230)
        again = pickle.loads(pickle.dumps(batch))
        np.testing.assert_array_equal(again.frames, batch.frames)
        batches = task().batches("train", 4, start=2, count=8, shard=(1, 2))
        self.assertEqual(indices(pickle.loads(pickle.dumps(batches))), indices(batches))
        with self.assertRaises(TypeError):
            pickle.dumps(iter(batches))
        expected = batch.frames.copy()
        for array in (batch.frames, batch.indices):
            array[...] = 10**4
        again = pickle.loads(pickle.dumps(batch))  # drawn again: what was written is not in it
        np.testing.assert_array_equal(again.frames, expected)
        self.assertEqual(again.indices.tolist(), [0, 1, 2])

    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "the sanitizer keeps what is freed")
    def test_memory_does_not_grow(self):
        def draw(batches):
            for batch in task().batches("train", 64, count=64 * batches, threads=2):
                self.assertEqual(batch.frames.shape[0], 64)

        draw(300)
        before = resident()
        draw(3000)
        self.assertLess(resident() - before, 8 << 20)

    def test_several_python_threads_may_draw_from_one_iterator(self):
        stream = task().batches("train", 4, count=400, dense=False, threads=2)._stream()
        seen, lock = [], threading.Lock()

        def draw():
            while (batch := stream.next()) is not None:
                with lock:
                    seen.extend(batch.indices.tolist())

        threads = [threading.Thread(target=draw) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(seen), list(range(400)))


def in_child(act):
    """Exit status of a forked process that runs `act`; what it says comes back too."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(act()).encode())
            os._exit(0)
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
            os._exit(1)
    os.close(writer)
    said = b""
    while part := os.read(reader, 65536):
        said += part
    os.close(reader)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.decode()


class ProcessTest(unittest.TestCase):
    def test_an_iterator_begun_before_a_fork_says_what_to_do(self):
        batches = iter(task().batches("train", 4))
        kept = next(batches)
        status, said = in_child(lambda: next(batches))
        self.assertEqual(status, 1)
        self.assertRegex(said, r"RuntimeError: \[batches\] begun in process \d+ and used after a fork, expected a new iterator")
        self.assertEqual(next(batches).indices.tolist(), [4, 5, 6, 7])  # here it goes on
        self.assertEqual(kept.indices.tolist(), [0, 1, 2, 3])

    def test_after_a_fork_a_new_iterator_works_and_old_ones_can_be_dropped(self):
        batches = iter(task().batches("train", 4))
        kept = [next(batches)]

        def act():
            nonlocal batches
            del batches
            kept.clear()
            gc.collect()
            return indices(task().batches("train", 4, count=8))

        self.assertEqual(in_child(act), (0, "[[0, 1, 2, 3], [4, 5, 6, 7]]"))

    def run_python(self, text, **options):
        return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def processor_seconds(self, child):
        with open(f"/proc/{child.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_ctrl_c_ends_long_work_with_keyboard_interrupt(self):
        for work in ("sb.ceiling(task, samples=10**7)",
                     "sb.baselines(task, samples=300_000)",
                     "sb.baselines(task, samples=1, train_samples=2_500_000)",
                     "while True: task.batch('train', range(65536))",
                     "[None for _ in task.batches('train', 64)]",
                     "sb.Score(task); s = sb.Score(task); b = task.batch('test', [0]); "
                     "s.update(b, __import__('numpy').zeros((1, b.shape[1], task.answers))); s.result(10**7)"):
            child = self.run_python("import selectivbench as sb\n"
                                    "task = sb.Task(1, grammar=sb.Grammar(vocab=9, ambiguities=4, depth=5), length=100)\n"
                                    "print('ready', flush=True)\n" + work)
            self.assertEqual(child.stdout.readline(), "ready\n")
            threading.Event().wait(0.5)
            child.send_signal(signal.SIGINT)
            self.addCleanup(child.kill)
            _, said = child.communicate(timeout=120)
            self.assertIn("KeyboardInterrupt", said, work)
            self.assertNotEqual(child.returncode, -signal.SIGABRT)

    def test_what_does_not_fit_into_memory_is_refused_before_it_is_made(self):
        child = self.run_python("import resource, selectivbench as sb\n"
                                "task = sb.Task(2)\n"
                                "resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))\n"
                                "def refused(act):\n"
                                "    try: act()\n"
                                "    except ValueError as error: print(error)\n"
                                "refused(lambda: task.batch('train', range(65536)))\n"
                                "refused(lambda: task.batch('train', [0], pad_to=2**24))\n"
                                "refused(lambda: iter(task.batches('train', 20000)))\n"
                                "print(len(task.batch('train', range(100))), len(task.batch('train', range(5000), dense=False)))\n"
                                "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2**20)\n")
        out, said = child.communicate(timeout=300)
        self.assertEqual(said, "")
        lines = out.splitlines()
        fits = r"expected at most [\d.]+ GB, four fifths of what is free"
        self.assertRegex(lines[0], rf"^\[batch\] 65536 samples take about 1\d\.\d GB, {fits}; ask for fewer samples, or for symbols alone")
        self.assertRegex(lines[1], rf"^\[batch\] 1 sample take about 3\.1 GB, {fits}")
        self.assertRegex(lines[2], rf"^\[batches\] 5 batches at a time take about 2\d\.\d GB, {fits}; ask for a smaller batch_size or ahead")
        self.assertEqual(lines[3:], ["100 5000", "True"])

    def test_too_many_indices_are_refused_after_those_that_fit(self):
        asked = 0

        def endless():
            nonlocal asked
            while True:
                yield asked
                asked += 1

        with self.assertRaisesRegex(ValueError, r"\[batch\] samples, expected 1\.\.65536, got more"):
            task().batch("train", endless())
        self.assertEqual(asked, 65536)
        with self.assertRaisesRegex(ValueError, r"\[evaluate\] gaps, expected at most 1000, got more"):
            sb.evaluate(lambda batch: batch.frames, task(), gaps=range(10**9))

    def test_signals_are_handled_while_a_grammar_is_built(self):
        for work in ("sb.Grammar(vocab=256, ambiguities=255, depth=255)",  # takes a minute
                     "sb.Config({'grammar.vocab': 256, 'grammar.ambiguities': 255, 'grammar.depth': 255}).task"):
            child = self.run_python("import os, signal, selectivbench as sb\n"
                                    "signal.signal(signal.SIGINT, lambda *_: os.write(1, b'asked\\n'))\n"  # print() may not be interrupted by itself
                                    f"print('ready', flush=True)\n{work}\nprint('done', flush=True)\n")
            self.addCleanup(child.communicate)
            self.addCleanup(child.kill)
            self.assertEqual(child.stdout.readline(), "ready\n")
            while self.processor_seconds(child) < 2:
                time.sleep(0.02)
            for _ in range(3):  # after the first the work still goes on
                child.send_signal(signal.SIGINT)
                self.assertEqual(child.stdout.readline(), "asked\n", work)
            child.kill()

    def test_leaving_python_in_the_middle_of_iteration_is_quiet(self):
        for _ in range(5):
            child = self.run_python("import selectivbench as sb\n"
                                    "batches = iter(sb.Task(2, grammar=sb.Grammar(vocab=9, ambiguities=4, depth=5)).batches('train', 64))\n"
                                    "kept = next(batches)\n")
            _, said = child.communicate(timeout=60)
            self.assertEqual((child.returncode, said), (0, ""))

    def test_leaving_python_while_other_threads_work_ends_them_without_an_abort(self):
        for work in ("sb.ceiling(task, samples=10**7)", "sb.baselines(task, samples=300_000)", "[None for _ in task.batches('train', 64)]"):
            child = self.run_python("import threading, time, selectivbench as sb\n"
                                    "task = sb.Task(1, grammar=sb.Grammar(vocab=9, ambiguities=4, depth=5), length=100)\n"
                                    f"threading.Thread(target=lambda: {work}, daemon=True).start()\n"
                                    "time.sleep(0.3)\n")
            _, said = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 0, said)

    def test_a_process_forked_off_while_threads_work_ends_by_itself(self):
        child = self.run_python("import os, threading, time, selectivbench as sb\n"
                                "task = sb.Task(1, grammar=sb.Grammar(vocab=9, ambiguities=4, depth=5), length=100)\n"
                                "threading.Thread(target=lambda: sb.ceiling(task, samples=10**7), daemon=True).start()\n"
                                "time.sleep(0.3)\n"
                                "child = os.fork()\n"
                                "if child: assert os.waitpid(child, 0)[1] == 0\n"
                                "else: assert sb.ceiling(task, samples=20).samples == 20\n")
        _, said = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 0, said)

    def test_importing_imports_neither_numpy_nor_torch(self):
        child = self.run_python("import sys, selectivbench\nprint('numpy' in sys.modules, 'torch' in sys.modules)")
        said, errors = child.communicate(timeout=60)
        self.assertEqual((said, errors), ("False False\n", ""))


if __name__ == "__main__":
    unittest.main()
