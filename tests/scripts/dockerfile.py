#!/usr/bin/env python3
"""dockerfile.py SOURCE: runs the steps of the Dockerfile in plain Debian 12 roots, without Docker, and uses the image that they make.

Each stage is a root that debootstrap makes (minbase), entered by chroot in mount and process namespaces of its own. The exit code is 77
(skipped) unless the user is root, debootstrap is installed and its mirror answers (SELECTIVBENCH_MIRROR names another one).
"""
import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

MIRROR = os.environ.get("SELECTIVBENCH_MIRROR", "http://deb.debian.org/debian")
ROOM = 12 << 30  # bytes of disk: both roots, libtorch in each, and the build
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENTER = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i "$@"'


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def expect_possible(folder):
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.geteuid() != 0:
        skip("needs root")
    if shutil.which("debootstrap") is None:
        skip("no debootstrap (scripts/install-deps debootstrap)")
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        skip("may not make mount namespaces")
    if shutil.disk_usage(folder).free < ROOM:
        skip(f"needs {ROOM >> 30} GB in {folder} (TMPDIR)")
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/bookworm/Release", timeout=30).close()
    except OSError as error:
        skip(f"no answer from {MIRROR}: {error}")


def instructions(file):
    """Instructions of a Dockerfile: (name, words), without comments and continued lines."""
    text = re.sub(r"^\s*#.*\n", "", file.read_text(), flags=re.M).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


class Stage:
    """A root, and what the instructions of its stage have set."""

    def __init__(self, base, root):
        self.root, self.folder, self.environment, self.entry = root, "/", {"PATH": PATH, "HOME": "/root"}, []
        if base is None:
            root.mkdir()
        else:
            subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)

    def command(self, text):
        """A shell command in the root: the finished process, with its output."""
        given = {name: os.environ[name] for name in ("http_proxy", "https_proxy") if name in os.environ}
        words = [f"{name}={value}" for name, value in {**given, **self.environment}.items()]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, self.root]
        return subprocess.run([*enter, *words, "/bin/sh", "-c", f"cd {self.folder} && {text}"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def target(self, path):
        return self.root / os.path.join(self.folder, path).lstrip("/")

    def copy(self, words, source, stages):
        """COPY: files of the source tree, or of another stage."""
        *given, target = words
        origin = None
        if given[0].startswith("--from="):
            origin = stages[given.pop(0).partition("=")[2]].root
        place = self.target(target)
        for word in given:
            if origin is not None:
                found = sorted(glob.glob(f"{origin}{word}"))
                assert found, f"COPY {word}: no such file"
                for path in found:
                    shutil.copy2(path, place)
            elif word == ".":
                listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                        check=True, capture_output=True, text=True).stdout
                for name in filter(None, listed.split("\0")):
                    if (source / name).exists():
                        (place / name).parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy2(source / name, place / name, follow_symlinks=False)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / word, place)

    def run(self, name, words, source, stages):
        """One instruction."""
        if name == "RUN":
            done = self.command(words)
            assert done.returncode == 0, f"RUN {words}: exit code {done.returncode}\n{done.stdout[-4000:]}"
        elif name == "COPY":
            self.copy(words.split(), source, stages)
        elif name == "WORKDIR":
            self.folder = words
            self.target("").mkdir(parents=True, exist_ok=True)
        elif name == "ENV":
            key, _, value = words.partition("=")
            self.environment[key] = re.sub(r"\$(\w+)", lambda found: self.environment[found[1]], value)
        elif name == "ENTRYPOINT":
            self.entry = json.loads(words)
        else:
            assert name == "CMD", f"{name} is an instruction that this test does not know"


def make_base(base):
    """What a plain image of Debian 12 holds."""
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", base, MIRROR], check=True, stdout=subprocess.DEVNULL)
    shutil.copy("/etc/resolv.conf", base / "etc" / "resolv.conf")
    refuses = base / "usr" / "sbin" / "policy-rc.d"  # as in Docker's images: packages start no services
    refuses.write_text("#!/bin/sh\nexit 101\n")
    refuses.chmod(0o755)


def build(source, work):
    """Runs all stages; the last one is the image."""
    make_base(work / "base")
    stages, stage = {}, None
    for name, words in instructions(source / "Dockerfile"):
        began = time.monotonic()
        if name == "FROM":
            image, _, alias = words.partition(" AS ")
            assert image == "scratch" or image.startswith("debian:12"), f"FROM {image}, expected Debian 12"
            alias = alias or "image"
            stage = stages[alias] = Stage(None if image == "scratch" else work / "base", work / alias)
        else:
            stage.run(name, words, source, stages)
        print(f"{time.monotonic() - began:6.0f} s  {name} {words}"[:120], flush=True)
    return stage


def use(image, source):
    """What the image is for: the whole program, the package and torch, without a compiler."""
    shutil.copy(source / "tests" / "python" / "mixers.py", image.target("mixers.py"))
    entry = shlex.join(image.entry)
    for text, code, expected in (
        (f"{entry} doctor", 0, r"(?m)^libtorch +\d"),
        (f"{entry} suite quick --list", 0, r"[0-9a-f]{16}"),
        ("for each in g++ gcc c++ cc cmake; do command -v $each; done", 127, r"\A\Z"),
        ("python3 -c 'import selectivbench, torch; print(selectivbench.__file__)'", 0, r"\A/opt/env/lib/"),
        ("python3 -m selectivbench check mixers.py:MinGru --width 8", 0, r"ok +causal"),
        (f"{entry} rank mixers.py:MinGru --budget 1s", 2, r"\[rank\] budget 0:01 is too small: 3 learning rates and two grammars of task 1"),
    ):
        done = image.command(text)
        assert done.returncode == code and re.search(expected, done.stdout), f"{text}: exit code {done.returncode}\n{done.stdout}"
        print(f"ok  {text}", flush=True)


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="selectivbench-docker-") as folder:
        expect_possible(folder)
        try:
            use(build(source, pathlib.Path(folder)), source)
        except AssertionError as error:
            sys.exit(f"FAILED: {error}")


if __name__ == "__main__":
    main()
