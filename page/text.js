// Text from recordings: it can hold anything.

// Control characters, and those that hide text or change its direction: what is shown must be what is there.
// Variation selectors and joiners are among them.
// eslint-disable-next-line no-control-regex, no-misleading-character-class
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/** The text with what cannot be seen written out: \u{202e}. */
export function shown(text) {
  return String(text).replace(UNSEEN, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);
}

/** A sentence in parts: text and code in turns. A backtick without another one is text. */
export function codeOf(sentence) {
  return sentence.split(/`([^`]+)`/);
}

/** The last part of a path. */
export function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

/** A word of a command line, quoted where a shell needs that. */
export function quoted(word) {
  return /^[\w./,=:+@%-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A command line for a shell, of a file or a list of them. A file whose name could be an option is one of the folder. */
export function commandOf(name, files, ...words) {
  const named = [files].flat().map((file) => (file.startsWith('-') ? `./${file}` : file));
  return ['hbbp', name, ...named, ...words].map(quoted).join(' ');
}

/** 1 loop, 2 loops. */
export function plural(number, what) {
  return `${number.toLocaleString('en-US')} ${what}${number === 1 ? '' : 's'}`;
}
