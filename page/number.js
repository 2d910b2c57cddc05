// Numbers for people. They have no digits that mean nothing: as the tables of the command line.

/** A count, rounded, with commas between thousands: 12,345,678. Small fractions keep a digit: 0.3. */
export function count(value) {
  if (value === null || value === undefined) return '';
  if (value > 0 && value < 10 && !Number.isInteger(value)) return value.toFixed(1);
  return Math.round(value).toLocaleString('en-US');
}

/** A count in few characters: 4.34 G, 12.3 k. */
export function brief(value) {
  const units = [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']];
  const unit = units.find(([factor]) => value >= 0.9995 * factor);
  return unit ? `${Number((value / unit[0]).toPrecision(3))}${unit[1]}` : count(value);
}

/** A share of a whole, 0 to 1, in per cent: 12.34 %. */
export function percent(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(2)} %` : '-';
}

/**
 * A share and its uncertainty, 0 to 1: ['37 %', '12'], ['4.2 %', '0.7']. What is less certain than it is large is '< 5 %', without more.
 * Marked with '?' is what rests on little, or of which nothing is known.
 */
export function shareAndError(share, error, restsOnLittle = false) {
  if (!Number.isFinite(share)) return ['-', ''];
  const mark = restsOnLittle ? ' ?' : '';
  // Of what nobody asked for, nothing is said.
  if (error === undefined) return [percent(share), ''];
  if (error === null) return [percent(share), '?'];
  const [value, width] = [100 * share, 100 * error];
  if (width > value) {
    // Of less, there would be no digits.
    const most = Math.min(Math.max(value + width, 0.01), 100);
    return [`< ${most.toFixed(decimals(most))} %`, mark.trim()];
  }
  return [`${value.toFixed(decimals(width))} %`, width.toFixed(decimals(width)) + mark];
}

/** How many times as long something takes as something else: 0.42x, 1.3x, 12x. */
export function times(long) {
  if (long === null) return '';
  if (long < 10) return `${long.toFixed(long < 1 ? 2 : 1)}x`;
  return `${count(Number(long.toPrecision(2)))}x`;
}

/** The value, rounded to the second digit of its uncertainty. */
export function rounded(value, error) {
  if (error === null || error === undefined || error < 100) return value;
  const unit = 10 ** (Math.floor(Math.log10(Math.min(error, Math.max(value, 100)))) - 1);
  return Math.round(value / unit) * unit;
}

/** An address of the data: a number, or where a number would not be exact, its decimal digits, which become a BigInt. */
export function addressOf(stated) {
  return typeof stated === 'string' ? BigInt(stated) : stated;
}

/** The address so many bytes after one. */
export function addressAfter(address, bytes) {
  return typeof address === 'bigint' ? address + BigInt(bytes) : address + bytes;
}

/** An address, as disassemblers print it. */
export function hexadecimal(address) {
  return address.toString(16);
}

/** Digits after the point of per cents that are uncertain by so much: two of its digits mean something. */
function decimals(width) {
  if (width >= 9.95) return 0;
  return width >= 0.995 ? 1 : 2;
}
