import assert from 'node:assert/strict';
import { test } from 'node:test';

import { functionsKey, makeFacts } from '../facts.js';
import { filtersOf, isKept, keptFacts, pivot } from '../pivot.js';
import { DATA } from './data.js';

const facts = makeFacts(DATA);
const key = (name) => facts.keys.get(name);

/** The result as text: rows with their totals and cells. */
function asText(query) {
  const made = { rows: [], columns: [], filters: [], ...query };
  const result = pivot(facts, made);
  const name = (keys, line) => line.values.map((value, place) => keys[place].values[value]).join(' ');
  const cells = (row) => result.columns.map((column) => `${name(made.columns, column)}:${result.cell(row, column)}`);
  return result.rows.map((row) => [name(made.rows, row), row.total, ...(made.columns.length > 0 ? cells(row) : [])].join(' ').trim());
}

test('instructions are counted as often as their blocks', () => {
  assert.deepEqual(asText({ rows: [key('mnemonic')] }), ['add 205', 'jne 100', '[unreadable] 30', 'mulps 15']);
  assert.deepEqual(asText({}), ['350']);
});

test('functions of one name are one value, and two functions', () => {
  assert.deepEqual(asText({ rows: [key('function')] }), ['f 310', '[unreadable] 30', 'g 10']);
  assert.deepEqual(asText({ rows: [functionsKey(DATA)] }), ['f 300', '[unreadable] 30', 'f 10', 'g 10']);
  assert.deepEqual(asText({ rows: [key('function'), key('module')] }), ['f /bin/a 300', '[unreadable] /lib/b 30', 'f /lib/b 10', 'g /bin/a 10']);
});

test('cells are of a row and a column, and columns of numbers are in their order', () => {
  assert.deepEqual(asText({ rows: [key('function')], columns: [key('flops')] }), [
    'f 310 0:305 4:5 [unreadable]:0',
    '[unreadable] 30 0:0 4:0 [unreadable]:30',
    'g 10 0:0 4:10 [unreadable]:0',
  ]);
  assert.deepEqual(asText({ rows: [key('chosen')], columns: [key('mnemonic')] })[0], 'lbr 340 add:205 jne:100 [unreadable]:30 mulps:5');
});

test('blocks have their length, but not where code was not read', () => {
  assert.deepEqual(asText({ rows: [key('block-length')] }), ['3 300', '[unreadable] 30', '1 10', '2 10']);
});

test('blocks have their loop', () => {
  assert.deepEqual(asText({ rows: [key('loop')] }), ['f:7 300', '[unreadable] 30', '[no loop] 20']);
  assert.deepEqual(asText({ rows: [key('loop'), key('function')], filters: [{ key: key('mnemonic'), values: new Set([3]), keeps: true }] }), ['[no loop] g 10', '[no loop] f 5']);
});

test('the time of a block is shared out among its instructions', () => {
  const times = (data, query) => {
    const made = makeFacts(data);
    const keys = query.map((name) => made.keys.get(name));
    const result = pivot(made, { rows: keys, columns: [], filters: [], isTimed: true });
    return result.time && result.rows.map((row) => `${row.values.map((value, at) => keys[at].values[value])} ${result.time.row(row).toFixed(2)}`);
  };
  assert.deepEqual(times(DATA, ['mnemonic']), ['add 0.45', 'jne 0.20', '[unreadable] 0.05', 'mulps 0.30']);
  const { time, ...blocks } = DATA.blocks;
  assert.ok(time && times({ ...DATA, blocks }, ['mnemonic']) === null);
  // Of tasks, each has the part that its samples have.
  const tasks = {
    ...DATA,
    blocks: { ...DATA.blocks, tasks: [[[0, 0.25], [1, 0.75]], [[1, 1]], [[0, 1]], [[0, 1]]], task_times: [[1, 0], [1], [1], []] },
    keys: [{ name: 'thread', about: '', values: ['1:main', '2:work'], of_tasks: [0, 1], counts: [], share_errors: [] }],
  };
  assert.deepEqual(times(tasks, ['thread']), ['2:work 0.25', '1:main 0.70']);
  const result = pivot(facts, { rows: [key('function')], columns: [key('mnemonic')], filters: [], isTimed: true });
  const [add] = result.columns.filter(({ values }) => key('mnemonic').values[values[0]] === 'add');
  assert.deepEqual([result.time.cell(result.rows[0], add).toFixed(2), result.time.total.toFixed(2)], ['0.45', '1.00']);
});

