// Sessions: login by name or address, access tokens, refreshes and logout.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PublicContext } from '../../src/core/context.ts';
import type { PasswordHasher } from '../../src/core/logins.ts';
import { checkCandidate, findCandidate, login } from '../../src/core/logins.ts';
import { authenticateToken, logout, mostOpen, mostRemembered, refreshSession } from '../../src/core/sessions.ts';
import { createUser } from '../../src/core/users.ts';
import { callerWith, refusal, startTime, type TestTenant, testTenant } from '../support/context.ts';
import { addedUser, callerOf, fieldsOf, inviteToken, lifetimes, tokenFor } from '../support/people.ts';

const hour = 3_600_000;

/** Stands in for argon2: the password of `hash of x` is `x`. Records its calls. */
function pretendHasher() {
  const asked: string[] = [];
  const hasher: PasswordHasher = {
    hash: async (password) => `hash of ${password}`,
    verify: async (stored, password) => {
      asked.push(stored);
      return stored === `hash of ${password}`;
    },
  };
  return { hasher, asked };
}

async function logIn(tenant: TestTenant, name: string, password: string, isEmail = false) {
  const { hasher, asked } = pretendHasher();
  const candidate = await tenant.store.transaction((tables) => findCandidate(tables, { name, isEmail }));
  const passed = await checkCandidate(hasher, candidate, password);
  assert.equal(asked.length, 1, 'one password check, whoever asks');
  const step = passed ? ({ is: 'none' } as const) : undefined;
  return tenant.run((ctx: PublicContext) => login(ctx, { candidate, step, lifetimes }));
}

function verdictOf(tenant: TestTenant, token: string) {
  return tenant.store.transaction((tables) => authenticateToken(tables, token, tenant.world.now()));
}

test('login by name, by address where said, and by address where it looks like one', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  const { user, accessToken } = await logIn(tenant, 'ADA', 'ada');
  assert.deepEqual([ada.state, ada.lastLoginAt], ['active', null]);
  assert.deepEqual(user, { ...ada, lastLoginAt: startTime });
  assert.match(accessToken, /^kmsat_[0-9A-Za-z]{43}$/);
  assert.equal((await logIn(tenant, 'Ada@Example.org', 'ada', true)).user.id, ada.id);
  assert.equal((await logIn(tenant, 'ada@example.org', 'ada')).user.id, ada.id);
  await refusal('invalid', logIn(tenant, 'ada', 'ada', true));
});

test('a name that is another one’s address, as older stores may have it, is a name first', async () => {
  const tenant = await testTenant();
  const { id } = await addedUser(tenant, 'ada');
  const fields = fieldsOf('odd@example.org', { email: 'other@example.org' });
  const odd = await tenant.call(createUser, { fields, password: 'odd', passwordHash: 'hash of odd' });
  await tenant.run(({ tx }: PublicContext) => {
    const ada = tx.users.byId(id);
    assert.ok(ada);
    tx.users.update(id, { ...ada, email: 'odd@example.org' });
  });
  assert.equal((await logIn(tenant, 'odd@example.org', 'odd')).user.id, odd.user.id);
});

test('wrong name, wrong password, no password yet: one answer', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada');
  await inviteToken(tenant, 'bob');
  const messages = new Set<string>();
  for (const [name, password] of [
    ['ada', 'wrong'],
    ['nobody', 'ada'],
    ['bob', ''],
    ['bob', 'bob'],
    ['ada', 'x'.repeat(2000)],
    ['ada', 'ada\ud800'],
  ] as const) {
    const { message, fields } = await refusal('invalid', logIn(tenant, name, password));
    messages.add(JSON.stringify([message, fields]));
  }
  assert.equal(messages.size, 1, [...messages].join());
});

test('a password that changed since it was checked opens nothing', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  const candidate = { userId: ada.id, passwordHash: 'hash of what was' };
  await refusal(
    'invalid',
    tenant.run((ctx: PublicContext) => login(ctx, { candidate, step: { is: 'none' }, lifetimes })),
  );
});

test('an access token is stored as a hash alone', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada');
  const { accessToken } = await logIn(tenant, 'ada', 'ada');
  const verdict = await verdictOf(tenant, accessToken);
  assert.ok(verdict?.kind === 'active' && verdict.session !== accessToken);
  assert.equal(
    await verdictOf(tenant, `${accessToken.slice(0, -1)}${accessToken.endsWith('0') ? '1' : '0'}`),
    undefined,
  );
  for (const text of ['', 'kmsat_', accessToken.slice(6), verdict.session]) {
    assert.equal(await verdictOf(tenant, text), undefined);
  }
});

