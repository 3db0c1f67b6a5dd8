// Snapshots of several chunks: content is read back unchanged, and no chunk can be left out, moved, repeated or added.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concatBytes } from '../../src/crypto/bytes.ts';
import { emptyHead } from '../../src/store/activity/activity-log.ts';
import { describeSnapshot, readSnapshot, writeSnapshot } from '../../src/store/snapshot.ts';
import { prng } from '../support/prng.ts';
import { Inode } from '../support/sim-disk.ts';
import { SimFiles } from '../support/sim-files.ts';
import { testStoreKeys } from '../support/store-keys.ts';

const chunk = 256 * 1024;
const sealed = chunk + 40;
const keys = testStoreKeys();
const name = 'd/snapshot-0000000003.kms';

type Content = Parameters<typeof writeSnapshot>[2];

async function written(imageLength: number, tail: string[] = ['{"a":1}', '{"b":"ü"}'], planted: object = {}) {
  const generator = prng(imageLength);
  const files = new SimFiles({ prng: generator });
  const image = generator.bytes(imageLength);
  const context = { files, dir: 'd', keys, random: (length: number) => generator.bytes(length) };
  const header = { uid: generator.bytes(16), generation: 3, sequence: 7, chain: generator.bytes(16) };
  const sound: Content = { schema: 2, savedAt: 5, runs: [], activity: { segments: [], head: emptyHead } };
  // Cast: somebody with keys of their own seals whatever they like.
  const content = { ...sound, ...planted } as Content;
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

const hash = 'a'.repeat(43);
const segment = {
  ...{ file: 'activity-000000000001.kms', bytes: 100, firstSeq: 1, lastSeq: 8, prevHash: hash, hash, from: 1, to: 2 },
  ...{ idFrom: 'act_', idTo: 'act_', validCount: 8, invalidCount: 0 },
  ...{ keys: null, actions: 'AA', rings: null, props: null, addresses: null },
};

const plantedSegments: readonly object[] = [
  ...[
    '../../victim',
    '/etc/shadow',
    'kms.seal',
    '',
    '..',
    'activity-000000000002.kms',
    '../activity-000000000001.kms',
    7,
  ],
  ...['activity-1.kms', 'activity-000000000001.kms/../x', undefined, null, ['activity-000000000001.kms']],
].map((file) => ({ file }));

const wrongNumbers = [-1, 1.5, 2 ** 53, Number.NaN, '1', null, undefined, {}];

test('a sealed manifest that names anything but what kms writes is refused, however it is read', async () => {
  const { manifest } = await read((await written(0, [], { activity: { segments: [segment], head: emptyHead } })).files);
  assert.equal(manifest.activity.segments[0]?.file, segment.file);
  const numbers = ['bytes', 'firstSeq', 'lastSeq', 'from', 'to', 'validCount', 'invalidCount'] as const;
  const isTime = (name: string, value: unknown) => (name === 'from' || name === 'to') && value === -1;
  const segments: readonly unknown[] = [
    ...plantedSegments,
    ...numbers.flatMap((name) =>
      wrongNumbers.filter((value) => !isTime(name, value)).map((value) => ({ [name]: value })),
    ),
    { firstSeq: 0, file: 'activity-000000000000.kms' },
    { firstSeq: 9 },
    { firstSeq: 1e12, lastSeq: 1e12, file: 'activity-1000000000000.kms' },
    ...['', 'a', `${hash}a`, `${hash.slice(1)}/`, 1, null].flatMap((text) => [{ hash: text }, { prevHash: text }]),
    ...[1, null, 'x'.repeat(18)].flatMap((text) => [{ idFrom: text }, { idTo: text }]),
    ...[1, {}].flatMap((text) => [{ keys: text }, { addresses: text }]),
  ].map((change) => ({ ...segment, ...change }));
  const activity = { segments: [], head: emptyHead };
  const run = { from: 0, tag: '0'.repeat(16) };
  const planted: readonly object[] = [
    ...[...segments, null, 'x', []].map((each) => ({ activity: { ...activity, segments: [each] } })),
    ...[null, {}, 'x'].map((each) => ({ activity: { ...activity, segments: each } })),
    ...[null, { seq: -1, hash }, { seq: 1, hash: 'x' }].map((head) => ({ activity: { ...activity, head } })),
    ...[null, { seq: 0, hash, until: 1 }, { seq: 1, hash, until: 'x' }].map((dropped) => ({
      activity: { ...activity, dropped },
    })),
    ...[null, {}, [null], [{ ...run, from: -1 }], [{ ...run, tag: '../x' }], Array(9).fill(run)].map((runs) => ({
      runs,
    })),
    ...wrongNumbers.map((schema) => ({ schema })),
    ...[null, 'x', 1.5].map((savedAt) => ({ savedAt })),
    ...[null, [], 'x'].map((each) => ({ activity: each })),
  ];
  for (const each of planted) {
    const { files } = await written(0, [], each);
    const what = JSON.stringify(each);
    await assert.rejects(read(files), { code: 'corrupt', message: /the manifest is none that kms writes/ }, what);
    await assert.rejects(describeSnapshot(files, 'd', 3, keys), { code: 'corrupt' }, what);
  }
});
