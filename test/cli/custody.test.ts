// Custodians of the master key, as typed: every kind of custodian, sealed servers, and the recovery kit.
import assert from 'node:assert/strict';
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import test from 'node:test';
import { type Desk, desk, type Ran, typed } from './kms.ts';
import { serving } from './serving.ts';

interface First {
  readonly apiKey: { readonly key: string };
  readonly shares?: readonly string[];
  readonly masterKey?: string;
}
interface Master {
  readonly fingerprint: string;
  readonly custodians: readonly { readonly id: string; readonly version: number; readonly kind: string }[];
}
interface Sealed {
  readonly sealed: boolean;
  readonly kinds: readonly string[];
  readonly threshold?: number;
  readonly progress?: number;
}

const passphrase = 'correct horse battery staple';
const withPassphrase = { env: { KMS_PASSPHRASE: passphrase } };

function is(ran: Ran, code: number, stderr: RegExp): void {
  assert.equal(ran.code, code, ran.stderr);
  assert.match(ran.stderr, stderr);
}

/** Checks that no file in the directory contains any of these texts. */
async function holdsNone(d: Desk, texts: readonly string[], dir = 'kms-data'): Promise<void> {
  for (const entry of await readdir(d.path(dir), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const content = await readFile(`${entry.parentPath}/${entry.name}`, 'latin1');
    for (const text of texts) assert.ok(!content.includes(text), `${entry.name} holds a secret`);
  }
}

test('shares: five people, three of them open it, in any order, one at a time', async () => {
  await using d = await desk();
  const { shares = [] } = await d.json<First>('init --custodian shares --shares 5 --threshold 3 --json');
  assert.equal(shares.length, 5);
  assert.deepEqual(await readdir(d.dir), ['kms-data'], 'no key file');
  await holdsNone(
    d,
    shares.map((share) => share.slice(24)),
  );
  is(await d.kms('keyring list'), 4, /its master key is with shares; [^\n]+`kms unseal`\n$/);
  is(await d.kms('unseal'), 3, /no server is running/);

  const server = await serving(d);
  const ready = await fetch(`${server.url}/readyz`);
  assert.deepEqual([ready.status, await ready.json()], [503, { message: 'the appliance is sealed', sealed: true }]);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
  const status = async (): Promise<unknown> => (await fetch(`${server.url}/system/seal-status`)).json();
  assert.deepEqual(await status(), { sealed: true, kinds: ['shares'], threshold: 3, progress: 0 });
  is(await d.kms('keyring list'), 4, /sealed/);
  is(await d.kms('tenant list'), 4, /sealed/);
  is(await d.kms('master list'), 4, /sealed/);
  const shown = await d.kms('status');
  assert.deepEqual([shown.code, shown.stdout], [4, 'sealed      yes\nmaster key  shares\nshares      0 of 3\n']);

  const enter = (share: string | undefined, args: readonly string[] = []): Promise<Sealed> =>
    d.json<Sealed>(['unseal', '--json', ...args], { stdin: `${share}\n` });
  assert.equal((await enter(shares[4])).progress, 1);
  assert.equal((await enter(shares[4]?.toUpperCase())).progress, 1, 'the same share counts once');
  is(
    await d.kms('unseal', { stdin: shares[1]?.replace(/.$/, (end) => (end === '0' ? '1' : '0')) ?? '' }),
    1,
    /^kms: share 2 of the set [0-9a-f]{8} is mistyped/,
  );
  is(await d.kms('unseal', { stdin: 'kms-share-1-nonsense' }), 1, /expected a share/);
  assert.equal((await enter(shares[0], ['--server', server.url])).progress, 2);
  assert.deepEqual(await d.json('unseal --reset --json'), {
    sealed: true,
    kinds: ['shares'],
    threshold: 3,
    progress: 0,
  });
  const together = await d.json<Sealed>('unseal --json', { stdin: `${shares[3]}\n\n${shares[1]}\n` });
  assert.equal(together.progress, 2);
  assert.deepEqual(await enter(shares[2]), { sealed: false, kinds: ['shares'] });
  assert.equal((await d.kms('keyring create r')).code, 0);
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
  is(await d.kms('unseal'), 0, /it is not sealed/);

  const { data } = await d.json<{ data: { action: string; keyid: string }[] }>('activity search --json');
  assert.ok(data.some(({ action, keyid }) => action === 'system.unseal' && keyid === 'local'));
  const ran = await server.stop();
  for (const share of shares) assert.ok(!ran.stderr.includes(share.slice(24)));
});

test('shares of another appliance, and shares made up, are told apart', async () => {
  await using d = await desk();
  const { shares = [] } = await d.json<First>('init --custodian shares --shares 3 --threshold 2 --json');
  const other = await d.json<First>('init --custodian shares --shares 3 --threshold 2 --json --data other');
  const server = await serving(d);
  is(
    await d.kms('unseal', { stdin: other.shares?.[0] ?? '' }),
    1,
    /not of this appliance: needs one of the set [0-9a-f]{8}, got one of [0-9a-f]{8}/,
  );
  const { formatShare, parseShare } = await import('../../src/seal/custodian-secret.ts');
  const { set } = parseShare(shares[0] ?? '');
  // Nothing on the network reveals the set's id, with which shares could be made up.
  for (const share of [other.shares?.[0], formatShare({ ...parseShare(shares[0] ?? ''), threshold: 3 })]) {
    const refusal = await fetch(`${server.url}/system/unseal`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ share }),
    });
    assert.equal(refusal.status, 400);
    const told = (await refusal.text()).replace(`got one of ${set}`, '');
    assert.match(told, /not of this appliance: needs one of another set, /);
    assert.ok(!told.includes(set), told);
  }
  // A forger who knows the set's id can compute a matching checksum.
  const forged = formatShare({ ...parseShare(shares[1] ?? ''), bytes: new Uint8Array(32).fill(7) });
  assert.equal((await d.kms('unseal', { stdin: shares[0] ?? '' })).code, 0);
  is(await d.kms('unseal', { stdin: forged }), 1, /the shares do not fit together/);
  assert.equal((await d.json<Sealed>('unseal --json', { stdin: shares[0] ?? '' })).progress, 1, 'all were forgotten');
  assert.equal((await d.json<Sealed>('unseal --json', { stdin: shares[2] ?? '' })).sealed, false);
  await server.stop();
});

