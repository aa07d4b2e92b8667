"""The command ``selectivbench`` of an installed package: the program without torch, which the wheel contains."""
from __future__ import annotations

import os
import pathlib
import signal
import sys
from typing import NoReturn

PROGRAM = pathlib.Path(__file__).parent / "bin" / "selectivbench"


# Commands that need libtorch, wholly or in part, which the program of the wheel lacks.
TORCH_COMMANDS = ("bench", "config", "doctor", "eval", "experiments", "models", "suite", "train", "verify")
PACKAGE_COMMANDS = ("rank", "submit")


def words(arguments: list[str], python: str) -> list[str]:
    """The arguments with the interpreter of this package for its commands, which would otherwise take the first on the PATH.

    >>> from selectivbench._program import words
    >>> words(["rank", "mine.py:Mine"], "env/bin/python3")
    ['rank', '--python=env/bin/python3', 'mine.py:Mine']
    >>> words(["table", "runs"], "env/bin/python3")
    ['table', 'runs']
    """
    named = any(each.partition("=")[0] == "--python" for each in arguments)
    return [*arguments[:1], f"--python={python}", *arguments[1:]] if arguments[:1] and arguments[0] in PACKAGE_COMMANDS and not named else arguments


def whole_program(folders: str) -> pathlib.Path | None:
    """Another program ``selectivbench`` in these folders (a PATH): an executable, not the launcher of a Python environment."""
    for folder in filter(None, folders.split(os.pathsep)):
        file = pathlib.Path(folder) / "selectivbench"
        try:
            with file.open("rb") as opened:
                if opened.read(4) == b"\x7fELF" and os.access(file, os.X_OK):
                    return file
        except OSError:
            continue
    return None


def main() -> NoReturn:
    """Becomes the program: exit code, signals and terminal are its own. Commands with libtorch are the whole program's, if installed."""
    # Python ignores these; the program would inherit it and complain about a closed pipe.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    whole = whole_program(os.environ.get("PATH", "")) if sys.argv[1:2] and sys.argv[1] in TORCH_COMMANDS else None
    program = whole or PROGRAM
    try:
        os.execv(program, [str(program) if whole else "selectivbench", *words(sys.argv[1:], sys.executable)])
    except OSError as error:
        sys.exit(f"[selectivbench] cannot start {program}: {error.strerror}; reinstall the package from its wheel")
