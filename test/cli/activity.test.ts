// `kms activity` as typed: exports, heads, and verification from disk, from an export and over the network.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { toBase64 } from '../../src/crypto/bytes.ts';
import { mlDsaSign } from '../../src/crypto/ml-dsa.ts';
import { type Desk, desk } from './kms.ts';
import { servedDesk } from './served.ts';
import { serving } from './serving.ts';

/** An appliance with some records, and its export in `log.jsonl`. */
async function withExport(): Promise<Desk> {
  const d = await desk();
  await d.json('init --json');
  for (const name of ['a', 'b', 'c']) await d.json(`keyring create ${name} --json`);
  await d.kms('keyring show nobody');
  assert.deepEqual(
    await d.kms('activity export -o log.jsonl').then(({ code, stdout, stderr }) => [code, stdout, stderr]),
    [0, '', ''],
  );
  return d;
}

const verified = /^verified: (\d+) records( of the tenant default)?, up to record (\d+) with the hash [\w-]{43}\n/;

test('an export has one line a record, as JSON with hash and place', async () => {
  await using d = await withExport();
  const text = await readFile(d.path('log.jsonl'), 'utf8');
  assert.ok(text.endsWith('\n'));
  const records = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    records.map(({ seq, action, status }) => [seq, action, status]),
    [
      [1, 'keyring.create', 200],
      [2, 'keyring.create', 200],
      [3, 'keyring.create', 200],
      [4, 'keyring.read', 404],
      [5, 'activity.read', 200],
    ],
  );
  const again = await d.kms('activity export -o log.jsonl');
  assert.deepEqual([again.code, await readFile(d.path('log.jsonl'), 'utf8')], [1, text], 'nothing is overwritten');
  const toStdout = await d.kms('activity export --json');
  assert.ok(toStdout.stdout.startsWith(text));
});

test('it verifies from disk, and from an export without an appliance', async () => {
  await using d = await withExport();
  assert.match((await d.kms('activity verify')).stdout, verified);
  await using empty = await desk();
  const log = await readFile(d.path('log.jsonl'));
  const file = await empty.kms('activity verify --file -', { stdin: log });
  assert.deepEqual([file.code, verified.exec(file.stdout)?.slice(1)], [0, ['5', undefined, '5']]);
  const { valid, count } = await empty.json('activity verify --file - --json', { stdin: log });
  assert.deepEqual([valid, count], [true, 5]);
});

test('whatever one byte is changed to, the record is named', async () => {
  await using d = await withExport();
  const log = await readFile(d.path('log.jsonl'));
  const lines = log.toString().trim().split('\n');
  let record = 1;
  for (let at = 0; at < log.length; at += 7) {
    record = log.subarray(0, at).toString().split('\n').length;
    for (const byte of [0, 10, 255, (log[at] ?? 0) ^ 1]) {
      if (byte === log[at]) continue;
      const changed = Buffer.from(log);
      changed[at] = byte;
      const { code, stdout, stderr } = await d.kms('activity verify --file -', { stdin: changed });
      assert.deepEqual([code, stdout], [1, ''], `${at}: ${byte}`);
      // Without the line feed between two records, the first of them is no longer a record. If the changed digit makes
      // the position that of another record, both are named.
      const named = `(record ${record}\\b|record \\d+ was moved or repeated: it stands in the place of record ${record};)`;
      assert.match(stderr, new RegExp(`^kms: the activity log does not verify: ${named}`), `${at}: ${byte}`);
    }
  }
  assert.equal(record, lines.length);
});

test('a file without a record is no proof, and a key that nothing is compared with is wrong usage', async () => {
  await using d = await withExport();
  for (const json of ['', ' --json']) {
    const { code, stdout, stderr } = await d.kms(`activity verify --file -${json}`);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^kms: record 1 is missing: the export has no record in it, and nothing was verified; export it again, .*\n$/,
    );
    const keyed = await d.kms(`activity verify --file log.jsonl --public-key nonsense${json}`);
    assert.deepEqual([keyed.code, keyed.stdout], [2, '']);
    assert.match(keyed.stderr, /^kms: --public-key goes with --since: the export has no head; see .*\n$/);
  }
  const fromElsewhere = await d.kms('activity verify --file log.jsonl', { env: { KMS_PUBLIC_KEY: 'x' } });
  assert.equal(fromElsewhere.code, 0);
});

