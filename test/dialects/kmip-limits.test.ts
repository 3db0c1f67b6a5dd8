// Limits of what KMIP's clients store: dates, numbers of attributes, and what stands beside a value.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attributeRules } from '../../src/dialects/kmip/attribute-rules.ts';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  all,
  byteString,
  encodeItem,
  enumeration,
  integer,
  long,
  structure,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { testAppliance } from '../support/appliance.ts';
import { attr, idIn, KmipClient, template, uid } from '../support/kmip-client.ts';

const value = tags.attributeValue;
const dateItem = (time: bigint) => ({ tag: value, type: 'date', value: time }) as const;
const noTimes = [2n ** 63n - 1n, -(2n ** 63n), -5n, -1n, 8_640_000_000_001n, 253_402_300_800n];

test('dates that no clock has are refused wherever one is given, and leave the keys to be shown', async () => {
  const a = await testAppliance();
  const c = await KmipClient.make(a, 'kmip.*');
  const dates = attributeRules.filter(({ type, changes }) => type === 'date' && changes !== 'server');
  assert.ok(dates.length > 4);
  const id = await c.aes();
  const dated = await c.aes(
    ...dates.filter(({ changes }) => changes === 'kept').map(({ name }) => [name, 9e9] as const),
  );
  for (const time of noTimes) {
    for (const { name, changes } of dates) {
      const given = [name, dateItem(time)] as const;
      const create = [
        enumeration(tags.objectType, 2),
        template(['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12], given),
      ];
      assert.equal(await c.refused('Create', create), reasons.invalidField, `Create ${name} ${time}`);
      if (changes === 'once') continue;
      assert.equal(await c.refused('Add Attribute', [uid(id), attr(...given)]), reasons.invalidField, name);
      assert.equal(await c.refused('Modify Attribute', [uid(dated), attr(...given)]), reasons.invalidField, name);
    }
    const newest = structure(tags.newAttribute, { tag: tags.activationDate, type: 'date', value: time });
    assert.equal(await c.refused('Set Attribute', [uid(id), newest], { version: 20 }), reasons.invalidField);
    assert.equal(await c.refused('Add Attribute', [uid(id), attr('x-when', dateItem(time))]), reasons.invalidField);
    const reason = structure(tags.revocationReason, enumeration(tags.revocationReasonCode, 2));
    const occurred = { tag: tags.compromiseOccurrenceDate, type: 'date', value: time } as const;
    assert.equal(await c.refused('Revoke', [uid(id), reason, occurred]), reasons.invalidField);
  }
  const less = structure(value, long(tags.usageLimitsTotal, -1n), enumeration(tags.usageLimitsUnit, 1));
  assert.equal(await c.refused('Add Attribute', [uid(id), attr('Usage Limits', less)]), reasons.invalidField);
  const { status, body } = await a.call('GET', '/managed-keys');
  assert.equal(status, 200);
  assert.equal(body.data.length, 2);
  assert.equal(await c.state(id), 1);
});

test('links to derived keys have a limit of their own, and take nothing from the client', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const base = await c.aes(['Cryptographic Usage Mask', 0x200], ['Activation Date', 0]);
  const wanted = template(['Cryptographic Algorithm', 3], ['Cryptographic Length', 128]);
  const parameters = structure(
    tags.derivationParameters,
    structure(tags.cryptographicParameters, enumeration(tags.hashingAlgorithm, 6)),
    byteString(tags.derivationData, Uint8Array.of(1)),
  );
  const fields = [
    enumeration(tags.objectType, 2),
    uid(base),
    enumeration(tags.derivationMethod, 3),
    parameters,
    wanted,
  ];
  let last = '';
  for (let n = 0; n < 52; n++) last = idIn(await c.did('Derive Key', fields));
  assert.equal((await c.attribute(base, 'Link')).length, 50);
  assert.equal((await c.attribute(last, 'Link')).length, 1, 'the way back is always there');
  for (let n = 0; n < 50; n++) await c.did('Add Attribute', [uid(base), attr(`x-${n}`, 'mine')]);
  assert.equal(await c.refused('Add Attribute', [uid(base), attr('x-more', 'mine')]), reasons.invalidField);
});

test('nothing unknown is kept beside a value, and what is known is short', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const unknown = byteString(0x420fff, new Uint8Array(100_000).fill(7));
  const block = (...more: readonly ReturnType<typeof byteString>[]) =>
    structure(
      tags.keyBlock,
      enumeration(tags.keyFormatType, 1),
      structure(tags.keyValue, byteString(tags.keyMaterial, new Uint8Array(32).fill(1))),
      enumeration(tags.cryptographicAlgorithm, 3),
      integer(tags.cryptographicLength, 256),
      more,
    );
  const registered = (...object: Parameters<typeof structure>) => [
    enumeration(tags.objectType, 2),
    template(['Cryptographic Usage Mask', 12]),
    structure(...object),
  ];
  const id = idIn(await c.did('Register', registered(tags.symmetricKey, block(unknown), unknown)));
  const got = await c.did('Get', [uid(id)]);
  assert.ok(encodeItem(got).length < 400);
  assert.equal(all(got, tags.symmetricKey).length, 1);
  const information = structure(tags.encryptionKeyInformation, text(tags.uniqueIdentifier, 'x'.repeat(70_000)));
  const wrapping = structure(tags.keyWrappingData, enumeration(tags.wrappingMethod, 1), information);
  const long_ = structure(
    tags.keyBlock,
    enumeration(tags.keyFormatType, 1),
    byteString(tags.keyValue, new Uint8Array(40)),
    wrapping,
  );
  assert.equal(await c.refused('Register', registered(tags.symmetricKey, long_)), reasons.invalidField);
});

test('the managed key of an object is named after its own id', async () => {
  const a = await testAppliance();
  const id = await (await KmipClient.make(a, 'kmip.*')).aes();
  const { body } = await a.call('GET', '/managed-keys');
  assert.deepEqual([body.data[0].id, body.data[0].name], [id, id.replace('mkey_', 'kmip-')]);
});

test('objects are listed with their type, names and owner, and with who got their values last', async () => {
  const a = await testAppliance();
  const c = await KmipClient.make(a, 'kmip.*');
  const id = await c.aes(['Name', 'volume']);
  await a.call('POST', '/managed-keys', { name: 'native' });
  const listed = async () => (await a.call('GET', '/managed-keys?kmip=true')).body.data;
  const known = { type: 'symmetric-key', names: ['volume'], owner: c.keyid };
  assert.deepEqual(
    (await listed()).map((key: { id: string; kmip: object }) => [key.id, key.kmip]),
    [[id, known]],
  );
  await c.did('Get', [uid(id)]);
  a.advance(1000);
  const other = await KmipClient.make(a, 'key.*.read', 'key.*.export');
  await other.did('Get', [uid(id)]);
  const lastGet = { caller: other.keyid, at: new Date(a.world.now()).toISOString() };
  assert.deepEqual((await listed())[0].kmip, { ...known, lastGet });
  assert.deepEqual((await a.call('GET', `/managed-keys/${id}`)).body.key.kmip, { ...known, lastGet });
  assert.equal((await a.call('GET', '/managed-keys')).body.data[0].kmip, undefined);
});
