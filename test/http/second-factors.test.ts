// Second factors over HTTP: apps that show codes, passkeys, recovery codes, and the policy that requires one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { Authenticator, appCode, type Claims } from '../support/authenticator.ts';
import { pretendHasher } from '../support/pretend-hasher.ts';
import { addPasskey, addTotp, goodPassword, type Person, pageOrigin, person } from './samples.ts';

const step = 30_000;
const factorPath = '/auth/user/second-factors';
const atPage = { origin: pageOrigin };

function logIn(a: Appliance, { user, password }: Person, more: object = {}, remoteAddress = '192.0.2.1') {
  const body = { username: user.username, password, ...more };
  return a.call('POST', '/auth/basic/login', body, { key: null, env: { remoteAddress } });
}

function post(a: Appliance, { key }: { readonly key: string }, path: string, body: object): Promise<Answer> {
  return a.call('POST', path, body, { key });
}

async function factorsOf(a: Appliance, { key }: Person): Promise<AnyJson> {
  const { status, body } = await a.call('GET', factorPath, undefined, { key });
  assert.equal(status, 200);
  return body;
}

const isRefused = ({ status, body }: Answer, message: string): void => {
  assert.deepEqual([status, body.message], [400, message]);
};

test('an app is added by a code that it shows, and from then on a login needs one', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  assert.equal((await logIn(a, ada, { code: '000000' })).status, 200, 'who has none is asked for none');
  const begun = await post(a, ada, `${factorPath}/totp`, { currentPassword: ada.password, name: 'my phone' });
  assert.deepEqual([begun.status, Object.keys(begun.body).sort()], [200, ['id', 'secret', 'uri']]);
  const { id, secret, uri } = begun.body;
  assert.equal(uri, `otpauth://totp/kms.test:${ada.user.username}?secret=${secret}&issuer=kms.test`);
  assert.deepEqual(await factorsOf(a, ada), { secondFactors: [], recoveryCodes: 0, needed: false });
  assert.equal((await logIn(a, ada)).status, 200, 'nothing counts yet');

  const finish = (code: string) => post(a, ada, `${factorPath}/totp/finish`, { id, code });
  const wrong = await finish('12345');
  assert.deepEqual([wrong.status, wrong.body.errors], [400, { code: 'is not the one that the app shows now' }]);
  const code = appCode(secret, a.world.now());
  const done = await finish(`${code.slice(0, 3)} ${code.slice(3)}`);
  assert.equal(done.status, 200, done.text);
  const { secondFactor, recoveryCodes } = done.body;
  const createdAt = new Date(a.world.now()).toISOString();
  assert.deepEqual(secondFactor, { id, kind: 'totp', name: 'my phone', createdAt, lastUsedAt: a.world.now() });
  assert.equal(new Set(recoveryCodes).size, 10);
  for (const each of recoveryCodes) assert.match(each, /^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){3}$/);
  assert.deepEqual(await factorsOf(a, ada), { secondFactors: [secondFactor], recoveryCodes: 10, needed: false });
  assert.equal((await finish(code)).status, 404, 'it is confirmed');

  const alone = await logIn(a, ada);
  assert.equal(alone.status, 400);
  assert.deepEqual(alone.body, { message: 'a second factor is needed', secondFactor: ['totp', 'recovery-code'] });
  const used = await logIn(a, ada, { code });
  assert.deepEqual([used.status, used.body.secondFactor], [400, ['totp', 'recovery-code']]);
  assert.equal(used.body.message, 'the second factor is wrong, or was used before');
  a.advance(step);
  const good = await logIn(a, ada, { code: appCode(secret, a.world.now()) });
  assert.deepEqual([good.status, Object.keys(good.body).sort()], [200, ['accessToken', 'user']]);
  assert.deepEqual((await factorsOf(a, ada)).secondFactors[0].lastUsedAt, a.world.now());
});

