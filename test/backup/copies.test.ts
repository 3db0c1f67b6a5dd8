// A whole appliance and its copies: made over HTTP and on schedule, shipped, restored, and reported on.
import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { OpenAppliance } from '../../src/appliance/appliance.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import type { ApplianceOptions } from '../../src/appliance/config.ts';
import { type Initialised, initAppliance } from '../../src/appliance/init.ts';
import { checkSchedule } from '../../src/backup/keeper.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { KmsError } from '../../src/errors.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import { until } from '../support/until.ts';

const base = await mkdtemp(join(tmpdir(), 'kms-copies-'));
after(() => rm(base, { recursive: true, force: true }));

const isCode = (code: string) => (error: unknown) => error instanceof KmsError && error.code === code;

interface Place {
  readonly dir: string;
  readonly data: string;
  readonly made: Initialised;
  readonly events: ApplianceEvent[];
  readonly keyFile: string;
  open(more?: Partial<ApplianceOptions>): Promise<OpenAppliance>;
}

let count = 0;
async function place(): Promise<Place> {
  const dir = join(base, `p${++count}`);
  const data = join(dir, 'data');
  const made = await initAppliance({ data });
  const events: ApplianceEvent[] = [];
  const open = (more: Partial<ApplianceOptions> = {}) =>
    openAppliance({
      data,
      baseUrl: () => 'https://kms.example.org',
      onEvent: (event) => events.push(event),
      ...more,
    });
  return { dir, data, made, events, keyFile: `${data}.master.key`, open };
}

