// `kms standby` as typed: option combinations that are refused, its output, and that no recovery kit is left beside the
// data.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { test } from 'node:test';
import { until } from '../support/until.ts';
import { desk } from './kms.ts';
import { serving } from './serving.ts';

test('what makes no sense is said, and nothing is made', async () => {
  await using d = await desk();
  await d.kms('init');
  for (const [line, message] of [
    ['standby', '--from is missing: the directory of `kms serve --ship-to`'],
    ['standby demote', 'expected promote or nothing, got "demote"'],
    ['standby --from shipped --wait 5s', '--wait goes with `kms standby promote`'],
    ['standby --from shipped --unfenced', '--unfenced goes with `kms standby promote`'],
    ['standby --from shipped --accept-older', '--accept-older goes with `kms standby promote`'],
    [
      'standby --from kms-data --data kms-data/x',
      '--from: the shipped directory and the data directory must be two places',
    ],
    ['standby --from x/y --data x', '--from: the shipped directory and the data directory must be two places'],
    ['standby --from kms-data.master.key --data x', '--from: expected a directory'],
    [
      'standby --from shipped --server http://localhost:1',
      '--server: a standby is on the machine that is to take over',
    ],
    ['standby --from shipped --store postgres://localhost/kms --data x', '--store: a database has standbys of its own'],
    ['standby --from shipped --data x --listen nowhere', '--listen: expected HOST:PORT'],
  ] as const) {
    const { code, stderr, stdout } = await d.kms(line);
    assert.deepEqual([code, stdout], [2, ''], line);
    assert.ok(stderr.startsWith(`kms: ${message}`), `${line}: ${stderr}`);
  }
  for (const [line, message] of [
    [
      'standby promote --data x',
      'is not the directory of a standby; make one with `kms standby --from DIR --data NEWDIR`',
    ],
    ['standby promote --from nowhere --data x --key-file kms-data.master.key', 'what is shipped to: there is no such'],
    ['standby promote --from kms-data --data y', 'is a data directory, not shipped to; give the directory of'],
    ['standby promote --from shipped', 'kms-data decides which appliance is fenced off, and it was not named'],
    [
      'standby promote --from shipped --data kms-data',
      'holds an appliance, not a standby; if it was one, it took over; serve it with',
    ],
  ] as const) {
    const { code, stderr } = await d.kms(line);
    assert.equal(code, 1, line);
    assert.ok(stderr.includes(message), `${line}: ${stderr}`);
  }
  assert.ok(!existsSync(d.path('y')));
});

