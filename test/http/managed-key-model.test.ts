// Managed keys over the native interface: types and uses, states and dates, aliases, dependents, import and export.
import assert from 'node:assert/strict';
import { constants, createPublicKey, generateKeyPairSync, privateDecrypt, publicEncrypt, verify } from 'node:crypto';
import { test } from 'node:test';
import { awsIdOf } from '../../src/core/aws-names.ts';
import { purgeExpired } from '../../src/core/keyrings.ts';
import { keyTypeFacts, keyTypes } from '../../src/model/key-types.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { base64, day, make, ok, refused } from './managed-key-desk.ts';

async function encrypted(a: Appliance, name: string): Promise<string> {
  const { items } = await ok(a.call('POST', `/managed-keys/${name}/encrypt`, { items: [{ plaintext: 'aGk=' }] }));
  return items[0].ciphertext;
}

test('a key of every type is made, shown and used for what it is for', async () => {
  const a = await testAppliance();
  for (const type of keyTypes) {
    const key = await make(a, { type });
    assert.match(key.id, /^mkey_[0-9a-z]{26}$/);
    assert.deepEqual([key.type, key.state, key.latestVersion, key.primaryVersion], [type, 'active', 1, 1]);
    assert.deepEqual(key.uses, keyTypeFacts[type].purposes[0].usual);
    const [version] = key.versions;
    assert.deepEqual([version.version, version.state, version.origin], [1, 'active', 'generated']);
    assert.equal(version.publicKey !== undefined, keyTypeFacts[type].isAsymmetric, type);
    if (key.uses.includes('sign')) {
      const input = base64('hello');
      const { signature, keyVersion } = await ok(a.call('POST', `/managed-keys/${key.id}/sign`, { input }));
      assert.equal(keyVersion, 1);
      const answer = await ok(a.call('POST', `/managed-keys/${key.name}/verify`, { input, signature }));
      assert.deepEqual(answer, { valid: true });
      const other = await ok(a.call('POST', `/managed-keys/${key.name}/verify`, { input: base64('no'), signature }));
      assert.deepEqual(other, { valid: false });
    } else if (key.uses.includes('mac')) {
      const input = base64('hello');
      const { mac } = await ok(a.call('POST', `/managed-keys/${key.name}/mac`, { input }));
      assert.deepEqual(await ok(a.call('POST', `/managed-keys/${key.name}/verify`, { input, mac })), { valid: true });
      const { items } = await ok(
        a.call('POST', `/managed-keys/${key.name}/verify`, {
          items: [
            { input, mac },
            { input: base64('x'), mac },
          ],
        }),
      );
      assert.deepEqual(
        items.map(({ valid }: { valid: boolean }) => valid),
        [true, false],
      );
    } else if (key.uses.includes('encrypt')) {
      const ciphertext = await encrypted(a, key.name);
      const { items } = await ok(a.call('POST', `/managed-keys/${key.name}/decrypt`, { items: [{ ciphertext }] }));
      assert.deepEqual(items, [{ plaintext: 'aGk=' }]);
    } else {
      assert.deepEqual([type, key.exportable], ['secret', true]);
    }
  }
});

test('RSA encrypts or signs, with the padding asked for, and node:crypto agrees', async () => {
  const a = await testAppliance();
  await refused(
    a.call('POST', '/managed-keys', { name: 'both', type: 'rsa-2048', uses: ['encrypt', 'sign'] }),
    400,
    /one purpose/,
  );
  const seals = await make(a, { type: 'rsa-2048', uses: ['encrypt', 'decrypt'] });
  const publicKey = createPublicKey(seals.versions[0].publicKey);
  const made = publicEncrypt({ key: publicKey, oaepHash: 'sha256' }, Buffer.from('hello'));
  const ciphertext = `vault:v1:${made.toString('base64')}`;
  const { items } = await ok(
    a.call('POST', `/managed-keys/${seals.name}/decrypt`, { items: [{ ciphertext }, { ciphertext: 'vault:v1:AAAA' }] }),
  );
  assert.equal(items[0].plaintext, base64('hello'));
  assert.match(items[1].error, /decryption error/);
  const signs = await make(a, { type: 'rsa-2048' });
  const input = base64('hello');
  for (const padding of ['pss', 'pkcs1v15'] as const) {
    const { signature } = await ok(
      a.call('POST', `/managed-keys/${signs.name}/sign`, { input, padding, hash: 'sha2-512' }),
    );
    const rsa = { pss: constants.RSA_PKCS1_PSS_PADDING, pkcs1v15: constants.RSA_PKCS1_PADDING }[padding];
    const key = { key: signs.versions[0].publicKey, padding: rsa };
    const bytes = Buffer.from(signature.split(':')[2], 'base64');
    assert.equal(verify('sha512', Buffer.from('hello'), key, bytes), true, padding);
  }
  const batch = await ok(
    a.call('POST', `/managed-keys/${signs.name}/sign`, { items: [{ input }, { input: 'no base64' }, { input }] }),
  );
  assert.match(batch.items[1].error, /illegal base64/);
  assert.equal(typeof batch.items[2].signature, 'string');
});

