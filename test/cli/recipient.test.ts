// `kms encrypt --recipient`: without a private key, to a pinned public key; for several rings; and `kms decrypt
// --offline`.
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { type ServedDesk, servedDesk } from './served.ts';

/** Directory for the keys of an appliance that returns no id. */
function keyDirectory(d: { path(...parts: string[]): string }): string {
  return d.path('config', 'kms', 'rings');
}

async function fingerprint(d: ServedDesk): Promise<string> {
  const [, shown = ''] = /^fingerprint {2}(.*)$/m.exec((await d.kms('keyring show payroll')).stdout) ?? [];
  return shown;
}

test('a writer has no private key, remembers the public key, and keeps nothing that opens what it wrote', async () => {
  await using d = await servedDesk();
  await d.json('keyring create Payroll --json');
  const keys = keyDirectory(d);
  await mkdir(d.path('safe'));
  await rename(`${keys}/payroll.key`, d.path('safe', 'payroll.key'));
  const first = await d.kms('encrypt --ring payroll --recipient -o x.kms', { stdin: 'for you' });
  assert.deepEqual(
    [first.code, first.stdout, first.stderr],
    [
      0,
      '',
      `kms: the public key of payroll is remembered in ${keys}/payroll.pub; another one will be refused; its fingerprint: ${await fingerprint(d)}\n`,
    ],
  );
  assert.equal((await stat(`${keys}/payroll.pub`)).mode & 0o777, 0o600);
  const second = await d.json('encrypt --ring PAYROLL --recipient -o y.kms --json', { stdin: 'again' });
  assert.deepEqual(Object.keys(second).sort(), ['hash', 'header', 'key', 'publicKey', 'ringId']);
  assert.deepEqual(await readdir(keys), ['payroll.pub']);
  const without = await d.kms('decrypt x.kms');
  assert.equal(without.code, 1);
  const back = await d.kms('decrypt --private-key safe/payroll.key x.kms');
  assert.deepEqual([back.code, back.stdout, back.stderr], [0, 'for you', '']);
  const inspected = await d.json('inspect y.kms --json');
  assert.deepEqual(
    [inspected.fileVersion, inspected.encryptedWith, inspected.ringname, inspected.contentSize],
    [2, 'public-key', 'payroll', 5],
  );
  assert.match((await d.kms('inspect x.kms')).stdout, /^encrypted with {2}the public key: the writer cannot open it$/m);
});

test('over the network the flag to encrypt is enough, and the record tells how it was', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --json');
  const maker = d.network((await d.appliance.keyWith('keyring.payroll.encrypt')).key);
  const args = [...maker.args, 'encrypt', '--ring', 'payroll', '--recipient', '-o', 'x'];
  assert.equal((await d.kms(args, { env: maker.env, stdin: 'hi' })).code, 0);
  const denied = await d.kms([...maker.args, 'decrypt', 'x'], { env: maker.env });
  assert.deepEqual([denied.code, denied.stdout], [1, '']);
  assert.match(denied.stderr, /flag keyring\..*\.decrypt/);
  const reader = d.network((await d.appliance.keyWith('keyring.payroll.decrypt')).key);
  assert.equal((await d.kms([...reader.args, 'decrypt', 'x'], { env: reader.env })).stdout, 'hi');
  const { data } = await d.json<{ data: { action: string; props: object; validAction: boolean }[] }>(
    'activity search --json',
  );
  const told = data
    .filter(({ action, validAction }) => validAction && /^keyring\.(en|de)crypt$/.test(action))
    .map(({ action, props }) => [action, props]);
  assert.deepEqual(told, [
    ['keyring.decrypt', { recipient: true }],
    ['keyring.encrypt', { recipient: true }],
  ]);
});

