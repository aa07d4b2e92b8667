"""pip install: without a network or compiler, and with a word on how long compiling takes."""
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import zipfile

import selectivbench as sb
from common import SOURCE, TemporaryFolder, needs_program, program

WHEEL = os.environ.get("SELECTIVBENCH_WHEEL", "")
BACK_END = str(SOURCE / "python" / "build_backend")


class AnnouncementTest(TemporaryFolder):
    LINE = "selectivbench: compiling takes about {} minutes (parallel jobs: {})"

    def command(self, jobs):
        """A build whose compiling does nothing, of five minutes on a machine of two cores."""
        code = (
            f"import os, sys; sys.path.insert(0, {BACK_END!r}); os.environ['JOBS'] = '{jobs}'; os.cpu_count = lambda: 2\n"
            "import selectivbench_build as b; b.PROCESSOR_MINUTES = 5; b.configure_and_build = lambda *arguments: None\n"
            f"b.build_binaries({{'build-dir': {str(self.folder)!r}}})"
        )
        return [sys.executable, "-c", code]

    def test_the_terminal_shows_it_whatever_pip_does_with_the_output(self):
        child, terminal = pty.fork()  # whose controlling terminal is the pseudo-terminal
        if child == 0:
            with open(os.devnull, "w") as hidden:
                os.dup2(hidden.fileno(), 1)
                os.dup2(hidden.fileno(), 2)
            command = self.command(2)
            os.execv(command[0], command)
        said = b""
        while True:
            try:
                piece = os.read(terminal, 1000)
            except OSError:  # the child closed its end
                break
            if not piece:
                break
            said += piece
        os.waitpid(child, 0)
        os.close(terminal)
        self.assertEqual(said.decode().strip(), self.LINE.format(3, 2))

    def test_without_a_terminal_it_goes_to_the_output(self):
        def output(jobs):
            return subprocess.run(self.command(jobs), start_new_session=True, capture_output=True, text=True)

        for jobs, minutes in ((1, 5), (2, 3), (8, 3)):
            said = output(jobs)
            self.assertEqual(said.stdout.strip(), self.LINE.format(minutes, jobs))
            self.assertIn("was configured for another Python", said.stderr)
        built = self.folder / "python" / "selectivbench"
        built.mkdir(parents=True)
        (built / ("_native" + sysconfig.get_config_var("EXT_SUFFIX"))).touch()
        said = output(2)
        self.assertEqual((said.returncode, said.stdout), (0, ""))  # there is little to compile


class MetadataTest(TemporaryFolder):
    def test_metadata_prepared_before_the_build_names_the_command(self):
        code = f"import sys; sys.path.insert(0, {BACK_END!r}); import selectivbench_build as b; print(b.prepare_metadata_for_build_wheel({str(self.folder)!r}))"
        info = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
        entry = (self.folder / info / "entry_points.txt").read_text()
        self.assertEqual(entry, "[console_scripts]\nselectivbench = selectivbench._program:main\n")


