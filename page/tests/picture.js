// Pictures of the guide. With HBBP_UPDATE_PICTURES=1 they are made anew.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const GUIDE = new URL('../../docs/guide/', import.meta.url);

const MOST_BYTES = 120_000;

/** What a page shows is `docs/guide/pictures/NAME.png`, which must be there and be small. */
export async function keepPicture(page, name) {
  const file = new URL(`pictures/${name}.png`, GUIDE);
  if (process.env.HBBP_UPDATE_PICTURES === '1') await page.picture(fileURLToPath(file));
  const size = readFileSync(file).length;
  assert.ok(size < MOST_BYTES, `picture ${name} has ${size} bytes`);
}