test('a public key that changed is refused, until its owner is asked and the old one taken away', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --json');
  await d.json('keyring create other --json');
  const keys = keyDirectory(d);
  const encrypt = () => d.kms('encrypt --ring payroll --recipient -o x.kms', { stdin: 'hi' });
  assert.equal((await encrypt()).code, 0);
  const known = await readFile(`${keys}/payroll.pub`, 'utf8');
  const { ring } = await d.json<{ ring: { publicKey: string } }>('keyring show other --json');
  await writeFile(`${keys}/payroll.pub`, `${ring.publicKey}\n`);
  await rm(d.path('x.kms'));
  const refused = await encrypt();
  assert.deepEqual(
    [refused.code, refused.stderr],
    [
      1,
      'kms: the appliance has another public key for the keyring payroll than when it was first used from here: its ' +
        `fingerprint is now ${await fingerprint(d)}; nothing ` +
        `was encrypted; if the keyring's owner says that its key pair was changed, remove ${keys}/payroll.pub\n`,
    ],
  );
  await assert.rejects(stat(d.path('x.kms')));
  await writeFile(`${keys}/payroll.pub`, 'nonsense');
  assert.match((await encrypt()).stderr, /payroll\.pub holds no public key/);
  await rm(`${keys}/payroll.pub`);
  assert.equal((await encrypt()).code, 0);
  assert.equal(await readFile(`${keys}/payroll.pub`, 'utf8'), known);
  // A given key takes precedence, and the pin stays as it is.
  await writeFile(d.path('other.pub'), ring.publicKey);
  await writeFile(d.path('payroll.pub'), known);
  const given = (file: string) =>
    d.kms(`encrypt --ring payroll --recipient --public-key ${file} -o ${file}.kms`, { stdin: 'hi' });
  assert.match(
    (await given('other.pub')).stderr,
    /another public key for the keyring payroll than the one that is known/,
  );
  assert.equal((await given('payroll.pub')).code, 0);
});

test('whoever upgrades the ring from here goes on encrypting to it, and others are to ask first', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --kem x25519 --json');
  await d.json('keyring create unseen --kem x25519 --json');
  const encrypt = (name: string) => d.kms(`encrypt --ring payroll --recipient -o ${name}`, { stdin: name });
  assert.equal((await encrypt('before')).code, 0);
  const elsewhere = await readFile(`${keyDirectory(d)}/payroll.pub`, 'utf8');
  for (const name of ['payroll', 'unseen']) assert.equal((await d.kms(`keyring upgrade ${name}`)).code, 0);
  assert.deepEqual(await encrypt('after').then(({ code, stderr }) => [code, stderr]), [0, '']);
  assert.deepEqual((await readdir(keyDirectory(d))).sort(), ['payroll.key', 'payroll.pub', 'unseen.key']);
  for (const name of ['before', 'after']) assert.equal((await d.kms(`decrypt ${name}`)).stdout, name);
  await writeFile(`${keyDirectory(d)}/payroll.pub`, elsewhere);
  assert.match((await encrypt('elsewhere')).stderr, /another public key for the keyring payroll/);
});

test('an upgrade that was cut off before it remembered the new pair is finished by the next one', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --kem x25519 --json');
  const pin = `${keyDirectory(d)}/payroll.pub`;
  const encrypt = (name: string) => d.kms(`encrypt --ring payroll --recipient -o ${name}`, { stdin: name });
  assert.equal((await encrypt('before')).code, 0);
  const before = await readFile(pin, 'utf8');
  assert.equal((await d.kms('keyring upgrade payroll')).code, 0);
  const after = await readFile(pin, 'utf8');
  await writeFile(pin, before);
  assert.equal((await encrypt('between')).code, 1);
  assert.equal((await d.kms('keyring upgrade payroll')).code, 0);
  assert.equal(await readFile(pin, 'utf8'), after);
  assert.equal((await encrypt('after')).code, 0);
  // Without its private key, nothing here proves that the new pair is right.
  await writeFile(pin, before);
  await rename(`${keyDirectory(d)}/payroll.key`, d.path('payroll.key'));
  assert.equal((await d.kms('keyring upgrade payroll')).code, 0);
  assert.equal(await readFile(pin, 'utf8'), before);
});

