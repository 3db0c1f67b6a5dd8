// The hash and the header of an encrypt: round trips, the effect of each altered bit, other tenants, other epochs.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { fromBase64Url, toBase64Url, toHex, utf8 } from '../../src/crypto/bytes.ts';
import { hkdfSha256 } from '../../src/crypto/hash.ts';
import { decodeHeader, encodeHeader, inspectHeader, shareOf } from '../../src/crypto/header.ts';
import { openKeyHash, type SealingKeys, sealKeyHash } from '../../src/crypto/key-hash.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { idFromBytes, idToBytes } from '../../src/crypto/ulid.ts';
import { KmsError } from '../../src/errors.ts';

const newId = (prefix: string): string => idFromBytes(prefix, systemRandom(16));
const bytesOf = (text: string): Uint8Array => fromBase64Url(text) ?? assert.fail('not base64url');

function keysOf(epochs: readonly number[], secret = systemRandom(32)): SealingKeys {
  const held = new Map(
    epochs.flatMap((epoch) =>
      ['hash', 'header'].map((label) => [`${label} ${epoch}`, hkdfSha256(secret, `${label} ${epoch}`, 32)] as const),
    ),
  );
  const current = Math.max(...epochs);
  return {
    epoch: current,
    key(label, epoch = current) {
      const key = held.get(`${label} ${epoch}`);
      if (!key) throw new KmsError('not-found', 'no such epoch');
      return key;
    },
  };
}

const keys = keysOf([1]);
const ringId = newId('ring');
const keyId = newId('key');
const ordinary = { isRecipient: false, isOffline: false };
const asset = { id: newId('asset'), version: 0xfffffffe, signature: systemRandom(64) };

