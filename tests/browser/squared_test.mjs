// The page's tables with accuracies and squared errors, and its samples, drawn without a browser: of squared errors,
// less is better.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import vm from 'node:vm';

// The part of a document that tables need.
class Element {
  constructor(tag) {
    Object.assign(this, {tag, children: [], attributes: {}, styles: {}, listeners: {}, hidden: false});
    this.style = {setProperty: (name, value) => (this.styles[name] = value)};
    this.classList = {add() {}, remove() {}, toggle() {}};
  }
  append(...nodes) {
    this.children.push(...nodes);
  }
  replaceChildren(...nodes) {
    this.children = nodes;
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  getAttribute(name) {
    return this.attributes[name] ?? null;
  }
  removeAttribute(name) {
    delete this.attributes[name];
  }
  addEventListener(name, action) {
    this.listeners[name] = action;
  }
  get textContent() {
    return this.children.map(child => (child instanceof Element ? child.textContent : String(child))).join('');
  }
  set textContent(text) {
    this.children = [text];
  }
  all(test) {
    const inside = this.children.flatMap(child => (child instanceof Element ? child.all(test) : []));
    return test(this) ? [this, ...inside] : inside;
  }
  of(tag) {
    return this.all(node => node.tag === tag);
  }
  querySelector(tag) {
    return this.of(tag)[0];
  }
  // Selectors '.class' and '[name="value"]'.
  querySelectorAll(selector) {
    if (selector.startsWith('.')) return this.styled(selector.slice(1));
    const [, name, value] = selector.match(/^\[(.+)="(.*)"\]$/);
    return this.all(node => String(node.getAttribute(name)) === value);
  }
  styled(name) {
    return this.all(node => (node.attributes.class || '').split(' ').includes(name));
  }
}

const cell = (series, column, mean, more) => ({
  series, column, mean, mean_text: mean.toFixed(3), low: null, high: null, interval_text: '', sd_text: '', sd_over: '',
  fraction: null, fraction_text: '–', n_gram_text: '–', ceiling_text: column === 'c1' ? '≥ 0.200' : '0.900',
  chance_text: '–', paper: null, paper_text: '', difference: null, difference_text: '', grammars: 1, seeds: 1,
  n_text: '1 run', uneven_text: '', best: false, versus_best: null, marks: [], runs: [series + column], ...more,
});
const column = (id, squared, ceiling) => ({
  id, name: squared ? 'task tracking, squared error' : 'task 1', task: squared ? 'tracking' : 1,
  lines: [squared ? 'task tracking' : 'task 1'], squared,
  ceiling, ceiling_text: squared ? '≥ 0.200' : '0.900', n_gram_text: '–', chance_text: squared ? '–' : '0.100',
});
const run = (key, squared, test, ceiling_text) => ({
  key, id: key, folder: key, model: 'a', series: 's0', column: squared ? 'c1' : 'c0', task: 1, seeds_text: '', label: '',
  standing: 'averaged', state: 'intact', squared, test, test_text: String(test), valid: test, valid_text: String(test),
  ceiling_text, precision_text: '', wall: 1, wall_text: '', speed: 1, speed_text: '', problems: [], points: [], config: [],
});
const both = [column('c0', false, 0.9), column('c1', true, 0.2)];
const data_of = columns => ({
  columns,
  series: ['s0', 's1'].map((id, i) => ({id, name: 'model ' + id, model: id, setting: '', colour: i, dash: 0})),
  summary: {
    caption: [],
    rows: ['s0', 's1'].map(series => ({series, params: 1, params_text: '1', state: 1, state_text: '1', speed: 1, speed_text: '1', precision_text: ''})),
    cells: [cell('s0', 'c0', 0.5), cell('s1', 'c0', 0.7), cell('s0', 'c1', 1.5), cell('s1', 'c1', 0.3, {best: true})]
      .filter(one => columns.some(c => c.id === one.column)),
  },
  compare: {
    text: '', note: null,
    columns: columns.map(({id, squared}) => ({
      column: id, grammars: ['grammar 1'],
      values: squared
        ? [{series: 's0', mean: [1.5], text: ['1.500']}, {series: 's1', mean: [0.3], text: ['0.300']}]
        : [{series: 's0', mean: [0.5], text: ['0.500']}, {series: 's1', mean: [0.7], text: ['0.700']}],
      pairs: [['s0', 's1', 1, squared ? 1.2 : -0.2, null, null, null, squared ? '+1.2000' : '-20.0', '', '–']],
    })),
  },
  runs: [run('r0', true, 1.5, '≥ 0.2'), run('r1', true, 0.3, '≥ 0.1'), run('r2', false, 0.5, '0.9'), run('r3', false, 0.7, '≤ 0.8')],
  samples: columns.map(({id, squared}) => ({
    id: id + '-0', column: id, title: id, length: 1, filter: [[['x', 1]]], models: [],
    elements: [{symbol: 'A', state: 'x', gap: squared ? 0 : 1, gap_symbols: squared ? [] : ['·']}],
  })),
  figures: [], board: [], meta: {notes: []},
});

function page(columns) {
  const document = {createElement: tag => new Element(tag), createElementNS: (_, tag) => new Element(tag)};
  const window = {};
  const context = vm.createContext({window, document, Intl, performance, history: {replaceState() {}}});
  for (const name of ['dom', 'data', 'table', 'summary', 'compare', 'runs', 'sample'])
    vm.runInContext(readFileSync(new URL('../../web/' + name + '.js', import.meta.url), 'utf8'), context, {filename: name});
  window.SB.figure_grid = () => ({cards: [], element: ''});
  window.SB.take(data_of(columns));
  return window.SB;
}
const drawn = (build, columns = both) => {
  const place = new Element('div');
  build(page(columns), place);
  return place;
};
const summary = (SB, place) => SB.build_summary(place, {});
// Texts of a table's column after a click on its head.
function sorted(table, title) {
  const head = table.of('thead')[0].of('th').findIndex(th => th.textContent === title);
  assert.notEqual(head, -1, title);
  table.of('thead')[0].of('th')[head].of('button')[0].listeners.click();
  return table.of('tbody')[0].of('tr').map(row => row.children.filter(node => node instanceof Element)[head].textContent);
}

const claims = {
  'one click sorts the best first, whatever the metric'() {
    const table = drawn(summary).styled('matrix')[0];
    assert.match(sorted(table, 'task 1')[0], /0\.700/);
    assert.match(sorted(table, 'task tracking')[0], /0\.300/);
    const cells = drawn(summary).styled('cells')[0];
    assert.deepEqual(sorted(cells, 'result'), ['0.700', '0.500', '0.300', '1.500']);
  },
  'bars of squared errors end at the largest of their column'() {
    const meters = drawn(summary).styled('matrix')[0].styled('meter').map(node => node.styles);
    const means = meters.map(style => Number(style['--mean'].toFixed(3)));
    assert.deepEqual(means, [0.5, 1, 0.7, 0.2]);
    assert.ok(Math.abs(meters[1]['--ceiling'] - 0.2 / 1.5) < 1e-9);
  },
  'a page of squared errors alone says neither accuracy nor ceiling share'() {
    const text = drawn(summary, [both[1]]).textContent;
    assert.doesNotMatch(text, /accuracy|Accuracy|Share of the ceiling/);
    assert.match(text, /Squared error/);
    const compare = drawn((SB, place) => SB.build_compare(place, {}), [both[1]]);
    assert.doesNotMatch(compare.textContent, /points|accuracy/);
  },
  'limits of squared errors are bounds, and empty lines are left out'() {
    const foot = columns => drawn(summary, columns).styled('matrix')[0].of('tfoot')[0].of('tr')
      .map(line => line.children.filter(node => node instanceof Element).map(node => node.textContent));
    assert.deepEqual(foot([both[1]]), [['bound', '', '≥ 0.200']]);
    assert.deepEqual(foot([both[0]]), [['ceiling', '', '0.900'], ['chance', '', '0.100']]);
    assert.deepEqual(foot(both).map(line => line[0]), ['ceiling', 'bound', 'chance']);
    assert.doesNotMatch(drawn(summary, [both[1]]).styled('cells')[0].textContent, /ceiling[^ ]/);
  },
  'vectors are shown by their norm, and pauses are marked'() {
    const SB = page(both), place = new Element('div');
    Object.assign(SB.data.samples[1], {dense: true});
    Object.assign(SB.data.samples[1].elements[0], {symbol: '1.83', paused: true});
    SB.build_try(place, {sample: 'c1-0'});
    assert.match(place.textContent, /boxes show their norm, dashed boxes are pauses.*1\.83, pause/s);
    assert.match(place.textContent, /Element 0 of 1: pause, norm/);
  },
  'a page of accuracies says accuracy'() {
    assert.match(drawn(summary, [both[0]]).textContent, /Accuracy.*Share of the ceiling/s);
  },
  'compare: the better model is to the right, on a scale of its own metric'() {
    const place = drawn((SB, at) => SB.build_compare(at, {a: 's0', b: 's1'}));
    const [accuracy, error] = place.styled('forest').map(svg => Number(svg.of('circle')[0].attributes.cx));
    assert.ok(accuracy < 100 && error < 100, 's0 has less accuracy and more error');
    assert.deepEqual([accuracy, error].map(Math.round), [5, 5], 'each scale ends at its own largest difference');
    assert.match(place.textContent, /± 20\.0 points/);
    assert.match(place.textContent, /± 1\.2000/);
    const single = place.of('table').at(-1);
    assert.deepEqual(sorted(single, 'difference'), ['-20.0', '+1.2000'], 'as digits of their metric');
  },
  'runs sort by what is better, bounds included'() {
    const table = drawn((SB, place) => SB.build_runs(place, {})).styled('runs')[0];
    assert.deepEqual(sorted(table, 'test'), ['0.7', '0.5', '0.3', '1.5']);
    assert.deepEqual(sorted(table, 'ceiling or bound'), ['0.9', '≤ 0.8', '≥ 0.1', '≥ 0.2']);
  },
  'try it speaks of gaps and the grammar only for tasks that have them'() {
    const text = columns => drawn((SB, place) => SB.build_try(place, {}), columns).textContent;
    assert.match(text([both[0]]), /exact filter knows the grammar.*true state.*1 gap frame/s);
    assert.match(text([both[1]]), /oracle knows how samples are drawn.*right answer/s);
    assert.doesNotMatch(text([both[1]]), /gap|grammar|exact filter/);
  },
};
let failed = 0;
for (const [name, claim] of Object.entries(claims)) {
  try {
    claim();
    console.log('ok     ' + name);
  } catch (error) {
    failed = 1;
    console.log('FAILED ' + name + '\n' + error.stack);
  }
}
process.exit(failed);
