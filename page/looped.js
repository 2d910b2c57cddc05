// Loops of two recordings beside each other.

import { baseName } from './text.js';
import { grouped } from './grouped.js';

/**
 * Makes loops of two functions that are one each other's `other`: those whose headers are in the same line, counted from where the function
 * begins; then those that are as far from its start. Of several, the hottest go together.
 */
export function pairLoops(after, before) {
  for (const placeOf of [lineOf, offsetOf]) {
    const single = (of) => byShare(of.code.loops.filter((loop) => !loop.other));
    const there = grouped(single(before), (loop) => placeOf(before, loop));
    for (const loop of single(after)) {
      const place = placeOf(after, loop);
      const other = place === null ? undefined : there.get(place)?.shift();
      if (other) [loop.other, other.other] = [other, loop];
    }
  }
}

/**
 * The loops of both recordings that ran in any, the largest change first: `sides` have the loop before and after, of which one can be missing,
 * and `shares` what each has of all instructions of its side; null is not known, because the code of the function is not in the page.
 */
export function loopsOfBoth({ functions, before }) {
  const alone = (of) => {
    const { other } = of;
    return other && (!other.code?.hasLoops || other.other !== of) ? null : 0;
  };
  const of = (list) => list.flatMap((one) => (one.code?.loops ?? []).map((loop) => ({ function: one, loop, header: one.code.blocks[loop.header] })));
  const entries = new Map(of(before.functions).map((one) => [one.loop, one]));
  const rows = of(functions).map((one) => {
    const other = entries.get(one.loop.other) ?? null;
    return { sides: [other, one], shares: [other ? other.loop.share : alone(one.function), one.loop.share] };
  });
  for (const one of entries.values()) if (!one.loop.other) rows.push({ sides: [one, null], shares: [one.loop.share, alone(one.function)] });
  const change = ({ shares: [was, is] }) => (was === null || is === null ? 0 : Math.abs(is - was));
  const size = ({ shares }) => Math.max(...shares);
  return rows.filter((row) => size(row) > 0).sort((one, other) => change(other) - change(one) || size(other) - size(one));
}

function byShare(loops) {
  return loops.sort((one, other) => other.share - one.share || one.index - other.index);
}

/** The line of the header of a loop after that of the function's first block, and how deep the loop is; null without debug information. */
function lineOf({ start, code }, loop) {
  const { line } = code.blocks[loop.header];
  if (!line) return null;
  const first = code.blocks.find((block) => block.start === start)?.line;
  const number = first?.file === line.file ? `+${line.number - first.number}` : line.number;
  return [baseName(line.file), number, loop.depth].join(':');
}

function offsetOf({ start, code }, loop) {
  return start === null ? null : [code.blocks[loop.header].start - start, loop.depth].join(':');
}
