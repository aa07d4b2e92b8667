'use strict';
// Elements, text and files. Data reaches the document as text nodes and plain attributes only, never as markup.
(() => {
  const SB = (window.SB = window.SB || {});
  const svg_space = 'http://www.w3.org/2000/svg';

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
      else if (name === 'class') node.setAttribute('class', value);
      else if (name === 'css') for (const [key, v] of Object.entries(value)) node.style.setProperty(key, v);
      else node.setAttribute(name, value === true ? '' : String(value));
    }
    for (const child of children.flat(2)) {
      if (child === null || child === undefined || child === '') continue;
      node.append(child);
    }
    return node;
  }

  // h('a', {href: '#runs', class: 'n', onclick: f}, 'text', node)
  SB.h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  SB.svg = (tag, attributes, ...children) => fill(document.createElementNS(svg_space, tag), attributes, children);

  // Text of unknown origin: its direction stays its own, its length is bounded by style.
  SB.text = (value, name = 't') => {
    const text = value === null || value === undefined ? '–' : String(value);
    return SB.h('bdi', {class: text.length > 2000 ? name + ' long' : name}, text);
  };
  // Sentences of the program, where `words` between backquotes are code.
  SB.prose = value => {
    const text = SB.text(value);
    if (/`[^`]+`/.test(text.textContent)) {
      const parts = text.textContent.split(/`([^`]+)`/);
      text.replaceChildren(...parts.map((part, i) => (i % 2 ? SB.h('code', {}, part) : part)));
    }
    return text;
  };
  SB.shortened = (value, most = 72) => {
    const points = Array.from(String(value));
    return points.length <= most ? String(value) : points.slice(0, most - 1).join('') + '…';
  };
  SB.dash = value => (value === null || value === undefined || value === '' ? '–' : String(value));
  SB.counted = (n, what) => n + ' ' + what + (n === 1 ? '' : 's');
  SB.only_read = value => SB.h('span', {class: 'hidden-text'}, value);

  SB.clear = node => {
    node.replaceChildren();
    return node;
  };
  SB.say = line => {
    document.getElementById('said').textContent = line;
  };

  SB.download = (name, type, content) => {
    const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type}));
    const link = SB.h('a', {href: address, download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };

  // RFC 4180 with line feeds; numbers as they stand in the data. A leading apostrophe keeps spreadsheets from running text.
  const csv_field = value => {
    if (value === null || value === undefined) return '';
    const field = (/^[=+\-@\t\r]/.test(value) && !/^-[\d.]+(e[-+]?\d+)?$/.test(value) ? "'" : '') + value;
    return /[",\r\n]/.test(field) ? '"' + field.replaceAll('"', '""') + '"' : field;
  };
  SB.csv = (header, rows) => [header, ...rows].map(row => row.map(csv_field).join(',') + '\n').join('');

  SB.segments = (legend, options, chosen, change) => {
    const name = 'choice-' + (SB.choices = (SB.choices || 0) + 1);
    return SB.h(
      'fieldset',
      {class: 'segments'},
      SB.h('legend', {}, legend),
      options.map(([value, title]) =>
        SB.h(
          'label',
          {},
          SB.h('input', {type: 'radio', name, value, checked: value === chosen, onchange: () => change(value)}),
          title,
        ),
      ),
    );
  };
  // A select over [value, title]; long titles are cut, for a list is as wide as its longest line.
  SB.picker = (title, options, chosen, change) => {
    const select = SB.h(
      'select',
      {onchange: () => change(select.value)},
      options.map(([value, line]) => SB.h('option', {value, selected: value === chosen}, SB.shortened(line))),
    );
    return SB.h('label', {class: 'field'}, title, select);
  };
})();
