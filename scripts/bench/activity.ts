// Figures of the activity log at a million records, on real files: `node scripts/bench/activity.ts [records]`. Run by hand.
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ActivityLogOptions, emptyHead, openActivityLog } from '../../src/store/activity/activity-log.ts';
import type { Files } from '../../src/store/files.ts';
import type { ActivityFilter } from '../../src/store/port.ts';

// As a child of itself it opens what the parent made and says what that costs a fresh process.
const opening = process.argv[2] === 'open';
const records = opening ? 0 : Number(process.argv[2] ?? 1_000_000);
const root = opening ? (process.argv[3] ?? '') : await mkdtemp(join(tmpdir(), 'kms-activity-'));
if (!opening) await mkdir(join(root, 'a'));

const partial = {
  read: (name: string) => readFile(join(root, name)),
  readAt: async (name: string, offset: number, length: number) => {
    const file = await open(join(root, name));
    try {
      const { buffer, bytesRead } = await file.read(new Uint8Array(length), 0, length, offset);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  },
  replace: async (name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>) => {
    await writeFile(join(root, `${name}.new`), bytes, { flush: true });
    await rename(join(root, `${name}.new`), join(root, name));
  },
};
// The log uses nothing else of the port.
const files = partial as unknown as Files;

const key = new Uint8Array(32).fill(7);
const uid = new Uint8Array(16).fill(9);
const options: ActivityLogOptions = {
  files,
  dir: 'a',
  keys: { epoch: 1, key: () => key },
  uid,
  segments: [],
  tail: [],
  head: emptyHead,
};

let state = 42;
const chance = (below: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};
const text = '0123456789abcdefghjkmnpqrstvwxyz';
const random = (length: number): string => Array.from({ length }, () => text[chance(32)]).join('');
const start = Date.UTC(2026, 0, 1);
const keyids = Array.from({ length: 1000 }, () => `apik_01kxyz${random(20)}`);

/** 1,000 keys, the first tenth of them doing most; 100 rings; 1 % denied; props on every tenth, unique on every hundredth. */
function input(number: number) {
  const valid = chance(100) !== 0;
  const props =
    number % 100 === 0
      ? { request: `r${number}`, client: { name: `app-${chance(50)}`, version: 3 } }
      : number % 10 === 0
        ? { client: { name: `app-${chance(50)}`, version: 3 } }
        : {};
  return {
    id: `act_${(start + number * 20).toString(32).padStart(10, '0')}${random(16)}`,
    createdAt: start + number * 20,
    keyid: keyids[chance(chance(4) === 0 ? 1000 : 100)] ?? '',
    action: chance(4) === 0 ? 'keyring.decrypt' : chance(1000) === 0 ? 'user.invite' : 'keyring.encrypt',
    ringname: `ring-${chance(chance(2) === 0 ? 100 : 10)}`,
    validAction: valid,
    status: valid ? 200 : 403,
    props,
  };
}

const milliseconds = (since: bigint): number => Number(process.hrtime.bigint() - since) / 1e6;
const say = (what: string, value: number, unit: string): void =>
  console.log(`${what.padEnd(44)} ${value.toFixed(2).padStart(10)} ${unit}`);
const rss = (): number => {
  globalThis.gc?.();
  return process.memoryUsage.rss() / 1e6;
};

if (opening) {
  const manifest: Pick<ActivityLogOptions, 'segments' | 'tail' | 'head'> = JSON.parse(
    await readFile(join(root, 'manifest'), 'utf8'),
  );
  const before = rss();
  const opened = process.hrtime.bigint();
  const log = openActivityLog({ ...options, ...manifest });
  const took = milliseconds(opened);
  for (let number = 1; number <= 1000; number++) log.stage(input(number));
  log.commitStaged();
  say(`fresh process, ${log.count} records: open`, took, 'ms');
  say('  memory for it and 1000 more', rss() - before, 'MB');
  for (let number = 0; number < 200; number++) await log.search({ keyids: [keyids[number] ?? ''] }, { limit: 100 });
  say('  memory after 200 searches', rss() - before, 'MB');
  process.exit();
}

let log = openActivityLog(options);
let staging = 0;
let rolling = 0;
let rolls = 0;
for (let from = 1; from <= records; ) {
  const inputs = Array.from({ length: Math.min(20_000, records - from + 1) }, (_, index) => input(from + index));
  from += inputs.length;
  const began = process.hrtime.bigint();
  for (const one of inputs) {
    log.stage(one);
    log.commitStaged();
  }
  staging += milliseconds(began);
  const worker = openActivityLog({ ...options, segments: log.segments, tail: log.tailLines(), head: log.head });
  const before = log.segments.length;
  const rolled = process.hrtime.bigint();
  const segments = await worker.roll();
  rolling += milliseconds(rolled);
  rolls += segments.length - before;
  log.adopt(segments);
}
say('stage and commit one record', (staging * 1000) / records, 'us');
say('roll one segment (with hashing of its tail)', rolling / rolls, 'ms');
say('segments', log.segments.length, '');
say('bytes a record on disk', log.bytes / records, 'B');
say('bytes of a summary', JSON.stringify(log.segments).length / log.segments.length, 'B');

for (const manifest of [
  { segments: [], tail: [], head: emptyHead },
  { segments: log.segments, tail: log.tailLines(), head: log.head },
]) {
  await writeFile(join(root, 'manifest'), JSON.stringify(manifest));
  console.log(
    execFileSync(process.execPath, ['--expose-gc', import.meta.filename, 'open', root], { encoding: 'utf8' }).trimEnd(),
  );
}

const reopen = () => openActivityLog({ ...options, segments: log.segments, tail: log.tailLines(), head: log.head });

const middle = start + records * 10;
const filters: Record<string, ActivityFilter> = {
  none: {},
  'busy key': { keyids: [keyids[3] ?? ''] },
  'quiet key': { keyids: [keyids[777] ?? ''] },
  'account of 20 quiet keys': { keyids: keyids.slice(700, 720) },
  'no such key': { keyids: ['apik_none'] },
  'common action': { action: 'keyring.encrypt' },
  'rare action': { action: 'user.invite' },
  'busy ring': { ringname: 'ring-4' },
  'quiet ring': { ringname: 'ring-77' },
  granted: { valid: true },
  denied: { valid: false },
  'until the middle': { end: middle },
  'an hour in the middle': { start: middle, end: middle + 3_600_000 },
  'props of 1 in 500': { props: { client: { name: 'app-7' } } },
  'props, unique, old': { props: { request: `r${Math.round(records / 10_000) * 100}` } },
  'no such props': { props: { request: 'none' } },
  'key, ring and denied': { keyids: [keyids[3] ?? ''], ringname: 'ring-4', valid: false },
};
for (const [name, filter] of Object.entries(filters)) {
  log = reopen();
  await log.search({ keyids: [], start: 0 }, { limit: 1 });
  const cold = process.hrtime.bigint();
  const { items } = await log.search(filter, { limit: 100 });
  const coldTime = milliseconds(cold);
  const warm = process.hrtime.bigint();
  for (let round = 0; round < 5; round++) await log.search(filter, { limit: 100 });
  console.log(
    `newest 100, ${name.padEnd(26)} found ${String(items.length).padStart(3)}  cold ${coldTime.toFixed(1).padStart(7)} ms  warm ${(milliseconds(warm) / 5).toFixed(1).padStart(6)} ms`,
  );
}
for (const filter of [{}, { action: 'keyring.decrypt' }, { ringname: 'ring-4' }, { valid: false }]) {
  log = reopen();
  const began = process.hrtime.bigint();
  const { items } = await log.search(filter, { limit: 10_000 });
  say(`page of ${items.length}, cold, ${JSON.stringify(filter)}`, milliseconds(began), 'ms');
}
const wanted = (await log.search({}, { limit: 1, after: Math.round(records / 3) })).items[0]?.id ?? '';
const finding = process.hrtime.bigint();
await reopen().find(wanted);
say('find by id, cold', milliseconds(finding), 'ms');
const verifying = process.hrtime.bigint();
let count = 0;
for await (const _ of log.read(1)) count++;
say(`read and verify ${count}`, milliseconds(verifying), 'ms');
await rm(root, { recursive: true });