test('filters keep values or leave them out, and all must hold', () => {
  const keeps = { key: key('mnemonic'), values: new Set([1, 3]), keeps: true };
  const leaves = { key: key('function'), values: new Set([1]), keeps: false };
  assert.deepEqual(asText({ rows: [key('mnemonic')], filters: [keeps] }), ['add 205', 'mulps 15']);
  assert.deepEqual(asText({ rows: [key('mnemonic')], filters: [keeps, leaves] }), ['add 205', 'mulps 5']);
  assert.deepEqual(asText({ rows: [key('mnemonic')], filters: [{ ...keeps, values: new Set() }] }), []);
  assert.equal(keptFacts(facts, [keeps, leaves]).length, 3);
  assert.ok(isKept([keeps, leaves], 0, 0));
  assert.ok(!isKept([keeps, leaves], 0, 1));
  assert.ok(!isKept([keeps, leaves], 1, 2));
});

test('what is in a cell is what its filters keep', () => {
  const query = { rows: [key('function')], columns: [key('mnemonic')], filters: [] };
  const result = pivot(facts, query);
  for (const row of result.rows) {
    for (const column of result.columns) {
      const filters = [...filtersOf(query.rows, row), ...filtersOf(query.columns, column)];
      assert.equal(pivot(facts, { rows: [], columns: [], filters }).total, result.cell(row, column));
    }
  }
});

test('more combinations than an array holds are added up, too', () => {
  const size = 3000;
  const values = Array.from({ length: size }, (_, index) => String(index));
  const identity = Uint32Array.from(values.keys());
  const [one, other] = ['one', 'other'].map((name) => ({ name, values, ofBlock: identity }));
  const many = { block: identity, kind: new Uint32Array(size), amount: new Float64Array(size).fill(2), keys: new Map() };
  const result = pivot(many, { rows: [one, other], columns: [one], filters: [] });
  assert.equal(result.rows.length, size);
  assert.equal(result.total, 2 * size);
  assert.equal(result.cell(result.rows[7], result.columns[7]), 2);
  assert.equal(result.cell(result.rows[7], result.columns[8]), 0);
});

test('places and tasks tell instructions of one block apart', () => {
  const data = {
    ...DATA,
    blocks: { ...DATA.blocks, places: [[[0, 1], [1, 0]], [], [[1, 1]], []], tasks: [[[0, 0.25], [1, 0.75]], [[1, 1]], [[0, 1]], [[0, 1]]] },
    keys: [
      ...DATA.keys,
      { name: 'line', about: '', values: ['[no source]', 'a.c:1'], of_places: [0, 1], counts: [], share_errors: [] },
      { name: 'thread', about: '', values: ['1:main', '2:work'], of_tasks: [0, 1], counts: [], share_errors: [] },
    ],
  };
  const made = makeFacts(data);
  const of = (name) => made.keys.get(name);
  const rows = (query) => pivot(made, { columns: [], filters: [], ...query }).rows.map(({ values, total }) => [...values.map((value, at) => query.rows[at].values[value]), total].join(' '));
  assert.deepEqual(rows({ rows: [of('line')] }), ['[no source] 245', 'a.c:1 105']);
  assert.deepEqual(rows({ rows: [of('thread')] }), ['2:work 235', '1:main 115']);
  assert.deepEqual(rows({ rows: [of('line'), of('mnemonic')] }).slice(0, 3), ['[no source] add 105', '[no source] jne 100', 'a.c:1 add 100']);
  const filters = [{ key: of('line'), values: new Set([1]), keeps: true }, { key: of('thread'), values: new Set([0]), keeps: true }];
  assert.deepEqual(rows({ rows: [of('function')], filters }), ['f 30']);
  assert.deepEqual([0, 1].map((place) => isKept(filters, 0, 0, place)), [false, true]);
});
