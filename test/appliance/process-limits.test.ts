// The system's limits on the process: which are reported, and which keep a server from starting.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { connectionsFor, judgeLimits, limitsIn, processLimits } from '../../src/platform/process-limits.ts';

const unlimited = Number.POSITIVE_INFINITY;
const enough = { files: 20_000, fileSize: unlimited, addressSpace: unlimited };

test('limits are read as the system tells them', () => {
  const text = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             204800               unlimited            bytes     
Max open files            1024                 4096                 files     
Max address space         unlimited            unlimited            bytes     
`;
  assert.deepEqual(limitsIn(text), { files: 1024, fileSize: 204_800, addressSpace: unlimited });
  assert.deepEqual(limitsIn(''), { files: unlimited, fileSize: unlimited, addressSpace: unlimited });
  assert.deepEqual(processLimits(), limitsIn(readFileSync('/proc/self/limits', 'latin1')));
  assert.ok(processLimits().files > 0);
});

test('with too few open files no server starts; other limits are said', () => {
  assert.deepEqual(judgeLimits(enough), []);
  for (const files of [0, 16, 63]) {
    assert.throws(() => judgeLimits({ ...enough, files }), { code: 'refused', hint: /ulimit -n, LimitNOFILE=/ });
  }
  assert.match(judgeLimits({ ...enough, files: 64 }).join(), /^at most 64 files may be open/);
  assert.match(judgeLimits({ ...enough, fileSize: 1 }).join(), /^no file may grow beyond 1 bytes/);
  assert.match(
    judgeLimits({ ...enough, addressSpace: 2e9 }).join(),
    /^the address space is limited to 2000000000 bytes/,
  );
  assert.equal(judgeLimits({ files: 64, fileSize: 1, addressSpace: 1 }).length, 3);
});

test('files are kept from the network, however few there are and however many listeners', () => {
  for (const files of [64, 100, 300, 1024, 4096, 65_536, Number.POSITIVE_INFINITY]) {
    for (const listeners of [1, 2, 3]) {
      const each = connectionsFor({ files }, listeners);
      assert.ok(each >= 5 && each <= 8192, `${files} ${listeners}: ${each}`);
      assert.ok(each * listeners <= files - 48, `${files} ${listeners}: ${each}`);
    }
  }
  assert.equal(connectionsFor({ files: 1024 }, 2), 384);
});
