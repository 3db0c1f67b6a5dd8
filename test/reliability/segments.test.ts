// Closed segments of an activity log, which are read only on demand: every way in which one can be missing or changed,
// and each reader's answer to it. Never a 500, never a silent gap; requests that need no damaged file are served, and a
// restored file is noticed without a restart.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { OpenAppliance } from '../../src/appliance/appliance.ts';
import { openBackupFile } from '../../src/backup/read.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { examine } from '../../src/doctor/doctor.ts';
import { decodeHeader, headerLength } from '../../src/store/activity/segment.ts';
import { activityInput } from '../store/contract.ts';
import { type Answer, noEnvironment, segmentedAppliance } from '../support/segmented-appliance.ts';
import { until } from '../support/until.ts';

const quick = { againEvery: 20, lookEvery: 20, firstAfter: 1e9, passEvery: 1e9, bytesPerSecond: 1e9 };
const env = noEnvironment;
const segmented = await segmentedAppliance((record) => 1000 + record, { segments: quick });
const { base, sound, keyFile, dir, place } = segmented;
const [first = '', second = ''] = segmented.files;
after(() => segmented.remove());

type Copy = ReturnType<typeof place>;
type Opened = Awaited<ReturnType<Copy['open']>>;

const fileOf = ({ data }: Copy): string => join(data, dir, first);

/** Resolves once no fault is known. */
const well = ({ appliance }: Opened) =>
  until('it is noticed that the file was put back', async () => (await faults(appliance)).length === 0);

async function faults(appliance: OpenAppliance) {
  return (await appliance.status()).tenants.flatMap(({ store }) => store.activityFaults);
}

/** Replaces the file atomically: concurrent readers see one or the other. */
function replace(file: string, bytes: Uint8Array): void {
  const other = join(base, 'other');
  writeFileSync(other, bytes, { mode: 0o600 });
  renameSync(other, file);
}

/** Flips a bit of a segment. */
const flipped = (at: (header: { rootLength: number; bytes: number }) => number) => (file: string) => {
  const bytes = readFileSync(file);
  const header = decodeHeader(bytes);
  assert.ok(typeof header !== 'string');
  const where = at({ rootLength: header.rootLength, bytes: bytes.length });
  bytes[where] = (bytes[where] ?? 0) ^ 4;
  replace(file, bytes);
};

interface Kind {
  readonly damage: (file: string) => void;
  /** Whether a search by time, a search by a term, and a check of the file from outside notice it. */
  readonly byTime: boolean;
  readonly byTerm: boolean;
  readonly byLook: boolean;
  /** Whether a backup must leave the file out. */
  readonly leftOut: boolean;
}
const all = { byTime: true, byTerm: true, byLook: true, leftOut: true };

/** A change inside is noticed by readers of that part, or of everything. */
const kinds: Readonly<Record<string, Kind>> = {
  missing: { ...all, damage: (file) => rmSync(file) },
  'cut to half': { ...all, damage: (file) => replace(file, readFileSync(file).subarray(0, 300)) },
  empty: { ...all, damage: (file) => replace(file, new Uint8Array()) },
  grown: {
    ...all,
    damage: (file) => replace(file, Buffer.concat([readFileSync(file), Buffer.from('x')])),
    byTime: false,
    byTerm: false,
  },
  'a directory': {
    ...all,
    damage(file) {
      rmSync(file);
      mkdirSync(file);
    },
  },
  'a pipe': {
    ...all,
    damage(file) {
      rmSync(file);
      execFileSync('mkfifo', [file]);
    },
  },
  'another segment': {
    ...all,
    damage: (file) => replace(file, readFileSync(file.replace(first, second))),
    leftOut: readSize(first) !== readSize(second),
  },
  'a bit of the header': { ...all, damage: flipped(() => 30), leftOut: false },
  'a bit of the version': { ...all, damage: flipped(() => 9), leftOut: false },
  'a bit of the epoch': { ...all, damage: flipped(() => 11), leftOut: false },
  'a bit of the index': { ...all, damage: flipped(() => headerLength + 30), byLook: false, leftOut: false },
  'a bit of a block': {
    ...all,
    damage: flipped(({ rootLength }) => headerLength + rootLength + 30),
    byLook: false,
    leftOut: false,
  },
  'a bit of a page': {
    ...all,
    // Just before the texts, which take about as much.
    damage: flipped(({ bytes }) => bytes - 120),
    byTime: false,
    byLook: false,
    leftOut: false,
  },
  'a bit of the texts': { ...all, damage: flipped(({ bytes }) => bytes - 1), byLook: false, leftOut: false },
};

