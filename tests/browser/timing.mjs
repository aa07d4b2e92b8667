// Time on the page's own thread, which other programs of the machine do not lengthen: script, style and layout until
// the frame after the action.
export async function timed_page(page, faults, context) {
  const tools = await context.newCDPSession(page);
  await tools.send('Performance.enable', {timeDomain: 'threadTicks'});
  const spent = async () => {
    const {metrics} = await tools.send('Performance.getMetrics');
    return 1000 * metrics.find(metric => metric.name === 'TaskDuration').value;
  };
  const frame = () =>
    page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  const times = {};
  // Loading again: what the thread did until the first paint, and until all is there.
  await page.reload({waitUntil: 'commit'});
  const began = await spent();
  // The summary is on the screen, not only the frame of the page.
  await page.waitForFunction(
    () =>
      performance.getEntriesByName('seen').length > 0 &&
      performance.getEntriesByName('first-contentful-paint').length > 0,
    null,
    {polling: 20},
  );
  times.first_paint = (await spent()) - began;
  await page.waitForFunction(() => performance.getEntriesByName('built').length > 0);
  times.built = (await spent()) - began;
  times.first_paint_wall = await page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0].startTime,
  );
  times.shift = await page.evaluate(
    () =>
      new Promise(done => {
        let sum = 0;
        const add = list => {
          for (const entry of list.getEntries()) sum += entry.hadRecentInput ? 0 : entry.value;
        };
        new PerformanceObserver(add).observe({type: 'layout-shift', buffered: true});
        setTimeout(() => done(sum), 500);
      }),
  );
  const actions = {
    sort_summary: () => document.querySelectorAll('table.matrix thead button')[1].click(),
    sort_runs: () => document.querySelectorAll('table.runs thead button')[4].click(),
    step: () => document.querySelector('#try button[aria-label="Next element"]').click(),
    filter: () => document.querySelector('.models input').click(),
  };
  for (const [name, action] of Object.entries(actions)) {
    const tries = [];
    for (let i = 0; i < 5; i++) {
      await frame();
      const before = await spent();
      await page.evaluate(action);
      await frame();
      tries.push((await spent()) - before);
    }
    times[name] = tries.sort((a, b) => a - b)[2];
  }
  const cards = await page.$$eval('figure', nodes => nodes.map(node => node.id));
  times.slowest_chart = 0;
  for (const id of (await page.evaluate(() => window.SB.can_draw())) ? cards : []) {
    const before = await spent();
    await page.evaluate(async at => {
      const card = document.querySelector('#' + at + ' .plot').card;
      card.stale = true;
      await card.draw();
    }, id);
    await frame();
    const one = (await spent()) - before;
    if (one > times.slowest_chart) Object.assign(times, {slowest_chart: one, slowest_name: id});
  }
  return times;
}
