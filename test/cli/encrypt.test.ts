// `kms encrypt` and `kms decrypt` as typed: over files and pipes, with private keys from every source, with assets, and
// with files that are refused.
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import test from 'node:test';
import type { Cli } from '../../src/cli/command.ts';
import type { AnswerTo } from '../../src/client/methods.ts';
import { unwrapRingKey } from '../../src/client/ring-keys.ts';
import { toBech32 } from '../../src/crypto/bech32.ts';
import type { Ran } from './kms.ts';
import { keyAnswers, type ServedDesk, servedDesk } from './served.ts';

const chunk = 16 * 1024;

async function withRing(): Promise<ServedDesk> {
  const d = await servedDesk();
  await d.json('keyring create payroll --json');
  return d;
}

function told({ code, stdout, stderr }: Ran): unknown[] {
  return [code, stdout, stderr];
}

for (const size of [0, 1, chunk - 1, chunk, chunk + 1, 64 * chunk, 64 * chunk + 1, 5_000_000]) {
  test(`a file of ${size} bytes comes back as it was, over files and over pipes`, async () => {
    await using d = await withRing();
    const content = randomBytes(size);
    await writeFile(d.path('in'), content);
    assert.deepEqual(told(await d.kms('encrypt --ring payroll -o out.kms in')), [0, '', '']);
    assert.deepEqual(told(await d.kms('decrypt -o back out.kms')), [0, '', '']);
    assert.ok(content.equals(await readFile(d.path('back'))));
    const piped = await d.kms('encrypt --ring PAYROLL', { stdin: content });
    assert.deepEqual([piped.code, piped.stderr], [0, '']);
    const back = await d.kms('decrypt', { stdin: piped.bytes });
    assert.deepEqual([back.code, back.stderr], [0, '']);
    assert.ok(content.equals(back.bytes));
    assert.deepEqual((await readdir(d.dir)).sort(), ['back', 'config', 'in', 'kms-data', 'out.kms']);
  });
}

test('no unwrapped key is kept between runs: each asks for it, and none is in a file', async () => {
  await using d = await withRing();
  const seen = keyAnswers(d);
  for (let run = 0; run < 3; run++) {
    assert.deepEqual(told(await d.kms(`encrypt --ring payroll -o ${run}.kms`, { stdin: 'hi' })), [0, '', '']);
    assert.deepEqual(told(await d.kms(`decrypt ${run}.kms`)), [0, 'hi', '']);
  }
  assert.deepEqual(
    seen.map(({ known, hasKey }) => [known, hasKey]),
    Array.from({ length: 6 }, () => [0, true]),
  );
  const { key } = await d.json<AnswerTo<'encrypt'>>('encrypt --ring payroll -o 3.kms --json', { stdin: 'hi' });
  const privateKey = await readFile(d.path('config', 'kms', 'rings', 'payroll.key'));
  const unwrapped = Buffer.from(await unwrapRingKey({ privateKey, key }));
  const forms = [unwrapped, unwrapped.toString('hex'), unwrapped.toString('base64'), unwrapped.toString('base64url')];
  const files = await readdir(d.dir, { recursive: true, withFileTypes: true });
  for (const file of files.filter((each) => each.isFile())) {
    const content = await readFile(join(file.parentPath, file.name));
    assert.ok(!forms.some((form) => content.includes(form)), file.name);
  }
});

