// Password resets: links, their expiry, and who may make them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PublicContext } from '../../src/core/context.ts';
import { findCandidate } from '../../src/core/logins.ts';
import { checkResetPassword, completeReset, resetLink, startReset } from '../../src/core/password-reset.ts';
import { authenticateToken } from '../../src/core/sessions.ts';
import { deleteUser, type UserRef, updateUser } from '../../src/core/users.ts';
import { callerWith, refusal, type TestTenant, testTenant } from '../support/context.ts';
import { addedUser, inviteToken, links, tokenFor, tokenIn } from '../support/people.ts';

const ada: UserRef = { text: 'ada', is: 'username' };

async function newToken(tenant: TestTenant): Promise<string> {
  return tokenIn((await tenant.call(resetLink, { user: ada, links })).resetUrl);
}

function complete(tenant: TestTenant, token: string, passwordHash = 'hash of new') {
  return tenant.run((ctx: PublicContext) => completeReset(ctx, { token, passwordHash }));
}

function start(tenant: TestTenant, email: string) {
  return tenant.run((ctx: PublicContext) => startReset(ctx, { email, links }));
}

async function refused(attempt: Promise<unknown>): Promise<void> {
  assert.deepEqual((await refusal('invalid', attempt)).body, {});
}

test('a reset sets the password, ends every session and works once', async () => {
  const tenant = await testTenant();
  const { id } = await addedUser(tenant, 'ada');
  const sessions = [await tokenFor(tenant, id), await tokenFor(tenant, id)];
  const token = await newToken(tenant);
  assert.deepEqual(await complete(tenant, token), {});
  const stored = await tenant.store.transaction((tables) => findCandidate(tables, { name: 'ada', isEmail: false }));
  assert.equal(stored?.passwordHash, 'hash of new');
  for (const session of sessions) {
    const verdict = await tenant.store.transaction((tables) => authenticateToken(tables, session, tenant.world.now()));
    assert.deepEqual(verdict, { kind: 'ended', userId: id });
  }
  await refused(complete(tenant, token));
});

test('the mail has the link, for the address of a user and nobody else', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada');
  await inviteToken(tenant, 'bob');
  const mail = await start(tenant, 'ADA@example.org');
  assert.equal(mail?.to, 'ada@example.org');
  const [url = ''] = /https:\S+/.exec(mail?.text ?? '') ?? [];
  assert.match(url, /^https:\/\/kms\.example\.org\/console\/reset\?token=kmsrs_[0-9A-Za-z]{43}$/);
  assert.deepEqual(await complete(tenant, tokenIn(url)), {});
  for (const email of ['nobody@example.org', 'ada', 'bob@example.org', '']) {
    assert.equal(await start(tenant, email), undefined);
  }
});

test('tokens that are unknown, replaced, late or of a deleted user: one answer', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada');
  const replaced = await newToken(tenant);
  const late = await newToken(tenant);
  for (const token of ['', 'x', `kmsrs_${'0'.repeat(43)}`, replaced]) await refused(complete(tenant, token));
  tenant.advance(3_600_000);
  await refused(complete(tenant, late));
  const orphan = await newToken(tenant);
  await tenant.call(deleteUser, { user: ada });
  await refused(complete(tenant, orphan));
});

test('an invite is no reset', async () => {
  const tenant = await testTenant();
  const token = await inviteToken(tenant, 'ada');
  await refused(complete(tenant, token));
  await refused(complete(tenant, token.replace('kmsin_', 'kmsrs_')));
  await refusal('conflict', tenant.call(resetLink, { user: ada, links }));
});

test('a link that went to an old address opens nothing', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada');
  const token = await newToken(tenant);
  await tenant.call(updateUser, { user: ada, changes: { email: 'new@example.org' } });
  await refused(complete(tenant, token));
});

test('nobody makes a link for who is stronger, nor for who is not', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada', { '*': true });
  await refusal('forbidden', tenant.call(resetLink, { user: ada, links }, callerWith('user.*')));
  await refusal('not-found', tenant.call(resetLink, { user: { text: 'nobody', is: 'username' }, links }));
});

test('a password that does not meet the rules gets the empty body too', async () => {
  checkResetPassword('Abcdef1!');
  await refused((async () => checkResetPassword('secret'))());
});

test('of twenty using one link exactly one wins', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada');
  const token = await newToken(tenant);
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => complete(tenant, token, `hash ${index}`)),
  );
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
});
