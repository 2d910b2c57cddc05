// Text can be read in both schemes: a contrast of 4.5 at least (WCAG 2.2, 1.4.3), of marks 3 (1.4.11).

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const STYLE = readFileSync(new URL('../page.css', import.meta.url), 'utf8');

function coloursAfter(text) {
  const block = STYLE.slice(STYLE.indexOf(text)).match(/:root \{([^}]*)\}/)[1];
  return Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]));
}

const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

function mixed(colour, part, under) {
  const [above, below] = [channels(colour), channels(under)];
  return `#${above.map((value, at) => Math.round(value * part + below[at] * (1 - part)).toString(16).padStart(2, '0')).join('')}`;
}

function contrast(one, other) {
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [more, less] = [light(one), light(other)].sort((a, b) => b - a);
  return (more + 0.05) / (less + 0.05);
}

for (const [scheme, colours] of [['light', coloursAfter(':root')], ['dark', coloursAfter('prefers-color-scheme: dark')]]) {
  test(`text can be read: ${scheme}`, () => {
    const { paper, raised, ink, dim, link, accent, hot, source, loop, bar, mark, 'mark-ink': onMark } = colours;
    const hottest = mixed(hot, 0.6, paper);
    const pairs = [[ink, paper], [ink, raised], [dim, paper], [dim, raised], [link, paper], [link, raised], [paper, accent], [source, paper], [loop, paper], [ink, hottest], [onMark, mark]];
    // Marked rows, and frames.
    const target = mixed(accent, 0.22, paper);
    pairs.push([ink, target], [link, target], [ink, mixed(hot, 0.6, target)]);
    for (let frame = 0; frame < 6; frame += 1) pairs.push([ink, colours[`frame-${frame}`]]);
    for (const step of ['less-1', 'less-2', 'less-3', 'more-1', 'more-2', 'more-3']) pairs.push([ink, colours[step]]);
    for (const [text, ground] of pairs) assert.ok(contrast(text, ground) >= 4.5, `${text} on ${ground}: ${contrast(text, ground)}`);
    for (const drawn of [bar, colours.before, accent, loop]) assert.ok(contrast(drawn, paper) >= 3, `${drawn}: ${contrast(drawn, paper)}`);
  });
}
