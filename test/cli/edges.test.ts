// Hostile surroundings: a deleted working directory, no home, full disks, names that are no text, unknown certificates,
// and signals.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, constants, openSync, readdirSync, writeSync } from 'node:fs';
import { readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { createServer } from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Io } from '../../src/cli/io.ts';
import { runCli } from '../../src/cli/run.ts';
import { readPrivateKeys } from '../../src/client/ring-keys.ts';
import { KmsError } from '../../src/errors.ts';
import { authority } from '../support/certificates.ts';
import { certificate, privateKey } from '../support/localhost-certificate.ts';
import { smallDisks } from '../support/small-disk.ts';
import { until } from '../support/until.ts';
import { type Desk, desk } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/** The command as a process of its own; a shell runs `before` first. */
function typed(d: Desk, line: string, before = ''): ChildProcess & Readable {
  const command = `${before} exec "${process.execPath}" --no-warnings "${main}" ${line}`;
  const env = { PATH: process.env.PATH ?? '', HOME: d.dir };
  return spawn('/bin/bash', ['-c', command], { cwd: d.dir, env, stdio: ['pipe', 'pipe', 'pipe'] }) as ChildProcess &
    Readable;
}

/** Streams that exist because of `stdio` above. */
interface Readable {
  readonly stdout: NodeJS.ReadableStream;
  readonly stderr: NodeJS.ReadableStream;
  readonly stdin: NodeJS.WritableStream;
}

async function ended(child: ChildProcess & Readable): Promise<[code: number | null, stdout: string, stderr: string]> {
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return [await exit, stdout, stderr];
}

test('in a directory that is gone, what needs it says so and nothing else minds', async () => {
  await using d = await desk();
  await d.json('init --json');
  const gone = 'mkdir gone && cd gone && rmdir ../gone &&';
  assert.deepEqual(await ended(typed(d, 'keyring list', gone)), [
    1,
    '',
    'kms: the directory in which this was typed is gone; change to one that is there\n',
  ]);
  const data = d.path('kms-data');
  const [code, stdout, stderr] = await ended(typed(d, `keyring list --json --data ${data}`, gone));
  assert.deepEqual([code, JSON.parse(stdout).data, stderr], [0, [], '']);
  assert.match((await ended(typed(d, '--version', gone))).join(), /^0,\d+\.\d+\.\d+\n,$/);
});

test('a user without a home directory needs none', async () => {
  await using d = await servedDesk();
  let said = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      said += chunk;
      done();
    },
  });
  const { args, env } = d.network();
  const io = (line: string): Io => ({
    args: [...args, ...line.split(' ')],
    env,
    cwd: d.dir,
    get home(): string {
      throw new KmsError('refused', 'this user has no home directory');
    },
    stdin: Object.assign(new PassThrough(), { isTTY: false }),
    stdout: sink,
    stderr: sink,
    signal: new AbortController().signal,
  });
  assert.equal(await runCli(io('keyring create r --private-key-out r.key')), 0);
  assert.equal(await runCli(io('encrypt --ring r --private-key r.key -o out r.key')), 0);
  said = '';
  assert.equal(await runCli(io('encrypt --ring r r.key')), 1);
  assert.match(said, /^kms: this user has no home directory; [^\n]*--private-key[^\n]*\n$/);
});

test('a home that is nowhere is none: no key is put where one happens to be', async () => {
  await using d = await desk();
  await d.json('init --json');
  for (const home of ["''", 'relative']) {
    const [code, stdout, stderr] = await ended(typed(d, 'keyring create r', `HOME=${home}`));
    assert.deepEqual([code, stdout], [1, ''], home);
    assert.match(stderr, /^kms: this user has no home directory; [^\n]+\n$/);
    assert.deepEqual((await readdir(d.dir)).sort(), ['kms-data', 'kms-data.master.key']);
  }
  assert.deepEqual((await d.json('keyring list --json')).data, []);
});

