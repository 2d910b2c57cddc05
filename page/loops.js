// The table of loops.

import { brief, count, hexadecimal, percent } from './number.js';
import { element, fill, withNumber } from './element.js';
import { showsMore } from './focus.js';

const ROWS = 100;

/** Fills the section. */
export function showLoops(section, recording) {
  const body = element('tbody');
  const more = element('button', { text: 'Show all', onclick: () => showsMore(body, more, () => show(recording.loops.length)) });
  function show(rows) {
    fill(body, recording.loops.slice(0, rows).map((one) => row(one, recording.loops[0].loop.share)));
    more.hidden = rows >= recording.loops.length;
  }
  fill(
    section,
    section.querySelector('h2'),
    recording.loops.length === 0
      ? element('p', { text: 'No loop was seen running in the functions whose code is in this page.' })
      : [
        element('p', {
          text: 'Loops of the functions whose code is in this page. Shares include loops inside, so they do not add up. Trips are executions of '
            + 'the header for each time that the loop was entered.',
        }),
        element('div', { class: 'scroll' }, element(
          'table',
          { class: 'loops' },
          element('caption', { class: 'hidden', text: 'Loops, by their share of all executed instructions' }),
          element('thead', {}, element('tr', {}, [
            ['loop at', ''],
            ['function', ''],
            ['share', 'number'],
            ['trips', 'number'],
            ['entered', 'number'],
            ['depth', 'number'],
            ['blocks', 'number'],
          ].map(([text, of]) => element('th', { scope: 'col', text, class: of || null })))),
          body,
        )),
        more,
      ],
  );
  show(ROWS);
}

function row({ function: of, loop, header }, largest) {
  const made = element(
    'tr',
    {},
    element('th', { scope: 'row' }, element('a', {
      href: `#functions/${of.index}/${hexadecimal(header.start)}`,
      class: 'code',
      text: hexadecimal(header.start),
    })),
    element('td', { class: 'name' }, element('span', { class: 'clamp', title: of.name, text: of.name })),
    element('td', { class: 'number heat', text: percent(loop.share) }),
    element('td', { class: 'number', text: trips(loop) }),
    element('td', { class: 'number', text: loop.entries === null ? '' : brief(loop.entries) }),
    element('td', { class: 'number', text: loop.depth }),
    element('td', { class: 'number', text: loop.size }),
  );
  return withNumber(made, '--heat', Math.sqrt(loop.share / largest));
}

function trips(loop) {
  if (loop.trips === null) return loop.repeats > 0 ? 'not seen entered' : '';
  return loop.trips < 100 ? Number(loop.trips.toPrecision(3)).toString() : count(Number(loop.trips.toPrecision(3)));
}
