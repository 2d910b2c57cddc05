// A page in Chromium, with clicks and keys. `tests/page.rs` makes the pages, and names them: HBBP_PAGE is one of the recording `objects`,
// HBBP_CHANGES_PAGE of this one after `interpret`, HBBP_HOSTILE_PAGE of a program whose names are markup, twice. HBBP_PICTURES is a folder for pictures, to be looked at.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { openBrowser } from './browser.js';

const { HBBP_PAGE, HBBP_CHANGES_PAGE, HBBP_HOSTILE_PAGE, HBBP_PICTURES } = process.env;
const [PAGE, CHANGES] = [HBBP_PAGE, HBBP_CHANGES_PAGE].map((file) => pathToFileURL(file).href);

let browser;
before(async () => { browser = await openBrowser(); });
after(() => browser?.close());

/** Opens a page, and in the end checks that nothing went wrong in it and nothing was loaded. */
async function on(url, view, use) {
  const page = await browser.open(url, view);
  try {
    await use(page);
    assert.deepEqual(page.errors, []);
    assert.deepEqual(page.loaded.map((one) => one.split('#')[0]), [url.split('#')[0]]);
  } finally {
    await page.close();
  }
}

const shownParts = (page) => page.evaluate("[...document.querySelectorAll('main > section')].filter((one) => !one.hidden).map((one) => one.id)");

test('the parts are shown one by one, and the browser goes back', () => on(PAGE, { width: 1280 }, async (page) => {
  assert.deepEqual(await shownParts(page), ['part-summary']);
  assert.ok((await page.texts('#part-summary li')).length > 2);
  await page.click('nav a', 'Loops');
  await page.until("!document.getElementById('part-loops').hidden");
  assert.ok((await page.texts('.loops tbody tr')).length > 5);
  await page.click('nav a', 'Functions');
  await page.until("!document.getElementById('part-functions').hidden");
  await page.back();
  await page.until("!document.getElementById('part-loops').hidden");
  assert.deepEqual(await shownParts(page), ['part-loops']);
}));

test('functions are searched, sorted and opened', () => on(`${PAGE}#functions`, { width: 1280 }, async (page) => {
  const all = (await page.texts('.functions tbody tr')).length;
  assert.ok(all > 10);
  await page.click('#search');
  await page.type('Circle');
  await page.until("[...document.querySelectorAll('.functions tbody tr')].every((row) => row.textContent.includes('Circle'))");
  await page.click('.functions tbody a');
  await page.until("document.querySelector('.function-name').textContent.includes('Circle::area')");
  assert.ok((await page.texts('.listing tbody tr')).length > 5);
  await page.evaluate("(() => { const search = document.getElementById('search'); search.value = ''; search.dispatchEvent(new Event('input')); })()");
  await page.click('.functions .sort', 'function');
  const names = await page.texts('.functions tbody th');
  assert.equal(names.length, all);
  assert.deepEqual(names, [...names].sort());
  await page.click('.functions .sort', 'function');
  assert.deepEqual(await page.texts('.functions tbody th'), [...names].reverse());
  assert.equal(await page.evaluate("document.querySelector('.functions [aria-sort]').getAttribute('aria-sort')"), 'descending');
}));

test('time stands beside instructions, in functions and in the pivot', () => on(`${PAGE}#functions`, { width: 1280 }, async (page) => {
  const column = (at) => page.texts(`.functions tbody td:nth-child(${at})`);
  assert.deepEqual((await page.texts('.functions thead th')).slice(0, 5), ['function', 'share ↓', '±', 'time', 'time / instr.'].map((text) => text.replace(' ↓', '')));
  await page.click('.functions .sort', 'time / instr.');
  const long = (await column(5)).filter((text) => text !== '').map(parseFloat);
  assert.ok(long.length > 2 && long[0] > 1 && long.every((one, at) => at === 0 || one <= long[at - 1]), String(long));
  assert.ok((await page.texts('.functions .slow')).every((text) => parseFloat(text) >= 2));
  await page.click('nav a', 'Mix');
  await page.click('[data-preset=functions]');
  await page.choose('#shown', 'time');
  const shares = (await page.texts('.pivot tbody td .cell')).filter((text) => text !== '').map(parseFloat);
  assert.ok(shares.length > 3 && Math.abs(shares.reduce((sum, one) => sum + one, 0) - 100) < 0.2, String(shares));
  assert.ok(shares.every((one, at) => at === 0 || one <= shares[at - 1]), String(shares));
  await page.choose('#shown', 'time-per-instruction');
  assert.match((await page.texts('.pivot tbody td .cell'))[0], /^\d+(\.\d+)?x$/);
  assert.match((await page.texts('#part-mix .command'))[0], /--values time-per-instruction$/);
}));