test('the first second factor ends the sessions that were opened without, and no later one does', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const login = async (more: object = {}) => (await logIn(a, ada, more)).body.accessToken;
  const thief = await login();
  const isOpen = async (key: string) => (await a.call('GET', '/auth/user/sessions', undefined, { key })).status === 200;
  const refreshed = (await a.call('GET', '/auth/basic/refresh', undefined, { key: await login() })).body.accessToken;
  assert.ok((await isOpen(thief)) && (await isOpen(refreshed)));
  const { secret, secondFactor } = await addTotp(a, ada);
  assert.deepEqual([await isOpen(thief), await isOpen(refreshed), await isOpen(ada.key)], [false, false, true]);
  const proof = { currentPassword: ada.password };
  assert.equal((await post(a, { key: thief }, `${factorPath}/remove`, { ...proof, id: secondFactor.id })).status, 401);
  a.advance(step);
  const other = await login({ code: appCode(secret, a.world.now()) });
  await addPasskey(a, ada, new Authenticator());
  assert.ok((await isOpen(other)) && (await isOpen(ada.key)));
});

test('a code works once, a step early or late, and never before one that was used', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const { secret } = await addTotp(a, ada);
  a.advance(10 * step);
  const now = a.world.now();
  const at = (steps: number) => appCode(secret, now + steps * step);
  const status = async (code: string) => (await logIn(a, ada, { code })).status;
  assert.equal(await status(at(-2)), 400);
  assert.equal(await status(at(2)), 400);
  assert.equal(await status(at(-1)), 200);
  assert.equal(await status(at(-1)), 400, 'again');
  assert.equal(await status(at(1)), 200, 'the app is ahead');
  a.advance(15 * 60_000);
  a.advance(-15 * 60_000);
  assert.equal(await status(at(0)), 400, 'before the one that was used');
  assert.equal(await status(at(1)), 400, 'again');
  a.advance(2 * step);
  const both = await Promise.all([status(at(2)), status(at(2))]);
  assert.deepEqual(both.sort(), [200, 400], 'of two at once one wins');
});

test('a recovery code works once, however it is typed; new ones end the old ones', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const { recoveryCodes, secret } = await addTotp(a, ada);
  const [first, second] = recoveryCodes;
  const typed = first.toUpperCase().replaceAll('-', ' ').replaceAll('0', 'O');
  assert.equal((await logIn(a, ada, { code: typed })).status, 200);
  assert.equal((await factorsOf(a, ada)).recoveryCodes, 9);
  assert.equal((await logIn(a, ada, { code: first })).status, 400, 'again');
  a.advance(step);
  const code = appCode(secret, a.world.now());
  const renewed = await post(a, ada, '/auth/user/recovery-codes', { code });
  assert.equal(renewed.status, 200, renewed.text);
  assert.equal(renewed.body.recoveryCodes.length, 10);
  assert.equal((await logIn(a, ada, { code: second })).status, 400, 'of the old ones');
  assert.equal((await logIn(a, ada, { code: renewed.body.recoveryCodes[9] })).status, 200);
  assert.equal((await factorsOf(a, ada)).recoveryCodes, 9);
  // Another user's codes are refused.
  const bob = await person(a);
  await addTotp(a, bob);
  assert.equal((await logIn(a, bob, { code: renewed.body.recoveryCodes[0] })).status, 400);
});

test('without the right password nothing tells whether there is a second factor', async () => {
  const asked: string[] = [];
  const verify = (stored: string, password: string) => {
    asked.push(stored);
    return pretendHasher.verify(stored, password);
  };
  const a = await testAppliance({ people: { hasher: { ...pretendHasher, verify } } });
  const [ada, bob] = [await person(a), await person(a)];
  const { recoveryCodes } = await addTotp(a, ada);
  asked.length = 0;
  const answers = new Set<string>();
  for (const each of [ada, bob, { ...ada, user: { username: 'nobody' } }]) {
    for (const more of [{}, { code: '123456' }, { code: recoveryCodes[0] }]) {
      const { status, text, headers } = await logIn(a, { ...each, password: 'wrong' }, more);
      answers.add(`${status} ${text} ${[...headers]}`);
    }
  }
  assert.equal(answers.size, 1, [...answers].join('\n'));
  assert.match([...answers][0] ?? '', /wrong user name or password/);
  assert.equal(asked.length, 9, 'one check of a password each');
  assert.equal((await factorsOf(a, ada)).recoveryCodes, 10);
});