test('an appliance that says another id of itself is still asked for the public key that its address had', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --json');
  const { ring: other } = await d.json<{ ring: { publicKey: string } }>('keyring create other --json');
  // A proxy in front of the appliance that changes its answers.
  let lies = false;
  const proxy = createServer(async (request, response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { authorization = '' } = request.headers;
    const headers = { authorization, 'content-type': 'application/json' };
    const isPost = request.method === 'POST';
    const answer = await fetch(d.url + request.url, {
      headers,
      ...(isPost && { method: 'POST', body: Buffer.concat(chunks) }),
    });
    const body = Object(await answer.json());
    if (request.url === '/readyz') body.appliance = (lies ? 'b' : 'a').repeat(32);
    if (lies && 'publicKey' in body) body.publicKey = other.publicKey;
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = proxy.address() as AddressInfo; // it listens on TCP
    const encrypt = (name: string) =>
      d.kms(['encrypt', '--ring', 'payroll', '--recipient', '-o', name, '--server', `http://127.0.0.1:${port}`], {
        stdin: 'hi',
        env: { KMS_API_KEY: d.appliance.root.key },
      });
    const first = await encrypt('x');
    assert.deepEqual([first.code, first.stderr.match(/is remembered in/g)?.length], [0, 1]);
    lies = true;
    const refused = await encrypt('y');
    assert.equal(refused.code, 1);
    const pin = `${d.path('config', 'kms', 'addresses')}/127.0.0.1%3A${port}/payroll.pub`;
    assert.match(refused.stderr, /the appliance has another public key for the keyring payroll/);
    assert.ok(refused.stderr.includes(`remove ${pin}`), refused.stderr);
    assert.deepEqual(await readdir(keyDirectory(d)), ['a'.repeat(32), 'other.key', 'payroll.key']);
    assert.ok(!(await readdir(d.path())).includes('y'));
  } finally {
    proxy.closeAllConnections();
    await new Promise((resolve) => proxy.close(resolve));
  }
});

test('all places that remember the earlier public key are named at once', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --kem x25519 --json');
  const { args, env } = d.network();
  const encrypt = (name: string) =>
    d.kms([...args, 'encrypt', '--ring', 'payroll', '--recipient', '-o', name], { env, stdin: 'hi' });
  assert.equal((await encrypt('x')).code, 0);
  const pins = [
    `${keyDirectory(d)}/payroll.pub`,
    d.path(`config/kms/addresses/${encodeURIComponent(new URL(d.url).host)}/payroll.pub`),
  ];
  const before = await Promise.all(pins.map((path) => readFile(path, 'utf8')));
  assert.equal((await d.kms('keyring upgrade payroll')).code, 0);
  // Restores the pins, as on another machine, which the upgrade does not update.
  for (const [n, path] of pins.entries()) await writeFile(path, before[n] ?? '');
  const refused = await encrypt('y');
  assert.equal(refused.code, 1);
  assert.ok(refused.stderr.endsWith(`was changed, remove ${pins.join(' and ')}\n`), refused.stderr);
  for (const path of pins) await rm(path);
  assert.equal((await encrypt('y')).code, 0);
});

test('two writers that see the ring for the first time at once remember one key', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --json');
  const ran = await Promise.all(
    ['a', 'b', 'c'].map((name) => d.kms(`encrypt --ring payroll --recipient -o ${name}`, { stdin: name })),
  );
  assert.deepEqual(
    ran.map(({ code }) => code),
    [0, 0, 0],
  );
  assert.deepEqual((await readdir(keyDirectory(d))).sort(), ['payroll.key', 'payroll.pub']);
});

