// The flow graph of a function: its blocks that ran, in the order of the code, and how often control went from one to another.

import { brief, hexadecimal, percent } from './number.js';
import { drawn, element } from './element.js';

/** Blocks that are drawn: the hottest. */
const MOST = 300;
/** Lanes beside the blocks, in which lines run. */
const LANES = 16;
const [WIDTH, HEIGHT, GAP, LANE, MARGIN] = [150, 40, 22, 12, 10];

/**
 * Where everything is. Blocks are below each other. A way to the next block is a straight line; others run beside the blocks, those forward
 * on the right, those back on the left: the shorter, the nearer.
 *
 *      ┌─ A ─┐     A to C forward, C to A back
 *      │  B  │
 *      └─ C ─┘
 */
export function layOut(code) {
  const hottest = code.blocks.filter((block) => block.seen === 'counted').sort((one, other) => other.share - one.share || one.index - other.index);
  const nodes = hottest.slice(0, MOST).sort((one, other) => one.index - other.index).map((block, row) => ({ block, row }));
  const rows = new Map(nodes.map(({ block, row }) => [block.index, row]));
  const edges = code.edges.filter(([from, to]) => rows.has(from) && rows.has(to)).map(([from, to, count]) => ({ from: rows.get(from), to: rows.get(to), count }));
  const isStraight = ({ from, to }) => to === from + 1;
  const sides = { right: edges.filter((edge) => edge.to > edge.from + 1), left: edges.filter((edge) => edge.to <= edge.from) };
  const [left, right] = [sides.left, sides.right].map(inLanes);
  const loops = code.loops.map((loop) => rowsOfLoop(loop, nodes)).filter(Boolean);
  return { nodes, loops, straight: edges.filter(isStraight), left, right, leftOut: hottest.length - nodes.length };
}

/** Edges with a lane for each, in which no other one is beside it, as long as there are lanes. */
function inLanes(edges) {
  const length = ({ from, to }) => Math.abs(from - to);
  const inOrder = [...edges].sort((one, other) => length(one) - length(other) || one.from - other.from || one.to - other.to);
  const lanes = [];
  return inOrder.map((edge) => {
    const [first, last] = [Math.min(edge.from, edge.to), Math.max(edge.from, edge.to)];
    const isFree = (lane) => (lanes[lane] ?? []).every(([from, to]) => last < from || to < first);
    let lane = 0;
    while (lane < LANES - 1 && !isFree(lane)) lane += 1;
    (lanes[lane] ??= []).push([first, last]);
    return { ...edge, lane };
  });
}

/** The rows from the first block of a loop to the last. */
function rowsOfLoop(loop, nodes) {
  const rows = nodes.filter(({ block }) => block.index >= loop.first && block.index <= loop.last).map(({ row }) => row);
  return rows.length === 0 || loop.share === 0 ? null : { loop, first: rows[0], last: rows[rows.length - 1] };
}

