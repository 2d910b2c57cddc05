import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';

import { unpacked } from '../unpack.js';

test('data is unpacked as it was', async () => {
  const data = { names: ['<b>基本块</b>', '\u202e\u0007'], counts: Array.from({ length: 10000 }, (_, at) => at * 1.5) };
  assert.deepEqual(await unpacked(deflateSync(JSON.stringify(data)).toString('base64')), data);
  await assert.rejects(unpacked('AAAA'));
});
