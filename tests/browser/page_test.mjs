// node page_test.mjs REPORT.html [--runs FOLDER] [--figures FOLDER] [--bench] [--only WORDS]
// A reader's way through a report page: what is seen equals the data, digit for digit. --bench: a page of 500 runs,
// timed.
import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, statSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {claims_of} from './claims.mjs';
import {eventually, load_tools, violations, with_page} from './browser.mjs';
import {
  data_of,
  hostile,
  with_hostile_strings,
  with_many_lines,
  with_many_runs,
  with_running,
  write_variant,
} from './variants.mjs';
import {timed_page} from './timing.mjs';

const {chromium, axe} = await load_tools();
const argument = name => {
  const at = process.argv.indexOf(name);
  return at < 0 ? null : process.argv[at + 1];
};
const report = process.argv[2];
const data = data_of(report);
const scratch = mkdtempSync(join(tmpdir(), 'selectivbench-pages-'));
const claims = claims_of(data, argument);

const outcomes = {passed: 0, failed: 0};
async function check(title, action) {
  try {
    await action();
    outcomes.passed++;
    console.log('ok    ' + title);
  } catch (fault) {
    outcomes.failed++;
    console.log('FAIL  ' + title + '\n' + String(fault.message).replace(/^/gm, '      '));
  }
}

const only = argument('--only');
for (const [title, action] of only === 'bench' ? [] : claims) {
  if (only && !title.includes(only)) continue;
  await check(title, () =>
    with_page(chromium, report, {}, async page => {
      await page.evaluate(() => window.SB.show_all_rows());
      await action(page);
    }),
  );
}
for (const scheme of ['light', 'dark']) {
  if (only && !'axe'.includes(only)) continue;
  await check('axe finds nothing serious, ' + scheme, () =>
    with_page(chromium, report, {context: {colorScheme: scheme, bypassCSP: true}}, async page => {
      if (data.meta.charts) await page.evaluate(() => window.SB.draw_all());
      assert.deepEqual(await violations(page, axe), []);
    }),
  );
}
if (!only || 'hostile'.includes(only)) {
  await check('hostile strings are text and break nothing', async () => {
    const file = join(scratch, 'hostile.html');
    write_variant(report, file, with_hostile_strings);
    await with_page(chromium, file, {}, async page => {
      if (data.meta.charts) await page.evaluate(() => window.SB.draw_all());
      assert.equal(await page.textContent('h1'), hostile[0]);
      assert.equal(await page.evaluate(() => window.broken), undefined);
      assert.deepEqual(
        await page.$$eval(
          'img:not([src^="data:image/svg+xml;base64,"]), main script, [onerror], [onload], [onfocus]',
          nodes => nodes.map(node => node.outerHTML),
        ),
        [],
      );
      for (const width of [390, 1280]) {
        await page.setViewportSize({width, height: 900});
        await page.waitForTimeout(250); // charts are drawn anew
        const fits = () =>
          page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
        assert.ok(
          await eventually(page, fits, yes => yes),
          'wider than ' + width,
        );
      }
      await page.evaluate(key => {
        location.hash = 'run-' + key;
      }, data.runs[1].key);
      await page.waitForSelector('tr.extra');
      assert.ok((await page.textContent('tr.extra')).length > 0);
    });
  });
}

if (!only || 'running'.includes(only)) {
  await check('a run that goes on has its line on the board and its loss', async () => {
    const file = join(scratch, 'running.html');
    const changed = write_variant(report, file, with_running);
    await with_page(chromium, file, {}, async page => {
      assert.deepEqual(
        await page.$$eval('table.board tbody th', nodes => nodes.map(node => node.textContent.trim())),
        changed.board.map(line => line.name),
      );
      if (!data.meta.charts) return;
      const lines = () => page.$$eval('#figure-running-loss svg .mark-line path', nodes => nodes.length);
      await page.evaluate(() => window.SB.draw_all());
      assert.equal(await lines(), changed.board.length);
      await page.evaluate(model => window.SB.show_model(model, false), changed.board[0].model);
      await page.evaluate(() => window.SB.draw_all());
      assert.equal(await lines(), changed.board.length - 1);
    });
  });
  await check('a figure without a shown model says so, and comes back', () =>
    with_page(chromium, report, {}, async page => {
      if (!data.meta.charts) return;
      const every = on =>
        page.evaluate(
          async ([names, shown]) => {
            for (const name of names) window.SB.show_model(name, shown);
            await window.SB.draw_all();
          },
          [[...new Set(data.series.map(one => one.model))], on],
        );
      const seen = what => page.$$eval('.plot ' + what, nodes => nodes.length);
      await every(true);
      const drawn = await seen('svg');
      assert.equal(await seen('.nothing'), 0);
      await every(false);
      assert.ok((await seen('.nothing')) > 0);
      await every(true);
      assert.equal(await seen('.nothing'), 0);
      assert.equal(await seen('svg'), drawn);
    }),
  );
  await check('an address that is none of the page harms nothing', () =>
    with_page(chromium, report, {hash: '#%'}, async page => {
      assert.equal(await page.textContent('h1'), data.meta.title);
    }),
  );
}

if (process.argv.includes('--bench')) {
  await check('500 runs: first paint ≤ 1 s, table and steps ≤ 100 ms, charts ≤ 500 ms', async () => {
    const file = join(scratch, 'many.html');
    write_variant(report, file, many => {
      if (many.runs.length >= 500) return;
      with_many_lines(many);
      with_many_runs(many, 500);
    });
    const times = await with_page(chromium, file, {}, timed_page);
    times.megabytes = statSync(file).size / 1e6;
    console.log(
      '      ms of the page’s thread: ' +
        JSON.stringify(times, (key, value) => (typeof value === 'number' ? Number(value.toPrecision(3)) : value)),
    );
    const limits = {
      megabytes: 6,
      first_paint: 1000,
      sort_summary: 100,
      sort_runs: 100,
      step: 100,
      filter: 500,
      slowest_chart: 500,
      shift: 0.1,
    };
    for (const [name, limit] of Object.entries(limits))
      assert.ok(times[name] <= limit, name + ' is ' + times[name] + ', expected at most ' + limit);
  });
}

rmSync(scratch, {recursive: true, force: true});
console.log(outcomes.passed + ' passed, ' + outcomes.failed + ' failed');
process.exit(outcomes.failed ? 1 : 0);
