#!/usr/bin/env python3
"""ARCHITECTURE.md draws modules and arrows; the #include lines of src/ must say the same. What is compiled without torch's headers
reaches none of them, which a machine that has them in its system's folder does not notice.

usage: modules.py SOURCE_DIR
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = (root / "ARCHITECTURE.md").read_text()
faults = []

# The table: | `module` | holds | may use |
may_use = {}
for name, uses in re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", page, re.M):
    may_use[name] = None if uses == "all" else set() if uses == "–" else set(uses.split(", "))
modules = {path.name for path in (root / "src").iterdir() if path.is_dir()}
if modules != set(may_use):
    faults.append(f"modules of src/ {sorted(modules)}, rows of the table {sorted(may_use)}")
for name, uses in may_use.items():
    if uses is None:
        may_use[name] = modules - {name}


def reach(name):
    """Every module below this one."""
    seen, left = set(), [name]
    while left:
        for below in may_use.get(left.pop(), ()):
            if below not in seen:
                seen.add(below)
                left.append(below)
    return seen


for name in may_use:
    if name in reach(name):
        faults.append(f"{name} reaches itself in the table")

# The picture: a -> b means b uses a; a diagonal arrow leaves the module that ends above it; (<- c) is one more arrow.
picture = re.search(r"```\n(.*?)```", page, re.S).group(1).splitlines()
drawn, ends = set(), {}
for row, line in enumerate(picture):
    line = re.split(r"\s{3,}(?=\w+ \w+)", line)[0]  # the remark at the right
    before, last_end = None, 0
    for match in re.finditer(r"\(← (\w+)\)|↘|(\w+)", line):
        if match.group(0) == "↘":
            before = next((module for module, (r, end) in ends.items() if r == row - 1 and end == match.start()), None)
            if before is None:
                faults.append(f"the arrow at column {match.start()} of line {row + 1} leaves no module")
        elif match.group(1):
            drawn.add((before, match.group(1)))
        else:
            module = match.group(2)
            if before:
                drawn.add((module, before))
            before = module
            ends[module] = (row, match.end())
if set(ends) != modules:
    faults.append(f"modules drawn {sorted(ends)}, modules of src/ {sorted(modules)}")
everything = [name for name, uses in may_use.items() if uses == modules - {name}]  # not drawn arrow by arrow
table = {(name, below) for name, uses in may_use.items() if name not in everything for below in uses}
drawn = {arrow for arrow in drawn if arrow[0] not in everything}
for arrow in sorted(table ^ drawn):
    faults.append(f"the arrow {arrow[1]} -> {arrow[0]} is {'in the table only' if arrow in table else 'drawn only'}")

# The includes.
used = set()
for path in sorted((root / "src").rglob("*")):
    if path.suffix not in {".h", ".cpp", ".cu", ".cuh", ".def"}:
        continue
    module = path.relative_to(root / "src").parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        include = re.match(r'\s*#\s*include\s+"(\w+)/', line)
        if not include or include.group(1) not in modules or include.group(1) == module:
            continue
        used.add((module, include.group(1)))
        if include.group(1) not in reach(module):
            faults.append(f"{path.relative_to(root)}:{number}: {module} includes {include.group(1)}, which lies beside or above it")
for module, below in sorted(table - used):
    # An arrow may stand for what is reached through it.
    if not any(further in reach(below) for user, further in used if user == module):
        faults.append(f"{module} uses nothing of {below}: the arrow is not needed")

# Torch's headers: modules and files that are compiled with them, by the CMakeLists.txt beside them.
TORCH = re.compile(r"\s*#\s*include\s+<(?:ATen|c10|torch|caffe2)/")
INCLUDE = re.compile(r'\s*#\s*include\s+"([\w/.]+)"')
ways = {}  # file of src/ -> the includes from it to one of torch's headers; none: it reaches none


def way_to_torch(path):
    if path not in ways:
        ways[path] = None  # where files include each other
        lines = path.read_text().splitlines()
        if any(TORCH.match(line) for line in lines):
            ways[path] = [path.name]
        for match in filter(None, map(INCLUDE.match, lines)):
            below = root / "src" / match.group(1)
            if ways[path] is None and below.exists() and way_to_torch(below):
                ways[path] = [path.name, *way_to_torch(below)]
    return ways[path]


without = []
for module in sorted(modules):
    lists = (root / "src" / module / "CMakeLists.txt").read_text()
    if re.search(r"sb_module\(\w+ TORCH", lists):
        continue
    with_torch = set()
    for names in re.findall(r"list\(APPEND torch_sources\s+([^)]*)\)", lists):
        with_torch |= set(names.split())
    for names, form in re.findall(r"foreach\(command ([^)]*)\)\s*list\(APPEND torch_sources ([^)]*)\)", lists):
        with_torch |= {form.replace("${command}", name) for name in names.split()}
    for path in sorted((root / "src" / module).rglob("*.cpp")):
        if str(path.relative_to(root / "src" / module)) not in with_torch:
            without.append(path)
for path in without:
    if way := way_to_torch(path):
        faults.append(f"{path.relative_to(root)} is compiled without torch's headers and includes one: {' -> '.join(way)}")

for fault in faults:
    print(f"[modules] {fault}")
print(f"{len(modules)} modules, {len(used)} pairs that include each other, {len(without)} files without torch, {len(faults)} faults")
sys.exit(1 if faults else 0)