test('a passphrase: asked for at a terminal, or from the environment or a file', async () => {
  await using d = await desk();
  await d.json('init --custodian passphrase --json', withPassphrase);
  assert.deepEqual(await readdir(d.dir), ['kms-data']);
  await holdsNone(d, [passphrase]);
  is(await d.kms('keyring list'), 4, /its master key is with a passphrase/);
  assert.equal((await d.kms('keyring create r', withPassphrase)).code, 0);
  await writeFile(d.path('pass'), `${passphrase}\n`, { mode: 0o600 });
  assert.equal((await d.kms('keyring show r --passphrase-file pass')).code, 0);
  is(
    await d.kms('keyring list', { env: { KMS_PASSPHRASE: 'correct horse battery stable' } }),
    1,
    /^kms: wrong passphrase\b/,
  );
  const tty = { stdin: true, stderr: true };
  const asked = await d.kms('keyring show r --json', { stdin: typed(`${passphrase}\n`), tty });
  assert.equal(asked.code, 0, asked.stderr);
  assert.ok(asked.stderr.includes('passphrase of the master key: ') && !asked.stderr.includes(passphrase));

  const server = await serving(d);
  is(await d.kms('keyring list', withPassphrase), 4, /sealed/);
  is(await d.kms('unseal', { stdin: 'something else entirely\n' }), 1, /^kms: wrong passphrase/);
  is(await d.kms('unseal', { stdin: `${passphrase}\n` }), 0, /^$/);
  assert.equal((await d.kms('keyring show r')).code, 0);
  await server.stop();
  const unattended = await serving(d, [], withPassphrase.env);
  assert.equal((await d.kms('keyring show r')).code, 0, 'a server that has the passphrase opens itself');
  await unattended.stop();
});