test('doctor says how a standby is: whether it follows, what it cannot see, and who took over', async () => {
  await using d = await desk();
  await d.kms('init');
  const server = await serving(d, ['--ship-to', 'shipped']);
  await server.stop();
  const names = async (): Promise<string[]> => {
    const { stdout, code } = await d.kms('doctor --data second --json');
    const { findings } = JSON.parse(stdout);
    const found = findings.map(({ name }: { name: string }) => name).filter((name: string) => !machine.includes(name));
    assert.equal(code, findings.every(({ severity }: { severity: string }) => severity === 'advice') ? 0 : 1);
    return found.sort();
  };
  const machine = ['swap', 'core-dumps', 'disk-low', 'files-low', 'parent-writable'];
  const follow = async (args: readonly string[], look: () => Promise<unknown>): Promise<void> => {
    const end = new AbortController();
    let said = '';
    const line = ['standby', '--from', 'shipped', '--data', 'second', '--listen', '127.0.0.1:0', ...args];
    const ran = d.kms([...line, '--log-level', 'silent'], {
      signal: end.signal,
      onStderr: (text) => {
        said += text;
      },
    });
    while (!said.includes('listening')) await new Promise((resolve) => setTimeout(resolve, 20));
    try {
      await look();
    } finally {
      end.abort();
      await ran;
    }
  };
  const finds = (...wanted: readonly string[]) =>
    until(`doctor finds ${wanted}`, async () => (await names()).join() === wanted.join());
  await follow(['--key-file', 'kms-data.master.key'], () => finds());
  const [first = ''] = readdirSync(d.path('shipped'));
  const journal = d.path('shipped', first, 'points.kms');
  const whole = readFileSync(journal);
  await follow(['--key-file', 'kms-data.master.key'], async () => {
    appendFileSync(journal, 'what no appliance\nwrote\nthere\n');
    let stdout = '';
    // Before its first look, doctor finds that it does not follow, too.
    await until('doctor tells the line', async () => {
      ({ stdout } = await d.kms('doctor --data second'));
      return /line [0-9]+ does not verify/.test(stdout);
    });
    assert.deepEqual(await names(), ['standby-not-following']);
    assert.match(stdout, /it keeps what it has, and goes on once that is put right: nothing was changed/);
    assert.doesNotMatch(stdout, /by itself/);
    assert.match((await d.kms('status --data second')).stdout, /^what to do +it keeps what it has, and goes on once/m);
    writeFileSync(journal, whole);
    await finds();
    renameSync(d.path('shipped'), d.path('away'));
    await finds('standby-not-following', 'standby-source');
    assert.match(
      (await d.kms('doctor --data second')).stdout,
      /it keeps what it has, and resumes by itself once it can/,
    );
    renameSync(d.path('away'), d.path('shipped'));
    await finds();
  });
  renameSync(d.path('kms-data.master.key'), d.path('kept.key'));
  await follow([], () => finds('standby-without-key'));
  assert.deepEqual(await names(), ['standby-stopped']);
  renameSync(d.path('shipped'), d.path('away'));
  assert.deepEqual(await names(), ['standby-source', 'standby-stopped']);
  renameSync(d.path('away'), d.path('shipped'));
  const [life = ''] = readdirSync(d.path('shipped'));
  writeFileSync(d.path('shipped', life, 'kms.fence'), '{"by":"x","host":"other"}\tnot signed\n');
  assert.deepEqual(await names(), ['standby-fenced', 'standby-stopped']);
  const text = await d.kms('doctor --data second');
  assert.match(text.stdout, /warning standby-stopped: .*no standby runs here: nothing follows .*shipped/);
});

test('promoted without running, with a recovery kit', async () => {
  await using d = await desk();
  await d.kms('init --recovery-kit kit.txt');
  const server = await serving(d, ['--ship-to', 'shipped']);
  await server.stop();
  const away = ['--data', 'second', '--key-file', 'kit.txt'];
  const none = await d.kms('standby promote --from shipped --data second --wait 1s --key-file none.key');
  assert.notEqual(none.code, 0);
  const taken = await d.kms(['standby', 'promote', '--from', 'shipped', '--wait', '1s', ...away]);
  assert.equal(taken.code, 0, taken.stderr);
  assert.match(taken.stdout, /^complete +not known$/m);
  assert.match(taken.stdout, /^log of tenants\/[0-9a-f]{16} +\d+ records, \S{43}$/m);
  assert.match(
    taken.stderr,
    /warning: the one before did not say that it stopped: what it answered after 2.+ is missing/,
  );
  assert.match(taken.stderr, /next: kms serve --data .+\/second$/m);
  assert.ok(!existsSync(d.path('second.master.key')), 'a recovery kit belongs in a safe');
  const again = await d.kms(['standby', 'promote', ...away]);
  assert.match(again.stderr, /holds an appliance, not a standby/);
  assert.equal((await d.kms(['keyring', 'list', ...away])).code, 0);
  const old = await d.kms('keyring list');
  assert.equal(old.code, 1);
  assert.match(
    old.stderr,
    /^kms: a standby on .+ took over at .+: this appliance no longer serves; use the one that took over/,
  );
  const served = await d.kms('serve --listen 127.0.0.1:0 --log-level silent');
  assert.equal(served.code, 1);
  assert.match(served.stderr, /no longer serves/);
});

