import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bySide, makeRecording } from '../recording.js';
import { hasNoiseOf, pivotOfBoth, signed } from '../compared.js';
import { changedFunctions, inWords } from '../changes.js';
import { commandLine } from '../mix.js';
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
  title: 'new.data',
  code: [],
  before: { ...BEFORE, title: 'old.data' },
  changes: { files: ['old.data', 'new.data'], is_exact: false, lines: [['work', 'as many']], functions: FUNCTIONS, keys: [{ name: 'mnemonic', values: ['add', 'sub'], change_errors: [0.3, null], within: [0], findings: [] }] },
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

test('functions know whether their change may be chance', () => {
  assert.deepEqual(recording.functions.slice(0, 2).map(({ mayBeChance }) => mayBeChance), [true, false]);
  assert.deepEqual(recording.before.functions.map(({ mayBeChance }) => mayBeChance), [true]);
});

test('functions that are compared lead to each other', () => {
  const [f, g] = recording.functions;
  assert.deepEqual([f.href, f.other.href, f.other.other === f, g.other], ['#functions/0', '#before/0', true, undefined]);
});

test('exact counts have no chance', () => {
  const exact = { ...recording.data.changes, is_exact: true };
  const words = inWords(exact, changedFunctions(exact));
  assert.equal(words.lead, 'Both sides are exact counts: the share of 2 of 2 functions changed.');
  assert.deepEqual(words.named, ['f: 100.00 % before, 90.00 % after (-10.00)', 'g: 0.00 % before, 10.00 % after (+10.00)']);
  assert.equal(hasNoiseOf(recording, key('mnemonic')), true);
  assert.equal(hasNoiseOf({ ...recording, data: { ...recording.data, changes: exact } }, key('mnemonic')), false);
  // It is known of attributes alone.
  assert.equal(hasNoiseOf(recording, key('module')), false);
});

test('what is weak is said of both sides', () => {
  const said = (texts) => bySide(recording, (data) => (data === recording.data ? texts[1] : texts[0]));
  assert.deepEqual(said([['no LBR', 'short'], ['short', 'old']]), ['short', 'old.data: no LBR', 'new.data: old']);
  assert.deepEqual(bySide(recording.before, () => ['short']), ['short']);
});

test('modules and functions are aligned by the names that both sides have for them', () => {
  const names = (module, functions) => ({ names: { modules: [module, `${module}.so`], functions } });
  const made = makeRecording({
    ...recording.data,
    ...names('prog', [[1, 'f']]),
    before: { ...BEFORE, title: 'old.data', modules: ['/other/prog', '/other/b'], ...names('prog', []) },
  });
  const [module, of] = ['module', 'function'].map((name) => made.facts.keys.get(name));
  assert.deepEqual([module.values, of.values], [['prog', 'prog.so'], ['f', '[unreadable]']]);
  const [prog] = pivotOfBoth(made, { rows: [module], columns: [], filters: [] }).rows.filter(({ values }) => module.values[values[0]] === 'prog');
  assert.deepEqual(prog.shares.map(round), [1, 0.8857]);
  const filters = [module, of].map((one) => ({ key: one, values: new Set([0]), keeps: true }));
  assert.equal(commandLine(made, { rows: [], columns: ['chosen'], filters }), "hbbp diff old.data new.data --rows chosen --filter module=/other/prog,/bin/a --filter function=f,g");
  // The names of the functions themselves stay.
  assert.equal(made.functions[1].name, 'g');
});

test('the command of two recordings compares them', () => {
  const filters = [{ key: key('mnemonic'), values: new Set([1]), keeps: true }];
  assert.equal(commandLine(recording, { rows: ['isa'], columns: ['packing'], filters }), 'hbbp diff old.data new.data --rows isa --filter mnemonic=add');
});
