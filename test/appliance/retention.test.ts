// Retention as an operator sees it: old activity is dropped in whole closed files, which is recorded; readers of the
// log say where it now begins; records still to be streamed stay; and a file that retention did not drop is missed.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { verifyExport } from '../../src/appliance/verify-export.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { signHead } from '../../src/core/activity.ts';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { examine } from '../../src/doctor/doctor.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import { parseTarget } from '../../src/telemetry/streaming/target.ts';
import { desk } from '../cli/kms.ts';
import { noEnvironment, segmentedAppliance } from '../support/segmented-appliance.ts';
import { until } from '../support/until.ts';

const day = 86_400_000;
const retention = { keep: day, firstAfter: 0, every: 10 };
const env = noEnvironment;
// Two segments are old, and a third is not.
const segmented = await segmentedAppliance((record) => (record < 8 ? 1000 + record : Date.now()));
const { base, keyFile, dir, apiKey, files, place } = segmented;
after(() => segmented.remove());

type Opened = Awaited<ReturnType<ReturnType<typeof place>['open']>>;

const dropped = ({ store }: Opened) =>
  until('something is dropped', async () => (await store()).activityDropped !== undefined);

const verdictOf = (text: string, more: object = {}) => verifyExport([Buffer.from(text)] as never, more);

test('without it nothing goes', async () => {
  const p = place();
  await using a = await p.open();
  await a.ask('POST', '/ks/keyrings', { name: 'one' });
  await setTimeout(50);
  assert.equal((await a.store()).activityDropped, undefined);
  assert.equal((await a.appliance.status()).activityRetention, undefined);
  assert.deepEqual(p.segments(), files);
  const { body } = await a.ask('GET', '/auth/activity/head');
  assert.equal('from' in body, false);
  assert.ok((await a.ask('POST', '/auth/activity/export', {})).body.startsWith('{"hash":'));
});

test('old closed files go, that is recorded, and every reader says from where on the log is there', async () => {
  const p = place();
  const early = await p.open();
  const kept = (await early.ask('GET', '/auth/activity/head')).body;
  await early.appliance.close();
  const began = Date.now();
  {
    await using a = await p.open({ retention });
    await dropped(a);
    const store = await a.store();
    assert.deepEqual([store.activityDropped.seq, store.activityDropped.until], [8, 1007]);
    while (p.segments().length > 1) await setTimeout(5);
    assert.deepEqual(p.segments(), files.slice(2));
    assert.deepEqual((await a.appliance.status()).activityRetention, { seconds: 86_400, waitingRecords: 0 });

    const { body: found } = await a.ask('POST', '/auth/search/activity', { action: 'system.retention' });
    const [record, ...more] = found.data;
    assert.deepEqual(more, [], 'recorded once');
    assert.deepEqual(
      [record.keyid, record.props, record.createdAt >= began],
      ['local', { operation: 'drop', records: 8, through: 8, until: new Date(1007).toISOString() }, true],
    );
    const all = (await a.ask('POST', '/auth/search/activity', {})).body.data.map(({ id }: { id: string }) => id);
    assert.ok(!all.includes('act_7') && all.includes('act_8'));
    assert.equal((await a.ask('GET', '/auth/activity/act_7')).status, 404);
    assert.equal((await a.ask('GET', '/auth/activity/act_8')).status, 200);

    assert.equal((await a.ask('GET', '/auth/activity/head')).body.from, 9);
    const { body: verdict } = await a.local('POST', '/local/activity/verify', {});
    assert.deepEqual([verdict.valid, verdict.dropped.seq], [true, 8], JSON.stringify(verdict));
    const since = await a.local('POST', '/local/activity/verify', { since: kept });
    assert.equal(since.body.valid, true, JSON.stringify(since.body));

    const { body: lines } = await a.ask('POST', '/auth/activity/export', {});
    const offline = await verdictOf(lines, { since: kept, publicKey: kept.publicKey });
    assert.deepEqual([offline.broken, offline.dropped?.seq, offline.head.seq], [undefined, 8, offline.count + 8]);
    assert.match((await verdictOf(lines.slice(lines.indexOf('\n') + 1))).broken?.problem ?? '', /record 1 was dropped/);
    const later = await a.ask('POST', '/auth/activity/export', { since: kept });
    assert.equal((await verdictOf(later.body, { since: kept })).broken, undefined);
    assert.ok(later.body.startsWith('{"hash":'));

    const { body: metrics } = await a.ask('GET', '/metrics');
    assert.match(metrics, /^kms_activity_dropped_records 8$/m);
    assert.match(metrics, /^kms_activity_retention_waiting_records 0$/m);
    const { body: doctor } = await a.local('GET', '/local/doctor');
    assert.deepEqual(
      [doctor.dropped, doctor.findings.filter(({ severity }: { severity: string }) => severity === 'error')],
      [8, []],
    );
    assert.equal((await a.local('POST', '/local/tenants/default/rekey', {})).body.complete, true);
    assert.equal((await a.local('POST', '/local/activity/verify', {})).body.valid, true);
    assert.deepEqual((await a.store()).activityFaults, []);
  }
  assert.ok(p.events.some(({ message }) => /retention dropped activity of default: records 1 to 8/.test(message)));
  const warnings = p.events.filter(({ level }) => level !== 'info');
  assert.deepEqual(warnings, []);

  // It stays dropped without the option, and for a reader of the files alone.
  await using again = await p.open();
  assert.equal((await again.store()).activityDropped.seq, 8);
});

