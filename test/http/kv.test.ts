// The KV engine, version 2, as its clients see it: paths, versions, check-and-set, limits, states, flags and records.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nameFromPath } from '../../src/core/secret-paths.ts';
import { respond } from '../../src/http/respond.ts';
import { isRingName } from '../../src/model/names.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { freshName } from './samples.ts';

interface Got {
  readonly status: number;
  readonly body: AnyJson;
}

async function v1(
  a: Appliance,
  method: string,
  path: string,
  body?: object | string,
  token = a.root.key,
): Promise<Got> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const bytes = new TextEncoder().encode(text ?? '');
  const { pathname, search } = new URL(`http://kms.test/v1/${path}`);
  const { outcome } = await a.app.handle({
    surface: 'vault',
    remoteAddress: '192.0.2.1',
    headers: { host: 'kms.test', 'x-vault-token': token },
    ...{ method, path: pathname, search },
    body: { read: async (limit: number) => (bytes.length > limit ? undefined : bytes) },
  });
  const response = respond(outcome);
  const answer = await response.text();
  return { status: response.status, body: answer === '' ? undefined : JSON.parse(answer) };
}

const put = (a: Appliance, path: string, data: object, options?: object) =>
  v1(a, 'PUT', `secret/data/${path}`, { data, ...(options && { options }) });

const isRefused = ({ status, body }: Got, expected: number, ...errors: string[]): void =>
  assert.deepEqual([status, body], [expected, { errors }]);

const mismatch = 'check-and-set parameter did not match the current version';