test('loops are a key', () => on(`${PAGE}#mix`, { width: 1280 }, async (page) => {
  await page.choose('[data-add=rows]', 'loop');
  await page.click('[data-key=mnemonic] button', '×');
  const loops = await page.texts('.pivot tbody th');
  assert.ok(loops.includes('[no loop]') && loops.some((text) => /^main:\d+/.test(text)), String(loops));
}));

test('loops and frames of two recordings are beside each other', () => on(`${CHANGES}#loops`, { width: 1280 }, async (page) => {
  assert.deepEqual((await page.texts('.loops thead th')).slice(3, 6), ['before', 'after', 'change']);
  const rows = await page.evaluate("[...document.querySelectorAll('.loops tbody tr')].map((row) => [...row.cells].slice(3, 6).map((cell) => parseFloat(cell.textContent)))");
  assert.ok(rows.length > 10 && rows.some(([was]) => was > 0) && rows.some(([, is]) => is > 0));
  for (const [was, is, change] of rows) assert.ok(Math.abs(is - was - change) < 0.02, `${was} ${is} ${change}`);
  await page.click('nav a', 'Flame graph');
  await page.until("!document.getElementById('part-flame').hidden");
  assert.equal(await page.evaluate("document.querySelectorAll('.frame.step3').length > 0 && document.querySelectorAll('.frame.step-3').length"), 0);
  assert.match((await page.texts('.flame-line'))[0], /% of all before, \d+\.\d\d % after \([+-]\d+\.\d\d\)/);
  // What is gone is among the frames before.
  await page.choose('#flame-side', 'before');
  assert.ok(await page.evaluate("document.querySelectorAll('.frame.step-3').length") > 0);
  assert.match(await page.evaluate("document.querySelector('.frame.step-3').getAttribute('title')"), /% of all before, .*% after \(-\d+\.\d\d\)$/);
  assert.match(await page.evaluate("document.querySelector('.frame[href]').getAttribute('href')"), /^#before\/\d+$/);
}));

test('no part shows markup of its sentences', async () => {
  for (const url of [PAGE, CHANGES, pathToFileURL(HBBP_HOSTILE_PAGE).href]) {
    await on(url, { width: 1280 }, async (page) => {
      for (const part of ['summary', 'changes', 'mix', 'functions', 'loops', 'flame']) {
        await page.evaluate(`location.hash = '#${part}'`);
        const text = await page.evaluate('document.body.innerText');
        assert.ok(!text.includes('`'), text.slice(Math.max(text.indexOf('`') - 80, 0), text.indexOf('`') + 80));
      }
    });
  }
});

test('branches and loops lead to their code', () => on(`${PAGE}#loops`, { width: 1280 }, async (page) => {
  const [address] = await page.texts('.loops tbody a');
  await page.click('.loops tbody a');
  await page.until(`document.querySelector('.target')?.dataset.address === '${address}'`);
  assert.ok((await page.texts('.loop-line')).some((text) => /^loop of \d+ blocks?: .* trips on average$/.test(text)));
  assert.ok((await page.texts('.note')).some((text) => /^taken \d+ %$/.test(text)));
  await page.click('.listing .to');
  await page.until(`document.querySelector('.target') && location.hash.split('/').length === 3 && document.querySelector('.target').dataset.address === location.hash.split('/')[2]`);
}));

test('the flow graph and the code are in step', () => on(`${PAGE}#functions`, { width: 1280 }, async (page) => {
  await page.click('.controls label', 'flow graph');
  await page.until("document.querySelectorAll('.graph .node').length > 3");
  const nodes = await page.texts('.graph .node .code');
  const seen = await page.evaluate("[...document.querySelectorAll('.listing tr[data-address]:not(.not-seen) .address[tabindex]')].map((one) => one.textContent)");
  assert.deepEqual(nodes, seen);
  assert.ok((await page.texts('.graph .edge-count')).length >= nodes.length);
  assert.ok((await page.texts('.graph .loop-box')).length > 0);
  await page.click('.graph .node:last-of-type');
  const last = nodes[nodes.length - 1];
  await page.until(`document.querySelector('.listing .target')?.dataset.address === '${last}'`);
  assert.deepEqual(await page.texts('.graph .node.current .code'), [last]);
  await page.key('n');
  await page.until(`document.querySelector('.graph .node.current .code').textContent !== '${last}'`);
  assert.equal(await page.evaluate("document.querySelector('.listing .target').dataset.address"), (await page.texts('.graph .node.current .code'))[0]);
  if (HBBP_PICTURES) await page.picture(join(HBBP_PICTURES, 'graph-1280-light.png'));
}));

test('the pivot is changed by choices and by dragging', () => on(`${PAGE}#mix`, { width: 1280 }, async (page) => {
  const rows = await page.texts('.pivot tbody th');
  assert.ok(rows.includes('mov') && rows.length > 20);
  assert.equal((await page.texts('.pivot thead th')).join(), 'mnemonic,share,±');
  await page.choose('[data-add=columns]', 'packing');
  assert.deepEqual((await page.texts('.pivot thead th')).slice(0, 2), ['mnemonic', 'all']);
  assert.ok((await page.texts('.pivot thead th')).includes('packed'));
  await page.drag('[data-zone=columns] [data-key=packing]', '[data-zone=rows] .zone-title');
  await page.until("document.querySelector('[data-zone=rows] [data-key=packing]')");
  assert.deepEqual((await page.texts('.pivot thead th')).slice(0, 3), ['mnemonic', 'packing', 'share']);
  // Before the other one, where it is dropped on it.
  await page.drag('[data-key=packing]', '[data-key=mnemonic]');
  await page.until("document.querySelector('.pivot thead th').textContent === 'packing'");
  await page.click('[data-key=packing] button', '×');
  await page.click('[data-swap]');
  assert.deepEqual(await page.texts('.pivot tbody th'), ['all']);
  await page.click('[data-swap]');
  assert.deepEqual(await page.texts('.pivot tbody th'), rows);
}));

test('filters keep what is chosen', () => on(`${PAGE}#mix`, { width: 1280 }, async (page) => {
  await page.choose('[data-add=filters]', 'mnemonic');
  await page.click('.filter .values button', 'none');
  await page.until("document.querySelector('.empty')");
  await page.click('.filter .values label', 'mov');
  await page.until("document.querySelectorAll('.pivot tbody tr').length === 1");
  await page.click('.filter .values label', 'lea');
  assert.deepEqual(await page.texts('.pivot tbody th'), ['mov', 'lea']);
  assert.match((await page.texts('.command'))[0], /^hbbp mix \S+ --rows mnemonic --filter 'mnemonic=(mov,lea|lea,mov)'$|--filter mnemonic=(mov,lea|lea,mov)$/);
  await page.click('.filter > button');
  await page.until("document.querySelectorAll('.pivot tbody tr').length > 20");
}));

test('a cell leads to code with its instructions marked', () => on(`${PAGE}#mix/vectorization`, { width: 1280 }, async (page) => {
  assert.ok((await page.texts('.chart tbody th')).includes('packed sse 128'));
  assert.ok((await page.texts('.pivot thead th')).includes('packed sse 128'));
  await page.click('.pivot tbody .cell');
  await page.until("document.querySelector('.cell h4')");
  await page.click('.cell table a');
  await page.until("document.querySelectorAll('.marked').length > 0");
  const marked = await page.texts('.marked .text');
  assert.ok(marked.every((text) => /^[a-z0-9]*(sd|ss|pd|ps|pxor|pcl|por|pand|dq|xmm)\b/.test(text) || text.includes('xmm')), String(marked));
  await page.click('nav a', 'Mix');
  await page.click('.chart tbody button', 'scalar fp arithmetic');
  await page.until("document.querySelector('.filter summary').textContent === 'vectorization = scalar fp arithmetic'");
}));

test('all of it can be used by keys', () => on(PAGE, { width: 1280 }, async (page) => {
  await page.key('2');
  await page.until("!document.getElementById('part-mix').hidden");
  await page.key('/');
  await page.until("document.activeElement.id === 'search'");
  await page.type('area');
  // Past the titles of the columns.
  const titles = (await page.texts('.functions .sort')).length;
  for (let at = 0; at <= titles; at += 1) await page.key('Tab');
  await page.until("document.activeElement.closest('.functions tbody') !== null");
  const first = await page.evaluate('document.activeElement.textContent');
  await page.key('ArrowDown');
  assert.notEqual(await page.evaluate('document.activeElement.textContent'), first);
  await page.key('ArrowUp');
  assert.equal(await page.evaluate('document.activeElement.textContent'), first);
  await page.key('Enter');
  await page.until(`document.querySelector('.function-name').textContent === ${JSON.stringify(first)}`);
  await page.key('n');
  await page.until("document.querySelector('.target') !== null");
  const target = await page.evaluate("document.querySelector('.target').dataset.address");
  await page.key('n');
  await page.until(`document.querySelector('.target').dataset.address !== '${target}'`);
}));

test('markup in names stays text', () => on(pathToFileURL(HBBP_HOSTILE_PAGE).href, { width: 1280 }, async (page) => {
  const title = await page.evaluate('document.title');
  assert.ok(!title.includes('HACKED'), title);
  for (const part of ['mix/vectorization', 'functions/0', 'loops', 'flame', 'changes', 'functions', 'summary']) {
    await page.evaluate(`location.hash = '#${part}'`);
    await page.until(`!document.getElementById('part-${part.split('/')[0]}').hidden`);
  }
  assert.equal(await page.evaluate("document.querySelectorAll('script').length"), 2);
  assert.equal(await page.evaluate("document.querySelectorAll('img, iframe, object, embed').length"), 0);
  const name = await page.evaluate("document.querySelector('.functions tbody a').textContent");
  assert.ok(name.startsWith('a</script><script>document.title') && name.includes('\\u{202e}\\u{7}'), name);
}));

test('the flame graph is zoomed, searched, and leads to code', () => on(`${PAGE}#flame`, { width: 1280 }, async (page) => {
  const all = (await page.texts('.frame')).length;
  assert.ok(all > 20, String(all));
  const [root] = await page.texts('.flame-line strong');
  assert.equal(root, '[unknown callers]');
  // The frame of a function that is not the widest.
  const name = await page.evaluate("[...document.querySelectorAll('.frame[href]')].find((one) => one.textContent.length > 3).textContent");
  await page.click('.frame[href]', name);
  await page.until(`document.querySelector('.flame-line strong').textContent === ${JSON.stringify(name)}`);
  assert.match((await page.texts('.flame-line'))[0], /\d+\.\d\d % of all, .+ instructions; \d+\.\d\d % in itself code$/);
  const widths = "['.frame[tabindex=\"0\"]', '.flame'].map((one) => Math.round(document.querySelector(one).getBoundingClientRect().width)).join()";
  assert.match(await page.evaluate(widths), /^(\d+),\1$/);
  assert.equal(await page.evaluate("document.querySelectorAll('.frame.plain').length"), 1);
  // With a modifier it is left to the browser, which opens a link.
  const isLeft = "(() => { const event = new MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey: true }); let kept; "
    + "document.body.addEventListener('click', (one) => { kept = !one.defaultPrevented; one.preventDefault(); }, { once: true }); "
    + "document.querySelector('.frame[href]').dispatchEvent(event); return kept; })()";
  assert.ok(await page.evaluate(isLeft));
  await page.key('/');
  await page.until("document.activeElement.id === 'flame-search'");
  await page.type('area');
  await page.click('.flame-all');
  await page.until("document.querySelectorAll('.frame.match').length > 0");
  assert.ok((await page.texts('.frame.match')).filter((text) => text !== '').every((text) => text.toLowerCase().includes('area')));
  assert.match((await page.texts('#part-flame .status'))[0], /^\d+ frames? with “area”: \d+\.\d\d % of all instructions/);
  await page.evaluate("(() => { const search = document.getElementById('flame-search'); search.value = ''; search.dispatchEvent(new Event('input')); })()");
  // By keys: to what the first frame called, to what is beside it, to its code.
  await page.evaluate("document.querySelector('.frame[tabindex=\"0\"]').focus()");
  await page.key('ArrowDown');
  const [first] = await page.texts('.flame-line strong');
  assert.notEqual(first, root);
  await page.key('ArrowRight');
  await page.key('ArrowLeft');
  assert.equal((await page.texts('.flame-line strong'))[0], first);
  await page.key('Enter');
  await page.until("!document.querySelector('.flame-all').disabled && document.activeElement.classList.contains('frame')");
  await page.key('c');
  await page.until("!document.getElementById('part-functions').hidden");
  // Very long names are cut inside.
  const [begin, end = ''] = first.split('…');
  const [shown] = await page.texts('.function-name');
  assert.ok(shown.startsWith(begin) && shown.endsWith(end));
}));

test('what changed is said in words, as a table and in the mix', () => on(CHANGES, { width: 1280 }, async (page) => {
  assert.match((await page.texts('.changes-lead p'))[0], /^What changed: \d+ functions changed by more than chance/);
  await page.click('nav a', 'Changes');
  await page.until("!document.getElementById('part-changes').hidden");
  assert.equal((await page.texts('.changed thead th')).slice(0, 5).join(), 'function,before,after,change,±');
  assert.ok((await page.texts('.changed .finding .verdict')).every((text) => text === 'changed'));
  assert.ok((await page.texts('.changed .noise .verdict')).every((text) => text === 'within ±' || text === 'may be chance'));
  await page.click('.changed .sort', 'after');
  assert.equal(await page.evaluate("document.activeElement.textContent"), 'after');
  const sorted = (await page.texts('.changed tbody td:nth-child(3)')).map(parseFloat);
  assert.ok(sorted.length > 10 && sorted.every((share, at) => at === 0 || share <= sorted[at - 1]), String(sorted));
  // The code of both: of a function that was there before, and of one that is there now.
  await page.evaluate("document.querySelector('.changed td a[href^=\"#before/\"]').click()");
  await page.until("!document.getElementById('part-functions').hidden");
  assert.match((await page.texts('.side'))[0], /^before: interpret\.data\./);
  assert.ok((await page.texts('.listing tbody tr')).length > 3);
  await page.click('nav a', 'Changes');
  await page.until("!document.getElementById('part-changes').hidden");
  await page.click('.changed tbody th a', 'main');
  await page.until("!document.getElementById('part-functions').hidden && document.querySelector('.function-name').textContent === 'main'");
  assert.match((await page.texts('.side'))[0], /^after: objects\.data\./);
  await page.click('nav a', 'Mix');
  await page.until("!document.getElementById('part-mix').hidden");
  assert.equal((await page.texts('.pivot thead th')).join(), 'mnemonic,before,after,change,±,');
  assert.match((await page.texts('#part-mix .command'))[0], /^hbbp diff interpret\.data\S* objects\.data\S* --rows mnemonic$/);
  const rows = await page.evaluate(`[...document.querySelectorAll('.pivot tbody tr')].map((row) => [...row.cells].slice(1, 4).map((cell) => parseFloat(cell.textContent)))`);
  assert.ok(rows.length > 20);
  for (const [was, now, change] of rows) assert.ok(Math.abs(now - was - change) < 0.02, `${was} ${now} ${change}`);
  assert.ok(rows.every(([, , change], at) => at === 0 || Math.abs(change) <= Math.abs(rows[at - 1][2])));
  await page.click('[data-preset=vectorization]');
  assert.ok((await page.texts('.chart tbody th')).includes('packed sse 128'));
  assert.equal(await page.evaluate("document.querySelectorAll('.both-bars').length"), (await page.texts('.chart tbody tr')).length);
  await page.click('.pivot tbody .cell');
  await page.until("document.querySelector('.cell h4')?.textContent.startsWith('Functions of the cell, after')");
}));

test('the focus stays where it was when the pivot is made anew', () => on(`${PAGE}#mix`, { width: 1280 }, async (page) => {
  const focused = () => page.evaluate('document.activeElement.dataset.focus');
  await page.evaluate("document.querySelector('[data-add=columns]').focus()");
  await page.choose('[data-add=columns]', 'packing');
  assert.equal(await focused(), 'add columns');
  await page.click('[data-key=packing] button', '←');
  assert.equal(await focused(), 'move packing');
  assert.equal(await page.evaluate("document.activeElement.closest('[data-zone]').dataset.zone"), 'rows');
  // What is not there any more leaves it to the list that would add it.
  await page.click('[data-key=packing] button', '×');
  assert.equal(await focused(), 'add rows');
  await page.choose('[data-add=filters]', 'mnemonic');
  await page.click('.filter .values label', 'mov');
  assert.match(await focused(), /^value mnemonic \d+$/);
}));

test('nothing is wider than the page', async () => {
  for (const width of [1280, 400]) {
    for (const scheme of ['light', 'dark']) {
      await on(PAGE, { width, scheme }, async (page) => {
        for (const part of ['summary', 'mix', 'mix/vectorization', 'functions', 'loops', 'flame']) {
          await page.evaluate(`location.hash = '#${part}'`);
          await page.until(`!document.getElementById('part-${part.split('/')[0]}').hidden`);
          assert.ok(await page.evaluate('document.documentElement.scrollWidth') <= width, `${part} at ${width}`);
          if (HBBP_PICTURES) await page.picture(join(HBBP_PICTURES, `${part.replace('/', '-')}-${width}-${scheme}.png`));
        }
        await page.evaluate("location.hash = '#functions/0'");
        await page.until("!document.getElementById('part-functions').hidden");
        await page.click('.controls label', 'flow graph');
        assert.ok(await page.evaluate('document.documentElement.scrollWidth') <= width, `graph at ${width}`);
        if (HBBP_PICTURES) await page.picture(join(HBBP_PICTURES, `graph-${width}-${scheme}.png`));
      });
    }
  }
});

test('no page of changes is wider than the page', async () => {
  for (const width of [1280, 400]) {
    await on(CHANGES, { width, scheme: width === 400 ? 'dark' : 'light' }, async (page) => {
      for (const part of ['summary', 'changes', 'mix', 'mix/vectorization', 'functions', 'loops', 'flame']) {
        await page.evaluate(`location.hash = '#${part}'`);
        await page.until(`!document.getElementById('part-${part.split('/')[0]}').hidden`);
        assert.ok(await page.evaluate('document.documentElement.scrollWidth') <= width, `${part} at ${width}`);
        if (HBBP_PICTURES) await page.picture(join(HBBP_PICTURES, `changes-${part.replace('/', '-')}-${width}.png`));
      }
    });
  }
});

test('what is printed has all parts, and is light', () => on(PAGE, { width: 1280, scheme: 'dark' }, async (page) => {
  const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor + getComputedStyle(document.querySelector('.tile a')).color");
  assert.equal(await ground(), 'rgb(20, 23, 28)rgb(125, 183, 255)');
  await page.media('print', 'dark');
  assert.equal(await ground(), 'rgb(255, 255, 255)rgb(5, 80, 174)');
  await page.evaluate("window.dispatchEvent(new Event('beforeprint'))");
  const heights = await page.evaluate("[...document.querySelectorAll('main > section')].map((one) => one.getBoundingClientRect().height)");
  assert.ok(heights.length === 5 && heights.every((height) => height > 50), String(heights));
  assert.ok((await page.texts('.listing tbody tr')).length > 10);
  assert.deepEqual(await page.texts('nav a'), []);
}));