test('a new passphrase is typed twice, and must be worth something', async () => {
  await using d = await desk();
  const tty = { stdin: true, stderr: true };
  is(await d.kms('init --custodian passphrase', { stdin: 'short\n' }), 1, /at least 8 characters/);
  is(await d.kms('init --custodian passphrase', { stdin: '' }), 1, /at least 8 characters/);
  const keyboard = new PassThrough();
  const onStderr = (prompt: string): void => {
    if (/new passphrase/.test(prompt)) keyboard.write(`${passphrase}\n`);
    if (/once more/.test(prompt)) keyboard.write(`${passphrase}x\n`);
  };
  const differing = await d.kms('init --custodian passphrase', { stdin: keyboard, tty, onStderr });
  is(differing, 1, /the two passphrases differ/);
  assert.deepEqual(await readdir(d.dir), []);
});

test('a command gives the key; nothing of what it prints is shown', async () => {
  await using d = await desk();
  const secret = 'a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90';
  await writeFile(
    d.path('give key'),
    `#!/bin/sh\necho "noise $2" >&2\n[ "$1" = '$HOME;' ] || exit 3\necho ${secret}\n`,
  );
  await chmod(d.path('give key'), 0o700);
  const command = ['--exec', d.path('give key'), '--exec-arg', '$HOME;', '--exec-arg=-b'];
  await d.json(['init', '--custodian', 'exec', '--json', ...command]);
  await holdsNone(d, [secret]);
  // A command runs only for a directory that the user named.
  is(
    await d.kms('keyring list'),
    4,
    /the command .* was not run: the data directory that names it was not given explicitly.*--data DIR/,
  );
  const named = { env: { KMS_DATA: d.path('kms-data') } };
  assert.equal((await d.kms('keyring create r', named)).code, 0);
  const server = await serving(d, ['--data', 'kms-data']);
  assert.equal((await d.kms('keyring show r')).code, 0);
  await server.stop();

  await writeFile(d.path('give key'), `#!/bin/sh\necho ${secret.replace('a', 'b')}\n`);
  is(
    await d.kms('keyring list', named),
    1,
    /^kms: wrong master key in the output of .*: needs [0-9a-f]{16}, got [0-9a-f]{16}; /,
  );
  for (const [script, why] of [
    ['exit 3', /it ended with exit code 3/],
    [`echo ${secret}; exit 1`, /exit code 1/],
    ['echo hello', /expected a master key, found something else/],
    ['head -c 100000 /dev/zero', /printed more than 65536 bytes/],
  ] as const) {
    await writeFile(d.path('give key'), `#!/bin/sh\n${script}\n`);
    const ran = await d.kms('keyring list', named);
    assert.match(ran.stderr, why);
    assert.ok(ran.code === 1 || ran.code === 4);
    assert.ok(!ran.stderr.includes(secret));
  }
  await rm(d.path('give key'));
  is(await d.kms('keyring list', named), 4, /gave no master key: there is no such command/);
  is(await d.kms('init --data x --custodian exec'), 2, /--exec is missing/);
  const none = `--exec ${d.path('none')}`;
  is(await d.kms(`init --data x --custodian exec ${none}`), 1, /gave no master key: there is no such command; run it/);
  await d.json('init --data y --json');
  is(await d.kms(`master add-custodian exec --data y ${none}`), 1, /gave no master key: there is no such command/);
  const other = await serving(d, ['--data', 'y']);
  is(await d.kms(`master add-custodian exec --data y ${none}`), 1, /gave no master key: there is no such command/);
  await other.stop();
  assert.equal((await d.json<{ custodians: object[] }>('master list --data y --json')).custodians.length, 1);
});

