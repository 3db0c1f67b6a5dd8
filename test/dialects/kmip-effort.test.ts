// The work that one message may ask for: every kind of it is bounded, what is long is done aside, and searches give
// others a turn.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import type { Context } from '../../src/core/context.ts';
import type { KeyWorker } from '../../src/core/key-rehearsal.ts';
import { searchedObjects } from '../../src/core/kmip-objects.ts';
import { Effort } from '../../src/dialects/kmip/effort.ts';
import { laterReasons, Refusal, reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  byteString,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  structure,
  structureIn,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { parseFlags } from '../../src/model/flags.ts';
import { testAppliance } from '../support/appliance.ts';
import { keyWorkHere } from '../support/key-work-here.ts';
import {
  type Asked,
  attr,
  idIn,
  idsIn,
  KmipClient,
  materialIn,
  template,
  uid,
  wrappingBy,
} from '../support/kmip-client.ts';

const goOn = { header: [enumeration(tags.batchErrorContinuationOption, 1)] };
const value = tags.attributeValue;
const mostData = 256 * 1024;

/** An appliance that tells what was done aside. */
async function around() {
  const aside: string[] = [];
  const keyWorker: KeyWorker = {
    run(orders, from) {
      aside.push(...orders.map(({ name }) => name));
      return keyWorkHere.run(orders, from);
    },
  };
  const a = await testAppliance({ keyWorker });
  return { a, aside, c: await KmipClient.make(a, 'kmip.*') };
}

const methods = { password: 1, hash: 2, hmac: 3, encrypt: 4, counter: 5 } as const;

interface Derivation {
  readonly bits?: number;
  readonly hash?: number;
  readonly data?: Uint8Array;
  readonly salt?: Uint8Array;
}

const derive = (
  base: string,
  method: number,
  { bits = 128, hash = 4, data = new Uint8Array(16), salt = new Uint8Array(8) }: Derivation,
): Asked => ({
  operation: 'Derive Key',
  fields: [
    enumeration(tags.objectType, 7),
    uid(base),
    enumeration(tags.derivationMethod, method),
    structure(
      tags.derivationParameters,
      structure(tags.cryptographicParameters, enumeration(tags.hashingAlgorithm, hash)),
      byteString(tags.derivationData, data),
      byteString(tags.salt, salt),
      integer(tags.iterationCount, 1),
    ),
    template(['Cryptographic Length', bits]),
  ],
});

const known = new Uint8Array(32).fill(7);

/** An active key of AES-256 that may do all that is asked for here. */
async function baseOf(c: KmipClient): Promise<string> {
  const block = structure(
    tags.keyBlock,
    enumeration(tags.keyFormatType, 1),
    structure(tags.keyValue, byteString(tags.keyMaterial, known)),
    enumeration(tags.cryptographicAlgorithm, 3),
    integer(tags.cryptographicLength, 256),
  );
  const attributes = template(['Cryptographic Usage Mask', 0x23c], ['Activation Date', 1]);
  return idIn(
    await c.did('Register', [enumeration(tags.objectType, 2), attributes, structure(tags.symmetricKey, block)]),
  );
}

test('no operation takes more data than another, whichever field they are in', async () => {
  const { c } = await around();
  const base = await baseOf(c);
  const long = new Uint8Array(mostData + 1);
  for (const method of [methods.hash, methods.hmac, methods.encrypt, methods.counter]) {
    const [refused] = await c.batch([derive(base, method, { data: long })]);
    assert.deepEqual([refused?.status, refused?.reason], [1, reasons.invalidField], `${method}`);
    const [done] = await c.batch([derive(base, method, { data: long.subarray(0, mostData) })]);
    assert.equal(done?.status, 0, `${method} ${done?.message}`);
  }
  const [salted] = await c.batch([derive(base, methods.password, { salt: long })]);
  assert.deepEqual([salted?.status, salted?.reason], [1, reasons.invalidField]);
  const parameters = structure(tags.cryptographicParameters, enumeration(tags.blockCipherMode, 9));
  for (const fields of [
    [byteString(tags.data, long)],
    [byteString(tags.data, known), byteString(tags.additionalData, long)],
  ]) {
    assert.equal(await c.refused('Encrypt', [uid(base), parameters, ...fields]), reasons.invalidField);
  }
});

test('bytes that are hashed for each block count as rounds, and are hashed aside where they are many', async () => {
  const { c, aside } = await around();
  const base = await baseOf(c);
  const ids = async (...items: readonly Asked[]) => {
    const told = await c.batch(items, goOn);
    return told.map(({ status, payload, reason }) => (status === 0 ? idIn(payload) : reason));
  };
  const [short] = await ids(derive(base, methods.counter, { bits: 32_768 }));
  assert.deepEqual(aside, []);
  const data = new Uint8Array(mostData).fill(9);
  const [first, ...others] = await ids(
    derive(base, methods.counter, { bits: 32_768, data }),
    derive(base, methods.counter, { bits: 32_768, data: data.subarray(0, mostData / 2) }),
    derive(base, methods.password, { bits: 32_768, salt: data.subarray(0, mostData / 2) }),
    derive(base, methods.counter, {}),
  );
  assert.deepEqual(others, Array(3).fill(reasons.invalidField), 'the sum counts');
  assert.deepEqual(aside, ['counterKey']);
  for (const [id, fixed] of [
    [short, new Uint8Array(16)],
    [first, data],
  ] as const) {
    assert.ok(typeof id === 'string');
    const made = materialIn(await c.did('Get', [uid(id)]), tags.secretData);
    const block = createHmac('sha1', known)
      .update(Uint8Array.of(0, 0, 0, 1))
      .update(fixed)
      .digest();
    assert.deepEqual([...made.subarray(0, 20)], [...block]);
    assert.equal(made.length, 4096);
  }
});

test('a search is for at most as many attributes as an object has, wherever they stand', async () => {
  const { c } = await around();
  const id = await c.aes(['Activation Date', 1000]);
  const dates = (count: number) => Array.from({ length: count }, () => attr('Activation Date', 1000));
  assert.deepEqual(idsIn(await c.did('Locate', dates(200))), [id], 'the same one counts once for what is found');
  const holder = (count: number) => structure(tags.templateAttribute, dates(count));
  for (const fields of [
    dates(201),
    [holder(201)],
    [holder(150), holder(51)],
    [...dates(150), holder(51)],
    dates(6000),
  ]) {
    assert.equal(await c.refused('Locate', fields), reasons.invalidField);
  }
  const second = structure(
    tags.attributes,
    Array.from({ length: 201 }, () => ({ tag: tags.activationDate, type: 'date', value: 1000n }) as const),
  );
  assert.equal(await c.refused('Locate', [second], { version: 20 }), reasons.invalidField);
  const range = [attr('Activation Date', 900), attr('Activation Date', 1100), attr('Activation Date', 900)];
  assert.deepEqual(idsIn(await c.did('Locate', range)), [id]);
  assert.deepEqual(idsIn(await c.did('Locate', [attr('Activation Date', 900), attr('Activation Date', 999)])), []);
  assert.equal(await c.refused('Locate', [attr('x-a', 'a'.repeat(2000))]), reasons.invalidField);
});

test('comparisons of a message are bounded, each field of a value by itself', async () => {
  const { c } = await around();
  // All fields but the last are the same, so that each is compared with each.
  const custom = (last: number): Item =>
    structure(
      value,
      Array.from({ length: 62 }, (_, n) => integer(0x540001, n === 61 ? last : n)),
    );
  const all = Array.from({ length: 50 }, (_, n) => ['x-a', custom(1000 + n)] as const);
  await c.batch(
    Array.from({ length: 4 }, () => ({
      operation: 'Create',
      fields: [
        enumeration(tags.objectType, 2),
        template(['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12], ...all),
      ],
    })),
  );
  const wanted = all.map(([name, item]) => attr(name, item));
  const [first, second] = await c.batch(
    Array.from({ length: 2 }, () => ({ operation: 'Locate', fields: wanted })),
    goOn,
  );
  const told = [first, second].map((each) => [each?.status, each?.reason]);
  assert.deepEqual(told, Array(2).fill([1, reasons.permissionDenied]), 'objects are few, and values many');
  assert.equal(idsIn(await c.did('Locate', wanted.slice(0, 1))).length, 4);
});

test('the effort of a message tells when a turn is over, and when there is enough', () => {
  const effort = new Effort();
  const turns = (step: () => void, count: number): number => {
    let over = 0;
    for (let n = 0; n < count; n++) {
      step();
      if (effort.isTurnOver()) over++;
    }
    return over;
  };
  assert.equal(
    turns(() => effort.look(0), 1000),
    5,
  );
  assert.equal(
    turns(() => effort.look(256 * 1024), 10),
    2,
    'long attributes are long to read',
  );
  assert.equal(
    turns(() => effort.compare(10_000), 10),
    5,
    'so are many comparisons',
  );
  effort.beginSearch();
  turns(() => effort.look(0), 5000);
  assert.throws(() => effort.beginSearch(), Refusal);
  for (const [kind, reason, later] of [
    ['rounds', reasons.invalidField, laterReasons.serverLimitExceeded],
    ['compared', reasons.permissionDenied, laterReasons.serverLimitExceeded],
    ['wrapped', reasons.permissionDenied, laterReasons.serverLimitExceeded],
    ['answered', reasons.responseTooLarge, reasons.responseTooLarge],
  ] as const) {
    new Effort().spend(kind, 1_000_000);
    const check = (error: unknown) => error instanceof Refusal && error.reason === reason && error.later === later;
    assert.throws(() => effort.spend(kind, 20_000_000), check);
    assert.throws(() => effort.spend(kind, 1), check, 'what was refused counts');
  }
});

test('a search takes a step for every look-up, and none for objects that its caller may not look at', async () => {
  const names: string[] = [];
  const fake = (...flags: readonly string[]) => ({
    caller: { id: 'apik_1', flags: parseFlags(Object.fromEntries(flags.map((flag) => [flag, true]))) },
    tx: {
      managedKeys: { byName: (name: string) => void names.push(name), byId: () => undefined },
      kmipObjects: {
        ofOwner: () => Array.from({ length: 30 }, (_, n) => ({ seq: n, keyId: `mkey_${n}` })),
        keysNamed: () => ['mkey_1', 'mkey_2'],
      },
    },
  });
  // Cast: the parts of a context that a search reads.
  const steps = (name: string | undefined, ...flags: readonly string[]) =>
    [...searchedObjects(fake(...flags) as unknown as Context, name)].length;
  assert.equal(steps(undefined, 'kmip.create'), 0);
  assert.equal(steps('a', 'kmip.create'), 0);
  assert.equal(steps(undefined, 'kmip.read'), 30);
  assert.equal(steps('a', 'kmip.read'), 2);
  assert.equal(steps(undefined, 'kmip.create', 'key.one.read', 'key.two.read'), 2);
  assert.deepEqual(names, ['one', 'two']);
  const { a } = await around();
  const flags = Array.from({ length: 60 }, (_, n) => `key.none-${n}.read`);
  const c = await KmipClient.make(a, 'kmip.create', ...flags);
  const told = await c.batch(
    Array.from({ length: 100 }, (): Asked => ({ operation: 'Locate' })),
    goOn,
  );
  const done = told.filter(({ status }) => status === 0).length;
  assert.ok(done >= 5000 / 60 && done <= 5000 / 60 + 1, `${done}`);
});

/** A secret of so many bytes, with that many groups of 4000 characters. */
async function secretOf(c: KmipClient, length: number, groups: number): Promise<string> {
  const block = structure(
    tags.keyBlock,
    enumeration(tags.keyFormatType, 2),
    structure(tags.keyValue, byteString(tags.keyMaterial, new Uint8Array(length).fill(3))),
  );
  const id = idIn(
    await c.did('Register', [
      enumeration(tags.objectType, 7),
      template(['Cryptographic Usage Mask', 0]),
      structure(tags.secretData, enumeration(tags.secretDataType, 2), block),
    ]),
  );
  for (let n = 0; n < groups; n++) await c.did('Add Attribute', [uid(id), attr('Object Group', `${n}`.padEnd(4000))]);
  return id;
}

test('a key is wrapped with each attribute once, and with no more than is wrapped at once', async () => {
  const { c, aside } = await around();
  const kek = await baseOf(c);
  const [small, full] = [await c.aes(['Object Group', 'a']), await secretOf(c, 65_536, 17)];
  const groups = (count: number) => Array.from({ length: count }, () => text(tags.attributeName, 'Object Group'));
  const wrapped = (id: string, ...more: readonly Item[]) => [uid(id), wrappingBy(kek, ...more)];
  for (const count of [2, 50, 15_000]) {
    assert.equal(await c.refused('Get', wrapped(small, ...groups(count))), reasons.invalidMessage);
  }
  const whole = await c.did('Get', wrapped(small, ...groups(1)));
  assert.deepEqual(aside, []);
  const block = structureIn(structureIn(whole, tags.symmetricKey), tags.keyBlock);
  const plain = structure(
    tags.keyValue,
    byteString(tags.keyMaterial, materialIn(await c.did('Get', [uid(small)]))),
    attr('Object Group', 'a'),
  );
  const { length } = fieldOf(block, tags.keyValue, 'bytes') ?? assert.fail('nothing is wrapped');
  assert.equal(length, encodeItem(plain).length + 8);
  assert.equal(await c.refused('Get', wrapped(full, ...groups(1))), reasons.invalidField);
  const alone: Asked = { operation: 'Get', fields: wrapped(full, enumeration(tags.encodingOption, 1)) };
  const told = await c.batch(
    Array.from({ length: 20 }, () => alone),
    goOn,
  );
  assert.deepEqual(
    told.map(({ status, reason }) => (status === 0 ? 'done' : reason)),
    [...Array(16).fill('done'), ...Array(4).fill(reasons.permissionDenied)],
    'a message has so much wrapped',
  );
  assert.deepEqual(aside, Array(16).fill('wrapKw'));
});

test('an answer has an end, and what would make it longer is not done', async () => {
  const { c } = await around();
  const random: Asked = { operation: 'RNG Retrieve', fields: [integer(tags.dataLength, 65_536)] };
  const told = await c.batch(
    Array.from({ length: 100 }, () => random),
    goOn,
  );
  const done = told.filter(({ status }) => status === 0).length;
  assert.equal(done, 63);
  assert.ok(told.slice(done).every(({ reason }) => reason === reasons.responseTooLarge));
  const id = await c.aes();
  const [first, ...others] = await c.batch(
    [
      { operation: 'Add Attribute', fields: [uid(id), attr('Comment', 'kept')] },
      ...Array.from({ length: 64 }, () => random),
      { operation: 'Add Attribute', fields: [uid(id), attr('Description', 'not kept')] },
    ],
    goOn,
  );
  assert.deepEqual([first?.status, others.at(-1)?.reason], [0, reasons.responseTooLarge]);
  assert.equal((await c.attribute(id, 'Comment')).length, 1);
  assert.equal((await c.attribute(id, 'Description')).length, 0);
});
