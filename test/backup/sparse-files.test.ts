// Control files of a planted data directory that are sparse, and longer than memory: each is refused by its length,
// without a byte of it read.
import assert from 'node:assert/strict';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { rememberedFence } from '../../src/backup/fence.ts';
import { readMark } from '../../src/backup/standby.ts';
import { undoMove } from '../../src/cluster/move.ts';
import { readNode } from '../../src/cluster/shared-node.ts';
import { readSealFile } from '../../src/custody/seal-keeper.ts';
import { readPair } from '../../src/platform/certificate.ts';
import { listedFiles } from '../../src/platform/file-ports.ts';
import { notedPid } from '../../src/platform/lock.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { guardedFiles } from '../../src/platform/space-guard.ts';
import { readRollbackNotes } from '../../src/storage/rollback-guard.ts';
import { readJournal } from '../../src/upgrade/journal.ts';

/** In bytes: more than a buffer can hold. */
const long = 2 ** 36;

/** Cast: no key is asked for before there are bytes to verify. */
const noKeys = {} as Parameters<typeof readRollbackNotes>[1];

/** The reader of each file. */
const readers: Readonly<Record<string, (data: string) => Promise<unknown>>> = {
  'kms.seal': readSealFile,
  'kms.fenced': (data) => rememberedFence(nodeFiles(data)),
  'kms.standby': readMark,
  'kms.node': (data) => readNode(nodeFiles(data)),
  'kms.upgrade': readJournal,
  'kms.witness': (data) => readRollbackNotes(nodeFiles(data), noKeys),
  'kms.moved': (data) => undoMove(data, undefined),
  'tls.pem': (data) => readPair(join(data, 'tls.pem'), join(data, 'tls.pem')),
  any: (data) => guardedFiles(nodeFiles(data), async () => false).read('any', 4096),
};

for (const [name, read] of Object.entries(readers)) {
  test(`${name} of ${long} bytes is refused by its length`, async () => {
    const data = await mkdtemp(join(tmpdir(), 'kms-sparse-'));
    try {
      if (name === 'kms.moved') await writeFile(join(data, 'kms.seal'), '');
      await writeFile(join(data, name), '{');
      await truncate(join(data, name), long);
      const before = process.memoryUsage.rss();
      await assert.rejects(read(data), { code: 'corrupt' });
      assert.ok(process.memoryUsage.rss() - before < 128 << 20, name);
    } finally {
      await rm(data, { recursive: true });
    }
  });
}

test('a noted process, and a file of a backup or shipped state, likewise', async () => {
  const data = await mkdtemp(join(tmpdir(), 'kms-sparse-'));
  try {
    await writeFile(join(data, 'kms.pid'), '123\n');
    assert.equal(await notedPid(join(data, 'kms.pid')), 123);
    await truncate(join(data, 'kms.pid'), long);
    assert.equal(await notedPid(join(data, 'kms.pid')), undefined);
  } finally {
    await rm(data, { recursive: true });
  }
  const read = async () => assert.fail('was read');
  const files = listedFiles(new Map([['a', { bytes: long }]]), '', () => ({ read, readAt: read }));
  await assert.rejects(files.read('a', long - 1), { code: 'corrupt' });
});
