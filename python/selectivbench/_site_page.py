"""Fixed parts of the leaderboard's pages: words, style, and the script of filters and sorting."""

INTRO = """<p>SelectivBench measures how well sequence models keep what matters in their state and drop the rest. Accuracy is the
share of elements whose hidden state a model names; the ceiling is the best that any causal model can expect. Compare models only within
one task, scale and protocol, and with the same settings of task and training. The 95 % interval is over grammars; without an interval, a
small difference is no evidence.</p>
<p>The column settings lists the differences from the standard runs of the task and scale, such as the training of an ablation. Other
kinds of tasks have no standard runs: the column lists the settings in which results of the task differ. Without scripts, all results are
listed.</p>
<p>Every accuracy links to its runs. Shipped models were trained by the program. Of a submitted model, marked (external), every test
answer was scored again from its stored predictions; how it was trained is self-reported. Runs on grammar 11, on which settings were
chosen, are not listed, nor are tasks scored by squared error.</p>"""

FILTERS = """<form id="filters" hidden>
<label>task <select name="task" data-column="1"></select></label>
<label>scale <select name="scale" data-column="10"></select></label>
<label>protocol <select name="protocol" data-column="11"></select></label>
<label>parameters at most <input type="number" name="params" min="0"></label>
<label>state values at most <input type="number" name="state" min="0"></label>
<label><input type="checkbox" name="standard" checked> only standard settings</label>
<span id="count" role="status"></span></form>"""

STYLE = """:root { color-scheme: light dark; --page: #fff; --text: #16191d; --line: #d5dae1; --raised: #f6f7f9; --accent: #0a58a8; }
@media (prefers-color-scheme: dark) { :root { --page: #121418; --text: #e9ebee; --line: #363d49; --raised: #1a1d23; --accent: #8ac0ff; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1400px; margin: 2em auto; padding: 0 1em; color: var(--text); background: var(--page); }
a { color: var(--accent); } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; line-height: 1.35; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 4px; border-bottom: 1px solid var(--line); text-align: left; }
#results td:nth-child(-n+3), h2 + .wide td:last-child { overflow-wrap: anywhere; min-width: 6em; }
#results td:first-child { min-width: 10.5em; } #results td:nth-child(5) { white-space: nowrap; }
h2 + .wide table { font-size: 12.5px; }
th { background: var(--raised); } th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
th[aria-sort] button::after { content: " ▾"; } th[aria-sort="ascending"] button::after { content: " ▴"; }
.number { text-align: right; } :target { background: var(--raised); }
form { display: flex; flex-wrap: wrap; gap: 0.5em 1.5em; margin: 1em 0; } form[hidden] { display: none; }
input[type="number"] { width: 8em; }"""

SCRIPT = """(() => {
  const form = document.getElementById("filters"), body = document.querySelector("#results tbody");
  const rows = [...body.rows], text = (row, column) => row.cells[column].textContent;
  for (const select of form.querySelectorAll("select")) {
    const values = [...new Set(rows.map(row => text(row, select.dataset.column)))].sort();
    for (const value of ["all", ...values]) select.add(new Option(value, value === "all" ? "" : value));
  }
  const within = (most, value) => most === "" || (value !== "" && Number(value) <= Number(most));
  const filter = () => {
    let shown = 0;
    for (const row of rows) {
      const chosen = [...form.querySelectorAll("select")].every(each => !each.value || text(row, each.dataset.column) === each.value);
      const standard = !form.standard.checked || !("other" in row.dataset);
      row.hidden = !(chosen && standard && within(form.params.value, row.dataset.params) && within(form.state.value, row.dataset.state));
      shown += !row.hidden;
    }
    document.getElementById("count").textContent = shown + " of " + rows.length;
  };
  const number = value => Number(value.replace(/[,≤ ]/g, ""));
  document.querySelectorAll("#results th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && head.className !== "number");
      for (const each of head.parentNode.cells) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const compare = (a, b) => {
        const [x, y] = [text(a, column), text(b, column)], [m, n] = [number(x), number(y)];
        if (isNaN(m) !== isNaN(n)) return isNaN(m) ? 1 : -1;
        return (up ? 1 : -1) * (isNaN(m) ? x.localeCompare(y) : m - n);
      };
      body.append(...rows.sort(compare));
    };
  });
  form.addEventListener("input", filter);
  form.hidden = false;
  filter();
})();"""
