'use strict';
// A figure's card: title, drawing, ways to save it, its numbers as a table. Drawn when it comes near the window.
(() => {
  const SB = (window.SB = window.SB || {});
  const cards = new Set();
  const queue = [];
  let drawing = false;

  async function work() {
    if (drawing) return;
    drawing = true;
    while (queue.length) {
      const card = queue.shift();
      if (!card.near) continue; // scrolled past before its turn
      await card.draw();
      await new Promise(next => setTimeout(next));
    }
    drawing = false;
  }
  const ask = card => {
    if (!queue.includes(card)) queue.push(card);
    work();
  };
  const watcher = new IntersectionObserver(
    entries => {
      for (const entry of entries) {
        const card = entry.target.card;
        card.near = entry.isIntersecting;
        if (card.near && card.stale) ask(card);
      }
    },
    {rootMargin: '400px 0px'},
  );

  SB.redraw_all = () => {
    for (const card of cards) card.touch();
  };
  // For paper: every figure, wherever it stands.
  SB.draw_all = async () => {
    for (const card of cards) if (card.stale) await card.draw();
  };
  // What has no drawing yet is printed as its table.
  SB.open_undrawn = () => {
    for (const card of cards) if (card.stale) card.open_values();
  };
  SB.show_figure = id => {
    const card = [...cards].find(one => one.choices.some(figure => figure.id === id));
    if (!card) return;
    if (card.figure.id !== id) card.choose(id);
    card.element.scrollIntoView();
  };
  SB.drop_card = card => {
    cards.delete(card);
    watcher.unobserve(card.plot);
    if (card.view) card.view.finalize();
  };

  class Card {
    constructor(choices, wide) {
      this.choices = choices; // the same figure for different settings
      this.figure = choices[0];
      this.element_is_wide = wide;
      this.stale = true;
      this.near = false;
      this.title = SB.h('h3', {});
      this.caption = SB.h('p', {});
      this.plot = SB.h('div', {class: 'plot waiting', role: 'img'});
      this.plot.card = this;
      this.values = SB.h(
        'details',
        {class: 'values', ontoggle: () => this.fill_values()},
        SB.h('summary', {}, 'Numbers'),
      );
      this.runs = SB.h('a', {});
      this.element = SB.h(
        'figure',
        {class: wide ? 'wide' : null},
        SB.h('figcaption', {}, this.title, this.caption, choices.length > 1 ? this.picker() : null),
        this.plot,
        this.tools(),
        this.values,
      );
      this.show();
      cards.add(this);
      if (SB.can_draw()) watcher.observe(this.plot);
    }

    picker() {
      const titles = this.choices.map(figure => [figure.id, figure.setting]);
      this.setting = SB.picker('Setting', titles, this.figure.id, id => this.choose(id));
      return this.setting;
    }
    choose(id) {
      this.figure = this.choices.find(figure => figure.id === id);
      if (this.setting) this.setting.querySelector('select').value = id;
      this.show();
      this.touch();
    }

    tools() {
      const save = (title, action, needs_drawing) =>
        SB.h(
          'button',
          {
            type: 'button',
            class: 'quiet',
            onclick: async () => {
              try {
                if (needs_drawing && (this.stale || !this.view)) await this.draw();
                if (needs_drawing && !this.view) throw new Error('the figure is not drawn');
                await action();
              } catch (fault) {
                SB.say('Could not save: ' + fault.message);
              }
            },
            'aria-label': 'Save ' + title,
            title: 'Save ' + title,
          },
          title,
        );
      const file = ending => this.figure.id + '.' + ending;
      const drawn = SB.can_draw()
        ? [
            save('SVG', async () => SB.download(file('svg'), 'image/svg+xml', await SB.svg_text(this.view)), true),
            save('PNG', async () => SB.download(file('png'), 'image/png', await SB.png_blob(this.view)), true),
          ]
        : [];
      return SB.h(
        'div',
        {class: 'saves'},
        SB.h('span', {}, 'Save'),
        drawn,
        save('CSV', () =>
          SB.download(
            file('csv'),
            'text/csv',
            SB.csv(
              this.figure.columns.map(c => c.key),
              this.figure.rows,
            ),
          ),
        ),
        save('JSON', () =>
          SB.download(file('vl.json'), 'application/json', JSON.stringify(SB.whole_spec(this.figure), null, 1) + '\n'),
        ),
        SB.h('span', {class: 'grow'}),
        this.runs,
        SB.can_draw() ? this.widener() : null,
      );
    }

    widener() {
      const button = SB.h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'aria-pressed': 'false',
          onclick: () => {
            const wide = this.element.classList.toggle('wide');
            button.setAttribute('aria-pressed', String(wide));
            this.reserve();
            this.touch();
          },
        },
        'Wide',
      );
      button.hidden = this.element_is_wide;
      return button;
    }

    show() {
      const figure = this.figure;
      this.element.id = 'figure-' + figure.id;
      this.title.replaceChildren(SB.text(figure.title));
      this.caption.replaceChildren(SB.prose(figure.caption));
      this.plot.setAttribute('aria-label', figure.summary);
      // Without Vega the program draws the main figures itself.
      const drawn = !SB.can_draw() && figure.svg;
      this.plot.hidden = !SB.can_draw() && !drawn;
      if (drawn) {
        this.plot.classList.remove('waiting');
        this.plot.replaceChildren(SB.h('img', {src: figure.svg, alt: ''}));
      }
      this.runs.hidden = !figure.runs.length;
      this.runs.textContent = SB.counted(figure.runs.length, 'run');
      this.runs.href = figure.runs.length === 1 ? '#run-' + figure.runs[0] : '#runs-of-' + figure.id;
      if (!SB.can_draw()) this.values.open = !drawn;
      this.values_of = null;
      this.fill_values();
      this.reserve();
    }

    reserve() {
      const width = this.plot.clientWidth || Math.min(window.innerWidth - 40, 480);
      this.plot.style.setProperty('--plot-height', SB.plot_height(this.figure, width) + 'px');
    }

    fill_values() {
      if (!this.values.open || this.values_of === this.figure) return;
      this.values_of = this.figure;
      this.values.replaceChildren(
        this.values.firstChild,
        SB.value_table(
          this.figure.columns,
          this.figure.rows,
          'Numbers of “' + SB.shortened(this.figure.title, 60) + '”',
        ),
      );
    }
    open_values() {
      this.values.open = true;
      this.fill_values();
    }

    // Its data or the choice of models changed.
    touch() {
      this.stale = true;
      if (this.near) ask(this);
    }

    async draw() {
      if (!this.stale || !SB.can_draw() || !this.plot.isConnected) return;
      this.stale = false;
      const began = performance.now();
      try {
        if (this.view) this.view.finalize();
        this.view = null;
        if (SB.shown_rows(this.figure).length) {
          this.view = await SB.draw(this.plot, this.figure);
        } else {
          const why = 'This figure has no numbers of the models shown.';
          this.plot.replaceChildren(SB.h('p', {class: 'nothing'}, why));
        }
        this.width = this.plot.clientWidth;
      } catch (fault) {
        this.view = null;
        this.plot.replaceChildren(
          SB.h(
            'p',
            {class: 'fault'},
            'This figure could not be drawn (' + SB.shortened(fault.message, 200) + '); its numbers are below.',
          ),
        );
        this.open_values();
      }
      this.plot.classList.remove('waiting');
      performance.measure('chart ' + this.figure.id, {start: began, end: performance.now()});
    }

    replace(choices) {
      const before = this.figure;
      this.choices = choices;
      this.figure = choices.find(figure => figure.id === before.id) || choices[0];
      if (JSON.stringify(this.figure) === JSON.stringify(before)) return;
      this.show();
      this.touch();
    }
  }

  // Figures of one kind are one card with a choice of settings.
  SB.grouped = figures => {
    const kinds = new Map();
    for (const figure of figures) {
      if (!kinds.has(figure.kind)) kinds.set(figure.kind, []);
      kinds.get(figure.kind).push(figure);
    }
    return [...kinds.values()];
  };
  const needs_width = figure => /^(overview|gates|confusion)/.test(figure.kind);
  SB.figure_grid = figures => {
    const made = SB.grouped(figures).map(choices => new Card(choices, needs_width(choices[0])));
    return {
      cards: made,
      element: SB.h(
        'div',
        {class: 'figures'},
        made.map(card => card.element),
      ),
    };
  };

  let last = window.innerWidth,
    timer = 0;
  window.addEventListener('resize', () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (window.innerWidth === last) return;
      last = window.innerWidth;
      for (const card of cards) {
        card.reserve();
        if (card.width && card.width !== card.plot.clientWidth) card.touch();
      }
    }, 150);
  });
})();
