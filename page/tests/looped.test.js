import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeRecording } from '../recording.js';
import { loopsOfBoth } from '../looped.js';
import { DATA } from './data.js';

/**
 * A function f that begins in a line and has loops: each at an address, in a line (0: not known) and with so many executions of its one
 * instruction.
 */
function side(first, loops) {
  const blocks = [[16, first, 1], ...loops];
  const lines = [...new Set(blocks.map(([, line]) => line).filter(Boolean))];
  return {
    ...DATA,
    instructions: 100,
    functions: { name: ['f'], module: [0], start: [16], executed: [100], share_error: [null], rest_on_little: [] },
    blocks: { function: blocks.map(() => 0), start: blocks.map(([start]) => start), count: blocks.map(([, , count]) => count), chosen: blocks.map(() => 'lbr'), kinds: blocks.map(() => [0]) },
    keys: [],
    texts: { text: ['add'], length: [4] },
    source: { files: ['/src/a.c'], file: lines.map(() => 0), line: lines, text: lines.map(() => '') },
    code: [{
      function: 0,
      calls: 1,
      loops: loops.map((_, at) => ({ header: at + 1, parent: null, depth: 1, first: at + 1, last: at + 1, size: 1, entries: 1, repeats: 9, trips: 10, note: '' })),
      blocks: blocks.map(([start, line], at) => ({ start, seen: 'counted', block: at, loop: at === 0 ? undefined : at - 1, instructions: [0], lines: line ? [[0, lines.indexOf(line)]] : [] })),
    }],
  };
}

function rowsOf(before, after, functions = { function: [0], function_before: [0] }) {
  const recording = makeRecording({ ...after, before, changes: { files: ['a', 'b'], keys: [], functions } });
  return loopsOfBoth(recording).map(({ sides, shares }) => [...sides.map((one) => one?.header.start ?? null), ...shares]);
}

test('loops are one by their line in the function, wherever both are', () => {
  // All is two lines further down, and the loops are longer.
  const before = side(1, [[32, 3, 50], [48, 5, 20], [64, 7, 10]]);
  const after = side(3, [[40, 5, 10], [80, 7, 25], [96, 20, 30]]);
  assert.deepEqual(rowsOf(before, after), [[32, 40, 0.5, 0.1], [null, 96, 0, 0.3], [64, null, 0.1, 0], [48, 80, 0.2, 0.25]]);
});

test('of loops in one line the hottest go together', () => {
  assert.deepEqual(rowsOf(side(1, [[32, 3, 50]]), side(1, [[32, 3, 10], [48, 3, 30]])), [[32, 48, 0.5, 0.3], [null, 32, 0, 0.1]]);
});

test('without lines loops are one by how far they are from the start', () => {
  assert.deepEqual(rowsOf(side(0, [[32, 0, 50]]), side(0, [[32, 0, 20], [48, 0, 10]])), [[32, 32, 0.5, 0.2], [null, 48, 0, 0.1]]);
});

test('of a function whose code is not in the page nothing is known', () => {
  const [before, after] = [side(1, [[32, 3, 50]]), side(1, [[32, 3, 10]])];
  assert.deepEqual(rowsOf({ ...before, code: [] }, after), [[null, 32, null, 0.1]]);
  assert.deepEqual(rowsOf(before, { ...after, code: [] }), [[32, null, 0.5, null]]);
  // Of one that was not there, it is known.
  assert.deepEqual(rowsOf({ ...before, code: [] }, after, { function: [0], function_before: [null] }), [[null, 32, 0, 0.1]]);
});
