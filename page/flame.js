// The flame graph: who called what. Callers are above what they called, widths are executed instructions, or periods of samples of LBR call
// stacks.

import { brief, percent } from './number.js';
import { plural } from './text.js';
import { element, fill, select, sentence, withNumber } from './element.js';
import { bySide } from './recording.js';
import { ofChance, signed } from './compared.js';

/** Frames that are narrower are not drawn, and have no name in them: pixels. */
const [NARROWEST, READABLE] = [2, 28];
/** The width that is taken for the page's where it is not known: on paper. */
const USUAL = 1000;
/** Colours of frames. */
const COLOURS = 6;
/** Of two recordings, colours of changes, as parts of the largest change: from each on, frames are one step darker. */
const STEPS = [0.02, 0.1, 0.4];
/** The least change that can be the largest: what is less comes from rounding, or is of no interest. */
const LEAST_CHANGE = 0.001;

/**
 * The frames of a page's contexts, callers first. Of each: from which instruction to which it goes, who called it, what it called, its own
 * instructions, and how many frames it and those below it are. What neither it nor its callees executed is in frames that the page leaves out.
 *
 *   main 10            main from 0 to 10
 *     f 6     g 3        f from 0 to 6, g from 6 to 9
 */
export function makeFrames(contexts) {
  const [frames, open] = [[], []];
  contexts.name.forEach((name, index) => {
    const depth = contexts.depth[index];
    open.length = depth;
    const caller = open[depth - 1] ?? null;
    const from = caller ? caller.from + caller.called : 0;
    const executed = contexts.executed[index];
    const frame = { index, depth, name: contexts.names[name], function: contexts.functions[name], executed, own: contexts.own[index], from, to: from + executed, called: 0, size: 1, caller, callees: [] };
    if (caller) {
      caller.called += executed;
      caller.callees.push(frame);
    }
    frames.push(frame);
    open.push(frame);
  });
  for (const { caller, size } of [...frames].reverse()) if (caller) caller.size += size;
  return frames;
}

/** What is drawn where one frame fills the width of so many pixels: it, those around it, and what it called as far as that is wide enough. */
export function visible(zoomed, width) {
  const [around, seen] = [[], []];
  for (let frame = zoomed.caller; frame; frame = frame.caller) around.unshift(frame);
  const scale = width / (zoomed.executed || 1);
  const open = [zoomed];
  while (open.length > 0) {
    const frame = open.pop();
    if (frame !== zoomed && frame.executed * scale < NARROWEST) continue;
    seen.push(frame);
    open.push(...[...frame.callees].reverse());
  }
  return { around, seen, narrow: zoomed.size - seen.length };
}

/** Instructions of what a frame called and the page leaves out; sums of rounded numbers are a little off. */
export function leftOut(frame) {
  const left = frame.executed - frame.called - frame.own;
  return left > 1e-6 * frame.executed ? left : 0;
}

/** The frames whose names have the text, and the instructions of those of them that no other one called. */
export function matchingFrames(frames, text) {
  const matches = new Set(text === '' ? [] : frames.filter((frame) => frame.name.toLowerCase().includes(text)));
  const isOutermost = (frame) => {
    for (let caller = frame.caller; caller; caller = caller.caller) if (matches.has(caller)) return false;
    return true;
  };
  const executed = [...matches].filter(isOutermost).reduce((sum, frame) => sum + frame.executed, 0);
  return { matches, executed };
}

/**
 * Makes frames of two recordings each other's `other` where they and all their callers have the same names. `nameOf` are functions from a frame
 * to what both call it.
 */
export function pairFrames(after, before, [nameAfter, nameBefore]) {
  if (after.length > 0 && before.length > 0) [after[0].other, before[0].other] = [before[0], after[0]];
  const named = new Map();
  for (const frame of after) {
    const there = frame.caller?.other;
    if (!there) continue;
    if (!named.has(there)) named.set(there, new Map([...there.callees].reverse().map((callee) => [nameBefore(callee), callee])));
    const other = named.get(there).get(nameAfter(frame));
    if (other && !other.other) [frame.other, other.other] = [other, frame];
  }
}

