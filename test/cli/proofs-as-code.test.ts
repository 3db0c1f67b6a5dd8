// Proofs of API keys in files, as they are replaced and renewed: whatever a plan shows can be done in one run, and
// whatever is certain to fail is told before.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import test from 'node:test';
import type { Proof } from '../../src/api/proofs.ts';
import { makeRule } from '../http/samples.ts';
import { approver, ids, say } from '../support/approvers.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import type { Ran } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const day = 86_400_000;

/** A desk whose appliance has the time of the commands. */
async function timelyDesk(): Promise<ServedDesk> {
  const d = await servedDesk();
  d.appliance.advance(Date.now() - d.appliance.world.now());
  return d;
}

function file(d: ServedDesk, proofs: readonly object[], more: object = {}): Promise<void> {
  const key = { kind: 'apikey', name: 'k', accountId: 'admin', secret: false, proofs, ...more };
  return writeFile(d.path('f.json'), JSON.stringify(key));
}

let runs = 0;
const apply = (d: ServedDesk): Promise<Ran> => d.kms(`apply -f f.json --secrets-out secrets-${++runs} --yes`);

/** Applies the file, after which there must be nothing to do. */
async function settled(d: ServedDesk): Promise<string> {
  const { code, stdout, stderr } = await apply(d);
  assert.equal(code, 0, stdout + stderr);
  const again = await d.kms('plan -f f.json --drift');
  assert.deepEqual([again.code, again.stdout], [0, 'nothing to do: 1 object is as the files say\n']);
  return stdout;
}

async function refused(d: ServedDesk, why: RegExp): Promise<void> {
  const { code, stderr } = await d.kms('plan -f f.json');
  assert.equal(code, 1, stderr);
  assert.match(stderr, why);
}

async function proofs(d: ServedDesk): Promise<readonly Proof[]> {
  const answer = await d.json<{ proofs: readonly Proof[] }>('apikey proof list k --json');
  return answer.proofs.filter(({ kind }) => kind !== 'secret');
}

const names = async (d: ServedDesk) => (await proofs(d)).map(({ name }) => name);
const aws = (...all: string[]) => all.map((name) => ({ kind: 'aws', name }));
const issued = (...all: string[]) => all.map((name) => ({ kind: 'certificate', name, issue: true }));

test('equal names of proofs are no fault of those that are there, only of those that would come', async () => {
  await using d = await timelyDesk();
  await file(d, []);
  await settled(d);
  for (const way of ['aws', 'certificate --issue --out one', 'certificate --issue --out two', 'aws']) {
    const made = await d.kms(`apikey proof add k ${way}`);
    assert.equal(made.code, 0, made.stderr);
  }
  const four = [{ kind: 'aws' }, { kind: 'aws' }, ...[1, 2].map(() => ({ kind: 'certificate', issue: true }))];
  await file(d, four);
  assert.equal((await d.kms('plan -f f.json')).code, 0);
  await file(d, [...four, { kind: 'certificate', issue: true }]);
  await refused(d, /proofs\.4: another proof of this kind has the same name/);
});

test('replacing access keys makes room first where two are all that there may be', async () => {
  await using d = await timelyDesk();
  for (const [before, after, isFirst] of [
    [['a', 'b'], ['a', 'c'], true],
    [['a', 'c'], ['d', 'e'], true],
    [['d', 'e'], ['e'], false],
    [['e'], ['f'], false],
  ] as const) {
    await file(d, aws(...before));
    await settled(d);
    await file(d, aws(...after));
    const { stdout } = await d.kms('plan -f f.json');
    assert.equal(/^ {4}proofs: ! aws .* goes before the new comes: there is no room for both$/m.test(stdout), isFirst);
    await settled(d);
    assert.deepEqual(await names(d), after);
  }
  await file(d, aws('x', 'y', 'z'));
  await refused(d, /proofs\.2: an API key has at most 2 access keys/);
});

test('so do other proofs, of which there are as many as may be', async () => {
  await using d = await timelyDesk();
  const many = (from: number) => issued(...Array.from({ length: 20 }, (_, n) => `n${from + n}`));
  await file(d, many(0), { secret: true });
  await refused(d, /proofs: an API key has at most 20 proofs, its secret included/);
  for (const from of [0, 3]) {
    await file(d, many(from));
    await settled(d);
  }
});

