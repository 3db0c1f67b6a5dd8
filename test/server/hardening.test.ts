// Hardening of a process that holds keys. test/executable tests its effect on the executable.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { hardenProcess } from '../../src/platform/hardening.ts';

test('flags that let the memory be looked into are refused', async () => {
  for (const flag of [
    '--inspect',
    '--inspect=0.0.0.0:9229',
    '--inspect-brk',
    '--inspect-wait=1234',
    '--heapsnapshot-signal=SIGUSR2',
    '--heapsnapshot-near-heap-limit=3',
    '--heap-prof',
    '--report-on-fatalerror',
    '--abort-on-uncaught-exception',
  ]) {
    await assert.rejects(
      hardenProcess(['--no-warnings', flag], undefined),
      (error: unknown) => error instanceof KmsError && error.code === 'refused' && error.message.includes(flag),
      flag,
    );
  }
  await assert.rejects(hardenProcess([], 'ws://127.0.0.1:9229/x'), /debugger may attach at ws/);
});

test('files are for their owner, core dumps without memory, and SIGUSR1 starts no debugger', async () => {
  await hardenProcess(['--no-warnings', '--max-old-space-size=100'], undefined);
  await hardenProcess();
  assert.equal(process.umask(), 0o077);
  assert.equal(process.listenerCount('SIGUSR1'), 1);
  if (process.platform === 'linux') {
    assert.equal(Number.parseInt(readFileSync('/proc/self/coredump_filter', 'utf8'), 16), 0);
  }
});