test('an RSA key that is due for a new version gets it at the next signature', async () => {
  const a = await testAppliance();
  const { name } = await make(a, { type: 'rsa-2048', rotateAfter: 3600 });
  a.advance(3600 * 1000);
  const signed = await ok(a.call('POST', `/managed-keys/${name}/sign`, { input: 'aGk=' }));
  assert.equal(signed.keyVersion, 2);
});

test('states move as the table says, key and version, and say why not', async () => {
  const a = await testAppliance();
  const { name } = await make(a);
  const first = await encrypted(a, name);
  await ok(a.call('POST', `/managed-keys/${name}/rotate`));
  const second = await encrypted(a, name);
  assert.match(second, /^vault:v2:/);
  const state = (body: object) => a.call('POST', `/managed-keys/${name}/state`, body);
  const decrypt = (...texts: string[]) =>
    a.call('POST', `/managed-keys/${name}/decrypt`, { items: texts.map((ciphertext) => ({ ciphertext })) });
  await refused(state({ state: 'suspended' }), 400, /^1 caller used the key in the last 24 hours/);
  const { key } = await ok(state({ state: 'suspended', version: 2, used: true }));
  assert.deepEqual([key.state, key.primaryVersion], ['active', 1]);
  assert.match(await encrypted(a, name), /^vault:v1:/);
  const { items } = await ok(decrypt(first, second));
  assert.equal(items[0].plaintext, 'aGk=');
  assert.match(items[1].error, /this version of the key is suspended/);
  assert.equal((await ok(state({ state: 'suspended', used: true }))).key.state, 'suspended');
  await refused(decrypt(first), 400, /the key is suspended/);
  assert.equal((await ok(state({ state: 'active' }))).key.state, 'active');
  assert.equal((await ok(state({ state: 'deactivated' }))).key.state, 'deactivated');
  await refused(
    a.call('POST', `/managed-keys/${name}/encrypt`, { items: [{ plaintext: '' }] }),
    400,
    /the key is deactivated, so it cannot encrypt: it can still decrypt/,
  );
  assert.deepEqual((await ok(decrypt(first))).items, [
    { plaintext: 'aGk=', warning: 'the key is deactivated: nothing new should come from it' },
  ]);
  await refused(state({ state: 'active' }), 400, /cannot be activated/);
  assert.equal((await ok(state({ state: 'compromised' }))).key.state, 'compromised');
  await refused(state({ state: 'suspended' }), 400, /cannot be suspended/);
});

test('dates move the state by themselves', async () => {
  const a = await testAppliance();
  const now = a.world.now();
  const { name, state } = await make(a, { activateAt: now + day, deactivateAt: now + 2 * day });
  assert.equal(state, 'pre-active');
  const encrypts = () => a.call('POST', `/managed-keys/${name}/encrypt`, { items: [{ plaintext: '' }] });
  await refused(encrypts(), 400, /is not active yet/);
  a.advance(day);
  assert.equal((await encrypts()).status, 200);
  a.advance(day);
  await refused(encrypts(), 400, /is deactivated/);
  assert.equal((await ok(a.call('GET', `/managed-keys/${name}`))).key.state, 'deactivated');
});

