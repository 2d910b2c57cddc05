// A bar for each value of a key.

import { brief, shareAndError } from './number.js';
import { element, withNumber } from './element.js';

/** Bars of less are one. */
const MOST = 24;

/**
 * The values of a key with their shares of all instructions, largest first, as a table whose bars begin at one line. `choose` is called with
 * the index of a value that was clicked.
 */
export function chart(recording, key, choose) {
  const values = key.values.map((text, index) => ({
    text,
    index,
    count: key.counts[index],
    share: recording.share(key.counts[index]),
    error: key.errors[index],
    restsOnLittle: key.little.has(index),
  }));
  values.sort((one, other) => other.share - one.share || (one.text < other.text ? -1 : 1));
  const rest = values.splice(MOST);
  const largest = Math.max(...values.map((value) => Math.min(value.share + (value.error ?? 0), 1)), Number.MIN_VALUE);
  const rows = values.map((value) => element(
    'tr',
    {},
    element('th', { scope: 'row' }, element('button', { class: 'link', text: value.text, onclick: () => choose(value.index) })),
    element('td', { class: 'bar-cell' }, bar(value, largest)),
    numbers(value),
  ));
  if (rest.length > 0) {
    const count = rest.reduce((sum, value) => sum + value.count, 0);
    rows.push(element('tr', { class: 'rest' }, element('th', { scope: 'row', text: `${rest.length} more` }), element('td'), element('td', {
      class: 'number',
      text: shareAndError(recording.share(count), 0)[0],
    }), element('td'), element('td', { class: 'number wide', text: brief(count) })));
  }
  return element(
    'table',
    { class: 'chart' },
    element('caption', { text: `${key.name}: ${key.about}` }),
    element('thead', {}, element('tr', {}, [key.name, '', 'share', '±', 'count'].map((text, at) => element('th', {
      scope: 'col',
      text,
      class: [null, null, 'number', 'number', 'number wide'][at],
    })))),
    element('tbody', {}, rows),
  );
}

function bar(value, largest) {
  const made = element('div', { class: 'bar', 'aria-hidden': 'true' }, element('div', { class: 'bar-fill' }));
  withNumber(made, '--part', value.share / largest);
  if (value.error) {
    made.append(element('div', { class: 'bar-error' }));
    const [from, to] = [Math.max(value.share - value.error, 0), Math.min(value.share + value.error, 1)];
    withNumber(withNumber(made, '--from', from / largest), '--to', to / largest);
  }
  return made;
}

function numbers(value) {
  const [share, error] = shareAndError(value.share, value.error, value.restsOnLittle);
  return [
    element('td', { class: 'number', text: share }),
    element('td', { class: 'number', text: error }),
    element('td', { class: 'number wide', text: brief(value.count) }),
  ];
}
