// The code of a function: instructions with what is known of their blocks, branches and loops.

import { brief, count, hexadecimal, rounded, shareAndError, times } from './number.js';
import { commandOf, plural } from './text.js';
import { element, fill, select, withNumber } from './element.js';
import { grouped } from './grouped.js';
import { graph, markNode } from './graph.js';
import { isKept } from './pivot.js';

/** Lines that are there at first; a click adds the others. */
const LINES = 3000;
/** Deeper loops have no bars. */
const DEEPEST = 8;

/**
 * Shows a function in a part of the page. `marked` are filters: instructions that pass them are marked. Returns the element that begins at an
 * address, to be scrolled to.
 */
export function showCode(parent, recording, of, marked = []) {
  if (!of.code) {
    fill(
      parent,
      element('h3', { class: 'function-name', text: of.name }),
      side(recording, of),
      element('p', { text: of.start === null
        ? 'The code of this file could not be read.'
        : 'The code of this function is not in this page: it has that of the hottest ones. This prints it, and this puts all into a page:' }),
      of.start !== null && element('pre', { class: 'commands' }, commands(recording.data.title, of)),
    );
    return;
  }
  const lines = linesOf(recording, of, marked);
  const body = element('tbody');
  const add = (from, to) => lines.slice(from, to).forEach(({ make }) => body.append(make()));
  add(0, LINES);
  const more = element('button', { class: 'more-lines', text: `Show ${lines.length - LINES} more lines`, onclick: () => { add(LINES); more.remove(); } });
  const { hasBoth } = of.code;
  const table = element(
    'table',
    { class: `listing${hasBoth ? ' has-both' : ''}` },
    element('caption', { class: 'hidden', text: `Code of ${of.name}` }),
    element('thead', {}, element('tr', {}, titles(of, hasBoth))),
    body,
  );
  fill(
    parent,
    element('h3', { class: 'function-name', text: of.name }),
    element('p', { class: 'dim', text: of.module }),
    side(recording, of),
    element('p', { text: about(of) }),
    marked.length > 0 && element('p', { class: 'marked-note', text: `Marked: ${marked.map(inWords).join('; ')}` }),
    options(parent, table, recording, of, hasBoth),
    element('div', { class: 'graph-and-code' }, element('div', { class: 'graph-place' }), element(
      'div',
      { class: 'listing-place' },
      element('div', { class: 'scroll' }, table),
      lines.length > LINES && more,
      legend(of),
    )),
  );
  showGraph(parent, of);
}

/** Of two recordings, which one it is of, and the way to the other one. */
function side(recording, of) {
  if (!of.isBefore && !recording.before) return null;
  const name = of.isBefore ? 'before' : 'after';
  return element(
    'p',
    { class: 'side' },
    `${name}: ${recording.data.title}. `,
    of.other && element('a', { class: 'other-side', href: of.other.href, text: `its code ${of.isBefore ? 'after' : 'before'}` }),
  );
}

/** Draws the graph, where it is wanted. */
function showGraph(parent, of) {
  const isWanted = parent.classList.contains('with-graph');
  fill(parent.querySelector('.graph-place'), isWanted && graph(of));
}

/** Scrolls to the line of an address, and to its block in the graph. */
export function goTo(parent, of, address) {
  if (of.code) markNode(parent, of, address)?.scrollIntoView({ block: 'center' });
  const find = () => [...parent.querySelectorAll('[data-address]')].find((one) => one.dataset.address === address);
  if (!find()) parent.querySelector('.more-lines')?.click();
  const line = find();
  if (!line) return;
  for (const other of parent.querySelectorAll('.target')) other.classList.remove('target');
  line.classList.add('target');
  line.scrollIntoView({ block: 'center' });
  line.querySelector('.address')?.focus({ preventScroll: true });
}

