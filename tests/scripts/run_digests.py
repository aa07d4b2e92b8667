"""Digests of finished runs, for the scripts that work on them in several ways."""

import hashlib
import json


def digests(root):
    """What must not depend on who worked on a run, when and how often."""
    out = {}
    for run in sorted(path.parent for path in root.glob("*/result.json")):
        result = json.loads((run / "result.json").read_text())
        out[run.name] = [hashlib.sha256((run / name).read_bytes()).hexdigest() for name in ("metrics.jsonl", "final.safetensors")]
        out[run.name].append(result["numbers_sha256"])
    return out