/** How far the contexts of a recording reach, and what the page leaves out of them, in sentences. */
function notesOf(data) {
  const { contexts, instructions } = data;
  if (!contexts || contexts.why || contexts.name.length === 0) return [];
  const [number, left] = contexts.left_out;
  const part = percent(left / ((contexts.unit ? contexts.executed[0] : instructions) || 1));
  const counted = contexts.unit ?? 'instructions';
  return [...contexts.notes, ...(number > 0 ? [`left out of the page: ${plural(number, 'frame')}, which have ${part} of all ${counted} themselves`] : [])];
}

/** The step of a change, from -3 to 3, where the largest one is known; one at most where the change may be chance. */
export function stepOf(change, largest, mayBeChance = false) {
  const steps = Math.min(STEPS.filter((part) => Math.abs(change) > part * largest).length, mayBeChance ? 1 : STEPS.length);
  return steps === 0 ? 0 : Math.sign(change) * steps;
}

/** The function of a frame, if it has one. */
function functionOf(side, frame) {
  return frame.function === null ? undefined : side.recording.functions[frame.function];
}

/** The contexts of a recording as a side of the graph. */
function makeSide(recording) {
  const contexts = recording.data.contexts ?? { why: 'the page has none' };
  if (contexts.why || contexts.name.length === 0) return { recording, why: contexts.why ?? 'nothing was seen running' };
  const frames = makeFrames(contexts);
  // Periods of samples are no part of the instructions of the recording.
  const share = (part) => (contexts.unit ? part / (frames[0].executed || 1) : recording.share(part));
  const joined = new Map(recording.data.names?.functions ?? []);
  return {
    recording,
    contexts,
    frames,
    share,
    nameOf: (frame) => joined.get(frame.function) ?? frame.name,
    // What a frame that is not in the page can have at most.
    most: contexts.left_out[0] > 0 ? share(frames.reduce((least, { executed }) => Math.min(least, executed), Infinity)) : 0,
  };
}

/** The side of a recording, and where both can be compared, [before, after]; or why they cannot. */
function sidesOf(recording) {
  const after = makeSide(recording);
  if (!recording.before || after.why) return { after };
  const before = makeSide(recording.before);
  if (before.why) return { after, without: `Not compared, because of before there are no calling contexts: ${before.why}` };
  if (before.contexts.unit !== after.contexts.unit) return { after, without: 'Not compared, because the contexts of both count something else' };
  pairFrames(after.frames, before.frames, [after.nameOf, before.nameOf]);
  const change = (frame) => (frame.other ? Math.abs(after.share(frame.executed) - before.share(frame.other.executed)) : after.share(frame.executed));
  // The scale is not that of chance.
  const counts = (side) => (frame) => !functionOf(side, frame)?.mayBeChance;
  const gone = before.frames.filter(({ other }) => !other).filter(counts(before)).map(({ executed }) => before.share(executed));
  const largest = [...after.frames.filter(({ caller }) => caller).filter(counts(after)).map(change), ...gone].reduce((most, one) => Math.max(most, one), LEAST_CHANGE);
  return { after, both: [before, after], largest };
}

const LEGEND = [['step-3', 'less'], ['step-2', ''], ['step-1', ''], ['step0', 'as much'], ['step1', ''], ['step2', ''], ['step3', 'more']];