function readSize(name: string): number {
  return readFileSync(join(sound, dir, name)).length;
}

describe('a segment of the activity log', () => {
  for (const [name, kind] of Object.entries(kinds)) {
    test(name, async () => {
      const p = place();
      const whole = readFileSync(fileOf(p));
      kind.damage(fileOf(p));
      const at = `${dir}/${first}`;
      const names = (answer: Answer, what: string): void => {
        assert.equal(answer.status, 503, `${what}: ${JSON.stringify(answer.body)}`);
        assert.ok(answer.body.message.includes(at), `${what}: ${answer.body.message}`);
      };
      {
        await using a = await p.open();
        const known = await faults(a.appliance);
        assert.equal(known.length, kind.byLook ? 1 : 0, 'known before it serves');
        const ready = await a.ask('GET', '/readyz');
        assert.equal(ready.status, 200);
        assert.equal(ready.body.activity?.faulty, kind.byLook ? 1 : undefined);

        // Requests that need no damaged file.
        assert.equal((await a.ask('POST', '/ks/keyrings', { name: 'ring' })).status, 200);
        assert.equal((await a.ask('POST', '/auth/search/activity', { start: 1004 })).status, 200);
        assert.equal((await a.ask('GET', '/auth/activity/act_9')).status, 200);
        assert.equal((await a.local('GET', '/auth/activity/head')).status, 200);

        // Requests that need it.
        const byTime = await a.ask('POST', '/auth/search/activity', { start: 1000, end: 1003 });
        if (kind.byTime) names(byTime, 'by time');
        else assert.deepEqual([byTime.status, byTime.body.data?.length], [200, 4]);
        const { keyid } = activityInput('act_1');
        const byTerm = await a.ask('POST', '/auth/search/activity', { keyid, start: 1000, end: 1003 });
        if (kind.byTerm) names(byTerm, 'by term');
        else assert.deepEqual([byTerm.status, byTerm.body.data?.length], [200, 4]);
        const one = await a.ask('GET', '/auth/activity/act_1');
        if (kind.byTime) names(one, 'by id');
        else assert.equal(one.status, 200);
        const verdict = await a.local('POST', '/local/activity/verify', {});
        assert.deepEqual([verdict.status, verdict.body.valid], [200, false]);
        assert.ok(verdict.body.broken.problem.includes(at));
        // By now the fault is known, whatever it is.
        names(await a.local('POST', '/auth/activity/export', {}), 'export');
        names(await a.local('POST', '/local/drill', {}), 'drill');
        names(await a.local('POST', '/local/tenants/default/rekey', {}), 'rekey');

        assert.deepEqual((await a.ask('GET', '/readyz')).body.activity.faulty, 1);
        assert.match((await a.ask('GET', '/metrics')).body, /^kms_activity_faulty_segments 1$/m);
        while (!p.events.some(({ level }) => level === 'error')) await setTimeout(5);
        const said = p.events.filter(({ level, message }) => level === 'error' && message.includes(at));
        assert.equal(said.length, 1, 'said once');
        assert.match(said[0]?.message ?? '', /put \S+ back from a backup/);

        // Once it is put back, it is found intact without a restart.
        rmSync(fileOf(p), { recursive: true, force: true });
        replace(fileOf(p), whole);
        await well(a);
        assert.equal((await a.ask('POST', '/auth/search/activity', { keyid, start: 1000, end: 1003 })).status, 200);
        assert.equal((await a.local('POST', '/local/activity/verify', {})).body.valid, true);
        assert.equal((await a.ask('GET', '/readyz')).body.activity, undefined);
        assert.equal((await a.local('POST', '/local/tenants/default/rekey', {})).body.complete, true);
      }
      assert.equal(p.events.filter(({ message }) => message.includes('is intact again')).length, 1);
      for (const { level, message } of p.events) {
        assert.ok(level !== 'error' || message.includes(at), message);
      }
    });

    test(`${name}: doctor, backups and what is shipped`, async () => {
      const p = place();
      const whole = readFileSync(fileOf(p));
      const shipped = join(p.data, '..', `shipped-${p.number}`);
      const copies = { shipping: { to: shipped, every: 20, window: 1e9 } };
      await (await p.open({ copies })).appliance.close();
      kind.damage(fileOf(p));
      const { findings } = await examine({ data: p.data, keyFile, sources: { env } });
      const found = findings.filter(({ name }) => name.startsWith('segment-') || name === 'damaged');
      assert.deepEqual(
        found.map((each) => [each.severity, each.subject]),
        [['error', `${dir}/${first}`]],
      );

      const scheduled = { to: join(p.data, '..', `backups-${p.number}`), schedule: '0 3 * * *', keep: 1 };
      {
        await using a = await p.open({ copies: { ...copies, scheduled } });
        assert.equal((await a.ask('POST', '/ks/keyrings', { name: 'after' })).status, 200);
        const made = await a.appliance.copies.backUpNow();
        assert.match(made?.file ?? '', /\.incomplete\.kms-backup$/);
        assert.equal(a.appliance.copies.status().lastVerified, undefined);
        assert.ok(made?.lacks[0]?.includes(`${dir}/${first}`));
      }
      const [backup = ''] = readdirSync(scheduled.to);
      const file = join(scheduled.to, backup);
      const { manifest, parts } = await openBackupFile(file);
      assert.equal(parts.has(`${dir}/${first}`), !kind.leftOut);
      if (kind.leftOut || kind.byLook) assert.deepEqual(manifest.faulty, [`${dir}/${first}`]);
      await assert.rejects(verifyBackup(file, { data: p.data, keys: { keyFile, env } }), {
        code: 'corrupt',
        message: new RegExp(first),
      });

      // The backup restores nevertheless, and says what it lacks; the shipped copy from before the damage has
      // everything.
      const into = join(base, `restored-${p.number}`);
      const restored = await restoreAppliance({ from: file, data: into, keys: { keyFile, env } });
      assert.deepEqual(
        restored.proof.lacks.map((each) => each.split(' ')[0]),
        [`${dir}/${first}`],
      );
      const second = await restoreAppliance({ from: shipped, data: `${into}-2`, keys: { keyFile, env } });
      assert.deepEqual(second.proof.lacks, []);
      assert.ok(second.proof.transactions >= restored.proof.transactions, 'shipping went on');
      assert.deepEqual(readFileSync(join(`${into}-2`, dir, first)), whole, 'the file to put back');
    });
  }
});

