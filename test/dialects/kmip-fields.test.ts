// Values of attributes that mean nothing: refused where an object is made, and where one is changed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attributeRules } from '../../src/dialects/kmip/attribute-rules.ts';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  byteString,
  enumeration,
  fieldOf,
  type Item,
  integer,
  interval,
  long,
  structure,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { testAppliance } from '../support/appliance.ts';
import { type Attr, attr, idIn, KmipClient, template, uid } from '../support/kmip-client.ts';

const value = tags.attributeValue;
const of = (...fields: readonly Item[]) => structure(value, fields);
const extended = (time: bigint): Item => ({ tag: value, type: 'extended-date', value: time });
const limits = (unit: number, total = 5n, ...more: readonly Item[]) =>
  of(long(tags.usageLimitsTotal, total), ...more, enumeration(tags.usageLimitsUnit, unit));

/** Values that no attribute can have, and ones near them that it can. */
const values: Readonly<Record<string, { readonly bad: readonly Item[]; readonly good?: readonly Item[] }>> = {
  'Cryptographic Algorithm': { bad: [enumeration(value, 0), enumeration(value, 0x39), enumeration(value, 0x7fffffff)] },
  'Cryptographic Length': { bad: [integer(value, -1), integer(value, -(2 ** 31))] },
  'Cryptographic Usage Mask': {
    bad: [integer(value, -1), integer(value, -(2 ** 31)), integer(value, 0x100_0000), integer(value, 2 ** 31 - 1)],
    good: [integer(value, 0), integer(value, 0xf_ffff)],
  },
  'Cryptographic Domain Parameters': {
    bad: [
      of(enumeration(tags.recommendedCurve, 0)),
      of(integer(tags.qlength, -8)),
      of(integer(tags.recommendedCurve, 7)),
    ],
  },
  'Cryptographic Parameters': {
    bad: [
      of(enumeration(tags.blockCipherMode, 0)),
      of(enumeration(tags.paddingMethod, 0x0b)),
      of(enumeration(tags.hashingAlgorithm, 0x7000_0000)),
      of(integer(tags.ivLength, -1)),
      of(integer(tags.tagLength, -16)),
      of(text(tags.blockCipherMode, 'CBC')),
    ],
    good: [of(enumeration(tags.blockCipherMode, 0x8000_0001), integer(tags.tagLength, 0)), of()],
  },
  Name: {
    bad: [
      of(text(tags.nameValue, 'n')),
      of(text(tags.nameValue, 'n'), enumeration(tags.nameType, 3)),
      of(byteString(tags.nameValue, Uint8Array.of(1)), enumeration(tags.nameType, 1)),
    ],
    good: [of(text(tags.nameValue, 'n'), enumeration(tags.nameType, 2))],
  },
  Link: {
    bad: [
      of(enumeration(tags.linkType, 1), text(tags.linkedObjectIdentifier, 'x')),
      of(enumeration(tags.linkType, 0x101), enumeration(tags.linkedObjectIdentifier, 1)),
      of(enumeration(tags.linkType, 0x101)),
    ],
    good: [of(enumeration(tags.linkType, 0x10d), text(tags.linkedObjectIdentifier, 'x'))],
  },
  'Usage Limits': {
    bad: [limits(0), limits(3), limits(1, -1n), limits(1, 5n, long(tags.usageLimitsCount, -1n)), of()],
    good: [limits(2)],
  },
  'Alternative Name': {
    bad: [of(text(tags.alternativeNameValue, 'a'), enumeration(tags.alternativeNameType, 8)), of()],
    good: [of(text(tags.alternativeNameValue, 'a'), enumeration(tags.alternativeNameType, 7))],
  },
  'Application Specific Information': {
    bad: [of(text(tags.applicationData, 'a')), of(integer(tags.applicationNamespace, 1))],
    good: [of(text(tags.applicationNamespace, 'a'))],
  },
  'x-time': {
    bad: [extended(-1n), extended(2n ** 62n), extended(253_402_300_800_000_000n), of(extended(-1n))],
    good: [extended(0n), extended(253_402_300_799_999_999n)],
  },
};

const create = (...given: Attr[]) => {
  const usual: readonly Attr[] = [
    ['Cryptographic Algorithm', 3],
    ['Cryptographic Usage Mask', 12],
  ];
  const more = usual.filter(([name]) => !given.some(([other]) => other === name));
  return [enumeration(tags.objectType, 2), template(...more, ...given)];
};

test('values that mean nothing are refused, wherever they are given', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const id = await c.aes(['Usage Limits', limits(1)]);
  for (const [name, { bad, good = [] }] of Object.entries(values)) {
    const changes = attributeRules.find((rule) => rule.name === name)?.changes;
    for (const [n, item] of bad.entries()) {
      const given = [name, item] as const;
      assert.equal(await c.refused('Create', create(given)), reasons.invalidField, `${name} ${n}`);
      const next = await c.ask('Re-key', [uid(id), template(given)]);
      assert.equal(next.reason, reasons.invalidField, `${name} ${n}`);
      if (changes === 'once') continue;
      for (const operation of ['Add Attribute', 'Modify Attribute']) {
        assert.equal(await c.refused(operation, [uid(id), attr(...given)]), reasons.invalidField, `${name} ${n}`);
      }
    }
    for (const item of good) await c.did('Create', create([name, item]));
  }
});

