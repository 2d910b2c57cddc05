import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeFrames, matchingFrames, visible } from '../flame.js';

/** all 100: main 90 (f 60 (g 50), g 20), other 10. */
const frames = makeFrames({
  names: ['all', 'main', 'f', 'g', 'other'],
  functions: [null, 0, 1, 2, null],
  name: [0, 1, 2, 3, 3, 4],
  depth: [0, 1, 2, 3, 2, 1],
  executed: [100, 90, 60, 50, 20, 10],
});

test('frames are in their callers, one after the other', () => {
  assert.deepEqual(frames.map(({ from, to }) => [from, to]), [[0, 100], [0, 90], [0, 60], [0, 50], [60, 80], [90, 100]]);
  assert.deepEqual(frames.map(({ caller }) => caller?.name ?? null), [null, 'all', 'main', 'f', 'main', 'all']);
  assert.equal(frames[1].executed - frames[1].called, 10);
});

test('what is too narrow is not drawn, and all around what is zoomed is', () => {
  const names = (list) => list.map(({ name }) => name);
  assert.deepEqual(names(visible(frames[0], 1000).seen), ['all', 'main', 'f', 'g', 'g', 'other']);
  const narrow = visible(frames[0], 15);
  assert.deepEqual([names(narrow.seen), narrow.narrow], [['all', 'main', 'f', 'g', 'g'], 1]);
  const zoomed = visible(frames[2], 1000);
  assert.deepEqual([names(zoomed.around), names(zoomed.seen)], [['all', 'main'], ['f', 'g']]);
});

test('what is found counts once, though it called itself', () => {
  const found = (text) => [matchingFrames(frames, text).matches.size, matchingFrames(frames, text).executed];
  assert.deepEqual(found('g'), [2, 70]);
  assert.deepEqual(found('a'), [2, 100]);
  assert.deepEqual(found(''), [0, 0]);
});