test('the command line says from where on the log is there', async () => {
  const p = place();
  {
    await using a = await p.open({ retention });
    await dropped(a);
  }
  await using d = await desk();
  const kms = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await d.kms(['--data', p.data, '--key-file', keyFile, ...args]);
    return stdout + stderr;
  };
  const until = '1970-01-01T00:00:01.007Z';
  assert.match(
    await kms('status'),
    new RegExp(`activity of default +from record 9 on; those up to ${until} were dropped by retention\\n`),
  );
  assert.match(await kms('activity', 'head'), /^kept from +9$/m);
  assert.match(
    await kms('activity', 'verify'),
    /^verified: \d+ records .*\nrecords up to 8 were dropped by retention\n$/,
  );
  assert.match(await kms('doctor'), / activities \(8 before them were dropped by retention\)/);
  assert.equal(await kms('activity', 'export', '-o', 'log.jsonl'), '');
  const said = await kms('activity', 'verify', '--file', 'log.jsonl');
  assert.match(said, /\nrecords up to 8 were dropped by retention; key: \S{60}\n$/);
  const short = await d.kms(['--data', p.data, 'serve', '--activity-retention', '1h']);
  assert.equal(short.code, 2);
  assert.match(short.stderr, /--activity-retention: expected at least 1d/);
});

test('a head whose record is gone begins no export, and verifies what is there', async () => {
  const p = place();
  const early = await p.open();
  const { body: whole } = await early.ask('POST', '/auth/activity/export', {});
  const { id } = (await early.appliance.status()).tenants[0] ?? assert.fail();
  await early.appliance.close();
  const { seal } = await openSealFile(p.data, { keyFile, env });
  const keys = seal.keysFor(seal.stores.find((each) => each !== 'system') ?? '');
  const lineOf4 = JSON.parse(whole.split('\n')[3]);
  const tenant = { id, name: 'default', limits: {}, keys, secondFactorFor: [] };
  const head = signHead(tenant, { seq: lineOf4.seq, hash: lineOf4.hash }, 0);
  seal.wipe();

  await using a = await p.open({ retention });
  assert.equal((await a.ask('POST', '/auth/activity/export', { since: head })).status, 200);
  await dropped(a);
  const refused = await a.ask('POST', '/auth/activity/export', { since: head });
  assert.equal(refused.status, 400);
  assert.match(refused.body.message, /records up to 8 were dropped by retention/);
  const { body } = await a.ask('POST', '/auth/activity/export', {});
  const verdict = await verdictOf(body, { since: head, publicKey: head.publicKey });
  assert.deepEqual([verdict.broken, verdict.dropped?.seq, verdict.since?.seq], [undefined, 8, 4]);
  assert.equal((await a.local('POST', '/local/activity/verify', { since: head })).body.valid, true);
});