test('a secret in the place of a file name or a command is not repeated', async () => {
  await using d = await desk();
  const words = 'a'.repeat(43);
  const pem = `-----BEGIN PRIVATE KEY-----\n${words}\n-----END PRIVATE KEY-----`;
  const lines: readonly (readonly string[])[] = [
    [`kms_${words}123456`],
    [`--kms_${words}123456`],
    ['keyring', 'list', '--server', 'http://127.0.0.1:1', '--api-key-file', `kms_${words}123456`],
    ['decrypt', `kmsat_${words}`],
    ['encrypt', '--ring', 'r', '--private-key', pem],
    ['decrypt', pem],
    ['decrypt', `MC4CAQAwBQYDK2VuBCIEI${words}`],
  ];
  for (const line of lines) {
    const { code, stderr } = await d.kms(line, { stdin: '' });
    assert.notEqual(code, 0, line.join(' '));
    assert.match(stderr, /^kms: .*…/, line.join(' '));
    assert.doesNotMatch(stderr, /aaa/, line.join(' '));
  }
});

test("an answer that is no appliance's is not taken for one, and no redirect is followed", async () => {
  await using d = await desk();
  const paths: string[] = [];
  const server = http.createServer((request, response) => {
    const path = request.url ?? '';
    paths.push(path);
    if (path.startsWith('/moved')) response.writeHead(302, { location: '/elsewhere' }).end();
    else if (path.startsWith('/page')) response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Log in</h1>');
    else response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const place of ['moved', 'page', 'object']) {
      for (const command of ['status', 'metrics']) {
        const ran = await d.kms([command, '--server', `${url}/${place}`], { env: { KMS_API_KEY: 'kms_x' } });
        assert.deepEqual([ran.code, ran.stdout], [3, ''], `${place} ${command}`);
      }
    }
    assert.ok(!paths.includes('/elsewhere'));
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test('the exit code is that of the failure, whether stderr can be written or not', async () => {
  await using d = await desk();
  for (const [line, code] of [
    ['nothing', 2],
    ['keyring delete r', 2],
    ['keyring list --data nowhere', 3],
  ] as const) {
    assert.equal((await ended(typed(d, `${line} </dev/null 2>/dev/full`)))[0], code, line);
  }
});

test('what cannot be written to stdout is said on stderr', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('keyring create r --json --private-key-out r.key');
  for (const line of ['keyring list', 'keyring list --json', '--help', 'encrypt --ring r --private-key r.key']) {
    const ran = typed(d, `${line} </dev/null >/dev/full`);
    assert.deepEqual(await ended(ran), [1, '', 'kms: cannot write to stdout: the disk is full\n'], line);
  }
});

test('what is to be written to a stdout that is closed is not done, and who throws it away on purpose may', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('keyring create r --json --private-key-out r.key');
  await writeFile(d.path('plain'), 'text');
  await d.kms('encrypt --ring r --private-key r.key -o sealed plain');
  const closed = 'kms: cannot write to stdout: it is closed, or /dev/null opened for reading too; ';
  for (const line of [
    'decrypt --private-key r.key sealed',
    'encrypt --ring r --private-key r.key plain',
    'activity export',
    'backup create -',
    'key decrypt t sealed',
    'tofu-key --ring r --private-key r.key',
  ]) {
    const [code, stdout, stderr] = await ended(typed(d, `${line} </dev/null >&-`));
    assert.deepEqual([code, stdout, stderr.slice(0, closed.length)], [1, '', closed], line);
  }
  const [code, , stderr] = await ended(typed(d, 'decrypt --private-key r.key sealed >/dev/null'));
  assert.deepEqual([code, stderr], [0, '']);
});

test('a secret that cannot be shown is told of with what is there without it, and no custodian stays that nobody holds', async () => {
  await using d = await desk();
  const lost = async (line: string, said: RegExp): Promise<void> => {
    const [code, stdout, stderr] = await ended(typed(d, `${line} </dev/null >/dev/full`));
    assert.deepEqual([code, stdout], [1, ''], line);
    assert.match(stderr.split('\n').at(-2) ?? '', said, line);
  };
  const full = 'kms: cannot write to stdout: the disk is full';
  await lost(
    'init --data shared --custodian shares --shares 3 --threshold 2',
    new RegExp(`^${full}; the appliance in \\S+/shared was made, but what opens it is lost; remove \\S+/shared and`),
  );
  await lost(
    'init --data one',
    new RegExp(
      `^${full}; the appliance in \\S+/one was made, but its root API key is lost; revoke it and make another`,
    ),
  );
  const { accountId } = await d.json('init --json');
  await lost(
    `apikey create --account ${accountId} --flag keyring.list`,
    new RegExp(`^${full}; the API key (\\S+) was made, and its secret is lost; kms apikey revoke`),
  );
  await lost(
    'user create ada --email ada@example.com --first-name A --last-name B',
    new RegExp(`^${full}; the user ada was made, but the password is lost; .* reset-link ada`),
  );
  await lost(
    'user invite bo --email bo@example.com --first-name A --last-name B',
    new RegExp(`^${full}; the user bo was made, but the link is lost; .* delete bo`),
  );
  // A keyring's private key must not be lost: it is stored before anything is shown.
  for (const [group, json] of [
    ['keyring', ''],
    ['keyring', ' --json'],
    ['asym', ''],
    ['asym', ' --json'],
  ] as const) {
    const name = `${group}${json.trim()}`;
    const keyFile = d.path(`${name}.pem`);
    await lost(
      `${group} create ${name} --private-key-out ${keyFile}${json}`,
      new RegExp(
        `^${full}; the ring ${name} was made, and its private key is in \\S+/${name}\\.pem; keep a copy of it safe$`,
      ),
    );
    assert.equal(readPrivateKeys(await readFile(keyFile, 'utf8'), keyFile).length, 1);
  }
  // A reader that goes away at once.
  const gone = typed(d, `keyring create gone --private-key-out gone.pem </dev/null | true`, 'set -o pipefail;');
  const [code, , stderr] = await ended(gone);
  if (code !== 0)
    assert.match(stderr, /^kms: nobody reads the output; the ring gone was made, and its private key is in/m);
  assert.equal(readPrivateKeys(await readFile(d.path('gone.pem'), 'utf8'), 'it').length, 1);
  assert.deepEqual(
    (await readdir(d.dir)).filter((name) => name.endsWith('.tmp')),
    [],
  );
  await lost(
    'tenant create t --host t.test',
    new RegExp(`^${full}; the tenant t was made, but its root API key is lost; `),
  );
  const before = await d.json('master list --json');
  const none = new RegExp(`^${full}; no custodian was added$`);
  await lost('recovery-kit', none);
  await lost('recovery-kit --json', none);
  await lost('master add-custodian shares --shares 3 --threshold 2', none);
  await lost('master add-custodian env', none);
  assert.deepEqual(
    (await d.kms('recovery-kit -o kit.txt --svg kit.txt')).stderr,
    'kms: the kit and its picture cannot be the same file\n',
  );
  assert.deepEqual(await d.json('master list --json'), before);
});

for (const { kind, mount } of smallDisks(1)) {
  test(`a custodian for which the disk has no room leaves nothing: ${kind}`, async () => {
    await using d = await desk();
    const disk = mount();
    try {
      await d.json('init --json');
      const before = await d.json('master list --json');
      const fill = openSync(join(disk.path, 'fill'), 'w');
      for (const length of [4096, 64]) {
        assert.throws(() => {
          for (;;) writeSync(fill, new Uint8Array(length));
        }, /ENOSPC/);
      }
      closeSync(fill);
      const names = readdirSync(disk.path);
      for (const line of ['recovery-kit -o DISK/kit.txt', 'master add-custodian keyfile --file DISK/own.key']) {
        const { code, stderr } = await d.kms(line.replace('DISK', disk.path));
        assert.equal(code, 1);
        assert.match(stderr, /(?:kit\.txt|own\.key): the disk is full[;\n]/, line);
        assert.deepEqual(await d.json('master list --json'), before);
        assert.deepEqual(readdirSync(disk.path), names, line);
      }
    } finally {
      disk.unmount();
    }
  });
}

test('what is typed, or in the environment, and is not UTF-8 is refused: nothing else is made or asked in its place', async () => {
  await using d = await desk();
  await d.json('init --json');
  const umlaut = "$'J\\xf6rg'";
  // An account's uid, a path, free text, JSON, and such bytes in a variable.
  for (const [line, what, before = ''] of [
    [`account create ${umlaut}`, 'argument 3: expected UTF-8, got "J\\\\xf6rg"'],
    [`account create $'a\\xff'`, 'argument 3: expected UTF-8, got "a\\\\xff"'],
    [`account create $'\\xed\\xa0\\x80'`, 'argument 3: expected UTF-8, got "\\\\xed\\\\xa0\\\\x80"'],
    [`init --data ${umlaut}`, 'argument 3: expected UTF-8'],
    [`keyring create r --private-key-out ${umlaut}`, 'argument 5: expected UTF-8'],
    [`backup create ${umlaut}`, 'argument 3: expected UTF-8'],
    [`tls self-signed --out ${umlaut}`, 'argument 4: expected UTF-8'],
    [`serve --data ${umlaut}`, 'argument 3: expected UTF-8'],
    [`encrypt --ring r --asset-data $'{"a":"\\xe4"}' kms-data`, 'argument 5: expected UTF-8, got "{"a":"\\\\xe4"}"'],
    ['init', 'the variable KMS_DATA: expected UTF-8, got "J\\\\xf6rg"', `KMS_DATA=${umlaut}`],
    ['status', 'the variable KMS_PASSPHRASE: expected UTF-8;', `KMS_PASSPHRASE=${umlaut}`],
  ] as const) {
    const [code, stdout, stderr] = await ended(typed(d, line, before));
    assert.deepEqual([code, stdout], [2, ''], `${line}: ${stderr}`);
    assert.match(stderr, new RegExp(`^kms: ${what.replaceAll('{', '\\{')}[^\n]*\n$`), line);
  }
  assert.deepEqual((await readdir(d.dir)).sort(), ['kms-data', 'kms-data.master.key']);
  assert.equal((await d.json<{ data: unknown[] }>('account list --json')).data.length, 1);
});

test('in a directory, or with a home, whose name is not UTF-8, nothing is made elsewhere', async () => {
  await using d = await desk();
  await d.json('init --json');
  const data = d.path('kms-data');
  const inside = "mkdir -p $'d\\xf6' && cd $'d\\xf6' &&";
  for (const [line, what, before] of [
    ['init', 'the directory in which this was typed', inside],
    ['serve --listen 127.0.0.1:0', 'the directory in which this was typed', inside],
    ['tls self-signed --host a', 'the directory in which this was typed', inside],
    [`backup create x --data ${data}`, 'the directory in which this was typed', inside],
    [`keyring create r --private-key-out x --data ${data}`, 'the directory in which this was typed', inside],
    [`keyring create r --data ${data}`, 'the home directory', "HOME=$PWD/$'h\\xf6'"],
    [`profile add p --server http://127.0.0.1:9`, 'the home directory', "HOME=$PWD/$'h\\xf6'"],
    [`keyring create r --data ${data}`, '(?:expected a path in UTF-8)', "XDG_CONFIG_HOME=$PWD/$'h\\xf6'"],
  ] as const) {
    const [code, stdout, stderr] = await ended(typed(d, line, before));
    assert.deepEqual([code, stdout], [2, ''], `${line}: ${stderr}`);
    assert.match(stderr, new RegExp(`^kms: ${what}[^\n]*\n$`), line);
  }
  // A command that needs neither works.
  const [code] = await ended(typed(d, `keyring list --data ${data}`, `${inside} HOME=$PWD`));
  assert.equal(code, 0);
  const names = await readdir(d.dir, { encoding: 'latin1' });
  assert.deepEqual(names.sort(), ['d\xf6', 'kms-data', 'kms-data.master.key']);
  assert.deepEqual((await d.json<{ data: unknown[] }>('keyring list --json')).data, []);
});

test('the character that stands for what is no text may be typed as what it is', async () => {
  await using d = await desk();
  await d.json('init --json');
  const [code, , stderr] = await ended(typed(d, "account create $'a\\xef\\xbf\\xbd'"));
  assert.deepEqual([code, stderr], [0, '']);
});

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  test(`${signal} ends an encrypt with ${code}, one line, and nothing left behind`, async () => {
    await using d = await desk();
    await d.json('init --json');
    await d.json('keyring create r --json --private-key-out r.key');
    const before = await readdir(d.dir);
    const child = typed(d, 'encrypt --ring r --private-key r.key -o out.kms');
    const end = ended(child);
    // Input that the ended process no longer reads may fail.
    child.stdin.on('error', () => undefined);
    child.stdin.write(Buffer.alloc(3 << 20));
    while (!(await readdir(d.dir)).some((name) => name.endsWith('.tmp'))) await setTimeout(10);
    child.kill(signal);
    assert.deepEqual(await end, [code, '', 'kms: interrupted; nothing was left behind\n']);
    const made = (await readdir(d.dir)).filter((name) => !before.includes(name) && name !== '.local');
    assert.deepEqual(made, []);
  });
}