for (const [what, change, problem] of [
  [
    'dropped',
    (lines: string[]) => lines.toSpliced(2, 1),
    'record 3 was dropped or moved: record 4 stands in its place',
  ],
  ['moved', (lines: string[]) => [lines[0], lines[2], lines[1], ...lines.slice(3)], 'record 2 was dropped or moved'],
  ['repeated', (lines: string[]) => lines.toSpliced(1, 0, lines[0] ?? ''), 'record 1 was moved or repeated'],
  ['a blank line', (lines: string[]) => lines.toSpliced(3, 0, ''), 'record 4 was changed'],
] as const) {
  test(`an export with a record ${what} does not verify`, async () => {
    await using d = await withExport();
    const lines = (await readFile(d.path('log.jsonl'), 'utf8')).trim().split('\n');
    await writeFile(d.path('changed.jsonl'), `${change(lines).join('\n')}\n`);
    const { code, stderr } = await d.kms('activity verify --file changed.jsonl');
    assert.equal(code, 1);
    assert.ok(stderr.includes(`does not verify: ${problem}`), stderr);
    const json = await d.kms('activity verify --file changed.jsonl --json');
    assert.deepEqual([json.code, JSON.parse(json.stdout).valid], [1, false]);
  });
}

test('a head that was kept shows that an end was cut off, in an export and in the data', async () => {
  await using d = await withExport();
  await writeFile(d.path('head.txt'), (await d.kms('activity head')).stdout);
  await writeFile(d.path('head.json'), (await d.kms('activity head --json')).stdout);
  await d.kms('activity export -o later.jsonl');
  // Reading a head is itself recorded.
  for (const [head, seq] of [
    ['head.txt', 5],
    ['head.json', 6],
  ] as const) {
    for (const file of ['', '--file later.jsonl']) {
      const { code, stdout } = await d.kms(`activity verify --since ${head} ${file}`.trim());
      assert.equal(code, 0, `${head} ${file}`);
      assert.match(stdout, new RegExp(`\\nrecord ${seq}, anchored at \\S+Z, is still there; key: \\S+\\n$`));
    }
  }
  const lines = (await readFile(d.path('log.jsonl'), 'utf8')).trim().split('\n');
  await writeFile(d.path('cut.jsonl'), `${lines.slice(0, 4).join('\n')}\n`);
  assert.equal((await d.kms('activity verify --file cut.jsonl')).code, 0, 'nothing in it shows it');
  const cut = await d.kms('activity verify --file cut.jsonl --since head.json');
  assert.equal(cut.code, 1);
  assert.match(cut.stderr, /the chain ends at record 4: records up to 6, which were anchored, were dropped/);

  await using other = await withExport();
  const foreign = await other.kms(['activity', 'verify', '--since', d.path('head.json')]);
  assert.equal(foreign.code, 1);
  assert.match(foreign.stderr, /^kms: the head belongs to another tenant, tenant_/);
});

test('an export of what came since begins after the head, and verifies with it', async () => {
  await using d = await withExport();
  await writeFile(d.path('head.json'), (await d.kms('activity head --json')).stdout);
  await d.json('keyring create d --json');
  const newer = (await d.kms('activity export --since head.json')).stdout;
  assert.deepEqual(
    newer
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).seq),
    [6, 7, 8],
  );
  assert.equal((await d.kms('activity verify --file - --since head.json', { stdin: newer })).code, 0);
  const alone = await d.kms('activity verify --file -', { stdin: newer });
  assert.match(alone.stderr, /record 1 was dropped .*; an export that begins later needs --since/);
  const changed = newer.replace('"keyring.create"', '"keyring.delete"');
  const verdict = await d.kms('activity verify --file - --since head.json', { stdin: changed });
  assert.match(verdict.stderr, /record 7 was changed: its hash does not fit/);
});

