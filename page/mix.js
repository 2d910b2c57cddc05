// The mix: a bar chart of one key, and a pivot of any.

import { brief, percent } from './number.js';
import { commandOf, plural } from './text.js';
import { element, fill, select, sentence, shownName } from './element.js';
import { filtersOf, pivot } from './pivot.js';
import { bySide } from './recording.js';
import { keepingFocus } from './focus.js';
import { chartOfBoth, pivotOfBoth } from './compared.js';
import { ROWS, SHOWN, SHOWN_OF_BOTH, SHOWN_OF_TIME, tableOfBoth, tableOfPivot } from './table.js';
import { chart } from './chart.js';

/** Functions of a cell that are shown. */
const FUNCTIONS = 30;

/** What people ask for. Filters are [key, values, keeps]. */
export const PRESETS = [
  { id: 'mnemonics', text: 'Mnemonics', rows: ['mnemonic'], columns: [], filters: [] },
  { id: 'vectorization', text: 'Vectorization', chart: 'vectorization', rows: ['function'], columns: ['vectorization'], filters: [['vectorization', ['none', '[unreadable]'], false]] },
  { id: 'instruction-sets', text: 'Instruction sets', chart: 'isa-packing', rows: ['isa'], columns: ['packing'], filters: [] },
  { id: 'memory', text: 'Memory', chart: 'memory-traffic', rows: ['function'], columns: ['memory-traffic'], filters: [] },
  { id: 'control-flow', text: 'Control flow', chart: 'control-flow', rows: ['function'], columns: ['control-flow'], filters: [] },
  { id: 'long-latency', text: 'Long latency', chart: 'long-latency', rows: ['function'], columns: ['long-latency'], filters: [['long-latency', ['short', '[unreadable]'], false]] },
  { id: 'flops', text: 'Flops', chart: 'flops', rows: ['function'], columns: ['flops'], filters: [['flops', ['0', '[unreadable]'], false]] },
  { id: 'functions', text: 'Functions', rows: ['function', 'module'], columns: [], filters: [] },
];


/** Bars of two recordings. */
const BARS = 24;

/** Fills the section; returns what chooses a preset. `showCode` is called with a function and the filters that its instructions pass. */
export function showMix(section, recording, showCode) {
  const { facts } = recording;
  const keys = [...facts.keys.values()];
  const state = { chart: 'category', rows: [], columns: [], filters: [], shown: recording.before ? 'change' : 'share', most: ROWS, open: null };
  const parts = Object.fromEntries(['presets', 'chart', 'zones', 'status', 'table', 'cell'].map((name) => [name, element('div', { class: name })]));
  let drawn = null;
  const command = element('code', { class: 'command' });
  fill(
    section,
    section.querySelector('h2'),
    parts.presets,
    parts.chart,
    element('h3', { text: 'Pivot' }),
    parts.zones,
    parts.status,
    parts.table,
    parts.cell,
    bySide(recording, ({ without_keys: texts }) => texts ?? []).map((text) => element('p', { class: 'dim without-key' }, sentence(`${text}.`))),
    element('p', { class: 'dim' }, recording.data.changes?.is_exact ? 'The same: ' : 'The same, with its ±: ', command, recording.before && ' (without columns)'),
  );

  function change(part) {
    Object.assign(state, { most: ROWS, open: null }, part);
    show();
  }

  /** Keys are in rows or in columns, once. */
  function place(name, zone, at = Infinity) {
    const without = (names) => names.filter((other) => other !== name);
    const [rows, columns] = [without(state.rows), without(state.columns)];
    if (zone) ({ rows, columns })[zone].splice(at, 0, name);
    change({ rows, columns });
  }

  function preset({ chart: ofChart, rows, columns, filters }) {
    const made = filters.filter(([name]) => facts.keys.has(name)).map(([name, texts, keeps]) => {
      const key = facts.keys.get(name);
      return { key, values: new Set(texts.map((text) => key.values.indexOf(text)).filter((value) => value >= 0)), keeps };
    });
    const there = (names) => names.filter((name) => facts.keys.has(name));
    change({ chart: ofChart ?? state.chart, rows: there(rows), columns: there(columns), filters: made });
  }

  function show() {
    keepingFocus(section, showAll);
  }

  function showAll() {
    const query = {
      rows: state.rows.map((name) => facts.keys.get(name)),
      columns: state.columns.map((name) => facts.keys.get(name)),
      filters: state.filters,
      isTimed: SHOWN_OF_TIME.some(([id]) => id === state.shown),
    };
    const result = recording.before ? pivotOfBoth(recording, query) : pivot(facts, query);
    showPresets(parts.presets, state, preset);
    if (drawn !== state.chart) showChart(parts.chart, recording, state, change);
    drawn = state.chart;
    showZones(parts.zones, recording, state, { place, change, keys });
    parts.status.textContent = `${plural(result.rows.length, 'row')}; ${recording.before ? partsOfBoth(recording, result) : partOfAll(recording, result)}`;
    const make = recording.before ? tableOfBoth : tableOfPivot;
    fill(parts.table, result.rows.length === 0
      ? element('p', { class: 'empty', text: 'No executed instruction passes the filters.' })
      : make(recording, query, result, state, { change, open }));
    showCell(parts.cell, recording, query, state, showCode);
    fill(command, commandLine(recording, state));
  }

  function open(row, column) {
    state.open = { row, column };
    show();
    parts.cell.scrollIntoView({ block: 'nearest' });
    parts.cell.querySelector('a, button')?.focus({ preventScroll: true });
  }

  preset(PRESETS[0]);
  return {
    /** Shows the preset of that id, if there is one. */
    choose(id) {
      const chosen = PRESETS.find((one) => one.id === id);
      if (chosen) preset(chosen);
    },
  };
}

