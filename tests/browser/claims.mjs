// What a reader of a report page is promised; `data` is the page's own, `argument` gives options of the command line.
import assert from 'node:assert/strict';
import {existsSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {eventually} from './browser.mjs';
import {raw_number} from './raw_json.mjs';

export function claims_of(data, argument) {
  const claims = [];
  const claim = (title, action) => claims.push([title, action]);
  const texts = (page, selector) => page.$$eval(selector, nodes => nodes.map(node => node.textContent.trim()));
  // Text a reader sees: without what is for screen readers only.
  const seen_texts = (page, selector) =>
    page.$$eval(selector, nodes =>
      nodes.map(node => {
        const copy = node.cloneNode(true);
        for (const hidden of copy.querySelectorAll('.hidden-text')) hidden.remove();
        return copy.textContent.trim();
      }),
    );
  const series = id => data.series.find(one => one.id === id);

  async function drawn(page, selector = 'figure .plot') {
    await page.$eval(selector, node => node.scrollIntoView({block: 'center', behavior: 'instant'}));
    await page.waitForFunction(at => !document.querySelector(at).classList.contains('waiting'), selector);
  }

  claim('every number of the summary is that of the data', page =>
    page
      .$$eval('table.cells tbody tr', lines =>
        lines.map(line => [...line.children].map(cell => cell.textContent.trim())),
      )
      .then(lines => {
        assert.equal(lines.length, data.summary.cells.length);
        data.summary.cells.forEach((cell, i) => {
          assert.equal(lines[i][0], series(cell.series).name);
          assert.equal(lines[i][2], cell.mean_text);
          assert.equal(lines[i][3], cell.interval_text || '–');
          assert.equal(lines[i][5], cell.fraction_text);
          assert.equal(lines[i][9], cell.paper_text || '–');
          assert.equal(lines[i][10], cell.difference_text || '–');
        });
      }),
  );

  claim('p is sorted as a number, whatever its text', async page => {
    await page.locator('details:has(table.cells) > summary').click();
    await page.locator('table.cells thead th').nth(12).locator('button').click();
    const shown = await page.$$eval('table.cells tbody tr', lines => lines.map(line => line.children[12].textContent));
    const expected = data.summary.cells.map(cell => (cell.versus_best ? cell.versus_best.p : null));
    expected.sort((a, b) => (a === null) - (b === null) || a - b);
    assert.equal(shown.length, expected.length);
    const known = expected.filter(p => p !== null).length;
    shown.forEach((text, i) => assert.equal(text === '–', i >= known, text));
    shown.slice(0, known).forEach((text, i) => {
      if (text.startsWith('<')) assert.ok(expected[i] < 0.001, text);
      else assert.ok(Math.abs(Number(text) - expected[i]) <= 0.0005 + 1e-9, text + ' ' + expected[i]);
    });
  });

  claim('the matrix has the mean of each model and task, and links it to its runs', async page => {
    const lines = await page.$$eval('table.matrix tbody tr', rows =>
      rows.map(row => ({
        name: row.querySelector('th').textContent.trim(),
        links: [...row.querySelectorAll('td.cell')].map(cell => {
          const link = cell.querySelector('a');
          return link ? [link.textContent.trim(), link.getAttribute('href')] : null;
        }),
      })),
    );
    assert.equal(lines.length, data.summary.rows.length);
    lines.forEach((line, i) => {
      const row = data.summary.rows[i];
      assert.equal(line.name, series(row.series).name);
      data.columns.forEach((column, c) => {
        const cell = data.summary.cells.find(one => one.series === row.series && one.column === column.id);
        if (!cell || cell.mean === null || !cell.runs.length) return;
        assert.equal(line.links[c][0], cell.mean_text);
        assert.equal(
          line.links[c][1],
          cell.runs.length === 1 ? '#run-' + cell.runs[0] : '#cell-' + cell.series + '-' + cell.column,
        );
      });
    });
  });

  claim('a column sorts both ways, and says so', async page => {
    const column = data.columns[0];
    const means = new Map(
      data.summary.cells.filter(cell => cell.column === column.id).map(cell => [series(cell.series).name, cell.mean]),
    );
    const button = page.locator('table.matrix thead th').nth(2).locator('button');
    for (const [order, sign] of [
      ['descending', -1],
      ['ascending', 1],
    ]) {
      await button.click();
      assert.equal(await page.locator('table.matrix thead th').nth(2).getAttribute('aria-sort'), order);
      const values = (await texts(page, 'table.matrix tbody th'))
        .map(name => means.get(name))
        .filter(value => value !== null && value !== undefined);
      assert.deepEqual(
        values,
        [...values].sort((a, b) => sign * (a - b)),
      );
      assert.ok(values.length > 0);
    }
  });

  claim('runs are those of the files, digit for digit', async page => {
    const lines = await page.$$eval('table.runs tbody tr[id]', rows =>
      rows.map(row => ({
        key: row.id.slice(4),
        id: row.querySelector('th').textContent.trim(),
        cells: [...row.querySelectorAll('td')].map(cell => cell.textContent.trim()),
      })),
    );
    assert.equal(lines.length, data.runs.length);
    const folder = argument('--runs');
    let compared = 0;
    for (const line of lines) {
      const run = data.runs.find(one => one.key === line.key);
      assert.equal(line.cells[3], run.test_text || '–');
      assert.equal(line.cells[4], run.valid_text || '–');
      const file = folder && run.id ? join(folder, run.id, 'result.json') : null;
      if (!file || !existsSync(file)) continue;
      const text = readFileSync(file, 'utf8');
      for (const [at, path] of [
        [3, ['test', 'accuracy']],
        [4, ['valid', 'accuracy']],
        [5, ['test', 'ceiling', 'accuracy']],
      ]) {
        const raw = raw_number(text, path);
        if (raw !== null) assert.equal(line.cells[at], raw, path.join('.') + ' of ' + run.id);
      }
      compared++;
    }
    if (folder) assert.ok(compared > 0, 'no run of ' + folder + ' is in the page');
  });

  claim('a number leads to its runs', async page => {
    const cell = data.summary.cells.find(one => one.runs.length);
    await page.evaluate(
      at => {
        location.hash = at;
      },
      cell.runs.length === 1 ? 'run-' + cell.runs[0] : 'cell-' + cell.series + '-' + cell.column,
    );
    if (cell.runs.length === 1) {
      await page.waitForSelector('tr.marked#run-' + cell.runs[0]);
      assert.ok(await page.isVisible('tr.extra'));
      assert.match(
        await page.textContent('tr.extra'),
        new RegExp(data.runs.find(run => run.key === cell.runs[0]).digest.slice(-12)),
      );
    } else {
      await page.waitForFunction(
        many => document.querySelectorAll('table.runs tbody tr[id]').length === many,
        cell.runs.length,
      );
    }
  });

  claim('what is in no table is named, with the reason', async page => {
    const others = data.runs.filter(run => run.standing !== 'averaged');
    if (!others.length) return assert.equal(await page.locator('a[href="#left-out"]').count(), 0);
    await page.click('a[href="#left-out"]');
    await page.waitForSelector('.chosen:not([hidden])');
    await page.evaluate(() => window.SB.show_all_rows());
    const keys = await page.$$eval('table.runs tbody tr[id]', rows => rows.map(row => row.id.slice(4)));
    assert.deepEqual(keys.sort(), others.map(run => run.key).sort());
    const first = others.find(run => run.problems.length);
    if (!first) return;
    await page.locator('#run-' + first.key + ' button').click();
    assert.ok((await page.textContent('#run-' + first.key + ' + tr.extra')).includes(first.problems[0]));
  });

  claim('other faces of the summary show the share of the ceiling, and keep the order', async page => {
    await page.locator('table.matrix thead th').nth(2).locator('button').click();
    const order = await texts(page, 'table.matrix tbody th');
    await page.locator('.segments label', {hasText: 'Share of the ceiling'}).click();
    assert.deepEqual((await texts(page, 'table.matrix tbody th')).slice().sort(), order.slice().sort());
    const shown = await page.$$eval('table.matrix tbody tr', rows =>
      rows.map(row =>
        [row.querySelector('th').textContent.trim(), row.querySelector('td .figure > :first-child')].map(part =>
          typeof part === 'string' ? part : part && part.textContent.trim(),
        ),
      ),
    );
    const shares = [];
    for (const [name, share] of shown) {
      const cell = data.summary.cells.find(
        one => one.column === data.columns[0].id && series(one.series).name === name,
      );
      if (!cell || cell.mean === null) continue;
      assert.equal(share, cell.fraction_text);
      if (cell.fraction !== null) shares.push(cell.fraction);
    }
    assert.deepEqual(
      shares,
      [...shares].sort((a, b) => b - a),
    );
  });

  claim('a model that is left out is gone from tables and charts', async page => {
    const name = data.series[0].model;
    const gone = data.series.filter(one => one.model === name).map(one => one.name);
    await page.locator('.models input[value="' + name + '"]').uncheck({force: true});
    const left = await texts(page, 'table.matrix tbody th');
    assert.equal(left.length, data.summary.rows.length - gone.length);
    for (const one of gone) assert.ok(!left.includes(one));
    const figure = data.figures.find(one => one.kind !== 'overview' && one.rows.some(row => gone.includes(row[0])));
    if (data.meta.charts && figure) {
      await drawn(page, '#figure-' + figure.id + ' .plot');
      const shown = await page.evaluate(
        id => window.SB.shown_rows(window.SB.data.figures.find(one => one.id === id)).length,
        figure.id,
      );
      assert.equal(shown, figure.rows.filter(row => !gone.includes(row[0])).length);
    }
  });

  claim('a sample is stepped with the arrow keys', async page => {
    const sample = data.samples[0];
    if (!sample) return;
    const state = () => page.textContent('.now-line .id:nth-of-type(2)');
    await page.focus('#try .scroll');
    assert.equal(await state(), sample.elements[0].state);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    assert.equal(await state(), sample.elements[2].state);
    await page.keyboard.press('ArrowLeft');
    assert.equal(await state(), sample.elements[1].state);
    const beliefs = await page.$$eval('.belief', cards =>
      cards.map(card => [...card.querySelectorAll('li')].map(line => [...line.children].map(node => node.textContent))),
    );
    const expected = [sample.filter, ...sample.models.map(model => model.beliefs)].map(of =>
      of[1].map(([name, p]) => [name, String(p)]),
    );
    assert.deepEqual(beliefs, expected);
    await page.keyboard.press('End');
    assert.equal(await state(), sample.elements[sample.elements.length - 1].state);
  });

  claim('two models are compared, either way round', async page => {
    const column = data.compare.columns.find(one => one.pairs.length);
    if (!column) return;
    const [a, b, , , , , , text] = column.pairs[0];
    const name = data.columns.find(one => one.id === column.column).name;
    const shown = async (x, y) => {
      await page.locator('#compare select').nth(0).selectOption(x);
      await page.locator('#compare select').nth(1).selectOption(y);
      return page
        .locator('#compare table')
        .first()
        .locator('tbody tr', {has: page.locator('th', {hasText: name})})
        .first()
        .locator('td.difference')
        .textContent();
    };
    assert.equal(await shown(a, b), text);
    const turned = await shown(b, a);
    assert.equal(turned.slice(1), text.slice(1));
    if (Number(text) !== 0) assert.notEqual(turned[0], text[0]);
  });

  claim('dark and light are a choice', async page => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.click('#theme');
    assert.equal(await ground(), light); // system (light here) to light
    await page.click('#theme');
    const dark = await ground();
    assert.notEqual(dark, light);
    assert.equal(
      await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--c0').trim()),
      data.palette.dark[0],
    );
  });

  const download = async (page, action) => {
    const [file] = await Promise.all([page.waitForEvent('download'), action()]);
    return {
      name: file.suggestedFilename(),
      text: readFileSync(await file.path(), 'latin1'),
      utf8: readFileSync(await file.path(), 'utf8'),
    };
  };
  const field = value =>
    value === null
      ? ''
      : /[",\r\n]/.test(String(value))
        ? '"' + String(value).replaceAll('"', '""') + '"'
        : String(value);
  const csv_of = figure =>
    [figure.columns.map(column => column.key), ...figure.rows].map(row => row.map(field).join(',') + '\n').join('');

  claim('figures are saved as CSV, JSON, SVG and PNG', async page => {
    const figure = data.figures.find(one => one.kind !== 'overview');
    if (!figure) return;
    const save = title =>
      download(page, () => page.click('#figure-' + figure.id + ' .saves button[aria-label="Save ' + title + '"]'));
    const csv = await save('CSV');
    assert.equal(csv.name, figure.id + '.csv');
    assert.equal(csv.utf8, csv_of(figure));
    const written = argument('--figures');
    if (written) assert.equal(csv.utf8, readFileSync(join(written, figure.id + '.csv'), 'utf8'));
    const spec = JSON.parse((await save('JSON')).utf8);
    assert.equal(spec.data.values.length, figure.rows.length);
    figure.columns.forEach((column, i) => assert.equal(spec.data.values[0][column.key], figure.rows[0][i]));
    if (!data.meta.charts) return;
    await drawn(page, '#figure-' + figure.id + ' .plot');
    const svg = await save('SVG');
    assert.match(svg.utf8, /^<svg /);
    assert.doesNotMatch(svg.utf8, /var\(/);
    assert.ok((await save('PNG')).text.startsWith('\x89PNG'));
  });

  claim('every chart is drawn, and its table has its numbers', async page => {
    if (data.meta.charts) {
      await page.evaluate(() => window.SB.draw_all());
      const plots = await page.$$eval('figure .plot', nodes =>
        nodes.map(node => [
          node.parentElement.id,
          Boolean(node.querySelector('svg')),
          node.querySelectorAll('.fault').length,
        ]),
      );
      for (const [id, has_drawing, faults] of plots) assert.ok(has_drawing && !faults, id + ' is not drawn');
    }
    for (const figure of data.figures.slice(0, 12)) {
      const card = page.locator('#figure-' + figure.id);
      if (!(await card.count())) continue; // a further setting of another card
      // Open at first where nothing is drawn.
      if (!(await card.locator('.values').evaluate(node => node.open))) await card.locator('.values > summary').click();
      await page.evaluate(() => window.SB.show_all_rows());
      const lines = () =>
        card
          .locator('.values tbody tr')
          .evaluateAll(rows => rows.map(row => [...row.children].map(cell => cell.textContent)));
      assert.deepEqual(
        await eventually(page, lines, rows => rows.length === figure.rows.length),
        figure.rows.map(row => row.map(value => (value === null || value === '' ? '–' : String(value)))),
      );
    }
  });

  claim('a chart answers pointer, legend and wheel', async page => {
    const drawn_once = id => page.waitForFunction(at => !document.querySelector(at).classList.contains('waiting'), id);
    const figure = data.figures.find(one => /position|loss/.test(one.kind));
    if (!data.meta.charts || !figure) return;
    const plot = '#figure-' + figure.id + ' .plot';
    await page.$eval(plot, node => node.scrollIntoView({block: 'center', behavior: 'instant'}));
    await drawn_once(plot);
    const middle = selector =>
      page.$$eval(plot + ' ' + selector, nodes => {
        const box = nodes[Math.floor(nodes.length / 2)].getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
      });
    await page.mouse.move(...(await middle('.mark-symbol.role-mark path')));
    await page.waitForSelector('#tip:not([hidden])');
    const said = await page.$$eval('#tip td', cells => cells.map(cell => cell.textContent));
    const text = value => (value === null || value === '' ? '–' : String(value));
    assert.ok(
      figure.rows.some(row => row.every((value, i) => text(value) === said[i])),
      'the tip says ' + said,
    );

    const faint = () =>
      page.$$eval(
        plot + ' .mark-line.role-mark path',
        lines =>
          lines.filter(line => Number(line.getAttribute('opacity') || line.getAttribute('stroke-opacity') || 1) < 0.5)
            .length,
      );
    assert.equal(await faint(), 0);
    await page.mouse.click(...(await middle('.role-legend-symbol path')));
    const others = figure.series.length - 1;
    assert.equal(await eventually(page, faint, count => count === others), others);

    const labels = () => texts(page, plot + ' .role-axis-label text');
    const before = await labels();
    await page.mouse.move(...(await middle('.mark-symbol.role-mark path')));
    const place = () => page.evaluate(() => window.scrollY);
    const top = await place();
    await page.mouse.wheel(0, 60);
    assert.notEqual(await eventually(page, place, at => at !== top), top);
    assert.deepEqual(await labels(), before);
    await page.mouse.move(...(await middle('.mark-symbol.role-mark path')));
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -300);
    await page.keyboard.up('Control');
    assert.notDeepEqual(await eventually(page, labels, now => String(now) !== String(before)), before);
  });

  claim('nothing moves while it loads, and nothing is wider than the screen', async page => {
    for (const width of [390, 768, 1280, 1920]) {
      await page.setViewportSize({width, height: 900});
      const wider = () =>
        page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      await page.waitForTimeout(250); // charts are drawn anew
      const wide = await eventually(page, wider, pixels => pixels <= 0);
      assert.ok(wide <= 0, 'the page is ' + wide + ' px wider than ' + width);
    }
  });

  return claims;
}