test('what makes no sense is told before anything is asked', async () => {
  await using d = await servedDesk();
  const wrong = async (args: string, expected: RegExp): Promise<void> => {
    const { code, stderr } = await d.kms(`encrypt ${args}`, { stdin: 'hi' });
    assert.equal(code, 2, stderr);
    assert.match(stderr, expected);
  };
  await wrong('--recipient', /--ring is missing/);
  await wrong('--ring a --ring b', /several go with --recipient alone/);
  await wrong('--ring a --public-key x', /--public-key goes with --recipient/);
  await wrong('--ring a --recipient --private-key x', /exclude each other/);
  await wrong('--ring a --ring b --recipient --public-key x', /--public-key goes with one --ring/);
  await wrong('--ring a --ring b --recipient --asset-data {}', /an asset belongs to one keyring/);
  const many = Array.from({ length: 21 }, (_, n) => `--ring r${n}`).join(' ');
  await wrong(`${many} --recipient`, /expected at most 20, got 21/);
  await wrong('--ring a --ring b --ring A --recipient', /--ring: expected each ring once/);
  await d.json('keyring create a --json');
  const unknown = await d.kms('encrypt --ring a --ring nono --recipient -o x.kms', { stdin: 'hi' });
  assert.deepEqual(
    [unknown.code, unknown.stderr.split('\n').at(-2)],
    [1, 'kms: nono: there is no such keyring; check the name or id'],
  );
});

test('a file for several rings opens by any of them, and offline where its ring allows that', async () => {
  await using d = await servedDesk();
  for (const name of ['payroll', 'vault']) await d.json(`keyring create ${name} --json`);
  assert.match((await d.kms('keyring config vault --offline-decrypt true')).stdout, /decrypt offline {4}yes/);
  assert.match((await d.kms('keyring show vault')).stdout, /offline {6}its private key alone opens files/);
  assert.doesNotMatch((await d.kms('keyring show payroll')).stdout, /offline/);
  const made = await d.json('encrypt --ring payroll --ring vault --recipient -o x.kms --json', { stdin: 'for two' });
  assert.equal(Object(made).rings.length, 2);
  const keys = keyDirectory(d);
  assert.equal((await d.kms('decrypt x.kms')).stdout, 'for two');
  const inspected = await d.json<{ rings: { ringname: string; opensOffline: boolean }[] }>('inspect x.kms --json');
  assert.deepEqual(
    inspected.rings.map(({ ringname, opensOffline }) => [ringname, opensOffline]),
    [
      ['payroll', false],
      ['vault', true],
    ],
  );
  await rename(`${keys}/payroll.key`, d.path('payroll.key'));
  assert.equal((await d.kms('decrypt x.kms')).stdout, 'for two', 'by the ring whose key is here');
  // A day without the appliance: no data directory, no server.
  await rename(d.path('kms-data'), d.path('gone'));
  const lost = await d.kms('decrypt x.kms');
  assert.equal(lost.code, 3);
  const offline = await d.kms('decrypt --offline -o back x.kms --json');
  assert.deepEqual([offline.code, offline.stderr], [0, '']);
  assert.deepEqual(Object.keys(JSON.parse(offline.stdout)), ['header']);
  assert.equal(await readFile(d.path('back'), 'utf8'), 'for two');
  const alone = await d.kms('decrypt --offline --private-key payroll.key x.kms');
  assert.deepEqual([alone.code, alone.stdout], [1, '']);
  assert.match(alone.stderr, /does not open without the appliance/);
  await rename(d.path('gone'), d.path('kms-data'));
});

test('an asset is verified by the appliance, and offline it is said that it was not', async () => {
  await using d = await servedDesk();
  await d.json('keyring create vault --json');
  await d.kms('keyring config vault --offline-decrypt true');
  const { asset } = await d.json<{ asset: { id: string } }>(
    'encrypt --ring vault --recipient --asset-data {"a":1} -o x.kms --json',
    { stdin: 'hi' },
  );
  const online = await d.kms('decrypt x.kms');
  assert.deepEqual([online.stdout, /is valid/.test(online.stderr)], ['hi', true]);
  const offline = await d.kms('decrypt --offline x.kms');
  assert.equal(offline.stderr, `kms: the asset ${asset.id} was not verified: no appliance was asked\n`);
  await d.kms(`asset delete ${asset.id} --yes`);
  assert.equal((await d.kms('decrypt x.kms')).code, 1);
  // An ordinary file needs the appliance, whatever is configured for its ring.
  assert.equal((await d.kms('encrypt --ring vault -o y.kms', { stdin: 'hi' })).code, 0);
  assert.match((await d.kms('decrypt --offline y.kms')).stderr, /does not open without the appliance/);
});
