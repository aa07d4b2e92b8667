'use strict';
// Method: words, formulas, tables and citations, as the program wrote them.
(() => {
  const SB = (window.SB = window.SB || {});

  // Formulas are constant text of the program; whatever is not MathML is shown as plain text.
  const allowed = new Set([
    'math',
    'mrow',
    'mi',
    'mo',
    'mn',
    'mtext',
    'mfrac',
    'msub',
    'msup',
    'msubsup',
    'munder',
    'mover',
    'munderover',
    'msqrt',
    'mspace',
    'mtable',
    'mtr',
    'mtd',
    'mpadded',
    'mstyle',
    'mfenced',
    'mroot',
  ]);
  function formula(block) {
    const parsed = new DOMParser().parseFromString(block.mathml, 'application/xml');
    const nodes = [...parsed.querySelectorAll('*')];
    const plain = nodes.every(
      node => allowed.has(node.localName) && [...node.attributes].every(a => !/^on|href|src|style/i.test(a.name)),
    );
    if (!plain || parsed.documentElement.localName !== 'math') return SB.h('pre', {}, block.text);
    const math = document.importNode(parsed.documentElement, true);
    math.setAttribute('aria-label', block.text);
    return SB.h('div', {class: 'formula'}, math);
  }
  const block_of = block => {
    switch (block.kind) {
      case 'formula':
        return formula(block);
      case 'code':
        return SB.h('pre', {tabindex: '0'}, SB.h('code', {}, block.text));
      case 'table':
        return SB.table({
          label: 'Table',
          pin: false,
          rows: block.rows,
          columns: block.columns.map((title, i) => ({
            title,
            left: true,
            wrap: block.rows.some(row => String(row[i]).length > 40),
            head: i === 0,
            cell: row => SB.text(SB.dash(row[i])),
          })),
        }).element;
      default:
        return SB.h('p', {}, SB.prose(block.text));
    }
  };
  SB.build_method = place => {
    place.append(
      ...SB.data.method.map(part =>
        SB.h('div', {class: 'method'}, SB.h('h3', {}, SB.text(part.title)), part.blocks.map(block_of)),
      ),
    );
  };
})();