/** The command that prints the same pivot; of two recordings, its rows. */
export function commandLine(recording, { rows, columns, filters, shown }) {
  const words = [];
  const { data, before } = recording;
  // A comparison has no columns.
  const keys = before && rows.length === 0 ? columns : rows;
  if (keys.length > 0) words.push('--rows', keys.join(','));
  if (columns.length > 0 && !before) words.push('--columns', columns.join(','));
  if (!before && SHOWN_OF_TIME.some(([id]) => id === shown)) words.push('--values', shown);
  for (const { key, values, keeps } of filters.filter((one) => one.keeps || one.values.size > 0)) {
    words.push('--filter', `${key.name}${keeps ? '=' : '!='}${[...values].flatMap((value) => ownValues(recording, key.name, key.values[value])).join(',')}`);
  }
  if (before) return commandOf('diff', [before.data.title, data.title], ...words);
  return commandOf('mix', data.title, ...words);
}

/** What the recordings call a value: two that are compared can have other names for it than the page. */
function ownValues({ data, before }, key, text) {
  const sides = before ? [before.data, data].filter(({ names }) => names) : [];
  const own = sides.flatMap(({ names, modules, functions }) => ({
    module: () => modules.filter((_, index) => names.modules[index] === text),
    function: () => [...functions.name.filter((name) => name === text), ...names.functions.filter(([, name]) => name === text).map(([index]) => functions.name[index])],
  }[key]?.() ?? []));
  return own.length > 0 ? [...new Set(own)] : [text];
}

function partOfAll(recording, { total }) {
  return `${brief(total)} instructions, ${percent(recording.share(total))} of all`;
}

function partsOfBoth(recording, { totals }) {
  return `${percent(recording.before.share(totals[0]))} of all before, ${percent(recording.share(totals[1]))} after`;
}

function showPresets(parent, state, choose) {
  const isShown = ({ rows, columns }) => String(rows) === String(state.rows) && String(columns) === String(state.columns);
  fill(parent, PRESETS.map((preset) => element('button', {
    class: 'preset',
    'data-preset': preset.id,
    'data-focus': `preset ${preset.id}`,
    'aria-pressed': isShown(preset) ? 'true' : 'false',
    text: preset.text,
    onclick: () => choose(preset),
  })));
}

function showChart(parent, recording, state, change) {
  const keys = [...recording.facts.keys.values()].filter((key) => key.counts);
  const options = (isTaxonomy) => keys.filter((key) => key.isTaxonomy === isTaxonomy).map((key) => [key.name, key.name]);
  const key = recording.facts.keys.get(state.chart) ?? keys[0];
  if (!key) return;
  const choice = select(
    { id: 'chart-key', 'data-focus': 'chart', onchange: () => change({ chart: choice.value }) },
    [...options(true), ...options(false)],
    key.name,
  );
  // A bar leads to the functions that have it.
  const choose = (value) => change({ rows: ['function'], columns: [], filters: [{ key, values: new Set([value]), keeps: true }] });
  fill(
    parent,
    element('div', { class: 'controls' }, element('label', { for: 'chart-key', text: 'Chart of' }), choice),
    recording.before ? chartOfBoth(recording, key, BARS, choose) : chart(recording, key, choose),
  );
}

