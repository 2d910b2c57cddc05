import assert from 'node:assert/strict';
import { test } from 'node:test';

import { layOut } from '../graph.js';

/** Blocks 0 to 5, of which 3 did not run. */
const blocks = [0, 1, 2, 3, 4, 5].map((index) => ({ index, seen: index === 3 ? 'not-seen' : 'counted', share: 0.1 * index }));
const loops = [{ first: 1, last: 4, depth: 1, share: 0.5 }, { first: 3, last: 3, depth: 2, share: 0 }];

test('blocks that ran are in the order of the code, and ways beside them', () => {
  const edges = [[0, 1, 5], [0, 4, 2], [1, 2, 7], [2, 3, 0], [2, 4, 1], [4, 1, 6], [4, 4, 9], [4, 5, 3]];
  const laid = layOut({ blocks, edges, loops });
  assert.deepEqual(laid.nodes.map(({ block, row }) => [block.index, row]), [[0, 0], [1, 1], [2, 2], [4, 3], [5, 4]]);
  const ways = (of) => of.map(({ from, to, count, lane }) => [from, to, count, ...(lane === undefined ? [] : [lane])]);
  // From 2 to 4 is straight, where 3 is not drawn.
  assert.deepEqual(ways(laid.straight), [[0, 1, 5], [1, 2, 7], [2, 3, 1], [3, 4, 3]]);
  assert.deepEqual(ways(laid.right), [[0, 3, 2, 0]]);
  // The shorter one is nearer.
  assert.deepEqual(ways(laid.left), [[3, 3, 9, 0], [3, 1, 6, 1]]);
  assert.deepEqual(laid.loops.map(({ first, last }) => [first, last]), [[1, 3]]);
  assert.equal(laid.leftOut, 0);
});

test('lines that are beside each other have lanes of their own', () => {
  const many = Array.from({ length: 40 }, (_, index) => ({ index, seen: 'counted', share: 0 }));
  const edges = Array.from({ length: 10 }, (_, at) => [at, 39 - at, 1]);
  const { right } = layOut({ blocks: many, edges, loops: [] });
  assert.deepEqual(right.map(({ lane }) => lane), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const apart = layOut({ blocks: many, edges: [[0, 2, 1], [3, 5, 1], [6, 8, 1]], loops: [] });
  assert.deepEqual(apart.right.map(({ lane }) => lane), [0, 0, 0]);
});

test('the hottest blocks of a large function are drawn', () => {
  const many = Array.from({ length: 400 }, (_, index) => ({ index, seen: 'counted', share: index }));
  const laid = layOut({ blocks: many, edges: [[0, 1, 1], [399, 398, 1]], loops: [] });
  assert.deepEqual([laid.nodes.length, laid.leftOut, laid.nodes[0].block.index, laid.left.length, laid.straight.length], [300, 100, 100, 1, 0]);
});
