import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeRecording } from '../recording.js';
import { pivotOfBoth, signed } from '../compared.js';
import { changedFunctions, inWords } from '../changes.js';
import { DATA } from './data.js';

/** Before: one block of f, 10 times [sub, add]. */
const BEFORE = {
  ...DATA,
  code: [],
  instructions: 20,
  functions: { name: ['f'], module: [0], start: [16], executed: [20], share_error: [null], rest_on_little: [] },
  blocks: { function: [0], start: [16], count: [10], chosen: ['lbr'], kinds: [[0, 1]] },
  keys: DATA.keys.map((key) => (key.name === 'mnemonic' ? { ...key, values: ['add', 'sub'], of_kinds: [1, 0], counts: [10, 10], share_errors: [0.1, 0.2] } : key)),
};
const FUNCTIONS = { name: ['f', 'g'], module: ['a', 'a'], before: [1, 0], after: [0.9, 0.1], change_error: [0.2, 0.05], within: [0], findings: [1], function: [0, 1], function_before: [0, null] };
const recording = makeRecording({
  ...DATA,
  code: [],
  before: BEFORE,
  changes: { lines: [['work', 'as many']], functions: FUNCTIONS, keys: [{ name: 'mnemonic', values: ['add', 'sub'], change_errors: [0.3, null], within: [0], findings: [] }] },
});
const key = (name) => recording.facts.keys.get(name);
const round = (number) => Number(number.toFixed(4));

test('rows of both are there, those that are on one side only, too', () => {
  const result = pivotOfBoth(recording, { rows: [key('mnemonic')], columns: [], filters: [] });
  const rows = result.rows.map(({ values, shares }) => [key('mnemonic').values[values[0]], ...shares.map(round)]);
  assert.deepEqual(rows, [['sub', 0.5, 0], ['jne', 0, 0.2857], ['add', 0.5, 0.5857], ['[unreadable]', 0, 0.0857], ['mulps', 0, 0.0429]]);
  assert.deepEqual(result.totals, [20, 350]);
});

test('cells and filters are of the same values on both sides', () => {
  const filters = [{ key: key('mnemonic'), values: new Set([key('mnemonic').values.indexOf('sub')]), keeps: false }];
  const result = pivotOfBoth(recording, { rows: [key('function')], columns: [key('mnemonic')], filters });
  assert.deepEqual(result.totals, [10, 350]);
  const [f] = result.rows.filter(({ values }) => key('function').values[values[0]] === 'f');
  const [add] = result.columns.filter(({ values }) => key('mnemonic').values[values[0]] === 'add');
  assert.deepEqual(result.shares(f, add).map(round), [1, 0.5857]);
});

test('noise is said of values, and changes in words', () => {
  assert.deepEqual(recording.noiseOf('mnemonic', 'add'), { error: 0.3, isWithin: true, isFinding: false });
  assert.equal(recording.noiseOf('mnemonic', 'mul'), undefined);
  const words = inWords(recording.data.changes, changedFunctions(recording.data.changes));
  assert.deepEqual(words, {
    lead: '1 function changed by more than chance; 1 of 2 are within their own ±.',
    named: ['g: 0.00 % before, 10.00 % after (+10.00 ± 5.00)'],
    more: 0,
    work: 'as many',
  });
  assert.deepEqual([signed(-0.0123), signed(0)], ['-1.23', '+0.00']);
});

test('functions that are compared lead to each other', () => {
  const [f, g] = recording.functions;
  assert.deepEqual([f.href, f.other.href, f.other.other === f, g.other], ['#functions/0', '#before/0', true, undefined]);
});
