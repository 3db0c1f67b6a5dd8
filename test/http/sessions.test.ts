// Users' own passwords and sessions over HTTP: list them, end them, change the password.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { pretendHasher } from '../support/pretend-hasher.ts';
import { goodPassword, logIn, makeUser, resetToken } from './samples.ts';

const minute = 60_000;

interface Person {
  readonly user: AnyJson;
  readonly password: string;
  /** Returns an access token. */
  logIn(remoteAddress?: string, password?: string): Promise<string>;
}

async function person(a: Appliance): Promise<Person> {
  const { user, password } = await makeUser(a);
  return {
    user,
    password,
    async logIn(remoteAddress, given = password) {
      const env = remoteAddress === undefined ? {} : { remoteAddress };
      const body = { username: user.username, password: given };
      const answer = await a.call('POST', '/auth/basic/login', body, { key: null, env });
      assert.equal(answer.status, 200, answer.text);
      return answer.body.accessToken;
    },
  };
}

function sessionsOf(a: Appliance, key: string, remoteAddress?: string): Promise<Answer> {
  const env = remoteAddress === undefined ? {} : { remoteAddress };
  return a.call('GET', '/auth/user/sessions', undefined, { key, env });
}

async function statusOf(a: Appliance, key: string): Promise<number> {
  return (await sessionsOf(a, key)).status;
}

function change(a: Appliance, key: string, currentPassword: string, newPassword: string, remoteAddress = '192.0.2.1') {
  const body = { currentPassword, newPassword };
  return a.call('POST', '/auth/user/password', body, { key, env: { remoteAddress } });
}

test('the list of sessions comes with the second factors, if they are asked for', async () => {
  const a = await testAppliance();
  const { accessToken: key } = await logIn(a);
  const ask = async (query: string) => (await a.call('GET', `/auth/user/sessions${query}`, undefined, { key })).body;
  assert.equal((await ask('')).secondFactors, undefined);
  const { body } = await a.call('GET', '/auth/user/second-factors', undefined, { key });
  assert.deepEqual((await ask('?secondFactors=true')).secondFactors, body);
  const [last] = await a.activity();
  assert.equal(last?.action, 'session.read');
});

test('one sees when and from where each session was used, and which is this one; refreshes keep its id', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const first = await ada.logIn('192.0.2.1');
  a.advance(minute);
  const second = await ada.logIn('2001:DB8:0:0:1::7');
  await logIn(a);
  const { status, body } = await sessionsOf(a, second, '2001:db8::9');
  assert.equal(status, 200);
  const [one, two] = body.sessions;
  const start = a.world.now() - minute;
  assert.deepEqual(body, {
    sessions: [
      {
        id: one.id,
        createdAt: new Date(start).toISOString(),
        lastUsedAt: start,
        address: '192.0.2.1',
        current: false,
      },
      {
        id: two.id,
        createdAt: new Date(start + minute).toISOString(),
        lastUsedAt: start + minute,
        address: '2001:db8::/64',
        current: true,
      },
    ],
  });
  assert.match(one.id, /^sess_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.notEqual(one.id, two.id);

  a.advance(30 * minute);
  const { accessToken: third } = (
    await a.call('GET', '/auth/basic/refresh', undefined, { key: first, env: { remoteAddress: '198.51.100.3' } })
  ).body;
  const [again, other, ...more] = (await sessionsOf(a, third)).body.sessions;
  assert.deepEqual(more, []);
  assert.deepEqual(again, { ...one, lastUsedAt: start + 31 * minute, address: '198.51.100.3', current: true });
  assert.deepEqual(other, { ...two, current: false });
});