test('no change of dates takes back what they have done, and it needs the flag of states', async () => {
  const a = await testAppliance();
  const now = a.world.now();
  const { name } = await make(a, { activateAt: now + day, deactivateAt: now + 2 * day });
  const config = await a.keyWith(`key.${name}.config`);
  const path = `/managed-keys/${name}/config`;
  await refused(a.call('PUT', path, { deactivateAt: now }, { key: config.key }), 403, /key\..*\.state is missing/);
  await ok(a.call('PUT', path, { rotateAfter: 3600 }, { key: config.key }));
  const both = await a.keyWith(`key.${name}.config`, `key.${name}.state`);
  const dated = async (change: object) => (await ok(a.call('PUT', path, change, { key: both.key }))).key.state;
  a.advance(day);
  await refused(
    a.call('PUT', path, { activateAt: now + 9 * day }, { key: both.key }),
    400,
    /^activateAt: .* is active/,
  );
  a.advance(day);
  assert.equal(await dated({ deactivateAt: null }), 'deactivated');
  assert.equal((await ok(a.call('GET', `/managed-keys/${name}`))).key.deactivateAt, null);
  await refused(a.call('POST', `/managed-keys/${name}/encrypt`, { items: [{ plaintext: '' }] }), 400, /is deactivated/);
});

test('a key is not restored onto a name or an alias that another has meanwhile', async () => {
  const a = await testAppliance();
  const { id } = await make(a, { name: 'former', deletionAllowed: true, aliases: ['former', 'kept'] });
  await ok(a.call('DELETE', '/managed-keys/former', {}));
  await refused(a.call('POST', '/managed-keys', { name: 'kept' }), 400, /has this alias/);
  await ok(a.call('POST', `/managed-keys/${id}/restore`));
  await ok(a.call('DELETE', '/managed-keys/former/aliases/former'));
  await ok(a.call('DELETE', '/managed-keys/former', {}));
  const other = await make(a, { aliases: ['former'] });
  await refused(a.call('POST', `/managed-keys/${id}/restore`), 400, /has this alias/);
  assert.equal((await ok(a.call('GET', '/managed-keys/former'))).key.id, other.id);
  await ok(a.call('DELETE', `/managed-keys/${other.id}/aliases/former`));
  assert.equal((await ok(a.call('POST', `/managed-keys/${id}/restore`))).key.name, 'former');
});

test('a key that is suspended, deactivated or compromised takes in no version either', async () => {
  const a = await testAppliance();
  const { name, versions } = await make(a, { type: 'ed25519' });
  const { publicKey } = versions[0];
  await ok(a.call('POST', `/managed-keys/${name}/import`, { publicKey, isNewVersion: true }));
  for (const state of ['suspended', 'deactivated', 'compromised']) {
    await ok(a.call('POST', `/managed-keys/${name}/state`, { state }));
    const imported = a.call('POST', `/managed-keys/${name}/import`, { publicKey, isNewVersion: true });
    await refused(imported, 400, new RegExp(`the key is ${state}, so it gets no new version`));
  }
});

test('a key is found by name, id and alias, its flags by the name alone', async () => {
  const a = await testAppliance();
  const key = await make(a, { name: 'payments', aliases: ['App/DB'] });
  assert.deepEqual(key.aliases, ['App/DB']);
  const holder = await a.keyWith('key.payments.encrypt');
  const ofAlias = await a.keyWith('key.app/db.encrypt', 'key.nothing.encrypt');
  const items = [{ plaintext: 'aGk=' }];
  for (const ref of ['payments', 'PAYMENTS', key.id, 'app%2Fdb', 'APP%2FDB']) {
    assert.equal(
      (await a.call('POST', `/managed-keys/${ref}/encrypt`, { items }, { key: holder.key })).status,
      200,
      ref,
    );
    assert.equal(
      (await a.call('POST', `/managed-keys/${ref}/encrypt`, { items }, { key: ofAlias.key })).status,
      403,
      ref,
    );
  }
  const other = await make(a, { name: 'other' });
  await refused(a.call('POST', '/managed-keys', { name: 'third', aliases: ['app/db'] }), 400, /another managed key/);
  for (const name of ['other', 'payments']) {
    const given = a.call('POST', `/managed-keys/${name}/aliases`, { alias: 'APP/db', isNew: true });
    await refused(given, 400, /^alias: a managed key has this alias already$/);
  }
  await ok(a.call('POST', '/managed-keys/other/aliases', { alias: 'fresh', isNew: true }));
  await ok(a.call('DELETE', '/managed-keys/other/aliases/fresh'));
  const config = await a.keyWith('key.other.config');
  await refused(
    a.call('POST', '/managed-keys/other/aliases', { alias: 'app/db' }, { key: config.key }),
    403,
    /is missing/,
  );
  const both = await a.keyWith('key.other.config', 'key.payments.config');
  assert.deepEqual(
    (await ok(a.call('POST', '/managed-keys/other/aliases', { alias: 'app/db' }, { key: both.key }))).key.aliases,
    ['app/db'],
  );
  assert.equal((await ok(a.call('GET', '/managed-keys/app%2Fdb'))).key.id, other.id);
  await ok(a.call('DELETE', '/managed-keys/other/aliases/app%2Fdb'));
  assert.equal((await a.call('GET', '/managed-keys/app%2Fdb')).status, 404);
});

