// Logins by OpenID Connect, against a real provider on this machine.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oidcClient } from '../../src/appliance/oidc-client.ts';
import { type Answer, type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { Authenticator } from '../support/authenticator.ts';
import { startTime } from '../support/context.ts';
import { clientId, clientSecret, type TestProvider, testProvider, withClaims } from '../support/oidc-provider.ts';
import { addTotp, goodPassword, inviteToken, logIn, makeUser } from './samples.ts';

const local = { key: null, env: { local: true } };
const address = '192.0.2.1';
const nobody = { key: null, env: { remoteAddress: address } };
const json = { 'content-type': 'application/json' };
const redirectUris = ['http://kms.test/console/oidc'];
const people = {
  ada: {
    email: 'ada@example.org',
    email_verified: true,
    preferred_username: 'ada',
    given_name: 'Ada',
    family_name: 'Lovelace',
    groups: ['payroll', 'staff'],
  },
  eve: { email: 'ada@example.org', email_verified: false, preferred_username: 'eve', groups: [] },
  bob: { email: 'bob@example.org', email_verified: true, preferred_username: 'bob', groups: 'staff' },
};

interface Place extends AsyncDisposable {
  readonly a: Appliance;
  readonly p: TestProvider;
  /** Begins a login and completes it at the provider. */
  begin(subject?: string): Promise<Record<string, string>>;
  finish(body: object): Promise<Answer>;
  logIn(subject?: string): Promise<Answer>;
}

/** Sets up both. The client's clock is `skew` milliseconds away from the provider's. */
async function place(settings: object = {}, skew = () => 0): Promise<Place> {
  const p = await testProvider({ redirectUris, people });
  const a = await testAppliance({
    people: { oidc: oidcClient({ now: () => Date.now() + skew(), elapsed: () => Date.now() + skew() }) },
  });
  const set = { issuer: p.issuer, clientId, clientSecret, ...settings };
  assert.equal((await a.call('PUT', '/local/oidc', set, local)).status, 200);
  const begin = async (subject = 'ada') => {
    const { status, body } = await a.call('POST', '/auth/oidc/start', undefined, nobody);
    assert.equal(status, 200, JSON.stringify(body));
    return { ...Object.fromEntries(await p.logIn(body.url, subject)), binding: body.binding };
  };
  const finish = (body: object) => a.call('POST', '/auth/oidc/finish', body, nobody);
  return {
    a,
    p,
    begin,
    finish,
    logIn: async (subject) => finish(await begin(subject)),
    [Symbol.asyncDispose]: () => p[Symbol.asyncDispose](),
  };
}

const ada = { username: 'lovelace', email: 'ada@Example.org', firstName: 'Ada', lastName: 'Lovelace' };

test('a user is found by the verified address, logs in, and is known by the subject from then on', async () => {
  await using o = await place();
  const { a } = o;
  const { user } = (await a.call('POST', '/auth/users', { ...ada, flags: { 'user.read': true } })).body;
  const described = await a.call('GET', '/auth/oidc', undefined, nobody);
  assert.deepEqual([described.status, described.body], [200, { enabled: true, name: new URL(o.p.issuer).host }]);
  const start = await a.call('POST', '/auth/oidc/start', undefined, nobody);
  const url = new URL(start.body.url);
  assert.deepEqual(Object.keys(start.body).sort(), ['binding', 'url']);
  assert.equal(url.searchParams.get('code_challenge_method'), 'S256');
  assert.equal(url.searchParams.get('redirect_uri'), redirectUris[0]);
  const answer = await o.logIn();
  assert.deepEqual([answer.status, Object.keys(answer.body).sort()], [200, ['accessToken', 'user']]);
  assert.deepEqual([answer.body.user.id, answer.body.user.lastLoginAt], [user.id, startTime]);
  assert.equal((await a.call('GET', '/auth/users', undefined, { key: answer.body.accessToken })).status, 200);
  const [, record] = await a.activity();
  assert.deepEqual(
    [record?.action, record?.keyid, record?.validAction, record?.address, record?.props],
    ['session.create', user.id, true, address, { operation: 'oidc' }],
  );
  // A changed address does not lead to another user.
  assert.equal((await a.call('PATCH', '/auth/users/lovelace', { email: 'countess@example.org' })).status, 200);
  assert.equal((await o.logIn()).body.user.id, user.id);
  o.p.instead = (path) =>
    path === '/token' ? { status: 401, headers: json, body: '{"error":"invalid_client"}' } : undefined;
  assert.equal((await o.logIn()).status, 503);
  assert.ok(a.log.some((line) => line.includes('the identity provider cannot be used now')));
  const everything = JSON.stringify([await a.activity(), a.log]);
  for (const secret of [clientSecret, answer.body.accessToken]) assert.ok(!everything.includes(secret));
});

test('a password works beside it, and when the provider is down', async () => {
  await using o = await place();
  const { user, password } = await makeUser(o.a);
  await o.p[Symbol.asyncDispose]();
  const down = await o.a.call('POST', '/auth/oidc/start', undefined, nobody);
  assert.equal(down.status, 503);
  assert.match(down.body.message, /log in with a password/);
  const login = await o.a.call('POST', '/auth/basic/login', { username: user.username, password }, nobody);
  assert.equal(login.status, 200);
});

test('a login with the provider asks for no second factor, and one with a password still does', async () => {
  await using o = await place();
  const { user, password } = (await o.a.call('POST', '/auth/users', ada)).body;
  const login = () => o.a.call('POST', '/auth/basic/login', { username: user.username, password }, nobody);
  const { accessToken: key } = (await login()).body;
  await addTotp(o.a, { user, password, key });
  assert.deepEqual([(await login()).status, (await o.logIn()).status], [400, 200]);
});

test('a provider that goes down before the finish is 503, and nothing is stored', async () => {
  await using o = await place({ createUsers: true });
  const returned = await o.begin();
  await o.p[Symbol.asyncDispose]();
  const before = (await o.a.activity()).length;
  const answer = await o.finish(returned);
  assert.equal(answer.status, 503);
  assert.equal((await o.a.activity()).length, before);
  assert.equal((await o.a.call('GET', '/auth/users')).body.data.length, 0);
});

test('wrong, replayed, foreign and late states, and codes that do not go with them', async () => {
  await using o = await place({ createUsers: true });
  const refused = async (body: object, why: string) => {
    const { status, body: said } = await o.finish(body);
    assert.deepEqual([status, Object.keys(said)], [400, ['message']], why);
  };
  const first = await o.begin();
  await refused({ ...first, state: 'x'.repeat(43) }, 'another state');
  assert.equal((await o.finish(first)).status, 200);
  await refused(first, 'the whole again');
  const second = await o.begin();
  await refused({ ...second, code: first.code }, 'a code that was used');
  assert.equal((await o.finish(second)).status, 200, 'which uses nothing up');
  await refused({ ...(await o.begin()), state: second.state }, 'a state of another login');
  const third = await o.begin();
  await refused({ ...third, binding: second.binding }, 'begun in another browser');
  const [fourth, fifth] = [await o.begin(), await o.begin('bob')];
  await refused({ ...fourth, code: fifth.code }, 'a code of another login: neither verifier nor nonce fit');
  const sixth = await o.begin();
  await refused({ ...sixth, iss: 'https://elsewhere.example.org' }, 'another issuer says so');
  const seventh = await o.begin();
  o.a.advance(600_000);
  await refused(seventh, 'ten minutes later');
  const users = (await o.a.call('GET', '/auth/users')).body.data;
  assert.deepEqual(
    users.map((each: { username: string }) => each.username),
    ['ada'],
  );
});

test('however many logins others begin, one that was begun ends', async () => {
  await using o = await place({ createUsers: true });
  const begun = await o.begin();
  for (let n = 0; n < 300; n++) {
    assert.equal((await o.a.call('POST', '/auth/oidc/start', undefined, nobody)).status, 200);
  }
  const answers = await Promise.all(Array.from({ length: 5 }, () => o.finish(begun)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400, 400]);
});

test('every refused login is in the log with its reason, and with no code, token or claim', async () => {
  await using o = await place();
  const reasons: string[] = [];
  const told: string[] = [];
  const refuse = async (body: Record<string, string>) => {
    const { status } = await o.finish(body);
    assert.ok(status === 400 || status === 403, String(status));
    const line = JSON.parse(o.a.log.at(-1) ?? '{}');
    reasons.push(line.reason);
    told.push(body.code ?? '', body.state ?? '', body.binding ?? '');
  };
  const first = await o.begin();
  await refuse({ ...first, binding: 'another-binding' });
  await refuse({ ...first, code: 'another-code' });
  o.p.change = (path, body) => {
    if (path === '/token') told.push(String(body.id_token), String(body.access_token));
    return path === '/token' ? { ...body, id_token: o.p.signed(body.id_token, { nonce: 'x' }) } : body;
  };
  await refuse(await o.begin());
  o.p.change = undefined;
  await refuse(await o.begin('eve'));
  await refuse(await o.begin());
  assert.deepEqual(reasons, [
    'this login was not begun here, or is over: begin it again',
    'OAUTH_RESPONSE_BODY_ERROR: server responded with an error in the response body: invalid_grant',
    'OAUTH_JWT_CLAIM_COMPARISON_FAILED: unexpected ID Token "nonce" claim value',
    'the identity provider gives no verified e-mail address',
    'no user here belongs to this login: ask an administrator',
  ]);
  const log = o.a.log.join();
  for (const each of [...told, people.ada.email, clientSecret]) assert.ok(each !== '' && !log.includes(each), each);
});

test('why no user can be made is in the log too', async () => {
  await using o = await place({ createUsers: true });
  const reason = async (status: number) => {
    assert.equal((await o.logIn()).status, status);
    return JSON.parse(o.a.log.at(-1) ?? '{}').reason;
  };
  await o.a.call('POST', '/auth/users', { ...ada, username: 'ada', email: 'other@example.org' });
  assert.equal(await reason(400), 'username: is taken');
  const { preferred_username: name } = people.ada;
  people.ada.preferred_username = '..';
  try {
    assert.equal(await reason(400), 'username: expected a name');
  } finally {
    people.ada.preferred_username = name;
  }
});

test('a login that was begun in one tenant does not end in another, nor with other settings', async () => {
  await using o = await place({ createUsers: true });
  const begun = await o.begin();
  o.a.advance(1);
  const set = { issuer: o.p.issuer, clientId, clientSecret, createUsers: true };
  assert.equal((await o.a.call('PUT', '/local/oidc', set, local)).status, 200);
  assert.equal((await o.finish(begun)).status, 400);
  assert.equal((await o.logIn()).status, 200);
});

/** The ID token with other claims and the original signature. */
function tampered(token: unknown, claims: object): string {
  const [header, , signature] = String(token).split('.');
  return `${header}.${withClaims(token, claims)}.${signature}`;
}

const seconds = (): number => Math.floor(Date.now() / 1000);
/** Claims that are wrong even with a valid signature. */
const wrongClaims: readonly (readonly [string, object])[] = [
  ['another audience', { aud: 'somebody-else' }],
  ['several audiences, and no word who is meant', { aud: [clientId, 'somebody-else'] }],
  ['another issuer', { iss: 'https://elsewhere.example.org' }],
  ['another nonce', { nonce: 'another' }],
  ['no nonce', { nonce: undefined }],
  ['no end', { exp: undefined }],
  ['long expired', { exp: seconds() - 120 }],
  ['not good yet', { nbf: seconds() + 120 }],
  ['no subject', { sub: undefined }],
];
const changedTokens: readonly (readonly [string, object])[] = [
  ['another person', { sub: 'bob' }],
  ['an address that was not verified', { email: 'root@example.org', email_verified: true }],
  ['more groups', { groups: ['root'] }],
  ...wrongClaims,
];

test('an ID token that the provider signed opens nothing where it was not made for this login', async (t) => {
  await using o = await place({ createUsers: true });
  for (const [what, claims] of wrongClaims) {
    await t.test(what, async () => {
      o.p.change = (path, body) =>
        path === '/token' ? { ...body, id_token: o.p.signed(body.id_token, claims) } : body;
      assert.equal((await o.logIn()).status, 400);
      assert.equal((await o.a.call('GET', '/auth/users')).body.data.length, 0);
    });
  }
  o.p.change = (path, body) => (path === '/token' ? { ...body, id_token: o.p.signed(body.id_token, {}) } : body);
  assert.equal((await o.logIn()).status, 200, 'signed anew and not changed');
});

test('an ID token that was changed on the way opens nothing', async (t) => {
  await using o = await place({ createUsers: true });
  for (const [what, claims] of changedTokens) {
    await t.test(what, async () => {
      o.p.change = (path, body) => (path === '/token' ? { ...body, id_token: tampered(body.id_token, claims) } : body);
      const { status } = await o.logIn();
      assert.equal(status, 400);
      assert.equal((await o.a.call('GET', '/auth/users')).body.data.length, 0);
    });
  }
  await t.test('no signature at all', async () => {
    o.p.change = (path, body) => {
      if (path !== '/token') return body;
      const [, payload] = String(body.id_token).split('.');
      const header = Buffer.from('{"alg":"none"}').toString('base64url');
      return { ...body, id_token: `${header}.${payload}.` };
    };
    assert.ok([400, 503].includes((await o.logIn()).status));
    assert.equal((await o.a.call('GET', '/auth/users')).body.data.length, 0);
  });
  o.p.change = undefined;
  assert.equal((await o.logIn()).status, 200);
});

test('an ID token that is genuine and past its time is refused, but for a minute', async () => {
  let skew = 0;
  await using o = await place({ createUsers: true }, () => skew);
  // The provider's ID tokens live an hour.
  skew = 3600_000 + 90_000;
  assert.equal((await o.logIn()).status, 400);
  skew = 3600_000 + 30_000;
  assert.equal((await o.logIn()).status, 200);
});

test('an address that is not verified leads to nobody', async () => {
  await using o = await place({ createUsers: true });
  await o.a.call('POST', '/auth/users', ada);
  const { status, body } = await o.logIn('eve');
  assert.deepEqual([status, body.message], [403, 'the identity provider gives no verified e-mail address']);
});

/** Makes the provider sign these claims instead of its own. */
function claiming(o: Place, claims: object): void {
  o.p.change = (path, body) => (path === '/token' ? { ...body, id_token: o.p.signed(body.id_token, claims) } : body);
}

test('a user is found letter for letter, or not at all', async () => {
  const users = [
    { username: 'kate', email: 'kate@bücher.example', firstName: 'K', lastName: 'A' },
    { username: 'Zoë', email: 'Zoe@example.org', firstName: 'Z', lastName: 'O' },
  ];
  for (const createUsers of [false, true]) {
    for (const [userClaim, found, others] of [
      ['preferred_username', ['kate', 'Zoë'], ['KATE', 'Kate', '\u212aate', 'kate ', 'zoë', 'Zoe\u0308', 'ZOË']],
      [
        'email',
        [
          'kate@bücher.example',
          'kate@xn--bcher-kva.example',
          'kate@BÜCHER.example',
          'Zoe@EXAMPLE.org',
          'Zoe@example.org.',
        ],
        ['KATE@bücher.example', '\u212aate@bücher.example', 'zoe@example.org', 'Zoe@example.or', 'Zoe@example.org@x.y'],
      ],
    ] as const) {
      await using o = await place({ userClaim, createUsers });
      for (const user of users) assert.equal((await o.a.call('POST', '/auth/users', user)).status, 200);
      for (const text of others) {
        // Another address when the name is the claim, so that only the name is in the way of a new user.
        const claims = { email: 'new@example.org', preferred_username: 'new', email_verified: true, [userClaim]: text };
        claiming(o, claims);
        const { status, body } = await o.logIn();
        const known = users.some(({ username }) => username === body.user?.username);
        assert.ok(!known, `${userClaim} ${text}: ${status}`);
        if (!createUsers) assert.equal(status, 403, text);
        for (const each of ['new', text]) await o.a.call('DELETE', `/auth/users/${encodeURIComponent(each)}`);
        for (const user of users) await o.a.call('POST', '/auth/users', user);
      }
      for (const text of found) {
        claiming(o, { email_verified: true, [userClaim]: text });
        const { status, body } = await o.logIn();
        assert.equal(status, 200, `${userClaim} ${text}: ${JSON.stringify(body)}`);
        assert.ok(
          users.some(({ username }) => username === body.user.username),
          text,
        );
        for (const { username } of users) await o.a.call('POST', '/local/oidc/unlink', { username }, local);
      }
    }
  }
});

test('an address counts that the provider says it verified; one of which it says nothing where that is trusted', async () => {
  for (const trustEmail of [false, true]) {
    for (const [said, counts] of [
      [true, true],
      ['true', true],
      [undefined, trustEmail],
      [null, trustEmail],
      [false, false],
      ['false', false],
      ['TRUE', false],
      [1, false],
      ['', false],
      [[true], false],
    ] as const) {
      await using o = await place({ createUsers: true, trustEmail });
      claiming(o, { email_verified: said });
      assert.equal((await o.logIn()).status, counts ? 200 : 403, `${JSON.stringify(said)} ${trustEmail}`);
      assert.equal((await o.a.call('GET', '/auth/users')).body.data.length, counts ? 1 : 0);
    }
  }
});

test('who has no user gets one only where users are made, once, without a password', async () => {
  await using without = await place();
  assert.equal((await without.logIn()).status, 403);
  assert.equal((await without.a.call('GET', '/auth/users')).body.data.length, 0);

  await using o = await place({ createUsers: true });
  const { status, body } = await o.logIn();
  assert.equal(status, 200);
  const { username, email, firstName, lastName, state, flags } = body.user;
  assert.deepEqual(
    { username, email, firstName, lastName, state, flags },
    { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace', state: 'active', flags: {} },
  );
  assert.equal((await o.logIn()).body.user.id, body.user.id);
  const actions = (await o.a.activity()).filter(({ keyid }) => keyid === body.user.id).map(({ action }) => action);
  assert.deepEqual(actions, ['session.create', 'session.create', 'user.create']);
  const password = await o.a.call('POST', '/auth/basic/login', { username: 'ada', password: goodPassword }, nobody);
  assert.equal(password.status, 400);

  assert.equal((await o.a.call('DELETE', '/auth/users/ada')).status, 200);
  const again = await o.logIn();
  assert.notEqual(again.body.user.id, body.user.id);
});

test('a deleted user does not come back where users are not made', async () => {
  await using o = await place();
  await o.a.call('POST', '/auth/users', ada);
  assert.equal((await o.logIn()).status, 200);
  assert.equal((await o.a.call('DELETE', '/auth/users/lovelace')).status, 200);
  assert.equal((await o.logIn()).status, 403);
});

test('flags follow the claims and never take what an administrator gave', async () => {
  const claimFlags = { payroll: ['keyring.payroll.*', 'USER.READ'], staff: ['user.read', 'account.read'] };
  await using o = await place({ createUsers: true, flagsClaim: 'groups', claimFlags });
  await o.a.call('POST', '/auth/users', { ...ada, flags: { 'Account.Read': true, 'user.read': false, mine: true } });
  const flagsAfter = async (subject = 'ada') => (await o.logIn(subject)).body.user.flags;
  assert.deepEqual(await flagsAfter(), {
    'Account.Read': true,
    mine: true,
    'keyring.payroll.*': true,
    'user.read': true,
  });
  const [, change] = await o.a.activity();
  assert.deepEqual([change?.action, change?.props.granted], ['user.update', ['keyring.payroll.*', 'user.read']]);
  o.p.change = undefined;
  const table = { issuer: o.p.issuer, clientId, clientSecret, createUsers: true };
  await o.a.call('PUT', '/local/oidc', { ...table, flagsClaim: 'groups', claimFlags: { staff: ['user.read'] } }, local);
  assert.deepEqual(await flagsAfter(), { 'Account.Read': true, mine: true, 'user.read': true });
  assert.deepEqual(await flagsAfter('bob'), { 'user.read': true });
  await o.a.call('PUT', '/local/oidc', table, local);
  assert.deepEqual(await flagsAfter(), { 'Account.Read': true, mine: true });
  assert.deepEqual(await flagsAfter('bob'), {});
});

test('what the claims give counts where the provider said who it is, and with no other way in of that user', async (t) => {
  const all = ['*', 'apikey.create'];
  const settings = { flagsClaim: 'groups', claimFlags: { payroll: all }, allowRoot: true };
  /** Checks that a session has no rights, and that its answers say so. */
  const nothingIn = async (a: Appliance, { accessToken: key, user }: { accessToken: string; user: AnyJson }) => {
    assert.deepEqual(user.flags, {});
    const refreshed = await a.call('GET', '/auth/basic/refresh', undefined, { key });
    assert.deepEqual([refreshed.status, refreshed.body.user.flags], [200, {}]);
    const own = { key: refreshed.body.accessToken };
    for (const path of ['/auth/apikey', '/auth/users', '/ks/keyrings']) {
      assert.equal((await a.call('GET', path, undefined, own)).status, 403, path);
    }
    const [account] = (await a.call('GET', '/auth/accounts')).body.data;
    const made = await a.call('POST', '/auth/apikey', { accountId: account.id, flags: { '*': true } }, own);
    assert.equal(made.status, 403);
  };
  const everythingIn = async (a: Appliance, { body }: Answer) => {
    assert.equal(body.user.flags['*'], true);
    const { accessToken } = (await a.call('GET', '/auth/basic/refresh', undefined, { key: body.accessToken })).body;
    assert.equal((await a.call('GET', '/auth/apikey', undefined, { key: accessToken })).status, 200);
    return { key: accessToken };
  };

  await t.test('of who took the address of another beforehand', async () => {
    await using o = await place(settings);
    const thief = await logInWithPassword(o.a);
    const taken = { email: people.ada.email };
    const path = `/auth/users/${thief.user.username}`;
    assert.equal((await o.a.call('PATCH', path, taken, { key: thief.accessToken })).status, 200);
    const boss = await o.logIn();
    assert.equal(boss.body.user.id, thief.user.id);
    await everythingIn(o.a, boss);
    await nothingIn(o.a, thief);
    await nothingIn(o.a, (await o.a.call('POST', '/auth/basic/login', thief.login, nobody)).body);
  });

  await t.test('of who kept an invite', async () => {
    await using o = await place(settings);
    const token = await inviteToken(o.a, ada);
    await everythingIn(o.a, await o.logIn());
    const { body } = await o.a.call('POST', '/auth/user/invite-complete', { token, password: goodPassword }, nobody);
    await nothingIn(o.a, { ...body, accessToken: body.accesstoken });
  });

  await t.test('of who has a passkey', async () => {
    await using o = await place(settings);
    const { user, password } = (await o.a.call('POST', '/auth/users', ada)).body;
    const name = { username: user.username, password };
    const { accessToken: key } = (await o.a.call('POST', '/auth/basic/login', name, nobody)).body;
    const path = '/auth/user/second-factors/passkey';
    const options = (await o.a.call('POST', path, { currentPassword: password }, { key })).body;
    const passkey = new Authenticator();
    const origin = { origin: `http://${options.rp.id}` };
    const made = { credential: passkey.create(options, origin) };
    assert.equal((await o.a.call('POST', `${path}/finish`, made, { key })).status, 200);
    await everythingIn(o.a, await o.logIn());
    const asked = (await o.a.call('POST', '/auth/passkey/options', {}, nobody)).body;
    const used = await o.a.call('POST', '/auth/passkey/login', { credential: passkey.get(asked, origin) }, nobody);
    assert.equal(used.status, 200, JSON.stringify(used.body));
    await nothingIn(o.a, used.body);
  });

  await t.test('nor once the user is unlinked', async () => {
    await using o = await place(settings);
    const { user } = (await o.a.call('POST', '/auth/users', { ...ada, flags: { mine: true } })).body;
    const session = await everythingIn(o.a, await o.logIn());
    const name = { username: user.username };
    assert.equal((await o.a.call('POST', '/local/oidc/unlink', name, local)).status, 200);
    assert.equal((await o.a.call('GET', '/auth/apikey', undefined, session)).status, 403);
    assert.deepEqual((await o.a.call('GET', `/auth/users/${user.username}`)).body.flags, { mine: true });
    const [, , record] = await o.a.activity();
    assert.deepEqual(record?.props.revoked, all);
  });

  await t.test('and whoever has * by claims alone is not the last who holds it', async () => {
    await using o = await place(settings);
    await logInWithPassword(o.a, ada);
    await everythingIn(o.a, await o.logIn());
    const [root] = (await o.a.call('GET', '/auth/apikey')).body.data;
    const off = await o.a.call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: root.keyid, active: false });
    assert.equal(off.status, 400);
  });
});