/** Whether the process waits for input on the descriptor. */
async function waitsFor(pid: number, descriptor: number): Promise<boolean> {
  const dir = `/proc/${pid}/fdinfo`;
  const infos = await Promise.all(
    (await readdir(dir)).map((name) => readFile(`${dir}/${name}`, 'utf8').catch(() => '')),
  );
  return infos.some((info) => new RegExp(`^tfd: +${descriptor} `, 'm').test(info));
}

test('a signal ends a command that waits for stdin', async () => {
  await using d = await desk();
  const child = typed(d, 'apikey validate');
  const end = ended(child);
  await until('it waits for stdin', () => waitsFor(child.pid ?? 0, 0));
  child.kill('SIGTERM');
  assert.deepEqual(await end, [143, '', 'kms: interrupted\n']);
});

/** A desk with two named pipes whose other ends are not open. */
async function pipesDesk(): Promise<Desk> {
  const d = await desk();
  await d.json('init --json');
  await d.json('keyring create r --json --private-key-out r.key');
  execFileSync('mkfifo', [d.path('in'), d.path('out')]);
  return d;
}

/** The writing end of a pipe, once it has a reader. */
function writingEnd(path: string): Promise<number> {
  return until('somebody reads it', () => {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      return undefined;
    }
  });
}

