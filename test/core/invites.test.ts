// Invites: made, completed, expired and replaced, and who may invite whom.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PublicContext } from '../../src/core/context.ts';
import { checkInvitePassword, completeInvite, inviteUser, validateInvite } from '../../src/core/invites.ts';
import { findCandidate } from '../../src/core/logins.ts';
import { authenticateToken } from '../../src/core/sessions.ts';
import { getUser, updateUser } from '../../src/core/users.ts';
import { callerWith, refusal, startTime, type TestTenant, testTenant } from '../support/context.ts';
import { addedUser, fieldsOf, inviteToken, lifetimes, links, tokenIn } from '../support/people.ts';

const day = 86_400_000;

function validate(tenant: TestTenant, token: string) {
  return tenant.run((ctx: PublicContext) => validateInvite(ctx, { token }));
}

function complete(tenant: TestTenant, token: string, passwordHash = 'hash of new') {
  return tenant.run((ctx: PublicContext) => completeInvite(ctx, { token, passwordHash, lifetimes }));
}

async function stateOf(attempt: Promise<unknown>): Promise<unknown> {
  return (await refusal('unauthenticated', attempt)).body;
}

test('an invite makes a user that cannot log in until it is completed', async () => {
  const tenant = await testTenant();
  const { loginUrl } = await tenant.call(inviteUser, { fields: fieldsOf('ada', { props: { a: 1 } }), links });
  assert.match(loginUrl, /^https:\/\/kms\.example\.org\/console\/invite\?token=kmsin_[0-9A-Za-z]{43}$/);
  const token = tokenIn(loginUrl);
  const made = await tenant.call(getUser, { user: { text: 'ada', is: 'username' } });
  const findAda = () => tenant.store.transaction((tables) => findCandidate(tables, { name: 'ada', isEmail: false }));
  assert.deepEqual(await findAda(), { userId: made.id, passwordHash: undefined });
  assert.deepEqual(await validate(tenant, token), { state: 'success', user: made });

  assert.deepEqual([made.state, made.lastLoginAt], ['invited', null]);
  const { user, accesstoken } = await complete(tenant, token);
  assert.deepEqual(user, { ...made, state: 'active', lastLoginAt: startTime });
  assert.equal((await findAda())?.passwordHash, 'hash of new');
  const verdict = await tenant.store.transaction((tables) =>
    authenticateToken(tables, accesstoken, tenant.world.now()),
  );
  assert.equal(verdict?.kind, 'active');
});

test('a used, unknown or malformed token is invalid', async () => {
  const tenant = await testTenant();
  const token = await inviteToken(tenant, 'ada');
  await complete(tenant, token);
  for (const text of [token, `kmsin_${'0'.repeat(43)}`, '', 'x', token.replace('kmsin_', 'kmsrs_')]) {
    assert.deepEqual(await stateOf(validate(tenant, text)), { state: 'invalid' });
    assert.deepEqual(await stateOf(complete(tenant, text)), { state: 'invalid' });
  }
});

test('a token past its seven days is expired, a used one stays invalid', async () => {
  const tenant = await testTenant();
  const [used, late] = [await inviteToken(tenant, 'ada'), await inviteToken(tenant, 'bob')];
  await complete(tenant, used);
  tenant.advance(7 * day - 1);
  await validate(tenant, late);
  tenant.advance(1);
  assert.deepEqual(await stateOf(validate(tenant, late)), { state: 'expired' });
  assert.deepEqual(await stateOf(complete(tenant, late)), { state: 'expired' });
  assert.deepEqual(await stateOf(validate(tenant, used)), { state: 'invalid' });
});

test('inviting again replaces the token and what the invite said', async () => {
  const tenant = await testTenant();
  const first = await inviteToken(tenant, 'ada');
  const fields = { ...fieldsOf('ADA'), email: 'countess@example.org', lastName: 'King', flags: { x: true } };
  const { loginUrl } = await tenant.call(inviteUser, { fields, links });
  assert.deepEqual(await stateOf(validate(tenant, first)), { state: 'invalid' });
  const { user } = await validate(tenant, tokenIn(loginUrl));
  assert.deepEqual(
    [user.username, user.email, user.displayName, user.flags],
    ['ada', 'countess@example.org', 'Ada King', { x: true }],
  );
});

test('inviting who can log in, or with an address that is taken, is refused by field', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada');
  await inviteToken(tenant, 'bob');
  const invite = async (username: string, email: string) =>
    (await refusal('conflict', tenant.call(inviteUser, { fields: { ...fieldsOf(username), email }, links }))).fields;
  assert.deepEqual(await invite('Ada', 'new@example.org'), { username: 'is taken' });
  assert.deepEqual(await invite('new', 'ADA@example.org'), { email: 'is taken' });
  assert.deepEqual(await invite('bob', 'ada@example.org'), { email: 'is taken' });
  assert.deepEqual(await invite('new', 'bob@example.org'), { email: 'is taken' });
  await refusal('invalid', tenant.call(inviteUser, { fields: { ...fieldsOf('bob'), email: 'nonsense' }, links }));
});

test('nobody invites with flags that they lack, nor again who is stronger', async () => {
  const tenant = await testTenant();
  const caller = callerWith('user.invite', 'keyring.*.read');
  const withFlags = (flags: Record<string, boolean>) => ({ fields: fieldsOf('ada', { flags }), links });
  await refusal('forbidden', tenant.call(inviteUser, withFlags({ 'keyring.a.encrypt': true }), caller));
  await refusal('not-found', tenant.call(getUser, { user: { text: 'ada', is: 'username' } }));
  await tenant.call(inviteUser, withFlags({ 'keyring.a.read': true }), caller);
  await refusal('forbidden', tenant.call(inviteUser, withFlags({ '*': true }), caller));
  await tenant.call(updateUser, { user: { text: 'ada', is: 'username' }, changes: { flags: { '*': true } } });
  await refusal('forbidden', tenant.call(inviteUser, withFlags({}), caller));
});

test('the limit of users counts who is invited, once', async () => {
  const tenant = await testTenant({ limits: { users: 1 } });
  await inviteToken(tenant, 'ada');
  await inviteToken(tenant, 'ada');
  await refusal('quota', inviteToken(tenant, 'bob'));
});

test('a password that does not meet the rules is told count by count', async () => {
  checkInvitePassword('Abcdef1!');
  const error = await refusal('invalid', (async () => checkInvitePassword('secret'))());
  assert.doesNotMatch(error.message, /secret/);
  const { state, results } = { state: '', results: { isValid: true, details: {} }, ...error.body };
  assert.equal(state, 'malformed-password');
  assert.equal(results.isValid, false);
  assert.equal(Object.keys(results.details).length, 10);
});

test('of twenty completing one invite exactly one wins', async () => {
  const tenant = await testTenant();
  const token = await inviteToken(tenant, 'ada');
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => complete(tenant, token, `hash ${index}`)),
  );
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  assert.deepEqual(await stateOf(complete(tenant, token)), { state: 'invalid' });
});
