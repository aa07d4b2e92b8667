'use strict';
// Tables that sort. A column: {title, cell: row => text or node, key: row => number or text to sort by, left, wrap,
// head}.
(() => {
  const SB = (window.SB = window.SB || {});
  const collator = new Intl.Collator('en', {numeric: true});
  const absent = value => value === null || value === undefined || value === '';

  // Longer tables show their beginning until they are asked for all; on paper they are whole.
  SB.show_all_rows = () => {
    for (const button of document.querySelectorAll('.more:not([hidden]) button')) button.click();
  };

  // What is not known stays last in either direction.
  SB.compare_keys = (a, b, descending) => {
    if (absent(a) || absent(b)) return absent(a) - absent(b);
    const order = typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b));
    return descending ? -order : order;
  };

  SB.table = ({
    columns,
    rows,
    label,
    caption,
    name = '',
    pin = true,
    tall = false,
    memory = {}, // of how the reader has sorted it, where the table is made again
    id = null,
    foot = [],
    most = 100,
  }) => {
    const heads = columns.map((column, i) => {
      const content = column.lines
        ? column.lines.flatMap((line, n) => (n ? [SB.h('br'), line] : [line]))
        : [column.title];
      const sortable = column.key
        ? SB.h(
            'button',
            {type: 'button', onclick: () => order_by(i), title: column.about},
            SB.h('span', {}, ...content),
          )
        : SB.h('span', {title: column.about}, ...content);
      return SB.h('th', {scope: 'col', class: column.left ? 'left' : null}, sortable);
    });
    const body = SB.h('tbody');
    const table = SB.h(
      'table',
      {class: (pin ? 'pin ' : '') + name},
      caption ? SB.h('caption', {}, caption) : null,
      SB.h('thead', {}, SB.h('tr', {}, heads)),
      body,
      foot.length
        ? SB.h(
            'tfoot',
            {},
            foot.map(line =>
              SB.h(
                'tr',
                {},
                line.map((cell, i) => SB.h(i ? 'td' : 'th', i ? {} : {scope: 'row'}, cell)),
              ),
            ),
          )
        : null,
    );
    const more = SB.h('p', {class: 'more', hidden: true});
    const element = SB.h(
      'div',
      {},
      SB.h('div', {class: 'scroll' + (tall ? ' tall' : ''), tabindex: '0', role: 'region', 'aria-label': label}, table),
      more,
    );

    const made = new Map(); // row to its element
    const line_of = row => {
      if (!made.has(row)) {
        const line = SB.h(
          'tr',
          {id: id ? id(row) : null},
          columns.map(column => {
            const style = [column.left ? 'left' : '', column.wrap ? 'wrap' : '', column.name || ''].join(' ').trim();
            const content = column.cell(row);
            return column.head
              ? SB.h('th', {scope: 'row', class: style || null}, content)
              : SB.h('td', {class: style || null}, content);
          }),
        );
        made.set(row, line);
      }
      return made.get(row);
    };
    let shown = rows,
      sorted = null,
      limit = most;

    function place() {
      const lines = [];
      for (const row of shown.slice(0, limit)) {
        const line = line_of(row);
        lines.push(line);
        if (line.extra) lines.push(line.extra);
      }
      body.replaceChildren(...lines);
      more.hidden = shown.length <= limit;
      if (!more.hidden)
        more.replaceChildren(
          'The first ' + limit + ' of ' + shown.length.toLocaleString('en') + ' rows.',
          SB.h('button', {type: 'button', onclick: show_all}, 'Show all'),
        );
    }
    function show_all() {
      limit = Infinity;
      place();
    }
    function arrange() {
      if (sorted) {
        const key = columns[sorted.column].key;
        shown = shown
          .map((row, at) => [row, key(row), at])
          .sort((a, b) => SB.compare_keys(a[1], b[1], sorted.descending) || a[2] - b[2])
          .map(entry => entry[0]);
      }
      place();
    }
    function order_by(column, descending) {
      const numbers = columns[column].falling !== undefined ? columns[column].falling : false;
      const next =
        descending !== undefined ? descending : sorted && sorted.column === column ? !sorted.descending : numbers;
      sorted = memory.sorted = {column, descending: next};
      heads.forEach((head, i) => {
        if (i === column) head.setAttribute('aria-sort', next ? 'descending' : 'ascending');
        else head.removeAttribute('aria-sort');
      });
      shown = kept();
      arrange();
    }
    let keep = () => true;
    const kept = () => rows.filter(row => keep(row));
    if (memory.sorted) order_by(memory.sorted.column, memory.sorted.descending);
    else place();
    return {
      element,
      table,
      order_by,
      line: row => line_of(row),
      filter: predicate => {
        keep = predicate;
        shown = kept();
        arrange();
        return shown.length;
      },
      show: row => {
        if (shown.indexOf(row) >= limit) show_all();
      },
      place,
    };
  };

  // Plain columns and rows, as figures have them.
  SB.value_table = (columns, rows, label) =>
    SB.table({
      label,
      pin: false,
      rows: rows.map(cells => ({cells})),
      columns: columns.map((column, i) => ({
        title: column.title,
        left: column.type !== 'quantitative',
        key: row => row.cells[i],
        name: 'value',
        cell: row => (column.type === 'quantitative' ? SB.dash(row.cells[i]) : SB.text(SB.dash(row.cells[i]))),
      })),
    }).element;
})();
