// Chromium of the distribution on one file, with the network off; every error of the page is a failure.
import {existsSync, mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

export const chromium_path = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);

// Ends with the code that ctest takes for "skipped" where something is missing.
export async function load_tools() {
  const skip = why => {
    console.log('skipped: ' + why);
    process.exit(77);
  };
  if (!chromium_path) skip('no /usr/bin/chromium (apt-get install chromium)');
  try {
    const {chromium} = await import('playwright-core');
    const axe = (await import('axe-core')).default;
    return {chromium, axe};
  } catch (fault) {
    return skip('no node modules (npm ci --prefix tests/browser)');
  }
}

// Milliseconds for anything that must come: a busy machine's, many times what an idle one takes.
const kPatience = 300_000;

// The first answer that is accepted; the last one where none is.
export async function eventually(page, ask, accepted) {
  for (let waited = 0; ; waited += 20) {
    const answer = await ask();
    if (accepted(answer) || waited > kPatience) return answer;
    await page.waitForTimeout(20);
  }
}

// The faults of a page that its users cannot overlook, by axe.
export async function violations(page, axe) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
  return found.violations
    .filter(one => ['serious', 'critical'].includes(one.impact))
    .map(
      one =>
        one.id +
        ': ' +
        one.help +
        '\n  ' +
        one.nodes
          .slice(0, 3)
          .map(node => node.html.slice(0, 160) + ' ' + (node.failureSummary || '').replace(/\s+/g, ' ').slice(0, 200))
          .join('\n  '),
    );
}

// plain: the page is no report, which says when it is built.
export async function with_page(chromium, file, options, action) {
  const profile = mkdtempSync(join(tmpdir(), 'selectivbench-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: chromium_path,
    timeout: kPatience,
    headless: true,
    offline: true,
    acceptDownloads: true,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...(options.args || []),
    ],
    viewport: {width: 1280, height: 900},
    colorScheme: 'light',
    ...options.context,
  });
  context.setDefaultTimeout(kPatience);
  try {
    const page = context.pages()[0] || (await context.newPage());
    const faults = [];
    page.on('console', message => {
      if (message.type() === 'error') faults.push('console: ' + message.text());
    });
    page.on('pageerror', error => faults.push('error: ' + error.message));
    page.on('request', request => {
      if (!/^(file|data|blob):/.test(request.url())) faults.push('request: ' + request.url());
    });
    await page.goto(pathToFileURL(resolve(file)).href + (options.hash || ''));
    if (!options.plain) await page.waitForFunction(() => performance.getEntriesByName('built').length > 0);
    const result = await action(page, faults, context);
    if (faults.length)
      throw new Error('the page reports ' + faults.length + ' faults:\n' + faults.slice(0, 10).join('\n'));
    return result;
  } finally {
    await context.close();
    rmSync(profile, {recursive: true, force: true});
  }
}