/** Draws it. */
export function graph(of) {
  const laid = layOut(of.code);
  const used = (edges) => Math.max(0, ...edges.map(({ lane }) => lane + 1));
  const depth = Math.max(0, ...laid.loops.map(({ loop }) => loop.depth));
  const x = MARGIN + (laid.left.length > 0 ? 34 : 0) + used(laid.left) * LANE + depth * 4 + 16;
  const width = x + WIDTH + 16 + used(laid.right) * LANE + depth * 4 + 56;
  const height = laid.nodes.length * (HEIGHT + GAP) + GAP;
  const top = (row) => GAP + row * (HEIGHT + GAP);
  const largest = of.code.edges.reduce((most, [, , count]) => Math.max(most, count ?? 0), 1);
  const hottest = Math.max(...laid.nodes.map(({ block }) => block.share), Number.MIN_VALUE);
  const thick = (count) => (count === null ? 1 : 1 + 3 * Math.sqrt(count / largest));
  const label = (count, at) => count !== null && drawn('text', { ...at, class: 'edge-count', text: brief(count) });
  const line = ({ from, to, count }, d, at, kind) => drawn(
    'g',
    { class: `edge ${kind}`, 'data-from': from, 'data-to': to },
    drawn('path', { d, 'stroke-width': thick(count).toFixed(1), 'marker-end': 'url(#arrow)' }),
    label(count, at),
  );
  const beside = (edge, side) => {
    const sign = side === 'left' ? -1 : 1;
    const edgeX = side === 'left' ? x : x + WIDTH;
    const lane = edgeX + sign * (16 + depth * 4 + edge.lane * LANE);
    const [y1, y2] = [top(edge.from) + HEIGHT - 8, top(edge.to) + 8];
    const d = `M${edgeX} ${y1} H${lane} V${y2} H${edgeX + sign * 3}`;
    return line(edge, d, { x: edgeX + sign * 4, y: y1 + 12, 'text-anchor': side === 'left' ? 'end' : 'start' }, side);
  };
  const middle = x + WIDTH / 2;
  const picture = drawn(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, width, height, role: 'group', 'aria-label': `Flow graph of ${of.name}` },
    drawn('defs', {}, drawn(
      'marker',
      { id: 'arrow', viewBox: '0 0 6 6', refX: 5, refY: 3, markerWidth: 6, markerHeight: 6, markerUnits: 'userSpaceOnUse', orient: 'auto' },
      drawn('path', { d: 'M0 0 L6 3 L0 6 z' }),
    )),
    laid.loops.map(({ loop, first, last }) => {
      const more = (depth - loop.depth + 1) * 4;
      return drawn('rect', { class: 'loop-box', x: x - more, y: top(first) - more, width: WIDTH + 2 * more, height: top(last) - top(first) + HEIGHT + 2 * more, rx: 6 });
    }),
    laid.straight.map((edge) => line(edge, `M${middle} ${top(edge.from) + HEIGHT} V${top(edge.to) - 1}`, { x: middle + 6, y: top(edge.to) - 7 }, 'straight')),
    laid.right.map((edge) => beside(edge, 'right')),
    laid.left.map((edge) => beside(edge, 'left')),
    laid.nodes.map(({ block, row }) => node(of, block, { x, y: top(row) }, Math.sqrt(block.share / hottest))),
  );
  return element(
    'div',
    { class: 'graph' },
    element('p', { class: 'dim', text: `Blocks that ran, in the order of the code; how often control went from one to another${laid.leftOut > 0 ? `. ${laid.leftOut} that are less hot are left out` : ''}.` }),
    element('div', { class: 'scroll' }, picture),
  );
}

/** Marks the block that has an address; returns it. */
export function markNode(parent, of, address) {
  const at = Number.parseInt(address, 16);
  const block = of.code.blocks.find((one) => one.start <= at && at < one.end);
  let found = null;
  for (const other of parent.querySelectorAll('.node')) {
    const isIt = block !== undefined && other.dataset.start === hexadecimal(block.start);
    other.classList.toggle('current', isIt);
    if (isIt) found = other;
  }
  return found;
}

function node(of, block, { x, y }, heat) {
  const start = hexadecimal(block.start);
  const box = drawn('rect', { x, y, width: WIDTH, height: HEIGHT, rx: 4, class: 'node-box' });
  const hot = drawn('rect', { x, y, width: WIDTH, height: HEIGHT, rx: 4, class: 'node-heat', 'fill-opacity': (0.6 * heat).toFixed(3) });
  const text = (line, more) => drawn('text', { x: x + 8, y: y + 16 + 16 * line, ...more });
  return drawn(
    'a',
    { href: `${of.href}/${start}`, class: 'node', 'data-start': start, 'aria-label': `block ${start}, ${percent(block.share)}, ${brief(block.count)} executions` },
    box,
    hot,
    text(0, { class: 'code', text: start }),
    text(1, { class: 'node-numbers', text: `${brief(block.count)} × ${block.instructions.length}   ${percent(block.share)}` }),
  );
}