test('a head signed with ML-DSA-65, too: as JSON and as text, here, in the export, and never halfway', async () => {
  await using d = await withExport();
  const head = await d.json<Record<string, string>>('activity head --post-quantum --json');
  await writeFile(d.path('head.json'), JSON.stringify(head));
  await writeFile(d.path('head.txt'), (await d.kms('activity head --post-quantum')).stdout);
  const spki = Buffer.from(head.mlDsaPublicKey ?? '', 'base64');
  const noted = createHash('sha256').update(spki).digest('hex');
  assert.deepEqual([spki.length, Buffer.from(head.mlDsaSignature ?? '', 'base64').length], [1974, 3309]);
  const plain = await d.json<Record<string, string>>('activity head --json');
  assert.deepEqual(
    [plain.mlDsaPublicKey, plain.mlDsaSignature, plain.publicKey],
    [undefined, undefined, head.publicKey],
  );
  await writeFile(d.path('log.jsonl'), (await d.kms('activity export')).stdout);
  for (const file of ['head.json', 'head.txt']) {
    for (const more of ['', '--file log.jsonl', `--file log.jsonl --public-key ${noted}`]) {
      const { code, stdout, stderr } = await d.kms(`activity verify --since ${file} ${more}`.trim());
      assert.equal(code, 0, `${file} ${more}: ${stderr}`);
      assert.ok(stdout.endsWith(`\nsigned with ML-DSA-65, too; SHA-256 of the key: ${noted}\n`), stdout);
    }
  }
  const other = await d.json<Record<string, string>>('activity head --post-quantum --json');
  const { mlDsaSignature: _, ...without } = head;
  const cases: readonly (readonly [object, string, RegExp])[] = [
    [{ ...head, mlDsaSignature: other.mlDsaSignature }, '', /the head was changed/],
    [{ ...head, mlDsaSignature: other.mlDsaSignature }, '--file log.jsonl', /the head was changed/],
    [without, '', /expected a head of the format/],
    [without, '--file log.jsonl', /expected a head of the format/],
    [plain, `--file log.jsonl --public-key ${noted}`, /signed by another key/],
    [head, `--file log.jsonl --public-key ${'0'.repeat(64)}`, /signed by another key/],
  ];
  for (const [wrong, more, message] of cases) {
    await writeFile(d.path('wrong.json'), JSON.stringify(wrong));
    const { code, stderr } = await d.kms(`activity verify --since wrong.json ${more}`.trim());
    assert.deepEqual([code, message.test(stderr)], [1, true], stderr);
  }
  // Another's ML-DSA key beside this tenant's own Ed25519 key: valid by itself, but not this tenant's.
  const message = `${['format', 'tenant', 'seq', 'hash', 'signedAt'].map((name) => head[name]).join('\n')}\n`;
  const { spki: theirs, signature } = mlDsaSign(new Uint8Array(32), Buffer.from(message));
  const mixed = { ...head, mlDsaPublicKey: toBase64(theirs), mlDsaSignature: toBase64(signature) };
  await writeFile(d.path('wrong.json'), JSON.stringify(mixed));
  assert.equal((await d.kms('activity verify --since wrong.json --file log.jsonl')).code, 0);
  assert.match((await d.kms('activity verify --since wrong.json')).stderr, /the signature is not from this tenant/);
  // A retired epoch's key remains known as this tenant's own.
  assert.equal((await d.kms('tenant rekey default')).code, 0);
  const later = await d.json<Record<string, string>>('activity head --post-quantum --json');
  assert.notEqual(later.mlDsaPublicKey, head.mlDsaPublicKey);
  assert.equal((await d.kms('activity verify --since head.json')).code, 0);
});

test('a head that was changed, or signed by another key, counts for nothing', async () => {
  await using d = await withExport();
  const head = await d.json<Record<string, string | number>>('activity head --json');
  const verify = async (changed: object, more = ''): Promise<[number, string]> => {
    await writeFile(d.path('head.json'), JSON.stringify(changed));
    const { code, stderr } = await d.kms(`activity verify --since head.json ${more}`.trim());
    return [code, stderr];
  };
  for (const more of ['', '--file log.jsonl']) {
    for (const [field, value] of [
      ['seq', 4],
      ['hash', 'A'.repeat(43)],
      ['signedAt', '2020-01-01T00:00:00.000Z'],
      ['signature', `AAAA${String(head.signature).slice(4)}`],
    ]) {
      const [code, stderr] = await verify({ ...head, [String(field)]: value }, more);
      assert.deepEqual([code, /the head was changed/.test(stderr)], [1, true], `${field} ${more}: ${stderr}`);
    }
    for (const wrong of [
      {},
      { ...head, format: 'x' },
      { ...head, seq: -1 },
      { ...head, seq: '5' },
      { ...head, hash: 'x' },
    ]) {
      const [code, stderr] = await verify(wrong, more);
      assert.deepEqual([code, /expected a head of the format/.test(stderr)], [1, true], stderr);
    }
  }
  await using other = await withExport();
  const theirs = await other.json<Record<string, string>>('activity head --json');
  await writeFile(d.path('head.json'), JSON.stringify(head));
  const line = (key: unknown) => [
    'activity',
    'verify',
    '--file',
    'log.jsonl',
    '--since',
    'head.json',
    '--public-key',
    String(key),
  ];
  assert.equal((await d.kms(line(head.publicKey))).code, 0);
  assert.match((await d.kms(line(theirs.publicKey))).stderr, /signed by another key than expected/);
  for (const text of ['', 'nonsense', '{']) {
    await writeFile(d.path('head.json'), text);
    const { code, stderr } = await d.kms('activity verify --since head.json');
    assert.equal(code, 1);
    assert.match(stderr, /does not hold a head of the activity log; keep what `kms activity head` prints, whole\n$/);
  }
});

