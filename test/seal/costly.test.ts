// A seal of another's making, with more to try than a person waits for: it is refused before anything is derived or
// run, a key that opens it at once still does, and whatever is tried ends on a signal.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromUtf8, utf8 } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { execSecret, sourcesFor } from '../../src/custody/key-sources.ts';
import { openWithPassphrase, unlockSeal } from '../../src/custody/unlock.ts';
import { newPassphraseParams, passphraseSlotParams } from '../../src/platform/threads/passwords.ts';
import { formatKeyFile } from '../../src/seal/custodian-secret.ts';
import { parseHeader } from '../../src/seal/header.ts';
import { openSeal, sealFor } from '../../src/seal/seal.ts';
import { type Custodian, makeCustodian, slotFor } from '../../src/seal/slot.ts';

const cheap = { m: 64, t: 1, p: 1 };
const name = 'kms.seal';
const secret = systemRandom(32);
const key = makeCustodian('env', secret);

function passphrases(count: number, cost: typeof cheap): Custodian[] {
  const params = () => passphraseSlotParams(newPassphraseParams(cost));
  return Array.from({ length: count }, () => makeCustodian('passphrase', systemRandom(32), params()));
}

const env = (variable: string) => (variable === 'KMS_MASTER_KEY' ? formatKeyFile(secret) : undefined);

for (const [what, custodians, expected] of [
  ['nine passphrases', passphrases(9, cheap), /kms\.seal: expected at most 8 passphrases, found 9; none was tried/],
  ['sixty', passphrases(60, { m: 1_048_576, t: 10, p: 1 }), /at most 8 passphrases, found 60; none was tried/],
  ['one that takes long', passphrases(1, { m: 1_048_576, t: 10, p: 1 }), /its passphrases would take too long/],
  ['eight that do together', passphrases(8, { m: 65_536, t: 7, p: 4 }), /its passphrases would take too long/],
  [
    'one that a negative cost is to hide',
    [...passphrases(1, { m: 1_048_576, t: 16, p: 1 }), ...passphrases(1, { m: -(2 ** 40), t: 1, p: 1 })],
    /its passphrases would take too long/,
  ],
] as const) {
  test(`a seal with ${what} is refused with words, and opens with a key`, async () => {
    const bytes = sealFor([key, ...custodians], systemRandom).toBytes();
    const { slots } = parseHeader(bytes, name).header;
    const began = performance.now();
    await assert.rejects(openWithPassphrase({ bytes, name }, slots, 'a passphrase'), {
      code: 'refused',
      message: expected,
    });
    const given = { passphrase: async () => 'a passphrase' };
    await assert.rejects(unlockSeal({ bytes, name }, undefined, { ...given, env: () => undefined }), {
      code: 'refused',
    });
    assert.ok(performance.now() - began < 5000);
    const { seal, slot } = await unlockSeal({ bytes, name }, undefined, { ...given, env });
    assert.equal(slot.id, key.id);
    seal.wipe();
  });
}

test('no more custodians of a kind that is tried are added than are tried', () => {
  for (const kind of ['passphrase', 'exec'] as const) {
    let seal = sealFor([key], systemRandom);
    const add = (): void => {
      const made = makeCustodian(kind, systemRandom(32), kind === 'exec' ? { command: '/bin/false', args: [] } : {});
      seal = seal.withSlot(slotFor(made, seal.applianceId, seal.master));
    };
    for (let n = 0; n < 8; n++) add();
    assert.throws(add, { code: 'conflict', message: new RegExp(`there are 8 custodians of the kind ${kind}`) });
    seal = openSeal(seal.toBytes(), secret, systemRandom);
    assert.equal(seal.slots.length, 9);
  }
});

test('no more commands are run than that, however many a seal names', () => {
  const commands = Array.from({ length: 60 }, () =>
    makeCustodian('exec', systemRandom(32), { command: '/bin/false', args: [] }),
  );
  const seal = sealFor([key, ...commands], systemRandom).toBytes();
  const { slots } = parseHeader(seal, name).header;
  const sources = sourcesFor({ data: undefined, seal }, slots, { commands: 'run', env });
  assert.equal(sources.filter(({ name }) => name === 'the output of /bin/false').length, 8);
});

test('a slot that comes twice makes the seal damaged', () => {
  const fields = JSON.parse(fromUtf8(sealFor([key], systemRandom).toBytes()) ?? '');
  fields.slots.push(fields.slots[0]);
  assert.throws(() => parseHeader(utf8(`${JSON.stringify(fields, null, 2)}\n`), name), { code: 'corrupt' });
});

test('a derivation and a command end on a signal', async () => {
  const bytes = sealFor([key, ...passphrases(8, { m: 65_536, t: 6, p: 4 })] as const, systemRandom).toBytes();
  for (const ms of [0, 200]) {
    const end = new AbortController();
    setTimeout(() => end.abort('SIGTERM'), ms);
    const given = { passphrase: async () => 'a passphrase', env, signal: end.signal };
    await assert.rejects(unlockSeal({ bytes, name }, undefined, given), (error) => error === 'SIGTERM');
    const run = execSecret({ command: '/bin/sleep', args: ['60'] }, { signal: AbortSignal.timeout(ms + 1) });
    await assert.rejects(run, { code: 'sealed', message: /it was ended/ });
  }
});
