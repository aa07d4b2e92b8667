'use strict';
// The page's data, found by id, and what the reader has chosen to see.
(() => {
  const SB = (window.SB = window.SB || {});
  const by = (list, key) => new Map(list.map(item => [item[key], item]));

  SB.hidden = new Set(); // names of models
  const listeners = new Map(); // a part of the page that is made again replaces its listener
  SB.on_filter = (part, action) => listeners.set(part, action);
  SB.show_model = (name, shown) => {
    if (shown) SB.hidden.delete(name);
    else SB.hidden.add(name);
    for (const action of listeners.values()) action();
  };

  SB.take = data => {
    SB.data = data;
    SB.series = by(data.series, 'id');
    SB.columns = by(data.columns, 'id');
    SB.runs = by(data.runs, 'key');
    // By the names that figures have: rows of tables, and runs that go on.
    SB.hidden_series = () =>
      new Set([...data.series, ...data.board].filter(one => SB.hidden.has(one.model)).map(one => one.name));
  };

  // Of accuracies more is better, of squared errors less. `one`: a column or a run.
  SB.better = (one, value) => (value === null || value === undefined ? null : one.squared ? -value : value);
  SB.metric = () => {
    const squared = SB.data.columns.filter(column => column.squared).length;
    return !squared ? 'accuracy' : squared === SB.data.columns.length ? 'squared error' : 'result';
  };
  // What no causal model can pass: a ceiling of accuracies, a lower bound of squared errors.
  SB.limit = () => ({accuracy: 'ceiling', 'squared error': 'bound', result: 'ceiling or bound'})[SB.metric()];
  // "+1.2", points of accuracy, or "+0.0123", a squared error.
  SB.difference = (column, value) => {
    const digits = column.squared ? Math.abs(value).toFixed(4) : Math.abs(value * 100).toFixed(1);
    return (/[1-9]/.test(digits) ? (value > 0 ? '+' : '-') : '') + digits;
  };
  SB.unit_of_differences = () =>
    ({accuracy: 'points of accuracy', 'squared error': 'of squared errors', result: 'points of accuracy, or of squared errors'})[
      SB.metric()
    ];

  SB.colour = index => 'var(--c' + index + ')';

  // The line that stands for a series in every figure, beside its name.
  const dashes = ['', '4 2', '1.5 1.5', '5 1.5 1.5 1.5', '3 3', '6 2'];
  SB.key = series =>
    SB.svg(
      'svg',
      {class: 'key', viewBox: '0 0 16 16', 'aria-hidden': 'true'},
      series.dash
        ? SB.svg('path', {
            d: 'M0 8H16',
            'stroke-width': 5,
            'stroke-dasharray': dashes[series.dash % dashes.length],
            css: {stroke: SB.colour(series.colour)},
          })
        : SB.svg('rect', {x: 1, y: 1, width: 14, height: 14, rx: 4, css: {fill: SB.colour(series.colour)}}),
    );
  // All its settings on hover.
  SB.named = series => {
    const name = SB.text(series.name, 'name');
    const parts = name.textContent.split(/(?<=_)/); // a long name breaks after its underscores
    name.replaceChildren(...parts.flatMap((part, i) => (i ? [SB.h('wbr', {}), part] : [part])));
    return SB.h('span', {class: 'model', title: series.setting || null}, SB.key(series), name);
  };

  // A number and the runs it comes from: one run by its place, several as a choice of the list of runs.
  SB.cell_address = cell =>
    cell.runs.length === 1 ? '#run-' + cell.runs[0] : '#cell-' + cell.series + '-' + cell.column;
  SB.linked = (cell, ...content) =>
    cell.runs.length ? SB.h('a', {href: SB.cell_address(cell)}, ...content) : SB.h('span', {}, ...content);
})();