test('a further file that is taken away is missed by its name', async () => {
  const p = place();
  {
    await using a = await p.open({ retention });
    await dropped(a);
    while (p.segments().length > 1) await setTimeout(5);
  }
  const left = p.segments()[0] ?? '';
  rmSync(join(p.data, dir, left));
  await using a = await p.open({ retention });
  const { body } = await a.local('POST', '/local/activity/verify', {});
  assert.equal(body.valid, false);
  assert.match(body.broken.problem, new RegExp(`${left} is missing`));
  const doctor = await a.local('GET', '/local/doctor');
  assert.match(JSON.stringify(doctor.body.findings), new RegExp(left));
  assert.equal((await a.ask('POST', '/auth/activity/export', {})).status, 503);
});

test('a file that is at fault is dropped with the others, and named in the record of it', async () => {
  const p = place();
  rmSync(join(p.data, dir, files[0] ?? ''));
  await using a = await p.open({ retention });
  await dropped(a);
  const { body } = await a.ask('POST', '/auth/search/activity', { action: 'system.retention' });
  assert.deepEqual([body.data[0].props.faulty, body.data[0].props.faultyCount], [[files[0]], 1]);
  assert.equal((await a.local('POST', '/local/activity/verify', {})).body.valid, true);
});

test('backups and what is shipped restore, and know from where on the log is there', async () => {
  const p = place();
  const shipTo = join(base, `shipped-${p.number}`);
  const backup = join(base, `backup-${p.number}.kms`);
  const copies = { shipping: { to: shipTo, every: 10, window: 1 } };
  {
    await using a = await p.open({ copies });
    const arrived = async () => (await a.appliance.status()).copies.shipping?.arrivedAt !== undefined;
    while (!(await arrived())) await setTimeout(10);
  }
  const shippedSegments = () => {
    const [root = ''] = readdirSync(shipTo);
    return readdirSync(join(shipTo, root, dir))
      .filter((each) => each.startsWith('activity-'))
      .sort();
  };
  assert.equal(shippedSegments().length, 3);
  {
    await using a = await p.open({ copies, retention });
    await dropped(a);
    const headers = { host: 'kms.local', authorization: `Bearer ${apiKey}` };
    const request = new Request('http://kms.local/system/backup', { method: 'POST', headers });
    const response = await a.appliance.app.fetch(request, { headers });
    assert.equal(response.status, 200);
    writeFileSync(backup, Buffer.from(await response.arrayBuffer()));
    while (p.segments().length > 1) await setTimeout(5);
  }
  // The state before that could still be restored; now it is past the window.
  await (await p.open({ copies })).appliance.close();
  assert.deepEqual(
    shippedSegments().map((name) => name.slice(0, -2)),
    files.slice(2),
    'what no state needs is gone there too',
  );
  for (const [from, into] of [
    [shipTo, join(base, `from-ship-${p.number}`)],
    [backup, join(base, `from-backup-${p.number}`)],
  ] as const) {
    if (from === backup)
      assert.deepEqual((await verifyBackup(from, { data: p.data, keys: { keyFile, env } })).proof?.lacks, []);
    const restored = await restoreAppliance({ from, data: into, keys: { keyFile, env } });
    assert.deepEqual(restored.proof.lacks, []);
    assert.deepEqual(
      readdirSync(join(into, dir)).filter((each) => each.startsWith('activity-')),
      files.slice(2),
    );
    const { findings, dropped } = await examine({ data: into, keyFile, sources: { env } });
    assert.deepEqual([findings.filter(({ severity }) => severity === 'error'), dropped], [[], 8]);
  }
});