test('wrong codes are slowed down as wrong passwords are, and a right password forgives none of them', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const { secret, recoveryCodes } = await addTotp(a, ada);
  a.advance(step);
  for (let i = 0; i < 5; i++) {
    assert.equal((await logIn(a, ada)).status, 400, 'the password alone counts for nothing');
    assert.equal((await logIn(a, ada, { code: i % 2 === 0 ? '000000' : 'zzzz-zzzz-zzzz-zzzz' })).status, 400);
  }
  const right = { code: appCode(secret, a.world.now()) };
  const waiting = await logIn(a, ada, right);
  assert.deepEqual([waiting.status, waiting.headers.get('retry-after')], [429, '1']);
  assert.equal((await logIn(a, ada, {}, '192.0.2.2')).status, 400, 'from elsewhere');
  a.advance(1_000);
  assert.equal((await logIn(a, ada, { code: '000000' })).status, 400);
  assert.equal((await logIn(a, ada, right)).headers.get('retry-after'), '2');
  a.advance(2_000);
  assert.equal((await logIn(a, ada, right)).status, 200);
  // Attempts within a session count too: for one name from one address.
  const prove = (body: object) =>
    a.call('POST', '/auth/user/recovery-codes', body, { key: ada.key, env: { remoteAddress: '192.0.2.1' } });
  for (let i = 0; i < 5; i++) isRefused(await prove({ code: '000000' }), 'the current password or the code is wrong');
  assert.equal((await prove({ currentPassword: ada.password })).status, 429);
  assert.equal((await logIn(a, ada, { code: recoveryCodes[0] })).status, 429);
});

test('what changes second factors takes the password or a code, and an access token', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const { secondFactor, secret } = await addTotp(a, ada);
  a.advance(step);
  const { id } = secondFactor;
  const calls: readonly (readonly [string, object])[] = [
    [`${factorPath}/totp`, {}],
    [`${factorPath}/passkey`, {}],
    [`${factorPath}/remove`, { id }],
    ['/auth/user/recovery-codes', {}],
  ];
  for (const [index, [path, body]] of calls.entries()) {
    // Each from an address of its own, so that no one waits for the failures of the others.
    const env = { remoteAddress: `192.0.2.${index}` };
    const ask = (given: object) => a.call('POST', path, { ...body, ...given }, { key: ada.key, env });
    const { status, body: unsaid } = await ask({});
    assert.deepEqual([status, unsaid.errors], [400, { currentPassword: 'is required, or a code in its place' }]);
    isRefused(await ask({ currentPassword: 'wrong' }), 'the current password or the code is wrong');
    const [last] = await a.activity();
    assert.deepEqual([last?.keyid, last?.validAction, last?.status], [ada.user.id, false, 400]);
    isRefused(await ask({ code: '00000' }), 'the current password or the code is wrong');
    for (const options of [{}, { key: null, env: { local: true } }]) {
      isRefused(
        await a.call('POST', path, { ...body, currentPassword: 'x' }, options),
        'expected an access token, not an API key',
      );
    }
  }
  assert.deepEqual((await factorsOf(a, ada)).secondFactors.length, 1, 'nothing was changed');
  for (const { status } of [
    await a.call('GET', factorPath),
    await a.call('POST', `${factorPath}/totp/finish`, { id, code: '123456' }),
    await a.call('POST', `${factorPath}/passkey/finish`, {
      credential: new Authenticator().create({ rp: { id: 'kms.test' }, user: { id: 'x' }, challenge: 'x' }),
    }),
  ]) {
    assert.equal(status, 400);
  }
  const removed = await post(a, ada, `${factorPath}/remove`, { id, code: appCode(secret, a.world.now()) });
  assert.deepEqual([removed.status, removed.body], [200, {}]);
  assert.deepEqual(await factorsOf(a, ada), { secondFactors: [], recoveryCodes: 0, needed: false });
  assert.equal((await logIn(a, ada)).status, 200);
  const again = { id, currentPassword: ada.password };
  assert.equal((await post(a, ada, `${factorPath}/remove`, again)).status, 404);
  isRefused(
    await post(a, ada, '/auth/user/recovery-codes', { currentPassword: ada.password }),
    'there is no second factor for them to stand in for',
  );
});

test('an app that nobody confirmed in time, or that another took the place of, counts for nothing', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const begin = async () =>
    (await post(a, ada, `${factorPath}/totp`, { currentPassword: ada.password })).body as AnyJson;
  const finish = async ({ id, secret }: AnyJson, by = ada) =>
    (await post(a, by, `${factorPath}/totp/finish`, { id, code: appCode(secret, a.world.now()) })).status;
  const late = await begin();
  a.advance(600_000);
  assert.equal(await finish(late), 404);
  const replaced = await begin();
  const last = await begin();
  assert.equal(await finish(replaced), 404);
  assert.equal(await finish(last, await person(a)), 404, 'of somebody else');
  assert.equal(await finish(last), 200);
});