test('the environment and a systemd credential', async () => {
  await using d = await desk();
  const { masterKey = '' } = await d.json<First>('init --custodian env --json');
  assert.match(masterKey, /^kms-master-key-1 \S+$/);
  assert.deepEqual(await readdir(d.dir), ['kms-data']);
  is(await d.kms('keyring list'), 4, /its master key is with the environment variable KMS_MASTER_KEY/);
  assert.equal((await d.kms('keyring list', { env: { KMS_MASTER_KEY: masterKey } })).code, 0);
  is(
    await d.kms('keyring list', { env: { KMS_MASTER_KEY: 'f'.repeat(64) } }),
    1,
    /wrong master key in KMS_MASTER_KEY: needs/,
  );
  is(
    await d.kms('keyring list', { env: { KMS_MASTER_KEY: 'nonsense' } }),
    1,
    /^kms: KMS_MASTER_KEY: expected a master key/,
  );

  await mkdir(d.path('creds'));
  const env = { CREDENTIALS_DIRECTORY: d.path('creds') };
  is(await d.kms('init --data b --custodian credential', { env }), 1, /there is no systemd credential/);
  await writeFile(d.path('creds', 'kms-master-key'), Buffer.alloc(32, 0xab));
  await d.json('init --data b --json --custodian credential', { env });
  is(await d.kms('keyring list --data b'), 4, /the systemd credential kms-master-key/);
  assert.equal((await d.kms('keyring list --data b', { env })).code, 0);
  // Without --custodian, an existing secret is used instead of making a file.
  await d.json('init --data c --json', { env: { KMS_MASTER_KEY: 'f'.repeat(64) } });
  assert.equal(
    (await d.json<Master>('master list --data c --json', { env: { KMS_MASTER_KEY: 'F'.repeat(64) } })).custodians[0]
      ?.kind,
    'env',
  );
  assert.deepEqual((await readdir(d.dir)).filter((name) => !name.startsWith('.')).sort(), [
    'b',
    'c',
    'creds',
    'kms-data',
  ]);
});

test('a server without its key file waits for it', async () => {
  await using d = await desk();
  await d.json('init --json');
  await rename(d.path('kms-data.master.key'), d.path('away'));
  const server = await serving(d);
  is(await d.kms('status'), 4, /^$/);
  is(await d.kms('unseal'), 4, /the master key file is missing/);
  is(await d.kms('unseal --key-file away'), 0, /^$/);
  assert.equal((await d.kms('seal')).code, 0);
  await rename(d.path('away'), d.path('kms-data.master.key'));
  is(await d.kms('unseal'), 0, /^$/);
  assert.equal((await d.kms('keyring list')).code, 0);
  const ran = await server.stop();
  assert.match(
    ran.stderr,
    /kms: the appliance is sealed: the master key file is missing: .*; open it with `kms unseal`\n/,
  );
});

test('seal: the administrator at the machine, or whoever has the flag', async () => {
  await using d = await desk();
  const { apiKey } = await d.json<First>('init --json');
  await d.kms('apikey create --account admin --flag system.seal --flag keyring.*', {});
  const weak = await d.json<{ key: string }>('apikey create --account admin --flag system.backup --json');
  const server = await serving(d);
  const seal = (key?: string): Promise<Response> =>
    fetch(`${server.url}/system/seal`, { method: 'POST', headers: key ? { authorization: `Bearer ${key}` } : {} });
  assert.equal((await seal()).status, 401);
  const refused = await seal(weak.key);
  const message = 'the permission flag system.seal is missing';
  assert.deepEqual([refused.status, await refused.json()], [403, { message }]);
  const { code } = await d.kms(['seal', '--server', server.url], { env: { KMS_API_KEY: apiKey.key } });
  assert.equal(code, 0);
  assert.equal((await seal(apiKey.key)).status, 503);
  for (const path of ['/ks/keyrings', '/assets/x', '/auth/users']) {
    const answer = await fetch(server.url + path, { headers: { authorization: `Bearer ${apiKey.key}` } });
    assert.deepEqual([answer.status, Object.keys((await answer.json()) as object)], [503, ['message']], path);
  }
  is(await d.kms('seal'), 0, /it is sealed already/);
  assert.equal((await d.kms('unseal')).code, 0);
  assert.equal((await d.kms('seal')).code, 0);
  assert.equal((await d.kms('unseal')).code, 0);
  const { data } = await d.json<{ data: { action: string; status: number; keyid: string }[] }>(
    'activity search --json --action system.seal',
  );
  assert.deepEqual(
    data.map(({ status }) => status),
    [200, 200, 403],
  );
  await server.stop();
});