test('what has not arrived where activity is streamed to stays, and goes once it has', async () => {
  const p = place();
  const to = join(base, `stream-${p.number}`);
  const target = parseTarget(to, (path) => path);
  writeFileSync(to, 'in the way');
  {
    await using a = await p.open({
      retention,
      streaming: { targets: [target], from: 'start', pace: { poll: 5, pause: 5 } },
    });
    const waiting = async () => (await a.appliance.status()).activityRetention?.waitingRecords;
    while ((await waiting()) !== 8) await setTimeout(5);
    await setTimeout(60);
    assert.equal((await a.store()).activityDropped, undefined);
    assert.deepEqual(p.segments(), files);
    assert.match((await a.ask('GET', '/metrics')).body, /^kms_activity_retention_waiting_records 8$/m);
    const said = p.events.filter(({ message }) => /is kept until it has arrived/.test(message));
    assert.deepEqual(
      said.map(({ level }) => level),
      ['warn'],
      'said once',
    );
    rmSync(to);
    await dropped(a);
    assert.equal(await waiting(), 0);
  }
  const [day = ''] = readdirSync(join(to, 'default'));
  const lines = readFileSync(join(to, 'default', day), 'utf8')
    .trimEnd()
    .split('\n');
  assert.deepEqual(
    lines.slice(0, 12).map((line) => JSON.parse(line).seq),
    Array.from({ length: 12 }, (_, at) => at + 1),
  );

  // A target that is added later and wants the beginning is told which records it misses.
  const other = parseTarget(join(base, `stream-later-${p.number}`), (path) => path);
  await using a = await p.open({ streaming: { targets: [other], from: 'start', pace: { poll: 5, pause: 5 } } });
  while ((await a.appliance.status()).activityTo[0]?.lagRecords !== 0) await setTimeout(5);
  assert.ok(
    p.events.some(({ message }) =>
      /records 1 to 8 of default were dropped by retention and do not arrive/.test(message),
    ),
  );
});

test('the command line says that the clock is doubted', async () => {
  const p = place();
  await using d = await desk();
  const status = async (): Promise<string> => (await d.kms(['--data', p.data, '--key-file', keyFile, 'status'])).stdout;
  assert.doesNotMatch(await status(), /^clock/m);
  const world = systemWorld();
  {
    await using a = await p.open({ world: { ...world, now: () => world.now() - 400 * day } });
    await a.ask('POST', '/ks/keyrings', { name: 'then' });
  }
  const until = 'nothing is erased for its age until that has lasted 7 days more';
  assert.match(await status(), new RegExp(`^clock +\\d+ days ahead of where it was last seen: ${until}$`, 'm'));
});

test('a clock that is decades ahead erases nothing for its age before it has been so for long', async () => {
  const p = place();
  const world = systemWorld();
  const ahead = 60 * 365 * day;
  const wrong = { ...world, now: () => world.now() + ahead };
  // By the true clock nothing is that old.
  const patient = { ...retention, keep: 80 * 365 * day };
  let id = '';
  {
    await using a = await p.open({ retention: patient });
    const { body } = await a.ask('POST', '/ks/keyrings', { name: 'gone' });
    id = body.ring.id;
    assert.equal((await a.ask('DELETE', '/ks/keyrings/gone')).status, 200);
  }
  for (let starts = 0; starts < 2; starts++) {
    await using a = await p.open({ retention: patient, world: wrong });
    assert.equal((await a.ask('POST', '/ks/keyrings', { name: `later-${starts}` })).status, 200);
    await setTimeout(100);
    assert.equal((await a.store()).activityDropped, undefined);
    assert.deepEqual(p.segments(), files);
    const { clock } = await a.appliance.status();
    assert.ok(clock && Math.abs(clock.aheadSeconds - ahead / 1000) < 3600, JSON.stringify(clock));
    assert.ok(Math.abs(clock.believedAfterSeconds - (7 * day) / 1000) < 3600, JSON.stringify(clock));
  }
  {
    await using a = await p.open({ retention: patient });
    assert.equal((await a.ask('POST', `/ks/keyrings/${id}/restore`)).status, 200, 'a deleted ring is there too');
    assert.equal((await a.ask('DELETE', '/ks/keyrings/gone')).status, 200);
  }
  let ran = 0;
  await using a = await p.open({ retention: patient, world: wrong, uptime: () => ran });
  await setTimeout(50);
  assert.equal((await a.store()).activityDropped, undefined);
  ran = 8 * day;
  await dropped(a);
  assert.equal((await a.store()).activityDropped.seq, 8);
});
