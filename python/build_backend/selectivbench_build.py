"""PEP 517 back end: CMake builds the native module and the program without torch, this file packs them with the Python sources.

Requires no other package.

Settings (pip: --config-settings NAME=VALUE):
  build-dir   folder of a CMake build to use (default: build/python-<tag>)
  native      off: compiled for x86-64-v3 or armv8-a instead of this machine's processor
  sanitize    as SELECTIVBENCH_SANITIZE
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "selectivbench"
ENTRY_POINTS = "[console_scripts]\nselectivbench = selectivbench._program:main\n"
EPOCH = (1980, 1, 1, 0, 0, 0)  # equal sources, equal wheels
PROCESSOR_MINUTES = 7  # of compiling without a compiler cache: 4.5 measured for the module on a Xeon, the rest of the program estimated


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def version():
    found = re.search(r"^project\(selectivbench VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
    return found.group(1)


def metadata():
    """Core metadata from pyproject.toml, read without a TOML library: Python 3.9 has none."""
    text = (ROOT / "pyproject.toml").read_text()

    def one(pattern):
        return re.search(pattern, text, re.M).group(1)

    lines = [
        "Metadata-Version: 2.1",
        "Name: selectivbench",
        f"Version: {version()}",
        "Summary: " + one(r'^description = "(.*)"$'),
        "Author: " + one(r'^authors = \[\{name = "(.*)"\}\]$'),
        "License: MIT",
        "Requires-Python: " + one(r'^requires-python = "(.*)"$'),
        "Provides-Extra: numpy",
        "Requires-Dist: " + one(r'^numpy = \["(.*)"\]$') + '; extra == "numpy"',
        "Project-URL: Paper, " + one(r'^Paper = "(.*)"$'),
    ]
    lines += ["Classifier: " + each for each in re.findall(r'^  "(.* :: .*)",$', text, re.M)]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / "docs" / "python.md").read_text()]
    return "\n".join(lines)


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[.-]", "_", sysconfig.get_platform())
    return f"{python}-{python}-{platform}"


def wheel_text():
    return f"Wheel-Version: 1.0\nGenerator: selectivbench_build\nRoot-Is-Purelib: false\nTag: {tag()}\n"


def setting(config_settings, name, default):
    value = (config_settings or {}).get(name, default)
    return value[-1] if isinstance(value, list) else value


def say(text):
    """Prints to the terminal: pip hides what a build prints unless it fails."""
    try:
        with open("/dev/tty", "w") as terminal:
            terminal.write(f"\n  {text}\n")
    except OSError:  # there is no terminal
        print(text, flush=True)


def expected_time(jobs):
    """How long compiling takes without a compiler cache."""
    minutes = -(-PROCESSOR_MINUTES // max(1, min(jobs, os.cpu_count() or 1)))
    return "about a minute" if minutes == 1 else f"about {minutes} minutes"


def build_binaries(config_settings):
    """The paths of the built module and program."""
    folder = pathlib.Path(setting(config_settings, "build-dir", ROOT / "build" / f"python-{tag()}")).resolve()
    module = folder / "python" / "selectivbench" / ("_native" + sysconfig.get_config_var("EXT_SUFFIX"))
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    if not module.exists():
        say(f"selectivbench: compiling takes {expected_time(jobs)} (parallel jobs: {jobs})")
    try:
        configure_and_build(folder, config_settings, jobs)
    except FileNotFoundError as error:
        raise SystemExit(f"[build] {error.filename} is not installed; scripts/install-deps build installs what is missing")
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"[build] {error.cmd[0]} failed, see its message above; scripts/install-deps build installs "
                         f"missing packages, and deleting {folder} starts again")
    if not module.exists():
        raise SystemExit(f"[build] {folder} was configured for another Python: {module.name} is missing; delete the folder")
    return module, folder / program_target(folder)


def program_target(folder):
    """The target of the program without torch: a build with torch has it beside the other."""
    cache = folder / "CMakeCache.txt"
    with_torch = cache.exists() and re.search(r"^SELECTIVBENCH_TORCH:BOOL=(ON|1|TRUE|YES)$", cache.read_text(), re.M | re.I)
    return "selectivbench_plain" if with_torch else "selectivbench"


def configure_and_build(folder, config_settings, jobs):
    """Configures for this Python, unless ``build-dir`` names a build that is configured already, and builds module and program."""
    if not (setting(config_settings, "build-dir", None) and (folder / "CMakeCache.txt").exists()):
        native = setting(config_settings, "native", "on").lower() not in ("off", "0", "false", "no")
        command = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", "-DSELECTIVBENCH_TORCH=OFF"]
        command += ["-DSELECTIVBENCH_TESTS=OFF", "-DSELECTIVBENCH_PYTHON=ON", f"-DSELECTIVBENCH_NATIVE={'ON' if native else 'OFF'}"]
        command += [f"-DSELECTIVBENCH_PYTHON_EXECUTABLE={sys.executable}"]
        command += [f"-DSELECTIVBENCH_SANITIZE={setting(config_settings, 'sanitize', '')}"]
        if (ROOT / "staged" / "include").is_dir():
            command.append(f"-DSELECTIVBENCH_HEADERS={ROOT / 'staged' / 'include'}")
        try:
            subprocess.run(["ninja", "--version"], check=True, capture_output=True)
            command += ["-G", "Ninja"]
        except (OSError, subprocess.CalledProcessError):
            pass
        subprocess.run(command, check=True)
    targets = ["sb_python", program_target(folder)]
    subprocess.run(["cmake", "--build", str(folder), "--target", *targets, "--parallel", str(jobs)], check=True)


class Wheel:
    """A wheel being written: files, then RECORD with their digests."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.rows = []

    def add(self, name, content, mode=0o644):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(content)}")
        self._write(name, content, mode)

    def _write(self, name, content, mode):
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)

    def finish(self, info):
        name = f"{info}/RECORD"
        self._write(name, ("\n".join(self.rows + [f"{name},,"]) + "\n").encode(), 0o644)
        self.zip.close()


