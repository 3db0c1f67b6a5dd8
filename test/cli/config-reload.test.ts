// `kms serve --config` at SIGHUP: what is applied while it serves, what is said to need a restart, and that a wrong file
// changes nothing.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { until } from '../support/until.ts';
import { type Desk, desk } from './kms.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly applied?: readonly string[];
  readonly restart?: readonly string[];
}

interface Server {
  readonly url: string;
  /** Writes the file, sends SIGHUP, and waits for the next line of the log that is about it. */
  reread(text: string): Promise<Line>;
  log(): readonly Line[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** A server in a process of its own, since a signal is for all of one. */
async function configured(d: Desk, text: string, args: readonly string[] = []): Promise<Server> {
  await writeFile(d.path('kms.yaml'), text);
  const env = { PATH: process.env.PATH ?? '', HOME: d.dir };
  const command = ['--no-warnings', main, 'serve', '--config', 'kms.yaml', ...args];
  const child: ChildProcess = spawn(process.execPath, command, {
    cwd: d.dir,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr?.on('data', (chunk) => {
    output += chunk;
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const log = (): Line[] =>
    output
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
  const rereads = () => log().filter(({ msg }) => msg.startsWith('the configuration'));
  const url = await until(`it listens: ${output}`, () => /^kms: listening on (\S+)/m.exec(output)?.[1]);
  return {
    url,
    log,
    async reread(text) {
      const before = rereads().length;
      await writeFile(d.path('kms.yaml'), text);
      child.kill('SIGHUP');
      return until('the log says so', () => rereads()[before]);
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

const listening = 'listen: 127.0.0.1:0\n';

test('what can change while it serves is applied, in one line of the log; what needs a restart is named', async () => {
  await using d = await desk();
  await using server = await configured(d, listening, ['--body-limit', '9000']);
  const text = `${listening}accessTtl: 15m
activityRetention: 400d
activityTo: [streamed]
activityFrom: start
backupTo: copies
backupSchedule: 0 4 * * *
bodyLimit: 8192
crypto: noble
shipTo: shipped
tlsCert: cert.pem
tlsKey: key.pem
`;
  const said = await server.reread(text);
  const applied = ['backupTo', 'backupSchedule', 'activityRetention', 'activityTo', 'activityFrom', 'accessTtl'];
  const restart = ['tlsCert', 'tlsKey', 'crypto', 'shipTo'];
  assert.deepEqual([said.level, said.applied, said.restart], ['info', applied, restart]);
  assert.equal(
    said.msg,
    `the configuration was read again: applied ${applied.join(', ')}; a restart is needed for ${restart.join(', ')}`,
  );
  const status = await d.json('status --json');
  assert.deepEqual(status.activityRetention, { seconds: 400 * 86_400, waitingRecords: 0 });
  assert.deepEqual(
    // The shape is that of `kms status`.
    (status.activityTo as { to: string }[]).map(({ to }) => to),
    [d.path('streamed')],
  );
  const again = await server.reread(text);
  assert.deepEqual([again.applied, again.restart], [[], restart]);
  const back = await server.reread(listening);
  assert.deepEqual([back.applied, back.restart], [applied, []]);
  const after = await d.json('status --json');
  assert.deepEqual([after.activityRetention, after.activityTo], [undefined, []]);
});

test('limits of a body, clients of Tang and the level of the log', async () => {
  await using d = await desk();
  const file = (more: string) => `${listening}tangListen: 127.0.0.1:0\ndata: kms-data\n${more}`;
  await using server = await configured(d, file('bodyLimit: 4096\n'));
  const login = async (): Promise<number> => {
    const body = JSON.stringify({ email: 'x'.repeat(6000), password: 'y' });
    const headers = { 'content-type': 'application/json' };
    return (await fetch(`${server.url}/auth/basic/login`, { method: 'POST', body, headers })).status;
  };
  assert.equal(await login(), 413);
  assert.ok(!server.log().some(({ level }) => level === 'debug'));
  const said = await server.reread(file('bodyLimit: 65536\nlogLevel: debug\ntangAllow: [192.0.2.0/24]\n'));
  assert.deepEqual(said.applied, ['tangAllow', 'bodyLimit', 'logLevel']);
  assert.notEqual(await login(), 413);
  await fetch(`${server.url}/healthz`);
  await until('requests are in the log', () => server.log().some(({ level }) => level === 'debug'));
  const quiet = await server.reread(file('logLevel: silent\n'));
  assert.deepEqual(quiet.applied, ['tangAllow', 'bodyLimit', 'logLevel']);
  assert.notEqual(await login(), 413, 'the default is larger');
});

test('a file that is wrong changes nothing, and the log says why', async () => {
  await using d = await desk();
  await using server = await configured(d, `${listening}activityRetention: 400d\n`);
  const whys: readonly (readonly [text: string, why: string])[] = [
    [`${listening}activityRetention: 1h\nlogLevel: silent\n`, 'FILE:2: activityRetention: expected at least 1d'],
    [`${listening}logLevl: silent\n`, "FILE:2: unknown option 'logLevl'; did you mean logLevel?"],
    ['{', 'FILE:1: expected YAML: flow map must end with a }'],
    ['logLevel: silent\nactivityTo: [https://hooks.example]\n', '--activity-webhook-secret-file is missing'],
  ];
  for (const [text, why] of whys) {
    const { level, msg } = await server.reread(text);
    const [beginning, reason] = msg.replace(d.path('kms.yaml'), 'FILE').split('nothing was changed: ');
    assert.deepEqual([level, beginning], ['error', 'the configuration could not be read again, '], text);
    assert.ok(reason?.startsWith(why), msg);
  }
  assert.deepEqual((await d.json('status --json')).activityRetention, { seconds: 400 * 86_400, waitingRecords: 0 });
  assert.equal((await server.reread(`${listening}activityRetention: 500d\n`)).level, 'info');
});

test('another certificate by another name; one that cannot be used changes nothing else, either', async () => {
  await using d = await desk();
  for (const name of ['one', 'two']) {
    const { cert, key } = await selfSigned(['localhost'], 30, new Date());
    await writeFile(d.path(`${name}.pem`), cert);
    await writeFile(d.path(`${name}.key`), key, { mode: 0o600 });
  }
  const tls = (name: string, key = name) => `${listening}tlsCert: ${name}.pem\ntlsKey: ${key}.key\n`;
  await using server = await configured(d, tls('one'));
  const wrong = await server.reread(`${tls('two', 'one')}activityRetention: 400d\n`);
  assert.match(wrong.msg, /nothing was changed: .*one\.key/);
  assert.equal((await d.json('status --json')).activityRetention, undefined);
  assert.deepEqual((await server.reread(tls('two'))).applied, ['tlsCert', 'tlsKey']);
  const read = server.log().filter(({ msg }) => msg === 'the certificate was read again');
  assert.equal(read.length, 1);
});
