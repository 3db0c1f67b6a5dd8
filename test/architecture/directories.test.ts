// Directories are made level by level: the recursive mkdir of Node never ends on a file system that makes none.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, sources } from './imports.ts';

test('no directory is made by a recursive mkdir', () => {
  for (const file of sources()) {
    const found = /\bmkdir(?:Sync)?\([^;]*recursive/.exec(codeOf(file));
    assert.equal(found, null, `${file}: makeDirs of platform/node-files.ts is for it`);
  }
});