/** The address where the next hot block begins, after one: blocks by their share, around. */
export function nextHottest(of, address) {
  const hot = of.code.hottest;
  const at = hot.findIndex((block) => hexadecimal(block.start) === address);
  return hot.length === 0 ? null : hexadecimal(hot[(at + 1) % hot.length].start);
}

/** What is known of the time of a function. */
function timeOf(of) {
  if (of.time === null) return '';
  const [share, error] = shareAndError(of.time, of.timeError);
  const long = of.long === null ? '' : `, an instruction takes ${times(of.long)} as long as the mean`;
  return ` ${share}${error ? ` ± ${error}` : ''} of the time${long};`;
}

function about(of) {
  const { blocks, loops } = of.code;
  const [share, error] = shareAndError(of.share, of.error, of.restsOnLittle);
  const seen = blocks.filter((block) => block.isSeen).length;
  const calls = of.calls === null ? '' : ` ${plural(Math.round(of.calls), 'call')};`;
  const all = blocks.filter((block) => block.seen !== 'padding').length;
  const found = of.code.hasLoops ? plural(loops.length, 'loop') : 'its code is too entangled to look for loops';
  return `${share}${error ? ` ± ${error}` : ''} of all instructions: ${brief(of.executed)};${timeOf(of)}${calls} ${seen} of ${plural(all, 'block')} seen; ${found}`;
}

/** What prints a function, and what puts the code of all into a page: an element each, so that each is a line. */
function commands(title, of) {
  return [commandOf('annotate', title, '-f', of.name), commandOf('report', title, '--top', '0', '-o', 'report.html')]
    .map((text) => element('div', { text }));
}

function inWords({ key, values, keeps }) {
  const names = [...values].map((value) => key.values[value]);
  return `${key.name} ${keeps ? 'is' : 'is not'} ${names.slice(0, 4).join(', ')}${names.length > 4 ? ', …' : ''}`;
}

function options(parent, table, recording, of, hasBoth) {
  const toggle = (text, name, isOn) => {
    const box = element('input', { type: 'checkbox', checked: isOn, onchange: () => table.classList.toggle(name, !box.checked) });
    table.classList.toggle(name, !isOn);
    return element('label', {}, box, text);
  };
  const hasSource = of.code.blocks.some((block) => block.lines?.length > 0);
  const hottest = of.code.hottest.slice(0, 20);
  const jump = hottest.length > 1 && select(
    { 'aria-label': 'Go to a hot block', onchange: () => { location.hash = `${of.href}/${jump.value}`; } },
    [['', 'hot blocks…'], ...hottest.map((block) => [hexadecimal(block.start), `${hexadecimal(block.start)}  ${shareAndError(block.share, 0)[0]}`])],
  );
  const box = element('input', { type: 'checkbox', id: 'graph', checked: parent.classList.contains('with-graph'), onchange: () => {
    parent.classList.toggle('with-graph', box.checked);
    showGraph(parent, of);
  } });
  const flow = element('label', {}, box, 'flow graph');
  return element('div', { class: 'controls' }, flow, hasSource && toggle('source', 'no-source', true), hasBoth && toggle('both counts', 'no-both', false), jump);
}

function titles(of, hasBoth) {
  const number = (text, more = '') => element('th', { scope: 'col', class: `number ${more}`, text });
  return [
    number('share'),
    number('±', 'wide'),
    number('count'),
    hasBoth && [number('ebs', 'both'), number(of.code.branches, 'both'), element('th', { scope: 'col', class: 'both', text: 'chosen' })],
    element('th', { scope: 'col', class: 'bars-title', text: of.code.loops.length > 0 ? 'loops' : '' }),
    element('th', { scope: 'col', text: 'address' }),
    element('th', { scope: 'col', text: 'instruction' }),
  ];
}

