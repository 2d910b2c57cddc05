// The summary: what the numbers are made from, what they are good for, and what is weaker than it could be.

import { brief, count, shareAndError } from './number.js';
import { plural } from './text.js';
import { element, fill, sentence } from './element.js';
import { changesInWords } from './changes.js';
import { isTraced } from './facts.js';
import { bySide } from './recording.js';

/** Titles of lines of the head, for people. */
const TITLES = {
  source: 'source of the counts',
  ebs: 'samples (EBS)',
  lbr: 'branch stacks (LBR)',
  bursts: 'bursts',
  tracer: 'tracer',
  unused: 'unused',
  lost: 'lost',
  counts: 'counts',
};

/** Fills the section. */
export function showSummary(section, recording) {
  const { data } = recording;
  fill(
    section,
    section.querySelector('h2'),
    data.changes && changesInWords(data.changes),
    data.changes && element('p', { class: 'dim', text: `Numbers that follow are of ${data.changes.files[1]}.` }),
    goodFor(data),
    tiles(recording),
    list('What is weaker than it could be', bySide(recording, ({ head }) => [...losses(head), ...head.degraded]), 'Nothing is.'),
    list(data.changes ? 'What the recordings do not tell' : 'What the recording does not tell', bySide(recording, ({ lacks }) => lacks), 'Nothing is missing.'),
    element('h3', { text: 'What the numbers are made from' }),
    definitions(lines(data), sentence),
    data.recording.length > 0 && [element('h3', { text: 'The recording' }), definitions(data.recording)],
    element('h3', { text: 'How to read ±' }),
    element('p', {
      text: '± is half the width of an interval that holds the truth in 95 % of all recordings, in per cent of all instructions: '
        + '37 % ± 12 is 25 to 49 %. “< 6.2 %” is less certain than it is large: somewhere from nothing to this. “?” marks what was seen in '
        + 'too little of the recording for its ± to be trusted; alone, it says that the ± is not known.',
    }),
  );
}

/** What the head says of losses, where there are any. */
function losses({ lost, throttled, malformed }) {
  const some = [[lost, 'sample', 'lost'], [throttled, 'time', 'throttled'], [malformed, 'record', 'that could not be read']];
  return some.filter(([number]) => number > 0).map(([number, what, how]) => `${plural(number, what)} ${how}`);
}

function goodFor(data) {
  const relative = data.head.unit === 'executions'
    ? 'Counts are executions.'
    : 'Counts are relative: compare them with each other only, not with counts of other recordings.';
  const unknown = data.head.source === 'exact' ? 'exact' : 'not known';
  return element(
    'div',
    { class: 'lead' },
    element('p', {}, element('strong', { text: 'How right it is: ' }), sentence(`${data.head.precision?.text ?? unknown}.`)),
    element('p', { text: relative }),
    data.slow && element('p', { class: 'slowest' }, element('strong', { text: 'Slow: ' }), `${data.slow}.`),
  );
}

/** Numbers that say the most, large. */
function tiles(recording) {
  const { data, functions } = recording;
  const hottest = functions.find((of) => of.start !== null);
  const withCode = functions.filter((of) => of.code).length;
  const tile = (title, value, more, href) => element(
    'div',
    { class: 'tile' },
    element('div', { class: 'tile-title', text: title }),
    element('div', { class: 'tile-value' }, href ? element('a', { href, text: value }) : value),
    element('div', { class: 'tile-more', text: more }),
  );
  return element(
    'div',
    { class: 'tiles' },
    tile('instructions', brief(data.instructions), data.head.unit),
    tile('functions', count(functions.filter((of) => of.start !== null).length), `code of ${count(withCode)} is in this page`),
    tile('blocks', count(data.blocks.start.length), `${plural(recording.loops.length, 'loop')} seen running`),
    hottest && tile('hottest function', hottest.name, ofAll(hottest), `#functions/${hottest.index}`),
    vectorized(recording, tile),
  );
}

function ofAll(of) {
  const [share, error] = shareAndError(of.share, of.error, of.restsOnLittle);
  return `${share}${error ? ` ± ${error}` : ''} of all instructions`;
}

function vectorized(recording, tile) {
  const packing = recording.facts.keys.get('packing');
  const at = packing?.values.indexOf('packed') ?? -1;
  if (at < 0) return tile('packed (SIMD)', 'none', 'no packed instruction was seen', '#mix/vectorization');
  const [share, error] = shareAndError(
    recording.share(packing.counts[at]),
    packing.errors[at],
    packing.little.has(at),
  );
  return tile('packed (SIMD)', share, `${error ? `± ${error} ` : ''}of all instructions`, '#mix/vectorization');
}

function list(title, sentences, none) {
  return [
    element('h3', { text: title }),
    sentences.length > 0
      ? element('ul', {}, sentences.map((text) => element('li', {}, sentence(text))))
      : element('p', { text: none }),
  ];
}

/** The lines of the head that no other part shows; a line without a title goes on with the one before it. */
function lines(data) {
  const shown = [];
  const traced = isTraced(data);
  for (const [title, text] of data.lines) {
    if (title === '' && shown.length > 0) shown.push(['', text]);
    else if (title === 'lbr' && traced) shown.push(['branches', text]);
    else if (title === 'source' && traced) shown.push([TITLES.source, text.replace(/^lbr\b/, 'traced branches')]);
    else if (title in TITLES) shown.push([TITLES[title], text]);
  }
  return shown;
}

/** Pairs of a title and a text, which `made` makes what is shown: what a recording says of itself is text as it stands. */
function definitions(pairs, made = (text) => text) {
  return element('dl', {}, pairs.map(([title, text]) => [title !== '' && element('dt', { text: title }), element('dd', {}, made(text))]));
}