/** A user with a password and no flags, logged in with it. */
async function logInWithPassword(a: Appliance, fields?: object) {
  const { user, password } = fields ? (await a.call('POST', '/auth/users', fields)).body : await makeUser(a);
  const login = { username: user.username, password };
  return { ...(await a.call('POST', '/auth/basic/login', login, nobody)).body, login };
}

test('another person at the provider does not get a user by its name, until it is unlinked', async () => {
  await using o = await place({ userClaim: 'preferred_username' });
  const { user } = (await o.a.call('POST', '/auth/users', { ...ada, username: 'bob' })).body;
  assert.equal((await o.logIn('bob')).body.user.id, user.id);
  people.bob.preferred_username = 'robert';
  people.ada.preferred_username = 'bob';
  try {
    assert.equal((await o.logIn('bob')).body.user.id, user.id);
    assert.equal((await o.logIn('ada')).status, 403);
    const [record] = await o.a.activity();
    assert.deepEqual([record?.action, record?.keyid, record?.validAction], ['session.create', user.id, false]);
    const unlinked = await o.a.call('POST', '/local/oidc/unlink', { username: 'Bob' }, local);
    assert.deepEqual([unlinked.status, unlinked.body], [200, { username: 'bob' }]);
    assert.equal((await o.a.call('POST', '/local/oidc/unlink', { username: 'bob' }, local)).status, 404);
    assert.equal((await o.logIn('ada')).body.user.id, user.id);
  } finally {
    people.bob.preferred_username = 'bob';
    people.ada.preferred_username = 'ada';
  }
});

