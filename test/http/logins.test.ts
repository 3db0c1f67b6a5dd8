// Logins, invites and password resets over HTTP, from the first link to the last session.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Mail } from '../../src/core/links.ts';
import type { PasswordHasher } from '../../src/core/logins.ts';
import { hashPassword, passwordSaltLength, verifyPassword } from '../../src/crypto/argon2id.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { type Answer, type Appliance, type ApplianceOptions, testAppliance } from '../support/appliance.ts';
import { pretendHasher } from '../support/pretend-hasher.ts';
import { goodPassword, inviteToken, logIn, makeUser, resetToken } from './samples.ts';

const hour = 3_600_000;
const nobody = { key: null };
const ada = { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace' };

function loginOf(a: Appliance, username: string, password: string, remoteAddress = '192.0.2.1'): Promise<Answer> {
  return a.call('POST', '/auth/basic/login', { username, password }, { key: null, env: { remoteAddress } });
}

/** An appliance that collects the mails it would send. */
async function withMail(options: ApplianceOptions = {}) {
  const mails: Mail[] = [];
  let arrived: (() => void)[] = [];
  const mailer = {
    async send(mail: Mail) {
      mails.push(mail);
      for (const tell of arrived) tell();
      arrived = [];
    },
  };
  const a = await testAppliance({ ...options, people: { mailer, ...options.people } });
  const mail = async (count: number): Promise<Mail> => {
    while (mails.length < count) await new Promise<void>((resolve) => arrived.push(resolve));
    return mails[count - 1] ?? assert.fail();
  };
  return { a, mails, mail };
}

const linkIn = (text: string): string => /https?:\S+/.exec(text)?.[0] ?? '';
const tokenIn = (url: string): string => new URL(url).searchParams.get('token') ?? '';

test('an invite leads to a session: validate, a bad password, a good one, log in, log out', async () => {
  const { a, mail } = await withMail();
  const { loginUrl } = (await a.call('POST', '/auth/user/invite', ada)).body;
  assert.match(loginUrl, /^http:\/\/kms\.test\/console\/invite\?token=\w+$/);
  const sent = await mail(1);
  assert.deepEqual([sent.to, linkIn(sent.text)], ['ada@example.org', loginUrl]);
  const token = tokenIn(loginUrl);
  assert.equal((await loginOf(a, 'ada', goodPassword)).status, 400);

  const valid = await a.call('GET', `/auth/user/invite-validate?token=${token}`, undefined, nobody);
  assert.deepEqual([valid.status, valid.body.state, valid.body.user.username], [200, 'success', 'ada']);
  const complete = (password: string) => a.call('POST', '/auth/user/invite-complete', { token, password }, nobody);
  const bad = await complete('short');
  assert.deepEqual([bad.status, Object.keys(bad.body).sort()], [400, ['results', 'state']]);
  assert.deepEqual([bad.body.state, bad.body.results.isValid], ['malformed-password', false]);
  assert.equal(bad.body.results.details.newPasswordLength, 5);
  const done = await complete(goodPassword);
  assert.deepEqual([done.status, Object.keys(done.body).sort()], [200, ['accesstoken', 'user']]);
  const again = await complete(goodPassword);
  assert.deepEqual([again.status, again.body], [401, { state: 'invalid' }]);

  const { accesstoken } = done.body;
  const me = (key: string) => a.call('GET', '/auth/users/ada', undefined, { key });
  assert.equal((await me(accesstoken)).status, 200);
  const login = await loginOf(a, 'ada', goodPassword);
  assert.deepEqual([login.status, Object.keys(login.body).sort()], [200, ['accessToken', 'user']]);
  const out = await a.call('POST', '/auth/basic/logout', undefined, { key: login.body.accessToken });
  assert.deepEqual([out.status, out.body], [200, {}]);
  assert.equal((await me(login.body.accessToken)).status, 401);
  assert.equal((await me(accesstoken)).status, 200);
});

test('the states of an invite: invalid when used, unknown, missing or replaced, expired after seven days', async () => {
  const a = await testAppliance();
  const stateOf = async (query: string) => {
    const { status, body } = await a.call('GET', `/auth/user/invite-validate${query}`, undefined, nobody);
    return [status, body];
  };
  const invalid = [401, { state: 'invalid' }];
  for (const query of ['', '?token=', '?token=x', '?token=%00', `?token=kmsin_${'0'.repeat(43)}`]) {
    assert.deepEqual(await stateOf(query), invalid, query);
  }
  const first = await inviteToken(a, ada);
  const second = await inviteToken(a, ada);
  assert.deepEqual(await stateOf(`?token=${first}`), invalid);
  a.advance(7 * 24 * hour);
  assert.deepEqual(await stateOf(`?token=${second}`), [401, { state: 'expired' }]);
  const late = await a.call('POST', '/auth/user/invite-complete', { token: second, password: goodPassword }, nobody);
  assert.deepEqual([late.status, late.body], [401, { state: 'expired' }]);
});

test('inviting who has completed is 400 with the field', async () => {
  const a = await testAppliance();
  const { user } = await makeUser(a);
  const invite = (fields: object) => a.call('POST', '/auth/user/invite', { ...ada, ...fields });
  const byName = await invite({ username: user.username.toUpperCase() });
  assert.deepEqual([byName.status, Object.keys(byName.body.errors)], [400, ['username']]);
  const byAddress = await invite({ email: user.email.toUpperCase() });
  assert.deepEqual([byAddress.status, Object.keys(byAddress.body.errors)], [400, ['email']]);
});

test('of twenty completing one invite exactly one wins', async () => {
  const a = await testAppliance();
  const token = await inviteToken(a, ada);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      a.call('POST', '/auth/user/invite-complete', { token, password: `${goodPassword}${index}` }, nobody),
    ),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(19).fill(401)]);
  const winner = answers.findIndex(({ status }) => status === 200);
  assert.equal((await loginOf(a, 'ada', `${goodPassword}${winner}`)).status, 200);
});

