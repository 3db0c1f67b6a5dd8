// The seal: opens only with the right secret, detects every change, and says which key is needed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { openSeal, sealFor } from '../../src/seal/seal.ts';
import { makeCustodian, slotIdOf } from '../../src/seal/slot.ts';

const secret = systemRandom(32);
const sealed = sealFor([makeCustodian('keyfile', secret)], systemRandom)
  .withStore('system')
  .withStore('ab12');
const bytes = sealed.toBytes();

function refusal(run: () => unknown): KmsError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof KmsError, `${error}`);
    return error;
  }
  assert.fail('was taken');
}

test('what is sealed opens, with the same keys', () => {
  const opened = openSeal(bytes, secret, systemRandom);
  assert.equal(opened.applianceId, sealed.applianceId);
  assert.equal(opened.fingerprint, sealed.fingerprint);
  assert.deepEqual(opened.stores, ['system', 'ab12']);
  for (const dir of opened.stores) {
    assert.deepEqual(opened.keysFor(dir).key('log'), sealed.keysFor(dir).key('log'));
    assert.equal(opened.keysFor(dir).epoch, 1);
  }
  assert.notDeepEqual(opened.keysFor('system').key('log'), opened.keysFor('ab12').key('log'));
});

test('keys are handed out as copies: wiping them leaves the seal whole', () => {
  const opened = openSeal(bytes, secret, systemRandom);
  const log = opened.keysFor('ab12').key('log').slice();
  opened.keysFor('ab12').wipe();
  assert.deepEqual(opened.keysFor('ab12').key('log'), log);
});

test('keys opened with them are kept until the wipe, as many as that', () => {
  const keys = openSeal(bytes, secret, systemRandom).keysFor('ab12');
  let opened = 0;
  const key = (n: number): Uint8Array | undefined =>
    keys.opened(`key ${n}`, () => {
      opened++;
      return n < 0 ? undefined : keys.key('transit').map((byte) => byte ^ (n & 255));
    });
  const held = key(1);
  const first = held?.slice();
  assert.equal(key(1), held, 'the same array each time: what a platform makes of it may be kept with it');
  assert.equal(opened, 1);
  assert.equal(key(-1), undefined);
  assert.equal(key(-1), undefined);
  assert.equal(opened, 3, 'what does not open is not kept');
  for (let n = 2; n <= 501; n++) key(n);
  assert.deepEqual(held, new Uint8Array(32), 'the one used longest ago went, and was overwritten');
  assert.deepEqual(key(1), first);
  assert.equal(opened, 504);
  const last = key(1);
  keys.wipe();
  assert.deepEqual(last, new Uint8Array(32));
  assert.throws(() => key(1), { code: 'sealed' });
});

test('a changed seal is a new value; the old one stays', () => {
  const opened = openSeal(bytes, secret, systemRandom);
  const more = opened.withStore('cd34');
  assert.deepEqual(opened.stores, ['system', 'ab12']);
  const again = openSeal(more.toBytes(), secret, systemRandom);
  assert.deepEqual(again.stores, ['system', 'ab12', 'cd34']);
  assert.deepEqual(again.keysFor('ab12').key('hash'), opened.keysFor('ab12').key('hash'));
  const less = openSeal(again.withoutStore('ab12').toBytes(), secret, systemRandom);
  assert.deepEqual(less.stores, ['system', 'cd34']);
  assert.equal(refusal(() => less.keysFor('ab12')).code, 'corrupt');
});

test('no key and no secret is in the file in clear', () => {
  const text = Buffer.from(bytes).toString();
  for (const encoding of ['base64', 'base64url', 'hex'] as const) {
    assert.ok(!text.includes(Buffer.from(secret).toString(encoding)));
    assert.ok(!text.includes(Buffer.from(sealed.keysFor('ab12').key('log')).toString(encoding)));
  }
});

test('another secret: needs this one, got that one', () => {
  const other = systemRandom(32);
  const error = refusal(() => openSeal(bytes, other, systemRandom));
  assert.equal(error.code, 'refused');
  assert.equal(error.message, `wrong master key file: needs ${slotIdOf(secret)}, got ${slotIdOf(other)}`);
});

test('every changed byte is found and called damage, never a wrong key', () => {
  for (let at = 0; at < bytes.length; at++) {
    const changed = bytes.slice();
    changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
    assert.equal(refusal(() => openSeal(changed, secret, systemRandom)).code, 'corrupt', `byte ${at}`);
  }
});

test('a cut, lengthened, re-indented or emptied file is found', () => {
  for (let length = 0; length < bytes.length; length += 7) {
    assert.equal(refusal(() => openSeal(bytes.slice(0, length), secret, systemRandom)).code, 'corrupt');
  }
  const text = Buffer.from(bytes).toString();
  for (const changed of [
    `${text}\n`,
    ` ${text}`,
    JSON.stringify(JSON.parse(text)),
    text.replace('{', '{"more":1,'),
    '{}',
    'null',
    '[]',
  ]) {
    assert.equal(
      refusal(() => openSeal(Buffer.from(changed), secret, systemRandom)).code,
      'corrupt',
      changed.slice(0, 40),
    );
  }
});

test('a newer version is named as such', () => {
  const text = Buffer.from(bytes).toString().replace('"version": 1', '"version": 2');
  const error = refusal(() => openSeal(Buffer.from(text), secret, systemRandom));
  assert.equal(error.message, 'kms.seal: expected seal version 1, found 2');
});

test('pieces of another appliance with the same secret do not fit', () => {
  const other = JSON.parse(
    Buffer.from(
      sealFor([makeCustodian('keyfile', secret)], systemRandom)
        .withStore('ab12')
        .toBytes(),
    ).toString(),
  );
  const mine = JSON.parse(Buffer.from(bytes).toString());
  for (const field of ['appliance', 'master', 'slots', 'keys', 'mac']) {
    const mixed = Buffer.from(`${JSON.stringify({ ...mine, [field]: other[field] }, null, 2)}\n`);
    assert.equal(refusal(() => openSeal(mixed, secret, systemRandom)).code, 'corrupt', field);
  }
  const swapped = { ...mine, keys: [...mine.keys].reverse() };
  const text = Buffer.from(`${JSON.stringify(swapped, null, 2)}\n`);
  assert.equal(refusal(() => openSeal(text, secret, systemRandom)).code, 'corrupt');
});
