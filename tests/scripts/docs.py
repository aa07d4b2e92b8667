#!/usr/bin/env python3
"""README, docs and the other pages: links lead somewhere, options exist, transcripts show what the program prints.

A transcript is a code block that begins with "$ selectivbench". A line "…" stands for any number of lines. A transcript of training,
"$ build/release/selectivbench train", is compared with a shorter run of the same config: the same lines, whatever the numbers.

usage: docs.py PROGRAM SOURCE_DIR
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

program, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
pages = {path: path.read_text() for path in [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]}
README_WORDS = 900
faults, links, commands, transcripts = [], 0, 0, 0


def fault(path, text):
    faults.append(f"{path.relative_to(root)}: {text}")


def prose(text):
    """Without code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def blocks(text, *languages):
    return [body for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if language in languages]


def anchors(text):
    """As GitHub names headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", prose(text), re.M)}


for path, text in pages.items():
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if re.match(r"\w+:", target):
            continue
        links += 1
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        if not to.exists():
            fault(path, f"link to {target}, which does not exist")
        elif anchor and to in pages and anchor not in anchors(pages[to]):
            fault(path, f"link to {target}, a page without this heading")
    for file in set(re.findall(r"\bdocs/[\w-]+\.md\b", text)):
        if not (root / file).exists():
            fault(path, f"names {file}, which does not exist")

index = pages[root / "docs" / "README.md"]
for path in sorted((root / "docs").glob("*.md")):
    if path.name != "README.md" and f"({path.name})" not in index:
        fault(root / "docs" / "README.md", f"the index lacks {path.name}")

text = re.sub(r"<!--.*?-->|^\|.*$", "", prose(pages[root / "README.md"]), flags=re.M)
if len(text.split()) > README_WORDS:
    fault(root / "README.md", f"{len(text.split())} words without code and tables, at most {README_WORDS}")


def run(arguments, **more):
    return subprocess.run([program, *arguments], capture_output=True, text=True, **more)


helps = {}


def help_of(command):
    if command not in helps:
        helps[command] = run([*command, "--help"]).stdout
    return helps[command]


def subcommands(command):
    listed = re.search(r"^Subcommands:\n(.*?)(?:\n\n|\Z)", help_of(command), re.M | re.S)
    return re.findall(r"^  (\w+)", listed.group(1), re.M) if listed else []


package_commands = re.findall(r'commands\.add_parser\("(\w+)"', (root / "python/selectivbench/__main__.py").read_text())

for path, text in pages.items():
    if path.name == "CHANGELOG.md":
        continue  # old versions had other options
    code = [line for block in blocks(text, "", "bash") for line in block.replace("\\\n", " ").splitlines()]
    spans = [span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", prose(text))]
    spans = ["selectivbench " + span if " --" in span and span.split()[0] in subcommands(()) else span for span in spans]
    for line in code + spans:
        line = re.sub(r"<[\w-]+>", "X", line)
        for module in re.findall(r"-m selectivbench (\w+)", line):
            if module not in package_commands:
                fault(path, f"python3 -m selectivbench {module}: no such command")
        line = re.sub(r"-m selectivbench .*", "", line)
        for words in re.findall(r"(?:^|[\s/\"])selectivbench ((?:[\w-].*))", line):
            words = re.split(r"\s#\s|[|;&>]", words)[0].split()
            command = ()
            while words and words[0] in subcommands(command):
                command += (words.pop(0),)
            if not command:
                if not words[0].startswith("--"):
                    fault(path, f"selectivbench {' '.join(words)}: no such command")
                    continue
            commands += 1
            for option in (word.split("=")[0].rstrip(",.") for word in words if re.match(r"--\w", word)):
                if not re.search(rf"(?:^|[\s,]){option}\b", help_of(command), re.M):
                    fault(path, f"selectivbench {' '.join(command)} has no option {option}")


def matches(shown, printed):
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()) + r"\s*\n" for line in shown)
    return re.fullmatch(pattern, printed)


with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "results").symlink_to(root / "results")
    for path, text in pages.items():
        for block in (block for block in blocks(text, "") if block.startswith("$ selectivbench ")):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, shown = part.partition("\n")
                done = run(shlex.split(command)[1:], cwd=folder)
                transcripts += 1
                if done.returncode != 0:
                    fault(path, f"{command}: exit code {done.returncode}, {done.stderr.strip()}")
                elif not matches(shown.splitlines(), done.stdout + done.stderr):
                    fault(path, f"{command} prints\n{done.stdout}{done.stderr}")

SHORT = {"train.updates": 8, "train.warmup": 2, "eval.every": 4, "eval.valid_samples": 8, "eval.test_samples": 8, "eval.ceiling_samples": 8}


def shape(line):
    return re.sub(r"\d+(?:[.,]\d+)*", "N", re.sub(r"\b[0-9a-f]{16}\b", "ID", line)).rstrip()


with tempfile.TemporaryDirectory() as folder:
    for path, text in pages.items():
        for block in (block for block in blocks(text, "") if block.startswith("$ build/release/selectivbench train ")):
            command, _, shown = block.partition("\n")
            settings = [word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")]
            done = run([*shlex.split(command)[2:], *settings], cwd=folder)
            transcripts += 1
            printed = {shape(line) for line in (done.stdout + done.stderr).splitlines()}
            for line in shown.splitlines():
                if line.strip() != "…" and shape(line) not in printed:
                    fault(path, f"{command[2:]} prints no line like '{line}' but\n{done.stdout}{done.stderr}")

for line in faults:
    print(f"[docs] {line}")
print(f"{len(pages)} pages, {links} links, {commands} commands, {transcripts} transcripts, {len(faults)} faults")
sys.exit(1 if faults or not (links and commands and transcripts) else 0)