test('the secret of an app, recovery codes and what passkeys send are told once, and are in no log', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const { secret, recoveryCodes } = await addTotp(a, ada);
  const authenticator = new Authenticator();
  await addPasskey(a, ada, authenticator);
  a.advance(step);
  const code = appCode(secret, a.world.now());
  await logIn(a, ada, { code });
  await logIn(a, ada, { code: recoveryCodes[0] });
  const { passkeyOptions } = (await logIn(a, ada)).body;
  const passkey = authenticator.get(passkeyOptions, atPage);
  assert.equal((await logIn(a, ada, { passkey })).status, 200);
  const listed = JSON.stringify(await factorsOf(a, ada));
  const told = a.log.join('\n') + JSON.stringify(await a.activity()) + listed;
  for (const text of [secret, code, ...recoveryCodes, passkey.response.signature, authenticator.credentialId]) {
    assert.ok(!told.includes(text), text);
  }
});

test('a passkey is made, and is the second factor after a password', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const begun = await post(a, ada, `${factorPath}/passkey`, { currentPassword: ada.password });
  assert.equal(begun.status, 200, begun.text);
  const { rp, user, challenge, excludeCredentials, attestation } = begun.body;
  assert.deepEqual([rp.id, user.name, excludeCredentials, attestation], ['kms.test', ada.user.username, [], 'none']);
  assert.equal(Buffer.from(user.id, 'base64url').toString(), ada.user.id);
  const authenticator = new Authenticator();
  const credential = authenticator.create(begun.body, atPage);
  const done = await post(a, ada, `${factorPath}/passkey/finish`, { credential, name: 'laptop' });
  assert.deepEqual(
    [done.status, done.body.secondFactor?.kind, done.body.secondFactor?.name],
    [200, 'passkey', 'laptop'],
  );
  assert.equal(done.body.recoveryCodes.length, 10);
  isRefused(await post(a, ada, `${factorPath}/passkey/finish`, { credential }), 'the passkey was not accepted');

  const asked = await logIn(a, ada);
  assert.deepEqual([asked.status, asked.body.secondFactor], [400, ['passkey', 'recovery-code']]);
  const { passkeyOptions } = asked.body;
  assert.notEqual(passkeyOptions.challenge, challenge);
  assert.deepEqual(passkeyOptions.allowCredentials, [
    { id: authenticator.credentialId, type: 'public-key', transports: ['internal'] },
  ]);
  assert.equal(passkeyOptions.rpId, 'kms.test');
  const passkey = authenticator.get(passkeyOptions, atPage);
  assert.equal(
    (await logIn(a, { ...ada, password: 'wrong' }, { passkey })).body.message,
    'wrong user name or password',
  );
  assert.equal((await logIn(a, ada, { passkey })).status, 200);
  isRefused(await logIn(a, ada, { passkey }), 'the second factor is wrong, or was used before');
  const another = await post(a, ada, `${factorPath}/passkey`, { currentPassword: ada.password });
  assert.equal(another.body.excludeCredentials[0].id, authenticator.credentialId);
});

/** The fault in each answer of an authenticator. */
const bad: readonly (readonly [string, Claims])[] = [
  ['the page of somebody else', { origin: 'https://kms.test.example.org' }],
  ['another port', { origin: 'http://kms.test:8443' }],
  ['another host', { origin: pageOrigin, rpId: 'example.org' }],
  ['nobody there', { origin: pageOrigin, flags: 0 }],
  ['another kind of answer', { origin: pageOrigin, type: 'payment.get' }],
  ['no challenge', { origin: pageOrigin, challenge: '' }],
  ['a challenge of its own', { origin: pageOrigin, challenge: Buffer.alloc(40).toString('base64url') }],
];

