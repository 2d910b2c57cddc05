// The table of functions.

import { brief, percent, shareAndError, times } from './number.js';
import { baseName, plural } from './text.js';
import { element, fill, shownName, withNumber } from './element.js';
import { keepingFocus, showsMore } from './focus.js';

/** Rows that are there at first, and that a click adds. */
const ROWS = 200;

/** Functions whose instructions take so many times as long as those of all code, with so much of the time, stand out. */
const [SLOW, WORTH_MARKING] = [2, 0.01];

const COLUMNS = [
  { id: 'name', title: 'function', of: (one) => one.name },
  { id: 'share', title: 'share', of: (one) => one.executed, isNumber: true },
  { id: 'error', title: '±', of: (one) => one.error ?? Infinity, isNumber: true },
  { id: 'time', title: 'time', about: 'share of the time', of: (one) => one.time, isNumber: true, isOfTime: true },
  { id: 'long', title: 'time / instr.', about: 'how many times as long an instruction took as one of all code', of: (one) => one.long ?? -1, isNumber: true, isOfTime: true },
  { id: 'calls', title: 'calls', of: (one) => one.calls ?? -1, isNumber: true },
  { id: 'file', title: 'file', of: (one) => baseName(one.module) },
];

/** Makes the table in a part of the page; returns what marks the function that is shown. */
export function showFunctions(parent, recording) {
  const columns = COLUMNS.filter((column) => !column.isOfTime || recording.tellsTime);
  const state = { text: '', sort: 'share', isRising: false, rows: ROWS, chosen: null };
  const largest = recording.functions.reduce((most, one) => Math.max(most, one.executed), 0);
  const search = element('input', {
    type: 'search',
    id: 'search',
    placeholder: 'name or file  ( / )',
    'aria-label': 'Search functions',
    spellcheck: 'false',
    oninput: () => show({ text: search.value.trim().toLowerCase(), rows: ROWS }),
  });
  const status = element('p', { class: 'status', role: 'status' });
  const head = element('tr');
  const body = element('tbody', { onkeydown: (event) => walk(event, body) });
  const more = element('button', { text: 'Show more', onclick: () => showsMore(body, more, () => show({ rows: state.rows + 5 * ROWS })) });

  function show(change) {
    Object.assign(state, change);
    const found = sorted(matching(recording.functions, state.text), state);
    keepingFocus(head, () => fill(head, columns.map((column) => title(column, state, (sort, isRising) => show({ sort, isRising })))));
    fill(body, found.slice(0, state.rows).map((one) => row(one, recording, largest, state.chosen)));
    const executed = found.reduce((sum, one) => sum + one.executed, 0);
    const time = recording.tellsTime && `, ${percent(found.reduce((sum, one) => sum + one.time, 0))} of the time`;
    status.textContent = `${plural(found.length, 'function')} with ${shareAndError(recording.share(executed), 0)[0]} of all instructions${time || ''}`;
    more.hidden = found.length <= state.rows;
  }

  fill(
    parent,
    element('div', { class: 'controls' }, search),
    status,
    element('div', { class: 'scroll list' }, element(
      'table',
      { class: recording.tellsTime ? 'functions timed' : 'functions' },
      element('caption', { class: 'hidden', text: 'Functions, by their share of all executed instructions' }),
      element('thead', {}, head),
      body,
    )),
    more,
  );
  show({});
  return {
    /** Marks the function whose code is shown. */
    choose(index) {
      state.chosen = index;
      for (const line of body.children) mark(line, line.dataset.function === String(index));
    },
  };
}

/** Those whose name or file has the text. */
export function matching(functions, text) {
  if (text === '') return functions;
  return functions.filter((one) => one.name.toLowerCase().includes(text) || one.module.toLowerCase().includes(text));
}

/** By a column; of those that are alike, the hottest first. */
export function sorted(functions, { sort, isRising }) {
  const { of } = COLUMNS.find((column) => column.id === sort);
  const order = (one, other) => {
    const [a, b] = [of(one), of(other)];
    if (a === b) return one.index - other.index;
    return (a < b) === isRising ? -1 : 1;
  };
  return [...functions].sort(order);
}

function title(column, state, sort) {
  const isSorted = state.sort === column.id;
  const isRising = isSorted ? !state.isRising : !column.isNumber;
  const direction = state.isRising ? 'ascending' : 'descending';
  return element(
    'th',
    { scope: 'col', class: column.isNumber ? `number ${column.id}` : column.id, title: column.about, 'aria-sort': isSorted ? direction : null },
    element('button', { class: 'sort', 'data-focus': column.id, text: column.title, onclick: () => sort(column.id, isRising) }),
  );
}

function row(one, { tellsTime }, largest, chosen) {
  const [share, error] = shareAndError(one.share, one.error, one.restsOnLittle);
  const made = element(
    'tr',
    { 'data-function': one.index },
    element('th', { scope: 'row' }, one.start === null
      ? element('span', { class: 'clamp dim', title: one.name }, shownName(one.name))
      : element('a', { href: `#functions/${one.index}`, title: one.name, class: one.code ? 'clamp' : 'clamp dim' }, shownName(one.name))),
    element('td', { class: 'number heat', text: share }),
    element('td', { class: 'number error', text: error }),
    tellsTime && timeCells(one),
    element('td', { class: 'number calls', text: one.calls ? brief(one.calls) : '' }),
    element('td', { class: 'file', title: one.module, text: baseName(one.module) }),
  );
  withNumber(made, '--heat', Math.sqrt(one.executed / (largest || 1)));
  mark(made, one.index === chosen);
  return made;
}

/** Shares of the time that are less certain than they are large say so. */
function timeCells(one) {
  const isSlow = one.long >= SLOW && one.time >= WORTH_MARKING;
  const [share, error] = shareAndError(one.time, one.timeError);
  return [
    element('td', { class: 'number', title: error && `± ${error}`, text: share }),
    element('td', { class: isSlow ? 'number slow' : 'number', text: times(one.long) }),
  ];
}

function mark(line, isChosen) {
  line.classList.toggle('chosen', isChosen);
  const link = line.querySelector('a');
  if (link && isChosen) link.setAttribute('aria-current', 'true');
  else link?.removeAttribute('aria-current');
}

/** Arrows go from row to row. */
function walk(event, body) {
  const steps = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!steps) return;
  const links = [...body.querySelectorAll('a')];
  const next = links[links.indexOf(document.activeElement) + steps];
  if (next) {
    event.preventDefault();
    next.focus();
  }
}
