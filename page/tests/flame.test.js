import assert from 'node:assert/strict';
import { test } from 'node:test';

import { leftOut, makeFrames, matchingFrames, pairFrames, stepOf, visible } from '../flame.js';

/** all 100: main 90 (f 60 (g 50), g 20), other 10. Of main, 4 are in frames that are left out. */
const frames = makeFrames({
  names: ['all', 'main', 'f', 'g', 'other'],
  functions: [null, 0, 1, 2, null],
  name: [0, 1, 2, 3, 3, 4],
  depth: [0, 1, 2, 3, 2, 1],
  executed: [100, 90, 60, 50, 20, 10],
  own: [0, 6, 10, 50, 20, 10],
});

test('frames are in their callers, one after the other', () => {
  assert.deepEqual(frames.map(({ from, to }) => [from, to]), [[0, 100], [0, 90], [0, 60], [0, 50], [60, 80], [90, 100]]);
  assert.deepEqual(frames.map(({ caller }) => caller?.name ?? null), [null, 'all', 'main', 'f', 'main', 'all']);
  assert.deepEqual(frames.map(leftOut), [0, 4, 0, 0, 0, 0]);
});

test('what is too narrow is not drawn, and all around what is zoomed is', () => {
  const names = (list) => list.map(({ name }) => name);
  assert.deepEqual(names(visible(frames[0], 1000).seen), ['all', 'main', 'f', 'g', 'g', 'other']);
  const narrow = visible(frames[0], 15);
  assert.deepEqual([names(narrow.seen), narrow.narrow], [['all', 'main', 'f', 'g', 'g'], 1]);
  // Those below frames that are too narrow count, too, and those beside the zoomed one do not.
  assert.deepEqual([visible(frames[0], 2.5).seen.length, visible(frames[0], 2.5).narrow, visible(frames[1], 2.5).narrow], [2, 4, 3]);
  const zoomed = visible(frames[2], 1000);
  assert.deepEqual([names(zoomed.around), names(zoomed.seen)], [['all', 'main'], ['f', 'g']]);
});

test('what is found counts once, though it called itself', () => {
  const found = (text) => [matchingFrames(frames, text).matches.size, matchingFrames(frames, text).executed];
  assert.deepEqual(found('g'), [2, 70]);
  assert.deepEqual(found('a'), [2, 100]);
  assert.deepEqual(found(''), [0, 0]);
});

test('frames of two recordings go together by their callers and names, and changes have steps', () => {
  const before = makeFrames({ names: ['all', 'main', 'g', 'f', 'gone'], functions: [null, 0, null, null, null], name: [0, 1, 2, 3, 4], depth: [0, 1, 2, 2, 1], executed: [50, 40, 25, 10, 5], own: [0, 5, 25, 10, 5] });
  const after = frames.map((frame) => ({ ...frame }));
  for (const frame of after) frame.caller = frame.caller && after[frame.caller.index];
  const name = (frame) => frame.name;
  pairFrames(after, before, [name, name]);
  assert.deepEqual(after.map(({ other }) => other?.index ?? null), [0, 1, 3, null, 2, null]);
  assert.deepEqual(before.map(({ other }) => other?.index ?? null), [0, 1, 4, 2, null]);
  assert.deepEqual([0.2, 0.05, 0.01, 0, -0.003, -0.2].map((change) => stepOf(change, 0.2)), [3, 2, 1, 0, 0, -3]);
  assert.deepEqual([0.2, 0.05, 0, -0.2].map((change) => stepOf(change, 0.2, true)), [1, 1, 0, -1]);
});
