// node screens.mjs REPORT.html FOLDER: the page at three widths, light and dark, section by section.
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {load_tools, with_page} from './browser.mjs';

const {chromium} = await load_tools();
const [report, folder, only_width] = process.argv.slice(2);
mkdirSync(folder, {recursive: true});
for (const width of only_width ? [Number(only_width)] : [390, 1280, 1920]) {
  for (const colorScheme of ['light', 'dark']) {
    await with_page(
      chromium,
      report,
      {context: {viewport: {width, height: width === 390 ? 844 : 1000}, colorScheme}},
      async page => {
        await page.evaluate(() => window.SB.can_draw() && window.SB.draw_all());
        for (const id of ['main', ...(await page.$$eval('#sections > section', nodes => nodes.map(node => node.id)))]) {
          await page.evaluate(at => document.getElementById(at).scrollIntoView({behavior: 'instant'}), id);
          await page.waitForTimeout(100);
          await page.screenshot({path: join(folder, [width, colorScheme, id].join('-') + '.png')});
        }
      },
    );
  }
}