test('a passkey is refused for what is not of this page, of this challenge, or not signed', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const authenticator = new Authenticator();
  const begin = () => post(a, ada, `${factorPath}/passkey`, { currentPassword: ada.password });
  const finish = (credential: object) => post(a, ada, `${factorPath}/passkey/finish`, { credential });
  for (const [name, claims] of bad) {
    const { body } = await begin();
    isRefused(await finish(authenticator.create(body, claims)), 'the passkey was not accepted');
    assert.deepEqual((await factorsOf(a, ada)).secondFactors, [], name);
  }
  const { body: options } = await begin();
  for (const attestationObject of ['AAAA', 'oA', 'o2NmbXRkbm9uZQ', 'gICAgICA', 'A'.repeat(16_000)]) {
    const made = authenticator.create(options, atPage);
    isRefused(
      await finish({ ...made, response: { ...made.response, attestationObject } }),
      'the passkey was not accepted',
    );
  }
  assert.equal((await finish(authenticator.create(options, atPage))).status, 200);

  const wrong = 'the second factor is wrong, or was used before';
  const ask = async () => (await logIn(a, ada)).body.passkeyOptions;
  const use = (passkey: object, remoteAddress: string) => logIn(a, ada, { passkey }, remoteAddress);
  let from = 0;
  for (const [, claims] of bad)
    isRefused(await use(authenticator.get(await ask(), claims), `192.0.2.${++from}`), wrong);
  const signed = authenticator.get(await ask(), atPage);
  const forged = authenticator.get(await ask(), atPage);
  const { signature } = forged.response;
  isRefused(await use({ ...signed, response: { ...signed.response, signature } }, '192.0.2.50'), wrong);
  isRefused(await use(new Authenticator().get(await ask(), atPage), '192.0.2.51'), wrong);
  const late = authenticator.get(await ask(), atPage);
  a.advance(300_000);
  isRefused(await use(late, '192.0.2.52'), wrong);
  const good = authenticator.get(await ask(), atPage);
  assert.equal((await use(good, '192.0.2.53')).status, 200);
  isRefused(await use(authenticator.get(await ask(), { ...atPage, counter: 1 }), '192.0.2.54'), wrong);
});

test('a challenge is good for one purpose and one user', async () => {
  const a = await testAppliance();
  const [ada, bob] = [await person(a), await person(a)];
  const [hers, his] = [new Authenticator(), new Authenticator()];
  await addPasskey(a, ada, hers);
  await addPasskey(a, bob, his);
  const forBob = (await logIn(a, bob)).body.passkeyOptions;
  const alone = (await a.call('POST', '/auth/passkey/options', undefined, { key: null })).body;
  const create = (await post(a, ada, `${factorPath}/passkey`, { currentPassword: ada.password })).body;
  for (const { challenge } of [forBob, alone, create]) {
    const passkey = hers.get({ rpId: 'kms.test', challenge }, atPage);
    isRefused(await logIn(a, ada, { passkey }), 'the second factor is wrong, or was used before');
  }
  for (const { challenge } of [forBob, create]) {
    const credential = his.get({ rpId: 'kms.test', challenge }, atPage);
    const answer = await a.call('POST', '/auth/passkey/login', { credential }, { key: null });
    isRefused(answer, 'the passkey was not accepted');
  }
});

test('a passkey alone logs in whose it is, where the authenticator saw to it that it is they', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const authenticator = new Authenticator();
  await addPasskey(a, ada, authenticator);
  const options = async () => (await a.call('POST', '/auth/passkey/options', undefined, { key: null })).body;
  const { allowCredentials, userVerification, rpId } = await options();
  assert.deepEqual([allowCredentials, userVerification, rpId], [[], 'required', 'kms.test']);
  const use = (credential: object) => a.call('POST', '/auth/passkey/login', { credential }, { key: null });
  isRefused(await use(authenticator.get(await options(), { ...atPage, flags: 1 })), 'the passkey was not accepted');
  isRefused(await use(new Authenticator().get(await options(), atPage)), 'the passkey was not accepted');
  const credential = authenticator.get(await options(), atPage);
  const done = await use(credential);
  assert.deepEqual([done.status, done.body.user.id], [200, ada.user.id]);
  assert.equal((await a.call('GET', factorPath, undefined, { key: done.body.accessToken })).status, 200);
  const again = await use(credential);
  isRefused(again, 'the passkey was not accepted');
  const [last, before] = (await a.activity()).filter(({ action }) => action === 'session.create');
  assert.deepEqual(
    [last?.keyid, last?.validAction, before?.keyid, before?.validAction],
    [ada.user.id, false, ada.user.id, true],
  );
  for (let i = 0; i < 5; i++) await use(authenticator.get(await options(), { ...atPage, flags: 1 }));
  assert.equal((await use(authenticator.get(await options(), atPage))).status, 429);
});