test('whom the provider knows and who is nobody here forgives no failures of the address; who gets in does', async () => {
  await using o = await place();
  await o.a.call('POST', '/auth/users', { ...ada, email: people.bob.email });
  const fail = async (count: number) => {
    for (let n = 0; n < count; n++) assert.equal((await o.finish({ code: 'x', state: 'y', binding: 'z' })).status, 400);
  };
  await fail(49);
  assert.equal((await o.logIn()).status, 403);
  await fail(1);
  assert.equal((await o.finish(await o.begin().catch(() => ({})))).status, 429);
  o.a.advance(1_000);
  assert.equal((await o.logIn('bob')).status, 200);
  await fail(49);
  assert.equal((await o.logIn('bob')).status, 200);
});

test('tries that fail make whoever is at that address wait', async () => {
  await using o = await place();
  const guess = { code: 'x', state: 'y', binding: 'z' };
  for (let n = 0; n < 50; n++) assert.equal((await o.finish(guess)).status, 400);
  const { status, headers } = await o.finish(guess);
  assert.deepEqual([status, headers.get('retry-after')], [429, '1']);
  assert.equal((await o.a.call('POST', '/auth/oidc/start', undefined, nobody)).status, 429);
  const elsewhere = { key: null, env: { remoteAddress: '198.51.100.7' } };
  assert.equal((await o.a.call('POST', '/auth/oidc/start', undefined, elsewhere)).status, 200);
  assert.ok(o.a.log.some((line) => line.includes('"byNobody":true')));
});