test('sealed on purpose: every command says so, until it is unsealed on purpose', async () => {
  await using d = await desk();
  await d.json('init --json');
  const first = await serving(d);
  assert.equal((await d.kms('seal')).code, 0);
  await first.stop();
  const second = await serving(d);
  const shown = await d.kms('status');
  assert.deepEqual([shown.code, shown.stdout], [4, 'sealed      yes, on purpose\nmaster key  keyfile\n']);
  const said = await second.stop();
  assert.match(said.stderr, /the appliance is sealed: somebody sealed it on purpose; open it with `kms unseal`\n/);
  for (const command of [
    'status',
    'keyring list',
    'tenant list',
    'master list',
    'backup create out.kms-backup',
    'apikey list',
    'activity search',
    'activity verify',
  ]) {
    is(await d.kms(command), 4, /somebody sealed it on purpose; unseal it with `kms unseal`/);
  }
  is(await d.kms('doctor'), 1, /^$/);
  assert.match(
    (await d.kms('doctor')).stdout,
    /sealed[\s\S]*not examined: the appliance is sealed: somebody sealed it/,
  );
  // Without the key the seal stays.
  await rename(d.path('kms-data.master.key'), d.path('away'));
  is(await d.kms('unseal'), 4, /the master key file is missing/);
  is(await d.kms('keyring list'), 4, /on purpose/);
  assert.deepEqual(await d.json<Sealed>('unseal --key-file away --json'), { sealed: false, kinds: ['keyfile'] });
  await rename(d.path('away'), d.path('kms-data.master.key'));
  assert.equal((await d.kms('keyring list')).code, 0);
  is(await d.kms('unseal'), 3, /no server is running/);
  const { data } = await d.json<{ data: { keyid: string; props: object }[] }>(
    'activity search --action system.unseal --json',
  );
  assert.deepEqual(
    data.map(({ keyid, props }) => [keyid, { ...props, custodian: '' }]),
    [['local', { custodian: '', kind: 'keyfile', by: 'operator' }]],
  );
});

test('sealed on purpose: passphrase and shares end it as their kinds do', async () => {
  await using d = await desk();
  const sealed = async (data: string, env: Readonly<Record<string, string>>, unseal: string): Promise<void> => {
    const server = await serving(d, ['--data', data], env);
    if (unseal !== '') is(await d.kms(`unseal --data ${data}`, { stdin: unseal }), 0, /^$/);
    assert.equal((await d.kms(`seal --data ${data}`)).code, 0);
    await server.stop();
  };
  await d.json('init --custodian passphrase --json --data p', withPassphrase);
  await sealed('p', withPassphrase.env, '');
  is(await d.kms('keyring list --data p', withPassphrase), 4, /on purpose/);
  is(await d.kms('unseal --data p', { stdin: 'something else entirely\n' }), 1, /wrong passphrase/);
  is(await d.kms('unseal --data p', { stdin: `${passphrase}\n` }), 0, /^$/);
  assert.equal((await d.kms('keyring list --data p', withPassphrase)).code, 0);

  const { shares = [] } = await d.json<First>('init --custodian shares --shares 2 --threshold 2 --json --data s');
  await sealed('s', {}, shares.join('\n'));
  is(await d.kms('unseal --data s', { stdin: shares.join('\n') }), 4, /serve it with `kms serve`/);
  const server = await serving(d, ['--data', 's']);
  assert.equal((await d.json<Sealed>('unseal --json --data s', { stdin: shares.join('\n') })).sealed, false);
  await server.stop();
});

test('a backup knows nothing of a seal on purpose', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.kms('backup create out.kms-backup');
  const server = await serving(d);
  assert.equal((await d.kms('seal')).code, 0);
  await server.stop();
  assert.equal((await d.kms('restore out.kms-backup --data again --key-file kms-data.master.key')).code, 0);
  assert.equal((await d.kms('keyring list --data again')).code, 0);
  is(await d.kms('keyring list'), 4, /on purpose/);
});

