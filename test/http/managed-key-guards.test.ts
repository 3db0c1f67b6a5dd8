// Managed keys kept from what would lose them, or let them mislead: dates that are over, new versions of deleted keys
// and of secrets, other uses than those asked for, messages too long to come back, and uses that came to nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { purgeExpired } from '../../src/core/keyrings.ts';
import { type AnyJson, testAppliance } from '../support/appliance.ts';
import { base64, day, make, ok, refused } from './managed-key-desk.ts';
import { freshName } from './samples.ts';

test('a date in the past moves the state at once, recorded as that; nothing is made that is over', async () => {
  const a = await testAppliance();
  const past = a.world.now() - day;
  await refused(
    a.call('POST', '/managed-keys', { name: freshName(), deactivateAt: past }),
    400,
    /^deactivateAt: .*come/,
  );
  const { name } = await make(a);
  const config = (change: object) => a.call('PUT', `/managed-keys/${name}/config`, change);
  assert.equal((await ok(config({ deactivateAt: past }))).key.state, 'deactivated');
  const [record] = await a.activity();
  assert.deepEqual([record?.props.changed, record?.props.state], [['deactivateAt', 'state'], 'deactivated']);
  assert.equal((await ok(config({ tags: { a: 'b' } }))).key.state, 'deactivated');
  for (const field of ['activateAt', 'deactivateAt']) {
    const dated = { [field]: 253_402_300_800_000 };
    await refused(config(dated), 400, /253402300799999/);
    await refused(a.call('POST', '/managed-keys', { name: freshName(), ...dated }), 400, /253402300799999/);
  }
  const last = await make(a, { deactivateAt: 253_402_300_799_999 });
  assert.equal(last.state, 'active');
});

test('a new version for the name of a deleted key, or for its id, is refused, and it can be restored', async () => {
  const a = await testAppliance();
  const { name, id } = await make(a, { type: 'ed25519', deletionAllowed: true });
  const key = { type: 'raw', plaintext: Buffer.alloc(32, 7).toString('base64') };
  await ok(a.call('DELETE', `/managed-keys/${name}`, {}));
  const deleted = /^the key is pending deletion, so it gets no new version: restore it first$/;
  for (const body of [{ isNewVersion: true }, { isNewVersion: false }, {}]) {
    const byId = a.call('POST', `/managed-keys/${id}/import`, { wrapped: key.plaintext, ...body });
    await refused(byId, 400, deleted);
  }
  const byName = { wrapped: key.plaintext, isNewVersion: true };
  await refused(a.call('POST', `/managed-keys/${name}/import`, byName), 400, deleted);
  await refused(a.call('POST', `/managed-keys/${name}/rotate`), 400, /^the key is pending deletion$/);
  await ok(a.call('POST', `/managed-keys/${id}/restore`));
  await ok(a.call('DELETE', `/managed-keys/${name}`, {}));
  a.advance(31 * day);
  const [tenant] = a.tenants.values();
  if (!tenant) throw new Error('expected a tenant');
  await purgeExpired(tenant.handle.store, a.world.now());
  const destroyed = /^the key is destroyed, so it gets no new version$/;
  await refused(a.call('POST', `/managed-keys/${id}/import`, byName), 400, destroyed);
});

test('a secret that somebody wrote does not rotate, and none rotates by itself', async () => {
  const a = await testAppliance();
  await ok(a.call('POST', '/secrets/db%2Fapp', { value: { password: 'hunter2' } }));
  await refused(
    a.call('POST', '/managed-keys/db.app/rotate'),
    400,
    /^somebody wrote this secret, .*: write a new value$/,
  );
  assert.deepEqual((await ok(a.call('GET', '/secrets/db%2Fapp'))).value, { password: 'hunter2' });
  const { name } = await make(a, { type: 'secret', exportable: true });
  await ok(a.call('POST', `/managed-keys/${name}/rotate`));
  await ok(a.call('POST', `/secrets/${name}`, { value: {} }));
  await refused(a.call('POST', `/managed-keys/${name}/rotate`), 400, /somebody wrote/);
  const problem = /^rotateAfter: expected none: a secret never rotates by itself$/;
  await refused(a.call('PUT', `/managed-keys/${name}/config`, { rotateAfter: 3600 }), 400, problem);
  await refused(
    a.call('POST', '/managed-keys', { name: freshName(), type: 'secret', rotateAfter: 3600 }),
    400,
    problem,
  );
  await ok(a.call('PUT', `/managed-keys/${name}/config`, { rotateAfter: null }));
});

test('whatever else is written among its props, a secret keeps its own settings', async () => {
  const a = await testAppliance();
  await ok(a.call('POST', '/secrets/db%2Fapp', { value: { n: 1 } }));
  const { secret } = await ok(a.call('PUT', '/secrets/db%2Fapp/metadata', { maxVersions: 3, casRequired: true }));
  const config = (props: object) => a.call('PUT', `/managed-keys/${secret.id}/config`, { props });
  const { key } = await ok(config({ team: 'payments' }));
  assert.deepEqual(key.props, { team: 'payments', maxVersions: 3, casRequired: true });
  await refused(a.call('POST', '/secrets/db%2Fapp', { value: { n: 2 } }), 400, /check-and-set parameter required/);
  await ok(config({ casRequired: false }));
  await ok(a.call('POST', '/secrets/db%2Fapp', { value: { n: 2 } }));
  const { name } = await make(a, { props: { team: 'payments' } });
  assert.deepEqual((await ok(a.call('PUT', `/managed-keys/${name}/config`, { props: {} }))).key.props, {});
});

