// Batches: what their items mean by earlier ones, and how much work one message has done.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { byteString, enumeration, fieldOf, type Item, integer, long, structure } from '../../src/dialects/kmip/ttlv.ts';
import { testAppliance } from '../support/appliance.ts';
import {
  type Asked,
  type Attr,
  attr,
  idIn,
  idsIn,
  KmipClient,
  materialIn,
  template,
  uid,
  wrappingBy,
} from '../support/kmip-client.ts';

const meant = (number: number): Item => enumeration(tags.uniqueIdentifier, number);
const goOn = { header: [enumeration(tags.batchErrorContinuationOption, 1)] };

const aesFields = (...more: readonly Attr[]) => [
  enumeration(tags.objectType, 2),
  template(['Cryptographic Algorithm', 3], ['Cryptographic Length', 256], ['Cryptographic Usage Mask', 12], ...more),
];

const pairOf = (...given: readonly Attr[]): Asked => ({
  operation: 'Create Key Pair',
  fields: [{ ...template(['Cryptographic Usage Mask', 3], ...given), tag: tags.commonTemplateAttribute }],
});
const rsa = pairOf(['Cryptographic Algorithm', 4], ['Cryptographic Length', 2048]);
const curve = pairOf(
  ['Cryptographic Algorithm', 6],
  ['Cryptographic Domain Parameters', structure(tags.attributeValue, enumeration(tags.recommendedCurve, 7))],
);

/** The same in 2.x. */
const create2: Asked = {
  operation: 'Create',
  fields: [
    enumeration(tags.objectType, 2),
    structure(
      tags.attributes,
      enumeration(tags.cryptographicAlgorithm, 3),
      integer(tags.cryptographicLength, 256),
      integer(tags.cryptographicUsageMask, 12),
    ),
  ],
};
const pair2: Asked = {
  operation: 'Create Key Pair',
  fields: [
    structure(
      tags.commonAttributes,
      enumeration(tags.cryptographicAlgorithm, 6),
      structure(tags.cryptographicDomainParameters, enumeration(tags.recommendedCurve, 7)),
      integer(tags.cryptographicUsageMask, 3),
    ),
  ],
};

test('enumerations of 2.x mean the object that the operation of that name made, and no other', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const version = 21;
  const ask = async (number: number) => {
    const told = await c.batch([create2, pair2, { operation: 'Get Attribute List', fields: [meant(number)] }], {
      version,
    });
    const [made, pair, last] = told;
    assert.ok(made?.status === 0 && pair?.status === 0 && last, `${made?.message} ${pair?.message}`);
    const ids = {
      created: fieldOf(made.payload, tags.uniqueIdentifier, 'text'),
      secret: fieldOf(pair.payload, tags.privateKeyUniqueIdentifier, 'text'),
      open: fieldOf(pair.payload, tags.publicKeyUniqueIdentifier, 'text'),
    };
    return { ids, id: fieldOf(last.payload, tags.uniqueIdentifier, 'text'), reason: last.reason };
  };
  for (const [number, name] of [
    [1, 'secret'],
    [3, 'created'],
    [4, 'secret'],
    [5, 'secret'],
    [6, 'open'],
  ] as const) {
    const { ids, id } = await ask(number);
    assert.ok(id !== undefined && id === ids[name], `${number}`);
  }
  for (const number of [8, 0x0b, 0x0c, 0x0d, 0x11]) assert.equal((await ask(number)).reason, reasons.missingData);
  for (const number of [0, 2, 7, 9, 0x0a, 0x0e, 0x12, 0xffff, 0x8000_0001]) {
    assert.equal((await ask(number)).reason, reasons.invalidField, `${number}`);
  }
});

test('the searches of a message end after so many objects, and one search goes through all', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  await c.batch(Array.from({ length: 90 }, () => ({ operation: 'Create', fields: aesFields() })));
  const none = { operation: 'Locate', fields: [attr('x-none', 'a')] };
  const told = await c.batch(
    Array.from({ length: 100 }, () => none),
    goOn,
  );
  const done = told.filter(({ status }) => status === 0).length;
  assert.ok(done >= 5000 / 90 && done <= 5000 / 90 + 1, `${done}`);
  assert.ok(told.slice(done).every(({ reason, message }) => reason === reasons.permissionDenied && message));
  assert.equal(idsIn(await c.did('Locate')).length, 90);
  const named = { operation: 'Locate', fields: [attr('Name', 'none')] };
  const few = await c.batch(Array.from({ length: 100 }, () => named));
  assert.ok(
    few.every(({ status }) => status === 0),
    'searches by name look at the objects of that name alone',
  );
});

