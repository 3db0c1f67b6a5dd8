// The Go of the guide for developers.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { guideDesk, programOf } from './desk.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const go = process.env.KMS_GO || '/usr/local/go/bin/go';

const desk = await guideDesk();
after(() => desk[Symbol.asyncDispose]());

test('the program of the guide opens a key with the standard library', async () => {
  await writeFile(desk.path('main.go'), programOf('go', desk.url));
  // The standard library is compiled once for all runs.
  const env = {
    GOCACHE: join(root, 'node_modules/.cache/go'),
    GOTOOLCHAIN: 'local',
    GOPROXY: 'off',
    GO111MODULE: 'off',
  };
  const said = await desk.run(go, ['run', 'main.go'], env);
  assert.equal(said, '32 bytes to encrypt with; in front of that go 119 characters\n');
});