const brokenAnswers: readonly (readonly [string, Parameters<NonNullable<TestProvider['instead']>>[0], object])[] = [
  ['metadata leads elsewhere', '/.well-known/openid-configuration', { status: 302, headers: { location: '/x' } }],
  [
    'metadata without end',
    '/.well-known/openid-configuration',
    { status: 200, headers: { 'content-type': 'application/json' }, body: `{"a":"${'x'.repeat(300_000)}"}` },
  ],
  [
    'metadata that is none',
    '/.well-known/openid-configuration',
    { status: 200, headers: { 'content-type': 'application/json' }, body: '[' },
  ],
  [
    'metadata of another issuer',
    '/.well-known/openid-configuration',
    {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: '{"issuer":"https://elsewhere.example.org"}',
    },
  ],
  ['no keys', '/jwks', { status: 500 }],
  ['no token', '/token', { status: 500, body: 'oops' }],
  ['a token that leads elsewhere', '/token', { status: 307, headers: { location: 'http://127.0.0.1:9/' } }],
  [
    'a client that is not known',
    '/token',
    { status: 401, headers: { 'content-type': 'application/json' }, body: '{"error":"invalid_client"}' },
  ],
  ['a token that is none', '/token', { status: 200, headers: { 'content-type': 'application/json' }, body: '[' }],
];