test('a hybrid keyring encrypts and decrypts, with the private key in any of its forms', async () => {
  await using d = await servedDesk();
  interface Made {
    readonly ring: { readonly kem: string; readonly publicKey: string };
    readonly privateKey: string;
  }
  const { ring, privateKey } = await d.json<Made>('keyring create payroll --kem mlkem768-x25519 --json');
  assert.deepEqual([ring.kem, Buffer.from(ring.publicKey, 'base64').length], ['mlkem768-x25519', 1240]);
  assert.deepEqual(told(await d.kms('encrypt --ring payroll -o out.kms', { stdin: 'hello' })), [0, '', '']);
  assert.deepEqual(told(await d.kms('decrypt out.kms')), [0, 'hello', '']);
  const seed = Buffer.from(privateKey, 'base64').subarray(-32);
  const forms = [privateKey, toBech32('age-secret-key-pq-', seed).toUpperCase(), seed.toString('base64')];
  for (const form of forms) {
    await writeFile(d.path('payroll.key'), form, { mode: 0o600 });
    assert.deepEqual(told(await d.kms('decrypt --private-key payroll.key out.kms')), [0, 'hello', '']);
  }
  const other = await d.json<Made>('keyring create other --kem mlkem768-x25519 --json');
  await writeFile(d.path('payroll.key'), other.privateKey, { mode: 0o600 });
  const refused = await d.kms('decrypt --private-key payroll.key out.kms');
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, /it is not the private key of its ring/);
  assert.equal((await d.kms('keyring create third --kem pq')).code, 2);
});

test('works over the network with the one flag that each needs', async () => {
  await using d = await withRing();
  const maker = d.network((await d.appliance.keyWith('keyring.payroll.encrypt')).key);
  const reader = d.network((await d.appliance.keyWith('keyring.payroll.decrypt')).key);
  assert.deepEqual(
    told(await d.kms([...maker.args, 'encrypt', '--ring', 'payroll', '-o', 'x'], { env: maker.env, stdin: 'hi' })),
    [0, '', ''],
  );
  assert.deepEqual(told(await d.kms([...reader.args, 'decrypt', 'x'], { env: reader.env })), [0, 'hi', '']);
  const denied = await d.kms([...maker.args, 'decrypt', '-o', 'y', 'x'], { env: maker.env });
  assert.deepEqual([denied.code, denied.stdout], [1, '']);
  assert.match(denied.stderr, /^kms: .*flag keyring\..*\.decrypt.*\n$/);
  assert.deepEqual((await readdir(d.dir)).sort(), ['config', 'kms-data', 'x']);
});

test('the private key may come from elsewhere, as PEM or base64', async () => {
  await using d = await servedDesk();
  const { privateKey } = await d.json<{ privateKey: string }>('keyring create r --json --private-key-out r.pem');
  await writeFile(d.path('r.b64'), `${privateKey}\n`, { mode: 0o600 });
  assert.equal((await d.kms('encrypt --ring r --private-key r.b64 -o x', { stdin: 'hi' })).code, 0);
  assert.deepEqual(told(await d.kms('decrypt --private-key r.pem x')), [0, 'hi', '']);
});

test('an asset is signed into the header, and its verdict told', async () => {
  await using d = await withRing();
  const data = JSON.stringify({ case: 17 });
  interface Answer {
    readonly asset: { readonly id: string; readonly data: unknown; readonly parents: readonly string[] };
    readonly bytes?: unknown;
  }
  const { asset: parent } = await d.json<Answer>(
    ['encrypt', '--ring', 'payroll', '--asset-data', '{}', '-o', 'p', '--json'],
    { stdin: '' },
  );
  const answer = await d.json<Answer>(
    ['encrypt', '--ring', 'payroll', '--asset-data', data, '--parent', parent.id, '-o', 'x', '--json'],
    { stdin: 'hi' },
  );
  assert.deepEqual([answer.asset.data, answer.asset.parents, answer.bytes], [{ case: 17 }, [parent.id], undefined]);
  const { id } = answer.asset;
  assert.deepEqual(told(await d.kms('decrypt x')), [
    0,
    'hi',
    `kms: the asset ${id} is valid: the signature of version 1 verifies\n`,
  ]);
  assert.equal(
    (await d.kms(['encrypt', '--ring', 'payroll', '--asset-id', id, '--asset-data', '{}', '-o', 'y'], { stdin: 'ho' }))
      .code,
    0,
  );
  assert.match((await d.kms('decrypt y')).stderr, /version 2 verifies/);
  assert.match((await d.kms('decrypt x')).stderr, /version 1 verifies/);

  assert.equal((await d.kms(`asset delete ${id} --yes`)).code, 0);
  const refused = await d.kms('decrypt -o out x');
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(
    refused.stderr,
    new RegExp(
      `^kms: the asset ${id} is not valid: .*; nothing was decrypted; --allow-invalid-asset decrypts all the same\n$`,
    ),
  );
  assert.ok(!(await readdir(d.dir)).includes('out'));
  const allowed = await d.kms('decrypt --allow-invalid-asset x');
  assert.deepEqual([allowed.code, allowed.stdout], [0, 'hi']);
  assert.match(allowed.stderr, new RegExp(`^kms: warning: the asset ${id} is not valid: .*\n$`));
});

