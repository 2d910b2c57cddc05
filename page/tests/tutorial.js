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
    const { href } = pathToFileURL(process.env.HBBP_PAGE);
    const page = await browser.open(href, { width: 1000, height: 380 });
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
    const instructions = await page.evaluate("document.querySelector('.loop-line').closest('table').textContent");
    assert.equal(instructions.match(/mulps xmm/g)?.length, 1, instructions);
    assert.equal(instructions.match(/addss xmm/g)?.length, 4, instructions);
    says('four `addss`');
    // More of the loop fits into a higher window.
    const code = await browser.open(href + await page.evaluate('location.hash'), { width: 1000, height: 600 });
    await code.until("document.querySelectorAll('.loop-line').length > 0");
    await code.evaluate("document.querySelector('.loop-line').scrollIntoView({ block: 'center' })");
    await keepPicture(code, 'tutorial-2');
    assert.deepEqual([...page.errors, ...code.errors], []);
  } finally {
    await browser.close();
  }
});
