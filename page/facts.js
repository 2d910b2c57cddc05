// What a mix is added up from. A fact is a block and a kind of instructions in it, and how many of those were executed.

/**
 * The facts of a page's data, by column:
 *
 *   block 7: 100 executions of [add, add, jne]   ->   block 7, kind add, amount 200
 *                                                     block 7, kind jne, amount 100
 *
 * A key has `values` (texts), and of each kind (`ofKind`) or each block (`ofBlock`) the index of its value.
 */
export function makeFacts(data) {
  const [blocks, kinds, amounts] = [[], [], []];
  const times = new Map();
  data.blocks.kinds.forEach((ofBlock, block) => {
    times.clear();
    for (const kind of ofBlock) times.set(kind, (times.get(kind) ?? 0) + 1);
    for (const [kind, number] of times) {
      blocks.push(block);
      kinds.push(kind);
      amounts.push(number * data.blocks.count[block]);
    }
  });
  const keys = new Map(data.keys.map((key) => [key.name, makeKey(key, data)]));
  return { block: Uint32Array.from(blocks), kind: Uint32Array.from(kinds), amount: Float64Array.from(amounts), keys };
}

/** A key whose values are the functions themselves: several can have one name. */
export function functionsKey(data) {
  return { name: 'function', values: data.functions.name, ofBlock: Uint32Array.from(data.blocks.function) };
}

function makeKey(key, data) {
  const made = { name: key.name, about: key.about, isTaxonomy: key.is_taxonomy, isNumeric: key.is_numeric };
  if (key.of_kinds) {
    return {
      ...made,
      values: key.values,
      ofKind: Uint32Array.from(key.of_kinds),
      counts: key.counts,
      errors: key.share_errors,
      little: new Set(key.rest_on_little ?? []),
    };
  }
  const ofBlock = {
    function: (block) => data.functions.name[data.blocks.function[block]],
    module: (block) => data.modules[data.functions.module[data.blocks.function[block]]],
    'block-length': (block) => (isRead(data, block) ? String(data.blocks.kinds[block].length) : '[unreadable]'),
    chosen: (block) => data.blocks.chosen[block],
  }[key.name];
  return { ...made, ...interned(data.blocks.count.length, ofBlock ?? (() => '')) };
}

function isRead(data, block) {
  return data.functions.start[data.blocks.function[block]] !== null;
}

/** Texts by index, and of each block the index of its text. */
function interned(number, textOf) {
  const [ids, values, ofBlock] = [new Map(), [], new Uint32Array(number)];
  for (let block = 0; block < number; block += 1) {
    const text = textOf(block);
    let id = ids.get(text);
    if (id === undefined) {
      id = values.length;
      ids.set(text, id);
      values.push(text);
    }
    ofBlock[block] = id;
  }
  return { values, ofBlock };
}
