// Applies that are cut off: at every request, by a kill, a signal, an appliance that goes away, or another run beside
// them. Nothing live is left whose secret nobody has, and the next run makes it whole.
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

const gone = () => Response.json({ message: 'gone' }, { status: 503 });

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
  const { status } = await d.appliance.call('GET', `/auth/user/invite-validate?token=${token}`, undefined, { key: null });
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
        if (count >= last) return gone();
        if (!isChange(request)) return served();
        const answer = await served();
        return ++count >= last ? gone() : answer;
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