/** @param id that of the base; absent for the object before. */
const derive = (id: string | undefined, rounds: number, bits: number, ...more: readonly Attr[]): Asked => ({
  operation: 'Derive Key',
  fields: [
    enumeration(tags.objectType, 2),
    ...(id === undefined ? [] : [uid(id)]),
    enumeration(tags.derivationMethod, 1),
    structure(
      tags.derivationParameters,
      structure(tags.cryptographicParameters, enumeration(tags.hashingAlgorithm, 6)),
      byteString(tags.salt, new Uint8Array(8)),
      integer(tags.iterationCount, rounds),
    ),
    template(['Cryptographic Algorithm', 3], ['Cryptographic Length', bits], ...more),
  ],
});

async function base(c: KmipClient): Promise<string> {
  return c.aes(['Cryptographic Usage Mask', 0x20c], ['Activation Date', 1]);
}

test('rounds of PBKDF2 count for each block, of an item and of a message', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const id = await base(c);
  const [long] = await c.batch([derive(id, 1_000_001, 256)]);
  assert.deepEqual([long?.status, long?.reason], [1, reasons.invalidField]);
  const [wide] = await c.batch([derive(id, 200_000, 32_768)]);
  assert.deepEqual([wide?.status, wide?.reason], [1, reasons.invalidField], 'long keys have many blocks');
  const together = await c.batch([derive(id, 10, 256), derive(id, 1_000_000, 256), derive(id, 1, 256)], goOn);
  assert.deepEqual(
    together.map(({ status }) => status),
    [0, 1, 1],
    'the sum counts',
  );
  const chain = await c.batch([
    derive(id, 10, 256, ['Cryptographic Usage Mask', 0x20c], ['Activation Date', 1]),
    ...Array.from({ length: 5 }, () =>
      derive(undefined, 10, 256, ['Cryptographic Usage Mask', 0x20c], ['Activation Date', 1]),
    ),
  ]);
  assert.deepEqual(new Set(chain.map(({ status, message }) => `${status} ${message}`)), new Set(['0 undefined']));
  const many = await c.batch(Array.from({ length: 20 }, () => derive(id, 10, 256)));
  assert.deepEqual(new Set(many.map(({ status, message }) => `${status} ${message}`)), new Set(['0 undefined']));
});

test('a batch makes as many pairs of RSA as it has items, and works with them', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const count = 5;
  for (const [pair, distinct] of [
    // Keys of RSA that tests have made are two in turns.
    [rsa, 2],
    [curve, count],
  ] as const) {
    const told = await c.batch([...Array.from({ length: count }, () => pair), { operation: 'Activate' }]);
    assert.deepEqual(
      told.map(({ status, message }) => `${status} ${message}`),
      Array(count + 1).fill('0 undefined'),
    );
    const ids = told.slice(0, count).map(({ payload }) => fieldOf(payload, tags.publicKeyUniqueIdentifier, 'text'));
    const values = await Promise.all(
      ids.map(async (id = '') => toHex(materialIn(await c.did('Get', [uid(id)]), tags.publicKey))),
    );
    assert.equal(new Set(ids).size, count);
    assert.equal(new Set(values).size, distinct, 'no key stands for another');
  }
});

test('what was taken of the limits of a key is not taken of its successor', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const id = await c.aes(['Usage Limits', limits(1n)], ['Activation Date', 1]);
  await c.did('Encrypt', [uid(id), ...message]);
  assert.equal(await c.refused('Encrypt', [uid(id), ...message]), reasons.permissionDenied);
  const next = idIn(await c.did('Re-key', [uid(id)]));
  await c.did('Encrypt', [uid(next), ...message]);
  assert.equal(await c.refused('Encrypt', [uid(next), ...message]), reasons.permissionDenied);
});

const message = [
  structure(tags.cryptographicParameters, enumeration(tags.blockCipherMode, 9)),
  byteString(tags.data, new Uint8Array(16)),
];
const limits = (total: bigint) =>
  structure(tags.attributeValue, long(tags.usageLimitsTotal, total), enumeration(tags.usageLimitsUnit, 2));