test('a command that gives the key runs for the machine alone, and once for all who ask at one time', async () => {
  await using d = await desk();
  const script = `#!/bin/sh\necho x >> '${d.path('runs')}'\nsleep 0.3\necho ${'ab'.repeat(32)}\n`;
  await writeFile(d.path('give'), script, { mode: 0o700 });
  await d.json(['init', '--custodian', 'exec', '--exec', d.path('give'), '--json']);
  const server = await serving(d, ['--data', 'kms-data']);
  assert.equal((await d.kms('seal')).code, 0);
  const runs = async (): Promise<number> => (await readFile(d.path('runs'), 'utf8')).length / 2;
  const before = await runs();
  const asked = await Promise.all(
    Array.from({ length: 12 }, () =>
      fetch(`${server.url}/system/unseal`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"retry":true}',
      }),
    ),
  );
  assert.ok(asked.every(({ status }) => status === 403));
  assert.equal(await runs(), before);
  const opened = await Promise.all([1, 2, 3].map(() => d.kms('unseal')));
  assert.deepEqual(
    opened.map(({ code }) => code),
    [0, 0, 0],
  );
  assert.equal(await runs(), before + 1);
  await server.stop();
});

test('unsealing takes one step, well-formed', async () => {
  await using d = await desk();
  await d.json('init --custodian passphrase --json', withPassphrase);
  const server = await serving(d);
  const send = async (body: unknown, type = 'application/json'): Promise<[number, unknown]> => {
    const init = {
      method: 'POST',
      headers: { 'content-type': type },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    };
    const answer = await fetch(`${server.url}/system/unseal`, init);
    return [answer.status, await answer.json()];
  };
  for (const body of [
    {},
    [],
    null,
    { share: 5 },
    { passphrase: '' },
    { share: 'x', passphrase: 'y' },
    { retry: false },
    { other: 1 },
    '{',
  ]) {
    const [status, answer] = await send(body);
    assert.equal(status, 400, JSON.stringify(body));
    assert.ok(!JSON.stringify(answer).includes('"y"'));
  }
  assert.equal((await send({ reset: true }, 'text/plain'))[0], 400);
  assert.equal((await send({ share: `kms-share-1-${'0'.repeat(70_000)}` }))[0], 413);
  const other = await fetch(`${server.url}/system/unseal`);
  assert.deepEqual([other.status, other.headers.get('allow')], [503, null], 'sealed, like all others');
  await server.stop();
});

test('guesses over the network must wait, those at the machine need not', async () => {
  await using d = await desk();
  const { shares = [] } = await d.json<First>('init --custodian shares --shares 3 --threshold 2 --json');
  const server = await serving(d);
  const wrong = shares[0]?.replace(/.$/, (end) => (end === '0' ? '1' : '0'));
  const send = async (share: string | undefined): Promise<number> => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ share }) };
    return (await fetch(`${server.url}/system/unseal`, init)).status;
  };
  for (let n = 0; n < 5; n++) assert.equal(await send(wrong), 400);
  assert.equal(await send(shares[0]), 429);
  // The first wait may be over before a command starts; a late command with a wrong share doubles the next.
  let late = 0;
  let refused = await d.kms(['unseal', '--server', server.url], { stdin: wrong ?? '' });
  while (!/too many failed tries/.test(refused.stderr) && ++late < 6) {
    refused = await d.kms(['unseal', '--server', server.url], { stdin: wrong ?? '' });
  }
  is(refused, 1, /too many failed tries; try again in \d+ s/);
  assert.equal((await d.kms('unseal', { stdin: shares[0] ?? '' })).code, 0);
  assert.equal((await d.kms('unseal', { stdin: shares[1] ?? '' })).code, 0);
  await server.stop();
});

