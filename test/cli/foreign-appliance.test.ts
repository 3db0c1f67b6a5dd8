// An attacker who can write where an appliance, its backups or its shipped copies lie, but has none of its secrets,
// plants an appliance of their own, wrapped to the public keys in the seal. No kind of custodian opens it, and each
// explains why. And `--expect-appliance` refuses another appliance that the same custodian really made.
import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { parseSecret } from '../../src/seal/custodian-secret.ts';
import { forgedSeal, forgings } from '../support/foreign-seal.ts';
import { until } from '../support/until.ts';
import { type Desk, desk, type RunOptions } from './kms.ts';
import { serving } from './serving.ts';

const foreign =
  /it is not the appliance that this custodian was made for: somebody made another one to their public key; /;
const advice = /restore from a copy that you trust; nothing of this one was used/;

interface Way {
  /** Makes the victim's appliance in `kms-data`, and returns the options that open it. */
  make(d: Desk): Promise<RunOptions & { readonly args?: string }>;
  readonly isByHand?: true;
}

async function made(d: Desk, args: string, options?: RunOptions): Promise<Record<string, unknown>> {
  return d.json(`init --json --data kms-data ${args}`.trim(), options);
}

const words = { KMS_PASSPHRASE: 'correct horse battery staple' };

/** Each kind of custodian, and how its secret is given. */
const ways: Readonly<Record<string, Way>> = {
  keyfile: {
    async make(d) {
      await made(d, '');
      return {};
    },
  },
  'keyfile elsewhere': {
    async make(d) {
      await made(d, '--key-file elsewhere.key');
      return { args: '--key-file elsewhere.key' };
    },
  },
  env: {
    async make(d) {
      const { masterKey } = await made(d, '--custodian env');
      return { env: { KMS_MASTER_KEY: String(masterKey) } };
    },
  },
  credential: {
    async make(d) {
      await mkdir(d.path('credentials'));
      await writeFile(d.path('credentials', 'kms-master-key'), 'cd'.repeat(32), { mode: 0o600 });
      const env = { CREDENTIALS_DIRECTORY: d.path('credentials') };
      await made(d, '--custodian credential', { env });
      return { env };
    },
  },
  passphrase: {
    async make(d) {
      await made(d, '--custodian passphrase', { env: words });
      return { env: words };
    },
  },
  exec: {
    async make(d) {
      await writeFile(d.path('give'), `#!/bin/sh\necho ${'ef'.repeat(32)}\n`, { mode: 0o700 });
      await made(d, `--custodian exec --exec ${d.path('give')}`);
      return {};
    },
  },
  'recovery-kit': {
    async make(d) {
      await made(d, '--recovery-kit kit.txt');
      await rename(d.path('kms-data.master.key'), d.path('safe.key'));
      return { args: '--key-file kit.txt' };
    },
  },
  shares: {
    isByHand: true,
    async make(d) {
      const { shares } = await made(d, '--custodian shares --shares 3 --threshold 2');
      return { stdin: (shares as string[]).slice(0, 2).join('\n') };
    },
  },
};

/** An attacker's own appliance, whose secret they have. */
const attacker = await desk();
after(() => attacker[Symbol.asyncDispose]());
await attacker.json('init --json --data own');
await attacker.kms('keyring create payroll --data own');
const own = {
  seal: await readFile(attacker.path('own', 'kms.seal')),
  secret: parseSecret(await readFile(attacker.path('own.master.key')), 'own'),
};

/** Replaces the victim's data directory by the attacker's, with a forged seal. */
async function plant(d: Desk, forging: keyof typeof forgings): Promise<void> {
  const victim = await readFile(d.path('kms-data', 'kms.seal'));
  await rename(d.path('kms-data'), d.path('victim'));
  await cp(attacker.path('own'), d.path('kms-data'), { recursive: true });
  const how = forgings[forging] ?? assert.fail();
  await writeFile(d.path('kms-data', 'kms.seal'), forgedSeal(own, victim, how));
}

async function putBack(d: Desk): Promise<void> {
  await rm(d.path('kms-data'), { recursive: true });
  await rename(d.path('victim'), d.path('kms-data'));
}

const lines = ['keyring list', 'status', 'master rotate', 'serve --listen 127.0.0.1:0 --log-level silent'];

for (const [kind, way] of Object.entries(ways)) {
  test(`${kind}: an own appliance in the place of the victim's is refused, however it is forged`, async () => {
    await using d = await desk();
    const { args = '', ...options } = await way.make(d);
    for (const forging of Object.keys(forgings)) {
      await plant(d, forging);
      if (way.isByHand) {
        const server = await serving(d, ['--data', 'kms-data']);
        const unsealed = await d.kms('unseal --data kms-data', options);
        assert.equal(unsealed.code, 1, `${forging}: ${unsealed.stderr}`);
        assert.match(unsealed.stderr, foreign);
        await server.stop();
      } else {
        // Each line costs a passphrase its derivation.
        for (const line of forging === 'the slots as they stand' ? lines : lines.slice(0, 1)) {
          const signal = AbortSignal.timeout(20_000);
          const { code, stdout, stderr } = await d.kms(`${line} --data kms-data ${args}`.trim(), {
            ...options,
            signal,
          });
          assert.deepEqual([code, stdout], [1, ''], `${forging}, ${line}: ${stderr}`);
          assert.match(stderr, foreign, `${forging}, ${line}`);
          assert.match(stderr, advice);
        }
      }
      await putBack(d);
    }
  });
}

