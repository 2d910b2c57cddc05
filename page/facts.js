// What a mix is added up from. A fact is a block and a kind of instructions in it, and how many of those were executed.

/** More places than a page has. */
const PLACES = 1 << 20;

/**
 * The facts of a page's data, by column:
 *
 *   block 7: 100 executions of [add, add, jne]   ->   block 7, kind add, amount 200
 *                                                     block 7, kind jne, amount 100
 *
 * Where lines of the source are keys, instructions of one kind in two places are two facts; where tasks are, each has its part.
 * `time` has the share of the time of each, where the recording tells it. A key has `values` (texts), and of each kind (`ofKind`), block (`ofBlock`), place (`ofPlace`) or task (`ofTask`) the index of its value.
 */
export function makeFacts(data) {
  const [blocks, kinds, places, tasks, amounts, times] = [[], [], [], [], [], []];
  const { time, task_times: taskTimes } = data.blocks;
  const numbers = new Map();
  const all = [[0, 1]];
  data.blocks.kinds.forEach((ofBlock, block) => {
    const placeAt = placesOf(data, block);
    numbers.clear();
    ofBlock.forEach((kind, at) => {
      const id = kind * PLACES + placeAt(at);
      numbers.set(id, (numbers.get(id) ?? 0) + 1);
    });
    for (const [id, number] of numbers) {
      const ofTasks = data.blocks.tasks?.[block] ?? all;
      for (let at = 0; at < ofTasks.length; at += 1) {
        const [task, part] = ofTasks[at];
        blocks.push(block);
        kinds.push(Math.floor(id / PLACES));
        places.push(id % PLACES);
        tasks.push(task);
        amounts.push(number * data.blocks.count[block] * part);
        // Samples of a block are shared out evenly among its instructions.
        if (time) times.push((number / ofBlock.length) * time[block] * (taskTimes ? taskTimes[block][at] ?? 0 : part));
      }
    }
  });
  const keys = new Map(data.keys.map((key) => [key.name, makeKey(key, data)]));
  const column = (list) => Uint32Array.from(list);
  return { block: column(blocks), kind: column(kinds), place: column(places), task: column(tasks), amount: Float64Array.from(amounts), time: time ? Float64Array.from(times) : null, keys };
}

/** A function from the index of an instruction in a block to its place; instructions must come in order. */
export function placesOf(data, block) {
  const begun = data.blocks.places?.[block] ?? [];
  let next = 0;
  let place = 0;
  return (at) => {
    while (next < begun.length && begun[next][0] <= at) {
      [, place] = begun[next];
      next += 1;
    }
    return place;
  };
}

/** What tells the values of a key: its list, and the column of facts that this is of. */
export function columnOf(key) {
  return [['ofKind', 'kind'], ['ofBlock', 'block'], ['ofPlace', 'place'], ['ofTask', 'task']].find(([list]) => key[list]);
}

/** A key whose values are the functions themselves: several can have one name. */
export function functionsKey(data) {
  return { name: 'function', values: data.functions.name, ofBlock: Uint32Array.from(data.blocks.function) };
}

function makeKey(key, data) {
  const made = { name: key.name, about: key.about, isTaxonomy: key.is_taxonomy, isNumeric: key.is_numeric };
  const listed = [['ofKind', key.of_kinds], ['ofBlock', key.of_blocks], ['ofPlace', key.of_places], ['ofTask', key.of_tasks]].find(([, list]) => list);
  if (listed) {
    return {
      ...made,
      values: key.values,
      [listed[0]]: Uint32Array.from(listed[1]),
      counts: key.counts,
      errors: key.share_errors,
      little: new Set(key.rest_on_little ?? []),
    };
  }
  // Beside another recording both have the same names for the same.
  const joined = new Map(data.names?.functions ?? []);
  const modules = data.names?.modules ?? data.modules;
  const ofBlock = {
    function: (block) => joined.get(data.blocks.function[block]) ?? data.functions.name[data.blocks.function[block]],
    module: (block) => modules[data.functions.module[data.blocks.function[block]]],
    'block-length': (block) => (isRead(data, block) ? String(data.blocks.kinds[block].length) : '[unreadable]'),
    chosen: (block) => sourceName(data, data.blocks.chosen[block]),
  }[key.name];
  return { ...made, ...interned(data.blocks.count.length, ofBlock ?? (() => '')) };
}

/** Whether its branches were traced in software. */
export function isTraced(data) {
  return data.head?.lbr_source?.provenance === 'software';
}

/** What people call a source: branches that were traced are no LBR's. */
export function sourceName(data, source) {
  return source === 'lbr' && isTraced(data) ? 'traced' : source;
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
