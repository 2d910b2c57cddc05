// Where the focus is.

/**
 * Makes a part anew, and puts the focus on what is now in the place of what had it: the element of the same `data-focus`, the list that adds
 * to its zone, or that of its `data-otherwise`.
 */
export function keepingFocus(parent, make) {
  const had = parent.contains(document.activeElement) ? document.activeElement : null;
  const zone = had?.closest('[data-zone]')?.dataset.zone;
  make();
  if (!had || had.isConnected) return;
  const find = (name) => [...parent.querySelectorAll('[data-focus]')].find((one) => one.dataset.focus === name);
  (find(had.dataset.focus) ?? find(`add ${zone}`) ?? find(had.dataset.otherwise))?.focus({ preventScroll: true });
}

/** A button that shows more rows of a table's body. When it has shown all and goes, the focus is on the first new row. */
export function showsMore(body, more, show) {
  const [rows, had] = [body.rows.length, document.activeElement === more];
  show();
  if (had && more.hidden) body.rows[rows]?.querySelector('a, button')?.focus({ preventScroll: true });
}