test('a token lives an hour to the millisecond, and is known after', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  const { accessToken } = await logIn(tenant, 'ada', 'ada');
  tenant.advance(hour - 1);
  assert.equal((await verdictOf(tenant, accessToken))?.kind, 'active');
  tenant.advance(1);
  assert.deepEqual(await verdictOf(tenant, accessToken), { kind: 'ended', userId: ada.id });
});

test('a refresh gives a new token and ends the old at once', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  const old = await tokenFor(tenant, ada.id);
  const { user, accessToken } = await tenant.call(refreshSession, { lifetimes }, await callerOf(tenant, old));
  assert.deepEqual(user, ada);
  assert.equal((await verdictOf(tenant, old))?.kind, 'ended');
  assert.equal((await verdictOf(tenant, accessToken))?.kind, 'active');
});

test('no chain of refreshes outlives twelve hours', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  let token = await tokenFor(tenant, ada.id);
  let refreshes = 0;
  for (;;) {
    tenant.advance(50 * 60_000);
    if ((await verdictOf(tenant, token))?.kind !== 'active') break;
    token = (await tenant.call(refreshSession, { lifetimes }, await callerOf(tenant, token))).accessToken;
    refreshes++;
  }
  assert.equal(refreshes, 14, 'the last at 11:40, and none at 12:30');
});

test('the last token of a chain ends with the chain', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  const short = { ...lifetimes, session: 90 * 60_000 };
  let token = await tokenFor(tenant, ada.id);
  tenant.advance(50 * 60_000);
  token = (await tenant.call(refreshSession, { lifetimes: short }, await callerOf(tenant, token))).accessToken;
  tenant.advance(40 * 60_000 - 1);
  assert.equal((await verdictOf(tenant, token))?.kind, 'active');
  tenant.advance(1);
  assert.equal((await verdictOf(tenant, token))?.kind, 'ended');
});

test('logout ends the token, and only that one', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  const [here, there] = [await tokenFor(tenant, ada.id), await tokenFor(tenant, ada.id)];
  assert.deepEqual(await tenant.call(logout, undefined, await callerOf(tenant, here)), {});
  assert.equal((await verdictOf(tenant, here))?.kind, 'ended');
  assert.equal((await verdictOf(tenant, there))?.kind, 'active');
});

test('an API key neither refreshes nor logs out', async () => {
  const tenant = await testTenant();
  await refusal('invalid', tenant.call(refreshSession, { lifetimes }, callerWith('*')));
  await refusal('invalid', tenant.call(logout, undefined, callerWith('*')));
});

test('a session long over is forgotten', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  const token = await tokenFor(tenant, ada.id);
  tenant.advance(8 * 24 * hour);
  await tokenFor(tenant, ada.id);
  assert.equal(await verdictOf(tenant, token), undefined);
});

test('a user has so many sessions at once: one more ends the oldest, and old ones are let go of', async () => {
  const tenant = await testTenant();
  const [ada, bob] = [await addedUser(tenant, 'ada'), await addedUser(tenant, 'bob')];
  const other = await tokenFor(tenant, bob.id);
  const tokens: string[] = [];
  for (let i = 0; i < mostOpen; i++) tokens.push(await tokenFor(tenant, ada.id));
  const kind = (token = '') =>
    tenant.store.transaction((tables) => authenticateToken(tables, token, tenant.world.now())?.kind);
  assert.equal(await kind(tokens[0]), 'active');
  for (let i = 0; i < 3; i++) tokens.push(await tokenFor(tenant, ada.id));
  assert.deepEqual(await Promise.all([0, 1, 2, 3].map((at) => kind(tokens[at]))), [
    'ended',
    'ended',
    'ended',
    'active',
  ]);
  assert.equal(await kind(other), 'active');
  // Each refresh ends one session and opens another; the memory of ended ones is bounded, and no open one is forgotten.
  let token = tokens.at(-1) ?? '';
  for (let i = 0; i < mostRemembered; i++) {
    const caller = await callerOf(tenant, token);
    token = (await tenant.call(refreshSession, { lifetimes }, caller)).accessToken;
  }
  assert.deepEqual(await Promise.all([0, 3, mostOpen].map((at) => kind(tokens[at]))), [undefined, 'active', 'active']);
  assert.equal(await kind(token), 'active');
  assert.equal(await kind(other), 'active');
});
