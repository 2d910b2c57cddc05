// What docs/guide/tutorial.md says of the page of its first program. HBBP_PAGE is a page of the recording that is kept of it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { openBrowser } from './browser.js';
import { GUIDE, keepPicture } from './picture.js';

const TEXT = readFileSync(new URL('tutorial.md', GUIDE), 'utf8').replace(/\s+/g, ' ');

test('the page of the first program shows what the first hour says', async () => {
  const browser = await openBrowser();
  try {
    const page = await browser.open(pathToFileURL(process.env.HBBP_PAGE).href, { width: 1000, height: 440 });
    const says = (...texts) => texts.forEach((text) => assert.ok(TEXT.includes(text), `the guide does not say ${text}`));

    says('Click `Loops`', '(pictures/tutorial-1.png)');
    await page.click('nav a', 'Loops');
    const rows = await page.evaluate("[...document.querySelectorAll('.loops tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))");
    const [address, name, line, share, trips] = rows[0];
    assert.deepEqual([name, line], ['distance', 'nearest.c:10']);
    says(`${Math.round(parseFloat(share))} % of all instructions are in the loop of line 10, which has ${trips} trips`);
    await keepPicture(page, 'tutorial-1');

    says('Click the address', '(pictures/tutorial-2.png)');
    await page.click('.loops tbody a', address);
    await page.until("document.querySelectorAll('.loop-line').length > 0");
    assert.deepEqual(await page.texts('.loop-line'), [`loop of 1 block: ${trips} trips on average`]);
    const code = await page.evaluate("document.querySelector('.loop-line').closest('table').textContent");
    assert.equal(code.match(/mulps xmm/g)?.length, 1, code);
    assert.equal(code.match(/addss xmm/g)?.length, 4, code);
    says('four `addss`');
    await page.evaluate("document.querySelector('.loop-line').scrollIntoView({ block: 'start' })");
    await page.evaluate('window.scrollBy(0, -120)');
    await keepPicture(page, 'tutorial-2');
    assert.deepEqual(page.errors, []);
  } finally {
    await browser.close();
  }
});
