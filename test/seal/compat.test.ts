// The seals of `test/compat/seal-1.json` and `seal-2.json` were made by earlier programs and must open for ever, with
// each of their custodians; and a seal of version 1 becomes one of version 2 at a new master key.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fromUtf8, toBase64Url, toHex, utf8 } from '../../src/crypto/bytes.ts';
import { hkdfSha256 } from '../../src/crypto/hash.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { publicFromPrivate } from '../../src/crypto/x25519.ts';
import { KmsError } from '../../src/errors.ts';
import { openSeal, type Seal } from '../../src/seal/seal.ts';
import { makeSlot } from '../../src/seal/slot.ts';
import { hex } from '../support/vectors.ts';

interface Frozen {
  readonly secrets: { readonly keyfile: string; readonly 'recovery-kit': string };
  readonly appliance: string;
  readonly master: string;
  readonly slots: readonly string[];
  readonly keys: { readonly system: string; readonly ab12: string; readonly retired: string };
  readonly seal: string;
}

const frozenOf = (version: 1 | 2): Frozen =>
  JSON.parse(readFileSync(new URL(`../compat/seal-${version}.json`, import.meta.url), 'utf8'));

const versionsOf = ({ slots }: Seal): readonly number[] => slots.map(({ version }) => version);
const textOf = (seal: Seal): string => fromUtf8(seal.toBytes()) ?? assert.fail();
const versionOf = (text: string): number => JSON.parse(text).version;

for (const version of [1, 2] as const) {
  const frozen = frozenOf(version);
  test(`a seal of version ${version} opens with each of its custodians`, () => {
    assert.equal(versionOf(frozen.seal), version);
    for (const secret of Object.values(frozen.secrets)) {
      const seal = openSeal(utf8(frozen.seal), hex(secret), systemRandom);
      assert.equal(seal.applianceId, frozen.appliance);
      assert.equal(seal.fingerprint, frozen.master);
      assert.deepEqual(
        seal.slots.map(({ id }) => id),
        frozen.slots,
      );
      assert.deepEqual(versionsOf(seal), [version, version]);
      assert.equal(toHex(seal.keysFor('system').key('log')), frozen.keys.system);
      assert.equal(toHex(seal.keysFor('ab12').key('log')), frozen.keys.ab12);
      assert.equal(toHex(seal.keysFor('ab12').key('hash', 1)), frozen.keys.retired);
      assert.deepEqual(seal.epochsOf('ab12'), [
        { epoch: 1, retired: true },
        { epoch: 2, retired: false },
      ]);
      // What changes nothing of the custodians leaves the version as it is, so that the program before it reads it.
      assert.equal(versionOf(textOf(seal.withStore('cd34'))), version);
    }
  });

  test(`every changed byte of a seal of version ${version} is damage, never a wrong key`, () => {
    const bytes = utf8(frozen.seal);
    // Some of them: those of a wrapped key take a decapsulation each.
    for (let at = version - 1; at < bytes.length; at += version === 1 ? 3 : 7) {
      const changed = bytes.slice();
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
      assert.throws(
        () => openSeal(changed, hex(frozen.secrets.keyfile), systemRandom),
        (error) => error instanceof KmsError && error.code === 'corrupt',
        `byte ${at}`,
      );
    }
  });
}

test('a new master key makes version 2 of the slot that opened, with the same id; others wait for their secrets', () => {
  const { seal: text, secrets, slots } = frozenOf(1);
  const first = openSeal(utf8(text), hex(secrets.keyfile), systemRandom).withNewMaster();
  assert.deepEqual(versionsOf(first), [2, 1]);
  for (const secret of Object.values(secrets)) {
    const opened = openSeal(first.toBytes(), hex(secret), systemRandom);
    assert.equal(opened.fingerprint, first.fingerprint);
    assert.deepEqual(opened.slots, first.slots);
    assert.equal(versionOf(textOf(opened)), 2);
  }
  const second = openSeal(first.toBytes(), hex(secrets['recovery-kit']), systemRandom).withNewMaster();
  assert.deepEqual(versionsOf(second), [2, 2]);
  assert.deepEqual(
    second.slots.map(({ id, kind, params }) => ({ id, kind, params })),
    openSeal(utf8(text), hex(secrets.keyfile), systemRandom).slots.map(({ id, kind, params }) => ({
      id,
      kind,
      params,
    })),
  );
  assert.deepEqual(
    second.slots.map(({ id }) => id),
    slots,
  );
  assert.equal(openSeal(second.toBytes(), hex(secrets.keyfile), systemRandom).fingerprint, second.fingerprint);
});

test('a seal opened in place of another carries on: its slot becomes version 2 as well', () => {
  const { seal: text, secrets } = frozenOf(1);
  const own = openSeal(utf8(text), hex(secrets.keyfile), systemRandom);
  const read = own.openOther(own.withStore('cd34').toBytes(), 'kms.seal');
  assert.deepEqual(versionsOf(read), [1, 1]);
  assert.deepEqual(versionsOf(read.withNewMaster()), [2, 1]);
  const gone = read.withoutSlot(read.slots[0]?.id ?? '');
  assert.deepEqual(versionsOf(gone.withNewMaster()), [1], 'a custodian that was removed does not come back');
});

test('of a seal of version 2 no public key of X25519 is in the file', () => {
  const { seal: text, secrets } = frozenOf(2);
  const secret = hex(secrets.keyfile);
  for (const label of ['kms/slot/v1/x25519', 'kms/slot/v2/mlkem768-x25519']) {
    assert.ok(!text.includes(toBase64Url(publicFromPrivate(hkdfSha256(secret, label, 32)))));
  }
  assert.ok(text.includes(toBase64Url(makeSlot('keyfile', secret).publicKey)));
});

test('a version of a slot, a check or an order of fields that no program writes is damage', () => {
  const text = frozenOf(2).seal;
  const secret = hex(frozenOf(2).secrets.keyfile);
  for (const [from, to] of [
    ['      "version": 2,\n', ''],
    ['      "version": 2,\n', '      "version": 1,\n'],
    ['      "version": 2,\n', '      "version": 3,\n'],
    ['  "version": 2,\n', '  "version": 1,\n'],
    [/ {6}"check": "[0-9a-f]+",\n/, ''],
  ] as const) {
    const changed = text.replace(from, to);
    assert.notEqual(changed, text);
    assert.throws(
      () => openSeal(utf8(changed), secret, systemRandom),
      (error) => error instanceof KmsError && error.code === 'corrupt',
    );
  }
});