test('the use of a session is noted once a minute, wherever it comes from', async () => {
  const a = await testAppliance();
  const key = await (await person(a)).logIn('192.0.2.1');
  const start = a.world.now();
  const seen = async (remoteAddress: string) => {
    const [{ lastUsedAt, address }] = (await sessionsOf(a, key, remoteAddress)).body.sessions;
    return [lastUsedAt - start, address];
  };
  a.advance(minute - 1);
  assert.deepEqual(await seen('192.0.2.2'), [0, '192.0.2.1']);
  a.advance(1);
  assert.deepEqual(await seen('192.0.2.2'), [minute, '192.0.2.2']);
  a.advance(1);
  assert.deepEqual(await seen('192.0.2.3'), [minute, '192.0.2.2']);
  a.advance(-30 * minute);
  assert.deepEqual(await seen('192.0.2.3'), [-29 * minute + 1, '192.0.2.3'], 'a clock that was set back');
});

test('one ends a session of one’s own, and nobody else’s', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const [here, there] = [await ada.logIn(), await ada.logIn()];
  const stranger = await (await person(a)).logIn();
  const [{ id }] = (await sessionsOf(a, there)).body.sessions.filter(({ current }: AnyJson) => current);
  const end = (key: string, of = id) => a.call('DELETE', `/auth/user/sessions/${of}`, undefined, { key });
  assert.equal((await end(stranger)).status, 404);
  assert.equal((await end(here, 'sess_x')).status, 404);
  const ended = await end(here);
  assert.deepEqual([ended.status, ended.body], [200, {}]);
  assert.deepEqual((await a.activity())[0]?.props, { object: { type: 'session', id } });
  assert.deepEqual([await statusOf(a, there), await statusOf(a, here)], [401, 200]);
  assert.equal((await end(here)).status, 404, 'it has ended');
  assert.deepEqual(
    (await a.activity()).slice(0, 1).map(({ keyid, action, status }) => [keyid, action, status]),
    [[ada.user.id, 'session.end', 404]],
  );
});

test('one ends all sessions but this one', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const [here, ...others] = [await ada.logIn(), await ada.logIn(), await ada.logIn()];
  const stranger = await (await person(a)).logIn();
  const ended = await a.call('DELETE', '/auth/user/sessions', undefined, { key: here });
  assert.deepEqual([ended.status, ended.body], [200, {}]);
  const { objects } = (await a.activity())[0]?.props ?? {};
  assert.deepEqual(
    (objects as AnyJson).map(({ type }: AnyJson) => type),
    ['session', 'session'],
  );
  assert.deepEqual(await Promise.all(others.map((key) => statusOf(a, key))), [401, 401]);
  assert.deepEqual([await statusOf(a, here), await statusOf(a, stranger)], [200, 200]);
  assert.equal((await sessionsOf(a, here)).body.sessions.length, 1);
});

test('a session that expired is not shown, and cannot be ended', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const old = await ada.logIn();
  const [{ id }] = (await sessionsOf(a, old)).body.sessions;
  a.advance(60 * minute);
  const key = await ada.logIn();
  assert.deepEqual(
    (await sessionsOf(a, key)).body.sessions.map(({ current }: AnyJson) => current),
    [true],
  );
  assert.equal((await a.call('DELETE', `/auth/user/sessions/${id}`, undefined, { key })).status, 404);
});

test('a changed password ends the other sessions and a reset link, and is recorded without a secret', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const [here, there] = [await ada.logIn(), await ada.logIn()];
  const link = await resetToken(a, ada.user.username);
  const changed = await change(a, here, ada.password, goodPassword);
  assert.deepEqual([changed.status, changed.body], [200, {}]);
  const [last] = await a.activity();
  assert.deepEqual(
    [last?.keyid, last?.action, last?.validAction, last?.status],
    [ada.user.id, 'user.password', true, 200],
  );
  const { id, username } = ada.user;
  assert.deepEqual(last?.props, { object: { type: 'user', id, name: username }, changed: ['password'] });
  assert.deepEqual([await statusOf(a, here), await statusOf(a, there)], [200, 401]);
  const byLink = await a.call(
    'POST',
    '/auth/basic/reset-password-complete',
    { token: link, password: 'Other-horse-7' },
    { key: null },
  );
  assert.equal(byLink.status, 400);
  await ada.logIn(undefined, goodPassword);
  assert.equal((await change(a, here, ada.password, 'Other-horse-7')).status, 400, 'the old one is over');
  const told = a.log.join('\n') + JSON.stringify(await a.activity());
  for (const secret of [ada.password, goodPassword, 'Other-horse-7']) assert.ok(!told.includes(secret), secret);
});

