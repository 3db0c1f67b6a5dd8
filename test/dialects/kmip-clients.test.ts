// Rights over KMIP: objects are their makers', others see them by flags, and no client learns of what it may not see.
// Each item of a batch has its record.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toPem } from '../../src/crypto/pem.ts';
import { laterReasons, reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  byteString,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  structure,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import {
  attr,
  idsIn,
  KmipClient,
  materialIn,
  requestOf,
  resultsOf,
  template,
  uid,
  withPassword,
  wrappingBy,
} from '../support/kmip-client.ts';

const kmipRecords = async (a: Appliance) => (await a.activity()).filter(({ props }) => props.dialect === 'kmip');
const link = (id: string): Item =>
  structure(tags.attributeValue, enumeration(tags.linkType, 0x106), text(tags.linkedObjectIdentifier, id));

test('what one client made, another neither finds nor changes: it is answered as if there were nothing', async () => {
  const a = await testAppliance();
  const [one, two] = [await KmipClient.make(a, 'kmip.*'), await KmipClient.make(a, 'kmip.*')];
  const id = await one.aes(['Name', 'mine']);
  assert.deepEqual(idsIn(await two.did('Locate')), []);
  assert.deepEqual(idsIn(await two.did('Locate', [attr('Name', 'mine')])), []);
  const operations: readonly (readonly [string, readonly Item[]])[] = [
    ['Get', []],
    ['Get Attributes', []],
    ['Get Attribute List', []],
    ['Check', []],
    ['Add Attribute', [attr('x-a', 'b')]],
    ['Modify Attribute', [attr('Name', 'b')]],
    ['Delete Attribute', [text(tags.attributeName, 'Name')]],
    ['Activate', []],
    ['Revoke', [structure(tags.revocationReason, enumeration(tags.revocationReasonCode, 2))]],
    ['Destroy', []],
    ['Archive', []],
    ['Recover', []],
    ['Obtain Lease', []],
    ['Re-key', []],
    ['Encrypt', [byteString(tags.data, new Uint8Array(16))]],
    ['Decrypt', [byteString(tags.data, new Uint8Array(16))]],
    ['Sign', [byteString(tags.data, new Uint8Array(16))]],
    ['MAC', [byteString(tags.data, new Uint8Array(16))]],
  ];
  const absent = `mkey_${'0'.repeat(26)}`;
  for (const [operation, fields] of operations) {
    const answers = [];
    for (const each of [id, absent]) {
      const [answer] = await two.batch([{ operation, fields: [uid(each), ...fields] }]);
      answers.push([answer?.status, answer?.reason, answer?.message]);
    }
    assert.deepEqual(answers[0], answers[1], operation);
    assert.equal(answers[0]?.[1], reasons.itemNotFound, operation);
  }
  await two.aes(['Name', 'mine']);
  const linked = await two.aes(['Link', link(id)]);
  assert.ok(linked);
  assert.equal(await one.state(id), 1);
});

test('two tenants have each their own', async () => {
  const tenants = ['default', 'other'].map((name, n) => ({ name, hosts: [n === 0 ? '*' : 'other.test'] }));
  const a = await testAppliance({ tenants });
  const [, seat] = a.tenants;
  assert.ok(seat);
  const here = await KmipClient.make(a, '*');
  const id = await here.aes(['Name', 'shared name']);
  const flags = { 'kmip.*': true, 'key.*': true };
  const made = await a.call(
    'POST',
    '/auth/apikey',
    { accountId: seat.accountId, flags },
    { key: seat.root.key, host: 'other.test' },
  );
  const certificate = await TestCertificate.alone(a.world.now());
  const proof = { kind: 'certificate', certificate: certificate.pem };
  const path = `/auth/apikeys/${made.body.keyid}/proofs`;
  assert.equal((await a.call('POST', path, proof, { key: seat.root.key, host: 'other.test' })).status, 200);
  const there = new KmipClient(a, certificate);
  assert.equal(await there.refused('Get', [uid(id)]), reasons.itemNotFound);
  assert.deepEqual(idsIn(await there.did('Locate')), []);
  const own = await there.aes(['Name', 'shared name']);
  assert.deepEqual(idsIn(await there.did('Locate', [attr('Name', 'shared name')])), [own]);
  assert.deepEqual(idsIn(await here.did('Locate', [attr('Name', 'shared name')])), [id]);
});

test('each flag grants its operations on own objects, and no others', async () => {
  const a = await testAppliance();
  const cases: readonly (readonly [string, string, readonly Item[]])[] = [
    ['kmip.read', 'Get Attributes', []],
    ['kmip.get', 'Get', []],
    ['kmip.use', 'Encrypt', [byteString(tags.data, new Uint8Array(16))]],
    ['kmip.change', 'Add Attribute', [attr('x-a', 'b')]],
    ['kmip.state', 'Archive', []],
    ['kmip.destroy', 'Destroy', []],
    ['kmip.create', 'Create', []],
  ];
  const wanted = [
    enumeration(tags.objectType, 2),
    template(['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12]),
  ];
  for (const [flag, operation, fields] of cases) {
    const key = await KmipClient.make(a, 'kmip.create');
    const id = await key.aes();
    const others = ['kmip.create', 'kmip.read', 'kmip.get', 'kmip.use', 'kmip.change', 'kmip.state', 'kmip.destroy'];
    const set = (names: readonly string[]) =>
      a.call('PUT', '/auth/apikeyid', {
        apikeyid: key.keyid,
        op: 'replace',
        flags: Object.fromEntries(names.map((name) => [name, true])),
      });
    const asked = () => key.ask(operation, operation === 'Create' ? wanted : [uid(id), ...fields]);
    assert.equal((await set(others.filter((each) => each !== flag))).status, 200);
    const refused = await asked();
    assert.equal(refused.reason, reasons.permissionDenied, flag);
    assert.match(refused.message ?? '', new RegExp(`the permission flag ${flag} is missing`));
    assert.equal((await set([flag])).status, 200);
    const granted = await asked();
    // A key that is not active yet does not encrypt, but the flag is there.
    assert.ok(granted.status === 0 || /not active/.test(granted.message ?? ''), `${flag}: ${granted.message}`);
  }
});

test('an object is shared by the flags of its managed key, and keys made otherwise are objects too', async () => {
  const a = await testAppliance();
  assert.equal((await a.call('POST', '/managed-keys', { name: 'seal', type: 'aes256-gcm' })).status, 200);
  const { body } = await a.call('GET', '/managed-keys/seal');
  const id: string = body.key.id;
  const client = await KmipClient.make(a, 'key.seal.read', 'key.seal.encrypt', 'key.seal.decrypt');
  assert.deepEqual(idsIn(await client.did('Locate')), [id]);
  assert.deepEqual(idsIn(await client.did('Locate', [attr('Name', 'seal')])), [id]);
  const how = structure(tags.cryptographicParameters, enumeration(tags.blockCipherMode, 9));
  const sealed = await client.did('Encrypt', [uid(id), how, byteString(tags.data, new Uint8Array(5))]);
  const [data, iv, tag] = [tags.data, tags.ivCounterNonce, tags.authenticationTag].map((each) =>
    byteString(each, fieldOf(sealed, each, 'bytes') ?? new Uint8Array()),
  );
  assert.ok(data && iv && tag);
  const opened = await client.did('Decrypt', [uid(id), how, data, iv, tag]);
  assert.deepEqual(fieldOf(opened, tags.data, 'bytes'), new Uint8Array(5));
  const { reason, message } = await client.ask('Get', [uid(id)]);
  assert.deepEqual([reason, message], [reasons.permissionDenied, 'the permission flag key.seal.export is missing']);
  const reader = await KmipClient.make(a, 'key.*');
  assert.equal(await reader.refused('Get', [uid(id)]), reasons.notExtractable, 'it may not leave, whoever asks');
  const maker = await KmipClient.make(a, 'kmip.*');
  const made = await maker.aes(['Name', 'made']);
  assert.ok(idsIn(await reader.did('Locate')).includes(made));
  assert.equal(materialIn(await reader.did('Get', [uid(made)])).length, 32);
  assert.deepEqual(idsIn(await maker.did('Locate')), [made]);
  const tagged = async () => (await a.call('GET', `/managed-keys/${made}`)).body.key.tags;
  assert.deepEqual(await tagged(), { 'kmip-name': 'made' });
  await maker.did('Modify Attribute', [uid(made), attr('Name', 'renamed')]);
  assert.deepEqual(await tagged(), { 'kmip-name': 'renamed' });
  await reader.did('Add Attribute', [uid(id), attr('x-seen', 'yes')]);
  assert.deepEqual(idsIn(await reader.did('Locate', [attr('x-seen', 'yes')])), [id]);
  const suspended = await a.call('POST', '/managed-keys/seal/state', { state: 'suspended', used: true });
  assert.equal(suspended.status, 200, suspended.text);
  assert.equal(await reader.refused('Activate', [uid(id)]), reasons.permissionDenied, 'an operator suspended it');
});

test('a pair made otherwise has a public half, for all who may look at it, and never the private one', async () => {
  const a = await testAppliance();
  const rsa = { name: 'seal', type: 'rsa-2048', uses: ['encrypt', 'decrypt'] };
  assert.equal((await a.call('POST', '/managed-keys', rsa)).status, 200);
  const sealer = await KmipClient.make(a, 'key.seal.read', 'key.seal.encrypt', 'key.seal.decrypt');
  const isPublic = attr('Object Type', 3);
  const [open = ''] = idsIn(await sealer.did('Locate', [isPublic]));
  const [whole = ''] = idsIn(await sealer.did('Locate', [attr('Object Type', 4)]));
  assert.notEqual(open, whole);
  const linked = async (id: string) => {
    const [item] = await sealer.attribute(id, 'Link');
    assert.ok(item?.type === 'structure');
    return [fieldOf(item, tags.linkType, 'enumeration'), fieldOf(item, tags.linkedObjectIdentifier, 'text')];
  };
  assert.deepEqual(await linked(whole), [0x102, open]);
  assert.deepEqual(await linked(open), [0x103, whole]);
  assert.deepEqual(await sealer.attribute(open, 'Cryptographic Usage Mask'), [integer(tags.attributeValue, 4)]);
  const oaep = structure(
    tags.cryptographicParameters,
    enumeration(tags.paddingMethod, 2),
    enumeration(tags.hashingAlgorithm, 6),
  );
  const plain = new TextEncoder().encode('root key');
  const sealed = await sealer.did('Encrypt', [uid(open), oaep, byteString(tags.data, plain)]);
  const data = byteString(tags.data, fieldOf(sealed, tags.data, 'bytes') ?? new Uint8Array());
  const opened = await sealer.did('Decrypt', [uid(whole), oaep, data]);
  assert.deepEqual(fieldOf(opened, tags.data, 'bytes'), plain);
  const spki = materialIn(await sealer.did('Get', [uid(open), enumeration(tags.keyFormatType, 5)]), tags.publicKey);
  const { body } = await a.call('GET', '/managed-keys/seal');
  assert.equal(body.key.versions[0].publicKey, toPem('PUBLIC KEY', spki));
  assert.equal(await sealer.refused('Get', [uid(whole)]), reasons.permissionDenied);
  const all = await KmipClient.make(a, 'kmip.*', 'key.*');
  const compromise = structure(tags.revocationReason, enumeration(tags.revocationReasonCode, 2));
  for (const [operation, fields] of [
    ['Revoke', [compromise]],
    ['Destroy', []],
    ['Add Attribute', [attr('x-a', 'b')]],
    ['Decrypt', [oaep, data]],
    ['Re-key Key Pair', []],
  ] as const) {
    const named = operation === 'Re-key Key Pair' ? text(tags.privateKeyUniqueIdentifier, open) : uid(open);
    assert.equal(await all.refused(operation, [named, ...fields]), reasons.permissionDenied, operation);
  }
  await all.did('Add Attribute', [uid(whole), attr('x-a', 'b')]);
  assert.deepEqual(await linked(whole), [0x102, open], 'also with attributes of its own');
  const rekeyed = [text(tags.privateKeyUniqueIdentifier, whole)];
  assert.equal(await all.refused('Re-key Key Pair', rekeyed), reasons.illegalOperation);
  const stranger = await KmipClient.make(a, 'kmip.*');
  for (const operation of ['Get', 'Destroy', 'Get Attributes']) {
    assert.equal(await stranger.refused(operation, [uid(open)]), reasons.itemNotFound, operation);
  }
  const made = await stranger.aes();
  assert.equal(await stranger.refused('Get', [uid(`${made}-public`)]), reasons.itemNotFound);
});

test('a key that another client replaces stays the one of its owner, and dates take the flag for states', async () => {
  const a = await testAppliance();
  const owner = await KmipClient.make(a, 'kmip.*');
  const id = await owner.aes(['Name', 'theirs']);
  const other = await KmipClient.make(a, 'kmip.*', 'key.*');
  await other.did('Re-key', [uid(id)]);
  const [next, ...more] = idsIn(await owner.did('Locate', [attr('Name', 'theirs')]));
  assert.ok(next !== undefined && next !== id && more.length === 0);
  const editor = await KmipClient.make(a, 'kmip.create', 'kmip.read', 'kmip.change');
  const own = await editor.aes();
  const now = Math.floor(a.world.now() / 1000);
  assert.equal(
    await editor.refused('Add Attribute', [uid(own), attr('Activation Date', now)]),
    reasons.permissionDenied,
  );
  assert.equal(await editor.state(own), 1);
});

test('those who manage keys see what an object is, whose, and who got it', async () => {
  const a = await testAppliance();
  const client = await KmipClient.make(a, 'kmip.*');
  const id = await client.aes(['Name', 'volume 7']);
  const { kmip } = (await a.call('GET', `/managed-keys/${id}`)).body.key;
  assert.deepEqual(kmip, { type: 'symmetric-key', names: ['volume 7'], owner: client.keyid });
  await client.did('Get', [uid(id)]);
  const { body } = await a.call('GET', `/managed-keys/${id}/dependents`);
  const [used] = body.dependents;
  assert.deepEqual([used.caller, used.dialect, used.operation, used.version], [client.keyid, 'kmip', 'export', 1]);
  const suspended = await a.call('POST', `/managed-keys/${id}/state`, { state: 'deactivated' });
  assert.equal(suspended.status, 400, 'its user was not asked');
  await a.call('POST', '/managed-keys', { name: 'native', type: 'aes256-gcm' });
  assert.equal('kmip' in (await a.call('GET', '/managed-keys/native')).body.key, false);
});

test('what a client destroyed, an operator can restore, with its name', async () => {
  const a = await testAppliance();
  const client = await KmipClient.make(a, 'kmip.*');
  const id = await client.aes(['Name', 'gone']);
  const before = materialIn(await client.did('Get', [uid(id)]));
  await client.did('Destroy', [uid(id)]);
  assert.equal((await a.call('POST', `/managed-keys/${id}/restore`)).status, 200);
  assert.deepEqual(materialIn(await client.did('Get', [uid(id)])), before);
  await client.did('Destroy', [uid(id)]);
  await client.aes(['Name', 'gone']);
  const taken = await a.call('POST', `/managed-keys/${id}/restore`);
  assert.equal(taken.status, 400, 'its name has gone to another');
});

test('each item has a record, granted or denied, without values', async () => {
  const a = await testAppliance();
  const client = await KmipClient.make(a, 'kmip.create', 'kmip.read', 'kmip.get');
  const id = await client.aes();
  const material = Buffer.from(materialIn(await client.did('Get', [uid(id)])));
  await client.batch([
    { operation: 'Get Attributes', fields: [uid(id)] },
    { operation: 'Destroy', fields: [uid(id)] },
  ]);
  await client.ask('Get', [uid('nothing')]);
  const records = (await kmipRecords(a)).toReversed();
  const told = records.map(({ action, validAction, status, props }) => [props.operation, action, validAction, status]);
  assert.deepEqual(told, [
    ['Create', 'key.create', true, 200],
    ['Get', 'key.export', true, 200],
    ['Get Attributes', 'key.read', true, 200],
    ['Destroy', 'key.delete', false, 403],
    ['Get', 'key.export', true, 404],
  ]);
  const [, got, , denied] = records;
  assert.equal(got?.keyid, client.keyid);
  assert.equal(got?.address, '192.0.2.7');
  assert.deepEqual(got?.props.transfer, 'plaintext');
  assert.equal(denied?.props.reason, reasons.permissionDenied);
  const all = JSON.stringify(records) + a.log.join('');
  for (const secret of [material.toString('base64'), material.toString('hex')]) assert.ok(!all.includes(secret));
});

test('the record of a refused item names its object if the client may know of it, or else the id asked for', async () => {
  const a = await testAppliance();
  const { status, body } = await a.call('POST', '/managed-keys', { name: 'seal' });
  assert.equal(status, 200);
  const seal: string = body.key.id;
  const stranger = await KmipClient.make(a, 'kmip.*');
  const hidden = await stranger.aes();
  const client = await KmipClient.make(a, 'kmip.create', 'key.seal.read');
  const own = await client.aes();
  const long = 'x'.repeat(70_000);
  const asked = async (operation: string, id: string) => {
    const { message } = await client.ask(operation, [uid(id)]);
    const [record] = await kmipRecords(a);
    const { props, ringname } = record ?? assert.fail('no record');
    return { object: props.object, asked: props.asked, ringname, message };
  };
  const [name, named] = [`kmip-${own.slice(5)}`, { type: 'managed-key', id: own }];
  for (const operation of ['Get', 'Destroy']) {
    const known = await asked(operation, own);
    assert.deepEqual([known.object, known.asked, known.ringname], [{ ...named, name }, undefined, name]);
    const shared = await asked(operation, seal);
    const told = { type: 'managed-key', id: seal, name: 'seal' };
    assert.deepEqual([shared.object, shared.asked, shared.ringname], [told, undefined, 'seal']);
    const [unseen, absent] = [await asked(operation, hidden), await asked(operation, 'nothing')];
    assert.deepEqual([unseen.object, unseen.asked, unseen.ringname], [undefined, hidden, '']);
    assert.deepEqual([absent.object, absent.asked, absent.ringname], [undefined, 'nothing', '']);
    assert.equal(unseen.message, absent.message, 'the client is told the same');
    assert.equal((await asked(operation, long)).asked, long.slice(0, 256));
  }
  const kek = await stranger.aes();
  const all = await KmipClient.make(a, 'kmip.*');
  const mine = await all.aes();
  assert.equal(await all.refused('Get', [uid(mine), wrappingBy(kek)]), reasons.itemNotFound);
  const [record] = await kmipRecords(a);
  assert.deepEqual([record?.props.object, record?.props.asked], [undefined, kek]);
});

test('a client whose key is switched off, or not for its address, gets nothing, and that is recorded', async () => {
  const a = await testAppliance();
  const client = await KmipClient.make(a, 'kmip.*');
  const change = (body: object) => a.call('PUT', '/auth/apikeyid', { apikeyid: client.keyid, ...body });
  assert.equal((await change({ op: 'merge', allowedAddresses: ['198.51.100.0/24'] })).status, 200);
  assert.equal(await client.refused('Locate'), reasons.authenticationNotSuccessful);
  assert.equal((await change({ op: 'merge', allowedAddresses: [] })).status, 200);
  await client.did('Locate');
  assert.equal((await change({ op: 'merge', active: false })).status, 200);
  assert.equal(await client.refused('Locate'), reasons.authenticationNotSuccessful);
  const [last] = await kmipRecords(a);
  assert.deepEqual([last?.action, last?.validAction, last?.status], ['key.list', false, 401]);
});

test('a stranger of a known authority may ask what the server is, and nothing else', async () => {
  const a = await testAppliance();
  const authority = await TestCertificate.authority(a.world.now());
  const key = await a.keyWith('kmip.*');
  const proof = { kind: 'certificate', ca: authority.pem, san: 'dns:storage.example' };
  assert.equal((await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, proof)).status, 200);
  const known = new KmipClient(a, await authority.signs({ names: [{ type: 'dns', value: 'storage.example' }] }));
  await known.did('Locate');
  const stranger = new KmipClient(a, await authority.signs({ names: [{ type: 'dns', value: 'other.example' }] }));
  await stranger.did('Discover Versions');
  await stranger.did('Query', [enumeration(tags.queryFunction, 3)]);
  assert.equal(await stranger.refused('Locate'), reasons.authenticationNotSuccessful);
  const nobody = new KmipClient(a, await TestCertificate.alone(a.world.now()));
  assert.equal((await nobody.post(encodeItem(requestOf([{ operation: 'Query' }])))).status, 401);
  const named = (password: string, name = key.keyid) => withPassword(name, password);
  assert.equal((await stranger.ask('Locate', [], named(key.key))).status, 0, 'an API key as name and password');
  assert.equal((await stranger.ask('Locate', [], named('kms_wrong'))).reason, reasons.authenticationNotSuccessful);
  const other = await a.keyWith('kmip.*');
  assert.equal((await stranger.ask('Locate', [], named(other.key))).reason, reasons.authenticationNotSuccessful);
  assert.equal((await known.ask('Locate', [], named('secret', 'somebody'))).status, 0, 'other names do no harm');
});

test('a tenant whose clients hold their keys has no objects', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], custody: 'client' }] });
  const client = await KmipClient.make(a, 'kmip.*');
  const wanted = [
    enumeration(tags.objectType, 2),
    template(['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12]),
  ];
  assert.equal(await client.refused('Create', wanted), reasons.permissionDenied);
});

test('a quota is a limit of the server', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], limits: { keyrings: 1 } }] });
  const client = await KmipClient.make(a, 'kmip.*');
  await client.aes();
  const create = requestOf(
    [
      {
        operation: 'Create',
        fields: [
          enumeration(tags.objectType, 2),
          structure(tags.attributes, enumeration(tags.cryptographicAlgorithm, 3), {
            tag: tags.cryptographicUsageMask,
            type: 'integer',
            value: 12,
          }),
        ],
      },
    ],
    { version: 20 },
  );
  const answer = await client.send(encodeItem(create));
  assert.ok(answer);
  assert.equal(resultsOf(answer)[0]?.reason, laterReasons.serverLimitExceeded);
});