test('who depends on a key is told, and asked about before it goes', async () => {
  const a = await testAppliance();
  const { name, id } = await make(a, { deletionAllowed: true });
  const program = await a.keyWith(`key.${name}.*`);
  for (let n = 0; n < 3; n++) {
    await ok(a.call('POST', `/managed-keys/${name}/encrypt`, { items: [{ plaintext: 'aGk=' }] }, { key: program.key }));
  }
  const ciphertext = await encrypted(a, name);
  await ok(a.call('POST', `/managed-keys/${name}/decrypt`, { items: [{ ciphertext }] }, { key: program.key }));
  const { dependents } = await ok(a.call('GET', `/managed-keys/${name}/dependents`));
  const counts = dependents.map(({ caller, dialect, version, operation, count }: AnyJson) =>
    [caller === program.keyid ? 'program' : 'root', dialect, version, operation, count].join(' '),
  );
  assert.deepEqual(counts.sort(), [
    'program native 1 decrypt 1',
    'program native 1 encrypt 3',
    'root native 1 encrypt 1',
  ]);
  const later = a.world.now() + 1;
  assert.deepEqual(await ok(a.call('GET', `/managed-keys/${name}/dependents?since=${later}`)), { dependents: [] });
  await refused(a.call('DELETE', `/managed-keys/${name}`), 400, /^2 callers used the key in the last 24 hours/);
  const gone = await ok(a.call('DELETE', `/managed-keys/${name}`, { days: 7, used: true }));
  assert.equal(Date.parse(gone.restorableUntil) - a.world.now(), 7 * day);
  await refused(
    a.call('POST', `/managed-keys/${name}/decrypt`, { items: [{ ciphertext }] }),
    400,
    /the key is pending deletion/,
  );
  await ok(a.call('POST', `/managed-keys/${id}/restore`));
  const { items } = await ok(a.call('POST', `/managed-keys/${name}/decrypt`, { items: [{ ciphertext }] }));
  assert.equal(items[0].plaintext, 'aGk=');
  a.advance(day + 1);
  await ok(a.call('DELETE', `/managed-keys/${name}`));
});