function withBit(text: string, bit: number): string {
  const bytes = bytesOf(text);
  bytes[bit >>> 3] = (bytes[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
  return toBase64Url(bytes);
}

test('a hash gives back ring and key, is new each time and URL-safe', () => {
  const seen = new Set<string>();
  for (let i = 0; i < 100; i++) {
    const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
    const { hash } = sealed;
    assert.match(hash, /^[A-Za-z0-9_-]{100}$/);
    assert.deepEqual(openKeyHash(keys, hash), { ringId, keyId });
    seen.add(hash);
  }
  assert.equal(seen.size, 100);
});

test('a hash is laid out as docs/formats.md has it', () => {
  const bytes = bytesOf(sealKeyHash(keysOf([1, 0x0203]), ringId, keyId, systemRandom).hash);
  assert.equal(toHex(bytes.subarray(0, 3)), '010203');
  const own = keysOf([7]);
  const raw = bytesOf(sealKeyHash(own, ringId, keyId, systemRandom).hash);
  const hmac = (key: Uint8Array, message: Uint8Array) => createHmac('sha256', key).update(message).digest();
  const encryption = hmac(own.key('hash'), utf8('kms/hash/v1/encrypt'));
  const mac = hmac(own.key('hash'), utf8('kms/hash/v1/mac'));
  assert.deepEqual(toHex(raw.subarray(55)), toHex(hmac(mac, raw.subarray(0, 55)).subarray(0, 20)));
  const stream = hmac(encryption, raw.subarray(3, 23));
  const plain = raw.subarray(23, 55).map((byte, i) => byte ^ (stream[i] ?? 0));
  assert.deepEqual(plain, new Uint8Array([...(idToBytes('ring', ringId) ?? []), ...(idToBytes('key', keyId) ?? [])]));
});

test('every altered bit makes a hash unreadable', () => {
  const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
  const { hash } = sealed;
  for (let bit = 0; bit < 600; bit++) assert.equal(openKeyHash(keys, withBit(hash, bit)), undefined, `bit ${bit}`);
});

test('texts that are no hash are unreadable, not errors', () => {
  const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
  const { hash } = sealed;
  const wrong = [
    '',
    'a',
    hash.slice(1),
    `${hash}A`,
    hash.slice(0, -4),
    `${hash}AAAA`,
    `${hash}=`,
    ` ${hash}`,
    hash.replace(/.$/, '\n'),
    hash.replace(/.$/, 'é'),
    'A'.repeat(100),
    'x'.repeat(100_000),
  ];
  for (const text of wrong) assert.equal(openKeyHash(keys, text), undefined);
  fc.assert(fc.property(fc.string({ maxLength: 130 }), (text) => assert.equal(openKeyHash(keys, text), undefined)));
});

test('a hash belongs to its tenant and outlives new epochs', () => {
  const secret = systemRandom(32);
  const old = keysOf([1], secret);
  const rekeyed = keysOf([1, 2], secret);
  const onlyNew = keysOf([2], secret);
  const before = sealKeyHash(old, ringId, keyId, systemRandom).hash;
  const after = sealKeyHash(rekeyed, ringId, keyId, systemRandom).hash;
  assert.deepEqual(openKeyHash(rekeyed, before), { ringId, keyId });
  assert.deepEqual(openKeyHash(rekeyed, after), { ringId, keyId });
  assert.equal(openKeyHash(old, after), undefined);
  assert.equal(openKeyHash(onlyNew, before), undefined);
  assert.equal(openKeyHash(keysOf([1]), before), undefined);
});

test('what a tenant key source throws for other reasons goes on up', () => {
  const broken: SealingKeys = {
    epoch: 1,
    key() {
      throw new KmsError('sealed', 'sealed');
    },
  };
  const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
  const { hash } = sealed;
  assert.throws(() => openKeyHash(broken, hash), { code: 'sealed' });
  assert.throws(() => decodeHeader(broken, encodeHeader(keys, sealed)), { code: 'sealed' });
});

test('a header without asset', () => {
  const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
  const { hash } = sealed;
  const header = encodeHeader(keys, sealed);
  assert.match(header, /^[A-Za-z0-9_-]{119}$/);
  const reference = { ringId, keyId };
  assert.deepEqual(decodeHeader(keys, header), { version: 1, hasAsset: false, ...ordinary, reference, intact: true });
  assert.deepEqual(inspectHeader(header), { version: 1, hash, hasAsset: false, ...ordinary });
});

test('a header with asset', () => {
  const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
  const { hash } = sealed;
  const header = encodeHeader(keys, { ...sealed, asset });
  assert.match(header, /^[A-Za-z0-9_-]{252}$/);
  const decoded = decodeHeader(keys, header);
  const base = { version: 1, hasAsset: true, ...ordinary, reference: { ringId, keyId }, intact: true };
  assert.deepEqual(decoded, { ...base, asset: { ...asset, intact: true } });
  assert.deepEqual(inspectHeader(header), {
    version: 1,
    hash,
    hasAsset: true,
    ...ordinary,
    assetId: asset.id,
    assetVersion: asset.version,
  });
});

test('a header is laid out as docs/formats.md has it', () => {
  const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
  const { hash } = sealed;
  const bytes = Buffer.from(bytesOf(encodeHeader(keys, { ...sealed, asset })));
  const mac = (...parts: Uint8Array[]): Buffer =>
    createHmac('sha256', keys.key('header')).update(Buffer.concat(parts)).digest().subarray(0, 16);
  const hashBytes = bytesOf(hash);
  const version = Buffer.from([0xff, 0xff, 0xff, 0xfe]);
  const assetId = idToBytes('asset', asset.id) ?? assert.fail('no id');
  const expected = Buffer.concat([
    Buffer.from([1, 1]),
    hashBytes,
    mac(utf8('kms/header/v1'), Buffer.from([1, 1]), hashBytes).subarray(0, 12),
    assetId,
    version,
    asset.signature,
    mac(utf8('kms/header-asset/v1'), hashBytes, assetId, version, asset.signature),
  ]);
  assert.equal(bytes.toString('hex'), expected.toString('hex'));

  const hashKey = (label: string) => createHmac('sha256', keys.key('hash')).update(label).digest();
  const ofHash = createHmac('sha256', hashKey('kms/hash/v1/mac')).update(hashBytes.subarray(0, 55)).digest();
  const plain = Buffer.concat([Buffer.from([1, 0]), hashBytes, ofHash.subarray(20)]);
  assert.equal(toHex(bytesOf(encodeHeader(keys, sealed))), plain.toString('hex'));
});

test('each altered bit of a header without asset: not decodable, or decodable and not intact', () => {
  const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
  const header = encodeHeader(keys, sealed);
  for (let bit = 0; bit < 89 * 8; bit++) {
    const decoded = decodeHeader(keys, withBit(header, bit));
    const byte = bit >>> 3;
    // Version, flags, and the hash's version and epoch: without them nothing can be verified. Bit 9 turns it into a
    // header with `recipient`.
    if (byte < 5 && bit !== 9) assert.equal(decoded, undefined, `bit ${bit}`);
    else assert.equal(decoded?.intact, false, `bit ${bit}`);
  }
});

test('each altered bit of the asset part leaves the rest of the header intact', () => {
  const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
  const header = encodeHeader(keys, { ...sealed, asset });
  for (let bit = 0; bit < 189 * 8; bit++) {
    const decoded = decodeHeader(keys, withBit(header, bit));
    const byte = bit >>> 3;
    if (byte < 5 && bit !== 9) assert.equal(decoded, undefined, `bit ${bit}`);
    else if (byte < 89) assert.equal(decoded?.intact, false, `bit ${bit}`);
    else {
      assert.equal(decoded?.intact, true, `bit ${bit}`);
      assert.equal(decoded?.asset?.intact, false, `bit ${bit}`);
    }
  }
});

const uses = [
  [2, { isRecipient: true, isOffline: false }],
  [6, { isRecipient: true, isOffline: true }],
] as const;

test('a header says how what is behind it opens, and none of that can be changed', () => {
  for (const [flags, use] of uses) {
    for (const more of [{}, { asset }]) {
      const sealed = sealKeyHash(keys, ringId, keyId, systemRandom);
      const header = encodeHeader(keys, { ...sealed, ...more, use });
      const bytes = bytesOf(header);
      assert.equal(bytes[1], 'asset' in more ? flags | 1 : flags);
      const mac = createHmac('sha256', keys.key('header'));
      const first = mac.update('kms/header/v1').update(bytes.subarray(0, 77)).digest().subarray(0, 12);
      assert.equal(toHex(bytes.subarray(77, 89)), first.toString('hex'));
      const { reference, intact, ...said } = decodeHeader(keys, header) ?? assert.fail('not decoded');
      assert.deepEqual([reference, intact], [{ ringId, keyId }, true]);
      assert.deepEqual([said.isRecipient, said.isOffline], [use.isRecipient, use.isOffline]);
      const inspected = inspectHeader(header);
      assert.deepEqual([inspected?.isRecipient, inspected?.isOffline], [use.isRecipient, use.isOffline]);
      for (let bit = 0; bit < 89 * 8; bit++) assert.notEqual(decodeHeader(keys, withBit(header, bit))?.intact, true);
      for (let other = 0; other < 256; other++) {
        const made = decodeHeader(keys, toBase64Url(bytes.with(1, other)));
        if (other !== bytes[1]) assert.notEqual(made?.intact, true, `flags ${other}`);
      }
    }
  }
});

test('a share is of one hash and one tenant, and outlives new epochs', () => {
  const secret = systemRandom(32);
  const [old, rekeyed] = [keysOf([1], secret), keysOf([1, 2], secret)];
  const sealed = sealKeyHash(old, ringId, keyId, systemRandom);
  const header = encodeHeader(old, { ...sealed, use: uses[0][1] });
  const share = shareOf(old, header);
  const shareKey = createHmac('sha256', old.key('header')).update('kms/share/v1').digest();
  assert.equal(toHex(share), createHmac('sha256', shareKey).update(bytesOf(sealed.hash)).digest('hex'));
  assert.deepEqual(shareOf(rekeyed, header), share);
  assert.deepEqual(shareOf(old, encodeHeader(old, { ...sealed, asset, use: uses[0][1] })), share);
  const another = encodeHeader(old, { ...sealKeyHash(old, ringId, keyId, systemRandom), use: uses[0][1] });
  assert.notDeepEqual(shareOf(old, another), share);
  assert.notDeepEqual(shareOf(keysOf([1]), header), share);
});

test('spare bits of the last character are not spare', () => {
  const header = encodeHeader(keys, sealKeyHash(keys, ringId, keyId, systemRandom));
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(header.slice(-1));
  assert.equal(last & 3, 0);
  for (let spare = 1; spare < 4; spare++) {
    const text = header.slice(0, -1) + alphabet.charAt(last | spare);
    assert.equal(decodeHeader(keys, text), undefined);
    assert.equal(inspectHeader(text), undefined);
  }
});

test('an asset part moved to another header, or cut off, is found', () => {
  const one = encodeHeader(keys, { ...sealKeyHash(keys, ringId, keyId, systemRandom), asset });
  const two = encodeHeader(keys, { ...sealKeyHash(keys, ringId, keyId, systemRandom), asset });
  const mixed = decodeHeader(
    keys,
    toBase64Url(new Uint8Array([...bytesOf(one).subarray(0, 89), ...bytesOf(two).subarray(89)])),
  );
  assert.equal(mixed?.intact, true);
  assert.equal(mixed?.asset?.intact, false);
  const cut = bytesOf(one).slice(0, 89);
  assert.equal(decodeHeader(keys, toBase64Url(cut)), undefined);
  assert.equal(decodeHeader(keys, toBase64Url(cut.with(1, 0)))?.intact, false);
});

test('texts that are no header are not decodable, whatever their length', () => {
  const header = encodeHeader(keys, sealKeyHash(keys, ringId, keyId, systemRandom));
  for (let length = 0; length < header.length; length++)
    assert.equal(decodeHeader(keys, header.slice(0, length)), undefined);
  for (const text of [
    `${header}A`,
    `${header}AAAA`,
    `${header}=`,
    ` ${header}`,
    'A'.repeat(119),
    'A'.repeat(252),
    'x'.repeat(100_000),
  ]) {
    assert.equal(decodeHeader(keys, text), undefined);
    assert.equal(inspectHeader(text), undefined);
  }
});

test('headers follow the epoch of their hash', () => {
  const secret = systemRandom(32);
  const sealed = sealKeyHash(keysOf([1], secret), ringId, keyId, systemRandom);
  const rekeyed = keysOf([1, 2], secret);
  assert.equal(decodeHeader(rekeyed, encodeHeader(rekeyed, sealed))?.intact, true);
  assert.equal(decodeHeader(keysOf([2], secret), encodeHeader(rekeyed, sealed)), undefined);
  assert.equal(decodeHeader(keysOf([1]), encodeHeader(rekeyed, sealed))?.intact, false);
});
