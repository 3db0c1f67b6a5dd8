// The directory of JSON Lines: by day and tenant, private, in order; and a fault or a power failure at every step of
// writing, after which each record is there once, in its place, unchanged if it had arrived.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { after, test } from 'node:test';
import { canonicalJson } from '../../src/crypto/canonical-json.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import type { ActivityRecord, ChainedActivity } from '../../src/store/port.ts';
import { DirectoryReceiver } from '../../src/telemetry/streaming/directory.ts';
import { DeliveryFault } from '../../src/telemetry/streaming/receiver.ts';
import { prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-streamed-'));
after(() => rmSync(base, { recursive: true, force: true }));

const tenant = { id: 'tenant_01', name: 'blue' };
const noon = Date.UTC(2026, 0, 2, 12);
const day = 24 * 60 * 60 * 1000;

function chained(seq: number, props: Readonly<Record<string, unknown>> = {}): ChainedActivity {
  const record: ActivityRecord = {
    seq,
    id: `act_${seq}`,
    createdAt: 1,
    keyid: 'apik_1',
    action: 'keyring.encrypt',
    ringname: '',
    validAction: true,
    status: 200,
    props,
  };
  return { record, line: canonicalJson({ ...record }), hash: String(seq).padStart(43, 'A') };
}

const batch = (...seqs: readonly number[]) => ({ tenant, records: seqs.map((seq) => chained(seq)) });
const seqsOf = (text: string): number[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line).seq);

let count = 0;
function place(fileBytes?: number) {
  const path = join(base, String(++count));
  const clock = { now: noon };
  const events: ApplianceEvent[] = [];
  const settings = { now: () => clock.now, onEvent: (event: ApplianceEvent) => void events.push(event), fileBytes };
  const open = () => new DirectoryReceiver({ kind: 'directory', name: path, path }, settings);
  const names = () => readdirSync(join(path, 'blue')).sort();
  const read = (name: string) => readFileSync(join(path, 'blue', name), 'utf8');
  const all = () => names().flatMap((name) => seqsOf(read(name)));
  return { path, clock, events, open, names, read, all };
}

test('a file for each day, private, in a directory for each tenant', async () => {
  const { path, clock, open, names, all } = place();
  const receiver = open();
  await receiver.send(batch(1, 2));
  clock.now += day;
  await receiver.send(batch(3));
  await receiver.send({ tenant: { id: 'tenant_02', name: 'red' }, records: [chained(1)] });
  assert.deepEqual(names(), ['2026-01-02.0001.jsonl', '2026-01-03.0001.jsonl']);
  assert.deepEqual(all(), [1, 2, 3]);
  assert.deepEqual(readdirSync(join(path, 'red')), ['2026-01-03.0001.jsonl']);
  for (const name of ['blue', 'red']) assert.equal(statSync(join(path, name)).mode & 0o777, 0o700);
  for (const name of names()) assert.equal(statSync(join(path, 'blue', name)).mode & 0o777, 0o600, name);
});

test('a day that fills a file gets another one, and the names stand in the order of the records', async () => {
  const { clock, open, names, all } = place(500);
  for (let seq = 1; seq <= 12; seq++) await open().send(batch(seq));
  assert.ok(names().length >= 4, names().join());
  assert.deepEqual(
    all(),
    Array.from({ length: 12 }, (_, at) => at + 1),
  );
  clock.now -= 5 * day;
  await open().send(batch(13));
  assert.equal(all().at(-1), 13, 'although the clock went back');
});

test('a line that was cut off is repaired, and said', async () => {
  const { path, open, names, read, all, events } = place();
  await open().send(batch(1, 2, 3));
  const [name = ''] = names();
  const whole = read(name);
  for (const cut of [1, 20, whole.length - whole.lastIndexOf('\n', whole.length - 2) - 2]) {
    writeFileSync(join(path, 'blue', name), whole.slice(0, -cut));
    events.length = 0;
    assert.deepEqual(await open().arrived(tenant, 0), { seq: 2, hash: chained(2).hash });
    assert.deepEqual(all(), [1, 2], `${cut} bytes`);
    assert.match(events[0]?.message ?? '', /cut off \d+ bytes at the end of blue\/2026-01-02\.0001\.jsonl/);
  }
  writeFileSync(join(path, 'blue', name), '{"tenant":');
  assert.equal(await open().arrived(tenant, 0), undefined);
  assert.equal(read(name), '');
  await open().send(batch(4));
  assert.deepEqual(all(), [4]);
});

test('what has arrived is told by the last line that there is, of this tenant alone', async () => {
  const { path, clock, open, names } = place();
  assert.equal(await open().arrived(tenant, 0), undefined);
  await open().send({ tenant, records: [chained(1), chained(2, { note: 'x'.repeat(200_000) })] });
  assert.deepEqual(await open().arrived(tenant, 0), { seq: 2, hash: chained(2).hash });
  clock.now += day;
  writeFileSync(join(path, 'blue', '2026-01-03.0001.jsonl'), '', { mode: 0o600 });
  assert.deepEqual(await open().arrived(tenant, 0), { seq: 2, hash: chained(2).hash }, 'an empty file says nothing');
  assert.equal(await open().arrived({ id: 'tenant_99', name: 'blue' }, 0), undefined, 'a name that was taken over');
  for (const text of ['no JSON\n', '[]\n', '\0\0\0"tenantId":"tenant_01"}\n']) {
    writeFileSync(join(path, 'blue', names().at(-1) ?? ''), text);
    assert.deepEqual(await open().arrived(tenant, 0), { seq: 2, hash: chained(2).hash }, 'it is none of ours');
  }
  writeFileSync(join(path, 'blue', names().at(-1) ?? ''), '{"tenantId":"tenant_01","seq":"2"}\n');
  assert.equal(await open().arrived(tenant, 0), undefined);
});