test('what cannot be encrypted leaves nothing behind and says why in one line', async () => {
  await using d = await withRing();
  await mkdir(d.path('dir'));
  await writeFile(d.path('taken'), 'mine');
  await writeFile(
    d.path('wrong.pem'),
    generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' }),
    { mode: 0o600 },
  );
  await writeFile(
    d.path('rsa.pem'),
    generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
    { mode: 0o600 },
  );
  await writeFile(d.path('in'), 'hi');
  const before = await readdir(d.dir);
  for (const [line, code, message] of [
    [
      'encrypt --ring payroll -o out missing',
      1,
      `cannot read ${d.path('missing')}: there is no such file or directory`,
    ],
    [
      'encrypt --ring payroll -o out dir',
      1,
      `cannot read ${d.path('dir')}: it is a directory; pack it first, for example with tar`,
    ],
    [
      'encrypt --ring payroll -o taken in',
      1,
      `${d.path('taken')} exists already and is not overwritten; name another file or move that one away`,
    ],
    [
      'encrypt --ring payroll -o in in',
      1,
      `${d.path('in')} exists already and is not overwritten; name another file or move that one away`,
    ],
    ['encrypt --ring payroll -o no/out in', 1, `cannot write ${d.path('no/out')}: there is no such file or directory`],
    [
      'encrypt --ring payroll -o dir in',
      1,
      `${d.path('dir')} exists already and is not overwritten; name another file or move that one away`,
    ],
    ['encrypt --ring other -o out in', 1, 'there is no keyring other; check the name or id'],
    [
      'encrypt --ring ../x -o out in',
      1,
      '"../x" cannot name a ring; a name has 1 to 128 letters, digits, dots, dashes and underscores, and begins with a letter or digit',
    ],
    ['encrypt --ring other --private-key wrong.pem -o out in', 1, 'there is no such keyring; check the name or id'],
    [
      'encrypt --ring payroll --private-key rsa.pem -o out in',
      1,
      `${d.path('rsa.pem')} holds no private key of X25519 or MLKEM768-X25519; expected PEM (PKCS#8), base64 of PKCS#8 DER, or base64 of the 32 bytes`,
    ],
    [
      'encrypt --ring payroll --json in',
      2,
      '--json needs -o FILE: stdout takes the file itself; see `kms encrypt --help`',
    ],
    [
      'encrypt --ring payroll -o out --asset-data [] in',
      2,
      '--asset-data: expected a JSON object such as \'{"team": "blue"}\'; see `kms encrypt --help`',
    ],
  ] as const) {
    assert.deepEqual(told(await d.kms(line)), [code, '', `kms: ${message}\n`], line);
    assert.deepEqual(await readdir(d.dir), before, line);
  }
  const wrong = await d.kms('encrypt --ring payroll --private-key wrong.pem -o out in');
  assert.equal(wrong.code, 1);
  assert.match(
    wrong.stderr,
    /^kms: key_\w+ is wrapped by mlkem768-x25519, and the private key is one of x25519; .*\n$/,
  );
  assert.deepEqual(await readdir(d.dir), before);
  assert.equal(await readFile(d.path('taken'), 'utf8'), 'mine');
});