/** All lines of the function, as functions that make their rows. */
function linesOf(recording, of, marked) {
  const { code } = of;
  const { source } = recording.data;
  const largest = code.blocks.reduce((most, block) => Math.max(most, block.share), Number.MIN_VALUE);
  const barsAt = barsOf(code);
  const { hasBoth } = code;
  const gaps = [...code.gaps];
  // Of a function whose name alone is known nothing is there.
  const what = code.blocks.length > 0 ? 'that are no instructions' : 'whose code is not known';
  const lines = [];
  const add = (make) => lines.push({ make });
  for (const block of code.blocks) {
    while (gaps.length > 0 && gaps[0][0] < block.start) add(notReadable(gaps.shift(), hasBoth, what));
    const bars = barsAt(block);
    const first = lines.length;
    // The heat of a block is beside all of its lines but those before its first instruction.
    const line = (make, position, isAfter) => add(() => {
      const made = make(bars(position));
      if (position === 'first' || position === 'only') made.classList.add('block-start');
      return isAfter ? withNumber(made, '--heat', Math.sqrt(block.share / largest)) : made;
    });
    const [before, inlined] = [new Map(block.lines ?? []), grouped(block.inlined ?? [], ([at]) => at)];
    const total = block.instructions.length;
    const headed = block.loop === undefined ? null : code.loops[block.loop];
    if (headed?.header === block.index) {
      line((bar) => row({ class: 'loop-line' }, hasBoth, bar, element('td', { class: 'address' }), element('td', { text: headed.note })), 'first');
    }
    block.instructions.forEach((instruction, at) => {
      const position = () => (lines.length === first ? 'first' : 'between');
      for (const [, index, called] of inlined.get(at) ?? []) {
        const name = index === null ? null : recording.data.texts.functions[index];
        const where = called === null ? '' : `, called in ${place(source, called)}`;
        line((bar) => row({ class: 'source-line' }, hasBoth, bar, element('td', { class: 'address' }), element('td', { text: `inlined: ${name ?? 'a function without a name'}${where}` })), position(), at > 0);
      }
      if (before.has(at)) {
        const index = before.get(at);
        line((bar) => row({ class: 'source-line' }, hasBoth, bar, element('td', { class: 'address' }), element(
          'td',
          {},
          element('span', { class: 'place', text: place(source, index) }),
          ' ',
          element('span', { class: 'source-text', text: source.text[index] }),
        )), position(), at > 0);
      }
      const isLast = at + 1 === total;
      const begins = position() === 'first';
      line((bar) => instructionRow({ recording, of, block, instruction, at, isLast, bar, hasBoth, marked }), isLast ? (begins ? 'only' : 'last') : position(), true);
    });
  }
  for (const gap of gaps) add(notReadable(gap, hasBoth, what));
  return lines;
}

function place(source, index) {
  return `${source.files[source.file[index]]}:${source.line[index]}`;
}

function row(properties, hasBoth, bar, ...cells) {
  return element('tr', properties, numbersAfter(hasBoth), bar, cells);
}

function notReadable([start, end], hasBoth, what) {
  return () => row({ class: 'not-seen' }, hasBoth, element('td', { class: 'bars' }), element('td', { class: 'address', text: hexadecimal(start) }), element('td', {
    text: `${end - start} bytes ${what}`,
  }));
}

function instructionRow({ recording, of, block, instruction, at, isLast, bar, hasBoth, marked }) {
  const address = hexadecimal(instruction.address);
  const isMarked = marked.length > 0 && block.block !== undefined && isKept(marked, block.block, instruction.kind, instruction.place);
  const classes = [!block.isSeen && 'not-seen', isMarked && 'marked'].filter(Boolean).join(' ');
  return element(
    'tr',
    { 'data-address': address, class: classes || null },
    at === 0 ? numbers(block, hasBoth) : numbersAfter(hasBoth),
    bar,
    element('td', { class: 'address', tabindex: at === 0 ? 0 : null, text: address }),
    element('td', { class: 'instruction' }, element('span', { class: 'text', text: instruction.text }), notes(recording, of, block, at, isLast)),
  );
}