def pack(wheel_directory, add_files):
    info = f"selectivbench-{version()}.dist-info"
    name = f"selectivbench-{version()}-{tag()}.whl"
    wheel = Wheel(pathlib.Path(wheel_directory) / name)
    add_files(wheel)
    wheel.add(f"{info}/METADATA", metadata().encode())
    wheel.add(f"{info}/WHEEL", wheel_text().encode())
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.add(f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.finish(info)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    module, program = build_binaries(config_settings)

    def add_files(wheel):
        for path in sorted(PACKAGE.iterdir()):
            if path.suffix in (".py", ".pyi") or path.name == "py.typed":
                wheel.add(f"selectivbench/{path.name}", path.read_bytes())
        for path in sorted((PACKAGE / "frozen").glob("*.json")):  # results that sb.rank compares with
            wheel.add(f"selectivbench/frozen/{path.name}", path.read_bytes())
        for path in sorted((ROOT / "configs").rglob("*.toml")):  # Config.from_toml finds them by name
            wheel.add(f"selectivbench/{path.relative_to(ROOT)}", path.read_bytes())
        wheel.add(f"selectivbench/{module.name}", module.read_bytes(), 0o755)
        wheel.add("selectivbench/bin/selectivbench", program.read_bytes(), 0o755)

    return pack(wheel_directory, add_files)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = f"selectivbench-{version()}.dist-info"
    folder = pathlib.Path(metadata_directory) / info
    folder.mkdir()
    (folder / "METADATA").write_text(metadata())
    (folder / "WHEEL").write_text(wheel_text())
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    return info


def build_sdist(sdist_directory, config_settings=None):
    """The files that git knows, as one tarball."""
    import io
    import tarfile

    base = f"selectivbench-{version()}"
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True).stdout
    name = base + ".tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(filter(None, listed.decode().split("\0"))):
            tar.add(ROOT / path, f"{base}/{path}", recursive=False)
        text = metadata().encode()
        entry = tarfile.TarInfo(f"{base}/PKG-INFO")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return name
