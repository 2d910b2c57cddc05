// The data of a small page.

/**
 * Two functions of one name, and code that was not read:
 *
 *   block 0 of f, 100 times: add, add, jne    200 add, 100 jne
 *   block 1 of g,  10 times: mulps             10 mulps
 *   block 2 of f,   5 times: add, mulps         5 add, 5 mulps
 *   block 3 of a file that was not read: 30 instructions
 */
export const DATA = {
  instructions: 350,
  modules: ['/bin/a', '/lib/b'],
  functions: {
    name: ['f', 'g', 'f', '[unreadable]'],
    module: [0, 0, 1, 1],
    start: [16, 32, 16, null],
    executed: [300, 10, 10, 30],
    share_error: [0.1, null, 0.5, null],
    rest_on_little: [2],
    time: [0.5, 0.4, 0, 0.1],
    time_error: [0.1, 0.1, 0.01, 0.05],
    time_per_instruction: [0.583, 14, null, null],
  },
  blocks: {
    function: [0, 1, 2, 3],
    start: [16, 32, 16, 64],
    count: [100, 10, 5, 30],
    chosen: ['lbr', 'ebs', 'lbr', 'lbr'],
    kinds: [[0, 0, 1], [2], [0, 2], [3]],
    time: [0.6, 0.25, 0.1, 0.05],
    time_samples: 100,
  },
  keys: [
    { name: 'function', about: '', is_taxonomy: false, is_numeric: false },
    { name: 'module', about: '', is_taxonomy: false, is_numeric: false },
    { name: 'block-length', about: '', is_taxonomy: false, is_numeric: true },
    { name: 'loop', about: '', is_taxonomy: false, is_numeric: false, values: ['[no loop]', '[unreadable]', 'f:7'], of_blocks: [2, 0, 0, 1], counts: [20, 30, 300], share_errors: [0.1, null, 0.1], rest_on_little: [] },
    { name: 'chosen', about: '', is_taxonomy: false, is_numeric: false },
    { name: 'mnemonic', about: '', is_taxonomy: false, is_numeric: false, values: ['[unreadable]', 'add', 'jne', 'mulps'], of_kinds: [1, 2, 3, 0], counts: [30, 205, 100, 15], share_errors: [null, 0.1, 0.1, 0.1], rest_on_little: [] },
    { name: 'flops', about: '', is_taxonomy: true, is_numeric: true, values: ['0', '16', '4', '[unreadable]'], of_kinds: [0, 0, 2, 3], counts: [], share_errors: [], rest_on_little: [] },
  ],
};
