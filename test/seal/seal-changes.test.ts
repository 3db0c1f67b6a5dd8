// Changes of a seal: custodians, a new master key, new keys of a store and the retirement of old ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { openSeal, type Seal, sealFor } from '../../src/seal/seal.ts';
import { makeCustodian, slotFor } from '../../src/seal/slot.ts';
import { type KeyLabel, liveKeys } from '../../src/seal/tenant-keys.ts';

const secret = systemRandom(32);
const other = systemRandom(32);
const dir = 'ab12';
const seal = sealFor([makeCustodian('keyfile', secret)], systemRandom)
  .withStore('system')
  .withStore(dir);
const reopened = (changed: Seal, key = secret): Seal => openSeal(changed.toBytes(), key, systemRandom);
const fileLabels: readonly KeyLabel[] = ['log', 'snapshot', 'activity'];
const readingLabels: readonly KeyLabel[] = ['hash', 'header', 'cursor', 'asset-signing', 'activity-head'];

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof KmsError, `${error}`);
    return error.code;
  }
  assert.fail('was taken');
}

test('each custodian opens, and one that was removed does not', () => {
  const custodian = makeCustodian('exec', other, { command: '/bin/key', args: ['a', '-b'] });
  const slot = slotFor(custodian, seal.applianceId, seal.master);
  const both = seal.withSlot(slot);
  for (const key of [secret, other]) {
    const opened = reopened(both, key);
    assert.deepEqual(opened.slots, both.slots);
    assert.deepEqual(opened.keysFor(dir).key('log'), seal.keysFor(dir).key('log'));
  }
  assert.equal(
    codeOf(() => both.withSlot(slot)),
    'conflict',
  );
  const one = both.withoutSlot(both.slots[0]?.id ?? '');
  assert.equal(reopened(one, other).fingerprint, seal.fingerprint);
  assert.equal(
    codeOf(() => reopened(one)),
    'refused',
  );
  assert.equal(
    codeOf(() => one.withoutSlot(slot.id)),
    'conflict',
  );
  assert.equal(
    codeOf(() => both.withoutSlot('0000000000000000')),
    'not-found',
  );
});

test('a seal for several custodians from the start', () => {
  const made = sealFor([makeCustodian('env', secret), makeCustodian('recovery-kit', other)], systemRandom);
  assert.equal(reopened(made).fingerprint, reopened(made, other).fingerprint);
});

test('a new master key: the same custodians and keys, and nothing of the old file fits', () => {
  const rotated = seal.withSlot(slotFor(makeCustodian('env', other), seal.applianceId, seal.master)).withNewMaster();
  assert.notEqual(rotated.fingerprint, seal.fingerprint);
  for (const key of [secret, other]) {
    const opened = reopened(rotated, key);
    assert.equal(opened.fingerprint, rotated.fingerprint);
    assert.equal(opened.applianceId, seal.applianceId);
    assert.deepEqual(opened.keysFor(dir).key('hash'), seal.keysFor(dir).key('hash'));
  }
  const [before, after] = [seal, rotated].map((each) => JSON.parse(Buffer.from(each.toBytes()).toString()));
  for (const field of ['master', 'slots', 'keys', 'mac']) {
    const mixed = Buffer.from(`${JSON.stringify({ ...after, [field]: before[field] }, null, 2)}\n`);
    assert.equal(
      codeOf(() => openSeal(mixed, secret, systemRandom)),
      'corrupt',
      field,
    );
  }
});

test('the next epoch is what is used, the ones before are held', () => {
  const next = reopened(seal.withNextEpoch(dir));
  assert.deepEqual(next.epochsOf(dir), [
    { epoch: 1, retired: false },
    { epoch: 2, retired: false },
  ]);
  const keys = next.keysFor(dir);
  assert.equal(keys.epoch, 2);
  for (const label of [...fileLabels, ...readingLabels]) {
    assert.deepEqual(keys.key(label, 1), seal.keysFor(dir).key(label));
    assert.notDeepEqual(keys.key(label), keys.key(label, 1));
  }
  assert.equal(next.keysFor('system').epoch, 1);
});

test('of a retired epoch only the keys for reading are left, in the file too', () => {
  const retired = reopened(seal.withNextEpoch(dir).withRetiredEpoch(dir, 1));
  assert.deepEqual(retired.epochsOf(dir), [
    { epoch: 1, retired: true },
    { epoch: 2, retired: false },
  ]);
  const keys = retired.keysFor(dir);
  for (const label of readingLabels) assert.deepEqual(keys.key(label, 1), seal.keysFor(dir).key(label), label);
  for (const label of fileLabels)
    assert.equal(
      codeOf(() => keys.key(label, 1)),
      'not-found',
      label,
    );
  assert.deepEqual(reopened(retired.withRetiredEpoch(dir, 1)).epochsOf(dir), retired.epochsOf(dir), 'twice is once');
  const third = reopened(retired.withNextEpoch(dir).withRetiredEpoch(dir, 2).withNewMaster());
  assert.deepEqual(third.keysFor(dir).key('header', 1), seal.keysFor(dir).key('header'));
  assert.equal(
    codeOf(() => third.withRetiredEpoch(dir, 3)),
    'internal',
    'the newest stays',
  );
  assert.equal(
    codeOf(() => third.withRetiredEpoch(dir, 4)),
    'internal',
  );
});

test('the two forms of an epoch cannot stand for each other', () => {
  const text = Buffer.from(seal.withNextEpoch(dir).withRetiredEpoch(dir, 1).toBytes()).toString();
  for (const changed of [text.replace('"reading"', '"wrapped"'), text.replace('"wrapped": "', '"reading": "')]) {
    assert.notEqual(changed, text);
    assert.equal(
      codeOf(() => openSeal(Buffer.from(changed), secret, systemRandom)),
      'corrupt',
    );
  }
});

test('keys in use follow, what was handed out stays good, and after the wipe there is nothing', () => {
  const keys = liveKeys(seal.keysFor(dir));
  const old = keys.key('log');
  const copy = old.slice();
  keys.replace(seal.withNextEpoch(dir).keysFor(dir));
  assert.equal(keys.epoch, 2);
  assert.deepEqual(keys.key('log', 1), copy);
  assert.deepEqual(old, copy);
  const newer = keys.key('hash');
  keys.wipe();
  assert.deepEqual(old, new Uint8Array(32));
  assert.deepEqual(newer, new Uint8Array(32));
  assert.equal(
    codeOf(() => keys.key('log')),
    'sealed',
  );
});