/** Rows, columns and filters: what they are, and what can be added. Names of keys can be dragged from one to the other. */
function showZones(parent, recording, state, { place, change, keys }) {
  const unused = keys.filter((key) => !state.rows.includes(key.name) && !state.columns.includes(key.name));
  const zone = (name, title) => {
    const add = select({
      'aria-label': `Add to ${title.toLowerCase()}`,
      'data-add': name,
      'data-focus': `add ${name}`,
      onchange: () => place(add.value, name),
    }, [['', 'add…'], ...unused.map((key) => [key.name, key.name])]);
    return element(
      'div',
      {
        class: 'zone',
        'data-zone': name,
        ondragover: (event) => event.preventDefault(),
        ondrop: (event) => {
          event.preventDefault();
          const dragged = event.dataTransfer.getData('text/plain');
          const before = event.target.closest?.('[data-key]')?.dataset.key;
          const at = state[name].filter((other) => other !== dragged).indexOf(before);
          if (recording.facts.keys.has(dragged)) place(dragged, name, at < 0 ? Infinity : at);
        },
      },
      element('span', { class: 'zone-title', text: title }),
      state[name].map((key) => chip(key, name, place)),
      add,
    );
  };
  const addFilter = select({
    'aria-label': 'Add a filter',
    'data-add': 'filters',
    'data-focus': 'add filters',
    // It leaves out nothing yet.
    onchange: () => change({ filters: [...state.filters, { key: recording.facts.keys.get(addFilter.value), values: new Set(), keeps: false, isOpen: true }] }),
  }, [['', 'add…'], ...keys.map((key) => [key.name, key.name])]);
  const shown = select({ id: 'shown', 'data-focus': 'shown', onchange: () => change({ shown: shown.value }) }, recording.before ? SHOWN_OF_BOTH : [...SHOWN, ...(recording.facts.time ? SHOWN_OF_TIME : [])], state.shown);
  fill(
    parent,
    zone('rows', 'Rows'),
    zone('columns', 'Columns'),
    element(
      'div',
      { class: 'zone', 'data-zone': 'filters' },
      element('span', { class: 'zone-title', text: 'Filters' }),
      state.filters.map((one, at) => filterChip(one, (next) => change({ filters: replaced(state.filters, at, next) }))),
      addFilter,
    ),
    element(
      'div',
      { class: 'zone actions' },
      element('button', { text: 'Swap rows and columns', 'data-swap': true, 'data-focus': 'swap', onclick: () => change({ rows: state.columns, columns: state.rows }) }),
      element('label', { for: 'shown', text: 'Cells:' }),
      shown,
    ),
  );
}

/** A list with another filter at that place, or without that one. */
function replaced(filters, at, next) {
  return filters.flatMap((one, index) => (index === at ? next ?? [] : one));
}

function chip(name, zone, place) {
  const other = zone === 'rows' ? 'columns' : 'rows';
  return element(
    'span',
    {
      class: 'chip',
      draggable: 'true',
      'data-key': name,
      ondragstart: (event) => event.dataTransfer.setData('text/plain', name),
    },
    name,
    element('button', { 'data-focus': `move ${name}`, 'aria-label': `Move ${name} to ${other}`, title: `to ${other}`, text: zone === 'rows' ? '→' : '←', onclick: () => place(name, other) }),
    element('button', { 'aria-label': `Remove ${name}`, title: 'remove', text: '×', onclick: () => place(name, null) }),
  );
}

/** A filter, and when it is open, its values to choose from. */
function filterChip(one, replace) {
  const names = [...one.values].map((value) => one.key.values[value]);
  const some = `${names.slice(0, 3).join(', ')}${names.length > 3 ? `, ${names.length - 3} more` : ''}`;
  const text = `${one.key.name}${names.length > 0 ? ` ${one.keeps ? '=' : '≠'} ${some}` : one.keeps ? ': none' : ': all'}`;
  return element(
    'span',
    { class: 'chip filter', 'data-filter': one.key.name },
    element(
      'details',
      { open: one.isOpen === true, ontoggle: (event) => { one.isOpen = event.target.open; } },
      element('summary', { 'data-focus': `filter ${one.key.name}`, text }),
      element('div', { class: 'values' }, valuesOf(one, replace)),
    ),
    element('button', { 'aria-label': `Remove the filter on ${one.key.name}`, title: 'remove', text: '×', onclick: () => replace(null) }),
  );
}

