// The table of loops: of one recording, and of two.

import { brief, count, hexadecimal, percent } from './number.js';
import { baseName } from './text.js';
import { element, fill, shownName, withNumber } from './element.js';
import { showsMore } from './focus.js';
import { ofChance, signed } from './compared.js';
import { loopsOfBoth } from './looped.js';

const ROWS = 100;

const TITLES = [
  ['loop at', ''],
  ['function', ''],
  ['line', 'wide'],
  ['share', 'number'],
  ['trips', 'number'],
  ['entered', 'number'],
  ['depth', 'number'],
  ['blocks', 'number wide'],
];

const TITLES_OF_BOTH = [
  ['loop at', ''],
  ['function', ''],
  ['line', 'wide'],
  ['before', 'number'],
  ['after', 'number'],
  ['change', 'number'],
  ['trips before', 'number wide'],
  ['after', 'number wide'],
  ['depth', 'number wide'],
];

const ABOUT = 'Shares include loops inside, so they do not add up. Trips are executions of the header for each time that the loop was entered.';

/** Fills the section. */
export function showLoops(section, recording) {
  const both = recording.before ? loopsOfBoth(recording) : null;
  const rows = both ?? recording.loops;
  const largest = rows[0]?.loop?.share;
  const body = element('tbody');
  const more = element('button', { text: 'Show all', onclick: () => showsMore(body, more, () => show(rows.length)) });
  function show(most) {
    fill(body, rows.slice(0, most).map((one) => (both ? rowOfBoth(one) : row(one, largest))));
    more.hidden = most >= rows.length;
  }
  const text = both
    ? `Loops of both recordings, the largest change first: loops of one function whose headers are in one line of it, or as far from its start, are one. ${ABOUT} `
      + `${ofChance(recording, 'Dim: the change of the function may be chance alone', 'loops')} “-”: the code of the function is not in this page.`
    : `Loops of the functions whose code is in this page. ${ABOUT}`;
  fill(
    section,
    section.querySelector('h2'),
    rows.length === 0
      ? element('p', { text: 'No loop was seen running in the functions whose code is in this page.' })
      : [
        element('p', { text }),
        element('div', { class: 'scroll' }, element(
          'table',
          { class: both ? 'loops both' : 'loops' },
          element('caption', { class: 'hidden', text: `Loops, by ${both ? 'the change of ' : ''}their share of all executed instructions` }),
          element('thead', {}, element('tr', {}, (both ? TITLES_OF_BOTH : TITLES).map(([title, of]) => element('th', { scope: 'col', text: title, class: of || null })))),
          body,
        )),
        more,
      ],
  );
  show(ROWS);
}

function row(one, largest) {
  const { function: of, loop, header } = one;
  const made = element(
    'tr',
    {},
    place(one),
    name(of),
    line(header),
    element('td', { class: 'number heat', text: percent(loop.share) }),
    element('td', { class: 'number', text: trips(loop) }),
    element('td', { class: 'number', text: loop.entries === null ? '' : brief(loop.entries) }),
    element('td', { class: 'number', text: loop.depth }),
    element('td', { class: 'number wide', text: loop.size }),
  );
  return withNumber(made, '--heat', Math.sqrt(loop.share / largest));
}

/** A loop as it is after, or if it is not there any more, as it was. */
function rowOfBoth({ sides: [before, after], shares: [was, is] }) {
  const one = after ?? before;
  const change = was === null || is === null ? '' : signed(is - was);
  return element(
    'tr',
    { class: one.function.mayBeChance ? 'noise' : null },
    place(one),
    name(one.function),
    line(one.header),
    element('td', { class: 'number' }, before && after
      ? element('a', { href: hrefOf(before), 'aria-label': `${percent(was)}, code before`, text: percent(was) })
      : percent(was ?? NaN)),
    element('td', { class: 'number', text: percent(is ?? NaN) }),
    element('td', { class: 'number change', text: change }),
    element('td', { class: 'number wide', text: before ? trips(before.loop) : '' }),
    element('td', { class: 'number wide', text: after ? trips(after.loop) : '' }),
    element('td', { class: 'number wide', text: one.loop.depth }),
  );
}

function hrefOf({ function: of, header }) {
  return `${of.href}/${hexadecimal(header.start)}`;
}

function place(one) {
  return element('th', { scope: 'row' }, element('a', { href: hrefOf(one), class: 'code', text: hexadecimal(one.header.start) }));
}

function name(of) {
  return element('td', { class: 'name' }, element('span', { class: 'clamp', title: of.name }, shownName(of.name)));
}

function line({ line: of }) {
  return element('td', { class: 'place wide', title: of?.file, text: of ? `${baseName(of.file)}:${of.number}` : '' });
}

function trips(loop) {
  if (loop.trips === null) return loop.repeats > 0 ? 'not seen entered' : '';
  return loop.trips < 100 ? Number(loop.trips.toPrecision(3)).toString() : count(Number(loop.trips.toPrecision(3)));
}
