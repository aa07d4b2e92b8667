'use strict';
// Every run: what it was, what it measured, what it ran on. Numbers elsewhere link here.
(() => {
  const SB = (window.SB = window.SB || {});

  const good_states = new Set(['intact', 'without weights', 'packed']);

  function details(run) {
    const facts = [
      ['folder', run.href ? SB.h('a', {href: run.href}, SB.text(run.folder)) : SB.text(run.folder)],
      [
        'state',
        [
          SB.text(run.state_text),
          run.problems.length
            ? SB.h(
                'ul',
                {},
                run.problems.map(line => SB.h('li', {}, SB.text(line))),
              )
            : '',
        ],
      ],
      ['in tables', SB.text(SB.dash(run.standing_text))],
      ['label', run.label ? SB.text(run.label) : null],
      ['updates', run.updates_text || null],
      ['diverged', run.divergence_text ? SB.text(run.divergence_text) : null],
      ['machine', run.machine_text ? SB.text(run.machine_text) : null],
      ['program', run.program_text ? SB.text(run.program_text) : null],
      ['digest of its numbers', run.digest ? SB.h('span', {class: 'id'}, run.digest) : null],
      ['further tests', run.points.length ? run.points.map(([name, value]) => name + ': ' + value).join(' · ') : null],
    ].filter(([, value]) => value !== null);
    const config = run.config.length
      ? SB.table({
          label: 'Settings that differ from the defaults',
          pin: false,
          rows: run.config,
          columns: [
            {title: 'setting', head: true, left: true, cell: line => SB.text(line[0], 'id')},
            {title: 'value', left: true, wrap: true, cell: line => SB.text(line[1], 'id')},
            {title: 'default', left: true, wrap: true, cell: line => SB.text(SB.dash(line[2]), 'id')},
          ],
        }).element
      : SB.h('p', {class: 'muted'}, 'All settings are the defaults.');
    return SB.h(
      'div',
      {class: 'run-details'},
      SB.h(
        'dl',
        {},
        facts.map(([name, value]) => [SB.h('dt', {}, name), SB.h('dd', {}, value)]),
      ),
      SB.h('div', {}, SB.h('h4', {}, 'Settings that differ from the defaults'), config),
    );
  }

  SB.build_runs = (place, state) => {
    const data = SB.data;
    state.open = state.open || new Set(); // keys of runs whose details are shown
    state.table = state.table || {};
    const toggles = new Map();
    const series = run => (run.series ? SB.series.get(run.series) : null);
    const columns = [
      {
        title: 'run',
        head: true,
        left: true,
        key: run => run.id || run.folder,
        cell: run => {
          const button = SB.h(
            'button',
            {
              type: 'button',
              class: 'quiet toggle',
              'aria-expanded': 'false',
              onclick: () => open(run, button.getAttribute('aria-expanded') !== 'true'),
            },
            SB.h('span', {class: 'id clip'}, SB.text(run.id || SB.shortened(run.folder, 24))),
          );
          toggles.set(run, button);
          return button;
        },
      },
      {
        title: 'model',
        left: true,
        key: run => (series(run) ? series(run).name : run.model),
        cell: run => (series(run) ? SB.named(series(run)) : SB.text(SB.dash(run.model), 'clip')),
      },
      {
        title: 'task',
        left: true,
        key: run => run.task,
        cell: run =>
          SB.text(
            run.column && SB.columns.get(run.column) ? SB.columns.get(run.column).name : SB.dash(run.task),
            'clip',
          ),
      },
      {title: 'seeds', left: true, key: run => run.seeds_text, cell: run => SB.text(SB.dash(run.seeds_text), 'clip')},
      {title: 'test', falling: true, key: run => SB.better(run, run.test), cell: run => SB.dash(run.test_text), name: 'test'},
      {title: 'valid', falling: true, key: run => SB.better(run, run.valid), cell: run => SB.dash(run.valid_text)},
      {
        title: SB.limit(),
        falling: true,
        key: run => {
          const figure = parseFloat(run.ceiling_text.replace(/^[≤≥] /, ''));
          return Number.isNaN(figure) ? null : SB.better(run, figure);
        },
        cell: run => SB.dash(run.ceiling_text),
      },
      {
        title: 'in tables',
        left: true,
        key: run => run.standing,
        cell: run =>
          SB.h(
            'span',
            {
              class: 'badge' + (run.standing === 'averaged' ? ' good' : run.standing === 'diverged' ? ' bad' : ''),
              title: SB.shortened(run.standing_text, 400),
            },
            run.standing || run.state,
          ),
      },
      {
        title: 'files',
        left: true,
        key: run => run.state,
        cell: run => SB.h('span', {class: good_states.has(run.state) ? 'muted' : 'badge bad'}, run.state),
      },
      {title: 'precision', left: true, key: run => run.precision_text, cell: run => SB.dash(run.precision_text)},
      {title: 'time', falling: true, key: run => run.wall, cell: run => SB.dash(run.wall_text)},
      {title: 'tokens/s', falling: true, key: run => run.speed, cell: run => SB.dash(run.speed_text)},
    ];
    const list = SB.table({
      columns,
      rows: data.runs,
      label: 'Runs',
      tall: true,
      id: run => 'run-' + run.key,
      name: 'runs',
      memory: state.table,
    });
    const many = SB.h('p', {class: 'small muted', role: 'status'});
    const chosen_line = SB.h('p', {class: 'chosen', hidden: true});
    const words = new Map(
      data.runs.map(run => [
        run,
        [
          run.id,
          run.folder,
          run.model,
          run.label,
          run.seeds_text,
          run.standing,
          run.state,
          run.precision_text,
          run.column && SB.columns.get(run.column) ? SB.columns.get(run.column).name : '',
          ...run.config.map(line => line[0] + '=' + line[1]),
        ]
          .join('\n')
          .toLowerCase(),
      ]),
    );

    function open(run, wanted) {
      const line = list.line(run);
      const button = toggles.get(run);
      button.setAttribute('aria-expanded', String(wanted));
      state.open[wanted ? 'add' : 'delete'](run.key);
      if (wanted)
        line.extra = SB.h('tr', {class: 'extra'}, SB.h('td', {colspan: columns.length, class: 'left'}, details(run)));
      else delete line.extra;
      list.place();
    }
    function choose() {
      const needle = state.search || '';
      const only = state.only ? new Set(state.only.runs) : null;
      const count = list.filter(
        run =>
          (!only || only.has(run.key)) &&
          (only || !SB.hidden.has(run.model)) &&
          (!needle || words.get(run).includes(needle)),
      );
      many.textContent =
        count === data.runs.length
          ? count === 1
            ? 'One run.'
            : 'All ' + count + ' runs.'
          : count + ' of ' + SB.counted(data.runs.length, 'run') + '.';
      chosen_line.hidden = !only;
      if (only)
        chosen_line.replaceChildren(
          SB.text(SB.shortened(state.only.name, 120)),
          ' ',
          SB.h(
            'button',
            {
              type: 'button',
              onclick: () => {
                state.only = null;
                choose();
                history.replaceState(null, '', '#runs');
              },
            },
            'Show all',
          ),
        );
    }
    // A run's place: seen whatever was chosen before.
    SB.show_run = key => {
      const run = SB.runs.get(key);
      if (!run) return false;
      if (state.only && !state.only.runs.includes(key)) state.only = null;
      if (SB.hidden.has(run.model) && !state.only) state.only = {name: 'Linked run', runs: [key]};
      state.search = '';
      search.value = '';
      choose();
      list.show(run);
      open(run, true);
      mark(list.line(run));
      return true;
    };
    const mark = line => {
      for (const old of list.table.querySelectorAll('.marked')) old.classList.remove('marked');
      line.classList.add('marked');
      line.scrollIntoView({block: 'center'});
      toggles.get(SB.runs.get(line.id.slice(4))).focus({preventScroll: true});
    };
    SB.show_runs = (keys, name) => {
      state.only = {name, runs: keys};
      state.search = '';
      search.value = '';
      choose();
      place.scrollIntoView();
    };
    const search = SB.h('input', {
      type: 'search',
      value: state.search || '',
      placeholder: 'model, seed, setting=value …',
      oninput: () => {
        state.search = search.value.trim().toLowerCase();
        choose();
      },
    });
    SB.on_filter('runs', choose);
    const header = [
      'id',
      'folder',
      'model',
      'task',
      'label',
      'seeds',
      'standing',
      'state',
      'test',
      'valid',
      'ceiling',
      'precision',
      'seconds',
      'tokens_per_second',
      'digest',
    ];
    const as_csv = () =>
      SB.csv(
        header,
        data.runs.map(run => [
          run.id,
          run.folder,
          run.model,
          run.task,
          run.label,
          run.seeds_text,
          run.standing,
          run.state,
          run.test_text,
          run.valid_text,
          run.ceiling_text,
          run.precision_text,
          run.wall,
          run.speed,
          run.digest,
        ]),
      );
    place.append(
      SB.h(
        'p',
        {},
        'Numbers are those of each run’s ',
        SB.h('code', {}, 'result.json'),
        ', digit for digit. Click a run’s name to see its settings, machine and files.',
      ),
      SB.h(
        'div',
        {class: 'row'},
        SB.h('label', {class: 'field'}, 'Find', search),
        SB.h('button', {type: 'button', onclick: () => SB.download('runs.csv', 'text/csv', as_csv())}, 'Save CSV'),
      ),
      chosen_line,
      many,
      list.element,
    );
    choose();
    for (const key of state.open) if (SB.runs.has(key)) open(SB.runs.get(key), true);
  };
})();