test('files that somebody moved away or that are no files fail nothing but the try', async () => {
  const { path, open, all } = place();
  const receiver = open();
  await receiver.send(batch(1));
  rmSync(join(path, 'blue'), { recursive: true });
  await assert.rejects(
    receiver.send(batch(2)),
    (error: unknown) => error instanceof DeliveryFault && error.kind === 'file',
  );
  await receiver.send(batch(2));
  assert.deepEqual(all(), [2]);
  const blocked = place();
  writeFileSync(blocked.path, 'a file in its place');
  await assert.rejects(blocked.open().send(batch(1)), /part of its path is not a directory|exists/i);
});

/**
 * Delivers batches as a stream would: repeats each until it arrives, and after a crash continues after the last that
 * arrived.
 */
async function deliver(files: SimFiles, from: number, to: number, onArrived: (seq: number) => void) {
  const target = { kind: 'directory', name: 'simulated', path: '/' } as const;
  let now = noon;
  const receiver = new DirectoryReceiver(target, { now: () => now, onEvent: () => {}, fileBytes: 900 }, files);
  let place = Math.max(from, (await receiver.arrived(tenant, from))?.seq ?? 0);
  while (place < to) {
    const end = Math.min(place + 3, to);
    const seqs = Array.from({ length: end - place }, (_, at) => place + at + 1);
    await receiver.send(batch(...seqs)).then(
      () => {
        place = end;
        onArrived(place);
      },
      (error: unknown) => {
        if (files.crashed) throw error;
      },
    );
    now += day / 4;
  }
}

async function textOf(files: SimFiles): Promise<string> {
  const names = (await files.list('blue')).sort();
  const texts = await Promise.all(names.map(async (name) => Buffer.from(await files.read(`blue/${name}`)).toString()));
  return texts.join('');
}

const last = 30;
const everyone = Array.from({ length: last }, (_, at) => at + 1);

test('a loss of power at every step: what arrived is there, and in the end each record once', async (context) => {
  let points = 0;
  for (let crashAt = 1; ; crashAt++) {
    const generator = prng(crashAt);
    let files = new SimFiles({ prng: generator, crashAt });
    let arrived = 0;
    const crashed = await deliver(files, 0, last, (seq) => {
      arrived = seq;
    }).then(
      () => false,
      () => true,
    );
    if (!crashed) break;
    points++;
    files = files.restart({ prng: generator });
    // The noted position may be older than the last record that arrived, never newer.
    await deliver(files, Math.max(0, arrived - generator.int(4)), last, () => {});
    assert.deepEqual(seqsOf(await textOf(files)), everyone, `crash at ${crashAt}`);
  }
  context.diagnostic(`${points} crashes`);
  assert.ok(points > 40, String(points));
});

test('a failed write at every step: nothing is missing, nothing stands there twice', async (context) => {
  let points = 0;
  for (let failAt = 1; ; failAt++) {
    let failed = false;
    const files = new SimFiles({
      prng: prng(failAt),
      failure: (_, number) => {
        if (number < failAt || failed) return undefined;
        failed = true;
        return failAt % 2 === 0 ? 'EIO' : 'ENOSPC';
      },
    });
    await deliver(files, 0, last, () => {}).catch(async (error: unknown) => {
      assert.ok(error instanceof DeliveryFault, String(error));
      await deliver(files, 0, last, () => {});
    });
    if (!failed) break;
    points++;
    assert.deepEqual(seqsOf(await textOf(files)), everyone, `failure at ${failAt}`);
  }
  context.diagnostic(`${points} failures`);
  assert.ok(points > 40, String(points));
});

test('a file that somebody else filled is refused in time, whatever is in it, and left as it is', async () => {
  const { path, open, names } = place();
  await open().send(batch(1, 2));
  const file = join(path, 'blue', names()[0] ?? '');
  const whole = readFileSync(file);
  const mebibyte = 1024 * 1024;
  const line = `{"tenantId":"tenant_01","seq":9,"text":"${'x'.repeat(1000)}"}\n`;
  const contents: Readonly<Record<string, () => void>> = {
    'holes behind a line': () => truncateSync(file, 64 * 1024 * mebibyte),
    'no line feed': () => writeFileSync(file, Buffer.alloc(40 * mebibyte, 'x')),
    'a long line': () => writeFileSync(file, Buffer.concat([Buffer.alloc(40 * mebibyte, 'x'), Buffer.from('\n')])),
    'line feeds alone': () => writeFileSync(file, Buffer.alloc(20 * mebibyte, '\n')),
    'lines that are none': () => writeFileSync(file, Buffer.alloc(20 * mebibyte, 'no JSON, \n')),
    'lines of nobody knows what without an end': () => writeFileSync(file, Buffer.alloc(150 * mebibyte, line)),
  };
  for (const [what, put] of Object.entries(contents)) {
    writeFileSync(file, whole);
    put();
    const { size } = statSync(file);
    const held = monitorEventLoopDelay({ resolution: 10 });
    held.enable();
    const began = Date.now();
    await assert.rejects(
      open().arrived(tenant, 2),
      (error) => error instanceof DeliveryFault && /^blue\/.* was not written by this program/.test(error.message),
      what,
    );
    held.disable();
    assert.ok(Date.now() - began < 20_000, `${what}: ${Date.now() - began} ms`);
    assert.ok(held.max / 1e6 < 1000, `${what}: held for ${held.max / 1e6} ms`);
    assert.equal(statSync(file).size, size, what);
  }
  writeFileSync(file, whole);
  assert.deepEqual(await open().arrived(tenant, 0), { seq: 2, hash: chained(2).hash });
});