test('where all access keys are replaced, one is live all the time, under a rule, too', async () => {
  await using d = await timelyDesk();
  await file(d, aws('a', 'b'));
  await settled(d);
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  const live = new Set<number>();
  app.fetch = async (request, env) => {
    const { method, url, headers } = request;
    const answer = await served(request, env);
    if (method !== 'GET' && url.includes('/proofs')) {
      const list = await served(new Request(url.replace(/(?<=\/proofs).*/, ''), { headers }), env);
      const all: readonly Proof[] = (await list.json()).proofs;
      live.add(all.filter(({ kind, active }) => kind === 'aws' && active).length);
    }
    return answer;
  };
  await file(d, aws('c', 'd'));
  await settled(d);
  assert.deepEqual([...live].sort(), [1, 2]);
  live.clear();
  const grace = await approver(d.appliance);
  const rule = { actions: ['apikey.update'], objects: ['*'], approvers: { users: ids(grace) }, count: 1 };
  await makeRule(d.appliance, rule);
  await file(d, aws('e', 'f'));
  for (let left = 10; ; left--) {
    assert.ok(left > 0);
    const ran = await d.kms('apply -f f.json --secrets-out rotated --yes');
    if (ran.code === 0) break;
    const asked = new Set(ran.stderr.match(/appr_[0-9a-z]{26}/g));
    assert.ok(asked.size > 0, ran.stderr);
    for (const id of asked) await say(d.appliance, grace, id);
  }
  assert.deepEqual([...live].sort(), [1, 2]);
  assert.deepEqual(await names(d), ['e', 'f']);
});

test('a secret takes the place of one of the proofs, where there are as many as may be', async () => {
  await using d = await timelyDesk();
  const all = issued(...Array.from({ length: 20 }, (_, n) => `n${n}`));
  await file(d, all);
  await settled(d);
  await writeFile(d.path('f.json'), JSON.stringify({ kind: 'apikey', name: 'k', secret: true }));
  await refused(d, /proofs: an API key has at most 20 proofs, its secret included/);
  await file(d, all.slice(1), { secret: true });
  assert.match((await d.kms('plan -f f.json')).stdout, /proofs: ! certificate "n0" .* goes before the new comes/);
  await settled(d);
  await file(d, all);
  const back = (await d.kms('plan -f f.json')).stdout;
  assert.deepEqual(back.match(/\S+ goes before the new comes/g), ['secret goes before the new comes']);
  await settled(d);
});

test('a saved plan that was cut off between the old proof and the new one goes on', async () => {
  await using d = await timelyDesk();
  await file(d, aws('a', 'b'));
  await settled(d);
  await file(d, aws('a', 'c'));
  await d.kms('plan -f f.json --out p.plan');
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  app.fetch = async (request, env) =>
    /\/proofs$/.test(request.url) && request.method === 'POST'
      ? Response.json({ message: 'gone' }, { status: 503 })
      : served(request, env);
  assert.equal((await d.kms('apply p.plan --secrets-out one --yes')).code, 1);
  app.fetch = served;
  assert.deepEqual(await names(d), ['a']);
  const ran = await d.kms('apply p.plan --secrets-out two --yes');
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(await names(d), ['a', 'c']);
});

test('under a rule, the one that goes first is asked for first', async () => {
  await using d = await timelyDesk();
  await file(d, aws('a', 'b'));
  await settled(d);
  const grace = await approver(d.appliance);
  await makeRule(d.appliance, {
    actions: ['apikey.update'],
    objects: ['*'],
    approvers: { users: ids(grace) },
    count: 1,
  });
  await file(d, aws('a', 'c'));
  for (let left = 6; ; left--) {
    assert.ok(left > 0);
    const ran = await d.kms('apply -f f.json --secrets-out secrets --yes');
    if (ran.code === 0) break;
    for (const id of new Set(ran.stderr.match(/appr_[0-9a-z]{26}/g))) await say(d.appliance, grace, id);
  }
  assert.deepEqual(await names(d), ['a', 'c']);
  assert.match(await readFile(d.path('secrets/k.c.aws'), 'utf8'), /^AWS_ACCESS_KEY_ID=KMSA/);
  assert.equal(
    (await proofs(d)).every(({ active }) => active),
    true,
  );
});

