// Cases of the specification, in our own words: the life of objects, their attributes, searches, batches and keys that
// work. Names in brackets are those of the cases in OASIS's collections that a test is about.
import assert from 'node:assert/strict';
import { createHash, createSign, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { toHex, utf8 } from '../../src/crypto/bytes.ts';
import { laterReasons, reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  all,
  boolean,
  byteString,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  interval,
  long,
  type Structure,
  structure,
  structureIn,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import {
  type Attr,
  attr,
  idIn,
  idsIn,
  KmipClient,
  materialIn,
  requestOf,
  resultsOf,
  template,
  uid,
  wrappingBy,
} from '../support/kmip-client.ts';
import { hex } from '../support/vectors.ts';

async function around(): Promise<{ readonly a: Appliance; readonly c: KmipClient & { readonly keyid: string } }> {
  const a = await testAppliance();
  return { a, c: await KmipClient.make(a, 'kmip.*') };
}

const type = (value: number): Item => enumeration(tags.objectType, value);
const revocation = (code: number): Item =>
  structure(tags.revocationReason, enumeration(tags.revocationReasonCode, code));
const seconds = (time: number): number => Math.floor(time / 1000);

interface KeyBlock {
  readonly tag?: number;
  readonly format?: number;
  readonly algorithm?: number;
  readonly bits?: number;
}

function keyObject(
  material: Uint8Array,
  { tag = tags.symmetricKey, format = 1, algorithm, bits }: KeyBlock = {},
): Item {
  return structure(
    tag,
    tag === tags.secretData ? enumeration(tags.secretDataType, 1) : undefined,
    structure(
      tags.keyBlock,
      enumeration(tags.keyFormatType, format),
      structure(tags.keyValue, byteString(tags.keyMaterial, material)),
      algorithm === undefined ? undefined : enumeration(tags.cryptographicAlgorithm, algorithm),
      bits === undefined ? undefined : integer(tags.cryptographicLength, bits),
    ),
  );
}

async function registered(c: KmipClient, objectType: number, object: Item, ...attributes: readonly Attr[]) {
  return idIn(await c.did('Register', [type(objectType), template(...attributes), object]));
}

async function aesOf(c: KmipClient, bytes: string, mask: number, ...more: readonly Attr[]): Promise<string> {
  const material = hex(bytes);
  const key = keyObject(material, { algorithm: 3, bits: material.length * 8 });
  const id = await registered(c, 2, key, ['Cryptographic Usage Mask', mask], ...more);
  await c.did('Activate', [uid(id)]);
  return id;
}

async function values(c: KmipClient, id: string, name: string): Promise<unknown[]> {
  return (await c.attribute(id, name)).map(({ value }) => value);
}

const locate = async (c: KmipClient, ...attributes: readonly Attr[]): Promise<readonly string[]> =>
  idsIn(
    await c.did(
      'Locate',
      attributes.map(([name, value]) => attr(name, value)),
    ),
  );

test('a key is made, found by type and name, handed out, and destroyed [3.1.1, 3.1.3]', async () => {
  const { c } = await around();
  const id = await c.aes(['Name', 'a key'], ['Cryptographic Length', 128]);
  assert.deepEqual(await locate(c, ['Object Type', 2], ['Name', 'a key']), [id]);
  assert.deepEqual(await locate(c, ['Object Type', 7], ['Name', 'a key']), []);
  assert.equal(materialIn(await c.did('Get', [uid(id)])).length, 16);
  assert.equal(idIn(await c.did('Destroy', [uid(id)])), id);
  assert.deepEqual(await locate(c, ['Name', 'a key']), []);
  assert.equal(await c.refused('Get', [uid(id)]), reasons.itemNotFound);
  assert.equal(await c.refused('Get', [uid(id)], { version: 20 }), laterReasons.objectDestroyed);
  assert.equal(await c.refused('Get', [uid('nothing')], { version: 20 }), laterReasons.objectNotFound);
});

test('an item that names no object means the one before it, if there is just one [3.1.4]', async () => {
  const { c } = await around();
  const id = await c.aes(['Name', 'one'], ['Object Group', 'two']);
  const both = (name: string, given: string) => [
    { operation: 'Locate', fields: [attr(name, given)] },
    { operation: 'Get' },
  ];
  const [found, got] = await c.batch(both('Name', 'one'));
  assert.equal(found?.status, 0);
  assert.equal(got && idIn(got.payload), id);
  await c.aes(['Object Group', 'two']);
  const [, none] = await c.batch(both('Object Group', 'two'));
  assert.equal(none?.reason, reasons.missingData);
  const [, missing] = await c.batch(both('Name', 'absent'));
  assert.equal(missing?.reason, reasons.missingData);
});

test('secret data and opaque objects are kept as they are [3.1.5, OMOS-M-1]', async () => {
  const { c } = await around();
  const secret = await registered(c, 7, keyObject(utf8('s3cret'), { tag: tags.secretData, format: 2 }));
  assert.equal(toHex(materialIn(await c.did('Get', [uid(secret)]), tags.secretData)), toHex(utf8('s3cret')));
  await c.did('Destroy', [uid(secret)]);
  const opaque = structure(
    tags.opaqueObject,
    enumeration(tags.opaqueDataType, 0x80000001),
    byteString(tags.opaqueDataValue, hex('00ff')),
  );
  const id = await registered(c, 8, opaque, ['Name', 'blob']);
  assert.deepEqual(structureIn(await c.did('Get', [uid(id)]), tags.opaqueObject), opaque);
  assert.deepEqual(await c.attribute(id, 'State'), []);
  assert.equal(await c.refused('Activate', [uid(id)]), reasons.illegalOperation);
  await c.did('Destroy', [uid(id)]);
});

test('a key goes through its states, and dates tell when [4.1, SKLC-M-1, SKLC-M-2, SKLC-M-3]', async () => {
  const { a, c } = await around();
  const id = await c.aes();
  assert.equal(await c.state(id), 1);
  a.advance(5000);
  await c.did('Activate', [uid(id)]);
  assert.equal(await c.state(id), 2);
  assert.deepEqual(await values(c, id, 'Activation Date'), [BigInt(seconds(a.world.now()))]);
  assert.equal(await c.refused('Activate', [uid(id)]), reasons.permissionDenied);
  assert.equal(await c.refused('Destroy', [uid(id)]), reasons.permissionDenied);
  assert.equal(await c.refused('Destroy', [uid(id)], { version: 20 }), laterReasons.wrongState);
  await c.did('Revoke', [uid(id), revocation(5)]);
  assert.equal(await c.state(id), 3);
  assert.equal((await values(c, id, 'Deactivation Date')).length, 1);
  await c.did('Revoke', [uid(id), revocation(2)]);
  assert.equal(await c.state(id), 4);
  for (const name of ['Compromise Date', 'Compromise Occurrence Date', 'Revocation Reason']) {
    assert.equal((await values(c, id, name)).length, 1, name);
  }
  await c.did('Add Attribute', [uid(id), attr('x-note', 'still changed')]);
  await c.did('Destroy', [uid(id)]);
  assert.equal(await c.state(id), 6);
  const other = await c.aes();
  assert.equal(await c.refused('Revoke', [uid(other), revocation(5)]), reasons.illegalOperation);
  await c.did('Destroy', [uid(other)]);
  assert.equal(await c.state(other), 5);
  assert.deepEqual(await locate(c, ['State', 5]), [other]);
  assert.deepEqual(await locate(c, ['State', 6]), [id]);
});

test('dates to come move a key by themselves, and limit what it does [CS-BC-M-14]', async () => {
  const { a, c } = await around();
  const now = seconds(a.world.now());
  const id = await c.aes(['Activation Date', now + 10], ['Deactivation Date', now + 20]);
  assert.equal(await c.state(id), 1);
  a.advance(10_000);
  assert.equal(await c.state(id), 2);
  assert.equal(await c.refused('Modify Attribute', [uid(id), attr('Activation Date', now)]), reasons.permissionDenied);
  a.advance(10_000);
  assert.equal(await c.state(id), 3);
  const later = await c.aes(['Activation Date', now], ['Process Start Date', now + 100]);
  const iv = byteString(tags.ivCounterNonce, new Uint8Array(16));
  const data = byteString(tags.data, new Uint8Array(16));
  assert.equal(await c.refused('Decrypt', [uid(later), data, iv]), reasons.permissionDenied);
  const stopped = await c.aes(['Activation Date', now], ['Protect Stop Date', now]);
  assert.equal(await c.refused('Encrypt', [uid(stopped), data]), reasons.permissionDenied);
  await c.did('Decrypt', [uid(stopped), data, iv]);
  const set = await c.aes();
  await c.did('Add Attribute', [uid(set), attr('Activation Date', now)]);
  assert.equal(await c.state(set), 2, 'a date that is over activates');
});

test('usage limits are counted down [5.1]', async () => {
  const { c } = await around();
  const limits = structure(
    tags.attributeValue,
    long(tags.usageLimitsTotal, 1000n),
    enumeration(tags.usageLimitsUnit, 1),
  );
  const id = await c.aes(['Usage Limits', limits]);
  const allocation = [uid(id), long(tags.usageLimitsCount, 500n)];
  assert.equal(await c.refused('Get Usage Allocation', allocation), reasons.illegalOperation, 'it is not active');
  await c.did('Activate', [uid(id)]);
  await c.did('Get Usage Allocation', allocation);
  await c.did('Get Usage Allocation', allocation);
  assert.equal(await c.refused('Get Usage Allocation', allocation), reasons.permissionDenied);
  const [left] = await c.attribute(id, 'Usage Limits');
  assert.equal(left?.type === 'structure' && fieldOf(left, tags.usageLimitsCount, 'long'), 0n);
  const unfit = await c.did('Check', [
    uid(id),
    long(tags.usageLimitsCount, 1n),
    integer(tags.cryptographicUsageMask, 1),
  ]);
  assert.equal(fieldOf(unfit, tags.usageLimitsCount, 'long'), 0n);
  assert.equal(fieldOf(unfit, tags.cryptographicUsageMask, 'integer'), 12);
  assert.deepEqual(idsIn(unfit), []);
  const allocate = (fit: string, count: bigint) =>
    c.refused('Get Usage Allocation', [uid(fit), long(tags.usageLimitsCount, count)]);
  assert.equal(await allocate(id, -5n), reasons.invalidField);
  assert.equal(await c.refused('Get Usage Allocation', [uid(id)]), reasons.invalidMessage);
  const unlimited = await c.aes(['Activation Date', 1]);
  assert.equal(await allocate(unlimited, 1n), reasons.illegalOperation);
  const decrypting = await c.aes(['Activation Date', 1], ['Usage Limits', limits], ['Cryptographic Usage Mask', 8]);
  assert.equal(await allocate(decrypting, 1n), reasons.illegalOperation);
  for (const code of [2, 5]) {
    const ended = await c.aes(['Activation Date', 1], ['Usage Limits', limits]);
    await c.did('Revoke', [uid(ended), revocation(code)]);
    assert.equal(await allocate(ended, 1n), reasons.illegalOperation);
  }
});

test('extensions of a message are ignored unless they are critical [7.1, 7.2]', async () => {
  const { c } = await around();
  const extended = (isCritical: boolean) => [
    {
      operation: 'Query',
      fields: [enumeration(tags.queryFunction, 1)],
      more: [
        structure(
          tags.messageExtension,
          text(tags.vendorIdentification, 'v'),
          boolean(tags.criticalityIndicator, isCritical),
          structure(0x42009c),
        ),
      ],
    },
  ];
  assert.equal((await c.batch(extended(false)))[0]?.status, 0);
  assert.equal((await c.batch(extended(true)))[0]?.reason, reasons.featureNotSupported);
});

async function pair(c: KmipClient, algorithm: number, more: readonly Attr[] = []): Promise<readonly [string, string]> {
  const named = (tag: number, ...attributes: readonly Attr[]): Structure => ({ ...template(...attributes), tag });
  const payload = await c.did('Create Key Pair', [
    named(tags.commonTemplateAttribute, ['Cryptographic Algorithm', algorithm], ['Name', 'pair'], ...more),
    named(tags.privateKeyTemplateAttribute, ['Cryptographic Usage Mask', 1]),
    named(tags.publicKeyTemplateAttribute, ['Cryptographic Usage Mask', 2]),
  ]);
  const [secret, open] = [tags.privateKeyUniqueIdentifier, tags.publicKeyUniqueIdentifier].map((tag) =>
    fieldOf(payload, tag, 'text'),
  );
  return [secret ?? '', open ?? ''];
}

const curve = (number: number): Attr => [
  'Cryptographic Domain Parameters',
  structure(tags.attributeValue, enumeration(tags.recommendedCurve, number)),
];

test('the halves of a pair are objects of their own, with links to each other [8.1, AKLC-M]', async () => {
  const { c } = await around();
  const [secret, open] = await pair(c, 6, [curve(7)]);
  assert.deepEqual(await locate(c, ['Object Type', 4], ['Name', 'pair']), [secret]);
  assert.deepEqual(await locate(c, ['Object Type', 3], ['Name', 'pair']), [open]);
  for (const [id, linked] of [
    [secret, open],
    [open, secret],
  ] as const) {
    const [link] = await c.attribute(id, 'Link');
    assert.equal(link?.type === 'structure' && fieldOf(link, tags.linkedObjectIdentifier, 'text'), linked);
  }
  for (const id of [secret, open]) await c.did('Activate', [uid(id)]);
  const message = byteString(tags.data, utf8('message'));
  const signature = fieldOf(await c.did('Sign', [uid(secret), message]), tags.signatureData, 'bytes');
  assert.ok(signature);
  const valid = (bytes: Uint8Array, given = message) =>
    c.did('Signature Verify', [uid(open), given, byteString(tags.signatureData, bytes)]);
  assert.equal(fieldOf(await valid(signature), tags.validityIndicator, 'enumeration'), 1);
  const other = byteString(tags.data, utf8('other'));
  assert.equal(fieldOf(await valid(signature, other), tags.validityIndicator, 'enumeration'), 2);
  assert.equal(await c.refused('Sign', [uid(open), message]), reasons.permissionDenied);
  for (const id of [secret, open]) await c.did('Revoke', [uid(id), revocation(5)]);
  await c.did('Destroy', [uid(secret)]);
  assert.equal(await c.state(open), 3);
});

test('keys of RSA and of curves come out as they came in, and in other formats [13.1, ECC-1]', async () => {
  const { c } = await around();
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const cases = [
    [4, 3, rsa.privateKey.export({ type: 'pkcs1', format: 'der' })],
    [4, 4, rsa.privateKey.export({ type: 'pkcs8', format: 'der' })],
    [3, 3, rsa.publicKey.export({ type: 'pkcs1', format: 'der' })],
    [3, 5, rsa.publicKey.export({ type: 'spki', format: 'der' })],
    [4, 6, ec.privateKey.export({ type: 'sec1', format: 'der' })],
    [4, 4, ec.privateKey.export({ type: 'pkcs8', format: 'der' })],
    [3, 5, ec.publicKey.export({ type: 'spki', format: 'der' })],
  ] as const;
  for (const [objectType, format, der] of cases) {
    const tag = objectType === 4 ? tags.privateKey : tags.publicKey;
    const bytes = new Uint8Array(der);
    const id = await registered(c, objectType, keyObject(bytes, { tag, format }), ['Cryptographic Usage Mask', 3]);
    assert.equal(toHex(materialIn(await c.did('Get', [uid(id)]), tag)), toHex(bytes), `${objectType} ${format}`);
    const [digest] = await c.attribute(id, 'Digest');
    assert.deepEqual(
      digest?.type === 'structure' && fieldOf(digest, tags.digestValue, 'bytes'),
      new Uint8Array(createHash('sha256').update(der).digest()),
    );
  }
  const pkcs1 = new Uint8Array(rsa.privateKey.export({ type: 'pkcs1', format: 'der' }));
  const id = await registered(c, 4, keyObject(pkcs1, { tag: tags.privateKey, format: 3 }), [
    'Cryptographic Usage Mask',
    1,
  ]);
  const other = await c.did('Get', [uid(id), enumeration(tags.keyFormatType, 4)]);
  const pkcs8 = rsa.privateKey.export({ type: 'pkcs8', format: 'der' });
  assert.equal(toHex(materialIn(other, tags.privateKey)), toHex(new Uint8Array(pkcs8)));
  const transparent = await c.did('Get', [uid(id), enumeration(tags.keyFormatType, 0x0a)]);
  const object = structureIn(transparent, tags.privateKey);
  const value = structureIn(structureIn(object, tags.keyBlock), tags.keyValue);
  assert.ok(object && fieldOf(structureIn(value, tags.keyMaterial), tags.modulus, 'big'));
  const again = await registered(c, 4, object, ['Cryptographic Usage Mask', 1]);
  const back = await c.did('Get', [uid(again), enumeration(tags.keyFormatType, 3)]);
  assert.equal(toHex(materialIn(back, tags.privateKey)), toHex(pkcs1));
  assert.equal(
    await c.refused('Get', [uid(id), enumeration(tags.keyFormatType, 6)]),
    reasons.keyFormatTypeNotSupported,
  );
  const strange = await registered(c, 4, keyObject(hex('0102'), { tag: tags.privateKey, format: 4 }), [
    'Cryptographic Usage Mask',
    1,
  ]);
  assert.equal(toHex(materialIn(await c.did('Get', [uid(strange)]), tags.privateKey)), '0102');
});

test('a replaced key gives its name away; both tell of each other [9.1, 9.2, 9.4]', async () => {
  const { a, c } = await around();
  const now = seconds(a.world.now());
  const id = await c.aes(
    ['Name', 'rotated'],
    ['Object Group', 'g'],
    ['Activation Date', now],
    ['Deactivation Date', now + 100],
  );
  const old = materialIn(await c.did('Get', [uid(id)]));
  a.advance(50_000);
  const next = idIn(await c.did('Re-key', [uid(id)]));
  assert.notEqual(next, id);
  assert.deepEqual(await locate(c, ['Name', 'rotated']), [next]);
  assert.deepEqual(await values(c, id, 'Name'), []);
  assert.equal(await c.state(id), 2, 'the old one stays what it was');
  assert.equal(await c.state(next), 2, 'without an offset dates are copied');
  assert.deepEqual(await values(c, next, 'Object Group'), ['g']);
  assert.notEqual(toHex(materialIn(await c.did('Get', [uid(next)]))), toHex(old));
  const link = async (from: string): Promise<unknown> => {
    const [item] = await c.attribute(from, 'Link');
    return (
      item?.type === 'structure' && [
        fieldOf(item, tags.linkType, 'enumeration'),
        fieldOf(item, tags.linkedObjectIdentifier, 'text'),
      ]
    );
  };
  assert.deepEqual(await link(id), [0x106, next]);
  assert.deepEqual(await link(next), [0x107, id]);
  assert.equal(await c.refused('Re-key', [uid(id)]), reasons.invalidField);
  const later = idIn(await c.did('Re-key', [uid(next), interval(tags.offset, 0)]));
  const [activation] = await values(c, later, 'Activation Date');
  assert.equal(activation, BigInt(now + 50));
  assert.deepEqual(await values(c, later, 'Deactivation Date'), [BigInt(now + 150)]);
  const offset = interval(tags.offset, 0);
  const beyond = template(['Activation Date', now + 1000]);
  assert.equal(await c.refused('Re-key', [uid(later), offset, beyond]), reasons.invalidField, 'after the end');
  const dates = template(['Activation Date', now + 1000], ['Deactivation Date', now + 2000]);
  const own = idIn(await c.did('Re-key', [uid(later), offset, dates]));
  assert.equal(await c.state(own), 1, 'dates of the request win');
});

test('a pair is replaced as one', async () => {
  const { c } = await around();
  const [secret, open] = await pair(c, 6, [curve(7)]);
  const payload = await c.did('Re-key Key Pair', [text(tags.privateKeyUniqueIdentifier, secret)]);
  const newSecret = fieldOf(payload, tags.privateKeyUniqueIdentifier, 'text') ?? '';
  const newOpen = fieldOf(payload, tags.publicKeyUniqueIdentifier, 'text') ?? '';
  assert.deepEqual(await locate(c, ['Object Type', 4], ['Name', 'pair']), [newSecret]);
  assert.deepEqual(await locate(c, ['Object Type', 3], ['Name', 'pair']), [newOpen]);
  assert.notEqual(newSecret, secret);
  assert.notEqual(newOpen, open);
});

test('what is archived is not there until it is recovered [10.1]', async () => {
  const { c } = await around();
  const id = await c.aes(['Name', 'old']);
  await c.did('Archive', [uid(id)]);
  assert.equal(await c.refused('Get', [uid(id)]), reasons.objectArchived);
  assert.deepEqual(await locate(c, ['Name', 'old']), []);
  const all_ = await c.did('Locate', [integer(tags.storageStatusMask, 2), attr('Name', 'old')]);
  assert.deepEqual(idsIn(all_), [id]);
  assert.equal((await values(c, id, 'Archive Date')).length, 1);
  await c.did('Recover', [uid(id)]);
  await c.did('Get', [uid(id)]);
});

test('an answer is no longer than the client says, and then nothing was done [12.1]', async () => {
  const { c } = await around();
  const header = (bytes: number) => ({ header: [integer(tags.maximumResponseSize, bytes)] });
  const functions = [enumeration(tags.queryFunction, 1), enumeration(tags.queryFunction, 2)];
  const short = await c.ask('Query', functions, header(256));
  assert.deepEqual([short.reason, short.operation], [reasons.responseTooLarge, 0x18]);
  await c.did('Query', functions, header(2048));
  const create = [
    type(2),
    template(['Cryptographic Algorithm', 3], ['Cryptographic Length', 256], ['Cryptographic Usage Mask', 12]),
  ];
  assert.equal(await c.refused('Create', create, header(100)), reasons.responseTooLarge);
  assert.deepEqual(await locate(c), []);
});

test('keys leave wrapped [14.1, 14.2]', async () => {
  const { a, c } = await around();
  const kek = await aesOf(c, '000102030405060708090a0b0c0d0e0f', 0x10);
  const key = await aesOf(c, '00112233445566778899aabbccddeeff', 12, ['Name', 'wrapped']);
  const specification = (...more: readonly Item[]) => wrappingBy(kek, ...more);
  const plain = await c.did('Get', [uid(key), specification(enumeration(tags.encodingOption, 1))]);
  const block = structureIn(structureIn(plain, tags.symmetricKey), tags.keyBlock);
  assert.equal(
    toHex(fieldOf(block, tags.keyValue, 'bytes') ?? new Uint8Array()),
    '1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5',
    "RFC 3394's vector",
  );
  assert.equal(fieldOf(structureIn(block, tags.keyWrappingData), tags.encodingOption, 'enumeration'), 1);
  const props = { kmipWrappedKeyValue: 'structure' };
  assert.equal((await a.call('PUT', '/auth/apikeyid', { apikeyid: c.keyid, op: 'merge', props })).status, 200);
  const nested = await c.did('Get', [uid(key), specification(enumeration(tags.encodingOption, 1))]);
  assert.equal(toHex(materialIn(nested)), '1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5', 'as PyKMIP reads it');
  const attributes = specification(text(tags.attributeName, 'Name'));
  const ttlv = await c.did('Get', [uid(key), attributes]);
  assert.ok(fieldOf(structureIn(structureIn(ttlv, tags.symmetricKey), tags.keyBlock), tags.keyValue, 'bytes'));
  const both = specification(text(tags.attributeName, 'Name'), enumeration(tags.encodingOption, 1));
  assert.equal(await c.refused('Get', [uid(key), both]), reasons.encodingOptionError);
  const wrapped = structureIn(plain, tags.symmetricKey);
  assert.ok(wrapped);
  const id = await registered(c, 2, wrapped, ['Cryptographic Usage Mask', 12]);
  const again = structureIn(await c.did('Get', [uid(id)]), tags.symmetricKey);
  assert.deepEqual(again, wrapped, 'what came wrapped leaves as it came');
});

test('versions are told, newest first, of those asked for [16.1]', async () => {
  const { c } = await around();
  const version = (major: number, minor: number) =>
    structure(
      tags.protocolVersion,
      integer(tags.protocolVersionMajor, major),
      integer(tags.protocolVersionMinor, minor),
    );
  const told = async (...asked: Item[]) =>
    all(await c.did('Discover Versions', asked, { version: 11 }), tags.protocolVersion).length;
  assert.equal(await told(), 7);
  assert.equal(await told(version(1, 2)), 1);
  assert.equal(await told(version(9, 9)), 0);
  assert.equal(await c.refused('Discover Versions', [], { version: 10 }), reasons.operationNotSupported);
});

test('attributes have indexes that stay theirs [17.1]', async () => {
  const { c } = await around();
  const id = await c.aes();
  for (const name of ['a', 'b', 'c']) await c.did('Add Attribute', [uid(id), attr('Object Group', name)]);
  await c.did('Delete Attribute', [uid(id), text(tags.attributeName, 'Object Group'), integer(tags.attributeIndex, 1)]);
  const payload = await c.did('Get Attributes', [uid(id), text(tags.attributeName, 'Object Group')]);
  const indexes = all(payload, tags.attribute).map(
    (each) => each.type === 'structure' && (fieldOf(each, tags.attributeIndex, 'integer') ?? 0),
  );
  assert.deepEqual(indexes, [0, 2]);
  const twice = [uid(id), text(tags.attributeName, 'State'), text(tags.attributeName, 'State')];
  assert.equal(await c.refused('Get Attributes', twice), reasons.invalidMessage);
  const modified = (name: string, value: Attr[1], index?: number) => [uid(id), attr(name, value, index)];
  assert.equal(await c.refused('Modify Attribute', modified('Object Group', 'd', 1)), reasons.itemNotFound);
  assert.equal(await c.refused('Modify Attribute', modified('Contact Information', 'd')), reasons.invalidField);
  assert.equal(await c.refused('Modify Attribute', modified('State', 2)), reasons.permissionDenied);
  assert.equal(await c.refused('Add Attribute', modified('Object Group', 'a')), reasons.illegalOperation);
  assert.equal(await c.refused('Add Attribute', modified('Object Group', 'e', 7)), reasons.invalidField);
  assert.equal(await c.refused('Add Attribute', modified('Nonsense', 'e')), reasons.invalidField);
  const missing = [uid(id), text(tags.attributeName, 'Contact Information')];
  assert.equal(await c.refused('Delete Attribute', missing), reasons.itemNotFound);
  assert.equal(
    await c.refused('Delete Attribute', [uid(id), text(tags.attributeName, 'State')]),
    reasons.permissionDenied,
  );
  const custom: readonly Attr[] = Array.from({ length: 51 }, (_, n): Attr => [`x-${n}`, 'v']);
  for (const [n, [name, given]] of custom.entries()) {
    const { status } = await c.ask('Add Attribute', [uid(id), attr(name, given)]);
    assert.equal(status, n < 50 ? 0 : 1, name);
  }
});

test('names are compared byte by byte [TC-I18N]', async () => {
  const { c } = await around();
  const names = ['Ωμέγα', '密钥', '🔑', 'é', 'e\u0301'];
  const ids = new Map<string, string>();
  for (const name of names) ids.set(name, await c.aes(['Name', name]));
  for (const name of names) assert.deepEqual(await locate(c, ['Name', name]), [ids.get(name)], name);
  const taken = [type(2), template(['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12], ['Name', '🔑'])];
  assert.equal(await c.refused('Create', taken), reasons.invalidField);
});

test('a search finds what has all of the attributes, newest first', async () => {
  const { a, c } = await around();
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) {
    ids.push(await c.aes(['Cryptographic Length', n % 2 === 0 ? 128 : 256], ['Object Group', 'g']));
    a.advance(10_000);
  }
  const [one, , three, , five] = ids;
  assert.deepEqual(await locate(c, ['Object Group', 'g'], ['Cryptographic Length', 128]), [five, three, one]);
  assert.deepEqual(await locate(c, ['Cryptographic Usage Mask', 4]), ids.toReversed());
  assert.deepEqual(await locate(c, ['Cryptographic Usage Mask', 5]), []);
  const first = idsIn(await c.did('Locate', [integer(tags.maximumItems, 2)]));
  assert.deepEqual(first, ids.toReversed().slice(0, 2));
  const page = await c.did('Locate', [integer(tags.maximumItems, 2), integer(tags.offsetItems, 1)]);
  assert.deepEqual(idsIn(page), ids.toReversed().slice(1, 3));
  assert.equal(fieldOf(page, tags.locatedItems, 'integer'), 5);
  const [made] = await values(c, three ?? '', 'Initial Date');
  const range: readonly Attr[] = [
    ['Initial Date', Number(made)],
    ['Initial Date', Number(made) + 10],
  ];
  assert.deepEqual(await locate(c, ...range), [ids[3], three]);
  assert.deepEqual(idsIn(await c.did('Locate', [template(['Cryptographic Length', 256])])), [ids[3], ids[1]]);
});

test('a batch stops, goes on, or is undone, at the first failure [AX-M, BL-M-2]', async () => {
  const { a, c } = await around();
  const create = {
    operation: 'Create',
    fields: [type(2), template(['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12])],
  };
  const broken = { operation: 'Get', fields: [uid('nothing')] };
  const option = (value: number) => ({ header: [enumeration(tags.batchErrorContinuationOption, value)] });
  const stopped = await c.batch([create, broken, create], option(2));
  assert.deepEqual(
    stopped.map(({ status }) => status),
    [0, 1],
  );
  const went = await c.batch([create, broken, create], option(1));
  assert.deepEqual(
    went.map(({ status }) => status),
    [0, 1, 0],
  );
  assert.equal((await locate(c)).length, 3);
  const undone = await c.batch([create, broken, create], option(3));
  assert.deepEqual(
    undone.map(({ status }) => status),
    [3, 1],
  );
  assert.equal((await locate(c)).length, 3);
  const whole = await c.batch([create, create], option(3));
  assert.deepEqual(
    whole.map(({ status }) => status),
    [0, 0],
  );
  const records = (await a.activity()).filter(({ props }) => props.dialect === 'kmip');
  const taken = records.filter(({ props }) => props.undone === true);
  assert.equal(taken.length, 1);
  assert.equal(taken[0]?.props.operation, 'Create');
  assert.equal(taken[0]?.status, 409, 'a list of records shows that it was not done');
});

const parameters = (...items: readonly Item[]): Item => structure(tags.cryptographicParameters, items);
const bytesIn = (payload: Structure, tag: number): Uint8Array => fieldOf(payload, tag, 'bytes') ?? new Uint8Array();

test('known keys give known ciphertexts in each mode [CS-BC-M]', async () => {
  const { c } = await around();
  // NIST SP 800-38A, F.1.1, F.2.1, F.5.1: the first block.
  const key = await aesOf(c, '2b7e151628aed2a6abf7158809cf4f3c', 12);
  const plain = hex('6bc1bee22e409f96e93d7e117393172a');
  const cases = [
    [2, undefined, '3ad77bb40d7a3660a89ecaf32466ef97'],
    [1, '000102030405060708090a0b0c0d0e0f', '7649abac8119b246cee98e9b12e9197d'],
    [6, 'f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff', '874d6191b620e3261bef6864990db6ce'],
  ] as const;
  for (const [mode, iv, expected] of cases) {
    const how = parameters(enumeration(tags.blockCipherMode, mode));
    const vector = iv === undefined ? [] : [byteString(tags.ivCounterNonce, hex(iv))];
    const sealed = await c.did('Encrypt', [uid(key), how, byteString(tags.data, plain), ...vector]);
    assert.equal(toHex(bytesIn(sealed, tags.data)), expected);
    const opened = await c.did('Decrypt', [uid(key), how, byteString(tags.data, hex(expected)), ...vector]);
    assert.deepEqual(bytesIn(opened, tags.data), plain);
  }
  const data = byteString(tags.data, utf8('hello'));
  const cbc = (padding: number) =>
    parameters(enumeration(tags.blockCipherMode, 1), enumeration(tags.paddingMethod, padding));
  for (const padding of [3, 6]) {
    const made = await c.did('Encrypt', [uid(key), cbc(padding), data]);
    const iv = byteString(tags.ivCounterNonce, bytesIn(made, tags.ivCounterNonce));
    const sealed = byteString(tags.data, bytesIn(made, tags.data));
    const opened = await c.did('Decrypt', [uid(key), cbc(padding), sealed, iv]);
    assert.equal(toHex(bytesIn(opened, tags.data)), toHex(utf8('hello')));
    assert.equal(await c.refused('Decrypt', [uid(key), cbc(padding), sealed]), reasons.invalidMessage);
  }
  assert.equal(await c.refused('Encrypt', [uid(key), cbc(1), data]), reasons.cryptographicFailure);
  const noVector = parameters(enumeration(tags.blockCipherMode, 1), boolean(tags.randomIv, false));
  assert.equal(await c.refused('Encrypt', [uid(key), noVector, byteString(tags.data, plain)]), reasons.missingData);
});

test('GCM has associated data, tags of several lengths, and refuses what was changed [CS-BC-M-GCM]', async () => {
  const { c } = await around();
  const own = structure(tags.attributeValue, enumeration(tags.blockCipherMode, 9));
  const key = await aesOf(c, '00'.repeat(32), 12, ['Cryptographic Parameters', own]);
  const associated = byteString(tags.additionalData, utf8('with'));
  const data = byteString(tags.data, utf8('message'));
  for (const length of [12, 13, 14, 15, 16]) {
    const how = parameters(enumeration(tags.blockCipherMode, 9), integer(tags.tagLength, length));
    const made = await c.did('Encrypt', [uid(key), how, data, associated]);
    const tag = bytesIn(made, tags.authenticationTag);
    assert.equal(tag.length, length);
    const rest = [
      byteString(tags.data, bytesIn(made, tags.data)),
      byteString(tags.ivCounterNonce, bytesIn(made, tags.ivCounterNonce)),
    ];
    const open = (given: Uint8Array) =>
      c.ask('Decrypt', [uid(key), how, ...rest, associated, byteString(tags.authenticationTag, given)]);
    assert.equal(toHex(bytesIn((await open(tag)).payload, tags.data)), toHex(utf8('message')));
    const changed = Uint8Array.from(tag, (byte, n) => (n === 0 ? byte ^ 1 : byte));
    assert.equal((await open(changed)).reason, reasons.cryptographicFailure);
  }
  const usual = await c.did('Encrypt', [uid(key), data], { version: 12 });
  const sealed = bytesIn(usual, tags.data);
  assert.equal(sealed.length, 'message'.length + 16, 'before 1.4 the tag is behind the data');
  const iv = byteString(tags.ivCounterNonce, bytesIn(usual, tags.ivCounterNonce));
  const opened = await c.did('Decrypt', [uid(key), byteString(tags.data, sealed), iv], { version: 12 });
  assert.equal(toHex(bytesIn(opened, tags.data)), toHex(utf8('message')));
});

test('signatures, MACs and hashes are those of others [CS-AC-M, CS-RNG-M]', async () => {
  const { c } = await around();
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const der = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }));
  const id = await registered(c, 3, keyObject(der, { tag: tags.publicKey, format: 5 }), [
    'Cryptographic Usage Mask',
    2,
  ]);
  await c.did('Activate', [uid(id)]);
  const message = utf8('signed elsewhere');
  const signature = new Uint8Array(createSign('sha256').update(message).sign(privateKey));
  const how = parameters(enumeration(tags.digitalSignatureAlgorithm, 5));
  const given = [byteString(tags.data, message), byteString(tags.signatureData, signature)];
  const verified = await c.did('Signature Verify', [uid(id), how, ...given]);
  assert.equal(fieldOf(verified, tags.validityIndicator, 'enumeration'), 1);
  const digest = new Uint8Array(createHash('sha256').update(message).digest());
  const hashed = [byteString(tags.digestedData, digest), byteString(tags.signatureData, signature)];
  assert.equal(
    fieldOf(await c.did('Signature Verify', [uid(id), how, ...hashed]), tags.validityIndicator, 'enumeration'),
    1,
  );
  // RFC 4231, test case 1.
  const key = keyObject(hex('0b'.repeat(20)), { algorithm: 9, bits: 160 });
  const mac = await registered(c, 2, key, ['Cryptographic Usage Mask', 0x180]);
  await c.did('Activate', [uid(mac)]);
  const data = byteString(tags.data, utf8('Hi There'));
  const made = bytesIn(await c.did('MAC', [uid(mac), data]), tags.macData);
  assert.equal(toHex(made), 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7');
  const isValid = async (bytes: Uint8Array) =>
    fieldOf(
      await c.did('MAC Verify', [uid(mac), data, byteString(tags.macData, bytes)]),
      tags.validityIndicator,
      'enumeration',
    );
  assert.equal(await isValid(made), 1);
  assert.equal(await isValid(made.subarray(1)), 2);
  const sha = await c.did('Hash', [
    parameters(enumeration(tags.hashingAlgorithm, 6)),
    byteString(tags.data, utf8('abc')),
  ]);
  assert.equal(toHex(bytesIn(sha, tags.data)), createHash('sha256').update('abc').digest('hex'));
  assert.equal(bytesIn(await c.did('RNG Retrieve', [integer(tags.dataLength, 33)]), tags.data).length, 33);
});

test('keys are derived as by others', async () => {
  const { c } = await around();
  const password = keyObject(utf8('password'), { tag: tags.secretData, format: 2 });
  const base = await registered(c, 7, password, ['Cryptographic Usage Mask', 0x200]);
  await c.did('Activate', [uid(base)]);
  const derived = async (method: number, bits: number, ...items: readonly Item[]): Promise<string> => {
    const id = idIn(
      await c.did('Derive Key', [
        type(2),
        uid(base),
        enumeration(tags.derivationMethod, method),
        structure(tags.derivationParameters, items),
        template(['Cryptographic Length', bits], ['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12]),
      ]),
    );
    return toHex(materialIn(await c.did('Get', [uid(id)])));
  };
  const salt = byteString(tags.salt, utf8('salt'));
  // RFC 6070, the second case.
  const iterated = await derived(1, 128, salt, integer(tags.iterationCount, 2));
  assert.equal(iterated, 'ea6c014dc72d6f8ccd1ed92ace1d41f0');
  const sha = parameters(enumeration(tags.hashingAlgorithm, 6));
  assert.equal(await derived(2, 256, sha), createHash('sha256').update('password').digest('hex'));
  const many = [type(2), uid(base), enumeration(tags.derivationMethod, 1)];
  const rounds = structure(tags.derivationParameters, salt, integer(tags.iterationCount, 2 ** 31 - 1));
  const wanted = template(['Cryptographic Length', 128], ['Cryptographic Algorithm', 3]);
  assert.equal(await c.refused('Derive Key', [...many, rounds, wanted]), reasons.invalidField);
});

test('who may have a value is said once, and not taken back', async () => {
  const { c } = await around();
  const kept = await c.aes(['Extractable', false]);
  assert.equal(await c.refused('Get', [uid(kept)]), reasons.notExtractable);
  assert.equal(await c.refused('Get', [uid(kept)], { version: 13 }), reasons.permissionDenied);
  assert.equal(await c.refused('Modify Attribute', [uid(kept), attr('Extractable', true)]), reasons.permissionDenied);
  assert.deepEqual(await values(c, kept, 'Never Extractable'), [true]);
  const sensitive = await c.aes(['Sensitive', true]);
  assert.equal(await c.refused('Get', [uid(sensitive)]), reasons.sensitive);
  assert.equal(
    await c.refused('Modify Attribute', [uid(sensitive), attr('Sensitive', false)]),
    reasons.permissionDenied,
  );
  const open = await c.aes();
  await c.did('Modify Attribute', [uid(open), attr('Extractable', false)]);
  assert.equal(await c.refused('Get', [uid(open)]), reasons.notExtractable);
  assert.deepEqual(await values(c, open, 'Never Extractable'), [false]);
});

test('clients of a version see its attributes alone, and those of 2.0 by their tags', async () => {
  const { c } = await around();
  const id = await c.aes(['Name', 'n'], ['x-note', 'mine'], ['Sensitive', false]);
  const names = async (version: number): Promise<readonly unknown[]> =>
    all(await c.did('Get Attribute List', [uid(id)], { version }), tags.attributeName).map(({ value }) => value);
  assert.ok(!(await names(10)).includes('Fresh'));
  assert.ok((await names(11)).includes('Fresh'));
  assert.ok(!(await names(13)).includes('Sensitive'));
  assert.ok((await names(14)).includes('x-note'));
  const payload = await c.did('Get Attributes', [uid(id)], { version: 20 });
  const set = structureIn(payload, tags.attributes);
  assert.equal(fieldOf(structureIn(set, tags.name), tags.nameValue, 'text'), 'n');
  assert.equal(fieldOf(set, tags.cryptographicLength, 'integer'), 256);
  const own = structureIn(set, tags.attribute);
  assert.equal(fieldOf(own, tags.vendorIdentification, 'text'), 'x');
  assert.equal(fieldOf(own, tags.attributeName, 'text'), 'note');
});

test('an operation of a later version, and one that nobody knows, are not supported', async () => {
  const { c } = await around();
  assert.equal(await c.refused('Encrypt', [], { version: 11 }), reasons.operationNotSupported);
  assert.equal(await c.refused('6'), reasons.operationNotSupported, 'Certify');
  assert.equal(await c.refused('9999'), reasons.operationNotSupported);
  const answer = await c.send(encodeItem(requestOf([{ operation: 'Query' }], { version: 30 })));
  assert.ok(answer);
  assert.deepEqual(
    resultsOf(answer).map(({ reason, operation }) => [reason, operation]),
    [[reasons.invalidMessage, undefined]],
  );
});