test('master: list, rotate, add and remove, online and offline; the last one stays', async () => {
  await using d = await desk();
  await d.json('init --json');
  const before = await d.json<Master>('master list --json');
  assert.deepEqual(
    before.custodians.map(({ kind }) => kind),
    ['keyfile'],
  );
  const [first] = before.custodians;
  is(
    await d.kms(['master', 'remove-custodian', first?.id ?? '', '--yes']),
    1,
    /it is the last custodian.*; add another one first/,
  );
  is(await d.kms(['master', 'remove-custodian', first?.id ?? '']), 2, /--yes/);
  is(await d.kms('master remove-custodian 0000000000000000 --yes'), 1, /no such custodian/);
  is(await d.kms('master add-custodian telepathy'), 2, /expected keyfile, /);
  is(await d.kms('master list --server http://localhost:1'), 2, /on the machine of the appliance/);

  const rotated = await d.json<Master>('master rotate --json');
  assert.notEqual(rotated.fingerprint, before.fingerprint);
  assert.deepEqual(rotated.custodians, before.custodians);
  await d.kms('master add-custodian passphrase', withPassphrase);
  const { shares = [] } = await d.json<First>('master add-custodian shares --shares 2 --threshold 2 --json');
  await d.json('master add-custodian keyfile --file second.key --json');
  assert.equal((await stat(d.path('second.key'))).mode & 0o777, 0o600);
  is(await d.kms('master add-custodian keyfile --file second.key'), 1, /there is a key file already/);

  const server = await serving(d);
  assert.equal((await d.kms('master rotate')).code, 0);
  assert.equal((await d.kms(['master', 'remove-custodian', first?.id ?? '', '--yes'])).code, 0);
  await rm(d.path('kms-data.master.key'));
  for (const [args, options] of [
    ['unseal --key-file second.key', {}],
    ['unseal', withPassphrase],
    ['unseal', { stdin: shares.join('\n') }],
  ] as const) {
    assert.equal((await d.kms('seal')).code, 0);
    assert.equal((await d.kms(args, options)).code, 0, args);
    assert.equal((await d.json<Sealed>('status --json')).sealed, false);
  }
  const { data } = await d.json<{ data: { props: { operation?: string; object?: { type: string; name: string } } }[] }>(
    'activity search --action system.master --json',
  );
  assert.deepEqual(
    data.map(({ props: { object } }) => object && `${object.type} ${object.name}`),
    ['custodian keyfile', undefined, 'custodian keyfile', 'custodian shares', 'custodian passphrase', undefined],
  );
  assert.deepEqual(
    data.map(({ props }) => props.operation),
    ['remove-custodian', 'rotate', 'add-custodian', 'add-custodian', 'add-custodian', 'rotate'],
  );
  await server.stop();
});

test('a secret that is given renews its own proof, although a key file lies at its place', async () => {
  await using d = await desk();
  await d.json('init --json');
  const keyFile = d.path('kms-data.master.key');
  await d.json('master add-custodian passphrase --json', withPassphrase);
  await writeFile(d.path('wrong.txt'), 'another one\n', { mode: 0o600 });
  await writeFile(d.path('pp'), `${passphrase}\n`, { mode: 0o600 });
  const fresh = async () => {
    const { master, slots } = JSON.parse(await readFile(d.path('kms-data/kms.seal'), 'utf8'));
    return slots.map((slot: { master: string }) => slot.master === master);
  };
  assert.deepEqual(await fresh(), [true, true]);

  // With a secret that does not fit, the key file opens the data.
  assert.equal((await d.kms('master rotate --passphrase-file wrong.txt')).code, 0);
  assert.deepEqual(await fresh(), [true, false]);
  const rotated = await d.kms('master rotate --passphrase-file pp');
  assert.equal(rotated.code, 0, rotated.stderr);
  assert.deepEqual(await fresh(), [false, true]);
  assert.equal((await d.kms('keyring create shipped')).code, 0);
  await rm(keyFile);
  is(await d.kms('keyring list', { env: { KMS_PASSPHRASE: 'another one' } }), 1, /wrong passphrase/);
  assert.match((await d.kms('keyring list', withPassphrase)).stdout, /shipped/);
});