test('a provider that is broken is 503, never 500, and opens nothing', async (t) => {
  for (const [what, path, answer] of brokenAnswers) {
    await t.test(what, async () => {
      await using o = await place({ createUsers: true });
      // Cast: the table holds answers.
      const instead = (asked: string) => (asked === path ? (answer as { status: number }) : undefined);
      if (path.startsWith('/.well-known')) {
        o.p.instead = instead;
        assert.equal((await o.a.call('POST', '/auth/oidc/start', undefined, nobody)).status, 503);
        return;
      }
      const begun = await o.begin();
      o.p.instead = instead;
      const { status, body } = await o.finish(begun);
      assert.equal(status, 503, JSON.stringify(body));
      assert.equal((await o.a.call('GET', '/auth/users')).body.data.length, 0);
    });
  }
});

test('metadata that names an address in clear elsewhere is not followed', async () => {
  await using o = await place();
  o.p.change = (path, body) =>
    path.startsWith('/.well-known') ? { ...body, authorization_endpoint: 'http://login.example.org/' } : body;
  assert.equal((await o.a.call('POST', '/auth/oidc/start', undefined, nobody)).status, 503);
});

test('metadata and keys are read once, however many log in', async () => {
  await using o = await place({ createUsers: true });
  for (let n = 0; n < 3; n++) assert.equal((await o.logIn()).status, 200);
  const count = (path: string) => o.p.requests.filter((each) => each === `GET ${path}`).length;
  assert.deepEqual([count('/.well-known/openid-configuration'), count('/jwks')], [1, 1]);
});

