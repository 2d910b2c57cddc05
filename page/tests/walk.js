// The walk of docs/guide/report-walk.md, step by step: what its text names is there, and leads where it says. HBBP_PAGE is a page of the recording
// `objects`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { openBrowser } from './browser.js';
import { GUIDE, keepPicture } from './picture.js';

const TEXT = readFileSync(new URL('report-walk.md', GUIDE), 'utf8');

/** The text of a step, in one line. */
function step(number) {
  const [, text] = TEXT.split(`\n${number}. `);
  return text.split(/\n\d\. |\n\n\S/)[0].replace(/\s+/g, ' ');
}

test('every step of the walk leads where the guide says', async () => {
  const browser = await openBrowser();
  try {
    const page = await browser.open(pathToFileURL(process.env.HBBP_PAGE).href, { width: 1280, height: 640 });
    /** What a step says, and names in its picture. */
    const says = (number, ...texts) => {
      for (const text of [...texts, `(pictures/report-${number}.png)`]) assert.ok(step(number).includes(text), `step ${number} does not say ${text}`);
    };
    const picture = (number) => keepPicture(page, `report-${number}`);

    says(1, 'Click `Mix`', 'preset `Vectorization`', '`scalar fp arithmetic`');
    await page.click('nav a', 'Mix');
    await page.click('.preset', 'Vectorization');
    const bars = await page.evaluate("[...document.querySelectorAll('.chart tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))");
    const [, , share, error] = bars.find(([name]) => name === 'scalar fp arithmetic');
    says(1, `${Math.round(parseFloat(share))} % of all instructions, \`±\` ${Math.round(parseFloat(error))}`);
    await picture(1);

    says(2, 'Click `scalar fp arithmetic`', '`Polygon::area`');
    await page.click('.chart tbody button', 'scalar fp arithmetic');
    await page.until("document.querySelector('.filter summary')?.textContent === 'vectorization = scalar fp arithmetic'");
    const [first] = await page.texts('.pivot tbody tr');
    assert.match(first, /Polygon::area\(\) const[89]\d\.\d\d %$/);
    await picture(2);

    says(3, 'Click the number beside it', 'here it is one', 'Click its name');
    await page.click('.pivot tbody .cell');
    await page.until("document.querySelector('.cell h4')");
    assert.equal((await page.texts('.cell tbody tr')).length, 1);
    await picture(3);

    await page.click('.cell tbody a');
    await page.until("document.querySelectorAll('.marked').length > 0");
    assert.match((await page.texts('.function-name'))[0], /Polygon::area/);
    const [loop] = await page.texts('.loop-line');
    const [, blocks, trips] = loop.match(/^(loop of \d+ blocks): (\S+ trips on average)$/);
    says(4, `\`${blocks}\`, ${trips}`, 'are marked');
    // The marked instructions are within the bracket.
    assert.ok(await page.evaluate("document.querySelectorAll('.marked .loop-bar').length") > 3);
    await page.evaluate("document.querySelector('.marked').scrollIntoView({ block: 'center' })");
    const lines = await page.texts('.source-line .place');
    const [, line] = TEXT.match(/line (\d+) of `objects.cpp`/);
    assert.ok(lines.includes(`objects.cpp:${line}`), String(lines));
    await picture(4);
    assert.deepEqual(page.errors, []);
  } finally {
    await browser.close();
  }
});