test('a value is written, and read by its version', async () => {
  const a = await testAppliance();
  const made = await put(a, 'db/1', { data: 'c0ffee' }, { cas: 0 });
  assert.equal(made.status, 200);
  const { created_time, ...rest } = made.body.data;
  assert.deepEqual(rest, { custom_metadata: null, deletion_time: '', destroyed: false, version: 1 });
  assert.match(created_time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal((await put(a, 'db/1', { data: 'decaf', more: [1.5, null, { ü: true }] })).body.data.version, 2);
  const latest = await v1(a, 'GET', 'secret/data/db/1');
  assert.deepEqual(latest.body.data.data, { data: 'decaf', more: [1.5, null, { ü: true }] });
  assert.equal(latest.body.data.metadata.version, 2);
  for (const [version, data] of [
    ['1', 'c0ffee'],
    ['2', 'decaf'],
    ['0', 'decaf'],
  ]) {
    assert.equal((await v1(a, 'GET', `secret/data/db/1?version=${version}`)).body.data.data.data, data);
  }
  isRefused(await v1(a, 'GET', 'secret/data/db/1?version=3'), 404);
  isRefused(await v1(a, 'GET', 'secret/data/db'), 404);
  assert.equal((await v1(a, 'GET', 'secret/data/db/1?version=x')).status, 400);
});

test('a number that would change is refused, as in the native interface, and one beside the data is not read', async () => {
  const a = await testAppliance();
  const sent = async (raw: string) => v1(a, 'PUT', 'secret/data/exact', raw);
  const problem = 'data: holds a number that cannot be kept exactly: send it as a string';
  isRefused(await sent('{"data": {"a": [{"n": 12345678901234567890}]}}'), 400, problem);
  assert.equal((await sent('{"data": {"n": 1e400}}')).status, 400);
  assert.equal((await sent('{"data": {"n": "12345678901234567890"}, "x": 12345678901234567890}')).status, 200);
});

test('check-and-set refuses what is not the next version', async () => {
  const a = await testAppliance();
  isRefused(await put(a, 'x', {}, { cas: 1 }), 400, mismatch);
  assert.equal((await put(a, 'x', {}, { cas: '0' })).status, 200);
  for (const cas of [0, 2, -1, null]) isRefused(await put(a, 'x', {}, { cas }), 400, mismatch);
  assert.equal((await put(a, 'x', {}, { cas: 1 })).body.data.version, 2);
  assert.equal((await v1(a, 'DELETE', 'secret/data/x')).status, 204);
  isRefused(await put(a, 'x', {}, { cas: 0 }), 400, mismatch);
  assert.equal((await v1(a, 'PUT', 'secret/metadata/x', { cas_required: true })).status, 204);
  isRefused(await put(a, 'x', {}), 400, 'check-and-set parameter required for this call');
  assert.equal((await put(a, 'x', {}, { cas: 2 })).status, 200);
});

test('versions are deleted, restored and destroyed', async () => {
  const a = await testAppliance();
  for (const n of [1, 2, 3]) await put(a, 'x', { n });
  assert.equal((await v1(a, 'DELETE', 'secret/data/x')).status, 204);
  assert.equal((await v1(a, 'POST', 'secret/delete/x', { versions: ['1', 99] })).status, 204);
  const gone = await v1(a, 'GET', 'secret/data/x');
  assert.equal(gone.status, 404);
  assert.equal(gone.body.data.data, null);
  assert.equal(gone.body.data.metadata.version, 3);
  assert.match(gone.body.data.metadata.deletion_time, /Z$/);
  assert.equal((await v1(a, 'GET', 'secret/data/x?version=2')).body.data.data.n, 2);
  assert.equal((await v1(a, 'PUT', 'secret/undelete/x', { versions: '1,3' })).status, 204);
  assert.equal((await v1(a, 'GET', 'secret/data/x')).body.data.data.n, 3);
  assert.equal((await v1(a, 'PUT', 'secret/destroy/x', { versions: [1, 3] })).status, 204);
  assert.equal((await v1(a, 'PUT', 'secret/undelete/x', { versions: [1, 3] })).status, 204);
  const destroyed = await v1(a, 'GET', 'secret/data/x?version=1');
  assert.deepEqual([destroyed.status, destroyed.body.data.metadata.destroyed], [404, true]);
  const { versions, current_version } = (await v1(a, 'GET', 'secret/metadata/x')).body.data;
  assert.equal(current_version, 3);
  assert.deepEqual(
    Object.entries<AnyJson>(versions).map(([version, { destroyed: is, deletion_time }]) => [
      version,
      is,
      deletion_time,
    ]),
    [
      ['1', true, ''],
      ['2', false, ''],
      ['3', true, ''],
    ],
  );
  for (const word of ['delete', 'undelete', 'destroy']) {
    for (const body of [{}, { versions: [] }, { versions: ['x'] }, { versions: '' }]) {
      assert.equal((await v1(a, 'POST', `secret/${word}/x`, body)).status, 400, word);
    }
    assert.equal((await v1(a, 'POST', `secret/${word}/none`, { versions: [1] })).status, 204);
  }
  assert.equal((await v1(a, 'DELETE', 'secret/data/none')).status, 204);
  assert.equal((await v1(a, 'DELETE', 'secret/metadata/none')).status, 204);
});

test('metadata: custom words, limits of versions, and the end of all', async () => {
  const a = await testAppliance();
  for (const n of [1, 2, 3, 4]) await put(a, 'x', { n });
  const change = { max_versions: 2, custom_metadata: { owner: 'db' }, delete_version_after: '0s' };
  assert.equal((await v1(a, 'POST', 'secret/metadata/x', change)).status, 204);
  assert.equal((await v1(a, 'GET', 'secret/data/x?version=1')).status, 200);
  const { custom_metadata, version } = (await put(a, 'x', { n: 5 })).body.data;
  assert.deepEqual([custom_metadata, version], [{ owner: 'db' }, 5]);
  const { data } = (await v1(a, 'GET', 'secret/metadata/x')).body;
  assert.deepEqual(
    [Object.keys(data.versions), data.max_versions, data.oldest_version, data.cas_required, data.custom_metadata],
    [['4', '5'], 2, 4, false, { owner: 'db' }],
  );
  assert.equal((await v1(a, 'GET', 'secret/data/x?version=3')).status, 404);
  for (const wrong of [
    { delete_version_after: '1h' },
    { max_versions: 1001 },
    { max_versions: -1 },
    { custom_metadata: { a: 1 } },
    { custom_metadata: 'x' },
  ]) {
    assert.equal((await v1(a, 'POST', 'secret/metadata/x', wrong)).status, 400, JSON.stringify(wrong));
  }
  const early = 'there is no secret at this path yet: write its data first';
  isRefused(await v1(a, 'POST', 'secret/metadata/y', {}), 400, early);
  const { secret } = (await a.call('GET', '/secrets/x/metadata')).body;
  assert.equal((await v1(a, 'DELETE', 'secret/metadata/x')).status, 204);
  isRefused(await v1(a, 'GET', 'secret/data/x'), 404);
  assert.equal((await put(a, 'x', {}, { cas: 0 })).body.data.version, 1);
  assert.equal((await a.call('POST', `/managed-keys/${secret.id}/restore`)).status, 400);
  await v1(a, 'DELETE', 'secret/metadata/x');
  assert.equal((await a.call('POST', `/managed-keys/${secret.id}/restore`)).status, 200);
  assert.equal((await v1(a, 'GET', 'secret/data/x')).body.data.data.n, 5);
});

test('1,000 versions are kept, and a value has 64 KiB', async () => {
  const a = await testAppliance();
  for (let n = 1; n <= 1002; n++) await put(a, 'x', { n });
  isRefused(await v1(a, 'GET', 'secret/data/x?version=2'), 404);
  assert.equal((await v1(a, 'GET', 'secret/data/x?version=3')).body.data.data.n, 3);
  const { versions, oldest_version } = (await v1(a, 'GET', 'secret/metadata/x')).body.data;
  assert.deepEqual([Object.keys(versions).length, oldest_version], [1000, 3]);
  assert.equal((await put(a, 'y', { k: 'x'.repeat(65_536 - 8) })).status, 200);
  const long = 'value: expected at most 65536 bytes of JSON, got 65537';
  isRefused(await put(a, 'y', { k: 'x'.repeat(65_536 - 7) }), 400, long);
  for (const data of [null, [1], 'x']) assert.equal((await v1(a, 'PUT', 'secret/data/z', { data })).status, 400);
  assert.equal((await v1(a, 'PUT', `secret/data/${'x'.repeat(513)}`, { data: {} })).status, 400);
});

test('lists have the names and folders of a folder', async () => {
  const a = await testAppliance();
  isRefused(await v1(a, 'GET', 'secret/metadata?list=true'), 404);
  for (const path of ['b', 'a', 'A', 'dir/x', 'dir/deep/y', 'dir', 'dir0']) await put(a, path, {});
  await v1(a, 'PUT', 'kv-db/data/own', { data: {} });
  for (let n = 0; n < 450; n++) await put(a, `many/${n}`, {});
  const keys = async (path: string) => (await v1(a, 'GET', `${path}?list=true`)).body.data?.keys;
  assert.deepEqual(await keys('secret/metadata'), ['A', 'a', 'b', 'dir', 'dir/', 'dir0', 'kv-db/', 'many/']);
  assert.deepEqual(await keys('secret/metadata/dir/'), ['deep/', 'x']);
  assert.deepEqual(await keys('kv-db/metadata'), ['own']);
  assert.equal((await keys('secret/metadata/many')).length, 450);
  isRefused(await v1(a, 'GET', 'secret/metadata/a?list=true'), 404);
  assert.equal((await v1(a, 'GET', 'secret/data/dir?list=true')).status, 404);
});

test('the name of a mount is part of the path, but for `secret`', async () => {
  const a = await testAppliance();
  for (const mount of ['secret', 'kv', 'team/kv', 'mysql']) await v1(a, 'PUT', `${mount}/data/k`, { data: { mount } });
  for (const mount of ['secret', 'kv', 'team/kv', 'mysql']) {
    assert.equal((await v1(a, 'GET', `${mount}/data/k`)).body.data.data.mount, mount);
  }
  assert.equal((await v1(a, 'GET', 'secret/data/kv/k')).body.data.data.mount, 'kv');
  await put(a, 'keys/data/x', { deep: true });
  assert.equal((await v1(a, 'GET', 'secret/data/keys/data/x')).body.data.data.deep, true);
  // A key of the transit engine may be called as a word of this one is.
  assert.equal((await v1(a, 'PUT', 'transit/keys/data')).status, 204);
  assert.equal((await v1(a, 'PUT', 'transit/keys/data/rotate')).status, 204);
  assert.equal((await v1(a, 'GET', 'transit/keys/data')).body.data.latest_version, 2);
});

test('mounts tell which engine they are of', async () => {
  const a = await testAppliance();
  for (const [name, type] of [
    ['secret', 'kv'],
    ['kv-mysql', 'kv'],
    ['team/kv', 'kv'],
    ['transit', 'transit'],
  ]) {
    const { body } = await v1(a, 'GET', `sys/mounts/${name}`);
    const version = type === 'kv' ? '2' : undefined;
    assert.deepEqual([body.data.type, body.data.options?.version, body.type], [type, version, type]);
    const tune = (await v1(a, 'GET', `sys/mounts/${name}/tune`)).body;
    assert.deepEqual([tune.options?.version, tune.data.options?.version], [version, version]);
    const below = (await v1(a, 'GET', `sys/internal/ui/mounts/${name}/a/b`)).body.data;
    assert.deepEqual([below.type, below.path], [type, `${name}/`]);
  }
  for (const mount of ['secret', 'mongo']) {
    const { data } = (await v1(a, 'GET', `${mount}/config`)).body;
    assert.deepEqual(data, { cas_required: false, delete_version_after: '0s', max_versions: 1000 });
  }
  assert.equal((await v1(a, 'PUT', 'secret/config', { max_versions: 5 })).status, 405);
  assert.equal((await v1(a, 'PATCH', 'secret/data/x', { data: {} })).status, 405);
});

test('a secret that was made as a managed key is found by name and alias', async () => {
  const a = await testAppliance();
  const name = freshName();
  const { body } = await a.call('POST', '/managed-keys', { name, type: 'secret', aliases: ['pg/main'] });
  for (const path of [name, 'pg/main']) {
    const { data } = (await v1(a, 'GET', `secret/data/${path}`)).body.data;
    assert.match(data.data, /^[0-9a-f]{64}$/);
    const bytes = Buffer.from(data.data, 'hex').toString('base64');
    assert.deepEqual([data.key, data.value], [bytes, bytes]);
  }
  assert.equal((await put(a, name, { key: 'b' })).body.data.version, 2);
  assert.deepEqual((await v1(a, 'GET', 'secret/data/pg/main')).body.data.data, { key: 'b' });
  isRefused(await v1(a, 'GET', `kv/data/${name}`), 404);
  const refusal = `error deleting policy ${name}: deletion is not allowed for this key`;
  isRefused(await v1(a, 'DELETE', `secret/metadata/${name}`), 400, refusal);
  isRefused(await v1(a, 'DELETE', `secret/data/${name}`), 400, 'deletion is not allowed for this key');
  await a.call('PUT', `/managed-keys/${name}/config`, { exportable: false });
  isRefused(await v1(a, 'GET', `secret/data/${name}`), 400, 'private key material is not exportable');
  assert.equal(body.key.type, 'secret');
  // Keys of other types are no secrets, and their names are taken.
  await v1(a, 'PUT', 'transit/keys/unseal');
  isRefused(await v1(a, 'GET', 'secret/data/unseal'), 404);
  await put(a, 'unseal', { k: 1 });
  const { secret } = (await a.call('GET', '/secrets/unseal/metadata')).body;
  assert.match(secret.name, /^unseal-[0-9a-f]{8}$/);
});

test('a suspended secret does nothing, nor does a suspended version', async () => {
  const a = await testAppliance();
  await put(a, 'x', { n: 1 });
  await put(a, 'x', { n: 2 });
  await a.call('POST', '/managed-keys/x/state', { state: 'suspended', version: 2 });
  const version = 'this version of the secret is suspended, so it cannot be read';
  isRefused(await v1(a, 'GET', 'secret/data/x'), 400, version);
  assert.equal((await v1(a, 'GET', 'secret/data/x?version=1')).body.data.data.n, 1);
  // A version returns to the state in which it was deleted.
  await v1(a, 'DELETE', 'secret/data/x');
  await v1(a, 'PUT', 'secret/undelete/x', { versions: [2] });
  isRefused(await v1(a, 'GET', 'secret/data/x'), 400, version);
  await a.call('POST', '/managed-keys/x/state', { state: 'suspended', used: true });
  isRefused(await v1(a, 'GET', 'secret/data/x?version=1'), 400, 'the secret is suspended, so it cannot be read');
  isRefused(await put(a, 'x', {}), 400, 'the key is suspended, so it gets no new version');
  await a.call('POST', '/managed-keys/x/state', { state: 'deactivated' });
  assert.equal((await v1(a, 'GET', 'secret/data/x?version=1')).status, 200);
  isRefused(await put(a, 'x', {}), 400, 'the key is deactivated, so it gets no new version');
});

test('each operation takes its flag, for the name that the path leads to', async () => {
  const a = await testAppliance();
  await put(a, 'app/db', { n: 1 });
  const flags = {
    read: [['GET', 'secret/metadata/app/db']],
    export: [['GET', 'secret/data/app/db']],
    import: [['PUT', 'secret/data/app/db', { data: {} }]],
    config: [['PUT', 'secret/metadata/app/db', {}]],
    delete: [
      ['POST', 'secret/delete/app/db', { versions: [1] }],
      ['POST', 'secret/undelete/app/db', { versions: [1] }],
      ['POST', 'secret/destroy/app/db', { versions: [9] }],
      ['DELETE', 'secret/data/app/db'],
    ],
    list: [['GET', 'secret/metadata/app?list=true']],
  } as const;
  for (const flag of Object.keys(flags)) {
    const { key } = await a.keyWith(flag === 'list' ? 'key.list' : `key.app.db.${flag}`);
    for (const [needed, calls] of Object.entries(flags)) {
      for (const [method, path, body] of calls) {
        const { status } = await v1(a, method, path, body, key);
        if (needed === flag) assert.ok(status < 300 || status === 404, `${flag}: ${method} ${path}: ${status}`);
        else assert.equal(status, 403, `${flag}: ${method} ${path}`);
      }
    }
  }
  const { key } = await a.keyWith('key.app.db.*', 'key.other.import');
  isRefused(await v1(a, 'GET', 'secret/data/app.db', undefined, key), 403, 'permission denied');
  isRefused(await v1(a, 'GET', 'secret/data/App/db', undefined, key), 403, 'permission denied');
  assert.equal((await v1(a, 'PUT', 'secret/data/other', { data: {} }, key)).status, 200);
  const asked = { paths: ['secret/data/app/db', 'secret/data/App/db', 'secret/metadata/other'] };
  const { data } = (await v1(a, 'PUT', 'sys/capabilities-self', asked, key)).body;
  assert.deepEqual(
    asked.paths.map((path) => data[path]),
    [['create', 'delete', 'read', 'update'], ['deny'], ['deny']],
  );
});

test('every read is recorded, and no value is', async () => {
  const a = await testAppliance();
  const { key, keyid } = await a.keyWith('key.app.db.export', 'key.app.db.import', 'key.app.db.delete');
  await v1(a, 'PUT', 'secret/data/app/db', { data: { password: 'hidden-word' } }, key);
  await v1(a, 'GET', 'secret/data/app/db', undefined, key);
  await v1(a, 'DELETE', 'secret/data/app/db', undefined, key);
  await v1(a, 'GET', 'secret/data/app/db', undefined, key);
  await v1(a, 'PUT', 'secret/undelete/app/db', { versions: [1] }, key);
  await v1(a, 'GET', 'secret/metadata/app/db', undefined, key);
  const records = (await a.activity()).toReversed().filter((record) => record.keyid === keyid);
  assert.deepEqual(
    records.map(({ action, ringname, validAction, props }) => [
      action,
      ringname,
      validAction,
      props.dialect,
      props.keyVersion,
      props.transfer,
    ]),
    [
      ['key.import', 'app.db', true, 'vault', 1, 'plaintext'],
      ['key.export', 'app.db', true, 'vault', 1, 'plaintext'],
      ['key.delete', 'app.db', true, 'vault', undefined, undefined],
      ['key.export', 'app.db', true, 'vault', 1, undefined],
      ['key.restore', 'app.db', true, 'vault', undefined, undefined],
      ['key.read', 'app.db', false, 'vault', undefined, undefined],
    ],
  );
  assert.doesNotMatch(JSON.stringify(await a.activity()), /hidden-word/);
  const { dependents } = (await a.call('GET', '/managed-keys/app.db/dependents')).body;
  assert.deepEqual(
    dependents.map(({ caller, dialect, operation, count }: AnyJson) => [caller, dialect, operation, count]),
    [[keyid, 'vault', 'export', 1]],
  );
});

test('a tenant that keeps to keys of clients has no secrets', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['kms.test'], custody: 'client' }] });
  assert.equal((await put(a, 'x', {})).status, 403);
});