test('a certificate that ends later renews its proof in place, an authority as well as a pinned one', async () => {
  await using d = await timelyDesk();
  const now = Date.now();
  const first = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + day });
  const { keys } = first;
  const ca = async (notAfter: number, subject = 'CN=ca') =>
    (await TestCertificate.authority(now, subject, { notAfter, keys })).pem;
  const program = await TestCertificate.alone(now, { notAfter: now + day });
  const pinned = async (notAfter: number) => (await TestCertificate.alone(now, { notAfter, keys: program.keys })).pem;
  const both = (authority: string, certificate: string, name = '') => [
    { kind: 'certificate', name: `named${name}`, ca: authority, san: 'dns:a.example.org' },
    { kind: 'certificate', name: `pinned${name}`, certificate },
  ];
  const ends = async () => (await proofs(d)).map(({ notAfter = '' }) => Math.round((Date.parse(notAfter) - now) / day));
  await file(d, both(first.pem, program.pem));
  await settled(d);
  const before = (await proofs(d)).map(({ id }) => id);
  await file(d, both(await ca(now + 90 * day), await pinned(now + 60 * day)));
  const planned = await d.kms('plan -f f.json --drift');
  assert.equal(planned.code, 2, planned.stdout);
  assert.match(planned.stdout, /^ {4}proofs: ~ certificate "named" \(dns:a.example.org, .*\): until \S+Z → \S+Z$/m);
  assert.match(planned.stdout, /^ {4}proofs: ~ certificate "pinned" \(.*\): until \S+Z → \S+Z$/m);
  await settled(d);
  assert.deepEqual([await ends(), (await proofs(d)).map(({ id }) => id)], [[90, 60], before]);
  // An older one in the file takes nothing back.
  await file(d, both(first.pem, program.pem));
  assert.equal((await d.kms('plan -f f.json')).code, 0);
  // Another name is another proof, for which the former has to go.
  await file(d, both(await ca(now + 90 * day), await pinned(now + 60 * day), '-2'));
  await settled(d);
  assert.deepEqual(await names(d), ['named-2', 'pinned-2']);
  // So is an authority of the same key and another name, and it comes beside the former.
  await file(d, both(await ca(now + 95 * day, 'CN=other'), await pinned(now + 60 * day), '-2'));
  assert.match((await d.kms('plan -f f.json')).stdout, /proofs: \+ certificate "named-2"/);
  await settled(d);
  assert.deepEqual(await ends(), [60, 95]);
});

test('one certificate, or one name by one authority, has one entry', async () => {
  await using d = await timelyDesk();
  const now = Date.now();
  const authority = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + day });
  const { keys } = authority;
  const renewed = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + 90 * day, keys });
  const other = await TestCertificate.authority(now, 'CN=other', { notAfter: now + 90 * day, keys });
  const program = await TestCertificate.alone(now, { notAfter: now + day });
  const named = (name: string, ca: string, host = 'a') => ({
    kind: 'certificate',
    name,
    ca,
    san: `dns:${host}.example.org`,
  });
  const pinned = (name: string) => ({ kind: 'certificate', name, certificate: program.pem });
  const both = [named('old', authority.pem), named('new', renewed.pem)];
  const twice = /proofs\.1: is the same as proofs\.0: a renewed certificate takes the place of the former/;
  const refusals = async (): Promise<void> => {
    for (const list of [both, both.toReversed(), [pinned('one'), pinned('two')], [pinned(''), pinned('')]]) {
      await file(d, list);
      await refused(d, twice);
    }
  };
  await refusals();
  await file(d, [named('old', authority.pem), named('b', authority.pem, 'b'), named('c', other.pem), pinned('one')]);
  await settled(d);
  await refusals();
});

test('proofs that have ended are told, and certificates that have ended make none', async () => {
  await using d = await timelyDesk();
  const now = Date.now();
  const authority = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + day });
  const program = await TestCertificate.alone(now, { notAfter: now + day });
  const all = [
    { kind: 'certificate', name: 'named', ca: authority.pem, san: 'dns:a.example.org' },
    { kind: 'certificate', name: 'pinned', certificate: program.pem },
    { kind: 'certificate', name: 'issued', issue: true, days: 1 },
  ];
  await file(d, all);
  await settled(d);
  d.appliance.advance(2 * day);
  const { now: real } = Date;
  Date.now = () => real() + 2 * day;
  try {
    const { code, stdout } = await d.kms('plan -f f.json --drift');
    assert.equal(code, 0, stdout);
    assert.deepEqual(
      stdout
        .match(/^! API key k: its proof certificate "\w+" \(.*\) ended at \S+Z$/gm)
        ?.map((line) => line.split('"')[1]),
      ['named', 'issued'],
    );
    await file(
      d,
      all.map((proof) => ({ ...proof, name: `${proof.name}-2` })),
    );
    await refused(d, /proofs\.0\.ca: ended at \S+Z\n.*proofs\.1\.certificate: ended at \S+Z\n/);
  } finally {
    Date.now = real;
  }
});

