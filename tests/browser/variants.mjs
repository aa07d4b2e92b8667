// Other pages from one report page: its data block is no script, so it can be replaced without a change of the page's
// policy.
import {readFileSync, writeFileSync} from 'node:fs';

const block = /(<script type="application\/json" id="data">)([\s\S]*?)(<\/script>)/;

export const data_of = file => JSON.parse(block.exec(readFileSync(file, 'utf8'))[2]);

// JSON that no parser of HTML mistakes for markup.
const safe = value =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

export function write_variant(file, out, change) {
  const data = data_of(file);
  change(data);
  writeFileSync(
    out,
    readFileSync(file, 'utf8').replace(block, (whole, open, old, close) => open + safe(data) + close),
  );
  return data;
}

// As many runs as asked for: those there are, again and again under new keys, and a setting more a round in summary,
// figures and comparisons.
export function with_many_runs(data, wanted) {
  const runs = data.runs,
    series = data.series,
    rows = data.summary.rows,
    cells = data.summary.cells;
  const rounds = Math.max(1, Math.ceil(wanted / runs.length));
  const all = {runs: [], series: [], rows: [], cells: []};
  for (let round = 0; round < rounds; round++) {
    const key = name => (round ? name + '-' + round : name);
    const named = name => (round ? name + ', round ' + round : name);
    all.runs.push(...runs.map(run => ({...run, key: key(run.key), series: run.series && key(run.series)})));
    all.series.push(
      ...series.map(one => ({
        ...one,
        id: key(one.id),
        name: named(one.name),
        setting: round ? 'round ' + round : one.setting,
        dash: round,
      })),
    );
    all.rows.push(...rows.map(row => ({...row, series: key(row.series)})));
    all.cells.push(...cells.map(cell => ({...cell, series: key(cell.series), runs: cell.runs.map(key)})));
  }
  data.runs = all.runs.slice(0, wanted);
  const kept = new Set(data.runs.map(run => run.key));
  data.series = all.series;
  data.summary = {
    ...data.summary,
    rows: all.rows,
    cells: all.cells.map(cell => ({...cell, runs: cell.runs.filter(run => kept.has(run))})),
  };
}

// Figures of eight settings a model: as many lines as people still draw together.
export function with_many_lines(data, rounds = 8) {
  const named = (name, round) => (round ? name + ', round ' + round : name);
  for (const figure of data.figures) {
    const at = figure.columns.findIndex(column => column.key === 'series');
    const names = new Set(figure.series.map(id => data.series.find(one => one.id === id).name));
    if (at < 0 || !/^(learning|loss|position|gap_frame|since_certain|entropy|gaps)$/.test(figure.kind)) continue;
    const {rows, series, palette} = figure;
    for (let round = 1; round < rounds; round++) {
      const own = rows.filter(row => names.has(row[at]));
      figure.rows = figure.rows.concat(own.map(row => row.map((value, i) => (i === at ? named(value, round) : value))));
      figure.series = figure.series.concat(series.map(id => id + '-' + round));
      figure.palette = figure.palette.concat(palette);
    }
    const wider = (key, value) =>
      key === 'domain' && Array.isArray(value) && names.has(value[0])
        ? Array.from({length: rounds}, (unused, round) => value.map(name => named(name, round))).flat()
        : value;
    figure.spec = JSON.parse(JSON.stringify(figure.spec, wider));
    figure.height += 20 * (Math.ceil(figure.series.length / 4) - Math.ceil(series.length / 4));
  }
}

// Two runs that go on, as `watch` serves them: a board, and their losses.
export function with_running(data) {
  const loss = data.figures.find(figure => figure.kind === 'loss');
  const at = loss.columns.findIndex(column => column.key === 'series');
  const own = loss.series.slice(0, 2).map(id => data.series.find(one => one.id === id));
  const name = series => series.name + ', task 1, seed 9';
  data.board = own.map((series, i) => ({
    key: data.runs[i].key,
    name: name(series),
    model: series.model,
    update: 50 + i,
    updates: 200,
    fraction: (50 + i) / 200,
    rate_text: '3.1 updates/s',
    left_text: '48 s',
    state: 'running',
  }));
  data.figures.push({
    ...loss,
    id: 'running-loss',
    kind: 'running_loss',
    section: 'board',
    setting: '',
    series: [],
    palette: own.map(series => series.colour),
    rows: own.flatMap(series =>
      loss.rows
        .filter(row => row[at] === series.name)
        .map(row => row.map((value, i) => (i === at ? name(series) : value))),
    ),
    spec: JSON.parse(
      JSON.stringify(loss.spec, (key, value) => (key === 'domain' && Array.isArray(value) ? own.map(name) : value)),
    ),
  });
}

// Every string a reader could have chosen: markup, quotes, other directions, ten thousand characters.
export const hostile = [
  '</script><script>window.broken = 1</script>',
  '"><img src=x onerror="window.broken = 1">',
  '\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd',
  '<!--<script>',
  "' onfocus='window.broken = 1",
  '{{DATA}} $& $1',
  'x'.repeat(10000),
  'a\u2028b\u2029c\\x07',
];
export function with_hostile_strings(data) {
  let next = 0;
  const nasty = () => hostile[next++ % hostile.length];
  data.meta.title = hostile[0];
  data.meta.headline = hostile.slice();
  data.meta.warnings = hostile.slice();
  data.meta.notes = hostile.slice();
  const names = new Map();
  for (const series of data.series) {
    const name = nasty() + ' ' + series.name;
    names.set(series.name, name);
    series.name = series.setting = name;
  }
  for (const column of data.columns) {
    column.name = nasty();
    column.lines = [nasty()];
  }
  for (const section of data.sections) {
    section.title = nasty();
    section.text = [nasty()];
    section.absent = [nasty()];
  }
  for (const figure of data.figures) {
    const at = figure.columns.findIndex(column => column.key === 'series');
    figure.title = nasty();
    figure.caption = nasty();
    if (at >= 0) for (const row of figure.rows) row[at] = names.get(row[at]) || row[at];
    figure.spec = JSON.parse(
      JSON.stringify(figure.spec, (key, value) =>
        key === 'domain' && Array.isArray(value) ? value.map(v => names.get(v) || v) : value,
      ),
    );
  }
  for (const run of data.runs) {
    run.label = nasty();
    run.folder = nasty();
    run.id = run.key === data.runs[0].key ? '' : run.id;
    run.seeds_text = nasty();
    run.problems = [nasty()];
    run.config = [[nasty(), nasty(), nasty()], ...run.config];
  }
  for (const sample of data.samples) {
    sample.title = nasty();
    for (const element of sample.elements) {
      element.symbol = nasty();
      element.state = nasty();
    }
  }
  for (const part of data.method) {
    part.title = nasty();
    part.blocks.push(
      {kind: 'p', text: nasty()},
      {kind: 'formula', mathml: '<svg onload="window.broken=1"/>', text: nasty()},
    );
  }
}