function numbers(block, hasBoth) {
  const number = (text, more = '') => element('td', { class: `number ${more}`, text });
  if (!block.isSeen) {
    const why = block.seen === 'padding' ? 'padding' : 'not seen';
    return [number('', 'heat'), number('', 'wide'), number(why), hasBoth && [number('', 'both'), number('', 'both'), number('', 'both')]];
  }
  const [share, error] = block.seen === 'counted' ? shareAndError(block.share, block.share_error, block.rests_on_little) : ['', ''];
  const by = (value) => (value === undefined ? 'not seen' : brief(value));
  return [
    number(share, 'heat'),
    number(error, 'wide'),
    number(count(rounded(block.count ?? 0, block.count_error))),
    hasBoth && [number(by(block.ebs), 'both'), number(by(block.lbr), 'both'), number(`${block.chosen ?? ''}${block.bias ? ', bias' : ''}`, 'both')],
  ];
}

function numbersAfter(hasBoth) {
  const empty = (name) => element('td', { class: name });
  return [empty('heat'), empty('wide'), empty(null), hasBoth && [empty('both'), empty('both'), empty('both')]];
}

/** What is said after an instruction: with links where they lead somewhere in the page. */
function notes(recording, of, block, at, isLast) {
  const said = [];
  if (at === 0 && block.by_other_source) said.push(element('span', { class: 'note', text: block.by_other_source }));
  const { branch } = block;
  if (!isLast || !branch) return said;
  if (branch.note) said.push(element('span', { class: 'note', text: branch.note }));
  if (branch.taken_rate !== undefined) {
    const rate = element('span', { class: 'rate', 'aria-hidden': 'true' });
    said.push(withNumber(rate, '--rate', branch.taken_rate));
  }
  if (branch.target !== undefined) {
    const isHere = branch.function === of.index || branch.function === undefined;
    const known = isHere ? of.code.starts.has(branch.target) : true;
    const index = isHere ? of.index : branch.function;
    const name = isHere ? hexadecimal(branch.target) : recording.functions[index].name;
    if (known) said.push(element('a', { class: 'to', href: `${recording.functions[index].href}/${hexadecimal(branch.target)}`, 'aria-label': `to ${name}`, title: `to ${name}`, text: '↷' }));
  }
  return said;
}

/**
 * The bars of the loops around a block, outermost first: a function from the block, and from the position of a line among those of the block,
 * to a cell.
 *
 *   ┌   the first line of the loop by address
 *   │┌  one inside of it
 *   │└
 *   ├   its header, where that is not the first
 *   └   the last
 */
function barsOf(code) {
  // Of each loop, it and those around it that have bars. A loop comes before those inside of it.
  const around = [];
  for (const loop of code.loops) {
    const outer = loop.parent === null ? [] : around[loop.parent];
    around.push(outer.length < DEEPEST ? [...outer, loop] : outer);
  }
  const depth = around.reduce((most, loops) => Math.max(most, loops.length), 0);
  return (block) => (position) => {
    const bars = (block.loop === undefined ? [] : around[block.loop]).map((loop) => {
      const isFirst = position === 'first' || position === 'only';
      const isLast = position === 'last' || position === 'only';
      const classes = ['loop-bar'];
      if (isFirst && loop.first === block.index) classes.push('begins');
      if (isLast && loop.last === block.index) classes.push('ends');
      if (isFirst && loop.header === block.index) classes.push('header');
      return element('span', { class: classes.join(' ') });
    });
    const cell = element('td', { class: 'bars' }, bars.length > 0 && element('span', { class: 'bar-box' }, bars));
    return withNumber(cell, '--depth', depth);
  };
}

function legend(of) {
  const hasUnseen = of.code.blocks.some((block) => block.seen === 'not-seen');
  return hasUnseen && element('p', { class: 'dim', text: 'not seen: neither a sample nor a branch stack has it, so it ran seldom or never' });
}
