// Access of every kind of credential to every endpoint, from the declarations, and the resulting records.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { actionOf } from '../../src/api/endpoint.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { newApiKeySecret } from '../../src/crypto/secrets.ts';
import { type Answer, type Appliance, testAppliance } from '../support/appliance.ts';
import { grantingFlags, logIn, type Sample, sampled, urlOf } from './samples.ts';

type Sampled = (typeof sampled)[number];

const guarded = sampled.filter(({ endpoint }) => endpoint.access.kind !== 'public');
const flagged = guarded.filter(({ endpoint }) => endpoint.access.kind === 'flag');

function send(
  a: Appliance,
  { endpoint }: Sampled,
  sample: Sample,
  key: string | null,
  authorization?: string,
): Promise<Answer> {
  const headers = authorization === undefined ? {} : { Authorization: authorization };
  return a.call(endpoint.method, urlOf(endpoint, sample), sample.body, { key, headers });
}

function isRefused(answer: Answer): void {
  assert.equal(answer.status, 401);
  assert.deepEqual(Object.keys(answer.body), ['message']);
  assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
}

for (const each of guarded) {
  const { endpoint, make } = each;
  const { access } = endpoint;
  const action = actionOf(access);

  test(`${endpoint.id}: without a known credential it is 401 and leaves no trace`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    const other = await testAppliance({ tenants: [{ name: 'other', hosts: ['*'] }] });
    const foreign = newApiKeySecret(systemRandom);
    const before = (await a.activity()).length;
    isRefused(await send(a, each, sample, null));
    for (const key of ['', 'x', 'garbage with spaces', 'kms_', `${other.root.key}x`, other.root.keyid, foreign]) {
      isRefused(await send(a, each, sample, key));
    }
    for (const header of [
      a.root.key,
      `Basic ${a.root.key}`,
      `Bearer${a.root.key}`,
      `Bearer ${a.root.key} x`,
      'Bearer',
    ]) {
      isRefused(await send(a, each, sample, null, header));
    }
    assert.equal((await a.activity()).length, before);
    assert.equal((await send(a, each, sample, sample.key ?? a.root.key)).status, 200, 'the sample itself is good');
  });

  test(`${endpoint.id}: a disabled key is 401 and recorded`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    const { key, keyid } = await a.keyWith('*');
    await a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', active: false });
    isRefused(await send(a, each, sample, key));
    const [last] = await a.activity();
    assert.deepEqual([last?.keyid, last?.action, last?.validAction, last?.status], [keyid, action, false, 401]);
  });

  test(`${endpoint.id}: an access token that expired or ended is 401 and recorded`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    const { user, accessToken } = await logIn(a, { '*': true });
    const isRecorded = async () => {
      const [last] = await a.activity();
      assert.deepEqual([last?.keyid, last?.action, last?.validAction, last?.status], [user.id, action, false, 401]);
    };
    a.advance(3_600_000);
    isRefused(await send(a, each, sample, accessToken));
    await isRecorded();
    a.advance(-3_600_000);
    assert.equal((await a.call('POST', '/auth/basic/logout', undefined, { key: accessToken })).status, 200);
    isRefused(await send(a, each, sample, accessToken));
    await isRecorded();
  });
}

for (const each of flagged) {
  const { endpoint, make } = each;
  const { access } = endpoint;
  if (access.kind !== 'flag') continue;
  const { action } = access;
  const recorded = actionOf(access);

  test(`${endpoint.id}: without its flag it is 403, names the flag and is recorded`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    const ownFlags = new Set(grantingFlags(access, sample.ring));
    const others = flagged.flatMap((other) => grantingFlags(other.endpoint.access, 'elsewhere').slice(0, 1));
    const rest = access.ring ? [`${action.split('.')[0]}.elsewhere.*`] : [];
    const all = [...others, ...rest].filter((flag) => !ownFlags.has(flag));
    for (const flags of [[], all]) {
      const { key, keyid } = await a.keyWith(...flags);
      const { status, body } = await send(a, each, sample, key);
      assert.equal(status, 403);
      assert.deepEqual(Object.keys(body), ['message']);
      const [resource, operation] = action.split('.');
      const named: string[] = access.ring
        ? [`${resource}.${sample.ring}.${operation}`, `${resource}.<ringname>.${operation}`]
        : [action];
      assert.ok(
        named.some((flag) => body.message.includes(flag)),
        body.message,
      );
      const [last] = await a.activity();
      assert.deepEqual([last?.keyid, last?.action, last?.validAction, last?.status], [keyid, recorded, false, 403]);
      assert.equal(last?.ringname, access.ring ? sample.ring : last?.ringname);
    }
    assert.equal((await send(a, each, sample, a.root.key)).status, 200, 'nothing was changed');
  });

  test(`${endpoint.id}: its flag and each wildcard let in, and it is recorded; what is answered is what is declared`, async () => {
    const a = await testAppliance();
    for (const [index] of grantingFlags(access, 'x').entries()) {
      const sample = await make(a);
      const flag: string = grantingFlags(access, sample.ring)[index] ?? '';
      const { key, keyid } = await a.keyWith(flag);
      const { status, body } = await send(a, each, sample, key);
      assert.equal(status, 200, `${flag}: ${JSON.stringify(body)}`);
      const parsed = endpoint.answer.safeParse(body);
      assert.ok(parsed.success, `${endpoint.id} answers ${JSON.stringify(body)}: ${parsed.error}`);
      assert.deepEqual(parsed.data, body, 'nothing is answered that is not declared');
      const [last] = (await a.activity()).filter((record) => record.keyid === keyid);
      assert.deepEqual([last?.action, last?.validAction, last?.status], [recorded, true, 200]);
      if (access.ring) assert.equal(last?.ringname, sample.ring);
    }
  });

  test(`${endpoint.id}: an access token acts with the flags that its user has now`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    const [flag = ''] = grantingFlags(access, sample.ring);
    const { user, accessToken } = await logIn(a);
    assert.equal((await send(a, each, sample, accessToken)).status, 403);
    await a.call('PATCH', `/auth/users/${user.username}`, { flags: { [flag]: true } });
    assert.equal((await send(a, each, sample, accessToken)).status, 200);
    const [last] = (await a.activity()).filter((record) => record.keyid === user.id);
    assert.deepEqual([last?.action, last?.validAction, last?.status], [recorded, true, 200]);
  });

  test(`${endpoint.id}: a flag set to false grants nothing`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    const flags = Object.fromEntries(grantingFlags(access, sample.ring).map((flag) => [flag, false]));
    const { body } = await a.call('POST', '/auth/apikey', { accountId: a.accountId, flags });
    assert.equal((await send(a, each, sample, body.key)).status, 403);
  });
}