const part = fc.string({ minLength: 1, maxLength: 20 }).filter((text) => !text.includes('/'));
const path = fc.array(fc.oneof(part, fc.stringMatching(/^[a-zA-Z0-9._-]{1,60}$/)), { minLength: 1, maxLength: 4 });

test('names from paths: a ring name each, and no two paths share one', () => {
  const paths = new Map<string, string>();
  fc.assert(
    fc.property(path, (parts) => {
      const text = parts.join('/');
      const name = nameFromPath(text);
      assert.ok(isRingName(name) && name === name.toLowerCase(), name);
      assert.equal(paths.get(name) ?? text, text);
      paths.set(name, text);
      const plain = /^[a-z0-9][a-z0-9_-]*(?:\/[a-z0-9_-]+)*$/.test(text) && text.length <= 128;
      if (plain && !['wrapping-key', 'random', 'hash'].includes(text)) assert.equal(name, text.replaceAll('/', '.'));
      else assert.match(name, /-[0-9a-f]{8}$/);
    }),
    { numRuns: 2000 },
  );
});

test('names from paths: examples', () => {
  for (const [text, name] of [
    ['mariadb/1', 'mariadb.1'],
    ['kv/pg_tde/main-key', 'kv.pg_tde.main-key'],
    ['App/DB', 'app.db-21f8af90'],
    ['app.db', 'app.db-e8574e2e'],
    ['_x', 'x_x-a01e47cb'],
    ['ü', 'x--607474ca'],
    ['random', 'random-a441b15f'],
    ['mkey_01kdyak3se5g95x5q7yjatpbfe', 'mkey_01kdyak3se5g95x5q7yjatpbfe-dee53ee9'],
    [
      'a'.repeat(130),
      'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-1e3c4f47',
    ],
  ] as const) {
    assert.equal(nameFromPath(text), name);
  }
});

