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

test('of long names, the longest arguments are left out, and no more than must be', () => {
  const short = (name, most = 24) => {
    const parts = shortName(name, most);
    assert.equal(parts.map(([text]) => text).join(''), name);
    return parts.map(([text, isLeftOut]) => (isLeftOut ? '..' : text)).join('');
  };
  assert.equal(short('memcpy'), 'memcpy');
  assert.equal(short('a_name_without_any_arguments_at_all'), 'a_name_without_any_arguments_at_all');
  assert.equal(short('std::map<std::string, std::vector<int> >::find(int)'), 'std::map<std::string..>::find(int)');
  assert.equal(short('std::map<int, long>::find(std::map<int, long> const&)'), 'std::map<int..>::find(std::map..)');
  assert.equal(short('std::map<int, long>::find(int const&, long const&)', 42), 'std::map<int, long>::find(int const&..)');
  assert.equal(short('void f<(anonymous namespace)::A>(anonymous namespace)'), 'void f<..>(anonymous namespace)');
  assert.equal(short('operator<< <int, std::allocator<int> >(std::ostream&)'), 'operator<< <int..>(..)');
  assert.equal(short('bool operator< <int, std::allocator<int> >(a&)'), 'bool operator< <int..>(a&)');
  assert.equal(short('operator-<char*, std::string>(char* const&, char*)'), 'operator-<char*..>(char* const&..)');
  assert.equal(short('bool operator> <int, std::string>(int const&, char*)'), 'bool operator> <int..>(int const&..)');
  assert.equal(short('std::operator<=><int, std::string>(std::string const&)'), 'std::operator<=><int..>(..)');
  assert.equal(short('A::operator->(std::allocator<int> const&, int)'), 'A::operator->(std::allocator..)');
  assert.equal(short('x::operator()(std::allocator<int> const&, int)'), 'x::operator()(std::allocator..)');
  assert.equal(short('std::binary_operator<int, std::allocator<int> >::f()'), 'std::binary_operator<int..>::f()');
  assert.equal(short('main::{lambda(std::vector<int>)#1}::call(int)'), 'main::{lambda(std::vector..)#1}::call(int)');
  assert.equal(short('void (*foo<std::vector<int> >(std::vector<int>&))(char, long)'), 'void (*foo<std::vector..>(std::vector..))(char..)');
  // Rust, Go.
  assert.equal(short('<alloc::vec::Vec<core::Item> as core::fmt::Write>::write_str'), '<alloc::vec::Vec<..> as core::fmt::Write>::write_str');
  assert.equal(short('core::ptr::drop_in_place<alloc::vec::Vec<core::Item>>'), 'core::ptr::drop_in_place<alloc::vec::Vec..>');
  assert.equal(short('alloc::vec::<impl core::iter::FromIterator<T> for alloc::vec::Vec<T, A>>::from_iter'), 'alloc::vec::<impl core::iter::FromIterator<T> for alloc::vec::Vec<T, A>>::from_iter');
  assert.equal(short('core::ops::call_once<fn(u32, u32) -> u32, (u32, u32)>'), 'core::ops::call_once<fn..>');
  assert.equal(short('k8s.io/pkg/controller/garbagecollector.(*GraphBuilder).processGraphChanges'), 'k8s.io/pkg/controller/garbagecollector.(*GraphBuilder).processGraphChanges');
  // What does not match.
  for (const name of ['not_a_name(that) > is < (balanced at all', '<'.repeat(40), ')'.repeat(40), '(<'.repeat(40), 'operator'.repeat(9)]) assert.equal(short(name), name);
});

test('lines end between the parts of a name', () => {
  assert.deepEqual(partsOfName('std::__cxx11::basic_string<char>::at(int)'), ['std::', '__cxx11::', 'basic_', 'string<', 'char>::', 'at(', 'int)']);
  assert.deepEqual(partsOfName('main'), ['main']);
  assert.deepEqual(partsOfName('std::map<'), ['std::', 'map<']);
});
