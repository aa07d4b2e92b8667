"""The Python examples of the README give what it says."""
import contextlib
import doctest
import io
import os
import re
import unittest
from unittest import mock

import selectivbench as sb
from common import SOURCE, TemporaryFolder, needs_torch

EXAMPLES = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)


class ReadmeTest(TemporaryFolder):
    def test_the_quick_start_prints_what_the_page_shows(self):
        (example,) = [text for text in EXAMPLES if text.startswith(">>> ")]
        test = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
        said = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=said.append)
        self.assertGreater(runner.tries, 4)
        self.assertEqual(runner.failures, 0, "".join(said))

    @needs_torch
    def test_the_own_mixer_becomes_a_row_of_the_table(self):
        (example,) = [text for text in EXAMPLES if text.startswith("import ")]
        read = sb.Config.from_toml

        def few_updates(file):
            return read(SOURCE / file, set=["train.updates=20", "train.warmup=2", "eval.valid_samples=10", "eval.test_samples=10"])

        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        with mock.patch.object(sb.Config, "from_toml", few_updates), contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(example, "README.md", "exec"), {"__name__": "example"})
        self.assertRegex(said.getvalue(), r"my GRU \(external\) +64 +24\.6 k +64 +0\.\d{3}")


if __name__ == "__main__":
    unittest.main()
