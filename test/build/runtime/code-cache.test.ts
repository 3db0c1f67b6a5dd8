// The code caches of Node's own modules, rewritten for the executable's flags: all are used, and results stay the same.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { rehashNodeCaches } from '../../../build/runtime/code-cache.ts';

const directory = mkdtempSync(join(tmpdir(), 'kms-code-cache-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const flags = ['--expose-gc', '--wasm-tiering-budget=300000000'];

/** Loads some of Node's modules, uses each, and lists those of all loaded modules that came without a cache. */
const program = `
  const { internalBinding } = require('internal/test/binding');
  const { createHash } = require('node:crypto');
  require('node:http');
  require('node:worker_threads');
  const { compiledWithCache, compiledWithoutCache } = internalBinding('builtins').getCacheUsage();
  console.log(JSON.stringify({
    used: compiledWithCache.size > 20,
    without: [...compiledWithoutCache],
    hash: createHash('sha256').update(require('node:path').join('a', 'b')).digest('hex'),
  }));`;

function runWith(runtime: string): { used: boolean; without: string[]; hash: string } {
  return JSON.parse(
    execFileSync(runtime, [...flags, '--no-warnings', '--expose-internals', '--eval', program], { encoding: 'utf8' }),
  );
}

test('a runtime that is told of its flags loads all of its own modules from their caches', () => {
  const plain = runWith(process.execPath);
  assert.equal(plain.used, false, 'under these flags it takes the caches for those of another V8');
  const bytes = readFileSync(process.execPath);
  const length = bytes.length;
  assert.ok(rehashNodeCaches(bytes, flags) > 300);
  assert.equal(bytes.length, length);
  const runtime = join(directory, 'node');
  writeFileSync(runtime, bytes, { mode: 0o755 });
  const told = runWith(runtime);
  assert.deepEqual(told, { used: true, without: [], hash: plain.hash });
  // Without the flags the caches are rejected, and it still runs.
  assert.equal(spawnSync(runtime, ['--version'], { encoding: 'utf8' }).stdout.trim(), process.version);
  assert.equal(rehashNodeCaches(bytes, flags), 0, 'what was told is told already');
});

test('bytes without caches stay as they are', () => {
  const bytes = Buffer.from('no cache of V8 in this');
  assert.equal(rehashNodeCaches(bytes, flags), 0);
  assert.equal(bytes.toString(), 'no cache of V8 in this');
});