test('encrypted bytes do not go to a terminal, decrypted ones may', async () => {
  await using d = await withRing();
  assert.deepEqual(told(await d.kms('encrypt --ring payroll', { stdin: 'hi', tty: { stdout: true } })), [
    2,
    '',
    'kms: encrypted bytes do not belong on a terminal; write to a file with -o FILE\n',
  ]);
  await d.kms('encrypt --ring payroll -o x', { stdin: 'hi' });
  assert.equal((await d.kms('decrypt x', { tty: { stdout: true } })).stdout, 'hi');
});

test('an output that is a link to nowhere is not written through, a device is', async () => {
  await using d = await withRing();
  await symlink('nowhere', d.path('link'));
  const { code, stderr } = await d.kms('encrypt --ring payroll -o link', { stdin: 'hi' });
  assert.equal(code, 1);
  assert.match(stderr, /link exists already/);
  assert.deepEqual((await readdir(d.dir)).sort(), ['config', 'kms-data', 'link']);
  assert.deepEqual(told(await d.kms('encrypt --ring payroll -o /dev/null', { stdin: 'hi' })), [0, '', '']);
});

test('what is no whole kms file does not decrypt, and leaves nothing behind', async () => {
  await using d = await withRing();
  const content = randomBytes(3 * chunk + 100);
  const { bytes } = await d.kms('encrypt --ring payroll', { stdin: content });
  const flipped = (at: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy;
  };
  const before = await readdir(d.dir);
  const cases: readonly (readonly [name: string, file: Buffer, message: RegExp])[] = [
    ['empty', Buffer.alloc(0), /not a kms file/],
    ['other', Buffer.from('PK\x03\x04 this is something else'), /not a kms file/],
    ['newer', Buffer.concat([bytes.subarray(0, 8), Buffer.of(3), bytes.subarray(9)]), /newer version of kms/],
    ['cut in the header', bytes.subarray(0, 50), /ends before its encrypted part/],
    ['cut in the salt', bytes.subarray(0, 140), /cut/],
    ['cut in a chunk', bytes.subarray(0, -5), /altered or cut|was cut/],
    ['cut at a chunk', bytes.subarray(0, bytes.length - 116), /altered or cut|was cut/],
    ['extended', Buffer.concat([bytes, Buffer.of(0)]), /altered/],
    ['changed header', flipped(60), /; get an unaltered copy of the file, or ask the appliance /],
    ['changed salt', flipped(bytes.length - (3 * (chunk + 16) + 116) - 50), /does not open with this key/],
    ['changed chunk', flipped(bytes.length - chunk), /altered/],
    ['changed end', flipped(bytes.length - 1), /altered/],
  ];
  for (const [name, file, message] of cases) {
    const { code, stdout, stderr } = await d.kms('decrypt -o out', { stdin: file });
    assert.deepEqual([code, stdout], [1, ''], name);
    assert.match(stderr, /^kms: [^\n]+\n$/, name);
    assert.match(stderr, message, name);
    assert.doesNotMatch(stderr, /throw away/, name);
    assert.deepEqual(await readdir(d.dir), before, name);
  }
  const short = await d.kms('decrypt', { stdin: flipped(bytes.length - 1) });
  assert.deepEqual([short.code, short.stdout], [1, '']);
  assert.match(short.stderr, /nothing was left behind/);
  const long = (await d.kms('encrypt --ring payroll', { stdin: randomBytes(64 * chunk) })).bytes;
  const damaged = await d.kms('decrypt', { stdin: Buffer.concat([long, Buffer.of(0)]) });
  assert.ok(damaged.code === 1 && damaged.bytes.length > 0);
  assert.match(damaged.stderr, /throw away what was decrypted of it/);
});

test('decrypting without the right private key', async () => {
  await using d = await withRing();
  await d.kms('encrypt --ring payroll -o x', { stdin: 'hi' });
  await d.json('keyring create other --json');
  const path = d.path('config', 'kms', 'rings', 'payroll.key');
  const wrong = await d.kms(['decrypt', '-o', 'y', '--private-key', d.path('config/kms/rings/other.key'), 'x']);
  assert.match(
    wrong.stderr,
    /^kms: the private key does not open key_\w+: it is not the private key of its ring; .*\n$/,
  );
  await cp(path, d.path('away.pem'));
  await rm(path);
  assert.deepEqual(told(await d.kms('decrypt -o y x')), [
    1,
    '',
    `kms: cannot read the private key from ${path}: there is no such file or directory; name the file that has the private key of payroll with --private-key FILE\n`,
  ]);
  assert.deepEqual(told(await d.kms('decrypt --private-key away.pem x')), [0, 'hi', '']);
  assert.ok(!(await readdir(d.dir)).includes('y'));
});

