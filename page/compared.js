// Two recordings beside each other: one mix before, one after.

import { percent, shareAndError } from './number.js';
import { element, withNumber } from './element.js';
import { columnOf } from './facts.js';
import { pivot } from './pivot.js';

/** Gives the keys of two facts the same values at the same places: those that are only before come after all others. */
export function alignKeys(after, before) {
  for (const key of after.values()) {
    const other = before.get(key.name);
    if (!other) {
      // What one side does not know is not compared.
      after.delete(key.name);
      continue;
    }
    const places = new Map(key.values.map((value, place) => [value, place]));
    const values = [...key.values, ...other.values.filter((value) => !places.has(value))];
    values.forEach((value, place) => places.set(value, place));
    const toPlace = Uint32Array.from(other.values, (value) => places.get(value));
    const spread = (list, nothing) => {
      const made = new Array(values.length).fill(nothing);
      list?.forEach((item, place) => { made[toPlace[place]] = item; });
      return made;
    };
    if (key.counts) {
      const more = (nothing) => new Array(values.length - key.values.length).fill(nothing);
      Object.assign(key, { counts: [...key.counts, ...more(0)], errors: [...key.errors, ...more(null)] });
      Object.assign(other, { counts: spread(other.counts, 0), errors: spread(other.errors, null) });
    }
    const [of] = columnOf(other);
    other[of] = other[of].map((value) => toPlace[value]);
    key.values = values;
    other.values = values;
  }
}

/**
 * The pivots of both recordings: rows and columns with their lines of both sides, [before, after], of which one can be missing. Shares are of
 * what is shown of each side. The largest change comes first.
 */
export function pivotOfBoth(recording, query) {
  const there = (key) => recording.before.facts.keys.get(key.name);
  const after = pivot(recording.facts, query);
  const before = pivot(recording.before.facts, {
    rows: query.rows.map(there),
    columns: query.columns.map(there),
    filters: query.filters.map((filter) => ({ ...filter, key: there(filter.key) })),
  });
  const sides = [before, after];
  const totals = sides.map(({ total }) => total);
  const share = (side, amount) => (totals[side] > 0 ? amount / totals[side] : 0);
  const merged = (name) => {
    const lines = new Map();
    sides.forEach((side, at) => side[name].forEach((line) => {
      const known = lines.get(line.values.join());
      if (known) known.sides[at] = line;
      else lines.set(line.values.join(), { values: line.values, sides: at === 0 ? [line, null] : [null, line] });
    }));
    return [...lines.values()].map((line) => ({ ...line, shares: line.sides.map((side, at) => share(at, side?.total ?? 0)) }));
  };
  const change = ({ shares }) => Math.abs(shares[1] - shares[0]);
  const size = ({ shares }) => Math.max(...shares);
  return {
    rows: merged('rows').sort((one, other) => change(other) - change(one) || size(other) - size(one)),
    columns: merged('columns').sort((one, other) => size(other) - size(one)),
    totals,
    /** The shares of a row and column. */
    shares: (row, column) => sides.map((side, at) => (row.sides[at] && column.sides[at] ? share(at, side.cell(row.sides[at], column.sides[at])) : 0)),
  };
}

/** What is known of how a value changed: { error, isWithin, isFinding }, or undefined. */
export function makeNoise(keys) {
  const known = new Map(keys.map((key) => {
    const [within, findings] = [new Set(key.within), new Set(key.findings)];
    return [key.name, new Map(key.values.map((value, at) => [value, { error: key.change_errors[at], isWithin: within.has(at), isFinding: findings.has(at) }]))];
  }));
  return (key, value) => known.get(key)?.get(value);
}

/** A change of a share: +1.23 points of per cent. */
export function signed(change) {
  const text = (100 * change).toFixed(2);
  return change >= 0 ? `+${text}` : text;
}

/** What is known of chance where functions alone have it: how their changes look, and that it is not that of the parts. */
export function ofChance({ functions }, looks, parts) {
  const isKnown = functions.some(({ mayBeChance }) => mayBeChance !== undefined);
  return isKnown ? `${looks}; of the ${parts} themselves that is not known.` : 'How much of a change is chance is not known here.';
}