test('the transit engine has no secrets and no deleted keys: whatever names one is answered as if it named nothing', async () => {
  const a = await testAppliance();
  await put(a, 'hidden', { n: 1 });
  for (const name of ['kept', 'target']) {
    await v1(a, 'PUT', `transit/keys/${name}`, { type: name === 'kept' ? 'aes256-gcm96' : 'rsa-2048' });
  }
  const before = (await a.call('GET', '/managed-keys/hidden')).body.key;
  await a.call('POST', '/managed-keys', { name: 'deleted', deletionAllowed: true });
  await a.call('DELETE', '/managed-keys/deleted');
  const list = await v1(a, 'GET', 'transit/keys?list=true');
  assert.deepEqual(list.body.data.keys, ['kept', 'target']);
  const text = Buffer.from('x').toString('base64');
  const asked: [method: string, path: string, body?: object][] = [
    ['GET', 'keys/NAME'],
    ['DELETE', 'keys/NAME'],
    ['POST', 'keys/NAME/rotate'],
    ['POST', 'keys/NAME/config', { deletion_allowed: false }],
    ['POST', 'keys/NAME/trim', { min_available_version: 1 }],
    ['POST', 'keys/NAME/import_version', { ciphertext: text }],
    ['DELETE', 'keys/NAME/soft-delete'],
    ['POST', 'keys/NAME/soft-delete-restore'],
    ['GET', 'export/encryption-key/NAME'],
    ['GET', 'export/signing-key/NAME/1'],
    ['GET', 'export/hmac-key/NAME/latest'],
    ['GET', 'export/public-key/NAME'],
    ['GET', 'byok-export/target/NAME'],
    ['POST', 'encrypt/NAME', { plaintext: text }],
    ['POST', 'encrypt/NAME', { batch_input: Array.from({ length: 200 }, () => ({ plaintext: text })) }],
    ['POST', 'decrypt/NAME', { ciphertext: 'vault:v1:AAAA' }],
    ['POST', 'rewrap/NAME', { ciphertext: 'vault:v1:AAAA' }],
    ['POST', 'datakey/plaintext/NAME', {}],
    ['POST', 'datakey/wrapped/NAME', {}],
    ['POST', 'sign/NAME', { input: text }],
    ['POST', 'verify/NAME', { input: text, signature: 'vault:v1:AAAA' }],
    ['POST', 'hmac/NAME', { input: text }],
  ];
  const { key: stranger } = await a.keyWith('key.kept.*');
  for (const [method, path, body] of asked) {
    const answer = async (name: string, token?: string) => {
      const got = await v1(a, method, `transit/${path.replace('NAME', name)}`, body, token);
      return [got.status, JSON.stringify(got.body).replaceAll(name, 'NAME')];
    };
    const missing = await answer('nobody');
    assert.ok([400, 404].includes(Number(missing[0])), `${path}: ${missing}`);
    assert.deepEqual(await answer('hidden'), missing, path);
    assert.deepEqual(await answer('deleted'), missing, path);
    assert.equal((await answer('hidden', stranger))[0], 403, path);
  }
  // The name is taken all the same.
  assert.equal((await v1(a, 'POST', 'transit/keys/hidden')).status, 400);
  assert.equal((await v1(a, 'POST', 'transit/keys/hidden/import', { public_key: 'x', type: 'ed25519' })).status, 400);
  assert.deepEqual((await a.call('GET', '/managed-keys/hidden')).body.key, before);
  assert.equal((await v1(a, 'GET', 'secret/data/hidden')).body.data.data.n, 1);
});

test('a list of managed keys may leave secrets out, page by page', async () => {
  const a = await testAppliance();
  const names = Array.from({ length: 12 }, (_, n) => `key-${n}`);
  for (const [n, name] of names.entries()) {
    if (n % 2 === 0) await a.call('POST', '/managed-keys', { name });
    else await put(a, name, { n });
  }
  const seen: string[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await a.call('GET', `/managed-keys?secrets=false&limit=4${cursor}`);
    seen.push(...body.data.map(({ name }: AnyJson) => name));
    if (!body.pagination.hasMore) break;
    assert.equal(body.data.length, 4);
    cursor = `&cursor=${body.pagination.nextCursor}`;
  }
  assert.deepEqual(
    seen,
    names.filter((_, n) => n % 2 === 0),
  );
  assert.equal((await a.call('GET', '/managed-keys?secrets=true')).body.data.length, 12);
  assert.equal((await a.call('GET', '/managed-keys?secrets=no')).status, 400);
});
