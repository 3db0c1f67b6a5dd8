// `kms upgrade` with the built executable, with good and bad new versions, and killed during every step: a good version
// serves, a bad one is rolled back with the data, and nothing acknowledged is lost.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gzip, tar } from '../../build/archives.ts';
import { toHex } from '../../src/crypto/bytes.ts';
import { ed25519PublicKey } from '../../src/crypto/ed25519.ts';
import { sha256 } from '../../src/crypto/fast-hash.ts';
import { formatKeyPair, minisign } from '../../src/crypto/minisign.ts';
import { type Step, steps } from '../../src/upgrade/journal.ts';
import { ownFormats, ownPlatform, type ReleaseManifest } from '../../src/upgrade/release.ts';
import { version } from '../../src/version.ts';
import { partOf } from '../support/effort.ts';
import { freePort } from '../support/free-port.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { asker, type Ended, executable, workDirectory } from './kms.ts';

const base = workDirectory();
const seed = new Uint8Array(32).fill(3);
const signer = { id: new Uint8Array(8).fill(4), seed, key: ed25519PublicKey(seed) };
const trusted = join(base, 'release.key.pub');
writeFileSync(trusted, formatKeyPair(signer).public);

const original = readFileSync(executable);

/** Makes a release in a directory of its own; returns the path of its executable. */
function release(name: string, bytes: Uint8Array, more: Partial<ReleaseManifest> = {}, by = signer): string {
  const dir = join(base, name);
  mkdirSync(dir);
  const files = [{ path: 'kms', bytes: bytes.length, sha256: toHex(sha256(bytes)) }];
  const manifest = { name: 'kms', version, platform: ownPlatform, formats: ownFormats, files, ...more };
  const text = Buffer.from(JSON.stringify(manifest));
  writeFileSync(join(dir, 'kms'), bytes, { mode: 0o755 });
  writeFileSync(join(dir, 'manifest.json'), text);
  writeFileSync(join(dir, 'manifest.json.minisig'), minisign(by, text, name));
  return join(dir, 'kms');
}

/** The same program in other bytes. */
const good = release('good', Buffer.concat([original, Buffer.from('\n')]));

/**
 * A platform's program that poses as a new version. Its code can use `data`, the data directory, which no option names.
 */
const pretend = (name: string, code: string): string =>
  release(
    name,
    Buffer.from(
      `#!${process.execPath}\nconst fs = require('node:fs'), http = require('node:http');\n` +
        `const data = process.cwd() + '/kms-data';\n${code}\n`,
    ),
  );
const answering = (status: object, decrypted: object): string =>
  `http.createServer((request, response) => response.end(JSON.stringify(request.url === '/local/status' ? ` +
  `${JSON.stringify(status)} : ${JSON.stringify(decrypted)}))).listen(data + '/kms.sock');`;

const bad: readonly (readonly [what: string, file: string, reason: RegExp])[] = [
  ['ends at once', pretend('ends', `console.error('kms: no'); process.exit(1);`), /it ended with 1: kms: no/],
  [
    'cannot open the data',
    release('closed', Buffer.from(`#!/bin/sh\nexec ${executable} "$@" --key-file /dev/null\n`)),
    /it ended with 1: kms: .*\/dev\/null/,
  ],
  ['is another version', pretend('other', answering({ version: '0.0.1', sealed: false }, {})), /found 0\.0\.1/],
  ['decrypts wrongly', pretend('lies', answering({ version, sealed: false }, { key: 1 })), /to something other/],
  [
    'spoils the data and hangs',
    pretend(
      'spoils',
      `fs.rmSync(data + '/tenants', { recursive: true }); fs.writeFileSync(data + '/kms.seal', 'x');
       fs.writeFileSync(data + '/more', 'x'); setInterval(() => {}, 1000);`,
    ),
    /does not serve within the time limit/,
  ],
  [
    'never answers',
    pretend('silent', `http.createServer(() => {}).listen(data + '/kms.sock'); process.on('SIGTERM', () => {});`),
    /does not serve within the time limit/,
  ],
];

interface Place {
  readonly dir: string;
  readonly kms: string;
  readonly data: string;
  run(args: readonly string[], options?: { readonly kms?: string }): Promise<Ended>;
  begin(args: readonly string[]): ChildProcess;
}