async function call(
  appliance: OpenAppliance,
  made: Initialised,
  method: string,
  path: string,
  body?: object,
): Promise<Response> {
  return appliance.app.fetch(
    new Request(`http://kms.example.org${path}`, {
      method,
      headers: { authorization: `Bearer ${made.apiKey.key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    }),
    {},
  );
}

const makeRing = (appliance: OpenAppliance, made: Initialised, name: string) =>
  call(appliance, made, 'POST', '/ks/keyrings', { name });

async function rings(appliance: OpenAppliance, made: Initialised): Promise<string[]> {
  const { data } = await (await call(appliance, made, 'GET', '/ks/keyrings')).json();
  return data.map(({ name }: { name: string }) => name);
}

const keys = (data: string, keyFile?: string) => ({ data, keys: { keyFile, env: () => undefined } });

async function readyz(appliance: OpenAppliance) {
  return (await appliance.app.fetch(new Request('http://kms.example.org/readyz'), {})).json();
}

test('POST /system/backup: recorded, streamed, and it restores', async () => {
  const { dir, data, made, keyFile, open } = await place();
  const appliance = await open();
  await makeRing(appliance, made, 'payroll');
  const answer = await call(appliance, made, 'POST', '/system/backup');
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
  const file = join(dir, 'b');
  await writeFile(file, new Uint8Array(await answer.arrayBuffer()));
  await makeRing(appliance, made, 'later');
  const verified = await verifyBackup(file, keys(data));
  assert.equal(verified.proof?.stores, 2);
  await rename(keyFile, `${keyFile}.away`);
  const noKey = await verifyBackup(file, keys(join(dir, 'elsewhere')));
  await rename(`${keyFile}.away`, keyFile);
  assert.equal(noKey.proof, undefined);
  const found = await (
    await call(appliance, made, 'POST', '/auth/search/activity', { action: 'system.backup' })
  ).json();
  assert.deepEqual(
    found.data.map(({ status }: { status: number }) => status),
    [200],
  );
  await appliance.close();

  const other = await place();
  await assert.rejects(verifyBackup(file, keys(data, other.keyFile)), /needs [0-9a-f]{16}, got [0-9a-f]{16}/);
  const into = join(dir, 'new');
  await assert.rejects(restoreAppliance({ from: file, ...keys(into, other.keyFile) }), /needs [0-9a-f]{16}, got/);
  await assert.rejects(readdir(into), { code: 'ENOENT' }, 'refused before anything is made');
  await assert.rejects(restoreAppliance({ from: file, ...keys(data) }), /is not empty; nothing was changed/);
  const restored = await restoreAppliance({ from: file, ...keys(into, keyFile) });
  assert.equal(restored.keyFile, `${into}.master.key`);
  assert.equal(await readFile(restored.keyFile ?? '', 'utf8'), await readFile(keyFile, 'utf8'));
  assert.ok(restored.epoch.number > 1_700_000_000);

  const back = await openAppliance({ data: into });
  assert.deepEqual(await rings(back, made), ['payroll']);
  const seen = await (await call(back, made, 'POST', '/auth/search/activity', { action: 'system.restore' })).json();
  assert.deepEqual(seen.data[0].props, {
    from: 'backup',
    madeAt: verified.manifest.createdAt,
    epoch: restored.epoch.number,
  });
  assert.equal((await readyz(back)).epoch, restored.epoch.number);
  await back.close();
  await setTimeout(1100);
  const again = await restoreAppliance({ from: file, ...keys(join(dir, 'again'), keyFile) });
  assert.ok(again.epoch.number > restored.epoch.number, 'a later restore of the same backup is a later epoch');
});

test('POST /system/backups: begins what the schedule would, once, and GET tells what came of it', async () => {
  const { dir, made, open } = await place();
  const to = join(dir, 'backups');
  const appliance = await open({ copies: { scheduled: { to, schedule: '0 3 * * *', keep: 2 } } });
  const ask = async (method: string) => {
    const answer = await call(appliance, made, method, '/system/backups');
    return { status: answer.status, body: await answer.json() };
  };
  const first = await ask('GET');
  const { nextAt } = first.body.configured;
  assert.match(nextAt, /T03:00:00\.000Z$/);
  assert.deepEqual(first.body, {
    configured: { directory: to, schedule: '0 3 * * *', keep: 2, nextAt },
    running: false,
    lastFailure: null,
    lastVerified: null,
  });
  const [one, two] = await Promise.all([ask('POST'), ask('POST')]);
  assert.deepEqual([one.status, one.body.running, two.status, two.body.running], [200, true, 200, true]);
  const done = async () => {
    for (;;) {
      const { body } = await ask('GET');
      if (!body.running) return body;
      await setTimeout(20);
    }
  };
  const { lastVerified, lastFailure } = await done();
  assert.equal(lastFailure, null);
  assert.ok(lastVerified.file.startsWith(to) && lastVerified.bytes > 0);
  assert.deepEqual(await readdir(to), [lastVerified.file.slice(to.length + 1)], 'one, though two asked');
  assert.equal((await readyz(appliance)).lastVerifiedBackup.at, lastVerified.at);
  const search = { action: 'system.backup' };
  const { data } = await (await call(appliance, made, 'POST', '/auth/search/activity', search)).json();
  assert.deepEqual(
    data.map(({ keyid, props }: { keyid: string; props: object }) => [keyid, props]),
    [1, 2].map(() => [made.apiKey.keyid, { by: 'operator' }]),
    'recorded as asked for, and not again as scheduled',
  );

  await rm(to, { recursive: true });
  await writeFile(to, 'in the way');
  await ask('POST');
  const failed = await done();
  assert.match(
    failed.lastFailure.message,
    /backups: (a file is in the way|part of its path is not a directory|.*exists)/,
  );
  assert.deepEqual(failed.lastVerified, lastVerified);
  await appliance.close();
});

test('without a directory for backups there is none to begin', async () => {
  const { made, open } = await place();
  const appliance = await open();
  const answer = await call(appliance, made, 'POST', '/system/backups');
  assert.equal(answer.status, 400);
  assert.match((await answer.json()).message, /start the server with --backup-to/);
  const { configured, running } = await (await call(appliance, made, 'GET', '/system/backups')).json();
  assert.deepEqual([configured, running], [null, false]);
  await appliance.close();
});

test('without the flag there is no backup', async () => {
  const { made, open } = await place();
  const appliance = await open();
  const key = await (
    await call(appliance, made, 'POST', '/auth/apikey', { accountId: made.accountId, flags: { 'keyring.*': true } })
  ).json();
  const weak = { ...made, apiKey: key };
  const answer = await call(appliance, weak, 'POST', '/system/backup');
  assert.equal(answer.status, 403);
  assert.match((await answer.json()).message, /system\.backup/);
  await appliance.close();
});

test('an answer to a known caller says how far the appliance is', async () => {
  const { made, open } = await place();
  const appliance = await open();
  const state = async (): Promise<[string, number, number]> => {
    const answer = await makeRing(appliance, made, `r${Math.random()}`);
    const [id = '', , epoch, sequence] = (answer.headers.get('kms-state') ?? '').split('.');
    return [id, Number(epoch), Number(sequence)];
  };
  const [id, epoch, first] = await state();
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.equal(epoch, 1);
  const [, , second] = await state();
  assert.equal(second, first + 1);
  const stranger = await call(appliance, { ...made, apiKey: { ...made.apiKey, key: 'x' } }, 'GET', '/ks/keyrings');
  assert.equal(stranger.headers.get('kms-state'), null);
  const ready = await readyz(appliance);
  assert.deepEqual([ready.appliance, ready.epoch, ready.lastVerifiedBackup], [id, 1, null]);
  await appliance.close();
});

test('a scheduled backup counts once it was restored; the newest few are kept', async () => {
  const { dir, data, made, events, open } = await place();
  const to = join(dir, 'backups');
  let ahead = 0;
  const world = { ...systemWorld(), now: () => Date.now() + ahead };
  const appliance = await open({ copies: { scheduled: { to, schedule: '0 3 * * *', keep: 2 } }, world });
  await makeRing(appliance, made, 'payroll');
  const names: string[] = [];
  for (let i = 0; i < 4; i++) {
    ahead = i * 5000;
    const backup = await appliance.copies.backUpNow();
    names.push(backup?.file ?? '');
    assert.equal(backup?.stores, 2);
  }
  assert.deepEqual((await readdir(to)).map((name) => join(to, name)).sort(), names.slice(-2));
  ahead += 60_000;
  const { lastVerifiedBackup } = await readyz(appliance);
  assert.ok(
    lastVerifiedBackup.ageSeconds >= 60 && lastVerifiedBackup.ageSeconds < 120,
    JSON.stringify(lastVerifiedBackup),
  );
  assert.equal(appliance.copies.status().lastVerified?.file, names.at(-1));
  await appliance.close();
  assert.ok((await verifyBackup(names.at(-1) ?? '', keys(data))).proof);
  assert.ok(!events.some(({ level }) => level === 'error'));

  const later = await open();
  assert.equal(later.copies.status().lastVerified?.file, names.at(-1), 'it is remembered');
  await later.close();
});

test('backups on request, however many, push out none of the schedule', async () => {
  const { dir, made, open } = await place();
  const to = join(dir, 'backups');
  let ahead = 0;
  const world = { ...systemWorld(), now: () => Date.now() + ahead };
  const appliance = await open({ copies: { scheduled: { to, schedule: '0 3 * * *', keep: 2 } }, world });
  const begin = async (): Promise<string> => {
    await call(appliance, made, 'POST', '/system/backups');
    for (;;) {
      const { running, lastVerified } = await (await call(appliance, made, 'GET', '/system/backups')).json();
      if (!running) return lastVerified.file;
      await setTimeout(20);
    }
  };
  const scheduled: string[] = [];
  const requested: string[] = [];
  for (const [index, isScheduled] of [true, true, false, false, false, true].entries()) {
    ahead = index * 5000;
    if (isScheduled) scheduled.push((await appliance.copies.backUpNow())?.file ?? '');
    else requested.push(await begin());
  }
  const there = (await readdir(to)).map((name) => join(to, name));
  assert.deepEqual(there.sort(), [...scheduled.slice(-2), ...requested.slice(-2)].sort());
  assert.ok(requested.every((file) => file.endsWith('.requested.kms-backup')));
  assert.ok(!scheduled.some((file) => file.includes('requested')));
  await appliance.close();
});

test('backups of a clock that was ahead push out none that is made after it', async () => {
  const { dir, open } = await place();
  const to = join(dir, 'backups');
  let ahead = 0;
  const world = { ...systemWorld(), now: () => Date.now() + ahead };
  const appliance = await open({ copies: { scheduled: { to, schedule: '0 3 * * *', keep: 2 } }, world });
  const made: string[] = [];
  const years = 3650 * 86_400_000;
  for (const each of [0, years, years + 5000, 10_000, 15_000, 20_000]) {
    ahead = each;
    made.push((await appliance.copies.backUpNow())?.file ?? '');
    const there = (await readdir(to)).map((name) => join(to, name));
    assert.deepEqual(there.sort(), made.slice(-2).sort(), `the newest two after ${made.length}`);
  }
  await appliance.close();
});

test('a scheduled backup that does not restore is no backup', async () => {
  const { dir, data, open } = await place();
  const to = join(dir, 'backups');
  const appliance = await open({ copies: { scheduled: { to, schedule: '0 3 * * *', keep: 2 } } });
  const store = join(data, 'system');
  const snapshot = (await readdir(store)).find((name) => name.startsWith('snapshot')) ?? '';
  const bytes = await readFile(join(store, snapshot));
  bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) ^ 1;
  await writeFile(join(store, snapshot), bytes);
  await assert.rejects(appliance.copies.backUpNow(), /does not verify/);
  assert.ok((await readdir(to)).every((name) => name.endsWith('.unverified')));
  assert.equal(appliance.copies.status().lastVerified, undefined);
  await appliance.close();
});

test('schedules', () => {
  for (const good of ['0 3 * * *', '*/5 * * * *', '@daily', '30 4 * * MON']) checkSchedule(good);
  for (const bad of ['', 'x', '61 * * * *', '0 0 31 2 *', '* * *'])
    assert.throws(() => checkSchedule(bad), isCode('usage'), bad);
});

test('a drill restores and leaves nothing behind', async () => {
  const { dir, data, made, open } = await place();
  const appliance = await open();
  await makeRing(appliance, made, 'payroll');
  const before = await readdir(data);
  const answer = await appliance.fetchLocal(
    new Request('http://kms.local/local/drill', {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    }),
  );
  const tried = await answer.json();
  assert.deepEqual([answer.status, tried.stores], [200, 2]);
  assert.deepEqual((await readdir(data)).sort(), before.sort());
  assert.deepEqual((await readdir(dir)).sort(), ['data', 'data.master.key']);
  await appliance.close();
});

test('a drill and an examination are given up where the appliance closes, and leave nothing', async () => {
  for (const [method, path] of [
    ['POST', '/local/drill'],
    ['GET', '/local/doctor'],
  ] as const) {
    const { data, open } = await place();
    const appliance = await open();
    const before = await readdir(data);
    const body = method === 'POST' ? { body: '{}', headers: { 'content-type': 'application/json' } } : {};
    const answering = appliance.fetchLocal(new Request(`http://kms.local${path}`, { method, ...body }));
    await appliance.close();
    const answer = await answering;
    assert.deepEqual(
      [answer.status, await answer.json()],
      [503, { message: 'the appliance is closing', hint: 'ask again when it is open' }],
    );
    assert.deepEqual(
      (await readdir(data)).filter((name) => !before.includes(name)),
      ['kms.witness'],
    );
  }
});

test('the data directory is deleted under the appliance, and it is back from where it was shipped', async () => {
  const { dir, data, made, keyFile, open } = await place();
  const to = join(dir, 'shipped');
  const shipping = { to, every: 50, window: 60_000 };
  const appliance = await open({ copies: { shipping } });
  const isShipped = async (name: string): Promise<void> => {
    await makeRing(appliance, made, name);
    const since = Date.now();
    await until(`${name} is shipped`, () => (appliance.copies.status().shipping?.arrivedAt ?? 0) > since);
  };
  await isShipped('one');
  const between = Date.now();
  await setTimeout(20);
  await isShipped('two');
  assert.equal((await readyz(appliance)).shipping.ok, true);
  await rm(data, { recursive: true });
  let lost = 0;
  const isRefused = async () => (await makeRing(appliance, made, `lost${lost++}`)).status >= 500;
  await until('what cannot last is refused', isRefused);
  await appliance.close();

  const restored = await restoreAppliance({ from: to, ...keys(data) });
  assert.equal(restored.keyFile, keyFile);
  const back = await open({ copies: { shipping } });
  assert.deepEqual((await rings(back, made)).slice(0, 2), ['one', 'two']);
  await makeRing(back, made, 'three');
  await back.close();
  assert.equal((await readdir(to)).length, 2, 'the new epoch is shipped beside the old one');

  const early = await restoreAppliance({ from: to, to: between, ...keys(join(dir, 'early'), keyFile) });
  const earlier = await openAppliance({ data: early.data });
  assert.deepEqual(await rings(earlier, made), ['one']);
  await earlier.close();
  const latest = await restoreAppliance({ from: to, ...keys(join(dir, 'latest'), keyFile) });
  const last = await openAppliance({ data: latest.data });
  assert.ok((await rings(last, made)).includes('three'));
  await last.close();
  await assert.rejects(
    restoreAppliance({ from: to, to: 5, ...keys(join(dir, 'never'), keyFile) }),
    /holds no state of that time: the earliest is 20/,
  );
});

test('a tenant gets new keys while it is backed up and shipped', async () => {
  const { dir, data, made, keyFile, open } = await place();
  const shipping = { to: join(dir, 'shipped'), every: 20, window: 60_000 };
  const appliance = await open({ copies: { shipping } });
  await makeRing(appliance, made, 'one');
  const answer = await call(appliance, made, 'POST', '/system/backup');
  const reader = answer.body?.getReader();
  const pieces = [(await reader?.read())?.value];
  const rekeyed = appliance.fetchLocal(
    new Request('http://kms.local/local/tenants/default/rekey', {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    }),
  );
  await makeRing(appliance, made, 'two');
  for (let next = await reader?.read(); next?.value; next = await reader?.read()) pieces.push(next.value);
  assert.equal((await rekeyed).status, 200);
  await makeRing(appliance, made, 'three');
  await appliance.close();
  await writeFile(join(dir, 'b'), Buffer.concat(pieces.filter((piece) => piece !== undefined)));
  assert.equal((await verifyBackup(join(dir, 'b'), keys(data))).proof?.stores, 2);
  for (const [from, expected] of [
    ['b', ['one']],
    ['shipped', ['one', 'two', 'three']],
  ] as const) {
    const restored = await restoreAppliance({ from: join(dir, from), ...keys(join(dir, `from-${from}`), keyFile) });
    const back = await openAppliance({ data: restored.data });
    assert.deepEqual(await rings(back, made), expected);
    await back.close();
  }
});

test('shipping that was cut off around a new seal: the one that the last point names counts', async () => {
  const { dir, made, open, keyFile } = await place();
  const to = join(dir, 'shipped');
  const shipping = { to, every: 20, window: 1e9 };
  let appliance = await open({ copies: { shipping } });
  await makeRing(appliance, made, 'one');
  await appliance.close();
  const [name = ''] = await readdir(to);
  const seal = join(to, name, 'kms.seal');
  const older = await readFile(seal);
  const journal = await readFile(join(to, name, 'points.kms'));
  const restored = async (data: string): Promise<string[]> => {
    await restoreAppliance({ from: to, ...keys(join(dir, data), keyFile) });
    const back = await openAppliance({ data: join(dir, data) });
    const found = await rings(back, made);
    await back.close();
    return found;
  };

  appliance = await open({ copies: { shipping } });
  const path = 'http://kms.local/local/tenants/default/rekey';
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  assert.equal((await appliance.fetchLocal(new Request(path, json))).status, 200);
  await makeRing(appliance, made, 'two');
  await appliance.close();
  const newer = await readFile(seal);

  // The point has arrived, its seal is not in place yet.
  await writeFile(seal, older);
  await writeFile(`${seal}.next`, newer);
  assert.deepEqual(await restored('named'), ['one', 'two']);
  // The seal is there, its point not yet.
  const whole = await readFile(join(to, name, 'points.kms'));
  await writeFile(join(to, name, 'points.kms'), journal);
  assert.deepEqual(await restored('unnamed'), ['one']);

  // Shipping continues in both cases.
  await writeFile(join(to, name, 'points.kms'), whole);
  appliance = await open({ copies: { shipping } });
  await makeRing(appliance, made, 'three');
  await appliance.close();
  assert.ok(!(await readdir(join(to, name))).includes('kms.seal.next'));
  assert.deepEqual(await restored('later'), ['one', 'two', 'three']);
});

test('a data directory that was set back does not overwrite what it shipped', async () => {
  const { dir, data, made, events, open } = await place();
  const shipping = { to: join(dir, 'shipped'), every: 50_000, window: 60_000 };
  const first = await open({ copies: { shipping } });
  await makeRing(first, made, 'one');
  await first.close();
  await cp(data, join(dir, 'old'), { recursive: true });
  const second = await open({ copies: { shipping } });
  await makeRing(second, made, 'two');
  await second.close();
  await rm(data, { recursive: true });
  await cp(join(dir, 'old'), data, { recursive: true });
  const third = await open({ copies: { shipping } });
  assert.match(
    await until('shipping fails', () => third.copies.status().shipping?.error),
    /older than what was shipped/,
  );
  await makeRing(third, made, 'other');
  await third.close();
  assert.ok(events.some(({ level, message }) => level === 'error' && /older than what was shipped/.test(message)));
  const restored = await restoreAppliance({ from: shipping.to, ...keys(join(dir, 'new'), `${data}.master.key`) });
  const back = await openAppliance({ data: restored.data });
  assert.deepEqual(await rings(back, made), ['one', 'two']);
  await back.close();
});