test('a directory of another, with a mark in it, stops no appliance and gets no key', async () => {
  await using d = await desk();
  await d.kms('init --data live');
  const server = await serving(d, ['--data', 'live', '--ship-to', 'shipped']);
  try {
    const shipped = () => existsSync(d.path('shipped')) && readdirSync(d.path('shipped')).length > 0;
    await until('it ships', async () => shipped());
    const isFenced = (): boolean =>
      readdirSync(d.path('shipped'), { recursive: true }).some((name) => /kms\.fence$/.test(String(name)));
    const mark = { format: 1, id: '0011'.repeat(8), from: d.path('shipped') };
    const plant = (...place: string[]): void => {
      mkdirSync(d.path(...place), { mode: 0o700, recursive: true });
      writeFileSync(d.path(...place, 'kms.standby'), `${JSON.stringify(mark)}\n`, { mode: 0o600 });
    };
    plant('kms-data');
    const how = '--wait 1s --key-file live.master.key';
    for (const line of ['standby promote', 'standby promote --unfenced', 'standby promote --from shipped']) {
      const { code, stderr } = await d.kms(`${line} ${how}`);
      assert.equal(code, 1, line);
      assert.match(stderr, /kms-data decides which appliance is fenced off, and it was not named/, line);
    }
    assert.ok(!isFenced());
    if (process.geteuid?.() !== 0) return;
    plant('theirs', 'kms-data');
    for (const name of ['', 'kms-data', 'kms-data/kms.standby']) chownSync(d.path('theirs', name), 65_532, 65_532);
    const refused = await d.kms(`standby promote --data theirs/kms-data ${how}`);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /theirs\/kms-data: belongs to another user, and it alone says what is followed/);
    assert.ok(!isFenced());
    const taken = await d.kms(`standby promote --data theirs/kms-data --from shipped ${how}`);
    assert.equal(taken.code, 0, taken.stderr);
    assert.ok(isFenced());
    assert.deepEqual(readdirSync(d.path('theirs')), ['kms-data']);
    assert.match(taken.stderr, /next: kms serve --data \S+theirs\/kms-data --key-file \S+live\.master\.key$/m);
  } finally {
    await server.stop();
  }
});

test('a life under another name, and a directory in place of a backup, are told as what they are', async () => {
  await using d = await desk();
  await d.kms('init');
  const server = await serving(d, ['--ship-to', 'shipped']);
  await server.stop();
  const [life = ''] = readdirSync(d.path('shipped'));
  cpSync(d.path('shipped', life), d.path('copied', life.replace(/-[0-9]+$/, '-1800000000000')), { recursive: true });
  const key = '--key-file kms-data.master.key';
  const copied = await d.kms(`restore copied --data new ${key}`);
  assert.equal(copied.code, 1);
  assert.match(copied.stderr, /no line of its journal, points\.kms, verifies, as in a copy under another name/);
  const journal = d.path('copied', readdirSync(d.path('copied'))[0] ?? '', 'points.kms');
  appendFileSync(journal, readFileSync(journal));
  const longer = await d.kms(`restore copied --data new ${key}`);
  assert.match(longer.stderr, /points\.kms: line 1 does not verify; nothing was changed; none of it can be used: /);
  assert.match(longer.stderr, /a copy under another name than the one that it was shipped to/);
  for (const name of ['shipped', `shipped/${life}`]) {
    const { code, stderr } = await d.kms(`backup verify ${name} ${key}`);
    assert.equal(code, 1);
    assert.match(stderr, /: is a directory, and this verifies a backup, which is one file; name a file in it; /);
    assert.doesNotMatch(stderr, /damaged|another backup/);
  }
  rmSync(d.path('copied'), { recursive: true });
  assert.equal((await d.kms(`restore shipped --data new ${key}`)).code, 0);
});
