// Where the focus is.

/**
 * Makes a part anew, and puts the focus on what is now in the place of what had it: the element of the same `data-focus`, or the list that adds
 * to its zone.
 */
export function keepingFocus(parent, make) {
  const had = parent.contains(document.activeElement) ? document.activeElement : null;
  const zone = had?.closest('[data-zone]')?.dataset.zone;
  make();
  if (!had || had.isConnected) return;
  const find = (name) => [...parent.querySelectorAll('[data-focus]')].find((one) => one.dataset.focus === name);
  (find(had.dataset.focus) ?? find(`add ${zone}`))?.focus({ preventScroll: true });
}