/** Fills the section when that is asked for: it has many elements. Returns what does. */
export function showFlame(section, recording) {
  const { after, both, largest, without } = sidesOf(recording);
  const title = section.querySelector('h2');
  if (after.why) {
    fill(section, title, element('p', { class: 'no-contexts' }, sentence(`There are no calling contexts: ${after.why}.`)));
    return { show: () => {}, search: () => {} };
  }
  const counted = after.contexts.unit ?? 'instructions';
  // The side whose shares are the widths.
  let side = after;
  const share = (part) => percent(side.share(part));
  const state = { zoomed: side.frames[0], current: side.frames[0], isBuilt: false, width: null };
  const [line, status] = [element('div', { class: 'flame-line', role: 'status' }), element('p', { class: 'status', role: 'status' })];
  const graph = element('div', {
    class: 'flame',
    role: 'group',
    'aria-label': 'Flame graph',
    onclick: (event) => click(event),
    onkeydown: (event) => walk(event),
    onmouseover: (event) => describe(frameOf(event.target) ?? state.current),
    onmouseleave: () => describe(state.current),
    onfocusin: (event) => choose(frameOf(event.target) ?? state.current),
  });
  const search = element('input', {
    type: 'search',
    id: 'flame-search',
    placeholder: 'name  ( / )',
    'aria-label': 'Search frames',
    spellcheck: 'false',
    oninput: () => draw(),
  });
  const widths = both && select({ id: 'flame-side', onchange: () => turn() }, [['after', 'after'], ['before', 'before']], 'after');
  const all = element('button', { class: 'flame-all', text: 'Show all', onclick: () => zoom(side.frames[0]) });

  function frameOf(target) {
    const index = target.closest?.('.frame')?.dataset.frame;
    return index === undefined ? null : side.frames[Number(index)];
  }

  /** The shares of a frame before and after; of one that the other side's page leaves out, the most that it can be. */
  function sharesOf(frame) {
    return both.map((one) => {
      if (one === side) return { share: one.share(frame.executed), text: share(frame.executed) };
      if (frame.other) return { share: one.share(frame.other.executed), text: percent(one.share(frame.other.executed)) };
      return { share: 0, text: one.most > 0 ? `at most ${percent(one.most)}` : percent(0) };
    });
  }

  /** How much of all a frame is, or was and is. */
  function partOf(frame) {
    if (!both) return `${share(frame.executed)} of all`;
    const [was, is] = sharesOf(frame);
    return `${was.text} of all before, ${is.text} after (${signed(is.share - was.share)})`;
  }

  /** Says what a frame is. */
  function describe(frame) {
    const left = leftOut(frame);
    const own = `${share(frame.own)} in itself${left > 0 ? `, ${share(left)} in frames that are left out` : ''} `;
    fill(
      line,
      element('strong', { title: frame.name, text: frame.name }),
      element(
        'span',
        {},
        `${partOf(frame)}, ${brief(frame.executed)} ${counted}; ${own}`,
        hrefOf(frame) && element('a', { class: 'flame-code', href: hrefOf(frame), text: 'code' }),
      ),
    );
  }

  function changeClass(frame) {
    const [was, is] = sharesOf(frame);
    return `step${stepOf(is.share - was.share, largest, functionOf(side, frame)?.mayBeChance)}`;
  }

  /** Draws the frames of the other side, which are as wide as their shares there. */
  function turn() {
    const { zoomed } = state;
    side = side === both[0] ? both[1] : both[0];
    Object.assign(state, { zoomed: zoomed.other ?? side.frames[0], current: zoomed.other ?? side.frames[0] });
    draw();
  }

  function hrefOf(frame) {
    return frame.function === null || side.recording.functions[frame.function].start === null ? null : side.recording.functions[frame.function].href;
  }

  function choose(frame) {
    state.current = frame;
    for (const other of graph.querySelectorAll('.frame[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    drawnOf(frame)?.setAttribute('tabindex', '0');
    describe(frame);
  }

  function drawnOf(frame) {
    return graph.querySelector(`[data-frame="${frame.index}"]`);
  }

  function zoom(frame) {
    state.zoomed = frame;
    state.current = frame;
    const hasFocus = graph.contains(document.activeElement);
    draw();
    if (hasFocus) drawnOf(frame)?.focus({ preventScroll: true });
    drawnOf(frame)?.scrollIntoView({ block: 'nearest' });
  }

  /** With a modifier a click is one on a link. */
  function click(event) {
    const frame = frameOf(event.target);
    if (!frame || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    zoom(frame);
  }

  function walk(event) {
    const frame = frameOf(event.target);
    if (!frame || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.key === 'c' && hrefOf(frame)) location.hash = hrefOf(frame);
    const row = () => [...graph.querySelectorAll('.frame')].map(frameOf).filter(({ depth }) => depth === frame.depth);
    const next = {
      Enter: () => zoom(frame),
      ' ': () => zoom(frame),
      Escape: () => zoom(side.frames[0]),
      ArrowUp: () => frame.caller,
      ArrowDown: () => frame.callees.find(drawnOf),
      ArrowLeft: () => row().filter(({ from }) => from < frame.from).pop(),
      ArrowRight: () => row().find(({ from }) => from > frame.from),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const to = next();
    if (to) drawnOf(to)?.focus();
  }

  function draw() {
    state.width = graph.clientWidth;
    const width = state.width || USUAL;
    const { zoomed } = state;
    const { around, seen, narrow } = visible(zoomed, width);
    const text = search.value.trim().toLowerCase();
    const { matches, executed } = matchingFrames(side.frames, text);
    const size = zoomed.executed || 1;
    const box = (frame, left, part, isAround) => {
      const name = part * width >= READABLE ? frame.name : '';
      const colour = isAround || (text !== '' && !matches.has(frame)) ? 'plain' : matches.has(frame) ? 'match' : both ? changeClass(frame) : `colour-${colourOf(frame.name)}`;
      const href = hrefOf(frame);
      const made = element('a', {
        class: `frame ${colour}`,
        href,
        role: href ? null : 'button',
        tabindex: frame === state.current ? '0' : '-1',
        'data-frame': frame.index,
        'aria-label': `${frame.name}, ${both ? partOf(frame) : share(frame.executed)}`,
        title: both && `${frame.name}: ${partOf(frame)}`,
        text: name,
      });
      return withNumber(withNumber(withNumber(made, '--left', left), '--part', part), '--row', frame.depth);
    };
    if (!seen.includes(state.current) && !around.includes(state.current)) state.current = zoomed;
    fill(
      graph,
      around.map((frame) => box(frame, 0, 1, true)),
      seen.map((frame) => box(frame, (frame.from - zoomed.from) / size, frame.executed / size, false)),
    );
    withNumber(graph, '--rows', seen.reduce((most, { depth }) => Math.max(most, depth), 0) + 1);
    all.disabled = zoomed === side.frames[0];
    status.textContent = [
      text !== '' && `${plural(matches.size, 'frame')} with “${text}”: ${side.contexts.left_out[0] > 0 ? 'at least ' : ''}${share(executed)} of all ${counted}`,
      narrow > 0 && `${plural(narrow, 'frame')} too narrow to be drawn: zoom in`,
    ].filter(Boolean).join('; ');
    describe(state.current);
  }

  function build() {
    state.isBuilt = true;
    fill(
      section,
      title,
      element('p', {
        text: `Who called what: callers are above what they called, and widths are ${after.contexts.unit ? `periods of samples of ${after.contexts.unit}` : 'executed instructions'}. A click zooms in; `
          + 'with Ctrl or Shift it opens the code of the function.',
      }),
      both && element(
        'p',
        { class: 'flame-legend' },
        'Colours say how the share of all changed: ',
        element('span', { class: 'legends' }, LEGEND.map(([of, text]) => element('span', { class: `legend ${of}`, text }))),
        ` The darkest are of the largest changes, up to ${signed(largest).slice(1)} points. ${ofChance(recording, 'Frames are pale where the change of their function may be chance alone', 'frames')} What is gone is seen with the widths of before.`,
      ),
      without && element('p', { class: 'dim' }, sentence(`${without}.`)),
      element('div', { class: 'controls' }, search, both && element('label', { for: 'flame-side' }, 'Widths:', widths), all),
      line,
      graph,
      status,
      element('ul', { class: 'dim' }, bySide(recording, notesOf).map((text) => element('li', {}, sentence(text)))),
    );
    window.addEventListener('resize', () => { if (!section.hidden) draw(); });
  }

  return {
    show() {
      if (!state.isBuilt) build();
      if (graph.clientWidth !== state.width) draw();
    },
    search() {
      search.focus();
    },
  };
}

/** One of the colours, which depends on the name alone. */
function colourOf(name) {
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) hash = (hash * 31 + name.charCodeAt(at)) % 65521;
  return hash % COLOURS;
}