test('wrong name, wrong password and an open invite get one answer, each after one check', async () => {
  const asked: string[] = [];
  const verify = (stored: string, password: string) => {
    asked.push(stored);
    return pretendHasher.verify(stored, password);
  };
  const a = await testAppliance({ people: { hasher: { ...pretendHasher, verify } } });
  const { user } = await makeUser(a);
  await inviteToken(a, ada);
  const answers = new Set<string>();
  for (const name of [user.username, 'nobody', 'ada', user.email]) {
    const { status, text, headers } = await loginOf(a, name, 'wrong');
    answers.add(`${status} ${text} ${[...headers]}`);
  }
  assert.equal(answers.size, 1, [...answers].join('\n'));
  assert.equal(asked.length, 4);
});

test('after five failures tries wait, twice as long each time; a success ends it', async () => {
  const a = await testAppliance();
  const { user, password } = await makeUser(a);
  const wrong = () => loginOf(a, user.username, 'wrong');
  for (let i = 0; i < 5; i++) assert.equal((await wrong()).status, 400);
  for (const seconds of [1, 2, 4]) {
    const waiting = await loginOf(a, user.username.toUpperCase(), password);
    assert.deepEqual([waiting.status, Object.keys(waiting.body)], [429, ['message']]);
    assert.equal(waiting.headers.get('retry-after'), String(seconds));
    a.advance(seconds * 1_000);
    assert.equal((await wrong()).status, 400);
  }
  assert.equal((await loginOf(a, user.username, password, '192.0.2.2')).status, 200, 'from elsewhere');
  a.advance(8_000);
  assert.equal((await loginOf(a, user.username, password)).status, 200);
  for (let i = 0; i < 5; i++) assert.equal((await wrong()).status, 400);
  assert.equal((await wrong()).status, 429);
});

