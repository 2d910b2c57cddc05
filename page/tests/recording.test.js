import assert from 'node:assert/strict';
import { test } from 'node:test';

import { functionAt, makeRecording } from '../recording.js';
import { matching, sorted } from '../functions.js';
import { commandLine, PRESETS } from '../mix.js';
import { nextHottest } from '../code.js';
import { hexadecimal } from '../number.js';
import { DATA } from './data.js';

/** The code of f: block 0, which was counted and is a loop of its own, and one that was not seen. */
const recording = makeRecording({
  ...DATA,
  title: 'run.data',
  texts: { text: ['add eax, 1', 'jne 0x10', 'ret'], length: [3, 2, 1] },
  code: [{
    function: 0,
    calls: 4,
    loops: [{ header: 0, parent: null, depth: 1, first: 0, last: 0, size: 1, entries: 4, repeats: 96, trips: 25, note: '' }],
    blocks: [
      { start: 16, seen: 'counted', block: 0, loop: 0, instructions: [0, 0, 1], branch: { kind: 'conditional', target: 16 } },
      { start: 24, seen: 'not-seen', instructions: [2] },
    ],
  }],
});

test('code has the counts of blocks, and addresses by lengths', () => {
  const [f, g] = recording.functions;
  const [block, unseen] = f.code.blocks;
  assert.deepEqual([block.count, block.share, block.chosen, block.end], [100, 300 / 350, 'lbr', 24]);
  assert.deepEqual(block.instructions.map(({ address, kind }) => [address, kind]), [[16, 0], [19, 0], [22, 1]]);
  assert.deepEqual([unseen.count, unseen.share, unseen.isSeen], [null, 0, false]);
  assert.deepEqual([f.calls, g.calls, g.code], [4, null, null]);
});

test('loops have what runs in them', () => {
  assert.deepEqual(recording.loops.map(({ function: of, loop, header }) => [of.index, loop.share, header.start]), [[0, 300 / 350, 16]]);
});

test('the next hot block is found, and then the first again', () => {
  assert.equal(nextHottest(recording.functions[0], 'ffff'), '10');
  assert.equal(nextHottest(recording.functions[0], '10'), '10');
});

test('functions are found by name and file, and sorted', () => {
  const indices = (functions) => functions.map((one) => one.index);
  assert.deepEqual(indices(matching(recording.functions, '/lib')), [2, 3]);
  assert.deepEqual(indices(matching(recording.functions, 'g')), [1]);
  assert.deepEqual(indices(sorted(recording.functions, { sort: 'share', isRising: false })), [0, 3, 1, 2]);
  assert.deepEqual(indices(sorted(recording.functions, { sort: 'name', isRising: true })), [3, 0, 2, 1]);
  assert.deepEqual(indices(sorted(recording.functions, { sort: 'time', isRising: false })), [0, 1, 3, 2]);
  // What is not known comes last.
  assert.deepEqual(indices(sorted(recording.functions, { sort: 'long', isRising: false })), [1, 0, 2, 3]);
  assert.equal(functionAt(recording, '1'), recording.functions[1]);
  assert.equal(functionAt(recording, 'constructor'), undefined);
  assert.equal(functionAt(recording, '99'), undefined);
});

test('a pivot is said as a command', () => {
  const mnemonic = recording.facts.keys.get('mnemonic');
  const filters = [{ key: mnemonic, values: new Set([1, 3]), keeps: false }, { key: mnemonic, values: new Set(), keeps: false }];
  const command = commandLine(recording, { rows: ['function', 'module'], columns: ['flops'], filters });
  assert.equal(command, "hbbp mix run.data --rows function,module --columns flops --filter 'mnemonic!=add,mulps'");
});

test('a pivot of time asks for it', () => {
  assert.equal(commandLine(recording, { rows: ['function'], columns: [], filters: [], shown: 'time-per-instruction' }), 'hbbp mix run.data --rows function --values time-per-instruction');
});

test('time is that of the data, or not there', () => {
  assert.deepEqual(recording.functions.map(({ time, timeError, long }) => [time, timeError, long])[1], [0.4, 0.1, 14]);
  const { time, time_error: error, time_per_instruction: long, ...functions } = DATA.functions;
  assert.ok(recording.tellsTime && time && error && long);
  const without = makeRecording({ ...DATA, functions, code: [] });
  assert.deepEqual([without.tellsTime, without.functions[1].time, without.functions[1].long], [false, null, null]);
});

test('presets have names of their own', () => {
  assert.equal(new Set(PRESETS.map(({ id }) => id)).size, PRESETS.length);
});

test('addresses of the kernel keep all their digits', () => {
  const kernel = makeRecording({
    ...DATA,
    functions: { ...DATA.functions, start: ['18446744071578845184', 32, 16, null] },
    texts: { text: ['add', 'jne'], length: [3, 2] },
    code: [{
      function: 0,
      calls: null,
      loops: [],
      not_readable: [['18446744071578845192', '18446744071578845199']],
      blocks: [{ start: '18446744071578845184', seen: 'counted', block: 0, instructions: [0, 0, 1], branch: { kind: 'conditional', target: '18446744071578845184' } }],
    }],
  });
  const { code } = kernel.functions[0];
  assert.deepEqual(code.blocks[0].instructions.map(({ address }) => hexadecimal(address)), ['ffffffff81000000', 'ffffffff81000003', 'ffffffff81000006']);
  assert.ok(code.starts.has(code.blocks[0].branch.target));
  assert.deepEqual([code.gaps[0][0] < code.blocks[0].end, `${code.gaps[0][1] - code.gaps[0][0]}`], [false, '7']);
});