function valuesOf(one, replace) {
  const order = [...one.key.values.keys()].sort((a, b) => (one.key.counts ? one.key.counts[b] - one.key.counts[a] : 0)
    || (one.key.values[a] < one.key.values[b] ? -1 : 1));
  const isKept = (value) => one.values.has(value) === one.keeps;
  const list = element('div', { class: 'value-list' });
  const search = element('input', { type: 'search', 'aria-label': `Search values of ${one.key.name}`, placeholder: 'search', 'data-focus': `search ${one.key.name}` });
  search.value = one.search ?? '';
  // The shorter way to say it: what is kept, or what is left out.
  const replaceBy = (kept) => {
    const left = new Set(order.filter((value) => !kept.has(value)));
    const keeps = kept.size <= left.size;
    replace({ key: one.key, values: keeps ? kept : left, keeps, isOpen: true, search: search.value, scroll: list.scrollTop });
  };
  const show = () => {
    const text = search.value.toLowerCase();
    const found = order.filter((value) => one.key.values[value].toLowerCase().includes(text)).slice(0, 100);
    fill(list, found.map((value) => {
      const box = element('input', {
        type: 'checkbox',
        'data-focus': `value ${one.key.name} ${value}`,
        checked: isKept(value),
        onchange: () => {
          const values = new Set(order.filter((other) => (other === value ? box.checked : isKept(other))));
          replaceBy(values);
        },
      });
      return element('label', {}, box, one.key.values[value]);
    }));
  };
  search.addEventListener('input', show);
  show();
  // When it is in the page.
  requestAnimationFrame(() => { list.scrollTop = one.scroll ?? 0; });
  return [
    search,
    element('button', { text: 'all', 'data-focus': `all ${one.key.name}`, onclick: () => replaceBy(new Set(order)) }),
    element('button', { text: 'none', 'data-focus': `none ${one.key.name}`, onclick: () => replaceBy(new Set()) }),
    list,
  ];
}

/** The functions of a cell, hottest first. */
function showCell(parent, recording, query, state, showCode) {
  fill(parent);
  if (!state.open) return;
  const { row, column } = state.open;
  const filters = [...query.filters, ...filtersOf(query.rows, row), ...(column ? filtersOf(query.columns, column) : [])];
  const result = pivot(recording.facts, { rows: [recording.functionsKey], columns: [], filters });
  const names = [...filtersOf(query.rows, row), ...(column ? filtersOf(query.columns, column) : [])]
    .map(({ key, values }) => `${key.name} ${[...values].map((value) => key.values[value])}`);
  const line = (of) => {
    const one = recording.functions[of.values[0]];
    const share = percent(recording.share(of.total));
    const name = one.code
      ? element('a', { href: `#functions/${one.index}`, class: 'clamp', title: one.name, onclick: () => showCode(one, filters) }, shownName(one.name))
      : element('span', { class: 'dim', title: one.name }, shownName(one.name));
    return element('tr', {}, element('th', { scope: 'row', class: 'name' }, name), element('td', { class: 'number', text: share }), element('td', {
      class: 'number',
      text: percent(of.total / result.total),
    }), element('td', { class: 'number wide', text: brief(of.total) }));
  };
  fill(
    parent,
    element('h4', { text: `Functions of the cell${recording.before ? ', after' : ''}${names.length > 0 ? `: ${names.join(', ')}` : ''}` }),
    element('p', { class: 'dim', text: 'A click shows the code, with these instructions marked.' }),
    element('div', { class: 'scroll' }, element(
      'table',
      {},
      element('thead', {}, element('tr', {}, ['function', 'share of all', 'of the cell', 'count'].map((text, at) => element('th', {
        scope: 'col',
        text,
        class: [null, 'number', 'number', 'number wide'][at],
      })))),
      element('tbody', {}, result.rows.slice(0, FUNCTIONS).map(line)),
    )),
    result.rows.length > FUNCTIONS && element('p', { class: 'dim', text: `${result.rows.length - FUNCTIONS} more` }),
  );
}