test('the recovery kit alone opens a copy of the data', async () => {
  await using d = await desk();
  await d.json('init --json --recovery-kit kit.txt');
  assert.equal((await stat(d.path('kit.txt'))).mode & 0o777, 0o600);
  const kit = await readFile(d.path('kit.txt'), 'utf8');
  const [code = ''] = /kms-recovery-1[-0-9a-z]+/.exec(kit) ?? [];
  await d.kms('keyring create r');
  await d.kms('encrypt --ring r -o x', { stdin: 'hi' });
  await cp(d.path('kms-data'), d.path('rescued'), { recursive: true });
  await holdsNone(d, [code.slice(20)], 'rescued');
  await rm(d.path('kms-data'), { recursive: true });
  await rm(d.path('kms-data.master.key'));
  is(await d.kms('keyring list --data rescued'), 4, /sealed|missing/);
  assert.equal((await d.kms('decrypt x --data rescued --key-file kit.txt')).stdout, 'hi');
  assert.equal((await d.kms('decrypt x --data rescued', { env: { KMS_MASTER_KEY: code } })).stdout, 'hi');
  await writeFile(d.path('typed'), code.toUpperCase().replace('KMS-RECOVERY-1', 'kms-recovery-1').replaceAll('0', 'O'));
  assert.equal((await d.kms('decrypt x --data rescued --key-file typed')).stdout, 'hi');
  await writeFile(
    d.path('slip'),
    code.replace(/.$/, (end) => (end === '0' ? '1' : '0')),
  );
  is(await d.kms('keyring list --data rescued --key-file slip'), 1, /the recovery code is mistyped/);
});

test('kit, backup and program alone bring everything back', async () => {
  await using d = await desk();
  await d.json('init --json --custodian passphrase --recovery-kit kit.txt', withPassphrase);
  await d.kms('keyring create r', withPassphrase);
  await d.kms('encrypt --ring r -o x', { stdin: 'hi', ...withPassphrase });
  assert.equal((await d.kms('backup create one.backup', withPassphrase)).code, 0);
  await rm(d.path('kms-data'), { recursive: true });
  is(await d.kms('restore one.backup --data again'), 4, /passphrase/);
  const restored = await d.kms('restore one.backup --data again --key-file kit.txt');
  assert.equal(restored.code, 0, restored.stderr);
  assert.ok(!(await readdir(d.path('.'))).includes('again.master.key'), 'no copy of the kit beside the data');
  assert.equal((await d.kms('decrypt x --data again --key-file kit.txt')).stdout, 'hi');
  assert.equal((await d.kms('activity verify --data again --key-file kit.txt')).code, 0);
});

test('a kit made later, its QR code, and its end', async () => {
  await using d = await desk();
  await d.json('init --json');
  const shown = await d.kms('recovery-kit', { tty: { stdout: true } });
  assert.match(shown.stdout, /^RECOVERY KIT/);
  assert.match(shown.stdout, /[▀▄█]{5}/, 'a QR code on the terminal');
  assert.ok(!/[▀▄█]/.test((await d.kms('recovery-kit')).stdout));
  await d.json('recovery-kit -o kit.txt --svg kit.svg --json');
  assert.match(await readFile(d.path('kit.svg'), 'utf8'), /^<svg /);
  is(await d.kms('recovery-kit -o kit.txt'), 1, /exists already/);
  assert.equal((await d.kms('keyring list --key-file kit.txt')).code, 0);
  const [, id = ''] = /^kit +(\S+)$/m.exec(await readFile(d.path('kit.txt'), 'utf8')) ?? [];
  assert.equal((await d.kms(['master', 'remove-custodian', id, '--yes'])).code, 0);
  is(await d.kms('keyring list --key-file kit.txt'), 1, /wrong master key file: needs .*, got /);
});

for (const [line, message] of [
  ['init --custodian shares', /--shares N and --threshold K/],
  ['init --custodian shares --shares 3 --threshold 4', /threshold from 2/],
  ['init --custodian shares --shares 3 --threshold 1', /threshold from 2/],
  ['init --custodian shares --shares 256 --threshold 2', /2 to 255 shares/],
  ['init --custodian keyfile --shares 3', /--shares goes with the custodian shares/],
  ['init --custodian passphrase --exec x', /--exec goes with the custodian exec/],
] as const) {
  test(`wrong usage, and nothing made: ${line}`, async () => {
    await using d = await desk();
    is(await d.kms(line), 2, message);
    assert.deepEqual(await readdir(d.dir), []);
  });
}
