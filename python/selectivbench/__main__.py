"""Commands of the package: python3 -m selectivbench rank, check, submit, site or freeze."""
from __future__ import annotations

import argparse
import importlib.util
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command. Bad input is one line on standard error, and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "freeze":
            from .peers import freeze

            sys.stdout.write(freeze(options.runs, options.scale))
            return 0
        if options.command == "submit":
            return _submit(options)
        if options.command == "site":
            from .site import build

            print(build(options.out, options.runs, options.submissions))
            return 0
        if importlib.util.find_spec("torch") is None:
            hint = "; selectivbench rank --python names another interpreter" if options.command == "rank" else ""
            raise ValueError(f"[{options.command}] requires PyTorch, which {sys.executable} does not have{hint}")
        made = _mixer(options.command, options.mixer)
        if options.command == "check":
            from .checking import check

            report = check(made, options.width, skip=options.skip)
            print(report)
            return 0 if report.ok else 1
        from .ranking import rank

        print(
            rank(
                made,
                options.budget,
                out=options.out,
                name=options.name,
                task=options.task,
                peers=options.peers,
                device=options.device,
                residual=options.residual,
                skip=options.skip,
            )
        )
        return 0
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(str(error).strip().partition("\n")[0], file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"[{options.command}] interrupted; the same command resumes", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        """Prints the message and exits."""
        print(f"[{self.prog}] {message}; see --help", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("selectivbench", description="Commands of the Python package.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    ranks = commands.add_parser("rank", help="train a mixer and rank it among the program's models", allow_abbrev=False)
    checks = commands.add_parser("check", help="check a mixer before training (the program's check verifies files of runs)", allow_abbrev=False)
    for each in (ranks, checks):
        each.add_argument("mixer", metavar="FILE:NAME", help="Python file, and the class or function in it that is called with a width and returns a mixer")
        each.add_argument("--skip", action="append", default=[], metavar="CHECK", help="check to skip; can be repeated")
    ranks.add_argument("--budget", default="10min", help="total time, such as 90s, 10min or 1.5h; a budget that is too small is rejected (default: 10min)")
    ranks.add_argument("--out", default="runs/rank", help="folder for plan, runs and card; the same command resumes there")
    ranks.add_argument("--name", help="name on the card (default: NAME)")
    ranks.add_argument("--task", help="one task, by its number or the name of its kind (default: all of the paper's tasks)")
    ranks.add_argument("--peers", help="scale of the shipped results, or a file that freeze wrote (default: small on a GPU, else quick)")
    ranks.add_argument("--device", help="cpu or cuda (default: cuda if torch has a GPU)")
    ranks.add_argument("--residual", default="post", choices=("post", "pre"), help="residual around the mixer (default: post)")
    checks.add_argument("--width", type=int, default=64, help="width of the mixer (default: 64)")
    submits = commands.add_parser("submit", help="pack a ranked mixer for a pull request, or check packed ones", allow_abbrev=False)
    submits.add_argument("folders", metavar="DIR", nargs="+", help="folder of a ranking; with --check or --card: submissions")
    submits.add_argument("--out", help="folder to write (default: submissions/ and the mixer's name)")
    submits.add_argument("--source", metavar="FILE", help="source of the mixer, published with the result")
    submits.add_argument("--check", action="store_true", help="check seals and protocol, and score the predictions again")
    submits.add_argument("--card", action="store_true", help="check, and draw the card again")
    sites = commands.add_parser("site", help="write a static leaderboard", allow_abbrev=False)
    sites.add_argument("runs", nargs="*", help="archives of shipped runs")
    sites.add_argument("--submissions", default="submissions", help="folder of submissions (default: submissions)")
    sites.add_argument("--out", default="build/site", help="folder to write (default: build/site)")
    freezes = commands.add_parser("freeze", help="print the results of these runs as JSON, for rank --peers FILE", allow_abbrev=False)
    freezes.add_argument("scale", metavar="SCALE", help="a shipped scale, such as scales/quick, or its file")
    freezes.add_argument("runs", nargs="+", help="folders and archives of the program's runs")
    return parser


def _submit(options: argparse.Namespace) -> int:
    """Packs one ranking, or checks any number of submissions: one line for each, and exit code 1 if one is rejected."""
    from .submission import check, redraw, submit

    if not (options.check or options.card):
        if len(options.folders) != 1:
            raise ValueError(f"[submit] expected one folder of a ranking, got {len(options.folders)}")
        print(submit(options.folders[0], options.out, options.source))
        return 0
    if options.out or options.source:
        raise ValueError("[submit] --check and --card cannot be combined with --out and --source")
    refused = False
    for folder in options.folders:
        try:
            print(redraw(folder) if options.card else check(folder))
        except (OSError, ValueError) as error:
            refused = True
            print(error, file=sys.stderr)
    return 1 if refused else 0


def _mixer(where: str, text: str) -> Any:
    """The object NAME of the Python file FILE."""
    name, _, attribute = text.rpartition(":")
    file = pathlib.Path(name)
    if not name or not attribute.isidentifier():
        raise ValueError(f"[{where}] mixer, expected FILE:NAME, such as my_mixer.py:MyMixer, got {text!r}")
    if not file.is_file():
        raise ValueError(f"[{where}] no such file: {name}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"[{where}] expected a Python file (.py), got {name}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))  # its own imports
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        by = f" in {sys.executable}" if isinstance(error, ModuleNotFoundError) else ""
        raise ValueError(f"[{where}] {name} cannot be imported: {type(error).__name__}: {error}{by}") from error
    if not hasattr(module, attribute):
        raise ValueError(f"[{where}] {name} has no {attribute}")
    return getattr(module, attribute)


if __name__ == "__main__":
    sys.exit(main())