test('a deleted ring does not decrypt until it is restored', async () => {
  await using d = await withRing();
  await d.kms('encrypt --ring payroll -o x', { stdin: 'hi' });
  const { id } = await d.json<{ id: string }>('keyring delete payroll --yes --json');
  const { code, stdout } = await d.kms('decrypt x');
  assert.deepEqual([code, stdout], [1, '']);
  await d.json(`keyring restore ${id} --json`);
  assert.deepEqual(told(await d.kms('decrypt x')), [0, 'hi', '']);
});

test('a stopped encrypt leaves nothing behind', async () => {
  await using d = await withRing();
  const stop = new AbortController();
  async function* endless(): AsyncGenerator<Buffer> {
    for (let n = 0; ; n++) {
      if (n === 40) stop.abort();
      yield randomBytes(1 << 20);
    }
  }
  const { code, stdout, stderr } = await d.kms('encrypt --ring payroll -o x', {
    stdin: Readable.from(endless()),
    signal: stop.signal,
  });
  assert.deepEqual([code, stdout, stderr], [130, '', 'kms: interrupted; nothing was left behind\n']);
  assert.deepEqual((await readdir(d.dir)).sort(), ['config', 'kms-data']);
});

test('an input that breaks off leaves nothing behind', async () => {
  await using d = await withRing();
  async function* broken(): AsyncGenerator<Buffer> {
    yield randomBytes(1 << 20);
    throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' });
  }
  const { code, stderr } = await d.kms('encrypt --ring payroll -o x', { stdin: Readable.from(broken()) });
  assert.deepEqual([code, stderr], [1, 'kms: cannot read stdin: the device failed\n']);
  assert.deepEqual((await readdir(d.dir)).sort(), ['config', 'kms-data']);
});

test('a full disk leaves nothing behind', async () => {
  await using d = await withRing();
  const { code, stderr } = await d.kms('encrypt --ring payroll -o /dev/full', { stdin: 'hi' });
  assert.deepEqual([code, stderr], [1, 'kms: cannot write /dev/full: the disk is full\n']);
});

test('inspect tells what the header says, with and without an appliance', async () => {
  await using d = await withRing();
  const { asset } = await d.json<{ asset: { id: string } }>('encrypt --ring payroll --asset-data {} -o x --json', {
    stdin: 'hello',
  });
  const size = (await readFile(d.path('x'))).length;
  const known = await d.json('inspect x --json');
  const { hash, header, ringId, keyId, ...rest } = known;
  assert.match(`${hash} ${ringId} ${keyId}`, /^\S{100} ring_\w{26} key_\w{26}$/);
  assert.equal(String(header).length, 252);
  assert.deepEqual(rest, {
    fileVersion: 1,
    encryptedWith: 'private-key',
    version: 1,
    ringname: 'payroll',
    hasSignedAsset: true,
    assetId: asset.id,
    assetVersion: 1,
    size,
    contentSize: 5,
  });
  const { ringname: _, ringId: __, keyId: ___, ...offline } = known;
  assert.deepEqual(await d.json('inspect x --json --data nowhere'), offline);
  const shown = await d.kms('inspect x --data nowhere');
  assert.deepEqual([shown.code, shown.stderr], [0, '']);
  assert.match(
    shown.stdout,
    /^file format {5}1\nencrypted with {2}the private key\nheader version {2}1\nhash {12}\S+\nring {12}not known here\nasset {11}asset_\w+\nasset version {3}1\nsize {12}\d+ bytes/,
  );
  assert.equal((await d.json('inspect - --json', { stdin: await readFile(d.path('x')) })).contentSize, 5);
  await writeFile(d.path('no'), 'something else');
  assert.deepEqual(told(await d.kms('inspect no')), [
    1,
    '',
    'kms: not a kms file: it does not start with "kms-file"; check that this is the right file\n',
  ]);
});

