// The link of the first administrator: what it makes, and when it stops working.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PublicContext } from '../../src/core/context.ts';
import { completeSetUp, setUpLink } from '../../src/core/set-up.ts';
import { deleteUser } from '../../src/core/users.ts';
import { type TestTenant, testTenant } from '../support/context.ts';
import { addedUser, fieldsOf, lifetimes, links, tokenIn } from '../support/people.ts';

async function link(tenant: TestTenant): Promise<string> {
  return tokenIn((await tenant.run((ctx: PublicContext) => setUpLink(ctx, { links }))).url);
}

function complete(tenant: TestTenant, token: string, username = 'ada') {
  const input = { token, fields: fieldsOf(username), passwordHash: 'hash', lifetimes };
  return tenant.run((ctx: PublicContext) => completeSetUp(ctx, input));
}

const refused = (state: string) => ({ code: 'unauthenticated', body: { state } });

test('it makes one user who may do everything, is recorded, and works no longer', async () => {
  const tenant = await testTenant();
  const token = await link(tenant);
  const { user, accesstoken } = await complete(tenant, token);
  assert.deepEqual([user.username, user.flags], ['ada', { '*': true }]);
  assert.match(accesstoken, /^kmsat_/);
  await assert.rejects(complete(tenant, token, 'eve'), refused('invalid'));
  await assert.rejects(link(tenant), { code: 'conflict' });
});

test('it works no longer once there was a user of any kind; when they are gone, another link does', async () => {
  const tenant = await testTenant();
  const token = await link(tenant);
  const user = await addedUser(tenant, 'bob');
  await assert.rejects(complete(tenant, token), refused('invalid'));
  await tenant.call(deleteUser, { user: { text: user.id, is: 'id' } });
  await assert.rejects(complete(tenant, token), refused('invalid'));
  assert.equal((await complete(tenant, await link(tenant))).user.username, 'ada');
});

test('it works no longer past its time', async () => {
  const tenant = await testTenant();
  const token = await link(tenant);
  tenant.advance(lifetimes.invite);
  await assert.rejects(complete(tenant, token), refused('expired'));
});

test('of several at once one wins', async () => {
  const tenant = await testTenant();
  const token = await link(tenant);
  const all = await Promise.allSettled(['ada', 'eve', 'mallory'].map((name) => complete(tenant, token, name)));
  assert.deepEqual(all.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected', 'rejected']);
});

test('no other text is such a link, nor is the one of another tenant', async () => {
  const [tenant, other] = [await testTenant(), await testTenant({ seed: 2 })];
  const token = await link(tenant);
  const [, madeAt = ''] = token.split('_');
  const later = token.replace(madeAt, String(Number(madeAt) + 1));
  const flipped = token.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
  for (const text of ['', 'x', 'kmssu_', later, flipped, `${token}A`, token.replace('_1', '_01'), await link(other)]) {
    await assert.rejects(complete(tenant, text), refused('invalid'), text);
  }
  await complete(tenant, token);
});