test('tries under all names of one user are counted together, and nothing tells that these are one user’s', async () => {
  const a = await testAppliance();
  const { user, password } = (await a.call('POST', '/auth/users', ada)).body;
  const names = [user.username, user.email];
  for (const name of ['ada', 'ADA@example.org', 'Ada', 'ada@example.org', 'ada']) {
    assert.equal((await loginOf(a, name, 'wrong')).status, 400);
  }
  const wrong = (await loginOf(a, 'nobody', 'wrong', '192.0.2.9')).text;
  for (const name of names) {
    const { status, text } = await loginOf(a, name, password);
    assert.deepEqual([status, text], [400, wrong], 'the right password is not looked at');
  }
  assert.equal((await loginOf(a, user.email, password, '192.0.2.2')).status, 200, 'from elsewhere');
  a.advance(1_000);
  const { status, body } = await loginOf(a, user.email, password);
  assert.equal(status, 200);
  // A logged-in user gets a precise answer: the account is their own.
  for (let i = 0; i < 5; i++) await loginOf(a, names[i % 2] ?? '', 'wrong');
  const change = { currentPassword: password, newPassword: goodPassword };
  const session = { key: body.accessToken, env: { remoteAddress: '192.0.2.1' } };
  assert.equal((await a.call('POST', '/auth/user/password', change, session)).status, 429);

  const told = async (of: readonly string[]) => {
    const b = await testAppliance();
    await b.call('POST', '/auth/users', ada);
    const answers: unknown[] = [];
    for (let i = 0; i < 60; i++) {
      if (i % 20 === 19) b.advance(4_000);
      const { status, text, headers } = await loginOf(b, of[(i * 7) % of.length] ?? '', 'wrong');
      answers.push([status, text, headers.get('retry-after')]);
    }
    return answers;
  };
  assert.deepEqual(await told(['ada', 'ada@example.org']), await told(['ada', 'eve@example.org']));
});

test('unknown names wait like known ones, and input that is none counts for nothing', async () => {
  const a = await testAppliance();
  for (let i = 0; i < 20; i++) {
    assert.equal((await a.call('POST', '/auth/basic/login', { username: 'ghost' }, nobody)).status, 400);
  }
  const statuses: number[] = [];
  for (let i = 0; i < 7; i++) statuses.push((await loginOf(a, 'ghost', 'wrong')).status);
  assert.deepEqual(statuses, [400, 400, 400, 400, 400, 429, 429]);
});

test('an address that waits is told so before anything of its request is read', async () => {
  const a = await testAppliance({ people: { hasher: pretendHasher } });
  for (let n = 0; n < 50; n++) assert.equal((await loginOf(a, `made-up-${n}`, 'wrong', '2001:db8::1')).status, 400);
  const half = { key: null, raw: '{"username":', env: { remoteAddress: '2001:db8::2' } };
  const waiting = await a.call('POST', '/auth/basic/login', undefined, half);
  assert.deepEqual([waiting.status, waiting.headers.get('retry-after')], [429, '1']);
  const elsewhere = { ...half, env: { remoteAddress: '2001:db9::1' } };
  assert.equal((await a.call('POST', '/auth/basic/login', undefined, elsewhere)).status, 400);
  for (let n = 0; n < 300; n++) assert.equal((await loginOf(a, `another-${n}`, 'wrong', '2001:db8::1')).status, 429);
  assert.equal((await a.call('POST', '/auth/basic/login', undefined, half)).headers.get('retry-after'), '1');
});

test('a thousand tries at once are five tries; fifty right logins at once are fifty sessions', async () => {
  const a = await testAppliance();
  const { user, password } = await makeUser(a);
  const right = await Promise.all(Array.from({ length: 50 }, () => loginOf(a, user.username, password)));
  assert.ok(right.every(({ status }) => status === 200));
  assert.equal(new Set(right.map(({ body }) => body.accessToken)).size, 50);
  const wrong = await Promise.all(Array.from({ length: 1_000 }, (_, i) => loginOf(a, user.username, `wrong${i}`)));
  assert.equal(wrong.filter(({ status }) => status === 400).length, 5);
  assert.equal(wrong.filter(({ status }) => status === 429).length, 995);
});

test('login by address where said', async () => {
  const a = await testAppliance();
  const { user, password } = await makeUser(a);
  const login = (username: string) => a.call('POST', '/auth/basic/login?email=true', { username, password }, nobody);
  assert.equal((await login(user.email.toUpperCase())).body.user.id, user.id);
  assert.equal((await login(user.username)).status, 400);
});

