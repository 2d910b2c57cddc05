// The table of a pivot: of one recording, and of two.

import { count, percent, shareAndError, times } from './number.js';
import { plural } from './text.js';
import { element, shownName, withNumber } from './element.js';
import { grouped } from './grouped.js';
import { changeCells, changeTitles, classOf, hasNoiseOf, signed } from './compared.js';

/** Rows that are there at first; columns, of which the last are one. */
export const ROWS = 40;
const COLUMNS = 16;

/** What cells show, and those of two recordings. */
export const SHOWN = [['share', 'share of what is shown'], ['row', 'share of the row'], ['count', 'count']];
/** Those of recordings that tell time, by the names that `hbbp mix` has for them. */
export const SHOWN_OF_TIME = [['time', 'share of the time'], ['time-per-instruction', 'time / instruction']];
/** With fewer samples of time, nothing is said of how long an instruction takes: the share may be none. */
const LEAST_SAMPLES = 4;
export const SHOWN_OF_BOTH = [['change', 'change'], ['before', 'share before'], ['after', 'share after']];

/** Keys whose values are functions, or places in them. */
const NAMES_FUNCTIONS = new Set(['function', 'loop']);

/** The table of a pivot. `change` changes what is shown, `open` opens a row and a column. */
export function tableOfPivot(recording, query, result, state, { change, open }) {
  const columns = query.columns.length === 0 ? [] : result.columns;
  const [first, last] = [columns.slice(0, COLUMNS), columns.slice(COLUMNS)];
  const isOfTime = SHOWN_OF_TIME.some(([id]) => id === state.shown);
  const sorted = isOfTime ? [...result.rows].sort((one, other) => result.time.row(other) - result.time.row(one)) : result.rows;
  const rows = sorted.slice(0, state.most);
  // A share of all rows, where a row is all there is.
  const unit = state.shown === 'row' && columns.length === 0 ? 'share' : state.shown;
  // They are of shares.
  const errors = unit === 'share' ? errorsOf(recording, query) : null;
  const text = (keys, line) => line.values.map((value, place) => keys[place].values[value]);
  const value = (amount, row, time) => {
    if (unit === 'time') return time > 0 ? percent(time / result.time.total) : '';
    if (unit === 'time-per-instruction') {
      return amount > 0 && time * recording.data.blocks.time_samples >= LEAST_SAMPLES ? times(time / result.time.total / (amount / result.total)) : '';
    }
    if (amount === 0) return '';
    if (unit === 'count') return count(amount);
    return percent(amount / (unit === 'row' ? row.total : result.total));
  };
  const hottest = isOfTime ? result.time.row(sorted[0]) : sorted[0].total;
  const heat = (made, part) => withNumber(made, '--heat', Math.sqrt(part / (hottest || 1)));
  const cell = (row, column, amount, time) => heat(element('td', { class: 'number heat' }, amount > 0 && element('button', {
    class: 'cell',
    'data-focus': `cell ${row.values} ${column?.values}`,
    text: value(amount, row, time),
    'aria-label': `${value(amount, row, time)}: functions`,
    onclick: () => open(row, column),
  })), isOfTime ? time : amount);
  const timeOf = (row, column) => (isOfTime ? (column ? result.time.cell(row, column) : result.time.row(row)) : 0);
  const total = (row) => {
    if (!errors) return cell(row, null, row.total, timeOf(row, null));
    const [share, error] = shareAndError(recording.share(row.total), errors.of(row.values[0]), errors.isLittle(row.values[0]));
    const made = heat(element('td', { class: 'number heat' }, element('button', {
      class: 'cell',
      'data-focus': `cell ${row.values}`,
      text: share,
      'aria-label': `${share}: functions`,
      onclick: () => open(row, null),
    })), row.total);
    return [made, element('td', { class: 'number', text: error })];
  };
  const head = element(
    'tr',
    {},
    query.rows.map((key) => element('th', { scope: 'col', title: key.about, text: key.name })),
    element('th', { scope: 'col', class: 'number', text: query.columns.length > 0 ? 'all' : [...SHOWN, ...SHOWN_OF_TIME].find(([id]) => id === unit)[0] }),
    errors && element('th', { scope: 'col', class: 'number', text: '±' }),
    first.map((column) => element('th', { scope: 'col', class: 'number', text: text(query.columns, column).join(' · ') })),
    last.length > 0 && element('th', { scope: 'col', class: 'number', text: `${last.length} more` }),
  );
  const rest = (row, all, of) => Math.max(all - first.reduce((sum, column) => sum + of(row, column), 0), 0);
  const line = (row) => element(
    'tr',
    {},
    query.rows.length === 0 && element('th', { scope: 'row', text: 'all' }),
    rowTitles(query.rows, text(query.rows, row)),
    total(row),
    first.map((column) => cell(row, column, result.cell(row, column), timeOf(row, column))),
    last.length > 0 && element('td', { class: 'number', text: value(rest(row, row.total, result.cell), row, rest(row, timeOf(row, null), timeOf)) }),
  );
  if (query.rows.length === 0) head.prepend(element('th', {}));
  const more = sorted.length - rows.length;
  return [
    element('div', { class: 'scroll' }, element(
      'table',
      { class: 'pivot' },
      element('caption', { class: 'hidden', text: 'Pivot of executed instructions' }),
      element('thead', {}, head),
      element('tbody', {}, rows.map(line)),
    )),
    more > 0 && moreRows(more, sorted[rows.length], errors ? '' : ' undefined', state, change),
  ];
}