test('a key is imported wrapped to the wrapping key, and exported wrapped to a key of the caller', async () => {
  const a = await testAppliance();
  const wrapping = await ok(a.call('GET', '/managed-keys/wrapping-key'));
  assert.equal(createPublicKey(wrapping.publicKey).asymmetricKeyDetails?.modulusLength, 4096);
  const key = Buffer.alloc(32, 7);
  const wrap = (bytes: Uint8Array) => publicEncrypt({ key: wrapping.publicKey, oaepHash: 'sha256' }, bytes);
  const body = { wrapped: wrap(key).toString('base64'), type: 'aes256-gcm', exportable: true };
  const { key: made } = await ok(a.call('POST', '/managed-keys/brought/import', body));
  assert.deepEqual([made.origin, made.versions[0].origin], ['imported', 'imported']);
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const publicKey = pair.publicKey.export({ type: 'spki', format: 'pem' });
  const unwrap = (text: string, length = 256) =>
    privateDecrypt({ key: pair.privateKey, oaepHash: 'sha256' }, Buffer.from(text, 'base64').subarray(0, length));
  const short = await ok(a.call('POST', '/managed-keys/brought/export', { publicKey }));
  assert.deepEqual([short.wrapping, unwrap(short.wrapped)], ['oaep', key]);
  const { wrapped } = await ok(a.call('POST', '/managed-keys/brought/export', { publicKey, wrapping: 'oaep-kwp' }));
  const bytes = Buffer.from(wrapped, 'base64');
  const kek = unwrap(wrapped);
  assert.deepEqual([kek.length, bytes.length], [32, 256 + 40]);
  const clear = await ok(a.call('POST', '/managed-keys/brought/export', { plaintext: true }));
  const named = { name: 'brought', type: 'aes256-gcm' };
  assert.deepEqual(clear, { ...named, version: 1, format: 'raw', plaintext: key.toString('base64') });
  await refused(a.call('POST', '/managed-keys/brought/export', {}), 400, /publicKey/);
  await ok(a.call('PUT', '/managed-keys/brought/config', { exportable: false }));
  await refused(a.call('PUT', '/managed-keys/brought/config', { exportable: true }), 400, /stays so/);
  await refused(a.call('POST', '/managed-keys/brought/export', { plaintext: true }), 400, /not exportable/);
  await refused(
    a.call('POST', '/managed-keys/clear/import', { plaintext: key.toString('base64') }),
    403,
    /on the local socket alone/,
  );
  a.advance(day);
  assert.notEqual((await ok(a.call('GET', '/managed-keys/wrapping-key'))).id, wrapping.id);
  await ok(a.call('POST', '/managed-keys/brought/import', { wrapped: wrap(key).toString('base64') }));
  a.advance(day);
  await refused(
    a.call('POST', '/managed-keys/brought/import', { wrapped: wrap(key).toString('base64') }),
    400,
    /wrapping key of this day or the day before/,
  );
});

test('a wrapping key whose time is over is erased, though nobody asks for another', async () => {
  const a = await testAppliance();
  const { expiresAt } = await ok(a.call('GET', '/managed-keys/wrapping-key'));
  const [tenant] = a.tenants;
  assert.ok(tenant);
  const { store } = tenant.handle;
  const left = () => store.read(({ wrappingKeys }) => wrappingKeys.list().length);
  a.advance(expiresAt - a.world.now() - 1);
  await purgeExpired(store, a.world.now());
  assert.equal(left(), 1);
  a.advance(1);
  await purgeExpired(store, a.world.now());
  assert.equal(left(), 0);
});

test('a deleted key is destroyed when its time is over, and keeps its metadata without a byte of key', async () => {
  const a = await testAppliance();
  const { id, name } = await make(a, { deletionAllowed: true });
  await ok(a.call('DELETE', `/managed-keys/${name}`, { days: 7 }));
  a.advance(7 * day);
  assert.equal((await ok(a.call('GET', `/managed-keys/${id}`))).key.state, 'destroyed');
  await refused(a.call('POST', `/managed-keys/${id}/restore`), 404, /to restore/);
  const [tenant] = a.tenants;
  assert.ok(tenant);
  await purgeExpired(tenant.handle.store, a.world.now());
  const { key } = await ok(a.call('GET', `/managed-keys/${id}`));
  assert.deepEqual([key.state, key.name, key.versions[0].state], ['destroyed', name, 'destroyed']);
  await refused(
    a.call('POST', `/managed-keys/${id}/encrypt`, { items: [{ plaintext: '' }] }),
    400,
    /the key is destroyed/,
  );
  assert.equal((await a.call('GET', `/managed-keys/${name}`)).status, 404);
});

test('old versions are trimmed once nothing may use them', async () => {
  const a = await testAppliance();
  const { name } = await make(a);
  const old = await encrypted(a, name);
  await ok(a.call('POST', `/managed-keys/${name}/rotate`));
  const trim = () => a.call('POST', `/managed-keys/${name}/trim`, { minAvailableVersion: 2 });
  await refused(trim(), 400, /minimum encryption version is not set/);
  await ok(a.call('PUT', `/managed-keys/${name}/config`, { minDecryptVersion: 2, minEncryptVersion: 2 }));
  const { key } = await ok(trim());
  assert.deepEqual(
    key.versions.map(({ state }: { state: string }) => state),
    ['active', 'destroyed'],
  );
  await ok(a.call('PUT', `/managed-keys/${name}/config`, { minDecryptVersion: 1, minEncryptVersion: 0 }));
  const { items } = await ok(a.call('POST', `/managed-keys/${name}/decrypt`, { items: [{ ciphertext: old }] }));
  assert.match(items[0].error, /this version of the key is destroyed/);
});

