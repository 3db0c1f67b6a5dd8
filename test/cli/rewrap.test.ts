// `keyring upgrade --rewrap`: the earlier keys of a keyring are wrapped to its new pair, so that this pair alone opens
// them.
import assert from 'node:assert/strict';
import { chmod, chown, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { replaceText } from '../../src/cli/files.ts';
import {
  fingerprintOf,
  generateRingKey,
  privateKeyPem,
  publicKeyOf,
  readPrivateKeys,
} from '../../src/client/ring-keys.ts';
import { KmsError } from '../../src/errors.ts';
import { type ServedDesk, servedDesk } from './served.ts';

interface ListedKeys {
  readonly data: readonly { readonly id: string; readonly kem: string; readonly publicKey: string }[];
}

interface Shown {
  readonly ring: { readonly publicKey: string };
}

const kemsOf = async (d: ServedDesk, ring: string): Promise<string[]> =>
  (await d.json<ListedKeys>(`keyring keys ${ring} --json`)).data.map(({ kem }) => kem);

/** Makes an X25519 ring with two keys, a file encrypted with each, and one encrypted without the private key. */
async function older(d: ServedDesk, ring = 'r'): Promise<void> {
  await d.json(`keyring create ${ring} --kem x25519 --json --private-key-out ${ring}.pem`);
  const encrypt = async (line: string, stdin: string) =>
    assert.equal((await d.kms(`encrypt --ring ${ring} ${line} -o ${ring}-${stdin}.kms`, { stdin })).code, 0);
  await encrypt(`--private-key ${ring}.pem`, 'first');
  await encrypt('--recipient', 'sealed');
  assert.equal((await d.kms(`keyring rotate ${ring}`)).code, 0);
  await encrypt(`--private-key ${ring}.pem`, 'second');
}

/** Writes private key number `at` of the file to a file of its own, and returns its PEM. */
async function onlyKey(d: ServedDesk, file: string, at: number): Promise<string> {
  const keys = readPrivateKeys(await readFile(d.path(file)), file);
  const pem = privateKeyPem(keys.slice(at, at + 1));
  await writeFile(d.path(`${at}.pem`), pem, { mode: 0o600 });
  return pem;
}

test('the new private key alone opens what was encrypted before, files sealed to the earlier one aside', async () => {
  await using d = await servedDesk();
  await older(d);
  const upgrade = 'keyring upgrade r --private-key r.pem --rewrap';
  assert.match((await d.kms(`${upgrade} --dry-run`)).stdout, /^kem {10}x25519$(.|\n)*^left {9}2$/m);
  assert.deepEqual(await kemsOf(d, 'r'), ['x25519', 'x25519']);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  const counted = await d.json(`${upgrade} --dry-run --json`);
  assert.deepEqual([counted.rewrapped, counted.left], [0, 2]);
  assert.deepEqual(await kemsOf(d, 'r'), ['x25519', 'x25519', 'mlkem768-x25519']);

  const done = await d.kms(upgrade);
  assert.deepEqual([done.code, done.stderr], [0, '']);
  assert.match(done.stdout, /^rewrapped {4}2\nleft {9}0\n$/m);
  assert.deepEqual(await kemsOf(d, 'r'), Array(3).fill('mlkem768-x25519'));
  const again = await d.json(`${upgrade} --json`);
  assert.deepEqual([again.rewrapped, again.left], [0, 0]);

  const hybrid = await onlyKey(d, 'r.pem', 1);
  const earlier = await onlyKey(d, 'r.pem', 0);
  const shown = done.stdout + done.stderr + JSON.stringify(again);
  for (const pem of [hybrid, earlier]) assert.ok(!shown.includes(pem.split('\n')[1] ?? ''));
  for (const text of ['first', 'second']) {
    assert.deepEqual([text, (await d.kms(`decrypt --private-key 1.pem r-${text}.kms`)).stdout], [text, text]);
    const late = await d.kms(`decrypt --private-key 0.pem r-${text}.kms`);
    assert.deepEqual([late.code, late.stdout], [1, '']);
  }
  assert.equal((await d.kms('decrypt --private-key 1.pem r-sealed.kms')).code, 1);
  assert.equal((await d.kms('decrypt --private-key 0.pem r-sealed.kms')).stdout, 'sealed');
});

test('it goes with the upgrade itself, and with a pair that is kept elsewhere', async () => {
  await using d = await servedDesk();
  await older(d, 'a');
  const { rewrapped, left } = await d.json('keyring upgrade a --private-key a.pem --rewrap --json');
  assert.deepEqual([rewrapped, left], [2, 0]);
  await older(d, 'b');
  const { publicKey, privateKey } = generateRingKey('mlkem768-x25519');
  await writeFile(d.path('own.pub'), publicKey);
  await writeFile(d.path('own.pem'), privateKey, { mode: 0o600 });
  const own = await d.json('keyring upgrade b --private-key b.pem --public-key own.pub --rewrap --json');
  assert.deepEqual([own.rewrapped, own.left], [2, 0]);
  assert.equal((await d.kms('decrypt --private-key own.pem b-second.kms')).stdout, 'second');
  const again = await d.json('keyring upgrade b --private-key b.pem --public-key own.pub --rewrap --json');
  assert.deepEqual([again.rewrapped, again.left], [0, 0]);
});

test('no key is given to a public key that is not known to be the owner', async () => {
  await using d = await servedDesk();
  await older(d);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  // A user who may configure the keyring, or the appliance itself, replaces the public key.
  const { publicKey } = generateRingKey('mlkem768-x25519');
  await d.appliance.call('PUT', '/ks/config', { ringname: 'r', config: { publicKey } });
  const before = await d.json('keyring keys r --json');
  // At its usual path, so that the user did not name it.
  const usual = d.path('config', 'kms', 'rings', 'r.key');
  await mkdir(dirname(usual), { recursive: true, mode: 0o700 });
  await copyFile(d.path('r.pem'), usual);
  for (const line of ['--rewrap', '']) {
    const refused = await d.kms(`keyring upgrade r ${line}`.trim());
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.equal(
      refused.stderr,
      `kms: the keyring r had the pair in ${usual} before and has another now: that would be a rollback, and nothing was changed; if its owner changed the pair, get the file that has the present one; if not, \`kms keyring upgrade r --put-back${line && ` ${line}`}\` puts the earlier one back\n`,
    );
  }
  assert.deepEqual(await d.json('keyring keys r --json'), before);
});

test('the owner puts the own pair back where another was set, and hears what is lost', async () => {
  await using d = await servedDesk();
  await older(d);
  const upgrade = 'keyring upgrade r --private-key r.pem --rewrap';
  assert.equal((await d.kms(upgrade)).code, 0);
  const { ring: own } = await d.json<Shown>('keyring show r --json');
  const foreign = generateRingKey('mlkem768-x25519').publicKey;
  const hijack = async () => {
    await d.appliance.call('PUT', '/ks/config', { ringname: 'r', config: { publicKey: foreign } });
    assert.equal((await d.kms('keyring rotate r')).code, 0);
  };
  await hijack();
  // The ring does not take over another ring's file.
  await d.json('keyring create s --json --private-key-out s.pem');
  const before = await d.json('keyring keys r --json');
  for (const line of ['', ' --put-back', ' --put-back --rewrap']) {
    const other = await d.kms(`keyring upgrade r --private-key s.pem${line}`);
    assert.deepEqual([other.code, other.stdout], [1, '']);
    assert.match(
      other.stderr,
      /^kms: .*\/s\.pem does not have the private key of the keyring r; name the file that has it/,
    );
  }
  // Its own key is not put back either, unless that is asked for.
  const asked = await d.kms(upgrade);
  assert.deepEqual([asked.code, asked.stdout], [1, '']);
  assert.match(
    asked.stderr,
    /`kms keyring upgrade r --private-key .*\/r\.pem --put-back --rewrap` puts the earlier one back/,
  );
  assert.deepEqual(await d.json('keyring keys r --json'), before);

  const back = await d.kms(`${upgrade} --put-back`);
  assert.equal(back.code, 1);
  assert.match(
    back.stderr,
    /^kms: r had somebody else's public key, and 1 keys were made for it: only the holder of its private/,
  );
  assert.match(back.stdout, /^left {9}1$/m);
  assert.equal((await d.json<Shown>('keyring show r --json')).ring.publicKey, own.publicKey);
  const { data } = await d.json<ListedKeys>('keyring keys r --json');
  assert.deepEqual(
    data.map(({ publicKey }) => publicKey === own.publicKey),
    [true, true, true, false, true],
  );
  assert.equal((await d.kms('encrypt --ring r --private-key r.pem -o r-again.kms', { stdin: 'again' })).code, 0);
  for (const text of ['first', 'sealed', 'second', 'again']) {
    assert.equal((await d.kms(`decrypt --private-key r.pem r-${text}.kms`)).stdout, text);
  }
  await hijack();
  await writeFile(d.path('own.pub'), own.publicKey);
  const refused = await d.kms('keyring upgrade r --public-key own.pub');
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(
    refused.stderr,
    /had that pair before .* rollback.*`kms keyring upgrade r --public-key .*\/own\.pub --put-back`/,
  );
  assert.equal((await d.json<Shown>('keyring show r --json')).ring.publicKey, foreign);
  assert.equal((await d.kms('keyring upgrade r --public-key own.pub --put-back')).code, 0);
  assert.equal((await d.json<Shown>('keyring show r --json')).ring.publicKey, own.publicKey);
});

test("a colleague's older file does not put its pair back unless that is asked for", async () => {
  await using d = await servedDesk();
  await older(d);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  await copyFile(d.path('r.pem'), d.path('older.pem'));
  // The owner moves on to a pair made elsewhere, and adds it to the file.
  const later = generateRingKey('mlkem768-x25519');
  await writeFile(d.path('later.pub'), later.publicKey);
  assert.equal((await d.kms('keyring upgrade r --public-key later.pub')).code, 0);
  await writeFile(d.path('r.pem'), (await readFile(d.path('r.pem'), 'utf8')) + later.privateKey);
  const before = await d.json('keyring keys r --json');
  const files = await Promise.all(['r.pem', 'older.pem'].map((name) => readFile(d.path(name), 'utf8')));
  for (const line of ['', ' --rewrap', ' --prepare']) {
    const refused = await d.kms(`keyring upgrade r --private-key older.pem${line}`);
    assert.deepEqual([refused.code, refused.stdout], [1, ''], line);
    assert.match(
      refused.stderr,
      /^kms: the keyring r had the pair in .*\/older\.pem before .*: that would be a rollback/,
    );
  }
  assert.deepEqual(await d.json('keyring keys r --json'), before);
  const { ring } = await d.json<Shown>('keyring upgrade r --private-key r.pem --json');
  assert.equal(ring.publicKey, later.publicKey);
  assert.deepEqual(await d.json('keyring keys r --json'), before);
  assert.equal((await d.kms('keyring upgrade r --private-key older.pem --put-back')).code, 0);
  const back = await d.json<Shown>('keyring show r --json');
  assert.ok(readPrivateKeys(files[1] ?? '', 'older.pem').some((key) => publicKeyOf(key) === back.ring.publicKey));
  assert.deepEqual(await Promise.all(['r.pem', 'older.pem'].map((name) => readFile(d.path(name), 'utf8'))), files);
});

test("a file from before somebody else's upgrade makes no further pair, whatever is asked", async () => {
  await using d = await servedDesk();
  await older(d);
  await copyFile(d.path('r.pem'), d.path('mine.pem'));
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem --rewrap')).code, 0);
  const file = await readFile(d.path('mine.pem'), 'utf8');
  const { ring } = await d.json<Shown>('keyring show r --json');
  const fingerprint = fingerprintOf(ring.publicKey) ?? assert.fail();
  const before = await d.json('keyring keys r --json');
  for (const line of ['', ' --rewrap', ' --prepare', ' --put-back', ' --put-back --rewrap']) {
    for (const [typed, env] of [
      [' --private-key mine.pem', {}],
      ['', { KMS_PRIVATE_KEY: 'mine.pem' }],
    ] as const) {
      const refused = await d.kms(`keyring upgrade r${typed}${line}`, { env });
      assert.deepEqual([refused.code, refused.stdout], [1, ''], line);
      assert.match(
        refused.stderr,
        /^kms: the keyring r was upgraded already, to a pair that is not in .*\/?mine\.pem: nothing was changed; get the file with both private keys from the person who upgraded it \(fingerprint of the pair: [0-9a-f ]+\); if nobody who may do so did, --public-key FILE gives it one/,
      );
      assert.ok(refused.stderr.includes(`: ${fingerprint})`));
    }
  }
  assert.equal(await readFile(d.path('mine.pem'), 'utf8'), file);
  assert.deepEqual(await d.json('keyring keys r --json'), before);
  assert.equal((await d.json<Shown>('keyring show r --json')).ring.publicKey, ring.publicKey);
  assert.equal((await d.kms('encrypt --ring r --private-key r.pem -o later.kms', { stdin: 'later' })).code, 0);
});

test('a key file in a directory that cannot be written to is left, with what to do', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'kms-safe-'));
  const path = join(directory, 'r.pem');
  await writeFile(path, 'before', { mode: 0o600 });
  // Root may write anywhere.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) for (const each of [path, directory]) await chown(each, 65_532, 65_532);
  await chmod(directory, 0o500);
  if (isRoot) process.seteuid?.(65_532);
  const read = (each: string) => readFile(each, 'utf8');
  const error: unknown = await replaceText(path, read, () => ({ text: 'after', result: 0 })).catch((thrown) => thrown);
  if (isRoot) process.seteuid?.(0);
  await chmod(directory, 0o700);
  assert.ok(error instanceof KmsError);
  assert.deepEqual(
    [error.message, error.hint],
    [
      `cannot write ${path}: permission denied`,
      `nothing was changed; a whole new file takes its place, so the directory ${directory} must be writable`,
    ],
  );
  assert.equal(await read(path), 'before');
  await rm(directory, { recursive: true });
});

