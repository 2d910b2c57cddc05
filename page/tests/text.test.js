import assert from 'node:assert/strict';
import { test } from 'node:test';

import { baseName, codeOf, partsOfName, plural, quoted, shortName, shown } from '../text.js';

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

test('long names lose their longest arguments, and no more than must be', () => {
  const short = (name, most = 24) => shortName(name, most);
  assert.equal(short('memcpy'), 'memcpy');
  assert.equal(short('a_name_without_any_arguments_at_all'), 'a_name_without_any_arguments_at_all');
  assert.equal(short('std::map<std::string, std::vector<int> >::find(int)'), 'std::map<..>::find(int)');
  assert.equal(short('std::map<int, long>::find(std::map<int, long> const&)'), 'std::map<..>::find(..)');
  assert.equal(short('void f<(anonymous namespace)::A>(anonymous namespace)'), 'void f<..>(anonymous namespace)');
  assert.equal(short('<alloc::vec::Vec<u16> as core::fmt::Write>::write_str'), '<alloc::vec::Vec<..> as core::fmt::Write>::write_str');
  assert.equal(short('core::ptr::drop_in_place<alloc::vec::Vec<u8>>'), 'core::ptr::drop_in_place<..>');
  assert.equal(short('operator<< <int, std::allocator<int> >(std::ostream&)'), 'operator<< <..>(..)');
  assert.equal(short('bool operator< <int, std::allocator<int> >(a&)'), 'bool operator< <..>(a&)');
  assert.equal(short('A::operator->(std::allocator<int> const&, int)'), 'A::operator->(..)');
  assert.equal(short('x::operator()(std::allocator<int> const&, int)'), 'x::operator()(..)');
  assert.equal(short('main::{lambda(std::vector<int>)#1}::call(int)'), 'main::{lambda(..)#1}::call(..)');
  assert.equal(short('not_a_name(that) > is < (balanced at all'), 'not_a_name(that) > is < (balanced at all');
  assert.equal(short('<'.repeat(40)), '<'.repeat(40));
});

test('lines end between the parts of a name', () => {
  assert.deepEqual(partsOfName('std::__cxx11::basic_string<char>::at(int)'), ['std::', '__cxx11::', 'basic_', 'string<', 'char>::', 'at(', 'int)']);
  assert.deepEqual(partsOfName('main'), ['main']);
  assert.deepEqual(partsOfName('std::map<..>::find(..)'), ['std::', 'map<..>::', 'find(..)']);
  assert.deepEqual(partsOfName('f<(anonymous namespace)::a>'), ['f<', '(', 'anonymous namespace)::', 'a>']);
});
