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

/** So many characters of a name are shown in a table; and of what is left out of it, the beginning, if it is no longer. */
const [MOST_OF_NAME, MOST_OF_BEGIN] = [64, 24];

/**
 * The name of a function for a table, in parts: [text, whether it is left out]. Of a long one, as many of its arguments as must, the longest
 * first, but for how they begin: `std::map<int..>::find(..)`.
 */
export function shortName(name, most = MOST_OF_NAME) {
  let length = name.length;
  if (length <= most) return [[name, false]];
  const leftOut = [];
  for (const [start, end] of argumentsOf(name).sort((one, other) => other[1] - other[0] - (one[1] - one[0]))) {
    if (length <= most) break;
    leftOut.push([start, end]);
    length -= end - start - 2;
  }
  leftOut.sort(([one], [other]) => one - other);
  const parts = [];
  let at = 0;
  for (const [start, end] of leftOut) {
    parts.push([name.slice(at, start), false], [name.slice(start, end), true]);
    at = end;
  }
  return [...parts, [name.slice(at), false]];
}

/** An operator, whose signs are no brackets. An empty pair of brackets may follow one that is a pair. */
const OPERATOR = /operator\s*(?:<=>|->\*|->|<<=?|>>=?|<=|>=|<(?=[ (<])|>|\(\))?/y;
/** What is between brackets and tells functions apart: receivers in Go, types in Rust, and names of C++. */
const TELLING = /\*|impl |anonymous namespace\)/y;

/** What may be left out of a name, from and to: what is between its brackets, after how it begins. Nothing if they do not match. */
function argumentsOf(name) {
  const [found, open] = [[], []];
  let hides = 0;
  for (let at = 0; at < name.length; at += 1) {
    const char = name[at];
    if (char === 'o' && !/\w/.test(name[at - 1] ?? ' ')) {
      OPERATOR.lastIndex = at;
      at += Math.max((OPERATOR.exec(name)?.[0].length ?? 1) - 1, 0);
    } else if (char === '<' || char === '(') {
      TELLING.lastIndex = at + 1;
      // Of a name that begins with one, as in Rust, that is most of it.
      const keeps = at === 0 || TELLING.test(name);
      hides += keeps ? 0 : 1;
      open.push([char, at + 1, keeps]);
    } else if ((char === '>' && name[at - 1] !== '-') || char === ')') {
      const [before, start, keeps] = open.pop() ?? [];
      if (before !== (char === '>' ? '<' : '(')) return [];
      hides -= keeps ? 0 : 1;
      if (keeps || hides > 0) continue;
      const begin = name.slice(start, Math.min(at, start + MOST_OF_BEGIN + 1)).search(/[<(,]/);
      const from = begin > 0 ? start + begin : start;
      if (at - from > 4) found.push([from, at]);
    }
  }
  return open.length === 0 ? found : [];
}

/** A name in parts, after each of which a line may end. */
export function partsOfName(name) {
  return name.split(/(?<=::|[<(,@]|[^_]_(?!_))/u);
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
