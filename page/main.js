// The page: its parts, and what the address bar and keys do.

import { hexadecimal } from './number.js';
import { shown } from './text.js';
import { byId, element, fill } from './element.js';
import { functionAt, makeRecording } from './recording.js';
import { unpacked } from './unpack.js';
import { showSummary } from './summary.js';
import { showMix } from './mix.js';
import { showFunctions } from './functions.js';
import { goTo, nextHottest, showCode } from './code.js';
import { showLoops } from './loops.js';
import { showChanges } from './changes.js';
import { showFlame } from './flame.js';

const KEYS = 'parts; /: search functions; ↑ ↓: from function to function; n: next hot block; arrows in the flame graph: from frame to frame; Tab and Enter: all else';

const [list, code] = [element('div', { class: 'function-list' }), element('div', { class: 'function-code', tabindex: '-1' })];
const state = { of: null, address: null, marked: null, preset: null };
let parts = ['summary', 'changes', 'mix', 'functions', 'loops', 'flame'];
let [recording, mix, functions, flame] = [];

unpacked(byId('data').textContent).then(begin).catch((error) => {
  partOf('summary').append(element('p', { text: `The data cannot be shown: ${error}. Browsers of 2023 and later can unpack it.` }));
});

function begin(data) {
  recording = makeRecording(data);
  byId('title').textContent = shown(recording.before ? `${recording.before.data.title} → ${data.title}` : data.title);
  if (data.changes) showChanges(partOf('changes'), recording);
  else without('changes');
  showSummary(partOf('summary'), recording);
  mix = showMix(partOf('mix'), recording, (of, filters) => { state.marked = { of, filters }; state.of = null; });
  partOf('functions').append(element('div', { class: 'split' }, list, code));
  functions = showFunctions(list, recording);
  showLoops(partOf('loops'), recording);
  flame = showFlame(partOf('flame'), recording);
  fill(byId('footer'), element('p', { text: `Keys: 1 to ${parts.length}: ${KEYS}.` }), element('p', { text: `Written by ${data.made_by}. Nothing is loaded from elsewhere.` }));
  byId('footer').classList.add('dim');
  window.addEventListener('hashchange', follow);
  window.addEventListener('keydown', press);
  // What is printed has a function, too.
  window.addEventListener('beforeprint', () => {
    if (!state.of) showFunction(hottest());
    flame.show();
  });
  follow();
  document.documentElement.dataset.ready = 'true';
  performance.mark('ready');
}

/** Takes away a part that this page does not have. */
function without(name) {
  parts = parts.filter((part) => part !== name);
  partOf(name).remove();
  linkTo(name).remove();
}

function linkTo(name) {
  return document.querySelector(`nav a[href="#${name}"]`);
}

/** The section of a part. It is not called as in the address, to which browsers would scroll. */
function partOf(name) {
  return byId(`part-${name}`);
}

/** Shows what the address says: #functions/12/40100a; #before/12 is a function of the recording before. */
function follow() {
  const [part, name, address] = location.hash.slice(1).split('/');
  const shownOf = part === 'before' && recording.before ? recording.before : recording;
  const asked = shownOf === recording ? part : 'functions';
  const current = parts.includes(asked) ? asked : parts[0];
  for (const other of parts) {
    partOf(other).hidden = other !== current;
    const link = linkTo(other);
    if (other === current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  // The way back to a preset leaves what was made of it.
  if (current === 'mix' && name && name !== state.preset) mix.choose(name);
  if (current === 'mix') state.preset = name ?? null;
  if (current === 'flame') flame.show();
  if (current === 'functions') {
    const of = functionAt(shownOf, name ?? '') ?? state.of ?? hottest();
    if (of) showFunction(of, address, name !== undefined);
  } else {
    window.scrollTo(0, 0);
  }
}

function hottest() {
  return recording.functions.find((of) => of.code) ?? recording.functions[0];
}

function showFunction(of, address, isChosen) {
  if (state.of !== of) {
    // What was opened elsewhere has its marks there.
    showCode(code, of.isBefore ? recording.before : recording, of, state.marked?.of === of ? state.marked.filters : []);
    state.marked = null;
    state.of = of;
    functions.choose(of.isBefore ? null : of.index);
    code.scrollTop = 0;
    // On a narrow page the code is below the list.
    if (isChosen && !address) code.scrollIntoView({ block: 'nearest' });
  }
  state.address = address ?? null;
  if (address) goTo(code, of, address);
}

function press(event) {
  const isTyping = ['INPUT', 'SELECT', 'TEXTAREA'].includes(event.target.tagName);
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const part = parts[Number(event.key) - 1];
  if (part) {
    location.hash = `#${part}`;
  } else if (event.key === '/') {
    event.preventDefault();
    if (!partOf('flame').hidden) {
      flame.search();
      return;
    }
    location.hash = '#functions';
    follow();
    byId('search').focus();
  } else if (event.key === 'n' && state.of?.code && !partOf('functions').hidden) {
    const next = nextHottest(state.of, state.address ?? hexadecimal(-1));
    if (next) location.hash = `${state.of.href}/${next}`;
  }
}