test('a long transfer shows its progress on a terminal, and nowhere else', async () => {
  await using d = await withRing();
  async function* slow(): AsyncGenerator<Buffer> {
    for (let n = 0; n < 12; n++) {
      yield randomBytes(1 << 20);
      await new Promise((resolve) => setTimeout(resolve, 120));
    }
  }
  const shown = await d.kms('encrypt --ring payroll -o x', { stdin: Readable.from(slow()), tty: { stderr: true } });
  assert.equal(shown.code, 0);
  assert.match(shown.stderr.replaceAll('\x1b[K', ''), /^(\r\d+\.\d MiB, \d+\.\d MiB\/s)+\n$/);
});

test('the progress of lines says how many of all of them there are, and how long the rest takes', async () => {
  const { withProgress } = await import('../../src/cli/streams.ts');
  async function* slow(): AsyncGenerator<Buffer> {
    for (let n = 0; n < 12; n++) {
      yield Buffer.from('{}\n{}\n');
      await new Promise((resolve) => setTimeout(resolve, 120));
    }
  }
  let stderr = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      stderr += chunk;
      done();
    },
  });
  const io = { stderr: Object.assign(stream, { isTTY: true }), env: {}, signal: new AbortController().signal };
  // Cast: progress needs no more of it.
  for await (const _ of withProgress({ io } as unknown as Cli, slow(), { count: 40, noun: 'records' }));
  assert.match(stderr.replaceAll('\x1b[K', ''), /^(?:\r\d+ of 40 records \(\d+ %\), \d+\/s, \d+ s left)+\n$/);
});

test('a reader that goes away is one line for a file, and none for a list', async () => {
  await using d = await withRing();
  const { io, err } = brokenPipe(d);
  const { runCli } = await import('../../src/cli/run.ts');
  assert.equal(await runCli(io(['keyring', 'list'], '')), 1);
  assert.equal(err(), '');
  assert.equal(await runCli(io(['encrypt', '--ring', 'payroll'], 'hi')), 1);
  assert.equal(err(), 'kms: cannot write to stdout: what reads it has gone away\n');
});

function brokenPipe(d: ServedDesk) {
  let text = '';
  const stderr = new Writable({
    write(piece, _encoding, done) {
      text += String(piece);
      done();
    },
  });
  const io = (args: readonly string[], stdin: string) => {
    const stdout = new Writable({
      write: (_piece, _encoding, done) =>
        done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write' })),
    });
    stdout.on('error', () => undefined);
    const env = { XDG_CONFIG_HOME: d.path('config') };
    return {
      args,
      env,
      cwd: d.dir,
      home: d.dir,
      stdin: Readable.from([Buffer.from(stdin)]),
      stdout,
      stderr,
      signal: new AbortController().signal,
    };
  };
  return { io, err: () => text };
}

test('without its private key, encrypting names the way without one, and a misspelt keyring', async () => {
  await using d = await withRing();
  const tty = { stderr: true };
  const misspelt = await d.kms('encrypt --ring payrol -o x', { tty, stdin: 'hi' });
  assert.deepEqual(told(misspelt), [1, '', 'kms: there is no keyring payrol; did you mean payroll?\n']);
  assert.match(
    (await d.kms('encrypt --ring zzz -o x', { tty, stdin: 'hi' })).stderr,
    /there is no keyring zzz; check the name or id\n$/,
  );
  await rm(d.path('config', 'kms', 'rings'), { recursive: true });
  const { code, stderr } = await d.kms('encrypt --ring payroll -o x', { tty, stdin: 'hi' });
  assert.equal(code, 1);
  assert.match(stderr, /with --private-key FILE, or add --recipient to encrypt without a private key\n$/);
});
