// The seal in `test/compat/seal-1.json` was made by an earlier program and must open for ever, with each of its
// custodians: the key file, which was available when the master key was rotated, and the recovery kit, which was not.
// KMS_WRITE_FIXTURE=1 writes it if it is missing.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fromUtf8, toBase64Url, toHex, utf8 } from '../../src/crypto/bytes.ts';
import { hkdfSha256 } from '../../src/crypto/hash.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { publicFromPrivate } from '../../src/crypto/x25519.ts';
import { KmsError } from '../../src/errors.ts';
import { openSeal, sealFor } from '../../src/seal/seal.ts';
import { makeCustodian } from '../../src/seal/slot.ts';
import { hex } from '../support/vectors.ts';

interface Frozen {
  readonly secrets: { readonly keyfile: string; readonly 'recovery-kit': string };
  readonly appliance: string;
  readonly master: string;
  readonly former: string;
  readonly slots: readonly string[];
  readonly keys: { readonly system: string; readonly ab12: string; readonly retired: string };
  readonly seal: string;
}

const fixture = new URL('../compat/seal-1.json', import.meta.url);
if (process.env.KMS_WRITE_FIXTURE && !existsSync(fixture))
  writeFileSync(fixture, `${JSON.stringify(made(), null, 2)}\n`);
const frozen: Frozen = JSON.parse(readFileSync(fixture, 'utf8'));

function made(): Frozen {
  const secrets = { keyfile: systemRandom(32), 'recovery-kit': systemRandom(32) };
  const custodians = [
    makeCustodian('keyfile', secrets.keyfile),
    makeCustodian('recovery-kit', secrets['recovery-kit']),
  ] as const;
  const first = sealFor([...custodians], systemRandom)
    .withStore('system')
    .withStore('ab12')
    .withNextEpoch('ab12');
  const retired = toHex(first.keysFor('ab12').key('hash', 1));
  const seal = openSeal(first.toBytes(), secrets.keyfile, systemRandom).withRetiredEpoch('ab12', 1).withNewMaster();
  return {
    secrets: { keyfile: toHex(secrets.keyfile), 'recovery-kit': toHex(secrets['recovery-kit']) },
    appliance: seal.applianceId,
    master: seal.master,
    former: first.master,
    slots: seal.slots.map(({ id }) => id),
    keys: {
      system: toHex(seal.keysFor('system').key('log')),
      ab12: toHex(seal.keysFor('ab12').key('log')),
      retired,
    },
    seal: fromUtf8(seal.toBytes()) ?? '',
  };
}

function isDamage(text: string, secret: string, what: string): void {
  assert.throws(
    () => openSeal(utf8(text), hex(secret), systemRandom),
    (error) => error instanceof KmsError && error.code === 'corrupt' && /damaged|expected/.test(error.message),
    what,
  );
}

test('it opens with each of its custodians', () => {
  for (const [kind, secret] of Object.entries(frozen.secrets)) {
    const seal = openSeal(utf8(frozen.seal), hex(secret), systemRandom);
    assert.equal(seal.applianceId, frozen.appliance);
    assert.equal(seal.master, frozen.master);
    assert.equal(seal.fingerprint, frozen.master.slice(0, 16));
    assert.deepEqual(
      seal.slots.map(({ id }) => id),
      frozen.slots,
    );
    // A custodian who opens the seal has a proof of the current master key from then on.
    const proofs = seal.slots.map(({ master }) => master);
    assert.deepEqual(proofs, [frozen.master, kind === 'keyfile' ? frozen.former : frozen.master]);
    assert.equal(toHex(seal.keysFor('system').key('log')), frozen.keys.system);
    assert.equal(toHex(seal.keysFor('ab12').key('log')), frozen.keys.ab12);
    assert.equal(toHex(seal.keysFor('ab12').key('hash', 1)), frozen.keys.retired);
    assert.deepEqual(seal.epochsOf('ab12'), [
      { epoch: 1, retired: true },
      { epoch: 2, retired: false },
    ]);
  }
});

test('every changed byte is damage, never a wrong key', () => {
  const bytes = utf8(frozen.seal);
  for (const secret of Object.values(frozen.secrets)) {
    // A sample of the bytes: those of a wrapped key cost a decapsulation each.
    for (let at = 0; at < bytes.length; at += 23) {
      const changed = bytes.slice();
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
      assert.throws(
        () => openSeal(changed, hex(secret), systemRandom),
        (error) => error instanceof KmsError && error.code === 'corrupt',
        `byte ${at}`,
      );
    }
  }
});

test('no public key of X25519 is in the file', () => {
  for (const secret of Object.values(frozen.secrets)) {
    for (const label of ['kms/slot/v1/x25519', 'kms/slot/v1/mlkem768-x25519']) {
      assert.ok(!frozen.seal.includes(toBase64Url(publicFromPrivate(hkdfSha256(hex(secret), label, 32)))));
    }
  }
});

test('a version, a field or an order of fields that this version does not write is damage', () => {
  const { keyfile } = frozen.secrets;
  const swapped = JSON.parse(frozen.seal);
  const { id, kind, ...rest } = swapped.slots[0];
  swapped.slots[0] = { kind, id, ...rest };
  for (const [what, changed] of [
    ['version 2', frozen.seal.replace('"version": 1', '"version": 2')],
    ['no version', frozen.seal.replace('  "version": 1,\n', '')],
    ['no former master key', frozen.seal.replace(/"former": \[[\s\S]*?\],/, '"former": [],')],
    ['no proof', frozen.seal.replace(/ {6}"proof": "[^"]+",\n/, '')],
    ['another order', `${JSON.stringify(swapped, null, 2)}\n`],
  ] as const) {
    assert.notEqual(changed, frozen.seal, what);
    isDamage(changed, keyfile, what);
  }
});

test('a seal of a later version is not read, and that is said', () => {
  const later = frozen.seal.replace('"version": 1', '"version": 2');
  assert.throws(() => openSeal(utf8(later), hex(frozen.secrets.keyfile), systemRandom), {
    message: 'kms.seal: expected seal version 1, found 2',
    hint: 'it was written by a newer kms: run that one',
  });
  assert.equal(fromUtf8(openSeal(utf8(frozen.seal), hex(frozen.secrets.keyfile), systemRandom).toBytes())?.[0], '{');
});