test('no object is registered with fields of a key block that mean nothing', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const block = (...more: readonly Item[]) =>
    structure(tags.keyBlock, structure(tags.keyValue, byteString(tags.keyMaterial, new Uint8Array(20).fill(1))), more);
  const registered = (type: number, tag: number, ...parts: readonly Item[]) => [
    enumeration(tags.objectType, type),
    template(['Cryptographic Usage Mask', 0]),
    structure(tag, parts),
  ];
  const opaque = enumeration(tags.keyFormatType, 2);
  for (const wrong of [
    [enumeration(tags.keyFormatType, 0x17)],
    [opaque, integer(tags.cryptographicLength, -8)],
    [opaque, enumeration(tags.cryptographicAlgorithm, 0x700)],
    [opaque, text(tags.cryptographicLength, '8')],
    [opaque, structure(tags.keyWrappingData, enumeration(tags.wrappingMethod, 9))],
  ]) {
    const asked = registered(2, tags.symmetricKey, block(...wrong));
    assert.equal(await c.refused('Register', asked), reasons.invalidField);
  }
  const seed = (type: number) => registered(7, tags.secretData, enumeration(tags.secretDataType, type), block(opaque));
  assert.equal(await c.refused('Register', seed(3)), reasons.invalidField);
  await c.did('Register', seed(2));
  const reason = structure(tags.revocationReason, enumeration(tags.revocationReasonCode, 8));
  assert.equal(await c.refused('Revoke', [uid(await c.aes()), reason]), reasons.invalidField);
});

test('dates of use are in their order, when they are given, added, modified and moved', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const [first, middle, last] = [9_000_000_000, 9_000_000_100, 9_000_000_200];
  const orders: readonly (readonly [string, string])[] = [
    ['Activation Date', 'Deactivation Date'],
    ['Activation Date', 'Process Start Date'],
    ['Activation Date', 'Protect Stop Date'],
    ['Process Start Date', 'Deactivation Date'],
    ['Protect Stop Date', 'Deactivation Date'],
  ];
  for (const [one, other] of orders) {
    const wrong = create([one, last], [other, middle]);
    assert.equal(await c.refused('Create', wrong), reasons.invalidField, `${one}, ${other}`);
    const id = await c.aes([one, middle]);
    assert.equal(await c.refused('Add Attribute', [uid(id), attr(other, first)]), reasons.invalidField);
    await c.did('Add Attribute', [uid(id), attr(other, middle)]);
    assert.equal(await c.refused('Modify Attribute', [uid(id), attr(one, last)]), reasons.invalidField);
    assert.equal(await c.refused('Modify Attribute', [uid(id), attr(other, first)]), reasons.invalidField);
    await c.did('Modify Attribute', [uid(id), attr(other, last)]);
    assert.equal(await c.refused('Re-key', [uid(id), template([other, first])]), reasons.invalidField);
    await c.did('Re-key', [uid(id), template([other, last])]);
  }
});

test('a key that was activated after its dates is replaced all the same', async () => {
  const a = await testAppliance();
  const c = await KmipClient.make(a, 'kmip.*');
  const now = Math.floor(a.world.now() / 1000);
  const id = await c.aes(['Process Start Date', now + 10], ['Protect Stop Date', now + 100]);
  a.advance(50_000);
  await c.did('Activate', [uid(id)]);
  const next = idIn(await c.did('Re-key', [uid(id), interval(tags.offset, 5)]));
  const [start] = await c.attribute(next, 'Process Start Date');
  const [stop] = await c.attribute(next, 'Protect Stop Date');
  assert.deepEqual([start?.value, stop?.value], [BigInt(now + 55), BigInt(now + 105)]);
});

test('dates that have come, and limits of which a part was taken, stay', async () => {
  const a = await testAppliance();
  const c = await KmipClient.make(a, 'kmip.*');
  const now = Math.floor(a.world.now() / 1000);
  const id = await c.aes(
    ['Activation Date', now],
    ['Process Start Date', now + 10],
    ['Usage Limits', limits(1, 100n, long(tags.usageLimitsCount, 7n))],
  );
  const left = async () => {
    const [item] = await c.attribute(id, 'Usage Limits');
    return item?.type === 'structure' ? fieldOf(item, tags.usageLimitsCount, 'long') : undefined;
  };
  assert.equal(await left(), 100n, 'the count is the server’s');
  await c.did('Modify Attribute', [uid(id), attr('Usage Limits', limits(1, 200n))]);
  await c.did('Modify Attribute', [uid(id), attr('Process Start Date', now + 20)]);
  a.advance(30_000);
  await c.did('Get Usage Allocation', [uid(id), long(tags.usageLimitsCount, 50n)]);
  assert.equal(await left(), 150n);
  for (const given of [attr('Usage Limits', limits(1, 900n)), attr('Process Start Date', now + 90)]) {
    assert.equal(await c.refused('Modify Attribute', [uid(id), given]), reasons.permissionDenied);
  }
  const named = text(tags.attributeName, 'Usage Limits');
  assert.equal(await c.refused('Delete Attribute', [uid(id), named]), reasons.permissionDenied);
});
