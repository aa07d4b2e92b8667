"""Docstrings, docs/python.md and the examples say what is true."""
import doctest
import importlib
import pkgutil
import re
import runpy
import subprocess
import sys
import unittest
from unittest import mock

import selectivbench as sb
from common import SOURCE, TemporaryFolder, has, needs_torch

OPTIONS = doctest.NORMALIZE_WHITESPACE
TORCH = tuple(f"selectivbench.{name}" for name in ("__main__", "_checkpoint", "_mixer", "_mixer_checks", "_rank_plan", "_rank_progress", "checking", "network", "ranking", "torch", "training"))


def load_tests(loader, tests, pattern):
    for found in pkgutil.iter_modules(sb.__path__, "selectivbench."):
        if found.name.endswith("_native") or (found.name in TORCH and not has("torch")):
            continue
        tests.addTests(doctest.DocTestSuite(importlib.import_module(found.name), optionflags=OPTIONS))
    tests.addTests(doctest.DocTestSuite(sb, optionflags=OPTIONS))
    return tests


class PageTest(unittest.TestCase):
    def test_the_examples_of_the_page_give_what_it_says(self):
        page = (SOURCE / "docs" / "python.md").read_text()
        fences = re.findall(r"^```(python|pycon)\n(.*?)^```$", page, re.M | re.S)
        blocks = [text for kind, text in fences if kind == "python" or has("torch")]  # pycon: what needs torch
        self.assertGreater(len(blocks), 4)
        test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "docs/python.md", "docs/python.md", 0)
        said = []
        runner = doctest.DocTestRunner(optionflags=OPTIONS)
        runner.run(test, out=said.append)
        self.assertEqual(runner.failures, 0, "".join(said))

    def test_every_public_name_is_documented(self):
        for name in sb.__all__:
            if name.startswith("_") or (name in ("check", "rank", "torch", "train", "training") and not has("torch")):
                continue
            thing = getattr(sb, name)
            self.assertTrue(thing.__doc__, name)
            if isinstance(thing, type):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                        self.assertTrue(value.__doc__, f"{name}.{member}")


class ExamplesTest(TemporaryFolder):
    def run_example(self, name, *arguments):
        path = str(SOURCE / "python" / "examples" / name)
        with mock.patch.object(sys, "argv", [path, *arguments]), mock.patch("builtins.print") as said:
            runpy.run_path(path)
        return "\n".join(str(part) for call in said.call_args_list for part in call.args)

    def test_look_inside(self):
        self.assertRegex(self.run_example("look_inside.py"), r"ceiling 0\.\d{4} \(s\.e\. 0\.\d{4}\)")

    @needs_torch
    def test_your_model_and_its_row(self):
        said = self.run_example("your_model.py", str(self.folder), "20")
        self.assertIn("my gru (external)", said)
        self.assertEqual(len(sb.load_runs(self.folder)), 1)


class TypesTest(unittest.TestCase):
    @unittest.skipUnless(has("mypy") and has("torch"), "mypy or torch is not installed")
    def test_mypy_strict_passes_on_package_and_examples(self):
        said = subprocess.run([sys.executable, "-m", "mypy", "--config-file", str(SOURCE / "pyproject.toml"), "--cache-dir", "/dev/null"],
                              cwd=SOURCE, capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)


if __name__ == "__main__":
    unittest.main()
