// What changed between two recordings.

import { percent } from './number.js';
import { plural } from './text.js';
import { element, fill, sentence, shownName } from './element.js';
import { keepingFocus, showsMore } from './focus.js';
import { changeCells, changeTitles, classOf, signed } from './compared.js';

/** Rows that are there at first, and that a click adds; functions that are named in words. */
const ROWS = 100;
const NAMED = 5;

const TITLES = { overlap: 'in common', 'in both': 'same files', note: 'note', degraded: 'weaker' };
const ORDERS = {
  change: (one, other) => Math.abs(other.shares[1] - other.shares[0]) - Math.abs(one.shares[1] - one.shares[0]),
  before: (one, other) => other.shares[0] - one.shares[0],
  after: (one, other) => other.shares[1] - one.shares[1],
  function: (one, other) => (one.name < other.name ? -1 : 1),
};

/** The functions of a page's changes, the largest change first. */
export function changedFunctions({ functions: of }) {
  const [within, findings] = [new Set(of.within), new Set(of.findings)];
  return of.name.map((name, at) => ({
    name,
    module: of.module[at],
    shares: [of.before[at], of.after[at]],
    function: of.function[at],
    before: of.function_before[at],
    noise: { error: of.change_error[at], isWithin: within.has(at), isFinding: findings.has(at) },
  }));
}

/** What there is to say first, in sentences. */
export function inWords(changes, functions) {
  const said = new Map(changes.lines);
  const findings = functions.filter(({ noise }) => noise.isFinding);
  const known = functions.some(({ noise }) => noise.error !== null);
  const within = functions.filter(({ noise }) => noise.isWithin).length;
  if (changes.is_exact) {
    const changed = functions.filter(({ shares }) => shares[0] !== shares[1]);
    const told = changed.slice(0, NAMED).map(({ name, shares }) => `${name}: ${percent(shares[0])} before, ${percent(shares[1])} after (${signed(shares[1] - shares[0])})`);
    const lead = `Both sides are exact counts: the share of ${changed.length} of ${plural(functions.length, 'function')} changed.`;
    return { lead, named: told, more: changed.length - told.length, work: said.get('work') ?? '' };
  }
  const named = findings.slice(0, NAMED).map(({ name, shares, noise }) => {
    const error = noise.error === null ? '' : ` ± ${(100 * noise.error).toFixed(2)}`;
    return `${name}: ${percent(shares[0])} before, ${percent(shares[1])} after (${signed(shares[1] - shares[0])}${error})`;
  });
  return {
    lead: !known
      ? 'How much of the changes is chance is not known.'
      : findings.length === 0
        ? `No function changed by more than chance: ${within} of ${plural(functions.length, 'function')} are within their own ±.`
        : `${plural(findings.length, 'function')} changed by more than chance; ${within} of ${functions.length} are within their own ±.`,
    named,
    more: findings.length - named.length,
    work: said.get('work') ?? '',
  };
}

/** What is first in the summary, too. */
export function changesInWords(changes) {
  const { lead, named, more, work } = inWords(changes, changedFunctions(changes));
  return element(
    'div',
    { class: 'lead changes-lead' },
    element('p', {}, element('strong', { text: 'What changed: ' }), lead),
    named.length > 0 && element('ul', {}, named.map((text) => element('li', { text })), more > 0 && element('li', { text: `${more} more` })),
    element('p', {}, element('strong', { text: 'The same work: ' }), sentence(`${work}.`)),
  );
}

/** Fills the section. */
export function showChanges(section, recording) {
  const { changes } = recording.data;
  const functions = changedFunctions(changes);
  const state = { text: '', sort: 'change', rows: ROWS };
  const [head, body, status] = [element('tr'), element('tbody'), element('p', { class: 'status', role: 'status' })];
  const search = element('input', {
    type: 'search',
    id: 'changes-search',
    placeholder: 'name or file',
    'aria-label': 'Search changes',
    spellcheck: 'false',
    oninput: () => show({ text: search.value.trim().toLowerCase(), rows: ROWS }),
  });
  const more = element('button', { text: 'Show more', onclick: () => showsMore(body, more, () => show({ rows: state.rows + 5 * ROWS })) });

  function show(change) {
    Object.assign(state, change);
    const isFound = ({ name, module }) => name.toLowerCase().includes(state.text) || module.toLowerCase().includes(state.text);
    const found = functions.filter(isFound).sort(ORDERS[state.sort]);
    keepingFocus(head, () => fill(head, [['function', null], ...changeTitles(!changes.is_exact), ['file', 'file']].map(([text, of]) => title(text, of, state, show))));
    fill(body, found.slice(0, state.rows).map((one) => row(one, !changes.is_exact)));
    status.textContent = plural(found.length, 'function');
    more.hidden = found.length <= state.rows;
  }

  fill(
    section,
    section.querySelector('h2'),
    changesInWords(changes),
    element('dl', {}, changes.lines.filter(([name]) => name !== 'work' && name !== 'changes').map(([name, text]) => [
      element('dt', { text: TITLES[name] ?? name }),
      element('dd', {}, sentence(text)),
    ])),
    element('h3', { text: 'Functions' }),
    element('p', { class: 'dim' }, sentence(`Shares of all instructions that are compared, as \`hbbp diff\` has them.${changes.is_exact ? '' : ' Dim: the change may be chance alone. '
      + '“changed”: it is more than chance does in any of all the functions.'}`)),
    element('div', { class: 'controls' }, search),
    status,
    element('div', { class: 'scroll' }, element(
      'table',
      { class: 'changed' },
      element('caption', { class: 'hidden', text: 'Functions with their shares before and after' }),
      element('thead', {}, head),
      body,
    )),
    more,
  );
  show({});
}

function title(text, of, state, show) {
  const isSorted = state.sort === text;
  return element(
    'th',
    { scope: 'col', class: of, 'aria-sort': isSorted ? (text === 'function' ? 'ascending' : 'descending') : null },
    text in ORDERS ? element('button', { class: 'sort', 'data-focus': text, text, onclick: () => show({ sort: text, rows: ROWS }) }) : text,
  );
}

function row(one, hasNoise) {
  return element(
    'tr',
    { class: hasNoise ? classOf(one.noise) : null },
    element('th', { scope: 'row', class: 'name' }, one.function === null
      ? element('span', { class: 'clamp', title: one.name }, shownName(one.name))
      : element('a', { class: 'clamp', href: `#functions/${one.function}`, title: one.name }, shownName(one.name))),
    changeCells(one.shares, one.noise, one.before === null ? { hasNoise } : {
      hasNoise,
      before: element('td', { class: 'number' }, element('a', { href: `#before/${one.before}`, 'aria-label': `${percent(one.shares[0])}, code before`, text: percent(one.shares[0]) })),
    }),
    element('td', { class: 'file', title: one.module, text: one.module }),
  );
}
