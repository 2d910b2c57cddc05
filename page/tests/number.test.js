import assert from 'node:assert/strict';
import { test } from 'node:test';

import { brief, count, percent, rounded, shareAndError, times } from '../number.js';

// The cases of src/output/number.rs and src/output/uncertain.rs: both print the same.
test('digits follow the uncertainty', () => {
  const check = (share, error, expected) => assert.deepEqual(shareAndError(share, error), expected);
  check(0.372841, 0.12, ['37 %', '12']);
  check(0.372841, 0.034, ['37.3 %', '3.4']);
  check(0.372841, 0.0034, ['37.28 %', '0.34']);
  check(0.372841, 0.00001, ['37.28 %', '0.00']);
  check(0.01, 0.04, ['< 5.0 %', '']);
  check(0.00001, 0.00002, ['< 0.01 %', '']);
  const counts = [[430000, 12350000], [1e9, 12000000], [3, 12345678]];
  for (const [error, shown] of counts) assert.equal(rounded(12345678, error), shown);
});

test('what is not known is marked', () => {
  assert.deepEqual(shareAndError(1 / 3, null, true), ['33.33 %', '?']);
  assert.deepEqual(shareAndError(1 / 3, 0.1, true), ['33 %', '10 ?']);
  assert.deepEqual(shareAndError(0 / 0, 0.1), ['-', '']);
});

test('thousands are set apart', () => {
  assert.equal(count(0), '0');
  assert.equal(count(999.6), '1,000');
  assert.equal(count(1234567), '1,234,567');
  assert.equal(count(0.3), '0.3');
  assert.equal(percent(1 / 8), '12.50 %');
  assert.equal(percent(0 / 0), '-');
});

test('brief counts have three digits', () => {
  assert.deepEqual([0, 999, 1234, 4340066310, 2.5e12].map(brief), ['0', '999', '1.23 k', '4.34 G', '2.5 T']);
});

// The cases of reports/src/number.rs.
test('how many times as long has two digits', () => {
  assert.deepEqual([0.424, 1.96, 3.44, 12.3, 1234, null].map(times), ['0.42x', '2.0x', '3.4x', '12x', '1,200x', '']);
});
