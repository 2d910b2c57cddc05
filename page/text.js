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

/** So many characters of a name are shown in a table. */
const MOST_OF_NAME = 64;

/**
 * The name of a function for a table: where it is long, the longest of its arguments become `<..>` and `(..)`, as many as must. What is before
 * and after them, which tells functions apart, stays.
 */
export function shortName(name, most = MOST_OF_NAME) {
  let length = name.length;
  if (length <= most) return name;
  const hidden = [];
  for (const [start, end] of argumentsOf(name).sort((one, other) => other[1] - other[0] - (one[1] - one[0]))) {
    if (length <= most) break;
    hidden.push([start, end]);
    length -= end - start - 2;
  }
  hidden.sort(([one], [other]) => one - other);
  let [made, at] = ['', 0];
  for (const [start, end] of hidden) {
    made += `${name.slice(at, start)}..`;
    at = end;
  }
  return made + name.slice(at);
}

/** What is between the outer brackets of a name, from and to; nothing if they do not match. A name that begins with one, as in Rust, has its first inside. */
function argumentsOf(name) {
  const [found, open] = [[], []];
  for (let at = name.startsWith('<') ? 1 : 0; at < name.length; at += 1) {
    const char = name[at];
    // Operators, and the arrow before what a function returns.
    if ((char === '<' || char === '>') && (/operator[<>-]?$/.test(name.slice(Math.max(0, at - 9), at)) || name[at - 1] === '-')) continue;
    if (char === '<' || char === '(') {
      open.push([char, at + 1]);
    } else if (char === '>' || char === ')') {
      // The first of a name that begins with one.
      if (open.length === 0 && char === '>' && name.startsWith('<')) continue;
      const [before, start] = open.pop() ?? [];
      if (before !== (char === '>' ? '<' : '(')) return [];
      if (open.length === 0 && at - start > 2 && name.slice(start, at) !== 'anonymous namespace') found.push([start, at]);
    }
  }
  return open.length === 0 ? found : [];
}

/** A name in parts, after each of which a line may end. */
export function partsOfName(name) {
  return name.split(/(?<=::|[<(,@](?!\.\.)|[^_]_(?!_))/u);
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