test('over the socket the answers are the same, and over the network with the flag activity.read', async () => {
  await using d = await withExport();
  await d.kms('apikey create --account admin --flag activity.read --secret-out auditor.key');
  await d.kms('apikey create --account admin --flag keyring.list --secret-out other.key');
  const server = await serving(d);
  try {
    const head = await d.json('activity head --json');
    assert.equal(head.seq, 7);
    assert.match((await d.kms('activity verify')).stdout, verified);
    const { stdout } = await d.kms('activity export');
    assert.ok(stdout.startsWith(await readFile(d.path('log.jsonl'), 'utf8')));
    const { stdout: json } = await d.kms('activity verify --file - --json', { stdin: stdout });
    assert.equal(JSON.parse(json).count, 9);

    const auditor = `--server ${server.url} --api-key-file auditor.key`;
    const theirs = await d.json(`activity head --json ${auditor}`);
    assert.deepEqual([theirs.seq, theirs.publicKey], [9, head.publicKey]);
    await writeFile(d.path('head.json'), JSON.stringify(theirs));
    assert.equal((await d.kms(`activity export -o theirs.jsonl ${auditor}`)).code, 0);
    const lines = (await readFile(d.path('theirs.jsonl'), 'utf8')).trim().split('\n');
    assert.deepEqual([lines.length, JSON.parse(lines.at(-1) ?? '').action], [11, 'activity.read']);
    const whole = await d.kms(`activity verify --since head.json --public-key ${head.publicKey} ${auditor}`);
    assert.match(whole.stdout, /^verified: 12 records, up to record 12 with the hash \S+\nrecord 9, anchored at /);
    const newer = (await d.kms(`activity export --since head.json ${auditor}`)).stdout;
    assert.equal(JSON.parse(newer.split('\n')[0] ?? '').seq, 10);

    for (const command of ['head', 'verify', 'export']) {
      const { code, stdout, stderr } = await d.kms(
        `activity ${command} --server ${server.url} --api-key-file other.key`,
      );
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^kms: the permission flag activity\.read is missing/);
    }
  } finally {
    await server.stop();
  }
});

test('each tenant has a chain and a key of its own', async () => {
  await using d = await withExport();
  await d.json('tenant create blue --host blue.example --json');
  assert.equal((await d.kms('activity head')).code, 2, 'which tenant?');
  const mine = await d.json('activity head --tenant default --json');
  const theirs = await d.json('activity head --tenant blue --json');
  assert.deepEqual([mine.seq, theirs.seq], [5, 1]);
  assert.notEqual(mine.publicKey, theirs.publicKey);
  assert.match((await d.kms('activity verify --tenant blue')).stdout, /^verified: 2 records of the tenant blue/);
});

test('an act that was granted and failed says so in the list, and with one record', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('keyring create payroll --json');
  await d.json('apikey create --account admin --flag keyring.payroll.encrypt --json');
  assert.equal((await d.kms('keyring delete payroll --yes')).code, 1);
  await d.kms('keyring show nobody');
  const { stdout } = await d.kms('activity search', { tty: { stdout: true, columns: 80 }, env: { NO_COLOR: '1' } });
  assert.match(stdout, /granted, failed \(4\d\d\) +keyring\.delete +payroll/);
  assert.match(stdout, /granted, failed \(404\) +keyring\.read +nobody/);
  assert.match(stdout, /granted {2,}keyring\.create +payroll/);
  const [{ id } = { id: '' }] = (
    await d.json<{ data: { id: string }[] }>('activity search --action keyring.delete --json')
  ).data;
  assert.match((await d.kms(['activity', 'show', id])).stdout, /^verdict +granted, failed \(4\d\d\)$/m);
});

