// The data of the page, as its parts use it.

import { addressAfter, addressOf } from './number.js';
import { functionsKey, makeFacts, placesOf, sourceName } from './facts.js';
import { alignKeys, makeNoise } from './compared.js';
import { pairLoops } from './looped.js';

/** Functions with their code, blocks and loops; the facts of the mix; and the recording before, if there is one. */
export function makeRecording(data, part = 'functions') {
  const little = new Set(data.functions.rest_on_little);
  const { time, time_error: timeErrors, time_per_instruction: timesAsLong } = data.functions;
  const share = (executed) => (data.instructions > 0 ? executed / data.instructions : 0);
  const functions = data.functions.name.map((name, index) => ({
    index,
    // Where it is in the address of the page.
    href: `#${part}/${index}`,
    isBefore: part === 'before',
    name,
    module: data.modules[data.functions.module[index]],
    start: addressOf(data.functions.start[index]),
    executed: data.functions.executed[index],
    share: share(data.functions.executed[index]),
    error: data.functions.share_error[index],
    restsOnLittle: little.has(index),
    // Its share of the time, where that is known, and how many times as long as one of all code an instruction of it took.
    time: time?.[index] ?? null,
    timeError: timeErrors?.[index] ?? null,
    long: timesAsLong?.[index] ?? null,
    code: null,
    calls: null,
  }));
  for (const code of data.code) {
    const of = functions[code.function];
    of.calls = code.calls;
    of.code = makeCode(data, code, share);
  }
  const facts = makeFacts(data);
  const before = data.before ? makeRecording(data.before, 'before') : null;
  if (before) alignKeys(facts.keys, before.facts.keys);
  const noiseOf = makeNoise(data.changes?.keys ?? []);
  if (before) {
    pair(functions, before.functions, data.changes.functions);
    for (const of of functions) if (of.code && of.other?.code && of.other.other === of) pairLoops(of, of.other);
  }
  return { data, functions, share, tellsTime: time !== undefined, facts, functionsKey: functionsKey(data), loops: allLoops(functions), before, noiseOf };
}

/**
 * Functions that are compared have each other as `other`: the first pair of each, which has the largest change. Each knows whether its change
 * `mayBeChance`: undefined where that is not known.
 */
function pair(after, before, { function: ofAfter, function_before: ofBefore, findings = [], change_error: errors = [] }) {
  const found = new Set(findings);
  ofAfter.forEach((index, at) => {
    const [one, other] = [after[index], before[ofBefore[at]]];
    for (const of of [one, other]) if (of && (found.has(at) || Number.isFinite(errors[at]))) of.mayBeChance ??= !found.has(at);
    if (!one || !other) return;
    one.other ??= other;
    other.other ??= one;
  });
}

/** What is said of a recording in sentences; of two, of both, each with what it is called. What is said of both stands once. */
export function bySide({ data, before }, saidOf) {
  const after = saidOf(data);
  if (!before) return after;
  const first = saidOf(before.data);
  const [nameBefore, nameAfter] = data.changes.files;
  const only = (texts, others, name) => texts.filter((text) => !others.includes(text)).map((text) => `${name}: ${text}`);
  return [...after.filter((text) => first.includes(text)), ...only(first, after, nameBefore), ...only(after, first, nameAfter)];
}

/** The function of a name in the address bar: its index. */
export function functionAt(recording, text) {
  return /^\d+$/.test(text) ? recording.functions[Number(text)] : undefined;
}

function makeCode(data, code, share) {
  const line = linesOfBlocks(data);
  const blocks = code.blocks.map((block, index) => {
    const count = block.block === undefined ? null : data.blocks.count[block.block];
    const start = addressOf(block.start);
    let address = start;
    const kinds = block.block === undefined ? [] : data.blocks.kinds[block.block];
    const placeAt = placesOf(data, block.block);
    const instructions = block.instructions.map((text, at) => {
      const made = { address, text: data.texts.text[text], kind: kinds[at], place: placeAt(at) };
      address = addressAfter(address, data.texts.length[text]);
      return made;
    });
    return {
      ...block,
      start,
      line: line(block),
      branch: block.branch && { ...block.branch, target: addressOf(block.branch.target), note: data.texts.notes?.[block.branch.note] },
      index,
      end: address,
      instructions,
      count,
      share: share((count ?? 0) * instructions.length),
      chosen: block.block === undefined ? null : sourceName(data, data.blocks.chosen[block.block]),
      isSeen: block.seen === 'counted' || block.seen === 'by-other-source',
    };
  });
  const loops = (code.loops ?? []).map((loop, index) => ({ ...loop, index, share: 0 }));
  for (const block of blocks) {
    if (block.loop !== undefined) loops[block.loop].share += block.share;
  }
  // A loop comes before those inside of it.
  for (const loop of [...loops].reverse()) {
    if (loop.parent !== null) loops[loop.parent].share += loop.share;
  }
  const starts = new Set(blocks.map((block) => block.start));
  const hottest = blocks.filter((block) => block.share > 0).sort((one, other) => other.share - one.share);
  const hasBoth = ['ebs', 'lbr'].every((source) => blocks.some((block) => block[source] !== undefined));
  return { blocks, starts, hottest, hasBoth, branches: sourceName(data, 'lbr'), loops, hasLoops: code.loops !== null, gaps: (code.not_readable ?? []).map((gap) => gap.map(addressOf)), edges: code.edges ?? [] };
}

/** A function from the blocks of a function, which must come in order, to the line of the source where each begins, if that is known. */
function linesOfBlocks({ source }) {
  let current = null;
  return ({ lines = [] }) => {
    if (lines[0]?.[0] === 0) current = lines[0][1];
    const begins = current;
    if (lines.length > 0) current = lines[lines.length - 1][1];
    return begins === null ? null : { file: source.files[source.file[begins]], number: source.line[begins] };
  };
}

/** The loops of all functions whose code is there, those with the most executed instructions first. */
function allLoops(functions) {
  const ofFunction = (of) => (of.code?.loops ?? []).map((loop) => ({ function: of, loop, header: of.code.blocks[loop.header] }));
  const loops = functions.flatMap(ofFunction).filter(({ loop }) => loop.share > 0);
  return loops.sort((one, other) => other.loop.share - one.loop.share || one.function.index - other.function.index
    || one.loop.index - other.loop.index);
}