@unittest.skipUnless(WHEEL, "SELECTIVBENCH_WHEEL names no wheel to install")
@unittest.skipIf("LD_PRELOAD" in os.environ, "pip does not run under a sanitizer")
class WheelTest(unittest.TestCase):
    """A fresh environment without packages, network or compiler."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.bin = cls.folder / "env" / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", cls.folder / "env"], check=True)
        subprocess.run([sys.executable, "-m", "pip", "--python", cls.bin / "python3", "install", "--disable-pip-version-check",
                        "--no-index", WHEEL], check=True, capture_output=True)  # fmt: skip

    def command(self, *words):
        return subprocess.run([self.bin / words[0], *map(str, words[1:])], cwd=self.folder, capture_output=True, text=True,
                              env={"PATH": str(self.bin)})

    def test_python_imports_it_without_numpy(self):
        used = self.command("python3", "-c", "import selectivbench as sb; from selectivbench.peers import load_peers; "
                                             "print(sb.Task.from_toml('example').states, len(load_peers().models(1))); sb.Task(1).batch('test', [0]).frames")
        self.assertEqual(used.stdout, "145 7\n", used.stderr)
        self.assertIn("No module named 'numpy'", used.stderr)

    def test_commands_without_torch_work(self):
        self.assertRegex(self.command("selectivbench", "--version").stdout, r"^selectivbench \d")
        shown = self.command("selectivbench", "ceiling", "--vocab", 6, "--ambiguities", 2, "--depth", 3, "--samples", 2, "--json", "-")
        self.assertEqual(json.loads(shown.stdout)["samples"], 2, shown.stderr)
        verdict = self.command("selectivbench", "experiments", "verdict", "main_table", SOURCE / "results" / "quick.tar.gz")
        self.assertEqual(verdict.returncode, 0, verdict.stderr)  # finds the shipped claims
        page = self.command("selectivbench", "report", SOURCE / "results" / "quick.tar.gz", "--out", "page.html")
        self.assertEqual(page.returncode, 0, page.stderr)
        self.assertIn("gated_delta_net", (self.folder / "page.html").read_text())

    def test_commands_with_torch_say_what_to_do_in_one_line(self):
        for words in (["train", "example", "--set", "train.lr=1"], ["suite", "quick"], ["doctor"], ["experiments", "run", "x"],
                      ["bench", "train"]):  # fmt: skip
            with self.subTest(words):
                said = self.command("selectivbench", *words)
                where = " ".join(words[: 2 if words[0] in ("experiments", "bench") else 1])
                self.assertEqual((said.returncode, said.stderr),
                                 (2, f"[{where}] requires a program built with libtorch; `make program` in a checkout builds it\n"))
        (self.folder / "mine.py").write_text("class Mine: pass\n")
        said = self.command("selectivbench", "rank", "mine.py:Mine")
        self.assertEqual((said.returncode, said.stderr),
                         (2, f"[rank] requires PyTorch, which {self.bin / 'python3'} does not have; "
                             "selectivbench rank --python names another interpreter\n"))

    @needs_program
    def test_every_command_works_or_says_why_not(self):
        def commands(help):
            return re.findall(r"^  ([a-z]+) ", help.partition("Subcommands:\n")[2], re.M)

        whole = commands(program("--help").stdout)
        self.assertIn("grammar", whole)
        for name in set(whole) - set(commands(self.command("selectivbench", "--help").stdout)):
            self.assertIn(f"[{name}] requires a program built with libtorch", self.command("selectivbench", name).stderr)

    def test_commands_with_torch_are_those_of_the_whole_program_if_it_is_installed(self):
        other = self.folder / "other"
        other.mkdir()
        path = f"{self.bin}{os.pathsep}{other}{os.pathsep}/usr/bin:/bin"

        def doctor():
            return subprocess.run([self.bin / "selectivbench", "doctor"], capture_output=True, text=True, env={"PATH": path})

        (other / "selectivbench").write_text("#!/bin/sh\necho a script\n")  # the launcher of another environment
        (other / "selectivbench").chmod(0o755)
        self.assertIn("requires a program built with libtorch", doctor().stderr)
        (other / "selectivbench").unlink()
        (other / "selectivbench").symlink_to("/bin/echo")
        self.assertEqual(doctor().stdout, "doctor\n")

    def test_the_launcher_knows_which_commands_need_torch(self):
        from selectivbench._program import TORCH_COMMANDS

        source = (SOURCE / "src" / "cli" / "no_torch_commands.cpp").read_text()
        absent = re.findall(r'"([a-z ]+)"', re.search(r"absent\(\{(.*?)\}", source, re.S)[1])
        self.assertEqual(sorted({each.split()[0] for each in absent}), sorted(TORCH_COMMANDS))

    def test_it_needs_only_libraries_of_every_debian(self):
        base = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "libpthread.so.0"}
        with zipfile.ZipFile(WHEEL) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(".so") or "/bin/" in name]
            self.assertEqual(len(names), 2)
            for name in names:
                wheel.extract(name, self.folder)
                said = subprocess.run(["readelf", "--dynamic", self.folder / name], check=True, capture_output=True, text=True).stdout
                needed = {each for each in re.findall(r"\(NEEDED\).*\[(.*)\]", said) if not each.startswith("ld-linux")}
                self.assertEqual(needed - base, set(), name)


class DockerfileTest(TemporaryFolder):
    """The steps of the Dockerfile as far as they run without Docker: packages are known, targets exist, the last step is run."""

    @classmethod
    def setUpClass(cls):
        text = (SOURCE / "Dockerfile").read_text().replace("\\\n", " ")
        cls.stages = [re.findall(r"^(RUN|COPY) (.*)$", stage, re.M) for stage in text.split("FROM ")[1:]]
        cls.steps = [[step.strip() for kind, words in stage if kind == "RUN" for step in words.split("&&")] for stage in cls.stages]

    def test_packages_are_those_of_install_deps(self):
        known = (SOURCE / "scripts" / "install-deps").read_text()
        bare = (SOURCE / ".github" / "workflows" / "test.yml").read_text()
        installs = [step for stage in self.steps for step in stage if step.startswith("apt-get install")]
        self.assertEqual(len(installs), 2)
        for step in installs:
            for word in step.split()[2:]:
                if not word.startswith(("-", "/opt/")):
                    self.assertRegex(known + bare, rf"[\s(]{re.escape(word)}[\s)]", f"{word} is no package of scripts/install-deps")
        for step in self.steps[0]:
            if step.startswith("scripts/install-deps"):
                self.assertIn(f"  {step.split()[1]})", known)

    def test_targets_and_copied_files_exist(self):
        (make,) = [step for step in self.steps[0] if step.startswith("make")]
        said = subprocess.run([*make.split(), "--dry-run"], cwd=SOURCE, check=True, capture_output=True, text=True).stdout
        copied = next(words for _, words in self.stages[-1] if words.startswith("--from=build"))
        self.assertEqual(copied.split()[1:3], ["/src/build/package/selectivbench_*.deb", "/src/dist/selectivbench-*.whl"])
        self.assertRegex(said, r"(?s)cd build/package && cpack -G DEB.*scripts/wheel dist")
        for _, words in self.stages[0]:
            if words.startswith("scripts/"):
                self.assertTrue((SOURCE / words.split()[0]).exists(), words)

    @unittest.skipUnless(WHEEL, "SELECTIVBENCH_WHEEL names no wheel to install")
    @unittest.skipIf("LD_PRELOAD" in os.environ, "pip does not run under a sanitizer")
    def test_the_last_step_installs_the_package(self):
        (self.folder / pathlib.Path(WHEEL).name).symlink_to(WHEEL)
        last = self.stages[-1][-1][1].replace("/opt", str(self.folder)).replace("python3 -m venv", f"{sys.executable} -m venv")
        subprocess.run(last, shell=True, check=True, capture_output=True)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["env"])
        version = [self.folder / "env" / "bin" / "python3", "-c", "import selectivbench; print(selectivbench.__version__)"]
        self.assertEqual(subprocess.run(version, check=True, capture_output=True, text=True).stdout.strip(), sb.__version__)
        self.assertEqual(os.readlink(self.folder / "env" / "bin" / "selectivbench"), "/usr/bin/selectivbench")


if __name__ == "__main__":
    unittest.main()