test('a key that should not be trusted blindly is handed out with a warning', async () => {
  const a = await testAppliance();
  await ok(a.call('POST', '/secrets/db%2Fapp', { value: { n: 1 } }));
  const { secret } = await ok(a.call('GET', '/secrets/db%2Fapp/metadata'));
  const { name } = await make(a, { type: 'aes256-gcm', exportable: true });
  const handOut = async () => [
    (await ok(a.call('GET', '/secrets/db%2Fapp'))).warning,
    (await ok(a.call('POST', `/managed-keys/${name}/export`, { plaintext: true }))).warning,
    (await ok(a.call('POST', `/managed-keys/${name}/export`, { plaintext: true, allVersions: true }))).warning,
  ];
  assert.deepEqual(await handOut(), [undefined, undefined, undefined]);
  for (const [state, warning, ofSecret] of [
    ['deactivated', 'is deactivated: nothing new should come from it', 'is deactivated: nothing new should use it'],
    [
      'compromised',
      'is compromised: others may have made what it opens or verifies',
      'is compromised: others may know it, so replace it',
    ],
  ] as const) {
    const change = async (more: object) => {
      for (const key of [secret.id, name]) await ok(a.call('POST', `/managed-keys/${key}/state`, { state, ...more }));
    };
    await change({ version: 1 });
    const [whose, secrets] = [`version of the key ${warning}`, `this version of the secret ${ofSecret}`];
    assert.deepEqual(await handOut(), [secrets, `this ${whose}`, `version 1 of the key ${warning}`]);
    await change({});
    assert.deepEqual(await handOut(), [`the secret ${ofSecret}`, `the key ${warning}`, `the key ${warning}`]);
  }
});

test('with keepExisting, a key that is there for other uses is not what was asked for', async () => {
  const a = await testAppliance();
  const { name } = await make(a, { type: 'rsa-2048' });
  const again = (more: object) =>
    a.call('POST', '/managed-keys', { name, type: 'rsa-2048', keepExisting: true, ...more });
  await ok(again({}));
  await ok(again({ uses: ['verify', 'sign'] }));
  const problem = /^uses: the key that is there is for sign, verify$/;
  await refused(again({ uses: ['encrypt', 'decrypt'] }), 400, problem);
  await refused(again({ uses: ['sign'] }), 400, problem);
});

test('whatever is protected can be brought back: the longest body that is taken makes one that is taken', async () => {
  const a = await testAppliance({ bodyLimit: 40_000 });
  const back = async (work: string, longest: number, undo: (made: AnyJson, text: string) => [string, object]) => {
    const name = freshName();
    const type = work === 'sign' ? 'ml-dsa-87' : work === 'mac' ? 'hmac-sha512' : 'aes256-gcm';
    await make(a, { name, type });
    const input = 'A'.repeat(4 * Math.floor((longest - 60) / 4));
    const field = work === 'encrypt' ? { items: [{ plaintext: input }] } : { input };
    const made = await ok(a.call('POST', `/managed-keys/${name}/${work}`, field));
    const [operation, body] = undo(made, input);
    await ok(a.call('POST', `/managed-keys/${name}/${operation}`, body));
    const over =
      work === 'encrypt'
        ? { items: [{ plaintext: `${input}${'A'.repeat(80)}` }] }
        : { input: `${input}${'A'.repeat(80)}` };
    const limit = new RegExp(`over the limit of ${longest} bytes`);
    await refused(a.call('POST', `/managed-keys/${name}/${work}`, over), 413, limit);
  };
  await back('encrypt', 40_000 - 1024, ({ items }) => ['decrypt', { items: [{ ciphertext: items[0].ciphertext }] }]);
  await back('mac', 40_000 - 1024, ({ mac }, input) => ['verify', { input, mac }]);
  await back('sign', 40_000 - 8192, ({ signature }, input) => ['verify', { input, signature }]);
});

test('a use that came to nothing makes nobody a dependent', async () => {
  const a = await testAppliance();
  const { name } = await make(a, { deletionAllowed: true });
  const other = await make(a, { type: 'rsa-2048', uses: ['encrypt', 'decrypt'] });
  const wraps = await make(a, { uses: ['wrap', 'unwrap'] });
  const junk = Buffer.alloc(60, 7).toString('base64');
  const item = (ref: string, work: string, fields: object) =>
    ok(a.call('POST', `/managed-keys/${ref}/${work}`, { items: [fields] }));
  for (const work of ['decrypt', 'rewrap']) {
    for (const ref of [name, other.name]) {
      assert.match((await item(ref, work, { ciphertext: `vault:v1:${junk}` })).items[0].error, /fail/);
    }
  }
  assert.ok((await item(other.name, 'encrypt', { plaintext: base64('x'.repeat(500)) })).items[0].error);
  await refused(a.call('POST', `/managed-keys/${wraps.name}/unwrap`, { wrapped: junk }), 400, /^wrapped: /);
  for (const ref of [name, other.name, wraps.name]) {
    assert.deepEqual(await ok(a.call('GET', `/managed-keys/${ref}/dependents`)), { dependents: [] });
  }
  await ok(a.call('DELETE', `/managed-keys/${name}`));
});

test('no key has an alias that no key can have as its name', async () => {
  const a = await testAppliance();
  const { name, id } = await make(a);
  for (const alias of ['random', 'Hash', 'wrapping-key', id]) {
    const why = alias === id ? ', which has the form of a key id' : '';
    const problem = new RegExp(`^alias: expected another name than ${alias.toLowerCase()}${why}$`);
    await refused(a.call('POST', `/managed-keys/${name}/aliases`, { alias }), 400, problem);
  }
});
