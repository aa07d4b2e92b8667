'use strict';
// The summary: a matrix of models and tasks, and every cell of it as a line with all that is known of it.
(() => {
  const SB = (window.SB = window.SB || {});

  // Kind of a mark: its sign, what it means in the legend, whether it warns.
  const signs = {
    best: ['★', 'best mean in its column'],
    tied: ['≈', 'not significantly different from the best'],
    worse: ['▽', 'significantly worse than the best'],
    one_grammar: ['¹', 'only one grammar, so no interval'],
    diverged: ['✕', 'runs diverged', true],
    fewer_grammars: ['ⁿ', 'mean over fewer grammars than other cells of its column'],
    missing: ['◌', 'runs are missing', true],
    above_ceiling: ['⇡', 'above the ceiling', true],
    paper_outside: ['≠', 'the paper’s figure lies outside the interval'],
    inexact: ['≤', 'the ceiling is an upper bound only'],
  };
  SB.mark_signs = cell =>
    cell.marks.map(mark => {
      const sign = signs[mark.kind] || ['•', mark.text];
      return SB.h(
        'span',
        {class: 'mark' + (sign[2] ? ' down' : ''), title: mark.text},
        SB.h('span', {'aria-hidden': 'true'}, sign[0]),
        SB.only_read(' ' + mark.text),
      );
    });

  // End of the bars of a column: 1 of accuracies, the largest figure of squared errors.
  SB.meter_end = column => {
    if (!column.squared) return 1;
    const cells = SB.data.summary.cells.filter(cell => cell.column === column.id && cell.mean !== null);
    return Math.max(column.ceiling || 0, ...cells.map(cell => Math.max(cell.mean, cell.high || 0))) || 1;
  };
  // A figure between 0 and the end, with its interval and, as a tick, the ceiling.
  const bar = (cell, column, series, end) =>
    SB.h('span', {
      class: 'meter',
      title: column.squared ? 'lower is better; bars in this column end at ' + end.toFixed(3) : null,
      css: {
        '--mean': cell.mean / end,
        '--low': cell.low === null ? 2 : Math.max(0, cell.low / end),
        '--high': cell.high === null ? 2 : Math.min(1, cell.high / end),
        '--ceiling': column.ceiling === null ? 9 : column.ceiling / end,
        '--series': SB.colour(series.colour),
      },
    });

  const faces = {
    accuracy: {
      title: () => SB.metric()[0].toUpperCase() + SB.metric().slice(1),
      key: (cell, column) => SB.better(column, cell.mean),
      main: cell => cell.mean_text,
      beside: cell => cell.interval_text,
      about: 'share of the ceiling',
      below: cell => [cell.fraction === null ? '' : cell.fraction_text, cell.uneven_text],
    },
    ceiling: {
      title: () => 'Share of the ceiling',
      key: cell => cell.fraction,
      main: cell => cell.fraction_text,
      beside: () => '',
      below: (cell, column) => [
        cell.mean_text + (column.squared ? ', bound ' : ' of ') + cell.ceiling_text,
        cell.uneven_text,
      ],
    },
    paper: {
      title: () => 'Difference from the paper',
      key: cell => cell.difference,
      main: cell => cell.difference_text || '–',
      beside: cell => (cell.difference === null ? '' : 'points'),
      below: cell => [cell.paper === null ? '' : 'paper ' + cell.paper_text, cell.uneven_text],
    },
  };

  function matrix(state) {
    const data = SB.data;
    const cells = new Map(data.summary.cells.map(cell => [cell.series + ' ' + cell.column, cell]));
    const cell_of = (row, column) => cells.get(row.series + ' ' + column.id);
    const rows = data.summary.rows;
    const face = faces[state.face];
    const ends = new Map(data.columns.map(column => [column.id, SB.meter_end(column)]));
    const content = (row, column) => {
      const cell = cell_of(row, column);
      if (!cell) return SB.h('span', {class: 'muted'}, '–');
      if (cell.mean === null)
        return SB.linked(cell, SB.h('span', {class: 'badge bad'}, cell.mean_text), ' ', ...SB.mark_signs(cell));
      return [
        SB.h(
          'span',
          {class: 'figure' + (cell.best ? ' best' : '')},
          SB.linked(cell, face.main(cell)),
          ' ',
          SB.h('span', {class: 'muted'}, face.beside(cell)),
          ' ',
          ...SB.mark_signs(cell),
        ),
        state.face === 'paper' ? null : bar(cell, column, SB.series.get(row.series), ends.get(column.id)),
        SB.h('span', {class: 'sub-line', title: column.squared ? null : face.about}, face.below(cell, column).filter(Boolean).join(', ')),
      ];
    };
    const columns = [
      {
        title: 'model',
        head: true,
        left: true,
        key: row => SB.series.get(row.series).name,
        cell: row => SB.named(SB.series.get(row.series)),
      },
      {title: 'parameters', key: row => row.params, cell: row => row.params_text},
      ...data.columns.map(column => ({
        lines: column.lines,
        falling: true,
        name: 'cell',
        key: row => {
          const cell = cell_of(row, column);
          return cell ? face.key(cell, column) : null;
        },
        cell: row => content(row, column),
      })),
    ];
    const foot = [
      ['n-gram', column => column.n_gram_text],
      ['ceiling', column => (column.squared ? '' : column.ceiling_text)],
      ['bound', column => (column.squared ? column.ceiling_text : '')],
      ['chance', column => (column.squared ? '' : column.chance_text)],
    ]
      .map(([name, text]) => [name, '', ...data.columns.map(column => SB.dash(text(column)))])
      .filter(line => line.slice(2).some(text => text !== '–'));
    return SB.table({columns, rows, label: 'Models and tasks', name: 'matrix', foot, most: 30, memory: state.matrix});
  }

  function sizes(state) {
    const columns = [
      {
        title: 'model',
        head: true,
        left: true,
        key: row => SB.series.get(row.series).name,
        cell: row => SB.named(SB.series.get(row.series)),
      },
      {title: 'parameters', key: row => row.params, cell: row => row.params_text},
      {
        title: 'state',
        about: 'numbers a layer carries from frame to frame',
        key: row => (row.state === null ? Infinity : row.state),
        cell: row => row.state_text,
      },
      {
        title: 'tokens/s',
        about: 'in training, mean over its runs',
        falling: true,
        key: row => row.speed,
        cell: row => row.speed_text,
      },
      {title: 'precision', left: true, key: row => row.precision_text, cell: row => row.precision_text},
      {
        title: 'settings',
        left: true,
        wrap: true,
        key: row => SB.series.get(row.series).setting,
        cell: row => SB.dash(SB.series.get(row.series).setting),
      },
    ];
    return SB.table({columns, rows: SB.data.summary.rows, label: 'Sizes, speed, settings', name: 'sizes', memory: state.sizes});
  }

  function every_cell(state) {
    const series = cell => SB.series.get(cell.series);
    const some = text => SB.data.summary.cells.some(cell => SB.dash(text(cell)) !== '–');
    const columns = [
      {title: 'model', head: true, left: true, key: cell => series(cell).name, cell: cell => SB.named(series(cell))},
      {
        title: 'task',
        left: true,
        key: cell => SB.data.columns.findIndex(column => column.id === cell.column),
        cell: cell => SB.text(SB.columns.get(cell.column).name),
      },
      {
        title: SB.metric(),
        falling: true,
        key: cell => SB.better(SB.columns.get(cell.column), cell.mean),
        cell: cell => SB.linked(cell, cell.mean_text),
        name: 'mean',
      },
      {
        title: '95 % interval',
        key: cell => (cell.low === null ? null : cell.high - cell.low),
        cell: cell => SB.dash(cell.interval_text),
      },
      {
        title: 'deviation',
        about: 'standard deviation',
        key: cell => cell.sd_text,
        cell: cell => (cell.sd_text ? SB.h('span', {title: 'over ' + cell.sd_over}, cell.sd_text) : '–'),
      },
      some(cell => cell.fraction_text) && {
        title: 'share of the ceiling',
        falling: true,
        key: cell => cell.fraction,
        cell: cell => cell.fraction_text,
      },
      some(cell => cell.n_gram_text) && {
        title: 'n-gram',
        about: 'the most common state after the last n symbols',
        key: cell => cell.n_gram_text,
        cell: cell => cell.n_gram_text,
      },
      {title: SB.limit(), key: cell => cell.ceiling_text, cell: cell => cell.ceiling_text},
      {title: 'chance', key: cell => cell.chance_text, cell: cell => SB.dash(cell.chance_text)},
      {title: 'paper', falling: true, key: cell => cell.paper, cell: cell => SB.dash(cell.paper_text)},
      {
        title: 'difference',
        about: 'from the paper, points of accuracy',
        falling: true,
        key: cell => cell.difference,
        cell: cell => SB.dash(cell.difference_text),
      },
      {
        title: 'difference from the best',
        about:
          'in the column, ' +
          SB.unit_of_differences() +
          ' on common grammars; 95 % intervals are not corrected for multiple comparisons',
        falling: true,
        key: cell =>
          cell.versus_best ? SB.better(SB.columns.get(cell.column), cell.versus_best.difference) : cell.best ? 0 : null,
        cell: cell =>
          cell.versus_best
            ? [cell.versus_best.difference_text + ' ', SB.h('span', {class: 'muted'}, cell.versus_best.interval_text)]
            : cell.best
              ? 'best'
              : '–',
      },
      {
        title: 'p',
        about: 'of the difference from the best, without correction for multiple comparisons; the marks are corrected',
        key: cell => (cell.versus_best ? cell.versus_best.p : null),
        cell: cell => (cell.versus_best ? SB.dash(cell.versus_best.p_text) : '–'),
      },
      {title: 'from', left: true, key: cell => cell.runs.length, cell: cell => SB.linked(cell, cell.n_text)},
      {title: 'marks', left: true, wrap: true, cell: cell => cell.marks.map(mark => mark.text).join('; ') || '–'},
    ].filter(Boolean);
    return SB.table({
      columns,
      rows: SB.data.summary.cells,
      label: 'Every cell of the summary',
      tall: true,
      name: 'cells',
      memory: state.cells,
    });
  }

  SB.build_summary = (place, state) => {
    for (const [name, first] of [
      ['face', 'accuracy'],
      ['matrix', {}],
      ['cells', {}],
      ['sizes', {}],
    ])
      state[name] = state[name] || first;
    const has_paper = SB.data.summary.cells.some(cell => cell.paper !== null);
    const has_share = SB.data.columns.some(column => !column.squared);
    const offered = Object.entries(faces)
      .filter(([name]) => (name !== 'paper' || has_paper) && (name !== 'ceiling' || has_share))
      .map(([name, face]) => [name, face.title()]);
    if (!offered.some(([name]) => name === state.face)) state.face = 'accuracy';
    const shown = row => !SB.hidden.has(SB.series.get(row.series).model);
    const holder = SB.h('div', {});
    let small = null;
    const put = () => {
      small = matrix(state);
      small.filter(shown);
      holder.replaceChildren(small.element);
    };
    put();
    const used = new Set(SB.data.summary.cells.flatMap(cell => cell.marks.map(mark => mark.kind)));
    const legend = Object.entries(signs).filter(([kind]) => used.has(kind));
    const large = every_cell(state);
    const rows = sizes(state);
    SB.on_filter('summary', () => {
      for (const table of [small, large, rows]) table.filter(shown);
    });
    const notes = SB.data.meta.notes;
    const overview = SB.figure_grid(SB.data.figures.filter(figure => figure.kind === 'overview'));
    place.append(
      SB.h(
        'div',
        {class: 'row'},
        SB.segments('Show', offered, state.face, face => {
          state.face = face;
          put();
        }),
      ),
      holder,
      legend.length
        ? SB.h(
            'p',
            {class: 'small muted legend'},
            legend.map(([, sign]) =>
              SB.h('span', {}, SB.h('span', {class: 'mark' + (sign[2] ? ' down' : '')}, sign[0]), ' ', sign[1]),
            ),
          )
        : '',
      ...SB.data.summary.caption.map(line => SB.h('p', {class: 'small muted'}, SB.prose(line))),
      notes.length
        ? SB.h(
            'details',
            {open: notes.length <= 2},
            SB.h('summary', {}, 'How runs were averaged and settings chosen (' + notes.length + ')'),
            SB.h(
              'ul',
              {class: 'small'},
              notes.map(note => SB.h('li', {}, SB.text(note))),
            ),
          )
        : '',
      overview.cards.length ? overview.element : '',
      SB.h('details', {}, SB.h('summary', {}, 'Every cell, with its interval, tests and runs'), large.element),
      SB.h('details', {}, SB.h('summary', {}, 'Sizes, speed and settings of every row'), rows.element),
    );
    return overview.cards;
  };
})();
