import assert from 'node:assert/strict';
import { test } from 'node:test';

import { baseName, codeOf, plural, quoted, shown } from '../text.js';

test('what cannot be seen is written out', () => {
  assert.equal(shown('a\u202eb\u0000c\nd\u2066e\u200bf\u{e0041}'), 'a\\u{202e}b\\u{0}c\\u{a}d\\u{2066}e\\u{200b}f\\u{e0041}');
  assert.equal(shown('<b>基本块 é</b>'), '<b>基本块 é</b>');
});

test('words are quoted where a shell needs it', () => {
  assert.equal(quoted('run.data'), 'run.data');
  assert.equal(quoted("isa!=a b'c"), "'isa!=a b'\\''c'");
  assert.equal(quoted(''), "''");
});

test('names are those of files', () => {
  assert.deepEqual(['/lib/libc.so.6', 'a', '/'].map(baseName), ['libc.so.6', 'a', '/']);
  assert.deepEqual([0, 1, 1200].map((number) => plural(number, 'loop')), ['0 loops', '1 loop', '1,200 loops']);
});

test('what is between backticks is code', () => {
  assert.deepEqual(codeOf('as `hbbp diff` and `mix` say'), ['as ', 'hbbp diff', ' and ', 'mix', ' say']);
  assert.deepEqual(codeOf('`x`'), ['', 'x', '']);
  assert.deepEqual(codeOf('a ` b'), ['a ` b']);
});