test('a refresh gives a new token, ends the old one at once, and is recorded', async () => {
  const a = await testAppliance();
  const { user, accessToken: old } = await logIn(a);
  const refresh = (key: string) => a.call('GET', '/auth/basic/refresh', undefined, { key });
  const fresh = await refresh(old);
  assert.deepEqual([fresh.status, Object.keys(fresh.body).sort()], [200, ['accessToken', 'user']]);
  assert.deepEqual(fresh.body.user, user);
  assert.equal((await refresh(old)).status, 401);
  assert.deepEqual(
    (await a.activity())
      .slice(0, 2)
      .map(({ keyid, action, validAction, status }) => [keyid, action, validAction, status]),
    [
      [user.id, 'session.refresh', false, 401],
      [user.id, 'session.refresh', true, 200],
    ],
  );
  const both = await Promise.all([refresh(fresh.body.accessToken), refresh(fresh.body.accessToken)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401]);
});

test('no chain of refreshes outlives twelve hours; lifetimes are options', async () => {
  const a = await testAppliance({ people: { lifetimes: { access: hour, session: 3 * hour } } });
  let { accessToken: key } = await logIn(a);
  let refreshes = 0;
  for (;;) {
    a.advance(hour * 0.9);
    const { status, body } = await a.call('GET', '/auth/basic/refresh', undefined, { key });
    if (status !== 200) break;
    key = body.accessToken;
    refreshes++;
  }
  assert.equal(refreshes, 3, 'at 0:54, 1:48 and 2:42');
});

test('with an API key, refresh and logout are 400', async () => {
  const a = await testAppliance();
  for (const options of [{}, { key: null, env: { local: true } }]) {
    assert.equal((await a.call('GET', '/auth/basic/refresh', undefined, options)).status, 400);
    assert.equal((await a.call('POST', '/auth/basic/logout', undefined, options)).status, 400);
  }
  const [last] = await a.activity();
  assert.deepEqual([last?.action, last?.validAction, last?.status], ['session.end', true, 400]);
});

test('a reset by mail sets the password, works once and ends every session', async () => {
  const { a, mails, mail } = await withMail();
  const { user, accessToken } = await logIn(a);
  const start = (email: string) => a.call('POST', '/auth/basic/reset-password-start', { email }, nobody);
  const known = await start(user.email.toUpperCase());
  assert.deepEqual([known.status, Object.keys(known.body)], [200, ['message']]);
  const { to, text } = await mail(1);
  assert.equal(to, user.email);
  assert.match(linkIn(text), /^http:\/\/kms\.test\/console\/reset\?token=/);
  const token = tokenIn(linkIn(text));

  const complete = async (body: object) => {
    const answer = await a.call('POST', '/auth/basic/reset-password-complete', body, nobody);
    assert.deepEqual(answer.body, {});
    return answer.status;
  };
  assert.equal(await complete({ token, password: 'short' }), 400);
  assert.equal(await complete({ token: `${token}x`, password: goodPassword }), 400);
  assert.equal(await complete({ token }), 400);
  assert.equal(await complete({ token, password: goodPassword }), 200);
  assert.equal(await complete({ token, password: goodPassword }), 400);
  assert.equal((await loginOf(a, user.username, goodPassword)).status, 200);
  const old = await a.call('GET', `/auth/users/${user.username}`, undefined, { key: accessToken });
  assert.equal(old.status, 401);

  const unknown = await start('nobody@example.org');
  assert.deepEqual([unknown.status, unknown.text], [known.status, known.text]);
  assert.equal(mails.length, 1);
});

