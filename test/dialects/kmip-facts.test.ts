// Attributes mean what the specification says, in both encodings: which value a change is about, whose a vendor's
// attribute is, and that algorithm, length and curve are the key's.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { laterReasons, reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  all,
  byteString,
  enumeration,
  fieldOf,
  type Item,
  integer,
  isSameValue,
  one,
  type Structure,
  structure,
  structureIn,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { testAppliance } from '../support/appliance.ts';
import {
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

const v2 = { version: 20 };
const value = tags.attributeValue;
const client = async () => KmipClient.make(await testAppliance(), 'kmip.*');
const named = (holder: number, name: string): Structure =>
  structure(holder, structure(tags.name, text(tags.nameValue, name), enumeration(tags.nameType, 1)));
const reference = (tag: number): Item => enumeration(tags.attributeReference, tag);

async function namesOf(c: KmipClient, id: string): Promise<readonly unknown[]> {
  const items = await c.attribute(id, 'Name');
  return items.map((item) => item.type === 'structure' && fieldOf(item, tags.nameValue, 'text'));
}

test('a change of 2.x is about the only value, the current one, or all of those referred to', async () => {
  const c = await client();
  const id = await c.aes(['Name', 'a'], ['Name', 'b'], ['Name', 'c']);
  const change = (operation: string, ...fields: readonly Item[]) => c.ask(operation, [uid(id), ...fields], v2);
  const done = async (operation: string, ...fields: readonly Item[]) => {
    const { status, message } = await change(operation, ...fields);
    assert.equal(status, 0, `${message}`);
  };
  const refused = async (operation: string, ...fields: readonly Item[]) => {
    const { status, reason } = await change(operation, ...fields);
    assert.equal(status, 1, operation);
    return reason;
  };
  await done('Delete Attribute', named(tags.currentAttribute, 'a'));
  assert.equal(await refused('Modify Attribute', named(tags.newAttribute, 'd')), laterReasons.multiValued);
  await done('Modify Attribute', named(tags.currentAttribute, 'c'), named(tags.newAttribute, 'd'));
  assert.deepEqual(await namesOf(c, id), ['b', 'd']);
  await done('Delete Attribute', named(tags.currentAttribute, 'b'));
  await done('Modify Attribute', named(tags.newAttribute, 'e'));
  assert.deepEqual(await namesOf(c, id), ['e'], 'the only value has another index than 0');
  await done('Add Attribute', named(tags.newAttribute, 'f'));
  await done('Delete Attribute', reference(tags.name));
  assert.deepEqual(await namesOf(c, id), []);
  assert.equal(await refused('Delete Attribute', reference(tags.name)), reasons.itemNotFound);
  assert.equal(await refused('Modify Attribute', named(tags.newAttribute, 'g')), reasons.invalidField);
  assert.equal(await refused('Delete Attribute', named(tags.currentAttribute, 'g')), reasons.itemNotFound);
});

test('one attribute is changed, and its current value is of the same name', async () => {
  const c = await client();
  const id = await c.aes();
  await c.did('Add Attribute', [uid(id), attr('Comment', 'same')]);
  await c.did('Add Attribute', [uid(id), attr('Description', 'same')]);
  const holder = (tag: number, ...items: readonly Item[]) => structure(tag, items);
  const comment = (said: string) => text(tags.comment, said);
  const description = (said: string) => text(tags.description, said);
  const both = holder(tags.newAttribute, comment('a'), description('b'));
  for (const operation of ['Add Attribute', 'Set Attribute', 'Modify Attribute']) {
    assert.equal(await c.refused(operation, [uid(id), both], v2), reasons.invalidMessage, operation);
  }
  const two = [attr('Object Group', 'a'), attr('Object Group', 'b')];
  assert.equal(await c.refused('Add Attribute', [uid(id), ...two]), reasons.invalidMessage);
  const other = [holder(tags.currentAttribute, comment('same')), holder(tags.newAttribute, description('new'))];
  assert.equal(await c.refused('Modify Attribute', [uid(id), ...other], v2), reasons.invalidField);
  const gone = [holder(tags.currentAttribute, comment('same')), reference(tags.description)];
  assert.equal(await c.refused('Delete Attribute', [uid(id), ...gone], v2), reasons.invalidField);
  assert.deepEqual(
    [...(await c.attribute(id, 'Comment')), ...(await c.attribute(id, 'Description'))].map((each) => each.value),
    ['same', 'same'],
  );
});

test('references to attributes that are unknown here are left out', async () => {
  const c = await client();
  const id = await c.aes();
  const asked = async (...items: readonly Item[]) => {
    const told = structureIn(await c.did('Get Attributes', [uid(id), ...items], v2), tags.attributes);
    return told?.value.map(({ tag }) => tag);
  };
  const unknown = [reference(0x4200bb), reference(0x420136)];
  const vendors = ['', 'a:b'].map((vendor) =>
    structure(tags.attributeReference, text(tags.vendorIdentification, vendor), text(tags.attributeName, 'n')),
  );
  assert.deepEqual(await asked(...unknown, ...vendors, reference(tags.state)), [tags.state]);
  assert.deepEqual(await asked(...unknown), []);
  const twice = [uid(id), ...unknown, reference(0x4200bb)];
  assert.equal(await c.refused('Get Attributes', twice, v2), reasons.invalidMessage);
});

const vendors = (holder: number, vendor: string, name: string): Structure =>
  structure(
    holder,
    structure(
      tags.attribute,
      text(tags.vendorIdentification, vendor),
      text(tags.attributeName, name),
      text(value, 'v'),
    ),
  );

test('a vendor’s attribute comes back as it went in, or is refused', async () => {
  const c = await client();
  const vendorNames = ['acme', 'Acme-2.x_y', 'x', 'y', '', ':', 'urn:acme', 'a b', 'é', 'x-', 'x:a'];
  const attributeNames = ['n', 'a:b', ':q', '', 'x:n', 'acme:n', ' ', 'a\nb'];
  let kept = 0;
  for (const vendor of vendorNames) {
    for (const name of attributeNames) {
      const id = await c.aes();
      const { status, reason } = await c.ask('Add Attribute', [uid(id), vendors(tags.newAttribute, vendor, name)], v2);
      const told = structureIn(await c.did('Get Attributes', [uid(id)], v2), tags.attributes);
      const [own, ...others] = told ? all(told, tags.attribute) : [];
      const expected = vendors(0, vendor, name).value[0];
      assert.equal(others.length, 0);
      if (status === 0) assert.ok(own && expected && isSameValue(own, expected), `${vendor} ${name}`);
      else assert.deepEqual([reason, own], [reasons.invalidField, undefined], `${vendor} ${name}`);
      if (status === 0) kept++;
    }
  }
  assert.ok(kept >= 4 * 5, `${kept}`);
  const id = await c.aes();
  for (const name of ['x-a:b', 'x-x:foo', 'x-y:foo', 'x-:q', 'x-urn acme:n', 'y-a:b']) {
    await c.did('Add Attribute', [uid(id), attr(name, 'v')]);
  }
  const told = structureIn(await c.did('Get Attributes', [uid(id)], v2), tags.attributes);
  for (const own of told ? all(told, tags.attribute) : []) {
    await c.did('Delete Attribute', [uid(id), structure(tags.currentAttribute, own)], v2);
  }
  const left = await c.did('Get Attribute List', [uid(id)]);
  assert.ok(all(left, tags.attributeName).every((item) => !/^[xy]-/.test(String(item.value))));
});

test('a field of Locate that is sent as an attribute says nothing there, and is a value like any other elsewhere', async () => {
  const c = await client();
  const words = 'Storage Status Mask';
  const id = await c.aes(['Object Group', words], ['x-a', words], ['Name', words]);
  assert.equal((await c.attribute(id, 'Object Group')).length, 1);
  assert.equal((await c.attribute(id, 'x-a')).length, 1);
  await c.aes();
  assert.deepEqual(idsIn(await c.did('Locate', [attr('Object Group', words)])), [id]);
  assert.deepEqual(idsIn(await c.did('Locate', [template(['x-a', words])])), [id]);
  const mask = attr(words, 1);
  assert.equal(idsIn(await c.did('Locate', [mask])).length, 2);
  assert.equal(idsIn(await c.did('Locate', [structure(tags.templateAttribute, mask)])).length, 2);
  const create = [
    enumeration(tags.objectType, 2),
    template(['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12], [words, 1]),
  ];
  assert.equal(await c.refused('Create', create), reasons.invalidField);
});

const curve = (number: number): Attr => [
  'Cryptographic Domain Parameters',
  structure(value, enumeration(tags.recommendedCurve, number)),
];
const fields = (common: readonly Attr[], ofPrivate: readonly Attr[] = [], ofPublic: readonly Attr[] = []) => [
  { ...template(...common), tag: tags.commonTemplateAttribute },
  { ...template(...ofPrivate), tag: tags.privateKeyTemplateAttribute },
  { ...template(...ofPublic), tag: tags.publicKeyTemplateAttribute },
];
const ec: Attr = ['Cryptographic Algorithm', 6];
const mask = (number: number): Attr => ['Cryptographic Usage Mask', number];

function halvesIn(payload: Structure): readonly [secret: string, open: string] {
  const [secret, open] = [tags.privateKeyUniqueIdentifier, tags.publicKeyUniqueIdentifier].map((tag) =>
    fieldOf(payload, tag, 'text'),
  );
  assert.ok(secret !== undefined && open !== undefined);
  return [secret, open];
}

test('the attributes of a half win over common ones, and those with several values come together', async () => {
  const c = await client();
  const common: readonly Attr[] = [ec, curve(7), mask(3), ['Name', 'both'], ['Object Group', 'g']];
  const given = fields(common, [mask(1), ['Name', 'mine']], [mask(2), ['Object Group', 'g']]);
  const made = halvesIn(await c.did('Create Key Pair', given));
  const check = async (ids: readonly string[]) => {
    const masks = await Promise.all(
      ids.map(async (id) => (await c.attribute(id, 'Cryptographic Usage Mask'))[0]?.value),
    );
    assert.deepEqual(masks, [1, 2]);
    assert.deepEqual(await Promise.all(ids.map((id) => namesOf(c, id))), [['both', 'mine'], ['both']]);
    for (const id of ids) assert.equal((await c.attribute(id, 'Object Group')).length, 1);
  };
  await check(made);
  const again = { ...uid(made[0]), tag: tags.privateKeyUniqueIdentifier };
  await check(halvesIn(await c.did('Re-key Key Pair', [again, ...given])));
  const twice = fields([ec, curve(7)], [mask(1), mask(2)]);
  assert.equal(await c.refused('Create Key Pair', twice), reasons.invalidField);
});

test('a pair is not made with an algorithm, length or curve that is not its own', async () => {
  const c = await client();
  const length = (bits: number): Attr => ['Cryptographic Length', bits];
  const rsa: Attr = ['Cryptographic Algorithm', 4];
  for (const given of [
    fields([ec, length(256), curve(10)]),
    fields([], [ec, length(256), curve(7)], [rsa, length(4096), curve(13)]),
    fields([ec, curve(7)], [], [length(384)]),
    fields([ec, curve(7)], [], [curve(10)]),
    fields([ec, curve(7)], [], [rsa]),
    fields([rsa, length(2048), curve(7)]),
    fields([['Cryptographic Algorithm', 0x0e], curve(0x45)]),
  ]) {
    assert.equal(await c.refused('Create Key Pair', given), reasons.invalidField);
  }
  const given = fields([curve(10), length(384)], [ec], [['Cryptographic Algorithm', 0x1a]]);
  const [secret, open] = halvesIn(await c.did('Create Key Pair', given));
  const shown = async (id: string) =>
    (await Promise.all(['Cryptographic Algorithm', 'Cryptographic Length'].map((name) => c.attribute(id, name)))).map(
      ([item]) => item?.value,
    );
  assert.deepEqual(
    [await shown(secret), await shown(open)],
    [
      [6, 384],
      [0x1a, 384],
    ],
  );
  const key = { ...uid(secret), tag: tags.privateKeyUniqueIdentifier };
  assert.equal(await c.refused('Re-key Key Pair', [key, ...fields([length(256)])]), reasons.invalidField);
});

interface Block {
  readonly format: number;
  readonly bytes: Uint8Array;
  readonly algorithm?: number | undefined;
  readonly bits?: number | undefined;
}

const block = ({ format, bytes, algorithm, bits }: Block): Structure =>
  structure(
    tags.keyBlock,
    enumeration(tags.keyFormatType, format),
    structure(tags.keyValue, byteString(tags.keyMaterial, bytes)),
    algorithm === undefined ? undefined : enumeration(tags.cryptographicAlgorithm, algorithm),
    bits === undefined ? undefined : integer(tags.cryptographicLength, bits),
  );

const objectTags: Readonly<Record<number, number>> = { 2: tags.symmetricKey, 3: tags.publicKey, 4: tags.privateKey };

test('no key is registered with an algorithm, length or curve that is not its own', async () => {
  const c = await client();
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pkcs8 = (key: typeof rsa.privateKey) => new Uint8Array(key.export({ type: 'pkcs8', format: 'der' }));
  const spki = (key: typeof rsa.publicKey) => new Uint8Array(key.export({ type: 'spki', format: 'der' }));
  const register = (type: number, of: Block, ...more: readonly Attr[]) =>
    c.ask('Register', [
      enumeration(tags.objectType, type),
      template(mask(3), ...more),
      structure(objectTags[type] ?? 0, block(of)),
    ]);
  const [own, ecOwn] = [
    { format: 4, bytes: pkcs8(rsa.privateKey) },
    { format: 4, bytes: pkcs8(p256.privateKey) },
  ];
  const open = { format: 5, bytes: spki(rsa.publicKey) };
  const raw = (length: number) => ({ format: 1, bytes: new Uint8Array(length).fill(5) });
  const wrong: readonly [string, number, Block, ...Attr[]][] = [
    ['RSA of another length', 4, { ...own, algorithm: 4, bits: 4096 }],
    ['RSA as a curve', 4, { ...own, algorithm: 6, bits: 256 }],
    ['a curve as RSA', 4, { ...ecOwn, algorithm: 4, bits: 2048 }],
    ['another curve', 4, { ...ecOwn, algorithm: 6, bits: 256 }, curve(10)],
    ['by its attributes', 4, ecOwn, ['Cryptographic Length', 384]],
    ['a public key as AES', 3, { ...open, algorithm: 3, bits: 128 }],
    ['what nothing here reads, as AES', 3, { ...raw(77), format: 5, algorithm: 3 }],
    ['a symmetric key as RSA', 2, { ...raw(32), algorithm: 4, bits: 256 }],
    ['HMAC', 2, { ...raw(32), algorithm: 9, bits: 128 }],
    ['ChaCha20-Poly1305', 2, { ...raw(32), algorithm: 0x1e, bits: 1024 }],
    ['AES', 2, { ...raw(32), algorithm: 3, bits: 128 }],
    ['3DES', 2, { ...raw(24), algorithm: 2, bits: 128 }],
  ];
  for (const [what, type, of, ...more] of wrong) {
    const { status, reason } = await register(type, of, ...more);
    assert.deepEqual([status, reason], [1, reasons.invalidField], what);
  }
  const right: readonly [string, number, Block, ...Attr[]][] = [
    ['RSA', 4, { ...own, algorithm: 4, bits: 2048 }],
    ['RSA with nothing said', 4, own],
    ['ECDSA', 4, { ...ecOwn, algorithm: 6, bits: 256 }, curve(7)],
    ['ECDH', 4, { ...ecOwn, algorithm: 0x0e }],
    ['a public key', 3, { ...open, algorithm: 4, bits: 2048 }],
    ['HMAC', 2, { ...raw(32), algorithm: 9, bits: 256 }],
    ['3DES without parity', 2, { ...raw(24), algorithm: 2, bits: 168 }],
    ['3DES with parity', 2, { ...raw(24), algorithm: 2, bits: 192 }],
    ['DES', 2, { ...raw(8), algorithm: 1, bits: 56 }],
    ['a ciphertext as an opaque key, as Rook keeps it', 2, { ...raw(128), format: 2, algorithm: 3, bits: 256 }],
  ];
  for (const [what, type, of, ...more] of right) {
    const { status, message } = await register(type, of, ...more);
    assert.equal(status, 0, `${what}: ${message}`);
  }
});

test('what came wrapped leaves as it came, be it sensitive, and is recorded so', async () => {
  const a = await testAppliance();
  const c = await KmipClient.make(a, 'kmip.*');
  const data = structure(
    tags.keyWrappingData,
    enumeration(tags.wrappingMethod, 1),
    structure(tags.encryptionKeyInformation, uid('elsewhere')),
  );
  const came = structure(
    tags.symmetricKey,
    structure(
      tags.keyBlock,
      enumeration(tags.keyFormatType, 1),
      byteString(tags.keyValue, new Uint8Array(40).fill(4)),
      enumeration(tags.cryptographicAlgorithm, 3),
      integer(tags.cryptographicLength, 256),
      data,
    ),
  );
  const give = [enumeration(tags.objectType, 2), template(mask(12), ['Sensitive', true]), came];
  const id = idIn(await c.did('Register', give));
  assert.deepEqual(structureIn(await c.did('Get', [uid(id)]), tags.symmetricKey), came);
  const [record] = (await a.activity()).filter(({ action }) => action === 'key.export');
  assert.equal(record?.props?.transfer, 'wrapped');
  const plain = await c.aes(['Sensitive', true]);
  assert.equal(await c.refused('Get', [uid(plain)]), reasons.sensitive);
});

test('the key to wrap with is named, and the answer names it', async () => {
  const c = await client();
  const kek = await c.aes(mask(0x10), ['Activation Date', 1]);
  const id = await c.aes();
  const { value: parts } = wrappingBy(kek);
  const information = parts.find(({ tag }) => tag === tags.encryptionKeyInformation);
  const unnamed = structure(
    tags.keyWrappingSpecification,
    parts.filter((each) => each !== information),
    structure(tags.encryptionKeyInformation),
  );
  const batch = await c.batch([
    { operation: 'Activate', fields: [uid(await c.aes(mask(0x10)))] },
    { operation: 'Get', fields: [uid(id), unnamed] },
  ]);
  assert.equal(batch[1]?.reason, reasons.missingData);
  const meant = structure(
    tags.keyWrappingSpecification,
    parts.filter((each) => each !== information),
    structure(tags.encryptionKeyInformation, enumeration(tags.uniqueIdentifier, 1)),
  );
  const [, got] = await c.batch(
    [
      { operation: 'Obtain Lease', fields: [uid(kek)] },
      { operation: 'Check', fields: [uid(kek)] },
      { operation: 'Get', fields: [uid(id), meant] },
    ].slice(1),
    { version: 21 },
  );
  const whole = structureIn(structureIn(got?.payload, tags.symmetricKey), tags.keyBlock);
  const told = structureIn(structureIn(whole, tags.keyWrappingData), tags.encryptionKeyInformation);
  assert.equal(told && idIn(told), kek);
});

test('what is derived from a key leaves no more easily than that key', async () => {
  const c = await client();
  for (const [name, flag, reason] of [
    ['Sensitive', true, reasons.sensitive],
    ['Extractable', false, reasons.notExtractable],
  ] as const) {
    const base = await c.aes(mask(0x200), ['Activation Date', 1], [name, flag]);
    for (const given of [[], [[name, !flag]]] as readonly (readonly Attr[])[]) {
      const parameters = structure(
        tags.derivationParameters,
        structure(tags.cryptographicParameters, enumeration(tags.hashingAlgorithm, 6)),
        byteString(tags.derivationData, Uint8Array.of(1)),
      );
      const derived = idIn(
        await c.did('Derive Key', [
          ...[enumeration(tags.objectType, 2), uid(base), enumeration(tags.derivationMethod, 3), parameters],
          template(['Cryptographic Algorithm', 3], ['Cryptographic Length', 128], ...given),
        ]),
      );
      assert.equal(await c.refused('Get', [uid(derived)]), reason);
    }
  }
});

test('a pair is replaced with its own public key, wherever a link of the client leads', async () => {
  const c = await client();
  const given = fields([ec, curve(7), mask(3)]);
  const link = (id: string): Structure =>
    attr('Link', structure(value, enumeration(tags.linkType, 0x102), text(tags.linkedObjectIdentifier, id)), 0);
  const [secret, open] = halvesIn(await c.did('Create Key Pair', given));
  const [other, otherOpen] = halvesIn(await c.did('Create Key Pair', given));
  const aes = await c.aes(['Name', 'kept']);
  const key = { ...uid(secret), tag: tags.privateKeyUniqueIdentifier };
  for (const id of [aes, secret, other, otherOpen]) {
    await c.did('Modify Attribute', [uid(secret), link(id)]);
    assert.equal(await c.refused('Re-key Key Pair', [key]), reasons.illegalOperation);
    if (id === aes) assert.deepEqual(await namesOf(c, aes), ['kept']);
  }
  await c.did('Modify Attribute', [uid(secret), link(open)]);
  const [, newOpen] = halvesIn(await c.did('Re-key Key Pair', [key]));
  const replaced = await c.attribute(newOpen, 'Link');
  const ids = replaced.map((each) => each.type === 'structure' && one(each, tags.linkedObjectIdentifier)?.value);
  assert.ok(ids.includes(open));
});

test('a check that finds an object unfit leaves none for the items after it', async () => {
  const c = await client();
  const id = await c.aes();
  for (const version of [14, 21]) {
    const [checked, got] = await c.batch(
      [{ operation: 'Check', fields: [uid(id), integer(tags.cryptographicUsageMask, 0x200)] }, { operation: 'Get' }],
      { version, header: [enumeration(tags.batchErrorContinuationOption, 1)] },
    );
    assert.equal(checked?.status, version === 14 ? 0 : 1);
    assert.deepEqual(checked && idsIn(checked.payload), []);
    assert.equal(got?.reason, reasons.missingData, `${version}`);
    const [, after, last] = await c.batch(
      [
        { operation: 'Check', fields: [uid(id), integer(tags.cryptographicUsageMask, 4)] },
        { operation: 'Check', fields: [integer(tags.cryptographicUsageMask, 0x200)] },
        { operation: 'Get' },
      ],
      { version, header: [enumeration(tags.batchErrorContinuationOption, 1)] },
    );
    assert.ok(after);
    assert.equal(last?.reason, reasons.missingData, `${version}`);
  }
  const { payload } = await c.ask('Check', [uid(id), integer(tags.cryptographicUsageMask, 4)]);
  assert.equal(idIn(payload), id);
  assert.equal(materialIn(await c.did('Get', [uid(id)])).length, 32);
});
