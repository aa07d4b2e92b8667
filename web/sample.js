'use strict';
// Try it: one test sample element by element; what was shown, what was true, what the exact filter (or the
// task's oracle) and each model believed.
(() => {
  const SB = (window.SB = window.SB || {});

  // Only tasks of the kind gaps have numbers.
  const has_gaps = sample => typeof SB.columns.get(sample.column).task === 'number';
  const gap_text = (sample, element) => {
    if (!has_gaps(sample)) return '';
    return element.gap ? ', ' + element.gap + ' gap frame' + (element.gap > 1 ? 's' : '') : ', no gap';
  };
  const legend_text = (sample, has_oracle) =>
    (has_gaps(sample)
      ? 'filled boxes are symbols, dots are blank gap frames, struck boxes are wrong symbols in a gap. Each model ' +
        'names the hidden state from all frames so far'
      : sample.dense
        ? 'frames are vectors: boxes show their norm, dashed boxes are pauses or missing frames. Each model answers ' +
          'from all frames so far'
        : 'boxes are symbols, · is a blank frame. Each model answers from all frames so far') +
    (!has_oracle
      ? '.'
      : (has_gaps(sample) ? '; the exact filter knows the grammar' : '; the oracle knows how samples are drawn') +
        ' and is the best any causal model can do.');
  const frames = (sample, element) => {
    const gap = element.gap_symbols.map(symbol =>
      symbol === '·' ? SB.h('i', {class: 'blank'}) : SB.h('i', {class: 'distractor'}, SB.shortened(symbol, 3)),
    );
    const rest = element.gap - element.gap_symbols.length;
    return SB.h(
      'span',
      {class: 'frames'},
      SB.h('b', element.paused ? {class: 'paused'} : {}, SB.shortened(element.symbol, 4)),
      element.paused ? SB.only_read(', pause') : null,
      gap,
      rest > 0 ? SB.h('small', {}, '+' + rest) : null,
      SB.only_read(gap_text(sample, element)),
    );
  };
  const belief_at = (believer, at) => believer.beliefs[at] || [];
  const is_right = (believer, sample, at) =>
    belief_at(believer, at).length > 0 && belief_at(believer, at)[0][0] === sample.elements[at].state;

  function belief_cell(believer, sample, at) {
    const best = belief_at(believer, at)[0];
    if (!best) return SB.h('td', {'data-at': at}, '–');
    const right = is_right(believer, sample, at);
    return SB.h(
      'td',
      {class: right ? 'right' : 'wrong', 'data-at': at, css: {'--p': best[1]}},
      SB.h(
        'span',
        {class: 'state'},
        right ? '' : SB.h('span', {class: 'cross', 'aria-hidden': 'true'}, '✕'),
        SB.shortened(best[0], 8),
      ),
      SB.only_read(right ? ' right' : ' wrong'),
    );
  }

  function strip(sample, believers) {
    const many = sample.elements.map((element, at) => at);
    const line = (head, cells, name) => SB.h('tr', {class: name}, SB.h('th', {scope: 'row'}, head), cells);
    const score = believer => {
      const asked = many.filter(at => sample.elements[at].state !== '–');
      const right = asked.filter(at => is_right(believer, sample, at)).length;
      return SB.h('span', {class: 'sub-line'}, right + ' of ' + asked.length + ' right');
    };
    const table = SB.h(
      'table',
      {class: 'strip'},
      SB.h(
        'thead',
        {},
        SB.h(
          'tr',
          {},
          SB.h('th', {scope: 'col', class: 'left'}, 'element'),
          many.map(at => SB.h('th', {scope: 'col', 'data-at': at}, at)),
        ),
      ),
      SB.h(
        'tbody',
        {},
        line(
          'frames shown',
          sample.elements.map((element, at) => SB.h('td', {'data-at': at}, frames(sample, element))),
          'shown',
        ),
        line(
          has_gaps(sample) ? 'true state' : 'right answer',
          sample.elements.map((element, at) => SB.h('td', {'data-at': at}, SB.shortened(element.state, 8))),
          'truth',
        ),
        believers.map(believer =>
          line(
            [believer.head(), score(believer)],
            many.map(at => belief_cell(believer, sample, at)),
            'beliefs',
          ),
        ),
      ),
    );
    return SB.h(
      'div',
      {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'The sample, element by element'},
      table,
    );
  }

  function panel(sample, believers, at) {
    const element = sample.elements[at];
    const asked = element.state !== '–';
    const card = believer =>
      SB.h(
        'div',
        {class: 'belief ' + (!asked ? '' : is_right(believer, sample, at) ? 'right' : 'wrong')},
        SB.h(
          'h4',
          {},
          believer.head(),
          ' ',
          asked
            ? SB.h(
                'span',
                {class: 'badge ' + (is_right(believer, sample, at) ? 'good' : 'bad')},
                is_right(believer, sample, at) ? 'right' : 'wrong',
              )
            : null,
        ),
        SB.h(
          'ol',
          {},
          belief_at(believer, at).map(([state, p]) =>
            SB.h(
              'li',
              {class: state === element.state ? 'true' : null, css: {'--p': p}},
              SB.h('span', {class: 'state'}, SB.text(SB.shortened(state, 16))),
              SB.h('span', {class: 'p'}, String(p)),
            ),
          ),
        ),
      );
    return SB.h('div', {class: 'believers'}, believers.map(card));
  }

  SB.build_try = (place, state) => {
    const samples = SB.data.samples;
    if (!samples.length) {
      place.append(SB.h('p', {class: 'muted'}, 'No recorded samples: archives do not contain them.'));
      return;
    }
    if (!samples.some(sample => sample.id === state.sample)) {
      state.sample = samples[0].id;
      state.at = 0;
    }
    state.at = state.at || 0;
    const slider = SB.h('input', {
      type: 'range',
      min: 0,
      step: 1,
      value: 0,
      'aria-label': 'Element of the sample',
      oninput: () => go(Number(slider.value)),
    });
    const now = SB.h('p', {class: 'now-line'}),
      legend = SB.h('span', {});
    const holder = SB.h('div', {}),
      details = SB.h('div', {});
    let sample, believers, box;

    function put() {
      sample = samples.find(one => one.id === state.sample);
      const oracle = {
        head: () =>
          SB.h(
            'span',
            {class: 'model'},
            SB.svg(
              'svg',
              {class: 'key', viewBox: '0 0 16 16', 'aria-hidden': 'true'},
              SB.svg('path', {class: 'filter-key', d: 'M8 1L15 8L8 15L1 8z'}),
            ),
            oracle.name,
          ),
        beliefs: sample.filter,
        name: has_gaps(sample) ? 'exact filter' : 'oracle',
      };
      const has_oracle = sample.filter.some(belief => belief.length > 0);
      legend.textContent = legend_text(sample, has_oracle);
      believers = [
        ...(has_oracle ? [oracle] : []),
        ...sample.models
          .filter(model => !SB.hidden.has(SB.series.get(model.series).model))
          .map(model => {
            const series = SB.series.get(model.series);
            return {
              head: () => SB.h('a', {class: 'plain', href: '#run-' + model.run}, SB.named(series)),
              beliefs: model.beliefs,
              name: series.name,
            };
          }),
      ];
      slider.max = sample.elements.length - 1;
      box = strip(sample, believers);
      box.addEventListener('click', event => {
        const cell = event.target.closest('[data-at]');
        if (cell) go(Number(cell.dataset.at));
      });
      holder.replaceChildren(box);
      go(Math.min(state.at, sample.elements.length - 1));
    }

    function go(at) {
      const began = performance.now();
      state.at = at;
      slider.value = at;
      const element = sample.elements[at],
        shown_text = sample.dense ? (element.paused ? ', pause, norm ' : ', norm ') : ', symbol ',
        asked_text = has_gaps(sample) ? ', state ' : ', answer ';
      slider.setAttribute(
        'aria-valuetext',
        'element ' + at + shown_text + SB.shortened(element.symbol, 16) + asked_text + SB.shortened(element.state, 16),
      );
      for (const cell of box.querySelectorAll('.now')) cell.classList.remove('now');
      const cells = box.querySelectorAll('[data-at="' + at + '"]');
      for (const cell of cells) cell.classList.add('now');
      const head = cells[0],
        pinned = box.querySelector('th').offsetWidth;
      const left = head.offsetLeft - pinned,
        seen = box.clientWidth - pinned;
      if (left < box.scrollLeft || left + head.offsetWidth > box.scrollLeft + seen)
        box.scrollLeft = left - (seen - head.offsetWidth) / 2;
      const wrong = believers.filter(believer => !is_right(believer, sample, at)).map(believer => believer.name);
      now.replaceChildren(
        'Element ' + at + ' of ' + sample.length + ':' + shown_text.slice(1),
        SB.text(SB.shortened(element.symbol, 16), 'id'),
        asked_text,
        SB.text(SB.shortened(element.state, 16), 'id'),
        gap_text(sample, element) +
          '. ' +
          (element.state === '–'
            ? 'It has no target.'
            : wrong.length === 0
              ? 'All answers are right.'
              : wrong.length === believers.length
                ? 'All answers are wrong.'
                : 'Wrong: ' + wrong.map(name => SB.shortened(name, 40)).join(', ') + '.'),
      );
      details.replaceChildren(panel(sample, believers, at));
      performance.measure('step', {start: began, end: performance.now()});
    }
    const step = by => go(Math.max(0, Math.min(sample.elements.length - 1, state.at + by)));

    const area = SB.h('div', {});
    area.addEventListener('keydown', event => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches('select, input')) return;
      const by = {ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity}[event.key];
      if (by === undefined) return;
      event.preventDefault();
      step(by);
    });
    SB.on_filter('try', put);
    area.append(
      SB.h(
        'p',
        {},
        'A test sample as the models saw it: ',
        legend,
        ' Step with ',
        SB.h('kbd', {}, '←'),
        ' and ',
        SB.h('kbd', {}, '→'),
        '.',
      ),
      SB.h(
        'div',
        {class: 'row'},
        SB.picker(
          'Sample',
          samples.map(one => [one.id, one.title]),
          state.sample,
          id => {
            state.sample = id;
            state.at = 0;
            put();
          },
        ),
        SB.h(
          'div',
          {class: 'stepper'},
          SB.h('button', {type: 'button', 'aria-label': 'Previous element', onclick: () => step(-1)}, '←'),
          slider,
          SB.h('button', {type: 'button', 'aria-label': 'Next element', onclick: () => step(1)}, '→'),
        ),
      ),
      holder,
      SB.h('div', {role: 'status'}, now),
      details,
    );
    place.append(area);
    put();
  };
})();