test('where the limit of keys ends an upgrade halfway, it says so, and the next one goes on', async () => {
  await using d = await servedDesk();
  await older(d);
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  const message = 'the limit of 2 keys in a keyring is reached';
  app.fetch = async (request, env) =>
    request.url.endsWith('/rotate') ? Response.json({ message }, { status: 403 }) : served(request, env);
  const stopped = await d.kms('keyring upgrade r --private-key r.pem');
  assert.deepEqual([stopped.code, stopped.stdout], [1, '']);
  assert.ok(
    stopped.stderr.endsWith(
      `kms: r has the new public key, but no key for it yet: ${message}; until then it encrypts with the earlier key; ask the operator for more room, then repeat the command: it goes on from there\n`,
    ),
    stopped.stderr,
  );
  assert.equal((await d.kms('encrypt --ring r --private-key r.pem -o x.kms', { stdin: 'x' })).code, 0);
  app.fetch = served;
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  assert.deepEqual(await kemsOf(d, 'r'), ['x25519', 'x25519', 'mlkem768-x25519']);
});

test('two that upgrade a keyring at once, each with a file: one wins, and the other hears that', async () => {
  await using d = await servedDesk();
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  for (let round = 0; round < 3; round++) {
    const ring = `r${round}`;
    await older(d, ring);
    for (const who of ['ada', 'bob']) await copyFile(d.path(`${ring}.pem`), d.path(`${who}.pem`));
    // Both have read the ring before either changes it.
    const { promise: bothAsk, resolve } = Promise.withResolvers<void>();
    let asking = 0;
    app.fetch = async (request, env) => {
      if (request.method === 'PUT') {
        if (++asking === 2) resolve();
        await bothAsk;
      }
      return served(request, env);
    };
    const ended = await Promise.all(
      ['ada', 'bob'].map(async (who) => ({
        who,
        ...(await d.kms(`keyring upgrade ${ring} --private-key ${who}.pem`)),
      })),
    );
    app.fetch = served;
    const [won, lost] = ended.sort((one, other) => one.code - other.code);
    assert.ok(won && lost);
    assert.deepEqual([won.code, lost.code, lost.stdout], [0, 1, '']);
    assert.ok(
      lost.stderr.endsWith(
        `kms: somebody else gave the keyring ${ring} another pair at the same time: yours is not used; ${d.path(`${lost.who}.pem`)} is kept, with a hybrid key that nothing is wrapped to; get the file with the present pair from that person\n`,
      ),
      lost.stderr,
    );
    const publicKeys = async (who: string) =>
      readPrivateKeys(await readFile(d.path(`${who}.pem`)), who).map(publicKeyOf);
    const shown = await d.json<Shown>(`keyring show ${ring} --json`);
    assert.equal((await publicKeys(won.who)).at(-1), shown.ring.publicKey);
    assert.equal((await publicKeys(lost.who)).length, 2);
    assert.deepEqual(await kemsOf(d, ring), ['x25519', 'x25519', 'mlkem768-x25519']);
    // Neither lost a key: both files open what was encrypted before.
    for (const { who } of ended) {
      assert.equal((await d.kms(`decrypt --private-key ${who}.pem ${ring}-second.kms`)).stdout, 'second');
    }
    // With the winner's file the loser can continue.
    await copyFile(d.path(`${won.who}.pem`), d.path(`${lost.who}.pem`));
    const again = await d.kms(`keyring upgrade ${ring} --private-key ${lost.who}.pem --rewrap`);
    assert.deepEqual([again.code, again.stderr], [0, '']);
  }
});

