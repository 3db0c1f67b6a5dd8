// Applies that are cut off: at every request, by a kill, a signal, an appliance that goes away, or another run beside
// them. Nothing live is left whose secret is lost, and the next run makes it whole.
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import test from 'node:test';
import type { SafeApiKey } from '../../src/api/apikeys.ts';
import type { Proof } from '../../src/api/proofs.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const before = `kind: account
name: billing
---
kind: apikey
name: old
accountId: billing
secret: false
proofs: [{kind: jwt, name: main, issuer: 'https://ci.example.org', audience: kms, subject: me}]
`;
const after = `${before.replace('secret: false\nproofs: [', 'secret: true\nproofs: [{kind: aws, name: s3}, ')}---
kind: apikey
name: new
accountId: billing
flags: {asset.search: true}
proofs: [{kind: aws}, {kind: certificate, name: tls, issue: true}]
---
kind: apikey
name: off
accountId: billing
active: false
---
kind: user
name: ada
email: ada@example.org
firstName: Ada
lastName: Lovelace
---
kind: keyring
name: Payroll
publicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
config: {rotateAfter: 7200}
`;

async function begun(): Promise<ServedDesk> {
  const d = await servedDesk();
  await writeFile(d.path('f.yaml'), before);
  const made = await d.kms('apply -f f.yaml');
  assert.equal(made.code, 0, made.stderr);
  await writeFile(d.path('f.yaml'), after);
  return d;
}

type Served = ServedDesk['appliance']['app']['fetch'];

/** Whether it may change something. */
const isChange = ({ method }: Request): boolean => method !== 'GET';

/** The answers of an appliance, changed by `answer`, while `run` runs. */
async function through<T>(
  { appliance: { app } }: ServedDesk,
  answer: (request: Request, served: () => ReturnType<Served>) => ReturnType<Served>,
  run: () => Promise<T>,
): Promise<T> {
  const served = app.fetch.bind(app);
  app.fetch = (request, env) => answer(request, async () => served(request, env));
  try {
    return await run();
  } finally {
    app.fetch = served;
  }
}

const unreachable = () => Response.json({ message: 'gone' }, { status: 503 });

/** Everything that is live has its secret in a file, and that file opens it. */
async function mustBeWhole(d: ServedDesk): Promise<void> {
  const text = async (name: string) => readFile(d.path('secrets', name), 'utf8');
  for (const name of ['old', 'new', 'off']) {
    const secret = await text(`${name}.apikey`);
    const isLive = name !== 'off';
    const { stdout } = await d.kms('apikey validate', { stdin: secret });
    assert.equal(stdout === 'valid\n', isLive, name);
    const key = await d.json<SafeApiKey & { proofs: Proof[] }>(['apikey', 'show', name, '--json']);
    assert.deepEqual(key.props, { managedBy: 'kms-apply' }, name);
  }
  for (const [name, label, others] of [
    ['old', 's3.aws', ['jwt', 'secret']],
    ['new', 'aws', ['certificate', 'secret']],
  ] as const) {
    const { proofs } = await d.json<{ proofs: Proof[] }>(['apikey', 'proof', 'list', name, '--json']);
    assert.deepEqual(proofs.map(({ kind }) => kind).sort(), ['aws', ...others].sort(), name);
    assert.ok(proofs.every(({ active }) => active));
    const id = proofs.find(({ kind }) => kind === 'aws')?.accessKeyId;
    assert.match(await text(`${name}.${label}`), new RegExp(`AWS_ACCESS_KEY_ID=${id}\n`));
  }
  const [token] = /(?<=token=)\S+/.exec(await text('ada.invite')) ?? [];
  const { status } = await d.appliance.call('GET', `/auth/user/invite-validate?token=${token}`, undefined, {
    key: null,
  });
  assert.equal(status, 200, 'the link of the invite works');
}

test('cut off at any request, the next run makes whole what was begun', async () => {
  let isOver = false;
  for (let last = 1; !isOver; last++) {
    await using d = await begun();
    let count = 0;
    const cut = await through(
      d,
      async (request, served) => {
        if (count >= last) return unreachable();
        if (!isChange(request)) return served();
        const answer = await served();
        return ++count >= last ? unreachable() : answer;
      },
      () => d.kms('apply -f f.yaml --secrets-out secrets'),
    );
    isOver = cut.code === 0;
    const again = await d.kms('apply -f f.yaml --secrets-out secrets --yes');
    assert.equal(again.code, 0, `${last}: ${cut.stderr}${again.stderr}`);
    const planned = await d.kms('plan -f f.yaml --drift');
    assert.equal(planned.code, 0, `${last}: ${planned.stdout}`);
    await mustBeWhole(d);
    const drafts = (await readdir(d.path('secrets'))).filter((name) => name.startsWith('.'));
    assert.deepEqual(drafts, []);
    assert.ok(last < 60);
  }
});

test('a saved plan that was cut off inside a step goes on, and is refused if anything else has changed', async () => {
  const ring = 'kind: keyring\nname: Rolls\npublicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n';
  const key = before.slice(before.indexOf('kind: apikey'));
  const wanted = key
    .replace('secret: false\nproofs: [', 'secret: true\nflags: {asset.search: true}\nproofs: [{kind: aws}, ')
    .replace('subject: me', 'subject: you');
  let isOver = false;
  for (let last = 1; !isOver; last++) {
    await using d = await begun();
    await d.appliance.call('POST', '/managed-keys', { name: 'former', aliases: ['app/x'] });
    const gone = 'kind: managed-key\nname: former\naliases: []\n---\nkind: managed-key\nname: next\naliases: [app/x]\n';
    await writeFile(d.path('f.yaml'), `${wanted}---\n${ring}config: {rotateAfter: 7200}\n---\n${gone}`);
    await d.kms('plan -f f.yaml --out p.plan');
    let count = 0;
    const cut = await through(
      d,
      async (request, served) => {
        if (count >= last) return unreachable();
        if (!isChange(request)) return served();
        const answer = await served();
        return ++count >= last ? unreachable() : answer;
      },
      () => d.kms('apply p.plan --secrets-out secrets --yes'),
    );
    isOver = cut.code === 0;
    if (!isOver) {
      const planted = { kind: 'jwt', issuer: 'https://evil.example', audience: 'kms', subject: 'x' };
      const { keyid } = await d.json<SafeApiKey>('apikey show old --json');
      const { body } = await d.appliance.call('POST', `/auth/apikeys/${keyid}/proofs`, planted);
      const refused = await d.kms('apply p.plan --secrets-out secrets --yes');
      assert.match(refused.stderr, /API key old is not as it was when the plan was made; nothing was done/);
      await d.appliance.call('DELETE', `/auth/apikeys/${keyid}/proofs/${body.id}`);
    }
    const again = await d.kms('apply p.plan --secrets-out secrets --yes');
    assert.equal(again.code, 0, `${last}: ${cut.stderr}${again.stderr}`);
    const planned = await d.kms('plan -f f.yaml');
    assert.equal(planned.code, 0, `${last}: ${planned.stdout}`);
    const { proofs } = await d.json<{ proofs: Proof[] }>('apikey proof list old --json');
    assert.deepEqual(proofs.map(({ kind, active }) => [kind, active]).sort(), [
      ['aws', true],
      ['jwt', true],
      ['secret', true],
    ]);
    const secret = await readFile(d.path('secrets', 'old.apikey'));
    assert.equal((await d.kms('apikey validate', { stdin: secret })).stdout, 'valid\n');
    assert.ok(last < 30);
  }
});

test('a signal begins no further step, and leaves those under way to their end', async () => {
  for (const path of ['/auth/user/invite', '/auth/apikey?', '/auth/apikeys/']) {
    await using d = await begun();
    const stop = new AbortController();
    const stopped = await through(
      d,
      async (request, served) => {
        if (isChange(request) && request.url.includes(path)) stop.abort('SIGTERM');
        return served();
      },
      () => d.kms('apply -f f.yaml --secrets-out secrets', { signal: stop.signal }),
    );
    assert.doesNotMatch(stopped.stderr, /left|cannot reach/);
    if (stopped.code !== 0) {
      assert.equal(stopped.code, 143);
      assert.match(stopped.stderr, /interrupted; \d of \d changes are done, none is half done; run it again to go on/);
    }
    const again = await d.kms('apply -f f.yaml --secrets-out secrets');
    assert.equal(again.code, 0, `without a word, since nothing is unfinished: ${again.stderr}`);
    await mustBeWhole(d);
  }
});

test('a sealed secret is written before what it opens is live, and a key whose secret cannot be is taken back', async () => {
  await using d = await begun();
  await writeFile(d.path('age.pub'), 'age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z\n');
  let written = '';
  const unwritten: string[] = [];
  await through(
    d,
    async (request, served) => {
      const { url, method } = request;
      const isActivation = method === 'PUT' && url.includes('/auth/apikeyid') && (await request.clone().json()).active;
      if (isActivation && !written.includes('new apikey:\n-----BEGIN AGE')) unwritten.push(url);
      return served();
    },
    () =>
      d.kms('apply -f f.yaml --secrets-to age.pub', {
        onStdout(text) {
          written += text;
        },
      }),
  );
  assert.deepEqual(unwritten, []);
  assert.equal(written.match(/BEGIN AGE/g)?.length, 7);
  const json = await d.kms('apply -f f.yaml --secrets-to age.pub --json');
  assert.deepEqual([json.code, /--secrets-to with --json needs --secrets-out/.test(json.stderr)], [2, true]);
  const key = 'age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z';
  await writeFile(d.path('two.pub'), `${key}\n${key}\n`);
  const two = await d.kms('apply -f f.yaml --secrets-to two.pub');
  assert.match(two.stderr, /expected one recipient in the file of --secrets-to, found 2/);
});

test('a user whom somebody else made is not taken over', async () => {
  await using d = await begun();
  const victim = {
    username: 'ada',
    email: 'victim@example.org',
    firstName: 'V',
    lastName: 'V',
    flags: { 'a.b': true },
  };
  const other = await through(
    d,
    async (request, served) => {
      if (request.url.endsWith('/auth/user/invite')) await d.appliance.call('POST', '/auth/users', victim);
      return served();
    },
    () => d.kms('apply -f f.yaml --secrets-out secrets'),
  );
  assert.equal(other.code, 1);
  assert.match(other.stderr, /user ada: .*username/);
  const { body } = await d.appliance.call('GET', '/auth/users/ada');
  assert.deepEqual([body.email, body.flags], [victim.email, victim.flags]);
  // Also one who is only invited.
  await d.appliance.call('DELETE', '/auth/users/ada');
  const { body: invited } = await d.appliance.call('POST', '/auth/user/invite', victim);
  const { key } = (await d.appliance.keyWith('user.invite', 'user.update', 'a.b')) as {
    key: string;
  };
  await writeFile(d.path('ada.yaml'), after.slice(after.indexOf('kind: user'), after.indexOf('---\nkind: keyring')));
  const { args, env } = d.network(key);
  const blind = await d.kms([...args, ...'apply -f ada.yaml --secrets-out blind'.split(' ')], { env });
  assert.equal(blind.code, 1, blind.stdout);
  const token = new URL(invited.loginUrl).searchParams.get('token');
  const link = `/auth/user/invite-validate?token=${token}`;
  assert.equal((await d.appliance.call('GET', link, undefined, { key: null })).status, 200);
});

test('two runs at once: each thing is made by one, and the other says so', async () => {
  for (const [held, part, expected] of [
    ['/auth/apikeyid', '"active":true', /somebody else has removed/],
    ['/auth/apikeyid', '(secret unfinished)', /API key old: the API key has a secret/],
    ['/auth/users/ada', '', /somebody else has invited/],
  ] as const) {
    await using d = await begun();
    // The first run stops before its last request until the second is done.
    const second = Promise.withResolvers<void>();
    let isFirst = true;
    const reached = Promise.withResolvers<void>();
    const [one, two] = await through(
      d,
      async (request, served) => {
        const isHeld = isChange(request) && request.url.includes(held);
        if (isFirst && isHeld && (await request.clone().text()).includes(part)) {
          isFirst = false;
          reached.resolve();
          await second.promise;
        }
        return served();
      },
      () =>
        Promise.all([
          d.kms('apply -f f.yaml --secrets-out one --yes').finally(() => reached.resolve()),
          reached.promise.then(async () => {
            const ran = await d.kms('apply -f f.yaml --secrets-out secrets --yes');
            second.resolve();
            return ran;
          }),
        ]),
    );
    assert.equal(two.code, 0, two.stderr);
    assert.equal(one.code, 1, `${held} ${one.stdout}`);
    assert.match(one.stderr, expected);
    assert.doesNotMatch(one.stderr, /switched off/);
  }
});

test('only what a run made is taken for unfinished, whatever properties say', async () => {
  await using d = await begun();
  const mark = { managedBy: 'kms-apply (unfinished)' };
  await d.appliance.call('POST', '/managed-keys', { name: 'valuable', deletionAllowed: true, props: mark });
  await d.appliance.call('POST', '/auth/accounts', { uid: 'acc', props: mark });
  const { body: key } = await d.appliance.call('POST', '/auth/apikey', {
    accountId: (await d.appliance.call('GET', '/auth/accounts/acc?uid=true')).body.id,
    name: 'live',
    props: mark,
  });
  const user = { username: 'eve', email: 'eve@example.org', firstName: 'E', lastName: 'E', props: mark };
  await d.appliance.call('POST', '/auth/users', user);
  const file = ['managed-key\nname: valuable', 'account\nname: acc', 'apikey\nname: live', 'user\nname: eve'];
  await writeFile(d.path('f.yaml'), file.map((each) => `kind: ${each}\n`).join('---\n'));
  assert.equal((await d.kms('plan -f f.yaml')).code, 0);
  // One that could be: its removal takes the flags of a removal.
  await d.appliance.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', active: false });
  const { stdout } = await d.kms('plan -f f.yaml');
  assert.match(stdout, /\+ API key live\n.*! an earlier run was cut off: it is made again/s);
  const maker = (await d.appliance.keyWith(
    'apikey.create',
    'apikey.read',
    'apikey.update',
    'account.read',
    'user.read',
    'key.list',
  )) as { key: string };
  const { args, env } = d.network(maker.key);
  const flagless = await d.kms([...args, ...'plan -f f.yaml'.split(' ')], { env });
  assert.match(flagless.stdout, /the permission flag apikey\.delete is missing/);
});