test('what is set up wrongly is refused by field, and the secret is not shown', async () => {
  const a = await testAppliance();
  const good = { issuer: 'https://login.example.org', clientId: 'kms', clientSecret };
  const set = (fields: object) => a.call('PUT', '/local/oidc', { ...good, ...fields }, local);
  const wrong: readonly (readonly [string, object])[] = [
    ['issuer', { issuer: 'http://login.example.org' }],
    ['issuer', { issuer: 'https://a@login.example.org' }],
    ['issuer', { issuer: 'https://login.example.org/?x' }],
    ['issuer', { issuer: 'file:///etc/passwd' }],
    ['issuer', { issuer: 'login' }],
    ['clientId', { clientId: 'x\ny' }],
    ['clientSecret', { clientSecret: 'x'.repeat(1025) }],
    ['scope', { scope: 'email' }],
    ['flagsClaim', { flagsClaim: 'groups' }],
    ['flagsClaim', { claimFlags: { a: ['user.read'] } }],
    ['claimFlags', { flagsClaim: 'groups', claimFlags: { a: 'user.read' } }],
    ['claimFlags', { flagsClaim: 'groups', claimFlags: { a: [''] } }],
    ['claimFlags', { flagsClaim: 'groups', claimFlags: { a: ['*'] } }],
    ['claimFlags', { flagsClaim: 'groups', claimFlags: { a: ['System.Seal'] } }],
    ['claimFlags', { flagsClaim: 'groups', claimFlags: { a: Array(1001).fill('x') } }],
    ['ca', { ca: 'x'.repeat(65_537) }],
    ['unknown', { unknown: true }],
  ];
  for (const [field, fields] of wrong) {
    const { status, body } = await set(fields);
    assert.deepEqual([status, Object.keys(body.errors)], [400, [field]], JSON.stringify(fields).slice(0, 100));
  }
  assert.equal((await a.call('GET', '/local/oidc', undefined, local)).status, 404);
  const root = await set({ flagsClaim: 'groups', claimFlags: { a: ['*'] }, allowRoot: true });
  assert.equal(root.status, 200);
  const shown = await a.call('GET', '/local/oidc', undefined, local);
  assert.ok(!(shown.text + root.text + JSON.stringify(await a.activity())).includes(clientSecret));
  const [record] = await a.activity();
  assert.deepEqual([record?.action, record?.keyid, record?.props.operation], ['system.tenant', 'local', 'oidc-set']);
  assert.equal((await a.call('DELETE', '/local/oidc', undefined, local)).status, 200);
  assert.equal((await a.call('POST', '/auth/oidc/start', undefined, nobody)).status, 404);
  assert.deepEqual((await a.call('GET', '/auth/oidc', undefined, nobody)).body, { enabled: false, name: null });
});

