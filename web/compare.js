'use strict';
// Two models, or two settings of one, on the same grammars.
(() => {
  const SB = (window.SB = window.SB || {});

  // a - b as it stands in the data, or turned round; null where the two share no grammar.
  SB.pair_of = (column, a, b) => {
    const straight = column.pairs.find(pair => pair[0] === a && pair[1] === b);
    if (straight) {
      const [, , n, mean, low, high, p, text, interval, p_text] = straight;
      return {n, mean, low, high, p, text, interval, p_text};
    }
    const turned = column.pairs.find(pair => pair[0] === b && pair[1] === a);
    if (!turned) return null;
    const [, , n, mean, low, high, p, text, interval, p_text] = turned;
    const negative = value => (value === null ? null : -value);
    return {
      n,
      mean: negative(mean),
      low: negative(high),
      high: negative(low),
      p,
      text: turned_sign(text),
      interval: turned_interval(interval),
      p_text,
    };
  };
  // "+1.2" to "-1.2" and "[-1.0, +3.4]" to "[-3.4, +1.0]": the digits stay.
  const other_sign = sign => (sign === '+' ? '-' : '+');
  const turned_sign = text => (/[1-9]/.test(text) ? text.replace(/^[+\-−]/, other_sign) : text);
  const turned_interval = text => {
    const ends = /^\[([^,]+), ([^\]]+)\]$/.exec(text);
    return ends ? '[' + turned_sign(ends[2]) + ', ' + turned_sign(ends[1]) + ']' : text;
  };

  // Differences around zero, those in which the first is better to the right: one mark a grammar, the mean and its
  // interval.
  function forest(column, differences, pair, reach) {
    const at = value => 100 + (SB.better(column, value) / reach) * 95;
    return SB.svg(
      'svg',
      {class: 'forest', viewBox: '0 0 200 24', 'aria-hidden': 'true'},
      SB.svg('path', {class: 'zero', d: 'M100 0V24'}),
      differences.map(value => SB.svg('circle', {class: 'one', cx: at(value), cy: 6, r: 2.6})),
      pair && pair.low !== null
        ? SB.svg('path', {class: 'range', d: 'M' + at(pair.low) + ' 17H' + at(pair.high)})
        : null,
      pair ? SB.svg('path', {class: 'mean', d: 'M' + at(pair.mean) + ' 12.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z'}) : null,
    );
  }

  const column_of = line => SB.columns.get(line.column.column);
  // Largest difference of lines.
  const reach_of = lines => {
    const all = lines.flatMap(line => [
      ...line.grammars.map(g => g.difference),
      ...(line.pair ? [line.pair.low, line.pair.high, line.pair.mean] : []),
    ]);
    return Math.max(0, ...all.filter(value => value !== null).map(Math.abs));
  };
  // Accuracies have one scale; squared errors of each column one of their own.
  SB.compare_reach = (lines, line) => {
    const squared = column_of(line).squared;
    const reach = reach_of(squared ? [line] : lines.filter(other => !column_of(other).squared));
    return squared ? reach || 1 : Math.max(0.01, reach);
  };

  function lines_of(a, b) {
    const lines = [];
    for (const column of SB.data.compare.columns) {
      const value_a = column.values.find(value => value.series === a),
        value_b = column.values.find(value => value.series === b);
      if (!value_a || !value_b) continue;
      const grammars = column.grammars
        .map((name, i) => ({
          column,
          name,
          a: value_a.mean[i],
          b: value_b.mean[i],
          a_text: value_a.text[i],
          b_text: value_b.text[i],
          difference: value_a.mean[i] === null || value_b.mean[i] === null ? null : value_a.mean[i] - value_b.mean[i],
        }))
        .filter(line => line.a !== null || line.b !== null);
      if (grammars.length) lines.push({column, grammars, pair: SB.pair_of(column, a, b)});
    }
    return lines;
  }

  SB.build_compare = (place, state) => {
    const data = SB.data;
    const present = new Set(data.compare.columns.flatMap(column => column.values.map(value => value.series)));
    const offered = data.series.filter(series => present.has(series.id));
    place.append(SB.h('p', {}, SB.text(data.compare.text)));
    if (data.compare.note) place.append(SB.h('p', {class: 'note'}, SB.text(data.compare.note)));
    if (offered.length < 2) {
      place.append(
        SB.h('p', {class: 'muted'}, 'There is nothing to compare: all runs have the same model and setting.'),
      );
      return;
    }
    if (!present.has(state.a)) state.a = offered[0].id;
    if (!present.has(state.b)) state.b = offered[1].id;
    const options = offered.map(series => [series.id, series.name]);
    const out = SB.h('div', {'aria-live': 'polite'});

    const put = () => {
      const a = SB.series.get(state.a),
        b = SB.series.get(state.b);
      const lines = lines_of(state.a, state.b);
      const cell = id => data.summary.cells.find(c => c.series === id[0] && c.column === id[1]);
      const mean = (id, line) => {
        const found = cell([id, line.column.column]);
        return found ? SB.linked(found, found.mean_text) : '–';
      };
      const name = line => column_of(line).name;
      const scale = line => {
        const reach = SB.compare_reach(lines, line);
        return '± ' + (column_of(line).squared ? reach.toFixed(4) : (reach * 100).toFixed(1) + ' points');
      };
      const scales = new Set(lines.map(scale));
      const overview = SB.table({
        label: 'Differences by task',
        rows: lines,
        columns: [
          {
            title: 'task',
            head: true,
            left: true,
            key: line => data.columns.findIndex(c => c.id === line.column.column),
            cell: line => SB.text(name(line)),
          },
          {title: a.name, key: null, cell: line => mean(state.a, line)},
          {title: b.name, key: null, cell: line => mean(state.b, line)},
          {
            title: 'difference',
            about: SB.unit_of_differences(),
            falling: true,
            key: line => (line.pair ? SB.better(column_of(line), line.pair.mean) : null),
            cell: line => (line.pair ? line.pair.text : '–'),
            name: 'difference',
          },
          {title: '95 % interval', key: null, cell: line => (line.pair ? SB.dash(line.pair.interval) : '–')},
          {
            title: 'p',
            key: line => (line.pair ? line.pair.p : null),
            cell: line => (line.pair ? SB.dash(line.pair.p_text) : '–'),
          },
          {title: 'grammars', key: line => (line.pair ? line.pair.n : 0), cell: line => (line.pair ? line.pair.n : 0)},
          {
            title: scales.size === 1 ? [...scales][0] : 'scale',
            left: true,
            name: 'forest-cell',
            cell: line => [
              forest(
                column_of(line),
                line.grammars.map(g => g.difference).filter(value => value !== null),
                line.pair,
                SB.compare_reach(lines, line),
              ),
              scales.size === 1 ? null : SB.h('span', {class: 'small muted'}, scale(line)),
            ],
          },
        ],
      });
      const single = SB.table({
        label: 'Differences by grammar',
        tall: true,
        rows: lines.flatMap(line => line.grammars),
        columns: [
          {
            title: 'task',
            head: true,
            left: true,
            key: g => data.columns.findIndex(c => c.id === g.column.column),
            cell: g => SB.text(SB.columns.get(g.column.column).name),
          },
          {title: 'grammar', left: true, key: g => g.name, cell: g => SB.text(g.name)},
          {title: a.name, falling: true, key: g => SB.better(column_of(g), g.a), cell: g => g.a_text},
          {title: b.name, falling: true, key: g => SB.better(column_of(g), g.b), cell: g => g.b_text},
          {
            title: 'difference',
            falling: true,
            key: g => SB.better(column_of(g), g.difference),
            cell: g => (g.difference === null ? '–' : SB.difference(column_of(g), g.difference)),
          },
        ],
      });
      out.replaceChildren(
        SB.h('p', {class: 'versus'}, SB.named(a), SB.h('span', {class: 'muted'}, ' minus '), SB.named(b)),
        lines.length ? overview.element : SB.h('p', {class: 'muted'}, 'These two rows have no task in common.'),
        lines.length
          ? SB.h(
              'p',
              {class: 'small muted'},
              'Circles: one grammar each. Diamond and line: mean and 95 % interval. ',
              'Right of the middle line, the first row is better.',
            )
          : '',
        lines.length ? SB.h('h3', {}, 'By grammar') : '',
        lines.length ? single.element : '',
      );
    };
    const first = SB.picker('First', options, state.a, id => {
      state.a = id;
      put();
    });
    const second = SB.picker('Second', options, state.b, id => {
      state.b = id;
      put();
    });
    place.append(
      SB.h(
        'div',
        {class: 'row'},
        first,
        second,
        SB.h(
          'button',
          {
            type: 'button',
            onclick: () => {
              [state.a, state.b] = [state.b, state.a];
              first.querySelector('select').value = state.a;
              second.querySelector('select').value = state.b;
              put();
            },
          },
          'Swap',
        ),
      ),
      out,
    );
    put();
  };
})();