test('a wrong current password is recorded as denied, as a wrong login is', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const key = await ada.logIn();
  assert.equal((await change(a, key, 'not-Hers-1', goodPassword)).status, 400);
  const denials = (await a.activity()).filter(({ validAction }) => !validAction);
  assert.deepEqual(
    denials.map(({ keyid, action, status, props }) => [keyid, action, status, props]),
    [[ada.user.id, 'user.password', 400, {}]],
  );
  // A new password that breaks a rule is not counted as a guess.
  assert.equal((await change(a, key, ada.password, 'short')).status, 400);
  assert.equal((await a.activity())[0]?.validAction, true);
  assert.equal((await change(a, key, ada.password, goodPassword)).status, 200);
  assert.equal((await a.activity())[0]?.validAction, true);
});

test('a new password that breaks a rule is told so, and costs no try', async () => {
  const asked: string[] = [];
  const verify = (stored: string, password: string) => {
    asked.push(stored);
    return pretendHasher.verify(stored, password);
  };
  const a = await testAppliance({ people: { hasher: { ...pretendHasher, verify } } });
  const ada = await person(a);
  const key = await ada.logIn();
  asked.length = 0;
  const { status, body } = await change(a, key, ada.password, 'short');
  assert.deepEqual([status, body.state, body.results.isValid], [400, 'malformed-password', false]);
  assert.equal(body.message, 'the password does not meet the rules');
  assert.equal((await a.call('POST', '/auth/user/password', { currentPassword: 'x' }, { key })).status, 400);
  assert.deepEqual(asked, []);
  await ada.logIn();
});

test('a wrong current password is braked with the logins of that name, and one answer', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const key = await ada.logIn();
  const answers = new Set<string>();
  for (let i = 0; i < 5; i++) {
    const { status, text } = await change(a, key, i % 2 === 0 ? `wrong${i}` : 'x'.repeat(2000), goodPassword);
    answers.add(`${status} ${text}`);
  }
  assert.deepEqual([...answers], ['400 {"message":"the current password is wrong"}']);
  const waiting = await change(a, key, ada.password, goodPassword);
  assert.deepEqual([waiting.status, waiting.headers.get('retry-after')], [429, '1']);
  const body = { username: ada.user.username, password: ada.password };
  const from = (remoteAddress: string) =>
    a.call('POST', '/auth/basic/login', body, { key: null, env: { remoteAddress } });
  assert.equal((await from('192.0.2.1')).status, 429);
  assert.equal((await from('192.0.2.2')).status, 200);
  a.advance(1_000);
  assert.equal((await change(a, key, ada.password, goodPassword)).status, 200);
});

test('of two changes at once one wins', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const key = await ada.logIn();
  const both = await Promise.all([
    change(a, key, ada.password, `${goodPassword}1`),
    change(a, key, ada.password, `${goodPassword}2`),
  ]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400]);
});

test('with an API key, and for the administrator at the machine, all of it is 400', async () => {
  const a = await testAppliance();
  for (const options of [{}, { key: null, env: { local: true } }]) {
    const call = (method: string, path: string, body?: object) => a.call(method, path, body, options);
    for (const { status, body } of [
      await call('POST', '/auth/user/password', { currentPassword: 'x', newPassword: goodPassword }),
      await call('GET', '/auth/user/sessions'),
      await call('DELETE', '/auth/user/sessions'),
      await call('DELETE', '/auth/user/sessions/sess_x'),
    ]) {
      assert.deepEqual([status, body], [400, { message: 'expected an access token, not an API key' }]);
    }
  }
});