test('a proof that was never live has its secret made again when it is switched on, and the plan says so before', async () => {
  await using d = await timelyDesk();
  const staged = [...aws('a'), ...issued('b')];
  const off = { active: false };
  await file(
    d,
    staged.map((proof) => ({ ...proof, ...off })),
  );
  await settled(d);
  const before = await proofs(d);
  await file(d, staged);
  const { stdout } = await d.kms('plan -f f.json');
  assert.match(
    stdout,
    /^ {4}! its secret may be lost, and is made again: it was never live, or an earlier run was cut/m,
  );
  assert.match(stdout, /^ {4}its secret \(a\.aws\) goes to .*\n {4}its secret \(b\.pem\) goes to /m);
  await settled(d);
  const after = await proofs(d);
  assert.ok(after.every(({ id, active }) => active && !before.some((each) => each.id === id)));
  // A proof that brings no secret is only switched.
  const jwt = { kind: 'jwt', name: 'c', issuer: 'https://ci.example.org', audience: 'kms', subject: 'me' };
  await file(d, [...staged, { ...jwt, ...off }]);
  await settled(d);
  const token = (await proofs(d)).find(({ kind }) => kind === 'jwt');
  await file(d, [...staged, jwt]);
  await settled(d);
  assert.deepEqual(
    (await proofs(d)).find(({ kind }) => kind === 'jwt'),
    { ...token, active: true },
  );
});

test('a secret that another run added meanwhile is not lost, and is not made again', async () => {
  await using d = await timelyDesk();
  await file(d, []);
  await settled(d);
  await file(d, [], { secret: true });
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  app.fetch = async (request, env) => {
    if (request.method === 'POST' && /\/proofs$/.test(request.url)) await served(request.clone(), env);
    return served(request, env);
  };
  const { code, stderr } = await apply(d);
  app.fetch = served;
  assert.deepEqual([code, /the API key has a secret/.test(stderr)], [1, true], stderr);
  assert.equal((await d.kms('plan -f f.json')).stdout, 'nothing to do: 1 object is as the files say\n');
});

test('an API key gets another name with its certificates: the former one goes first', async () => {
  await using d = await timelyDesk();
  const now = d.appliance.world.now();
  const [pinned, authority] = [await TestCertificate.alone(now), await TestCertificate.authority(now, 'CN=ca')];
  const certificates = [
    { kind: 'certificate', name: 'pin', certificate: pinned.pem },
    { kind: 'certificate', name: 'one', san: 'dns:a.example', ca: authority.pem },
  ];
  await file(d, certificates);
  await settled(d);
  for (const [name, former, own] of [
    ['second', 'k', certificates],
    ['third', 'second', certificates.slice(1).map((proof) => ({ ...proof, name: 'other' }))],
  ] as const) {
    await file(d, own, { name });
    const planned = await d.kms('plan -f f.json --prune');
    assert.match(planned.stdout, new RegExp(`! after the removal of API key ${former}, which makes room for it`));
    const ran = await d.kms('apply -f f.json --prune --yes');
    assert.equal(ran.code, 0, ran.stdout + ran.stderr);
    assert.equal((await d.kms('plan -f f.json --drift')).code, 0);
  }
  // Others need no room.
  await file(d, [], { name: 'fourth' });
  assert.doesNotMatch((await d.kms('plan -f f.json --prune')).stdout, /after the removal/);
});

test('one certificate, or one name by one authority, is no proof of two API keys', async () => {
  await using d = await timelyDesk();
  const now = d.appliance.world.now();
  const [pinned, ca, other] = [
    await TestCertificate.alone(now),
    await TestCertificate.authority(now, 'CN=ca'),
    await TestCertificate.authority(now, 'CN=other'),
  ];
  const both = (one: object, two: object) => {
    const key = (name: string, proof: object) => {
      const proofs = [{ kind: 'certificate', name, ...proof }];
      return { kind: 'apikey', name, accountId: 'admin', secret: false, proofs };
    };
    return writeFile(d.path('f.json'), JSON.stringify([key('one', one), key('two', two)]));
  };
  for (const [one, two] of [
    [{ certificate: pinned.pem }, { certificate: `# again\n${pinned.pem}` }],
    [
      { ca: ca.pem, san: 'dns:a.example' },
      { ca: ca.pem, san: 'dns:A.example' },
    ],
  ] as const) {
    await both(one, two);
    const { code, stderr } = await d.kms('plan -f f.json');
    assert.equal(code, 1);
    for (const name of ['one', 'two']) {
      assert.match(stderr, new RegExp(`proofs\\.0: the API key ${name} of the files has it, too: a program is`));
    }
  }
  for (const [one, two] of [
    [{ issue: true }, { issue: true }],
    [
      { ca: ca.pem, san: 'dns:a.example' },
      { ca: ca.pem, san: 'dns:b.example' },
    ],
    [
      { ca: ca.pem, san: 'dns:a.example' },
      { ca: other.pem, san: 'dns:a.example' },
    ],
  ] as const) {
    await both(one, two);
    assert.equal((await d.kms('plan -f f.json')).code, 2);
  }
});
