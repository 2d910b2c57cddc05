// Elements of the page. Text gets into it as text only, never as markup.

import { codeOf, partsOfName, shortName, shown } from './text.js';

/**
 * An element. Properties that are functions are listeners (`onclick`), `text` is its text, all others are attributes. Children are elements,
 * texts, or nothing.
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'text') made.textContent = shown(value);
    else if (typeof value === 'function') made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : attribute(name, value));
  }
  append(made, children);
  return made;
}

/** What is between backticks in a sentence is code: texts and elements. */
export function sentence(text) {
  const parts = codeOf(text);
  return parts.map((part, at) => (at % 2 === 1 ? element('code', { text: part }) : part));
}

/** The name of a function in a table, with places where a line may end. What is left out is there for paper, and to be found. */
export function shownName(name) {
  const broken = (text) => partsOfName(text).map((part, at) => (at > 0 ? [element('wbr'), part] : part));
  return shortName(name).map(([text, isLeftOut]) => (isLeftOut ? element('span', { class: 'left-out' }, element('span', {}, broken(text))) : broken(text)));
}

/** An element of a drawing, as `element`. */
export function drawn(tag, properties = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'text') made.textContent = shown(value);
    else made.setAttribute(name, attribute(name, value));
  }
  append(made, children);
  return made;
}

/** Puts new children in place of the old ones. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
  return parent;
}

/** A variable of the style of an element, which shows a number: how hot, how wide. */
export function withNumber(made, name, value) {
  made.style.setProperty(name, String(value));
  return made;
}

/** The element of an id that the page has from the beginning. */
export function byId(id) {
  return document.getElementById(id);
}

/** A choice of one of several [value, text]. */
export function select(properties, options, chosen) {
  const made = element('select', properties, options.map(([value, text]) => element('option', { value, text })));
  if (chosen !== undefined) made.value = chosen;
  return made;
}

/** What people get to see of it is text, too. */
function attribute(name, value) {
  return name === 'title' || name === 'aria-label' ? shown(value) : value;
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(typeof child === 'object' ? child : document.createTextNode(shown(child)));
  }
}
