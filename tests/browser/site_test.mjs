// node site_test.mjs SITE CARD.html: a reader's way through the leaderboard (SITE/index.html, runs.html) and a card.
import assert from 'node:assert/strict';
import {join} from 'node:path';
import {load_tools, violations, with_page} from './browser.mjs';

const {chromium, axe} = await load_tools();
const [site, card] = process.argv.slice(2);
const index = join(site, 'index.html');
const runs = join(site, 'runs.html');

// The visible rows of the results: the texts of their cells.
const visible_rows = page =>
  page
    .locator('#results tbody tr:visible')
    .evaluateAll(rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim())));
const column = async (page, name) => {
  const heads = await page.locator('#results th').allTextContents();
  assert.ok(heads.includes(name), name + ' is no column of ' + heads);
  return heads.indexOf(name);
};
const number = text => Number(text.replace(/[,≤ ]/g, ''));
const count = page => page.locator('#count').textContent();

const claims = {
  'without scripts the table is whole and no filter is shown': {
    context: {javaScriptEnabled: false},
    async action(page) {
      assert.ok((await page.locator('#results tbody tr').count()) > 20);
      assert.equal(await page.locator('#results tbody tr:visible').count(), await page.locator('#results tbody tr').count());
      assert.equal(await page.locator('#filters').isVisible(), false);
    },
  },
  'filters leave the rows of a task, scale and protocol': {
    async action(page) {
      await page.uncheck('input[name=standard]');
      const all = await visible_rows(page);
      assert.equal(await count(page), all.length + ' of ' + all.length);
      const chosen = {task: '1', scale: 'quick', protocol: 'corrected'};
      for (const [name, value] of Object.entries(chosen)) await page.selectOption('select[name=' + name + ']', value);
      const places = await Promise.all(Object.keys(chosen).map(name => column(page, name)));
      const expected = all.filter(row => Object.values(chosen).every((value, i) => row[places[i]] === value));
      assert.ok(expected.length >= 7 && expected.length < all.length);
      assert.deepEqual(await visible_rows(page), expected);
      assert.equal(await count(page), expected.length + ' of ' + all.length);
      for (const name of Object.keys(chosen)) await page.selectOption('select[name=' + name + ']', '');
      assert.deepEqual(await visible_rows(page), all);
    },
  },
  'only standard settings are shown at first': {
    async action(page) {
      const standard = await visible_rows(page);
      const [settings, scale] = [await column(page, 'settings'), await column(page, 'scale')];
      assert.ok(standard.length > 20);
      for (const row of standard) assert.ok(row[settings] === '' || row[scale] === 'other', row.join(' | '));
      await page.uncheck('input[name=standard]');
      const all = await visible_rows(page);
      assert.ok(all.length > standard.length);
      assert.equal(await count(page), all.length + ' of ' + all.length);
      await page.check('input[name=standard]');
      assert.deepEqual(await visible_rows(page), standard);
    },
  },
  'filters leave the rows of at most a size, and none of an unknown one': {
    async action(page) {
      const all = await visible_rows(page);
      for (const [field, name] of [
        ['params', 'parameters'],
        ['state', 'state per layer'],
      ]) {
        const at = await column(page, name);
        const sizes = all.map(row => number(row[at])).filter(size => !isNaN(size));
        const most = sizes.sort((a, b) => a - b)[Math.floor(sizes.length / 2)];
        await page.fill('input[name=' + field + ']', String(most));
        const expected = all.filter(row => number(row[at]) <= most);
        assert.ok(expected.length > 0 && expected.length < all.length);
        assert.deepEqual(await visible_rows(page), expected);
        await page.fill('input[name=' + field + ']', '');
      }
    },
  },
  'a head sorts, a second press turns the order': {
    async action(page) {
      for (const name of ['accuracy', 'model', 'parameters', 'ceiling']) {
        const at = await column(page, name);
        const head = page.locator('#results th').nth(at);
        const orders = [];
        for (let press = 0; press < 2; press++) {
          await head.locator('button').click();
          const shown = (await visible_rows(page)).map(row => row[at]);
          const known = name === 'model' ? shown : shown.map(number).filter(value => !isNaN(value));
          const order = await head.getAttribute('aria-sort');
          const sorted = [...known].sort((a, b) => (name === 'model' ? a.localeCompare(b) : a - b));
          assert.deepEqual(known, order === 'ascending' ? sorted : sorted.reverse(), name + ' ' + order);
          orders.push(order);
        }
        assert.deepEqual(orders.sort(), ['ascending', 'descending'], name);
        assert.equal(await page.locator('#results th[aria-sort]').count(), 1);
      }
    },
  },
  'an accuracy leads to its runs, which give it': {
    async action(page) {
      await page.selectOption('select[name=task]', '1');
      const rows = page.locator('#results tbody tr:visible');
      const at = await column(page, 'accuracy');
      for (const place of [0, (await rows.count()) - 1]) {
        const link = rows.nth(place).locator('td').nth(at).locator('a');
        const shown = await link.textContent();
        const address = page.url();
        await link.click();
        await page.waitForURL(/runs\.html#/);
        const table = page.locator(':target + div table');
        const heads = await table.locator('th').allTextContents();
        const tested = heads.indexOf('test accuracy');
        const values = await table
          .locator('tr')
          .evaluateAll(
            (lines, tested) => lines.slice(1).map(line => [line.cells[1].textContent, Number(line.cells[tested].textContent)]),
            tested,
          );
        // The mean over grammars of the means over their seeds.
        const mean_of = some => some.reduce((sum, value) => sum + value, 0) / some.length;
        const grammars = [...new Set(values.map(([grammar]) => grammar))];
        const mean = mean_of(grammars.map(one => mean_of(values.filter(([grammar]) => grammar === one).map(([, value]) => value))));
        assert.ok(Math.abs(mean - Number(shown)) < 6e-4, shown + ', its runs give ' + mean);
        const archive = table.locator('a').first();
        assert.match(await archive.getAttribute('href'), /^(archives|submissions)\/.*\.tar\.gz$/);
        await page.goto(address);
        await page.selectOption('select[name=task]', '1');
      }
    },
  },
};
for (const [what, file] of Object.entries({index, runs, card})) {
  for (const colorScheme of ['light', 'dark']) {
    claims['axe finds nothing serious, ' + what + ', ' + colorScheme] = {
      file,
      context: {colorScheme, bypassCSP: true},
      action: async page => assert.deepEqual(await violations(page, axe), []),
    };
  }
  claims['a narrow page does not scroll sideways, ' + what] = {
    file,
    context: {viewport: {width: 390, height: 800}},
    async action(page) {
      const [inside, outside] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
      assert.ok(inside <= outside, inside + ' of ' + outside);
    },
  };
}
for (const [what, file] of Object.entries({index, runs})) {
  claims['a page of 1100 pixels shows every column, ' + what] = {
    file,
    context: {viewport: {width: 1100, height: 800}},
    async action(page) {
      if (what === 'index') await page.uncheck('input[name=standard]');
      const cut = await page
        .locator('.wide')
        .evaluateAll(all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.scrollWidth));
      assert.deepEqual(cut, []);
    },
  };
}
claims['the card has its figures'] = {
  file: card,
  async action(page) {
    const drawn = page.locator('figure svg');
    assert.ok((await drawn.count()) >= 5);
    for (const one of await drawn.all()) {
      const box = await one.boundingBox();
      assert.ok(box && box.width > 300 && box.height > 100);
    }
  },
};

let failed = 0;
for (const [title, {file = index, context = {}, action}] of Object.entries(claims)) {
  try {
    await with_page(chromium, file, {plain: true, context}, action);
    console.log('ok    ' + title);
  } catch (fault) {
    failed++;
    console.log('FAIL  ' + title + '\n' + String(fault.message).replace(/^/gm, '      '));
  }
}
process.exit(failed ? 1 : 0);
