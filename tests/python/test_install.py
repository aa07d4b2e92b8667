"""pip install: without a network, and with a word on how long it takes."""
import os
import pty
import subprocess
import sys
import sysconfig
import unittest

from common import SOURCE, TemporaryFolder

BUILD = os.environ.get("SELECTIVBENCH_BUILD", "")
BACK_END = str(SOURCE / "python" / "build_backend")


class AnnouncementTest(TemporaryFolder):
    LINE = "selectivbench: compiling the native module takes about {} minutes (parallel jobs: {})"

    def command(self, jobs):
        """A build whose compiling does nothing, of five minutes on a machine of two cores."""
        code = (
            f"import os, sys; sys.path.insert(0, {BACK_END!r}); os.environ['JOBS'] = '{jobs}'; os.cpu_count = lambda: 2\n"
            "import selectivbench_build as b; b.PROCESSOR_MINUTES = 5; b.configure_and_build = lambda *arguments: None\n"
            f"b.build_module({{'build-dir': {str(self.folder)!r}}})"
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


@unittest.skipUnless(BUILD, "SELECTIVBENCH_BUILD names no build to install from")
@unittest.skipIf("LD_PRELOAD" in os.environ, "pip does not run under a sanitizer")
class OfflineTest(TemporaryFolder):
    def test_a_python_without_packages_installs_it_and_imports_it(self):
        env = self.folder / "env"
        subprocess.run([sys.executable, "-m", "venv", env], check=True)  # without numpy
        python = env / "bin" / "python3"
        said = subprocess.run([python, "-m", "pip", "install", "--no-index", "--config-settings", f"build-dir={BUILD}", SOURCE],
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        code = "import selectivbench as sb; print(sb.Task.from_toml('example').states); sb.Task(1).batch('test', [0]).frames"
        used = subprocess.run([python, "-c", code], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(used.stdout, "145\n")
        self.assertIn("No module named 'numpy'", used.stderr)


if __name__ == "__main__":
    unittest.main()