test('who may only make keys is told no more of one that is there than that it is', async () => {
  const a = await testAppliance();
  const { name } = await make(a, { tags: { team: 'a' }, props: { ticket: 7 }, type: 'ed25519' });
  const ask = { name, type: 'ed25519', keepExisting: true };
  const maker = await a.keyWith('key.create');
  const { key } = await ok(a.call('POST', '/managed-keys', ask, { key: maker.key }));
  assert.deepEqual([key.name, key.tags, key.props, key.versions], [name, {}, {}, undefined]);
  const reader = await a.keyWith('key.create', `key.${name}.read`);
  assert.deepEqual((await ok(a.call('POST', '/managed-keys', ask, { key: reader.key }))).key.tags, { team: 'a' });
});

test('who may only make keys learns no key by its id, by its UUID or by an alias', async () => {
  const a = await testAppliance();
  const { name, id } = await make(a, { aliases: ['nick'] });
  const maker = await a.keyWith('key.create');
  for (const ref of [id, awsIdOf({ id, name }), awsIdOf({ id, name }).toUpperCase(), 'nick']) {
    const { status, body } = await a.call(
      'POST',
      '/managed-keys',
      { name: ref, keepExisting: true },
      { key: maker.key },
    );
    assert.equal(status, 400, ref);
    const told = JSON.stringify(body);
    assert.ok(!told.includes(`"${name}"`) && !told.includes(`"${id}"`) && !told.includes('"type"'), told);
  }
});

test('rewrapping takes its own flag, or those for both halves', async () => {
  const a = await testAppliance();
  const { name } = await make(a);
  const items = [{ ciphertext: await encrypted(a, name) }];
  for (const [flags, status] of [
    [['rewrap'], 200],
    [['encrypt', 'decrypt'], 200],
    [['encrypt'], 403],
    [['decrypt'], 403],
  ] as const) {
    const key = await a.keyWith(...flags.map((flag) => `key.${name}.${flag}`));
    assert.equal((await a.call('POST', `/managed-keys/${name}/rewrap`, { items }, { key: key.key })).status, status);
  }
});

test('keys are wrapped and unwrapped, bytes derived, secrets shared', async () => {
  const a = await testAppliance();
  const plaintext = Buffer.alloc(24, 5).toString('base64');
  for (const type of ['aes256-gcm', 'aes128-gcm', 'rsa-2048'] as const) {
    const { name } = await make(a, { type, uses: ['wrap', 'unwrap'] });
    const { wrapped } = await ok(a.call('POST', `/managed-keys/${name}/wrap`, { plaintext }));
    assert.equal((await ok(a.call('POST', `/managed-keys/${name}/unwrap`, { wrapped }))).plaintext, plaintext);
    await refused(a.call('POST', `/managed-keys/${name}/unwrap`, { wrapped: plaintext }), 400, /was not wrapped/);
  }
  const { name: from } = await make(a, { uses: ['derive'] });
  const { derived } = await ok(a.call('POST', `/managed-keys/${from}/derive`, { context: 'aGk=', length: 48 }));
  assert.equal(Buffer.from(derived, 'base64').length, 48);
  const [one, two] = [
    await make(a, { type: 'ecdsa-p384', uses: ['derive'] }),
    await make(a, { type: 'ecdsa-p384', uses: ['derive'] }),
  ];
  const secrets = [
    await ok(a.call('POST', `/managed-keys/${one.name}/derive`, { publicKey: two.versions[0].publicKey })),
    await ok(a.call('POST', `/managed-keys/${two.name}/derive`, { publicKey: one.versions[0].publicKey })),
  ];
  assert.equal(secrets[0].derived, secrets[1].derived);
});

test('tenants that keep to custody client make none', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], custody: 'client' }] });
  await refused(a.call('POST', '/managed-keys', { name: 'held' }), 403, /custody client/);
});
