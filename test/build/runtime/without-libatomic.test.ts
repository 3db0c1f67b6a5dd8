// The runtime without libatomic: it no longer needs that library, and runs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readElf, tags } from '../../../build/runtime/elf.ts';
import { dropLibatomic } from '../../../build/runtime/without-libatomic.ts';

const directory = mkdtempSync(join(tmpdir(), 'kms-libatomic-'));
after(() => rmSync(directory, { recursive: true, force: true }));

function needed(bytes: Buffer): string[] {
  const elf = readElf(bytes);
  return elf?.dynamic.filter(({ tag }) => tag === tags.needed).map(({ value }) => elf.nameAt(value)) ?? [];
}

test('this very runtime, changed, runs and asks for no libatomic', () => {
  const bytes = readFileSync(process.execPath);
  const before = needed(bytes);
  // Another platform's runtime is left as it is.
  if (!dropLibatomic(bytes)) return assert.deepEqual(bytes.compare(readFileSync(process.execPath)), 0);
  assert.deepEqual(
    needed(bytes),
    before.filter((name) => name !== 'libatomic.so.1'),
  );
  const changed = join(directory, 'node');
  writeFileSync(changed, bytes, { mode: 0o755 });
  const script =
    'const m = new WebAssembly.Module(Uint8Array.of(0,97,115,109,1,0,0,0)); new WebAssembly.Instance(m); console.log("runs")';
  const { stdout, stderr } = spawnSync(changed, ['-e', script], { encoding: 'utf8' });
  assert.equal(stdout, 'runs\n', stderr);
  assert.equal(dropLibatomic(bytes), true, 'a second time changes nothing');
});

test('what is no program is left as it is', () => {
  for (const bytes of [Buffer.alloc(100), Buffer.from('\x7fELF'.padEnd(100, '\0'), 'latin1')]) {
    const before = Buffer.from(bytes);
    assert.equal(dropLibatomic(bytes), false);
    assert.ok(bytes.equals(before));
  }
});