test('what changes while nobody reads it is found by the pass over the contents, said once, and well again when put back', async () => {
  const p = place();
  const whole = readFileSync(fileOf(p));
  await using a = await p.open({ segments: { ...quick, firstAfter: 0, passEvery: 30 } });
  const status = () => a.appliance.status().then(({ tenants }) => tenants[0]?.store);
  while ((await status())?.activityVerifiedAt === undefined) await setTimeout(5);
  assert.deepEqual(await faults(a.appliance), []);
  flipped(({ rootLength }) => headerLength + rootLength + 30)(fileOf(p));
  const at = `${dir}/${first}`;
  while ((await faults(a.appliance)).length === 0) await setTimeout(5);
  const [fault] = await faults(a.appliance);
  assert.deepEqual([fault?.path, fault?.problem], [at, 'does not verify: block 0 was changed or cut']);
  await setTimeout(100);
  assert.equal(p.events.filter(({ message }) => message.includes(at)).length, 1, 'said once, however often it is read');
  replace(fileOf(p), whole);
  await well(a);
  assert.match((await a.ask('GET', '/metrics')).body, /^kms_activity_verification_last_timestamp_seconds [1-9]/m);
});

test('a file that is taken away while it is served is missed by the next look', async () => {
  const p = place();
  const whole = readFileSync(fileOf(p));
  await using a = await p.open();
  assert.deepEqual(await faults(a.appliance), []);
  rmSync(fileOf(p));
  while ((await faults(a.appliance))[0]?.problem !== 'is missing') await setTimeout(5);
  assert.match((await a.ask('GET', '/readyz')).body.activity.segments[0], /is missing$/);
  replace(fileOf(p), whole);
  await well(a);
});