test('of two uses at once with one count, one is refused; and tries with passkeys make no name wait', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const authenticator = new Authenticator();
  await addPasskey(a, ada, authenticator);
  const options = async () => (await a.call('POST', '/auth/passkey/options', {}, { key: null })).body;
  const use = async (asked: AnyJson, counter: number) => {
    const credential = authenticator.get(asked, { origin: pageOrigin, counter });
    return (await a.call('POST', '/auth/passkey/login', { credential }, { key: null })).status;
  };
  const [one, other] = [await options(), await options()];
  assert.deepEqual((await Promise.all([use(one, 7), use(other, 7)])).sort(), [200, 400]);
  const response = authenticator.get(await options(), { origin: pageOrigin });
  const named = { ...response, id: ada.user.username, rawId: ada.user.username };
  const from = { key: null, env: { remoteAddress: '192.0.2.1' } };
  for (let i = 0; i < 6; i++) await a.call('POST', '/auth/passkey/login', { credential: named }, from);
  assert.deepEqual((await logIn(a, ada)).body.secondFactor, ['passkey', 'recovery-code']);
});

test('nothing that an authenticator sends is asked elsewhere about', async (t) => {
  const fetched = t.mock.method(globalThis, 'fetch', () => Promise.reject(new Error('no network')));
  const a = await testAppliance();
  const ada = await person(a);
  for (const fmt of ['packed', 'android-key', 'android-safetynet', 'apple', 'tpm', 'fido-u2f', 'x']) {
    const { body } = await post(a, ada, `${factorPath}/passkey`, { currentPassword: ada.password });
    const credential = new Authenticator().create(body, { ...atPage, fmt });
    assert.equal((await post(a, ada, `${factorPath}/passkey/finish`, { credential })).status, 200, fmt);
  }
  assert.equal(fetched.mock.callCount(), 0);
});

test('the page may be at any host of the tenant that has a name; passkeys are for that one', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const at = (host: string, origin: string) => ({ host, headers: { Origin: origin } });
  const begin = (where: object) =>
    a.call('POST', `${factorPath}/passkey`, { currentPassword: ada.password }, { key: ada.key, ...where });
  const elsewhere = at('keys.example.org:8443', 'https://keys.example.org:8443');
  const { body } = await begin(elsewhere);
  assert.equal(body.rp.id, 'keys.example.org');
  const authenticator = new Authenticator();
  const credential = authenticator.create(body, { origin: 'https://keys.example.org:8443' });
  const finish = (where: object) =>
    a.call('POST', `${factorPath}/passkey/finish`, { credential }, { key: ada.key, ...where });
  isRefused(await finish({}), 'the passkey was not accepted');
  assert.equal((await finish(elsewhere)).status, 200);
  // At another address the passkey can't be used.
  assert.deepEqual((await logIn(a, ada)).body.secondFactor, ['recovery-code']);
  for (const where of [at('keys.example.org', 'https://evil.example'), { host: 'keys.example.org' }, {}]) {
    assert.equal((await begin(where)).body.rp.id, 'kms.test', 'the address that the appliance has');
  }
  for (const host of ['127.0.0.1:8080', '[::1]:8080']) {
    isRefused(await begin(at(host, `http://${host}`)), 'passkeys need a page at a host name, not at an IP address');
  }
});

test('what is no address of a page is none, wherever it says that it is', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  for (const scheme of ['javascript', 'file', 'chrome-extension', 'ws', 'blob']) {
    const from = { headers: { Origin: `${scheme}://kms.test` } };
    const options = await a.call('POST', '/auth/passkey/options', {}, { key: null, ...from });
    assert.deepEqual([options.status, options.body.rpId], [200, 'kms.test'], scheme);
    const proof = { currentPassword: ada.password };
    const made = await a.call('POST', `${factorPath}/passkey`, proof, { key: ada.key, ...from });
    assert.deepEqual([made.status, made.body.rp.id], [200, 'kms.test'], scheme);
  }
});

test('twenty second factors are enough for one user', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  for (let i = 0; i < 20; i++) await addPasskey(a, ada, new Authenticator());
  for (const path of [`${factorPath}/totp`, `${factorPath}/passkey`]) {
    isRefused(
      await post(a, ada, path, { currentPassword: ada.password }),
      'there are 20 second factors already: remove one first',
    );
  }
});

