// The version is stated in two places, which agree.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { version } from '../../src/version.ts';

test('src/version.ts has the version of package.json', () => {
  const { version: packaged } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  assert.equal(version, packaged);
});