/** The cells of a row: before, after, change; and where noise is known of any row, ±, and what that means in words. */
export function changeCells(shares, noise, { before, after, hasNoise = true } = {}) {
  const number = (text, more = '') => element('td', { class: `number ${more}`.trim(), text });
  const error = noise?.error === undefined || noise.error === null ? '' : (100 * noise.error).toFixed(2);
  return [
    before ?? number(percent(shares[0])),
    after ?? number(percent(shares[1])),
    number(signed(shares[1] - shares[0]), 'change'),
    hasNoise && number(error),
    hasNoise && element('td', { class: 'verdict', text: verdict(noise) }),
  ];
}

/** Whether it is known what the change is worth. */
const isKnown = (noise) => noise !== undefined && (noise.isFinding || noise.error !== null);

function verdict(noise) {
  if (!isKnown(noise)) return '';
  if (noise.isFinding) return 'changed';
  return noise.isWithin ? 'within ±' : 'may be chance';
}

/** The class of a row: what may be no change is of less interest. */
export function classOf(noise) {
  if (!isKnown(noise)) return null;
  return noise.isFinding ? 'finding' : 'noise';
}

/** Titles of these cells. */
export function changeTitles(hasNoise) {
  return [['before', 'number'], ['after', 'number'], ['change', 'number'], ...(hasNoise ? [['±', 'number'], ['', 'verdict']] : [])];
}

/** Whether changes of the values of a key have their ±: shares of exact counts, and of what is not an attribute of instructions, have none. */
export function hasNoiseOf(recording, key) {
  return !recording.data.changes.is_exact && key.values.some((value) => Number.isFinite(recording.noiseOf(key.name, value)?.error));
}

/** The values of a key in both recordings, as bars below each other. */
export function chartOfBoth(recording, key, most, choose) {
  const before = recording.before.facts.keys.get(key.name);
  const values = key.values.map((text, index) => ({
    text,
    index,
    shares: [recording.before.share(before.counts[index]), recording.share(key.counts[index])],
    errors: [before.errors[index], key.errors[index]],
  })).filter(({ shares }) => Math.max(...shares) > 0);
  values.sort((one, other) => Math.max(...other.shares) - Math.max(...one.shares) || (one.text < other.text ? -1 : 1));
  const hasNoise = hasNoiseOf(recording, key);
  const largest = Math.max(...(values[0]?.shares ?? []), Number.MIN_VALUE);
  const bar = (value, side) => withNumber(element('div', { class: `bar-fill side-${side}` }), '--part', value.shares[side] / largest);
  const rows = values.slice(0, most).map((value) => {
    const noise = hasNoise ? recording.noiseOf(key.name, value.text) : undefined;
    const cell = (side) => element('td', { class: 'number', text: shareAndError(value.shares[side], value.errors[side])[0] });
    return element(
      'tr',
      { class: classOf(noise) },
      element('th', { scope: 'row' }, element('button', { class: 'link', text: value.text, onclick: () => choose(value.index) })),
      element('td', { class: 'bar-cell' }, element('div', { class: 'bar both-bars', 'aria-hidden': 'true' }, bar(value, 0), bar(value, 1))),
      changeCells(value.shares, noise, { before: cell(0), after: cell(1), hasNoise }),
    );
  });
  const left = values.length - rows.length;
  return [
    element('div', { class: 'scroll' }, element(
      'table',
      { class: 'chart both' },
      element('caption', { text: `${key.name}: ${key.about} Above before, below after.` }),
      element('thead', {}, element('tr', {}, [[key.name, null], ['', null], ...changeTitles(hasNoise)].map(([text, of]) => element('th', { scope: 'col', text, class: of })))),
      element('tbody', {}, rows),
    )),
    left > 0 && element('p', { class: 'dim', text: `${left} more, all of them smaller` }),
  ];
}