test('without mail everybody is told who can help, and the operator makes the link', async () => {
  const { a: mailing } = await withMail();
  const a = await testAppliance();
  const { user } = await makeUser(a);
  const start = async (on: Appliance, email: string) =>
    (await on.call('POST', '/auth/basic/reset-password-start', { email }, nobody)).body;
  for (const email of [user.email, 'nobody@example.org']) {
    assert.deepEqual(await start(a, email), {
      message: 'no mail goes out from here: ask an administrator, who makes a link with `kms user reset-link`',
    });
    assert.deepEqual(await start(mailing, email), {
      message: 'if there is such a user, a link to reset the password is on its way',
    });
  }
  const local = (body: object) => a.call('POST', '/local/reset-link', body, { key: null, env: { local: true } });
  const link = await local({ username: user.email, email: true });
  assert.deepEqual([link.status, link.body.username], [200, user.username]);
  const [last] = await a.activity();
  assert.deepEqual([last?.keyid, last?.action, last?.status], ['local', 'user.update', 200]);
  const token = await resetToken(a, user.username);
  const complete = (text: string) =>
    a.call('POST', '/auth/basic/reset-password-complete', { token: text, password: goodPassword }, nobody);
  assert.equal((await complete(tokenIn(link.body.resetUrl))).status, 400, 'the link after replaced it');
  a.advance(hour);
  assert.equal((await complete(token)).status, 400, 'an hour is over');
  assert.equal((await local({ username: 'nobody' })).status, 404);
  assert.equal((await local({})).status, 400);
  assert.equal((await a.call('POST', '/local/reset-link', { username: user.username })).status, 404, 'not from afar');
});

test('one user gets five reset mails an hour at most', async () => {
  const { a, mails, mail } = await withMail();
  const { user } = await makeUser(a);
  for (let i = 0; i < 8; i++) {
    await a.call('POST', '/auth/basic/reset-password-start', { email: user.email }, nobody);
  }
  const other = await makeUser(a);
  await a.call('POST', '/auth/basic/reset-password-start', { email: other.user.email }, nobody);
  await mail(6);
  assert.deepEqual(mails.filter(({ to }) => to === user.email).length, 5);
});

test('a mail that cannot be sent changes no answer and tells no secret', async () => {
  const send = async () => {
    throw new Error('the mail server is gone');
  };
  const a = await testAppliance({ people: { mailer: { send } } });
  const { loginUrl } = (await a.call('POST', '/auth/user/invite', ada)).body;
  while (!a.log.some((line) => line.includes('the mail server is gone'))) await new Promise(setImmediate);
  assert.ok(!a.log.join('\n').includes(tokenIn(loginUrl)));
});

test('no password and no token is in the log or the activity', async () => {
  const { a, mail } = await withMail();
  const { user, password } = await makeUser(a);
  const { accessToken } = (await loginOf(a, user.username, password)).body;
  const { accessToken: fresh } = (await a.call('GET', '/auth/basic/refresh', undefined, { key: accessToken })).body;
  await loginOf(a, user.username, 'Wrong-horse-7');
  const invite = await inviteToken(a, ada);
  await a.call('GET', `/auth/user/invite-validate?token=${invite}`, undefined, nobody);
  await a.call('POST', '/auth/user/invite-complete', { token: invite, password: goodPassword }, nobody);
  await a.call('POST', '/auth/basic/reset-password-start', { email: user.email }, nobody);
  const reset = tokenIn(linkIn((await mail(2)).text));
  await a.call('POST', '/auth/basic/reset-password-complete', { token: reset, password: 'Other-horse-7' }, nobody);
  await a.call('POST', '/auth/basic/logout', undefined, { key: fresh });
  const told = a.log.join('\n') + JSON.stringify(await a.activity());
  const secrets = [password, accessToken, fresh, invite, reset, goodPassword, 'Wrong-horse-7', 'Other-horse-7'];
  for (const secret of secrets) assert.ok(!told.includes(secret), secret);
});

test('with real hashes, from the generated password to the reset one', async () => {
  const hasher: PasswordHasher = {
    hash: async (password) => hashPassword(password, systemRandom(passwordSaltLength)),
    verify: async (stored, password) => verifyPassword(stored, password),
  };
  const a = await testAppliance({ people: { hasher } });
  const { user, password } = await makeUser(a);
  assert.equal((await loginOf(a, user.username, password)).status, 200);
  assert.equal((await loginOf(a, user.username, `${password}x`)).status, 400);
  const token = await resetToken(a, user.username);
  await a.call('POST', '/auth/basic/reset-password-complete', { token, password: goodPassword }, nobody);
  assert.equal((await loginOf(a, user.username, password)).status, 400);
  assert.equal((await loginOf(a, user.username, goodPassword)).status, 200);
});