test('a signal ends a command that waits for the other end of a pipe', async () => {
  await using d = await pipesDesk();
  const before = await readdir(d.dir);
  for (const output of ['out.kms', 'out']) {
    const child = typed(d, `encrypt --ring r --private-key r.key -o ${output} in`);
    const end = ended(child);
    const descriptor = await writingEnd(d.path('in'));
    child.kill('SIGTERM');
    const [code, stdout, stderr] = await end;
    closeSync(descriptor);
    assert.deepEqual([code, stdout], [143, '']);
    assert.match(stderr, /^kms: interrupted(; nothing was left behind)?\n$/);
    assert.deepEqual(await readdir(d.dir), before, output);
  }
});

test('a signal ends a command whose output nobody takes from the pipe', async () => {
  await using d = await pipesDesk();
  await writeFile(d.path('file'), Buffer.alloc(1 << 20));
  const descriptor = openSync(d.path('out'), constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const child = typed(d, 'encrypt --ring r --private-key r.key -o out file');
    const end = ended(child);
    const { pid = 0 } = child;
    await until('it waits for the reader', async () => {
      const open = await readdir(`/proc/${pid}/fd`);
      const links = await Promise.all(open.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
      const at = links.indexOf(d.path('out'));
      return at >= 0 && waitsFor(pid, Number(open[at]));
    });
    child.kill('SIGINT');
    assert.deepEqual(await end, [130, '', 'kms: interrupted; what was written is incomplete\n']);
  } finally {
    closeSync(descriptor);
  }
});

test('what goes from pipe to pipe comes back as it was', async () => {
  await using d = await pipesDesk();
  const bytes = randomBytes(3 << 20);
  const through = async (line: string, input: Uint8Array): Promise<Buffer> => {
    const run = d.kms(line);
    const [output] = await Promise.all([readFile(d.path('out')), writeFile(d.path('in'), input)]);
    assert.deepEqual(await run, { code: 0, stdout: '', stderr: '', bytes: Buffer.alloc(0) });
    return output;
  };
  const encrypted = await through('encrypt --ring r --private-key r.key -o out in', bytes);
  assert.deepEqual(await through('decrypt --private-key r.key -o out in', encrypted), bytes);
});

test('a certificate is trusted with --ca-file, and said to be unknown without', async () => {
  await using d = await desk();
  const server = createServer({ cert: certificate, key: privateKey }, (_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end('{"data": [], "pagination": {"limit": 100, "count": 0, "hasMore": false}}');
  }).listen(0);
  const url = `https://localhost:${(server.address() as AddressInfo).port}`;
  try {
    const list = ['keyring', 'list', '--json', '--server', url];
    const unknown = await d.kms(list);
    assert.deepEqual(
      [unknown.code, unknown.stderr],
      [
        3,
        `kms: cannot reach ${url}: its certificate is not trusted; name the authority that signed it, PEM, with --ca-file FILE (KMS_CA_FILE)\n`,
      ],
    );
    const lax = await ended(typed(d, list.join(' '), 'KMS_API_KEY=none NODE_TLS_REJECT_UNAUTHORIZED=0'));
    assert.deepEqual(lax, [3, '', unknown.stderr], 'whatever Node is told by its environment');
    await writeFile(d.path('none.pem'), 'no certificate');
    const none = await d.kms([...list, '--ca-file', 'none.pem']);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /^kms: \S+none\.pem has no certificate in it; [^\n]+\n$/);
    assert.match((await d.kms([...list, '--ca-file', 'missing'])).stderr, /cannot read certificates from .*missing/);
    assert.match((await d.kms(['keyring', 'list', '--ca-file', 'ca.pem'])).stderr, /--ca-file goes with --server/);
    await writeFile(d.path('ca.pem'), certificate);
    assert.deepEqual((await d.json<{ data: [] }>(list, { env: { KMS_CA_FILE: 'ca.pem' } })).data, []);
    // A file as long as a system's own bundle, with one unreadable certificate.
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    await writeFile(d.path('many.pem'), (await authority('other')).cert.repeat(600) + broken + certificate);
    const many = await d.kms([...list, '--ca-file', 'many.pem']);
    assert.equal(many.code, 0, many.stderr);
    assert.match(
      many.stderr,
      /^kms: warning: \S+many\.pem: certificate number 601 \(line \d+\) cannot be read[^\n]+\n$/,
    );
    await writeFile(d.path('huge.pem'), certificate.repeat(8000));
    assert.match(
      (await d.kms([...list, '--ca-file', 'huge.pem'])).stderr,
      /huge\.pem is too large to hold certificates/,
    );
    const other = await d.kms([
      'keyring',
      'list',
      '--server',
      url.replace('localhost', '127.0.0.2'),
      '--ca-file',
      'ca.pem',
    ]);
    assert.match(other.stderr, /its certificate is for another name; /);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test('an address with the wrong scheme is said to be one, with the right one', async () => {
  await using d = await servedDesk();
  const tls = createServer({ cert: certificate, key: privateKey }, (_request, response) => response.end());
  // Many proxies answer plain HTTP on a TLS port with a page.
  const proxy = net.createServer((socket) => {
    socket.once('data', (bytes) => {
      if (bytes[0] !== 0x16)
        return socket.end('HTTP/1.1 400 Bad Request\r\ncontent-type: text/html\r\n\r\n<p>TLS!</p>');
      const behind = net.connect(tlsPort, '127.0.0.1');
      behind.write(bytes);
      socket.pipe(behind).pipe(socket);
      behind.on('error', () => undefined);
    });
    socket.on('error', () => undefined);
  });
  const silent = net.createServer((socket) => socket.once('data', () => socket.destroy()));
  const portOf = async (server: net.Server): Promise<number> => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port; // of TCP
  };
  const [tlsPort, proxyPort, silentPort] = [await portOf(tls), await portOf(proxy), await portOf(silent)];
  try {
    const env = { KMS_API_KEY: d.appliance.root.key };
    const cases: [server: string, said: string][] = [
      [d.url.replace('http', 'https'), `expected TLS from URL, got plain HTTP; use ${d.url}`],
      [`${d.url.replace('http', 'https')}/`, `expected TLS from URL, got plain HTTP; use ${d.url}`],
      [`http://127.0.0.1:${tlsPort}`, `expected plain HTTP from URL, got TLS; use https://127.0.0.1:${tlsPort}`],
      [`http://localhost:${tlsPort}`, `expected plain HTTP from URL, got TLS; use https://localhost:${tlsPort}`],
      [`http://127.0.0.1:${proxyPort}`, `expected plain HTTP from URL, got TLS; use https://127.0.0.1:${proxyPort}`],
      // Neither protocol: the cause stays unknown.
      [
        `http://127.0.0.1:${silentPort}`,
        'cannot reach URL: other side closed; see that the address is right, and that an appliance is served there',
      ],
    ];
    for (const [server, said] of cases) {
      for (const line of ['keyring list', 'apikey validate', 'metrics']) {
        const ran = await d.kms([...line.split(' '), '--server', server], { env, stdin: 'kms_x' });
        const url = server.replace(/\/$/, '');
        assert.deepEqual([ran.code, ran.stdout, ran.stderr], [3, '', `kms: ${said.replace('URL', url)}\n`], line);
      }
    }
  } finally {
    tls.closeAllConnections();
    for (const server of [tls, proxy, silent]) server.close();
  }
});

type Change = (body: Record<string, unknown>) => unknown;

/** Applies `change` to all answers until the returned function is called, which returns the number of requests. */
function distorted(d: ServedDesk, change: Change): () => number {
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  let asked = 0;
  app.fetch = async (request, env) => {
    asked++;
    // Such an appliance accepts every cursor and starts over.
    const answer = await served(new Request(request.url.replace(/cursor=[^&]*&?/, ''), request), env);
    const body = JSON.parse(await answer.text());
    if (answer.ok) change(body);
    return new Response(JSON.stringify(body), { status: answer.status, headers: answer.headers });
  };
  return () => {
    app.fetch = served;
    return asked;
  };
}

/** Changes the top level of answers that have `field`. */
const top =
  (field: string, changed: object): Change =>
  (body) =>
    field in body && Object.assign(body, changed);

const inLists =
  (changed: object): Change =>
  (body) => {
    for (const key of Array.isArray(body.data) ? body.data : []) Object.assign(key, changed);
  };

for (const [name, change] of [
  ['a ring that is none', top('ring', { ring: null })],
  ['a ring of nothing', top('ring', { ring: {} })],
  ['a key that is none', top('key', { key: null })],
  ['a list that is none', top('data', { data: null })],
  ['a list of nothing', top('data', { data: [null] })],
  ['a list without pages', top('data', { data: {}, pagination: 5 })],
  ['a cursor that is none', top('data', { pagination: { nextCursor: 5 } })],
  ['a list that comes round', top('data', { pagination: { nextCursor: 'round' } })],
  [
    'a list with ever new cursors',
    (body) => 'data' in body && Object.assign(body, { pagination: { nextCursor: `x${Math.random()}` } }),
  ],
  ['no earlier wrappings', inLists({ earlier: null })],
  ['more earlier wrappings than there can be', inLists({ earlier: Array(33).fill({}) })],
  ['other earlier wrappings', inLists({ earlier: [null, 5, { keyData: 5 }] })],
  ['nothing wrapped', inLists({ keyData: { encrypted: null } })],
] satisfies [string, Change][]) {
  test(`over the network ${name} is an answer that was not expected, and no defect`, async () => {
    await using d = await servedDesk();
    const { args, env } = d.network();
    const run = (line: string) => d.kms([...args, ...line.split(' ')], { env, stdin: 'hi' });
    for (const line of [
      'keyring create r --kem x25519 --private-key-out r.pem',
      'encrypt --ring r --private-key r.pem -o x.kms',
      'keyring rotate r',
      'keyring upgrade r --private-key r.pem',
    ]) {
      assert.equal((await run(line)).code, 0, line);
    }
    let refused = 0;
    for (const line of [
      'keyring upgrade r --private-key r.pem --rewrap',
      'keyring upgrade r --private-key r.pem --rewrap --dry-run',
      'keyring keys r',
      'keyring show r',
      'user show nobody',
      'encrypt --ring r --recipient -o y.kms',
      'encrypt --ring r --private-key r.pem -o y.kms',
      'decrypt --private-key r.pem x.kms',
    ]) {
      const restore = distorted(d, change);
      const { code, stderr } = await run(line);
      assert.ok(restore() < 20, line);
      assert.doesNotMatch(stderr, /defect/, line);
      if (/not what was expected/.test(stderr)) assert.equal(code, 3, stderr);
      if (code !== 0) refused++;
    }
    assert.ok(refused > 0);
  });
}
