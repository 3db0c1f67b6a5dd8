// Snapshots of several chunks: content is read back unchanged, and no chunk can be left out, moved, repeated or added.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concatBytes } from '../../src/crypto/bytes.ts';
import { emptyHead } from '../../src/store/activity/activity-log.ts';
import { readSnapshot, writeSnapshot } from '../../src/store/snapshot.ts';
import { prng } from '../support/prng.ts';
import { Inode } from '../support/sim-disk.ts';
import { SimFiles } from '../support/sim-files.ts';
import { testStoreKeys } from '../support/store-keys.ts';

const chunk = 256 * 1024;
const sealed = chunk + 40;
const keys = testStoreKeys();
const name = 'd/snapshot-0000000003.kms';

async function written(imageLength: number, tail: string[] = ['{"a":1}', '{"b":"ü"}']) {
  const generator = prng(imageLength);
  const files = new SimFiles({ prng: generator });
  const image = generator.bytes(imageLength);
  const context = { files, dir: 'd', keys, random: (length: number) => generator.bytes(length) };
  const header = { uid: generator.bytes(16), generation: 3, sequence: 7, chain: generator.bytes(16) };
  const content = { schema: 2, savedAt: 5, runs: [], activity: { segments: [], head: emptyHead } };
  const size = await writeSnapshot(context, header, content, tail, image);
  return { files, image, tail, header, size };
}

const read = (files: SimFiles) => readSnapshot(files, 'd', 3, keys);

for (const length of [0, 1, 4096, chunk - 200, chunk, chunk + 1, 3 * chunk + 17]) {
  test(`an image of ${length} bytes comes back as it was`, async () => {
    const { files, image, tail, header, size } = await written(length);
    const back = await read(files);
    assert.equal(Buffer.compare(back.image, image), 0);
    assert.deepEqual(back.tail, tail);
    assert.deepEqual(back.header, { ...header, epoch: 1 });
    assert.equal(back.manifest.schema, 2);
    assert.equal(back.size, size);
    assert.equal(await files.size(name), size);
  });
}

test('a text that ends with its chunk has no chunk behind it', async () => {
  const { size } = await written(0, []);
  const { files, size: full } = await written(chunk - (size - 64 - 40) - 5, []);
  assert.equal(full, 64 + sealed);
  await read(files);
});

test('chunks cannot be left out, moved, repeated or added', async () => {
  const { files } = await written(3 * chunk);
  const bytes = await files.read(name);
  const head = bytes.subarray(0, 64);
  const chunks = [0, 1, 2, 3].map((i) => bytes.subarray(64 + i * sealed, 64 + (i + 1) * sealed));
  const [a, b, c, d] = chunks;
  assert.ok(a && b && c && d);
  const arrangements = [
    [],
    [a],
    [a, b],
    [a, b, c],
    [b, c, d],
    [a, c, d],
    [a, c, b, d],
    [a, b, b, c, d],
    [a, b, c, d, d],
    [d],
  ];
  for (const [i, arrangement] of arrangements.entries()) {
    const inode = new Inode();
    inode.append(concatBytes(head, ...arrangement));
    files.disk.names.set(name, inode);
    await assert.rejects(read(files), { code: 'corrupt' }, `arrangement ${i}`);
  }
});
