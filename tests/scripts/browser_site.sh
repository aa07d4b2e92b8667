#!/usr/bin/env bash
# browser_site.sh BUILD PYTHON: the leaderboard of the shipped results and a card in Chromium, with the network off. BUILD is a CMake build
# that has the Python module. Exit code 77 (skipped) where Chromium, node or the node modules are missing.
set -uo pipefail
build=$(realpath "$1") python=$2
here=$(cd "$(dirname "$0")/.." && pwd)
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
[[ -x /usr/bin/chromium ]] || skip "no /usr/bin/chromium (apt-get install chromium)"
command -v node > /dev/null || skip "no node (apt-get install nodejs)"
[[ -d $here/browser/node_modules/playwright-core ]] || skip "no node modules (npm ci --prefix tests/browser)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$here/../scripts/python-env" "$build" "$python" > /dev/null || fail "the package cannot be installed"
package=("$build/python/env/bin/python3" -m selectivbench)
cd "$work" || exit 1
mkdir submissions
"${package[@]}" site --out site --submissions submissions "$here"/../results/*.tar.gz "$here"/../python/peers/*.tar.gz > said 2>&1 ||
  fail "site: $(cat said)"
# A card without a training: a shipped model stands for the mixer.
"$build/python/env/bin/python3" - << 'END' || fail "card"
from selectivbench.card import as_html
from selectivbench.peers import load_peers
from selectivbench.ranked import make_ranking

peers = load_peers("quick")
rows = {(run["task"], run["grammar_seed"]): run for run in peers.runs if run["model"] == "gla"}
identity = {"device": "cpu", "budget": 600.0, "residual": "post", "version": peers.version, "mixer": "0", "skip": []}
facts = {"state_size": 2048, "width": 64, "layers": 2, "parameters": 82449, "tokens_per_second": 1000, "machine": "any", "precision": "fp32",
         "threads": 2, "rate": 0.01, "valid": [[0.01, 0.5]], "torch": "1.13", "identity": identity, "tasks": [1, 2, 3], "diverged": []}
with open("card.html", "w", encoding="utf-8") as file:
    file.write(as_html(make_ranking("mine", peers, facts, rows)))
END
node "$here/browser/site_test.mjs" site card.html
