// The pivot: facts added up by the values of keys.

import { columnOf } from './facts.js';

/** More cells than that are in a table by their numbers, not in an array. */
const MOST_DENSE = 1 << 22;

/**
 * Adds facts up. `rows` and `columns` are keys; a filter is { key, values: set of indices, keeps }: it keeps these values, or leaves them
 * out, and all filters must hold. The rows and columns of the result have `values` (an index for each key) and a `total`; rows come largest
 * first, columns too, but by number where they are numbers. A cell is `cell(row, column)`. With `isTimed`, `time` has the same of the time,
 * where facts have it.
 */
export function pivot(facts, { rows, columns, filters, isTimed = false }) {
  const kept = keptFacts(facts, filters);
  const ofRows = combined(facts, kept, rows);
  const ofColumns = combined(facts, kept, columns);
  const width = ofColumns.tuples.length;
  const cells = cellsFor(ofRows.tuples.length * width);
  const rowTotals = new Float64Array(ofRows.tuples.length);
  const columnTotals = new Float64Array(width);
  const timed = isTimed && facts.time ? { cells: cellsFor(ofRows.tuples.length * width), rows: new Float64Array(rowTotals.length) } : null;
  let [total, time] = [0, 0];
  for (let at = 0; at < kept.length; at += 1) {
    const amount = facts.amount[kept[at]];
    const row = ofRows.ids[at];
    const column = ofColumns.ids[at];
    cells.add(row * width + column, amount);
    rowTotals[row] += amount;
    columnTotals[column] += amount;
    total += amount;
    if (timed) {
      const part = facts.time[kept[at]];
      timed.cells.add(row * width + column, part);
      timed.rows[row] += part;
      time += part;
    }
  }
  const line = (totals) => (values, index) => ({ index, values, total: totals[index] });
  const cell = (row, column) => cells.get(row.index * width + column.index);
  return {
    rows: ofRows.tuples.map(line(rowTotals)).sort(byTotal(rows)),
    columns: ofColumns.tuples.map(line(columnTotals)).sort(isByNumber(columns) ? byNumber(columns[0]) : byTotal(columns)),
    total,
    cell,
    time: timed && { total: time, row: (row) => timed.rows[row.index], cell: (row, column) => timed.cells.get(row.index * width + column.index) },
  };
}

/** The indices of the facts for which all filters hold. */
export function keptFacts(facts, filters) {
  const testers = filters.map(({ key, values, keeps }) => {
    const [list, column] = columnOf(key);
    const table = new Uint8Array(key.values.length);
    for (let value = 0; value < table.length; value += 1) table[value] = values.has(value) === keeps ? 1 : 0;
    return [facts[column], key[list], table];
  });
  const kept = new Uint32Array(facts.amount.length);
  let length = 0;
  for (let fact = 0; fact < kept.length; fact += 1) {
    if (testers.every(([column, list, table]) => table[list[column[fact]]] === 1)) {
      kept[length] = fact;
      length += 1;
    }
  }
  return kept.subarray(0, length);
}

/** Whether a kind of instructions in a block, at a place, is what filters keep. Who executes it is not asked. */
export function isKept(filters, block, kind, place = 0) {
  const facts = { block, kind, place };
  return filters.filter(({ key }) => !key.ofTask).every(({ key, values, keeps }) => {
    const [list, column] = columnOf(key);
    return values.has(key[list][facts[column]]) === keeps;
  });
}

/** Filters that keep just what is in a row or column, beside those that hold already. */
export function filtersOf(keys, line) {
  return keys.map((key, place) => ({ key, values: new Set([line.values[place]]), keeps: true }));
}

/** Of each kept fact the number of its combination of values, and the combinations. */
function combined(facts, kept, keys) {
  let ids = new Uint32Array(kept.length);
  let tuples = [[]];
  for (const key of keys) {
    const [list, column] = columnOf(key);
    const [values, of] = [key[list], facts[column]];
    const size = key.values.length;
    const known = tableFor(tuples.length * size);
    const [next, longer] = [new Uint32Array(kept.length), []];
    for (let at = 0; at < kept.length; at += 1) {
      const value = values[of[kept[at]]];
      const pair = ids[at] * size + value;
      let id = known.get(pair);
      if (id === undefined) {
        id = longer.length;
        known.set(pair, id);
        longer.push([...tuples[ids[at]], value]);
      }
      next[at] = id;
    }
    [ids, tuples] = [next, longer];
  }
  return { ids, tuples: kept.length === 0 ? [] : tuples };
}

/** Numbers by number: an array where it fits. */
function tableFor(size) {
  if (size > MOST_DENSE) return new Map();
  const table = new Int32Array(size).fill(-1);
  return {
    get: (at) => (table[at] < 0 ? undefined : table[at]),
    set: (at, value) => { table[at] = value; },
  };
}

/** Sums by number: an array where it fits. */
function cellsFor(size) {
  if (size > MOST_DENSE) {
    const cells = new Map();
    return { add: (at, amount) => cells.set(at, (cells.get(at) ?? 0) + amount), get: (at) => cells.get(at) ?? 0 };
  }
  const cells = new Float64Array(size);
  return { add: (at, amount) => { cells[at] += amount; }, get: (at) => cells[at] };
}

function byTotal(keys) {
  const text = (line) => line.values.map((value, place) => keys[place].values[value]);
  return (one, other) => other.total - one.total || compare(text(one), text(other));
}

function isByNumber(keys) {
  return keys.length === 1 && keys[0].isNumeric;
}

/** Numbers by size, words after them. */
function byNumber(key) {
  const number = (line) => {
    const text = key.values[line.values[0]];
    return /^\d+$/.test(text) ? Number(text) : Infinity;
  };
  return (one, other) => {
    const [a, b] = [number(one), number(other)];
    return a === b ? compare([key.values[one.values[0]]], [key.values[other.values[0]]]) : a - b;
  };
}

function compare(one, other) {
  for (let place = 0; place < one.length; place += 1) {
    if (one[place] !== other[place]) return one[place] < other[place] ? -1 : 1;
  }
  return 0;
}
