// Code caches in the executable, which shorten a start: those of Node's own modules carry the flags that it runs under.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { rehashNodeCaches } from '../../build/runtime/code-cache.ts';
import { executable } from './kms.ts';

test("the caches of Node's own modules were told of the flags that it runs under", () => {
  // Caches made without flags are those not rewritten yet; there must be none, whatever the flags.
  assert.equal(rehashNodeCaches(readFileSync(executable), ['--expose-gc']), 0);
});