const strict = { tenants: [{ name: 'default', hosts: ['*'], secondFactorFor: ['user.delete'] }] };
const enrolFirst =
  'you need a second factor here: add one first, under "Your account" in the console or at /auth/user/second-factors';

test('who needs a second factor and has none can do nothing but what concerns the login itself', async () => {
  const a = await testAppliance(strict);
  const reader = await person(a, { 'user.read': true });
  const [ada, boss] = [await person(a, { 'user.*': true }), await person(a, { '*': true })];
  const users = ({ key }: { key: string }) => a.call('GET', '/auth/users', undefined, { key });
  assert.equal((await users(reader)).status, 200, 'who has none of the flags needs none');
  for (const each of [ada, boss]) {
    const { status, body } = await users(each);
    assert.deepEqual([status, body], [403, { message: enrolFirst }]);
    const [last] = await a.activity();
    assert.deepEqual([last?.keyid, last?.action, last?.validAction], [each.user.id, 'user.read', false]);
    const own = `/auth/users/${each.user.username}`;
    assert.equal((await a.call('GET', own, undefined, { key: each.key })).status, 403);
    assert.equal((await a.call('PATCH', own, { flags: {} }, { key: each.key })).status, 403);
    assert.equal((await a.call('POST', '/auth/apikey', { accountId: a.accountId }, { key: each.key })).status, 403);
    assert.equal((await factorsOf(a, each)).needed, true);
  }
  // Operations on the login itself stay open: docs/threat-model.md says so.
  const change = { currentPassword: ada.password, newPassword: `${ada.password}2` };
  assert.equal((await post(a, ada, '/auth/user/password', change)).status, 200);
  const back = { currentPassword: change.newPassword, newPassword: ada.password };
  assert.equal((await post(a, ada, '/auth/user/password', back)).status, 200);
  assert.equal((await a.call('GET', '/auth/user/sessions', undefined, { key: ada.key })).status, 200);
  const { secondFactor } = await addTotp(a, ada);
  assert.equal((await users(ada)).status, 200, 'at once');
  assert.equal((await logIn(a, ada)).status, 400);
  isRefused(
    await post(a, ada, `${factorPath}/remove`, { id: secondFactor.id, currentPassword: ada.password }),
    'you need a second factor here: add another one first',
  );
  await addPasskey(a, ada, new Authenticator());
  const remove = { id: secondFactor.id, currentPassword: ada.password };
  assert.equal((await post(a, ada, `${factorPath}/remove`, remove)).status, 200);
  assert.equal((await factorsOf(a, ada)).recoveryCodes, 10, 'they stay with the last');

  const { accessToken } = (await a.call('GET', '/auth/basic/refresh', undefined, { key: boss.key })).body;
  assert.equal((await users({ key: accessToken })).status, 403);
  const { body: apikey } = await a.call('POST', '/auth/apikey', {
    accountId: a.accountId,
    flags: { 'user.read': true },
  });
  assert.equal((await users(apikey)).status, 200, 'API keys need none');
  // A user who gets such a flag needs one from then on.
  await a.call('PATCH', `/auth/users/${reader.user.username}`, { flags: { 'user.delete': true, 'user.read': true } });
  assert.equal((await users(reader)).status, 403);
});

test('a policy of a wildcard means whoever has any of it, and * who has that', async () => {
  const all = ['keyring.*.rotate', 'keyring.payroll.rotate', 'keyring.payroll.*', 'keyring.*.*', 'keyring.*', '*'];
  for (const [policy, needs, needsNot] of [
    ['keyring.*.rotate', all, ['keyring.payroll.read', 'keyring.create', 'asym.mail.rotate', 'keyring.*.read']],
    ['keyring.Payroll.*', [...all, 'KEYRING.payroll.read', 'keyring.*.read'], ['keyring.other.rotate', 'keyring.list']],
    ['user.*', ['user.read', 'user.*', '*'], ['account.read', 'keyring.user.read', 'apikey.create']],
    ['keyring.*', [...all, 'keyring.list', 'keyring.a.b.read'], ['asym.create', 'asym.*']],
    ['user.update', ['user.update', 'user.*', '*'], ['user.read']],
    ['*', ['*'], ['user.*', 'keyring.*', 'system.backup']],
  ] as const) {
    const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], secondFactorFor: [policy] }] });
    for (const flag of [...needs, ...needsNot]) {
      const each = await person(a, { [flag]: true });
      const isNeeded = needs.some((one) => one === flag);
      assert.equal((await factorsOf(a, each)).needed, isNeeded, `${policy}: ${flag}`);
    }
  }
});

