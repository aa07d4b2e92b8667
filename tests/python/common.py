"""What the tests share."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import selectivbench as sb

SOURCE = pathlib.Path(os.environ.get("SELECTIVBENCH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("SELECTIVBENCH_PROGRAM", "")

needs_program = unittest.skipUnless(PROGRAM, "SELECTIVBENCH_PROGRAM names no program to compare with")


def has(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True


needs_torch = unittest.skipUnless(has("torch"), "torch is not installed")


def small(**other):
    return sb.Grammar(**{"vocab": 6, "ambiguities": 2, "depth": 3, **other})


GRAMMAR_OPTIONS = ["--vocab", "6", "--ambiguities", "2", "--depth", "3"]


PLAIN = PROGRAM + "_plain"  # without libtorch: it starts at once
PLAIN_COMMANDS = ("ceiling", "check", "generate", "grammar", "pack", "report", "show", "table") if os.access(PLAIN, os.X_OK) else ()


def program(*arguments, check=True):
    return subprocess.run([PLAIN if arguments[0] in PLAIN_COMMANDS else PROGRAM, *map(str, arguments)], check=check, capture_output=True, text=True)


def trains():
    """Whether the program was built with torch."""
    return bool(PROGRAM) and "train" in program("--help").stdout.split()


class TemporaryFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