/** The pivot of two recordings: what a row was, is, and by how much that changed. */
export function tableOfBoth(recording, query, result, state, { change, open }) {
  const columns = query.columns.length === 0 ? [] : result.columns.slice(0, COLUMNS);
  const left = query.columns.length === 0 ? 0 : result.columns.length - columns.length;
  const rows = result.rows.slice(0, state.most);
  const texts = (keys, line) => line.values.map((value, place) => keys[place].values[value]);
  // It is known of shares of all, by one key.
  const hasNoise = query.rows.length === 1 && columns.length === 0 && query.filters.length === 0 && hasNoiseOf(recording, query.rows[0]);
  const noise = (row) => (hasNoise ? recording.noiseOf(query.rows[0].name, texts(query.rows, row)[0]) : undefined);
  const text = ([before, after]) => (before === 0 && after === 0 ? '' : { change: signed(after - before), before: percent(before), after: percent(after) }[state.shown]);
  const opened = (row, column, said) => {
    const [, line] = row.sides;
    const name = column ? `cell ${row.values} ${column.values}` : `cell ${row.values}`;
    if (!line || (column && !column.sides[1])) return said;
    return element('button', { class: 'cell', 'data-focus': name, text: said, 'aria-label': `${said}: functions`, onclick: () => open(line, column?.sides[1] ?? null) });
  };
  const line = (row) => element(
    'tr',
    { class: classOf(noise(row)) },
    query.rows.length === 0 && element('th', { scope: 'row', text: 'all' }),
    rowTitles(query.rows, texts(query.rows, row)),
    changeCells(row.shares, noise(row), { hasNoise, after: element('td', { class: 'number' }, opened(row, null, percent(row.shares[1]))) }),
    columns.map((column) => element('td', { class: 'number' }, opened(row, column, text(result.shares(row, column))))),
  );
  const more = result.rows.length - rows.length;
  return [
    element('p', { class: 'dim', text: `Shares of what is shown, the largest change first.${hasNoise ? ' Dim changes are within their ±.' : ''}` }),
    element('div', { class: 'scroll' }, element(
      'table',
      { class: 'pivot both' },
      element('caption', { class: 'hidden', text: 'Pivot of executed instructions before and after' }),
      element('thead', {}, element(
        'tr',
        {},
        query.rows.length === 0 && element('th', {}),
        query.rows.map((key) => element('th', { scope: 'col', title: key.about, text: key.name })),
        changeTitles(hasNoise).map(([title, of]) => element('th', { scope: 'col', class: of, text: title })),
        columns.map((column) => element('th', { scope: 'col', class: 'number', text: texts(query.columns, column).join(' · ') })),
      )),
      element('tbody', {}, rows.map(line)),
    )),
    left > 0 && element('p', { class: 'dim', text: `${plural(left, 'column')} more` }),
    more > 0 && moreRows(more, result.rows[rows.length], '', state, change),
  ];
}

/** A button for more rows. When it goes, the focus is on the first new row, whose number is named so. */
function moreRows(more, first, end, state, change) {
  return element('button', {
    'data-focus': 'more rows',
    'data-otherwise': `cell ${first.values}${end}`,
    text: `Show ${Math.min(more, 10 * ROWS)} of ${more} more rows`,
    onclick: () => change({ most: state.most + 10 * ROWS }),
  });
}

/** The titles of a row. Values that are no names of functions are shown whole. */
function rowTitles(keys, values) {
  return values.map((value, place) => element(
    place === 0 ? 'th' : 'td',
    { scope: place === 0 && 'row', class: 'name' },
    element('span', { class: 'clamp', title: value }, NAMES_FUNCTIONS.has(keys[place].name) ? shownName(value) : value),
  ));
}

/** How uncertain rows are: known of all instructions by one key. */
function errorsOf(recording, { rows, columns, filters }) {
  const [key] = rows;
  if (rows.length !== 1 || columns.length > 0 || filters.length > 0) return null;
  if (key.errors) return { of: (value) => key.errors[value], isLittle: (value) => key.little.has(value) };
  if (key.name !== 'function') return null;
  const named = grouped(recording.functions, (one) => one.name);
  const only = (value) => {
    const of = named.get(key.values[value]);
    return of?.length === 1 ? of[0] : null;
  };
  return { of: (value) => only(value)?.error, isLittle: (value) => only(value)?.restsOnLittle ?? false };
}