test('the administrator at the machine resets what was lost; sessions end, and it is recorded', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  await addTotp(a, ada);
  await addPasskey(a, ada, new Authenticator());
  const local = (body: object) =>
    a.call('POST', '/local/reset-second-factor', body, { key: null, env: { local: true } });
  const done = await local({ username: ada.user.email, email: true });
  assert.deepEqual([done.status, done.body], [200, { username: ada.user.username, removed: 2 }]);
  const [last] = await a.activity();
  const { id, username } = ada.user;
  assert.deepEqual(
    [last?.keyid, last?.action, last?.props],
    [
      'local',
      'user.reset-second-factor',
      { object: { type: 'user', id, name: username }, changed: ['secondFactors', 'recoveryCodes'] },
    ],
  );
  assert.equal((await a.call('GET', factorPath, undefined, { key: ada.key })).status, 401);
  assert.equal((await logIn(a, ada)).status, 200);
  assert.equal((await local({ username: 'nobody' })).status, 404);
  assert.equal((await local({})).status, 400);
  const far = await a.call('POST', '/local/reset-second-factor', { username });
  assert.equal(far.status, 404, 'not from afar');
});

test('what is done with second factors is recorded, with what it was', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const { secondFactor: app, secret, recoveryCodes } = await addTotp(a, ada, 'phone');
  const { secondFactor: passkey } = await addPasskey(a, ada, new Authenticator());
  a.advance(step);
  await logIn(a, { ...ada, password: 'wrong' }, { code: appCode(secret, a.world.now()) });
  await logIn(a, ada);
  await logIn(a, ada, { code: '000000' });
  await logIn(a, ada, { code: appCode(secret, a.world.now()) });
  await logIn(a, ada, { code: recoveryCodes[0] });
  await post(a, ada, '/auth/user/recovery-codes', { currentPassword: ada.password });
  await post(a, ada, `${factorPath}/remove`, { id: app.id, currentPassword: ada.password });
  const thing = ({ id, name }: AnyJson) => ({ type: 'second-factor', id, name });
  const { id, username: name } = ada.user;
  const records = (await a.activity()).filter(({ keyid }) => keyid === id).reverse();
  assert.deepEqual(
    records.map(({ action, status, props }) => [action, status, props]),
    [
      ['session.create', 200, {}],
      ['user.begin-second-factor', 200, {}],
      ['user.add-second-factor', 200, { object: thing(app), changed: ['recoveryCodes'] }],
      ['user.begin-second-factor', 200, {}],
      ['user.add-second-factor', 200, { object: thing(passkey) }],
      ['session.create', 400, {}],
      ['session.create', 400, { secondFactor: 'missing' }],
      ['session.create', 400, { secondFactor: 'wrong' }],
      ['session.create', 200, { objects: [thing(app)] }],
      ['session.create', 200, { changed: ['recoveryCodes'] }],
      ['user.new-recovery-codes', 200, { object: { type: 'user', id, name }, changed: ['recoveryCodes'] }],
      ['user.remove-second-factor', 200, { object: thing(app) }],
    ],
  );
});

test('a deleted user leaves nothing behind; a new password changes no second factor', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  const authenticator = new Authenticator();
  await addPasskey(a, ada, authenticator);
  const { secret } = await addTotp(a, ada);
  const changed = { currentPassword: ada.password, newPassword: goodPassword };
  assert.equal((await post(a, ada, '/auth/user/password', changed)).status, 200);
  const now = { ...ada, password: goodPassword };
  assert.equal((await logIn(a, now)).status, 400);
  a.advance(step);
  assert.equal((await logIn(a, now, { code: appCode(secret, a.world.now()) })).status, 200);
  await a.call('DELETE', `/auth/users/${ada.user.username}`);
  const bob = await person(a);
  await addPasskey(a, bob, authenticator);
  assert.equal((await factorsOf(a, bob)).secondFactors.length, 1);
});