test('nothing is wrapped to the earlier X25519 key where the appliance calls it hybrid', async () => {
  await using d = await servedDesk();
  await older(d);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  const [x25519] = readPrivateKeys(await readFile(d.path('r.pem')), 'it').map(publicKeyOf);
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  const sent: string[] = [];
  app.fetch = async (request, env) => {
    const answer = await served(request, env);
    const { pathname } = new URL(request.url);
    if (/\/ks\/(?:rewrap|rotate)$/.test(pathname)) sent.push(pathname);
    if (request.method !== 'GET' || pathname !== '/ks/keyrings/r') return answer;
    const { ring } = await answer.clone().json();
    return Response.json({ ring: { ...ring, publicKey: x25519 } }, { headers: answer.headers });
  };
  const refused = await d.kms('keyring upgrade r --private-key r.pem --rewrap');
  assert.deepEqual([refused.code, refused.stdout, sent], [1, '', []]);
  assert.match(refused.stderr, /the appliance has another public key for the keyring r than it was given/);
});

test('keys that no private key here opens are left, and said to be', async () => {
  await using d = await servedDesk();
  await older(d);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  await onlyKey(d, 'r.pem', 1);
  const some = await d.kms('keyring upgrade r --private-key 1.pem --rewrap');
  assert.deepEqual([some.code, some.stdout], [1, '']);
  assert.match(
    some.stderr,
    /^kms: no private key in that file opens an earlier key of the keyring r: nothing was changed/,
  );
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem --rewrap')).code, 0);
  for (const [line, message] of [
    ['--prepare --rewrap', /--prepare and --rewrap exclude each other/],
    ['--dry-run', /--dry-run goes with --rewrap/],
    ['--prepare --put-back', /--prepare and --put-back exclude each other/],
  ] as const) {
    const wrong = await d.kms(`keyring upgrade r ${line}`);
    assert.deepEqual([wrong.code, message.test(wrong.stderr)], [2, true], wrong.stderr);
  }
});
