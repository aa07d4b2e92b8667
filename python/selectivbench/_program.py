"""The command ``selectivbench`` of an installed package: the program without torch, which the wheel contains."""
from __future__ import annotations

import os
import pathlib
import signal
import sys
from typing import NoReturn

PROGRAM = pathlib.Path(__file__).parent / "bin" / "selectivbench"


def words(arguments: list[str], python: str) -> list[str]:
    """The arguments with the interpreter of this package for ``rank``, which would otherwise take the first on the PATH.

    >>> from selectivbench._program import words
    >>> words(["rank", "mine.py:Mine"], "env/bin/python3")
    ['rank', '--python=env/bin/python3', 'mine.py:Mine']
    >>> words(["table", "runs"], "env/bin/python3")
    ['table', 'runs']
    """
    named = any(each.partition("=")[0] == "--python" for each in arguments)
    return [*arguments[:1], f"--python={python}", *arguments[1:]] if arguments[:1] == ["rank"] and not named else arguments


def main() -> NoReturn:
    """Becomes the program: exit code, signals and terminal are its own."""
    # Python ignores these; the program would inherit it and complain about a closed pipe.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(PROGRAM, ["selectivbench", *words(sys.argv[1:], sys.executable)])
    except OSError as error:
        sys.exit(f"[selectivbench] cannot start {PROGRAM}: {error.strerror}; reinstall the package from its wheel")
