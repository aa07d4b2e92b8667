'use strict';
// Puts the page together: what is seen first at once, the rest right after the first paint. Follows running suites
// where it is served live.
(() => {
  const SB = (window.SB = window.SB || {});
  const place = id => document.getElementById(id);
  const states = {summary: {}, compare: {}, try: {}, runs: {}};
  const cards = new Map(); // section to its cards

  function colours(paper = false) {
    const dark = window.matchMedia('(prefers-color-scheme: dark)').matches;
    const theme = paper ? 'light' : document.documentElement.dataset.theme;
    const shades = SB.data.palette[theme === 'dark' || (theme === 'auto' && dark) ? 'dark' : 'light'];
    shades.forEach((shade, i) => document.documentElement.style.setProperty('--c' + i, shade));
  }

  // Light, dark, or as the system has it; remembered where the browser allows that to a file.
  function themes() {
    const names = {auto: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark'};
    const order = ['auto', 'light', 'dark'];
    const button = place('theme');
    const set = (theme, keep) => {
      document.documentElement.dataset.theme = theme;
      button.textContent = names[theme];
      colours();
      try {
        if (keep) localStorage.setItem('selectivbench-theme', theme);
      } catch (fault) {
        /* no storage for files here */
      }
    };
    let kept = null;
    try {
      kept = localStorage.getItem('selectivbench-theme');
    } catch (fault) {
      /* no storage for files here */
    }
    set(order.includes(kept) ? kept : 'auto', false);
    button.addEventListener('click', () =>
      set(order[(order.indexOf(document.documentElement.dataset.theme) + 1) % 3], true),
    );
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => colours());
  }

  const left_out = () => SB.data.runs.filter(run => run.standing !== 'averaged').map(run => run.key);

  function lead() {
    const meta = SB.data.meta;
    place('title').replaceChildren(SB.text(meta.title));
    document.title = SB.shortened(meta.title, 200);
    const hint = meta.charts && SB.can_draw() ? null : SB.h('p', {class: 'note'}, SB.prose(meta.charts_hint));
    const others = left_out().length;
    const link = others
      ? SB.h('a', {href: '#left-out'}, others === 1 ? '1 run is' : others + ' runs are', ' in no table')
      : '';
    const warnings =
      meta.warnings.length || others
        ? SB.h(
            'div',
            {class: 'note', role: 'note'},
            SB.h(
              'ul',
              {},
              meta.warnings.map(line => SB.h('li', {}, SB.text(line))),
              link ? SB.h('li', {}, link) : '',
            ),
          )
        : null;
    place('lead').replaceChildren(
      ...meta.headline.map(line => SB.h('p', {class: 'headline'}, SB.text(line))),
      ...(warnings ? [warnings] : []),
      ...(hint ? [hint] : []),
    );
    place('made').replaceChildren(
      'Made by ',
      SB.text(meta.program),
      meta.commit ? ' (' : '',
      meta.commit ? SB.h('span', {class: 'id'}, SB.text(SB.shortened(meta.commit, 16))) : '',
      meta.commit ? ')' : '',
      ' from ',
      SB.text(SB.shortened(meta.sources.join(', '), 200)),
      meta.dated ? ', ' + meta.dated : '',
      '.',
    );
  }

  function filter() {
    const used = new Set(SB.data.series.map(series => series.model));
    const models = SB.data.models.filter(model => used.has(model.name));
    if (models.length < 2) return;
    place('filter').replaceChildren(
      SB.h(
        'fieldset',
        {class: 'models'},
        SB.h('legend', {}, 'Models shown'),
        models.map(model =>
          SB.h(
            'label',
            {class: 'chip'},
            SB.h('input', {
              type: 'checkbox',
              checked: !SB.hidden.has(model.name),
              value: model.name,
              onchange: event => SB.show_model(model.name, event.target.checked),
            }),
            SB.key({colour: model.colour, dash: 0}),
            SB.text(model.name, 'name'),
          ),
        ),
      ),
    );
  }

  function outline() {
    const sections = SB.data.sections.filter(section => section.kind !== 'overview');
    return [
      ...(SB.data.board.length ? [{id: 'board', title: 'Running', build: board}] : []),
      {id: 'summary', title: 'Summary', build: at => cards.set('summary', SB.build_summary(at, states.summary))},
      ...sections.map(section => ({
        id: section.id,
        title: section.title,
        short: section.title.replace(/:.*/, ''),
        build: at => figures(at, section),
      })),
      {id: 'compare', title: 'Compare', build: at => SB.build_compare(at, states.compare)},
      {id: 'try', title: 'Try it', build: at => SB.build_try(at, states.try)},
      {id: 'runs', title: 'Runs', build: at => SB.build_runs(at, states.runs)},
      {id: 'method', title: 'Method', build: at => SB.build_method(at)},
    ];
  }

  function figures(at, section) {
    const grid = SB.figure_grid(
      SB.data.figures.filter(figure => figure.section === section.id && figure.kind !== 'overview'),
    );
    cards.set(section.id, grid.cards);
    const hint =
      grid.cards.length && SB.can_draw()
        ? 'Point at a mark for its numbers; click a name in a legend to highlight it' +
          (window.matchMedia('(pointer: coarse)').matches
            ? '.'
            : '; drag to move, Ctrl and wheel to zoom, double-click to go back.')
        : '';
    at.append(
      ...section.text.map(line => SB.h('p', {}, SB.prose(line))),
      hint ? SB.h('p', {class: 'small muted no-print'}, hint) : '',
      grid.cards.length ? grid.element : '',
      section.absent.length
        ? SB.h(
            'details',
            {},
            SB.h('summary', {}, 'Not measured (' + section.absent.length + ')'),
            SB.h(
              'ul',
              {class: 'small muted'},
              section.absent.map(line => SB.h('li', {}, SB.prose(line))),
            ),
          )
        : '',
    );
  }

  const board_figures = data => data.figures.filter(figure => figure.section === 'board');
  function board_table() {
    return SB.h(
      'div',
      {id: 'board-table'},
      SB.table({
        label: 'Runs in progress',
        rows: SB.data.board,
        name: 'board',
        columns: [
          {
            title: 'run',
            head: true,
            left: true,
            key: line => line.name,
            cell: line => SB.h('a', {href: '#run-' + line.key}, SB.text(line.name)),
          },
          {
            title: 'state',
            left: true,
            key: line => line.state,
            cell: line =>
              SB.h(
                'span',
                {class: 'badge' + (line.state === 'running' ? ' good' : line.state === 'stopped' ? ' bad' : '')},
                line.state,
              ),
          },
          {
            title: 'progress',
            key: line => line.fraction,
            cell: line =>
              SB.h('progress', {max: 1, value: line.fraction, 'aria-label': 'progress of ' + SB.shortened(line.name)}),
          },
          {title: 'update', key: line => line.update, cell: line => line.update + ' of ' + line.updates},
          {title: 'rate', cell: line => SB.dash(line.rate_text)},
          {title: 'left', cell: line => SB.dash(line.left_text)},
        ],
      }).element,
    );
  }
  function board(at) {
    const grid = SB.figure_grid(board_figures(SB.data));
    cards.set('board', grid.cards);
    at.append(board_table(), grid.cards.length ? grid.element : '');
  }

  function contents(parts) {
    const links = new Map();
    place('contents').replaceChildren(
      SB.h(
        'ul',
        {},
        parts.map(part => {
          const link = SB.h('a', {href: '#' + part.id, title: part.title}, SB.shortened(part.short || part.title, 40));
          links.set(part.id, link);
          return SB.h('li', {}, link);
        }),
      ),
    );
    const seen = new Set();
    const watcher = new IntersectionObserver(
      entries => {
        for (const entry of entries) seen[entry.isIntersecting ? 'add' : 'delete'](entry.target.id);
        const first = parts.find(part => seen.has(part.id));
        for (const [id, link] of links) {
          if (first && id === first.id) {
            if (!link.hasAttribute('aria-current')) {
              link.setAttribute('aria-current', 'true');
              const list = link.closest('ul');
              if (list.scrollWidth > list.clientWidth)
                list.scrollLeft = link.offsetLeft - list.clientWidth / 2 + link.offsetWidth / 2;
            }
          } else link.removeAttribute('aria-current');
        }
      },
      {rootMargin: '-15% 0px -70% 0px'},
    );
    for (const part of parts) watcher.observe(place(part.id));
  }

  let pending = [];
  const section_of = part =>
    SB.h(
      'section',
      {id: part.id, 'aria-labelledby': part.id + '-title'},
      SB.h('h2', {id: part.id + '-title'}, SB.text(part.title)),
    );
  const build_rest = () => {
    while (pending.length) {
      const part = pending.shift();
      part.build(place(part.id));
    }
  };

  // Links to runs choose what the list of runs shows.
  function follow() {
    let at = location.hash.slice(1);
    try {
      at = decodeURIComponent(at);
    } catch (fault) {
      return; // no address of this page
    }
    if (!/^(run-|cell-|runs-of-|figure-|left-out$)/.test(at)) return;
    build_rest();
    const cell = SB.data.summary.cells.find(one => 'cell-' + one.series + '-' + one.column === at);
    const figure = at.startsWith('runs-of-') ? SB.data.figures.find(one => one.id === at.slice(8)) : null;
    if (cell)
      SB.show_runs(
        cell.runs,
        'Runs behind ' +
          SB.series.get(cell.series).name +
          ', ' +
          SB.columns.get(cell.column).name +
          ': ' +
          cell.mean_text,
      );
    else if (at === 'left-out') SB.show_runs(left_out(), 'Runs in no table');
    else if (figure) SB.show_runs(figure.runs, 'Runs behind “' + figure.title + '”');
    else if (at.startsWith('run-')) SB.show_run(at.slice(4));
    else if (at.startsWith('figure-')) SB.show_figure(at.slice(7));
  }

  function build() {
    const parts = outline();
    const holder = place('sections');
    holder.replaceChildren(...parts.map(section_of));
    pending = [...parts];
    const first = parts.findIndex(part => part.id === 'summary');
    for (let i = 0; i <= first; i++) {
      const part = pending.shift();
      part.build(place(part.id));
    }
    contents(parts);
    requestAnimationFrame(() =>
      setTimeout(() => {
        performance.mark('seen');
        build_rest();
        document.documentElement.dataset.built = '';
        performance.mark('built');
      }),
    );
  }

  // Live: the same data anew. Figures keep their cards and redraw where their numbers changed; tables are made again.
  function refresh(data) {
    const before = SB.data;
    const same = key => JSON.stringify(before[key]) === JSON.stringify(data[key]);
    build_rest();
    const shape = whole =>
      JSON.stringify([
        whole.sections.map(s => s.id),
        whole.figures.map(f => [f.section, f.kind, f.id]),
        whole.board.length > 0,
        whole.series,
        whole.palette,
      ]);
    const rebuilt = shape(before) !== shape(data);
    const top = window.scrollY;
    SB.take(data);
    lead();
    if (rebuilt) {
      for (const list of cards.values()) list.forEach(SB.drop_card);
      cards.clear();
      filter();
      build();
      build_rest();
    } else {
      const renew = (id, action) => {
        const at = place(id);
        at.replaceChildren(at.firstChild);
        action(at);
      };
      if (!same('board') && data.board.length) place('board-table').replaceWith(board_table());
      if (!same('runs')) renew('runs', at => SB.build_runs(at, states.runs));
      if (!same('compare')) renew('compare', at => SB.build_compare(at, states.compare));
      if (!same('samples')) renew('try', at => SB.build_try(at, states.try));
      if (!same('summary') || !same('columns') || String(before.meta.notes) !== String(data.meta.notes)) {
        cards.get('summary').forEach(SB.drop_card);
        renew('summary', at => cards.set('summary', SB.build_summary(at, states.summary)));
      }
      for (const [id, list] of cards) {
        if (id === 'summary') continue;
        const groups = SB.grouped(
          id === 'board'
            ? board_figures(data)
            : data.figures.filter(figure => figure.section === id && figure.kind !== 'overview'),
        );
        list.forEach((card, i) => card.replace(groups[i]));
      }
    }
    window.scrollTo({top});
  }

  function live() {
    const {data: address, every_ms} = SB.data.meta.live;
    let tag = null;
    const line = SB.h('p', {class: 'note', hidden: true});
    place('lead').before(line);
    const tell = text => {
      if (line.textContent === text) return;
      line.textContent = text;
      line.hidden = !text;
      SB.say(text);
    };
    const ask = async () => {
      try {
        const answer = await fetch(address, {cache: 'no-store', headers: tag ? {'If-None-Match': tag} : {}});
        if (answer.status === 200) {
          tag = answer.headers.get('ETag');
          refresh(await answer.json());
        }
        const fault = answer.ok || answer.status === 304 ? '' : await answer.text();
        tell(fault && 'The program that serves this page cannot read the runs: ' + SB.shortened(fault.trim(), 400));
      } catch (fault) {
        tell('The program that serves this page does not answer.');
      }
      setTimeout(ask, every_ms);
    };
    setTimeout(ask, every_ms);
  }

  function printing() {
    window.addEventListener('beforeprint', () => {
      build_rest();
      SB.open_undrawn();
      SB.show_all_rows();
      colours(true);
    });
    window.addEventListener('afterprint', () => colours());
    place('print').addEventListener('click', async () => {
      build_rest();
      await SB.draw_all();
      window.print();
    });
  }

  // All scripts of the page have run by then, in whatever order they came.
  document.addEventListener('DOMContentLoaded', () => {
    SB.take(JSON.parse(place('data').textContent));
    themes();
    lead();
    filter();
    SB.on_filter('figures', () => SB.redraw_all());
    build();
    printing();
    window.addEventListener('hashchange', follow);
    follow();
    if (SB.data.meta.live) live();
  });
})();
