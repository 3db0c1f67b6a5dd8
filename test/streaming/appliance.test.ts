// A streaming appliance throughout its life: where a target begins, tenants that come and go, a seal, files put back
// from a copy, a restore, and the progress it reports.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { verifyExport } from '../../src/appliance/verify-export.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { serve } from '../../src/server/serve.ts';
import { numberOf, parsePrometheus } from '../support/prometheus-text.ts';
import {
  type AnyRecord,
  checkReceived,
  type StreamedAppliance,
  streamedAppliance,
  streamingTo,
} from '../support/streamed-appliance.ts';
import { SyslogServer } from '../support/syslog-server.ts';
import { until } from '../support/until.ts';

/** Records of one tenant in a directory that was streamed to. */
function streamedTo(dir: string, tenant = 'default'): AnyRecord[] {
  return textOf(dir, tenant)
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

function textOf(dir: string, tenant: string): string {
  const place = join(dir, tenant);
  const names = existsSync(place) ? readdirSync(place).sort() : [];
  return names.map((name) => readFileSync(join(place, name), 'utf8')).join('');
}

const caughtUp = (at: StreamedAppliance) => until('all has arrived', async () => (await at.status()).lagRecords === 0);

test('a new target begins at the present end, or at the start; a known one goes on, also after a pause', async () => {
  await using at = await streamedAppliance();
  await at.open();
  await at.act(5);
  await at.close();
  const [end, start] = [join(at.dir, 'end'), join(at.dir, 'start')];
  await at.open(streamingTo([end]));
  await at.act(2);
  await caughtUp(at);
  await at.close();
  await at.open(streamingTo([start], { from: 'start' }));
  await at.act(2);
  await caughtUp(at);
  await at.close();
  // The option of the first start no longer counts.
  await at.open(streamingTo([start, end], { from: 'start' }));
  await at.act(1);
  const log = await at.log();
  await at.close();
  const seqs = log.map(({ seq }) => seq);
  assert.deepEqual(
    streamedTo(start)
      .map(({ seq }) => seq)
      .slice(0, seqs.length),
    seqs,
  );
  assert.deepEqual(
    streamedTo(end)
      .map(({ seq }) => seq)
      .slice(0, seqs.length - 5),
    seqs.slice(5),
  );
});

test('each tenant has its own order; new ones are there from their first record, renamed ones go on', async () => {
  await using at = await streamedAppliance();
  const dir = join(at.dir, 'streamed');
  await at.open(streamingTo([dir]));
  await at.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
  await at.act(3, 'blue');
  await at.act(2);
  await caughtUp(at);
  await at.local('PATCH', '/local/tenants/blue', { name: 'green' });
  await at.act(2, 'green');
  await caughtUp(at);
  const log = await at.log('green');
  const received = [...streamedTo(dir, 'blue'), ...streamedTo(dir, 'green')];
  checkReceived(
    received.filter(({ seq }) => seq <= log.length),
    log,
    1,
  );
  assert.equal(new Set(received.map(({ tenantId }) => tenantId)).size, 1);
  // A deleted tenant's stream is released, and continues from its position when the tenant is restored.
  await at.local('DELETE', '/local/tenants/green');
  await at.act(1);
  await caughtUp(at);
  const id = received[0].tenantId;
  assert.equal((await at.local('POST', `/local/tenants/${id}/restore`, {})).status, 200);
  await at.act(1, 'green');
  await caughtUp(at);
  const after = await at.log('green');
  await at.close();
  const whole = [...streamedTo(dir, 'blue'), ...streamedTo(dir, 'green')].filter(({ seq }) => seq <= after.length);
  assert.deepEqual(
    whole.map(({ seq }) => seq),
    after.map(({ seq }) => seq),
  );
});

test('a directory has what an export has: it verifies once the tenant is taken out of its lines', async () => {
  await using at = await streamedAppliance();
  const dir = join(at.dir, 'streamed');
  await at.open(streamingTo([`file://${dir}`], { from: 'start', fileBytes: 2000 }));
  for (let round = 0; round < 6; round++) {
    await at.act(6);
    await caughtUp(at);
  }
  await at.close();
  assert.ok(readdirSync(join(dir, 'default')).length > 2);
  const args = ['s/^{"tenant":"[^"]*","tenantId":"[^"]*",/{/'];
  const lines = execFileSync('sed', args, { input: textOf(dir, 'default') });
  const { count, broken } = await verifyExport(Readable.from([lines]));
  assert.deepEqual([count, broken], [streamedTo(dir).length, undefined]);
});

test('sealed it sends nothing, what came before is there, and it goes on after the unseal', async () => {
  await using at = await streamedAppliance();
  const server = await SyslogServer.listen();
  const serving = await serve({
    data: at.data,
    listen: '127.0.0.1:0',
    logLevel: 'silent',
    streaming: streamingTo([`syslog+tcp://127.0.0.1:${server.port}`], { from: 'start' }),
  });
  const headers = { authorization: `Bearer ${at.apiKey}`, 'content-type': 'application/json' };
  const post = (path: string, body: object): Promise<Response> =>
    fetch(serving.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal((await post('/ks/keyrings', { name: 'one' })).status, 200);
  assert.equal((await post('/system/seal', {})).status, 200);
  await until('the seal itself has arrived', () => server.records.some(({ action }) => action === 'system.seal'));
  await delay(300);
  const before = server.messages.length;
  await delay(100);
  assert.equal(server.messages.length, before);
  const key = readFileSync(`${at.data}.master.key`, 'utf8');
  assert.equal((await post('/system/unseal', { key })).status, 200);
  assert.equal((await post('/ks/keyrings', { name: 'two' })).status, 200);
  const wanted = ['keyring.create', 'system.seal', 'system.unseal', 'keyring.create'];
  await until('what came after', () => server.records.length >= wanted.length);
  await serving.close();
  assert.deepEqual(
    server.records.map(({ action }) => action),
    wanted,
  );
  await server.kill();
});

test('logs that were put back: what came in their place is sent, however far the old ones had got', async () => {
  await using at = await streamedAppliance();
  const dir = join(at.dir, 'streamed');
  const streaming = streamingTo([dir], { from: 'start' });
  await at.open(streaming);
  await at.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
  await at.act(2, 'blue');
  await at.close();
  const older = join(at.dir, 'older');
  cpSync(at.data, older, { recursive: true });
  await at.open(streaming);
  await at.act(3, 'blue');
  await at.close();
  const lost = streamedTo(dir, 'blue').slice(2);
  const tenants = readdirSync(join(at.data, 'tenants'));
  for (const name of tenants) {
    rmSync(join(at.data, 'tenants', name), { recursive: true });
    cpSync(join(older, 'tenants', name), join(at.data, 'tenants', name), { recursive: true });
  }
  // First without streaming: the records from that time must not be missing.
  await at.open(undefined, { acceptOlder: ['blue', 'default'] });
  await at.act(1, 'blue');
  await at.close();
  await at.open(streaming);
  await at.act(4, 'blue');
  await caughtUp(at);
  const log = await at.log('blue');
  await at.close();
  assert.ok(log.some(({ action }) => action === 'system.accept-older'));
  const received = streamedTo(dir, 'blue');
  const there = new Set(received.map(({ hash }) => hash));
  assert.deepEqual(
    log.filter(({ hash }) => !there.has(hash)),
    [],
  );
  for (const { hash } of lost) assert.ok(there.has(hash), 'what had arrived of the other history stays');
});

test('a restored appliance goes on where its copy was: nothing of it is missing', async () => {
  await using at = await streamedAppliance();
  const dir = join(at.dir, 'streamed');
  const streaming = streamingTo([dir], { from: 'start' });
  await at.open(streaming);
  await at.act(4);
  await caughtUp(at);
  await delay(50);
  const backup = join(at.dir, 'backup');
  const answer = await at.local('POST', '/local/backup');
  assert.equal(answer.status, 200);
  writeFileSync(backup, Buffer.from(await answer.arrayBuffer()));
  await at.act(6);
  await at.close();
  const keyFile = `${at.data}.master.key`;
  const key = join(at.dir, 'key');
  cpSync(keyFile, key);
  rmSync(at.data, { recursive: true });
  await restoreAppliance({ from: backup, data: at.data, keys: { keyFile: key, env: () => undefined } });
  await at.open(streaming);
  await at.act(9);
  await caughtUp(at);
  const log = await at.log();
  await at.close();
  assert.ok(log.some(({ action }) => action === 'system.restore'));
  const there = new Set(streamedTo(dir).map(({ hash }) => hash));
  assert.deepEqual(
    log.filter(({ hash }) => !there.has(hash)),
    [],
  );
});

test('a place beyond the end of the log, which nobody accounted for: everything is sent again, and said', async () => {
  await using at = await streamedAppliance();
  const dir = join(at.dir, 'streamed');
  const streaming = streamingTo([dir], { from: 'start' });
  await at.open(streaming);
  await at.act(3);
  await caughtUp(at);
  await at.close();
  const { openSystemStore, storesIn } = await import('../../src/storage/stores.ts');
  const { openSealFile } = await import('../../src/custody/seal-keeper.ts');
  const { nodeFiles } = await import('../../src/platform/node-files.ts');
  const { sqlWasm } = await import('../support/wasm.ts');
  const { seal } = await openSealFile(at.data, undefined);
  const stores = storesIn({ root: at.data, files: nodeFiles(at.data), wasm: sqlWasm });
  const system = await openSystemStore(stores, seal.keysFor('system'));
  await system.transaction(({ settings }) => {
    const [row] = settings.ofTargets();
    assert.match(row?.value ?? '', /^\{"version":1,"places":\{"tenant_[0-9a-z]{26}":3\}\}$/);
    assert.ok(row);
    settings.set(row.name, row.value.replace(':3}', ':99}'));
  });
  await system.close();
  rmSync(dir, { recursive: true });
  await at.open(streaming);
  await until('the first is there again', () => streamedTo(dir)[0]?.seq === 1);
  await at.close();
  assert.ok(
    at.events.some(({ level, message }) => level === 'error' && /99 records of default had arrived/.test(message)),
  );
});

test('how far it is: status, metrics, and doctor where it is behind', async () => {
  await using at = await streamedAppliance();
  const gone = await SyslogServer.listen();
  const { port } = gone;
  await gone.kill();
  const dir = join(at.dir, 'streamed');
  await at.open(streamingTo([dir, `syslog+tcp://127.0.0.1:${port}`]));
  await at.act(4);
  await until('one is behind', async () => (await at.appliance.status()).activityTo[1]?.fault !== undefined);
  await until('the other is not', async () => (await at.appliance.status()).activityTo[0]?.lagRecords === 0);
  const [, syslog] = (await at.appliance.status()).activityTo;
  assert.deepEqual(
    { ...syslog, lagSeconds: 0, lagRecords: 4 },
    {
      kind: 'syslog',
      to: `syslog+tcp://127.0.0.1:${port}`,
      lagRecords: 4,
      lagSeconds: 0,
      fault: 'unreachable',
      error: 'nothing listens there (ECONNREFUSED)',
    },
  );
  const text = await (await at.local('GET', '/metrics')).text();
  const metrics = parsePrometheus(text);
  const of = (target: string, kind: string, more = {}) => ({ target, kind, ...more });
  assert.ok((numberOf(metrics, 'kms_activity_stream_lag_records', of('2', 'syslog')) ?? 0) >= 4);
  assert.ok((numberOf(metrics, 'kms_activity_stream_lag_seconds', of('2', 'syslog')) ?? -1) >= 0);
  assert.equal(numberOf(metrics, 'kms_activity_stream_failing', of('2', 'syslog', { fault: 'unreachable' })), 1);
  assert.equal(numberOf(metrics, 'kms_activity_stream_failing', of('1', 'directory', { fault: 'none' })), 0);
  assert.ok(!text.includes('127.0.0.1') && !text.includes(dir), 'no address stands in a label');
  const examination = await (await at.local('GET', '/local/doctor')).json();
  const found = examination.findings.filter(({ name }: AnyRecord) => name === 'activity-behind');
  assert.equal(found.length, 1, JSON.stringify(examination));
  assert.match(found[0].message, /^\d+ records of activity have not arrived, .* nothing listens there/);
});

test('how long something waits is told after a restart, too, and while nobody asks', async () => {
  await using at = await streamedAppliance();
  const gone = await SyslogServer.listen();
  const streaming = streamingTo([`syslog+tcp://127.0.0.1:${gone.port}`]);
  await gone.kill();
  await at.open(streaming);
  await at.act(2);
  await at.close();
  await delay(1600);
  await at.open(streaming);
  await until('it is known', async () => (await at.status()).lagSeconds >= 2);
  await delay(1500);
  const { lagRecords, lagSeconds } = await at.status();
  assert.ok(lagRecords >= 2 && lagSeconds >= 3 && lagSeconds < 60, `${lagRecords} records, ${lagSeconds} s`);
});

test('a receiver that hangs is in the way of no request, and of no end', async () => {
  await using at = await streamedAppliance();
  const server = await SyslogServer.listen({ deafAfter: 0 });
  await at.open(streamingTo([`syslog+tcp://127.0.0.1:${server.port}`], { from: 'start', pace: { farewell: 200 } }));
  const started = performance.now();
  await at.act(50);
  const acted = performance.now() - started;
  const closing = performance.now();
  await at.close();
  // A failure would hang for ever; a busy machine may take its time.
  assert.ok(performance.now() - closing < 30_000);
  assert.ok(acted < 30_000, `${acted} ms`);
  await server.kill();
});