test('times of one record are local on a terminal, and exact with --wide, with --json and elsewhere', async () => {
  await using d = await withExport();
  const [{ id } = { id: '' }] = (await d.json<{ data: { id: string }[] }>('activity search --json')).data;
  const shown = async (tty: object, ...more: string[]): Promise<string> =>
    (await d.kms(['activity', 'show', id, ...more], { tty })).stdout;
  assert.match(await shown({ stdout: true }), /^time +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \((just now|\d+ s ago)\)$/m);
  for (const exact of [await shown({}), await shown({ stdout: true }, '--wide')]) {
    assert.match(exact, /^time +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/m);
  }
  // A head is read again with --since.
  const { stdout } = await d.kms('activity head', { tty: { stdout: true } });
  assert.match(stdout, /^signed at +\d{4}-\d\d-\d\dT/m);
});

test('at 80 columns a keyring with a long name is listed whole, and no line is wider', async () => {
  await using d = await desk();
  await d.json('init --json');
  const name = 'payroll-of-the-whole-group-in-all-countries-and-regions-0123456';
  await d.json(`keyring create ${name} --json`);
  for (const columns of [80, 100]) {
    const { stdout } = await d.kms('activity search', { tty: { stdout: true, columns }, env: { NO_COLOR: '1' } });
    for (const line of stdout.split('\n')) assert.ok(line.length <= columns, line);
    const titles = stdout.split('\n')[0] ?? '';
    const [from, to] = [titles.indexOf('RING'), titles.indexOf('BY')];
    const cells = stdout
      .split('\n')
      .slice(1)
      .map((line) => line.slice(from, to).trim());
    assert.ok(cells.join('').startsWith(name), stdout);
  }
});

test('on a terminal people see the names of callers, asked for once; ids with --wide, and elsewhere', async () => {
  await using d = await servedDesk();
  await d.json('account create svc --json');
  const long = 'the-worker-of-the-whole-group-in-all-countries-and-regions';
  const made = async (name: string) =>
    d.json<{ key: string; keyid: string }>(
      `apikey create --account svc --flag * --name ${name} --json`.split(' ').filter(Boolean),
    );
  const keys = [await made('worker'), await made(long)];
  for (const { key } of keys) {
    const { args, env } = d.network(key);
    assert.equal((await d.kms(['keyring', 'list', ...args], { env })).code, 0);
  }
  const tty = { stdout: true, columns: 80 };
  const search = async (options: object, ...more: string[]): Promise<string> =>
    (await d.kms(['activity', 'search', ...more], { env: { NO_COLOR: '1' }, ...options })).stdout;
  const asked = async (): Promise<number> =>
    (await d.appliance.activity()).filter(({ action }) => action === 'system.names').length;
  const shown = await search({ tty }, '--action', 'keyring.list');
  assert.match(shown, /^\S.* keyring\.list +worker\b/m);
  assert.doesNotMatch(shown, /apik_/);
  for (const line of shown.split('\n')) assert.ok(line.length <= 80, line);
  const at = shown.split('\n')[0]?.indexOf('BY') ?? 0;
  const cells = shown
    .split('\n')
    .slice(1)
    .map((line) => line.slice(at).split(/ {2,}/)[0]?.trim());
  assert.ok(cells.join('').includes(long), shown);
  assert.equal(await asked(), 1);
  for (const ids of [await search({ tty }, '--wide'), await search({}), await search({ tty }, '--json')]) {
    for (const { keyid } of keys) assert.ok(ids.includes(keyid), ids);
  }
  assert.equal(await asked(), 1, 'programs leave no record of a listing');
  const [{ id } = { id: '' }] = (
    await d.json<{ data: { id: string }[] }>(`activity search --keyid ${keys[0]?.keyid} --json`)
  ).data;
  const one = await d.kms(['activity', 'show', id], { tty: { stdout: true } });
  assert.match(one.stdout, new RegExp(`^by +worker \\(${keys[0]?.keyid}\\)$`, 'm'));
  assert.match((await d.kms(['activity', 'show', id])).stdout, new RegExp(`^by +${keys[0]?.keyid}$`, 'm'));
});

test('an export reads how many records there are only where somebody watches, as programs leave no record of it', async () => {
  await using d = await withExport();
  const reads = async (): Promise<number> =>
    (await d.json<{ data: unknown[] }>('activity search --action activity.read --all --json')).data.length;
  const recorded = async (args: string, options = {}): Promise<number> => {
    const before = await reads();
    const { code, stderr } = await d.kms(args, options);
    assert.deepEqual([code, stderr], [0, ''], 'it is done before there is anything to show');
    // One is that of the search.
    return (await reads()) - before - 1;
  };
  assert.equal(await recorded('activity export -o off.jsonl'), 1);
  assert.equal(await recorded('activity export', { tty: { stderr: true } }), 1);
  assert.equal(await recorded('activity export -o watched.jsonl', { tty: { stderr: true } }), 2);
});