test('a file that was put back is found to be well by doctor at once, whenever the next look is', async () => {
  const p = place();
  const whole = readFileSync(fileOf(p));
  rmSync(fileOf(p));
  await using a = await p.open({ segments: { ...quick, againEvery: 1e9, lookEvery: 1e9 } });
  const found = async (): Promise<string[]> => {
    const { body } = await a.local('GET', '/local/doctor');
    return body.findings
      .map(({ name }: { name: string }) => name)
      .filter((name: string) => name.startsWith('segment-'));
  };
  assert.deepEqual(await found(), ['segment-missing']);
  replace(fileOf(p), whole);
  assert.deepEqual(await found(), []);
  assert.deepEqual(await faults(a.appliance), []);
});

test('new keys for the tenant while its segments are verified over and over: no fault is seen', async () => {
  const p = place();
  await using a = await p.open({ segments: { ...quick, firstAfter: 0, passEvery: 0, againEvery: 1, lookEvery: 1 } });
  for (let n = 0; n < 5; n++) {
    assert.equal((await a.local('POST', '/local/tenants/default/rekey', {})).body.complete, true);
    assert.equal((await a.ask('POST', '/auth/search/activity', { start: 1000, end: 1003 })).body.data.length, 4);
  }
  assert.deepEqual(
    p.events.filter(({ level }) => level !== 'info'),
    [],
  );
});

describe('what is read again while it is served, by checkpoints, backups and doctor', () => {
  const changes: Readonly<Record<string, (file: string) => void>> = {
    missing: (file) => rmSync(file),
    'cut to half': (file) => writeFileSync(file, contentOf(file).subarray(0, contentOf(file).length / 2)),
    'a bit of the header': flip(20),
    'a bit of the end': flip(-5),
  };
  for (const kind of ['snapshot', 'log']) {
    for (const [name, change] of Object.entries(changes)) {
      // A missing log fails the next write, and everything with it: see failing-disk.test.ts.
      if (kind === 'log' && name === 'missing') continue;
      test(`a ${kind}: ${name}`, async () => {
        const p = place();
        await using a = await p.open();
        assert.equal((await a.ask('POST', '/ks/keyrings', { name: 'before' })).status, 200);
        const named = readdirSync(join(p.data, dir)).filter((each) => each.startsWith(kind));
        const file = named.at(-1) ?? '';
        change(join(p.data, dir, file));
        const drill = await a.local('POST', '/local/drill', {});
        assert.equal(drill.status, 503, JSON.stringify(drill.body));
        // A changed log is noticed when the drill writes its own record.
        const isTold = drill.body.message.includes(file);
        if (kind === 'snapshot') assert.ok(isTold, drill.body.message);
        else assert.match(drill.body.message, /could not be made durable/);
        const doctor = await a.local('GET', '/local/doctor');
        if (doctor.status === 200) {
          const text = JSON.stringify(doctor.body.findings);
          assert.ok(text.includes(file), text);
        } else assert.deepEqual([doctor.status, doctor.body.message.includes(file)], [503, true]);
      });
    }
  }
});

/** Without the preallocated space at the end of the current log. */
function contentOf(file: string): Buffer {
  const bytes = readFileSync(file);
  return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
}

function flip(at: number): (file: string) => void {
  return (file) => {
    const bytes = contentOf(file);
    const where = at < 0 ? bytes.length + at : at;
    bytes[where] = (bytes[where] ?? 0) ^ 4;
    writeFileSync(file, bytes);
  };
}
