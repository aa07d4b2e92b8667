'use strict';
// From a figure's specification to a drawing that fits its place. Series colours are variables of the style sheet,
// text and axes are
// coloured by it, so that one drawing serves light and dark; saved files have the light colours.
(() => {
  const SB = (window.SB = window.SB || {});
  const coarse = window.matchMedia('(pointer: coarse)');

  SB.can_draw = () => typeof window.vegaEmbed === 'function' && typeof window.vega === 'object';

  SB.row_objects = (figure, rows = figure.rows) =>
    rows.map(row => Object.fromEntries(figure.columns.map((column, i) => [column.key, row[i]])));
  // Without the models that the reader has left out; lines of reference stay.
  SB.shown_rows = figure => {
    const at = figure.columns.findIndex(column => column.key === 'series');
    if (at < 0 || !SB.hidden.size) return figure.rows;
    const hidden = SB.hidden_series();
    return figure.rows.filter(row => !hidden.has(row[at]));
  };

  const visit = (node, action) => {
    if (Array.isArray(node)) node.forEach(item => visit(item, action));
    else if (node && typeof node === 'object') {
      action(node);
      Object.values(node).forEach(item => visit(item, action));
    }
  };
  const copy = value => JSON.parse(JSON.stringify(value));
  // Literal colours of the palette become its variables.
  const with_variables = node => {
    if (typeof node === 'string') {
      const at = SB.data.palette.light.indexOf(node.toLowerCase());
      return at < 0 ? node : SB.colour(at);
    }
    if (Array.isArray(node)) return node.map(with_variables);
    if (node && typeof node === 'object')
      return Object.fromEntries(Object.entries(node).map(([k, v]) => [k, with_variables(v)]));
    return node;
  };
  const without_variables = markup =>
    markup.replace(/var\(--c(\d+)\)/g, (whole, index) => SB.data.palette.light[Number(index)] || '#555555');

  const is_composed = spec =>
    ['facet', 'hconcat', 'vconcat', 'concat', 'repeat'].some(key => key in spec) ||
    ['row', 'column', 'facet'].some(key => spec.encoding && key in spec.encoding);
  const distinct = (figure, field) => {
    const at = figure.columns.findIndex(column => column.key === field);
    return at < 0 ? 1 : Math.max(1, new Set(figure.rows.map(row => row[at])).size);
  };

  // As many columns as fit: entries run along lines, and a column is as wide as its longest name.
  const widest_label = 170;
  // Rows of tables by their ids; a figure of something else names its lines in its rows.
  const line_names = figure => {
    if (figure.series.length) return figure.series.map(id => SB.series.get(id).name);
    const at = figure.columns.findIndex(column => column.key === 'series');
    return at < 0 ? [] : [...new Set(figure.rows.map(row => row[at]))];
  };
  const legend_columns = (figure, width) => {
    const widths = line_names(figure).map(name => Math.min(widest_label, name.length * 6.7) + 30);
    for (let columns = widths.length; columns > 1; columns--) {
      const taken = Array(columns).fill(0);
      widths.forEach((one, i) => {
        taken[i % columns] = Math.max(taken[i % columns], one);
      });
      if (taken.reduce((sum, one) => sum + one, 0) <= width - 50) return columns;
    }
    return 1;
  };
  // More names than this are no legend any more: colours are those of the models beside the page, a tip names the line.
  const most_names = 24,
    line_height = 20;
  // Pixels to reserve: as the specification says, and more where the legend needs further lines on a narrow screen.
  SB.plot_height = (figure, width) => {
    let named = false;
    visit(figure.spec, node => {
      if (node.field === 'series' && node.legend && node.legend.orient === 'bottom') named = true;
    });
    if (!named) return figure.height;
    const entries = line_names(figure).length;
    const usual = Math.ceil(entries / 4);
    const lines = entries > most_names ? 0 : Math.ceil(entries / legend_columns(figure, width));
    return figure.height + (lines > usual || !lines ? lines - usual : 0) * line_height;
  };

  SB.chart_theme = () => ({
    background: null,
    font: 'system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif',
    aria: false,
    axis: {
      labelFontSize: 12,
      titleFontSize: 12,
      titleFontWeight: 500,
      labelColor: '#33383f',
      titleColor: '#33383f',
      gridColor: '#e3e6ea',
      domainColor: '#8a93a0',
      tickColor: '#8a93a0',
      titlePadding: 8,
      labelOverlap: true,
    },
    legend: {
      labelFontSize: 12,
      titleFontSize: 12,
      titleFontWeight: 500,
      labelColor: '#33383f',
      titleColor: '#33383f',
      labelLimit: 150,
      symbolStrokeWidth: 3,
      symbolOpacity: 1,
      symbolBaseFillColor: '#808080', // of shapes that stand for every colour; reads on both grounds
      symbolBaseStrokeColor: '#808080',
      rowPadding: 3,
      columnPadding: 12,
    },
    header: {labelFontSize: 12, titleFontSize: 12, labelColor: '#33383f', titleColor: '#33383f', labelLimit: 160},
    view: {stroke: null},
    line: {strokeWidth: 2},
    point: {size: 36},
  });

  const merged = (under, over) => {
    if (over === undefined) return under;
    if (!under || !over || typeof under !== 'object' || typeof over !== 'object' || Array.isArray(over)) return over;
    const result = {...under};
    for (const [key, value] of Object.entries(over)) result[key] = merged(under[key], value);
    return result;
  };

  SB.fitted = (figure, width) => {
    const spec = copy(figure.spec);
    spec.description = figure.summary;
    spec.config = merged(SB.chart_theme(), spec.config || {});
    spec.config.range = {
      ...(spec.config.range || {}),
      category: figure.palette.map(index => SB.data.palette.light[index]),
    };
    spec.config.legend.labelLimit = widest_label;
    const height = SB.plot_height(figure, width);
    if (is_composed(spec)) {
      const by = spec.facet || spec.encoding || {};
      const columns = by.column ? distinct(figure, by.column.field) : spec.columns || 1;
      const beside = by.row ? 240 : 80; // labels of rows and of axes
      const place = spec.spec || spec;
      place.width = Math.min(
        columns > 1 ? 520 : 760,
        Math.max(110, Math.floor((width - beside - 24 * (columns - 1)) / columns)),
      );
    } else {
      spec.width = width;
      spec.height = height;
      spec.autosize = {type: 'fit', contains: 'padding'};
      spec.padding = {left: 2, top: 14, right: 6, bottom: 2}; // a line at the top has its name above it
    }
    visit(spec, node => {
      if (node.field === 'series' && node.legend && line_names(figure).length > most_names) node.legend = null;
      if (node.legend && typeof node.legend === 'object' && node.legend.orient === 'bottom')
        node.legend.columns = legend_columns(figure, width);
      if (node.mark && node.mark.type === 'text' && node.mark.clip === undefined) node.mark.clip = false;
      if (!Array.isArray(node.params)) return;
      node.params = node.params.map(param => {
        if (param.bind !== 'scales') return param;
        // A page scrolls past its figures: the wheel zooms with Ctrl or Command held, and a finger scrolls.
        const select = typeof param.select === 'object' ? param.select : {type: param.select};
        return {
          ...param,
          select: {
            ...select,
            zoom: coarse.matches ? false : 'wheel![event.ctrlKey || event.metaKey]',
            translate: coarse.matches ? false : select.translate,
          },
        };
      });
    });
    return with_variables(spec);
  };

  // As papers need it: the numbers inside, no width of this screen.
  SB.whole_spec = figure => ({...figure.spec, data: {values: SB.row_objects(figure)}});

  SB.draw = async (place, figure) => {
    const spec = SB.fitted(figure, Math.floor(place.clientWidth));
    spec.datasets = {rows: SB.row_objects(figure, SB.shown_rows(figure))};
    const result = await window.vegaEmbed(place, spec, {
      mode: 'vega-lite',
      actions: false,
      renderer: 'svg',
      ast: true,
      defaultStyle: false,
      tooltip: (handler, event, item, value) => SB.tip(event, value, figure),
      hover: true,
    });
    // The plot's label and the table below speak for it.
    for (const drawing of place.querySelectorAll('svg')) drawing.setAttribute('aria-hidden', 'true');
    return result.view;
  };

  SB.svg_text = async view => without_variables(await view.toSVG());
  SB.png_blob = async (view, scale = 2) => {
    const text = await SB.svg_text(view);
    const image = new Image();
    const size = /width="([\d.]+)" height="([\d.]+)"/.exec(text);
    image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil(Number(size[1]) * scale);
    canvas.height = Math.ceil(Number(size[2]) * scale);
    const pen = canvas.getContext('2d');
    pen.fillStyle = '#ffffff';
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done, fail) =>
      canvas.toBlob(blob => (blob ? done(blob) : fail(new Error('no image'))), 'image/png'),
    );
  };

  // What a mark under the pointer says, beside the pointer and inside the window.
  SB.tip = (event, value, figure) => {
    const box = document.getElementById('tip');
    if (value === null || value === undefined || value === '') {
      box.hidden = true;
      return;
    }
    // A row of the figure as its table has it, or whatever the specification puts together.
    const columns = figure.columns.filter(column => typeof value === 'object' && column.key in value);
    const lines =
      typeof value !== 'object'
        ? [['', value]]
        : columns.length
          ? columns.map(column => [column.title, value[column.key]])
          : Object.entries(value);
    box.replaceChildren(
      SB.h(
        'table',
        {},
        SB.h(
          'tbody',
          {},
          lines.map(([name, text]) =>
            SB.h(
              'tr',
              {},
              name ? SB.h('th', {scope: 'row'}, SB.shortened(name, 40)) : null,
              SB.h('td', {}, SB.text(SB.shortened(SB.dash(text), 120))),
            ),
          ),
        ),
      ),
    );
    box.hidden = false;
    const {width, height} = box.getBoundingClientRect();
    const x = event.clientX + 14 + width > window.innerWidth ? event.clientX - width - 10 : event.clientX + 14;
    const y = event.clientY + 14 + height > window.innerHeight ? event.clientY - height - 10 : event.clientY + 14;
    box.style.left = Math.max(4, x) + 'px';
    box.style.top = Math.max(4, y) + 'px';
  };
})();