test('wrapping and deriving take their part of the limits of a key', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const all: readonly Attr[] = [
    ['Cryptographic Usage Mask', 0x23c],
    ['Usage Limits', limits(1n)],
    ['Activation Date', 1],
  ];
  const wrapped = (kek: string, id: string) => [uid(id), wrappingBy(kek, enumeration(tags.encodingOption, 1))];
  const id = await c.aes();
  for (const own of [false, true]) {
    const kek = await c.aes(...all);
    await c.did('Get', wrapped(kek, own ? kek : id));
    assert.equal(await c.refused('Get', wrapped(kek, id)), reasons.permissionDenied);
  }
  const source = await c.aes(...all);
  const { operation, fields = [] } = derive(source, 1, 256);
  await c.did(operation, fields);
  assert.equal(await c.refused(operation, fields), reasons.permissionDenied);
});

test('out of the state in which an operator suspended it, no client gets an object', async () => {
  const a = await testAppliance();
  const c = await KmipClient.make(a, 'kmip.*');
  const reasonOf = (code: number) => structure(tags.revocationReason, enumeration(tags.revocationReasonCode, code));
  const opaque = structure(tags.opaqueObject, enumeration(tags.opaqueDataType, 0x8000_0001), value);
  const registered = await c.did('Register', [enumeration(tags.objectType, 8), template(), opaque]);
  for (const id of [await c.aes(['Activation Date', 1], ['Usage Limits', limits(5n)]), idIn(registered)]) {
    const to = (state: string) => a.call('POST', `/managed-keys/${id}/state`, { state, used: true });
    // Opaque objects are in no state for their clients, and in one for operators.
    await to('active');
    assert.equal((await to('suspended')).status, 200);
    for (const [operation, ...fields] of [
      ['Get'],
      ['Activate'],
      ['Revoke', reasonOf(2)],
      ['Revoke', reasonOf(5)],
      ['Archive'],
      ['Destroy'],
      ['Get Usage Allocation', long(tags.usageLimitsCount, 1n)],
      ['Re-key'],
    ] as const) {
      assert.equal(await c.refused(operation, [uid(id), ...fields]), reasons.permissionDenied, operation);
    }
    await c.did('Get Attributes', [uid(id)]);
    assert.equal((await to('active')).status, 200);
  }
  const id = await c.aes(['Activation Date', 1]);
  await c.did('Revoke', [uid(id), reasonOf(5)]);
  await c.did('Destroy', [uid(id)]);
});

const value = byteString(tags.opaqueDataValue, new Uint8Array(16));

test('fresh members of a group are those that were not handed out', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const [got, fresh] = [await c.aes(['Object Group', 'g']), await c.aes(['Object Group', 'g'])];
  const alone = await c.aes();
  await c.did('Get', [uid(got)]);
  const found = async (member: number) => idsIn(await c.did('Locate', [enumeration(tags.objectGroupMember, member)]));
  assert.deepEqual(await found(1), [fresh]);
  assert.deepEqual(await found(2), [fresh, got]);
  assert.ok(idsIn(await c.did('Locate')).includes(alone));
  for (const member of [0, 3]) {
    assert.equal(await c.refused('Locate', [enumeration(tags.objectGroupMember, member)]), reasons.invalidField);
  }
});

test('an attribute has no value twice, however it comes there', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const id = await c.aes(['Object Group', 'a'], ['Object Group', 'b']);
  assert.equal(await c.refused('Modify Attribute', [uid(id), attr('Object Group', 'a', 1)]), reasons.illegalOperation);
  await c.did('Modify Attribute', [uid(id), attr('Object Group', 'b', 1)]);
  await c.did('Modify Attribute', [uid(id), attr('Object Group', 'c', 1)]);
});

test('a client of 2.x that insists on a later answer is told that there is none', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  for (const [number, status] of [
    [1, 1],
    [2, 0],
    [3, 0],
  ] as const) {
    const header = [enumeration(tags.asynchronousIndicator, number)];
    const answer = await c.ask('Locate', [], { version: 21, header });
    assert.deepEqual([answer.status, answer.reason], [status, status === 1 ? reasons.featureNotSupported : undefined]);
  }
});