/** A hanging new version may outlive a killed upgrade: processes started in here end with the tests. */
after(() => {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    let line = '';
    try {
      line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {}
    if (line.includes(`${base}/place-`)) process.kill(Number(pid), 'SIGKILL');
  }
});

let places = 0;
/** `store`: URL of a database for several nodes; the directory is then that of one of them. */
async function place(store?: string): Promise<Place> {
  const dir = join(base, `place-${++places}`);
  mkdirSync(dir);
  const kms = join(dir, 'kms');
  linkSync(await sameDisk(), kms);
  const data = join(dir, 'kms-data');
  const own = { PATH: process.env.PATH, HOME: dir, XDG_CONFIG_HOME: join(dir, 'config') };
  const env = { ...own, ...(store !== undefined && { KMS_STORE: store }) };
  const begin = (args: readonly string[], program = kms): ChildProcess =>
    spawn(program, args, { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const made: Place = {
    dir,
    kms,
    data,
    begin,
    run: (args, options) => ended(begin(args, options?.kms)),
  };
  assert.equal((await made.run(['init'])).code, 0);
  assert.equal((await made.run(['keyring', 'create', 'payroll'])).code, 0);
  writeFileSync(join(dir, 'plain'), 'a secret');
  assert.equal((await made.run(['encrypt', '--ring', 'payroll', '-o', 'secret', 'plain'])).code, 0);
  return made;
}

/** A copy of the executable in the tests' directory, where hard links to it can be made. */
async function sameDisk(): Promise<string> {
  const path = join(base, 'old-kms');
  if (!existsSync(path)) {
    copyFileSync(executable, path);
    chmodSync(path, 0o755);
  }
  return path;
}

function ended(child: ChildProcess): Promise<Ended> {
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (text) => {
    stdout += text;
  });
  child.stderr?.on('data', (text) => {
    stderr += text;
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

const upgradeWith = (file: string): string[] => ['upgrade', file, '--trusted-key', trusted, '--time-limit', '20s'];

/** Checks that one executable and its data are there, work together, and nothing else is left. */
async function assertWorks({ dir, kms, data, run }: Place, bytes: Uint8Array, what: string): Promise<void> {
  assert.ok(readFileSync(kms).equals(bytes), what);
  const { code, stdout, stderr } = await run(['decrypt', 'secret']);
  assert.deepEqual([code, stdout], [0, 'a secret'], `${what}: ${stderr}`);
  const left = readdirSync(data).filter((name) => /upgrade$|upgrade\.tmp$|^more$/.test(name));
  assert.deepEqual(left, [], what);
  assert.deepEqual(
    readdirSync(dir).filter((name) => /^kms\./.test(name) && name !== 'kms.previous'),
    [],
    what,
  );
}

test('a good version, from a tarball, where no server runs', async () => {
  const here = await place();
  const names = ['kms', 'manifest.json', 'manifest.json.minisig'];
  const entries = names.map((name) => ({ path: name, mode: 0o755, bytes: readFileSync(join(base, 'good', name)) }));
  const tarball = join(here.dir, 'kms-release.tar.gz');
  writeFileSync(tarball, gzip(tar(entries, 0, 'kms-release/')));
  const { code, stdout, stderr } = await here.run([...upgradeWith(tarball), '--json']);
  assert.equal(code, 0, stderr);
  const { outcome, backup } = JSON.parse(stdout);
  assert.equal(outcome, 'upgraded');
  await assertWorks(here, readFileSync(good), 'the good one');
  assert.ok(readFileSync(join(here.dir, 'kms.previous')).equals(original));
  assert.equal(statSync(here.kms).mode & 0o777, 0o755);
  assert.equal((await here.run(['backup', 'verify', join(here.data, backup)])).code, 0);
  assert.equal((await here.run(['doctor', '--json'])).stdout.includes('unknown-file'), false);
  const again = await here.run(upgradeWith(tarball));
  assert.match(again.stdout, /^outcome +unchanged$/m);
  assert.equal((await here.run(['upgrade', '--resume'])).stderr, 'kms: no upgrade was cut off: nothing to do\n');
  assert.match((await here.run(['upgrade', '--status'])).stdout, /^upgrade +none is under way$/m);
});

for (const [what, file, reason] of bad) {
  test(`a version that ${what} is taken back`, async () => {
    const here = await place();
    const before = contentOf(here.data);
    const limit = /time limit/.test(reason.source) ? '3s' : '20s';
    const { code, stderr } = await here.run(['upgrade', file, '--trusted-key', trusted, '--time-limit', limit]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, reason);
    assert.match(
      stderr,
      new RegExp(`kms: went back to version ${version.replaceAll('.', '\\.')}: .*; nothing that was`),
    );
    await assertWorks(here, original, what);
    // Data that the former version wrote after the rollback may be newer; nothing is missing.
    for (const name of before) assert.ok(contentOf(here.data).includes(name), name);
  });
}

function contentOf(data: string): string[] {
  const passing = /kms\.(pid|sock)$|log-|snapshot-/;
  return (readdirSync(data, { recursive: true }) as string[]).filter((name) => !passing.test(name));
}

test('what is refused changes nothing', async () => {
  const here = await place();
  const other = { ...signer, seed: new Uint8Array(32).fill(9), key: ed25519PublicKey(new Uint8Array(32).fill(9)) };
  const formats = Object.fromEntries(Object.entries(ownFormats).map(([name, format]) => [name, format - 1]));
  const table: readonly (readonly [args: readonly string[], code: number, words: RegExp])[] = [
    [['upgrade'], 2, /FILE is missing/],
    [['upgrade', good], 2, /--trusted-key is missing/],
    [['upgrade', good, '--resume'], 2, /--resume takes no FILE/],
    [[...upgradeWith(good), '--stop', 'true'], 2, /--stop and --start go together/],
    [[...upgradeWith(good), '--data', 'nowhere'], 3, /there is no data directory here/],
    [['upgrade', good, '--trusted-key', 'plain'], 1, /expected a public key of minisign/],
    [upgradeWith(release('stranger', Buffer.from('x'), {}, other)), 1, /the signature does not match/],
    [
      upgradeWith(release('older', Buffer.from('x'), { version: '0.0.9', formats })),
      1,
      /version 0\.0\.9 reads the seal up/,
    ],
    [
      upgradeWith(release('former', Buffer.from('x'), { version: '0.0.9' })),
      1,
      /version 0\.0\.9 is older than .*--allow-downgrade accepts it/,
    ],
    [upgradeWith(release('vax', Buffer.from('x'), { platform: 'linux-vax' })), 1, /is for linux-vax/],
    [upgradeWith('missing.tar.gz'), 1, /there is no such file/],
  ];
  for (const [args, code, words] of table) {
    const ran = await here.run(args);
    assert.equal(ran.code, code, ran.stderr);
    assert.match(ran.stderr.trimEnd().split('\n').at(-1) ?? '', words);
  }
  await assertWorks(here, original, 'nothing was changed');
  assert.equal(existsSync(join(here.dir, 'kms.previous')), false);
});

for (const [file, name] of [
  [good, 'a good version'],
  [bad[4]?.[1] ?? '', 'a version that spoils the data and hangs'],
] as const) {
  test(`${name}, under a supervisor, while clients write: nothing that was acknowledged is lost`, async () => {
    const here = await place();
    const { apiKey } = await newKey(here);
    const port = await freePort();
    const start = `setsid -f ${here.kms} serve --data ${here.data} --listen 127.0.0.1:${port} >>${here.dir}/log 2>&1`;
    const stop = `kill $(cat ${here.data}/kms.pid); rm -f ${here.data}/kms.sock`;
    execFileSync('/bin/sh', ['-c', start]);
    after(() => execFileSync('/bin/sh', ['-c', `${stop}`], { stdio: 'ignore' }));
    const url = `http://127.0.0.1:${port}`;
    await until('the server answers', () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    const refused = await here.run(upgradeWith(file));
    assert.deepEqual([refused.code, /say how with --stop and --start/.test(refused.stderr)], [2, true], refused.stderr);

    const ask = asker(apiKey);
    const acknowledged: string[] = [];
    const statuses = new Set<number>();
    let isOver = false;
    const writing = (async () => {
      for (let n = 0; !isOver; n++) {
        const ringname = `ring-${n}`;
        const answer = await ask(`${url}/ks/keyrings`, 'POST', { name: ringname }).catch(() => undefined);
        if (answer) statuses.add(answer.status);
        if (answer?.ok) acknowledged.push(ringname);
        await delay(20);
      }
    })();
    const { code, stderr } = await here.run([
      ...['upgrade', file, '--trusted-key', trusted, '--time-limit', file === good ? '30s' : '3s'],
      ...['--stop', stop, '--start', start],
    ]);
    const served = until(
      'clients are served again',
      async () => (await ask(`${url}/ks/keyrings`, 'GET').catch(() => undefined))?.ok,
    );
    await served.finally(() => {
      isOver = true;
    });
    await writing;
    assert.equal(code, file === good ? 0 : 1, stderr);
    assert.ok(acknowledged.length > 0);
    assert.ok(statuses.has(503), `nobody was held off: ${[...statuses]}`);
    const { stdout } = await here.run(['keyring', 'list', '--json']);
    const names = new Set(JSON.parse(stdout).data.map((ring: { name: string }) => ring.name));
    assert.deepEqual(
      acknowledged.filter((ring) => !names.has(ring)),
      [],
    );
    await assertWorks(here, file === good ? readFileSync(good) : original, name);
    execFileSync('/bin/sh', ['-c', stop]);
  });
}

async function newKey({ run }: Place): Promise<{ apiKey: string }> {
  const made = await run(['apikey', 'create', '--account', 'admin', '--flag', '*', '--json']);
  assert.equal(made.code, 0, made.stderr);
  return { apiKey: JSON.parse(made.stdout).key };
}

/** Kills the upgrade as soon as its journal shows the step; returns false if it was too fast. */
async function killedAt({ begin, data }: Place, step: Step, file: string): Promise<boolean> {
  const upgrade = begin(['upgrade', file, '--trusted-key', trusted, '--time-limit', '3s']);
  const over = ended(upgrade);
  let isOver = false;
  void over.then(() => {
    isOver = true;
  });
  const wanted = `"step": "${step}"`;
  while (!isOver) {
    let text = '';
    try {
      text = readFileSync(join(data, 'kms.upgrade'), 'utf8');
    } catch {}
    if (text.includes(wanted)) {
      upgrade.kill('SIGKILL');
      await over;
      return true;
    }
    await delay(1);
  }
  return false;
}

/**
 * Kills an upgrade in the step, and checks that the next run resumes and leaves a working state. `look` runs in
 * between.
 */
async function goesOnFrom(step: Step, here: Place, look = async () => {}): Promise<void> {
  const file = steps[step].back ? (bad[4]?.[1] ?? '') : good;
  let isKilled = false;
  for (let tries = 0; tries < 5 && !isKilled; tries++) {
    if (tries > 0) {
      rmSync(here.kms);
      linkSync(await sameDisk(), here.kms);
    }
    isKilled = await killedAt(here, step, file);
  }
  assert.ok(isKilled, 'the step was never seen');
  await look();
  const runner = existsSync(join(here.dir, 'kms.previous')) ? join(here.dir, 'kms.previous') : here.kms;
  const resumed = await here.run(['upgrade', '--resume', '--data', here.data, '--time-limit', '20s'], { kms: runner });
  const passed = step === 'passed';
  assert.equal(resumed.code, passed ? 0 : 1, resumed.stderr);
  await assertWorks(here, passed ? readFileSync(good) : original, step);
}

for (const step of partOf(Object.keys(steps) as Step[], 3)) {
  test(`killed in the step ${step}, the next run finds a state that works`, async () => {
    const here = await place();
    await goesOnFrom(step, here, async () => {
      const shown = await here.run(['upgrade', '--status', '--json'], { kms: executable });
      assert.equal(JSON.parse(shown.stdout).upgrading, true);
    });
  });
}

test('a file that is changed while it is used, and one that grows beside the data', async () => {
  const here = await place();
  const file = join(here.dir, 'changing');
  mkdirSync(file);
  for (const name of ['kms', 'manifest.json', 'manifest.json.minisig']) {
    copyFileSync(join(base, 'good', name), join(file, name));
  }
  const upgrade = here.begin(upgradeWith(join(file, 'kms')));
  const over = ended(upgrade);
  await until('the upgrade began', async () => existsSync(join(here.data, 'kms.upgrade')));
  appendFileSync(join(file, 'kms'), 'changed');
  writeFileSync(join(file, 'manifest.json'), '{}');
  const { code, stderr } = await over;
  assert.equal(code, 0, stderr);
  await assertWorks(here, readFileSync(good), 'what was verified is what is there');
});

const programs = postgresPrograms();
const postgres = programs === undefined ? undefined : new Postgres(programs);
after(() => postgres?.end());

/** A node of an appliance that is in a database of its own. */
async function node(): Promise<Place & { readonly store: string }> {
  assert.ok(postgres);
  const store = postgres.newDatabase();
  return { ...(await place(store)), store };
}

if (!postgres) {
  test('a node is upgraded', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  test('a node is upgraded while another one serves: its executable alone, without a backup', async () => {
    const here = await node();
    const { apiKey } = await newKey(here);
    const other = join(here.dir, 'other');
    copyFileSync(`${here.data}.master.key`, `${other}.master.key`);
    const port = await freePort();
    const serving = spawn(executable, ['serve', '--data', other, '--listen', `127.0.0.1:${port}`], {
      env: { ...process.env, KMS_STORE: here.store },
      stdio: 'ignore',
    });
    after(() => serving.kill('SIGKILL'));
    const url = `http://127.0.0.1:${port}`;
    const ask = asker(apiKey);
    await until('the other node serves', async () => (await ask(`${url}/readyz`, 'GET').catch(() => undefined))?.ok);
    const statuses = new Set<number>();
    let isOver = false;
    const asking = (async () => {
      for (let n = 0; !isOver; n++) {
        statuses.add((await ask(`${url}/ks/keyrings`, 'POST', { name: `ring-${n}` })).status);
        await delay(20);
      }
    })();
    const { code, stdout, stderr } = await here.run([...upgradeWith(good), '--json']);
    isOver = true;
    await asking;
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), { upgrading: false, outcome: 'upgraded', version });
    assert.deepEqual([...statuses], [200], 'the other one went on');
    await assertWorks(here, readFileSync(good), 'the node');
    assert.deepEqual(
      readdirSync(here.data).filter((name) => /backup|before/.test(name)),
      [],
    );
    const verified = await here.run(['activity', 'verify']);
    assert.equal(verified.code, 0, verified.stderr);
  });

  test('what a node refuses: no word of its database, and a version that writes what the others cannot read', async () => {
    const here = await node();
    const formats = Object.fromEntries(Object.entries(ownFormats).map(([name, format]) => [name, format + 1]));
    const file = release('newer-format', Buffer.from('x'), { formats });
    const newer = await here.run(upgradeWith(file));
    assert.equal(newer.code, 1);
    assert.match(
      newer.stderr,
      /writes the seal in format \d+, .*the other nodes cannot read what it writes in the database; stop one node after the other/,
    );
    const child = spawn(here.kms, upgradeWith(good), { cwd: here.dir, env: { HOME: here.dir } });
    const blind = await ended(child);
    assert.equal(blind.code, 1);
    assert.match(blind.stderr, /is the directory of a node, whose appliance is in a database; name the database/);
    await assertWorks(here, original, 'nothing was changed');
  });

  for (const [what, file, reason] of bad.filter((_, at) => at === 0 || at === 3 || at === 4)) {
    test(`a version that ${what} is taken back from a node`, async () => {
      const here = await node();
      const { code, stderr } = await here.run(['upgrade', file, '--trusted-key', trusted, '--time-limit', '10s']);
      assert.equal(code, 1, stderr);
      if (!/time limit/.test(reason.source)) assert.match(stderr, reason);
      assert.match(stderr, /went back to version .*; nothing that was acknowledged is lost\n/);
      await assertWorks(here, original, what);
    });
  }

  const stepsOfNode = [
    'staging',
    'stopping',
    'copying',
    'swapping',
    'trying',
    'passed',
    'clearing',
    'swapping-back',
  ] as const;
  for (const step of partOf(stepsOfNode, 3)) {
    test(`of a node killed in the step ${step}, the next run finds a state that works`, async () => {
      await goesOnFrom(step, await node());
    });
  }
}