test('with a credential of its own the settings cannot be reached over the network', async () => {
  const a = await testAppliance();
  const { accessToken } = await logIn(a, { '*': true });
  for (const key of [accessToken, a.root.key]) {
    assert.equal((await a.call('GET', '/local/oidc', undefined, { key })).status, 404);
  }
});

test('a login with the provider is a way in for who set it, unless the user has a second factor', async () => {
  await using o = await place({ createUsers: true });
  const [seat] = o.a.tenants;
  const lastWayInto = async (id: string): Promise<number> =>
    (await seat?.handle.store.read(({ waysIn }) => waysIn.lastOf(id))) ?? assert.fail();
  const made = (await o.logIn('bob')).body.user;
  const givers = await seat?.handle.store.read(({ waysIn }) => waysIn.since(made.id, 0).map(({ who }) => who));
  assert.deepEqual(givers, ['local']);
  const { user, password } = (await o.a.call('POST', '/auth/users', ada)).body;
  const body = { username: user.username, password };
  const { accessToken: key } = (await o.a.call('POST', '/auth/basic/login', body, nobody)).body;
  await addTotp(o.a, { user, password, key });
  const before = await lastWayInto(user.id);
  assert.equal((await o.logIn()).body.user.id, user.id);
  assert.equal(await lastWayInto(user.id), before);
  await o.a.call('POST', '/local/reset-second-factor', { username: user.username }, local);
  const reset = await lastWayInto(user.id);
  await o.logIn();
  assert.ok((await lastWayInto(user.id)) > reset);
});