test('in a backup and in a shipped copy: neither restores, verifies, nor is followed', async () => {
  await using d = await desk();
  await d.json('init --json');
  const victim = await readFile(d.path('kms-data', 'kms.seal'));
  const forging = forgings['the slots as they stand'] ?? assert.fail();
  // The attacker's appliance writes the copies itself, so that everything else in them is valid.
  await cp(attacker.path('own'), d.path('own'), { recursive: true });
  await cp(attacker.path('own.master.key'), d.path('own.master.key'));
  await writeFile(
    d.path('own', 'kms.seal'),
    forgedSeal(own, victim, ({ own: header, masterKey, victim: theirs }) => {
      const forged = forging({ own: header, masterKey, victim: theirs });
      return { ...forged, slots: [...header.slots, ...forged.slots] };
    }),
  );
  assert.equal((await d.kms('backup create planted.kms-backup --data own')).code, 0);
  const server = await serving(d, ['--data', 'own', '--ship-to', d.path('shipped'), '--ship-every', '1s']);
  await until('a shipped copy', async () =>
    (await readdir(d.path('shipped')).catch(() => [])).some((name) => /^[0-9a-f]{32}-/.test(name)),
  );
  await until('a shipped copy', async () => {
    const [name = ''] = await readdir(d.path('shipped'));
    return readFile(join(d.path('shipped'), name, 'points.kms')).then(
      ({ length }) => length > 0,
      () => false,
    );
  });
  await server.stop();
  const key = '--key-file kms-data.master.key';
  for (const line of [
    `backup verify planted.kms-backup ${key}`,
    `restore planted.kms-backup --data new ${key}`,
    `restore shipped --data new ${key}`,
    `standby promote --from shipped --data stand ${key} --wait 1s`,
  ]) {
    const { code, stderr } = await d.kms(line);
    assert.equal(code, 1, `${line}: ${stderr}`);
    assert.match(stderr, foreign, line);
  }
  assert.deepEqual(
    (await readdir(d.dir)).filter((name) => name.startsWith('new')),
    [],
  );
});

test('--expect-appliance: another one that the same key file opens is refused everywhere', async () => {
  await using d = await desk();
  const madeOne = async (data: string) => {
    const { apiKey } = await d.json<{ apiKey: { key: string } }>(`init --json --data ${data} --key-file both.key`);
    const { appliance } = JSON.parse(await readFile(d.path(data, 'kms.seal'), 'utf8'));
    return { applianceId: String(appliance), apiKey: apiKey.key };
  };
  const [first, second] = [await madeOne('one'), await madeOne('two')];
  assert.notEqual(first.applianceId, second.applianceId);
  for (const data of ['one', 'two']) {
    assert.equal((await d.kms(`backup create ${data}.kms-backup --data ${data} --key-file both.key`)).code, 0);
  }
  const expected = new RegExp(`expected the appliance ${first.applianceId}, (found|but) ${second.applianceId}`);
  const wanted = `--expect-appliance ${first.applianceId} --key-file both.key`;
  for (const line of [
    'keyring list --data two',
    'keyring create payroll --data two',
    'status --data two',
    'doctor --data two',
    'master rotate --data two',
    'backup verify two.kms-backup',
    'restore two.kms-backup --data new',
    'serve --data two --listen 127.0.0.1:0 --log-level silent',
  ]) {
    const { code, stdout, stderr } = await d.kms(`${line} ${wanted}`, { signal: AbortSignal.timeout(20_000) });
    assert.equal(code, 1, `${line}: ${stderr}`);
    assert.match(stdout + stderr, expected, line);
  }
  assert.equal((await d.kms(`keyring list --data one ${wanted}`)).code, 0);
  assert.equal((await d.kms(`restore one.kms-backup --data new ${wanted}`)).code, 0);
  assert.equal((await d.kms('keyring list --data one --expect-appliance 0123')).code, 2);
  assert.match((await d.kms(`init --data three ${wanted}`)).stderr, /a new appliance gets an id of its own/);

  // A running server, at its socket and at its address.
  const server = await serving(d, ['--data', 'two', '--key-file', 'both.key']);
  after(() => server.stop());
  const env = { KMS_API_KEY: second.apiKey };
  for (const [line, options] of [
    ['keyring create never --data two', {}],
    [`keyring create never --server ${server.url}`, { env }],
  ] as const) {
    const refused = await d.kms(`${line} --expect-appliance ${first.applianceId}`, options);
    assert.equal(refused.code, 1, refused.stderr);
    assert.match(refused.stderr, expected, line);
    const taken = await d.kms(
      `${line.replace('create never', 'list')} --expect-appliance ${second.applianceId}`,
      options,
    );
    assert.equal(taken.code, 0, taken.stderr);
    assert.doesNotMatch(taken.stdout, /never/);
  }
  await server.stop();
});
