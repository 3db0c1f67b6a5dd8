// kill -9 of a serving executable that streams its activity to a syslog server, a webhook and a directory, under load,
// while the receivers break off too: in the end each has every record, in order, and duplicates are recognised by their
// hash. KMS_SEED replays a run, KMS_KILL_ROUNDS sets the number of kills.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { effort } from '../support/effort.ts';
import { prng } from '../support/prng.ts';
import { checkReceived } from '../support/streamed-appliance.ts';
import { SyslogServer } from '../support/syslog-server.ts';
import { until } from '../support/until.ts';
import { asker, kms, type RunningServer, serve, workDirectory } from './kms.ts';

const rounds = Math.min(Number(process.env.KMS_KILL_ROUNDS ?? effort(2, 4)), 20);
const seed = Number(process.env.KMS_SEED ?? Math.floor(Math.random() * 2 ** 31));

// biome-ignore lint/suspicious/noExplicitAny: tests look into records of every shape
type AnyRecord = any;

const linesOf = (text: string): AnyRecord[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

test(`nothing is missing after ${rounds} kills (KMS_SEED=${seed})`, async (context) => {
  const cwd = workDirectory();
  const random = prng(seed);
  const posted: AnyRecord[] = [];
  const hook = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    // Some posts are refused, some accepted without an answer.
    if (random.chance(0.05)) return response.writeHead(503).end();
    posted.push(...linesOf(text));
    return random.chance(0.05) ? response.destroy() : response.end();
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', () => resolve()));
  context.after(() => hook.close());
  const address = hook.address();
  const hookPort = typeof address === 'object' && address ? address.port : 0;
  let syslog = await SyslogServer.listen();
  context.after(() => syslog.kill());
  const { port } = syslog;
  const logged: AnyRecord[] = [];
  writeFileSync(join(cwd, 'secret'), `whsec_${Buffer.alloc(32, 1).toString('base64')}\n`, { mode: 0o600 });

  const args = ['--activity-from', 'start', '--activity-webhook-secret-file', 'secret'];
  for (const target of ['streamed', `syslog+tcp://127.0.0.1:${port}`, `http://127.0.0.1:${hookPort}/kms`]) {
    args.push('--activity-to', target);
  }
  let server: RunningServer = await serve(cwd, args);
  const ask = asker(server.apiKey ?? '');
  let answered = 0;
  for (let round = 0; round < rounds; round++) {
    let killed = false;
    const loaders = Array.from({ length: 3 }, async () => {
      while (!killed) {
        const answer = await ask(`${server.url}/ks/keyrings`, 'GET').catch(() => undefined);
        await answer?.arrayBuffer().catch(() => {});
        if (answer?.ok) answered += 1;
      }
    });
    await delay(200 + random.int(1200));
    await until('enough has happened', async () => answered >= 60 * (round + 1));
    if (random.chance(0.5)) {
      await syslog.kill();
      logged.push(...syslog.records);
      syslog = await SyslogServer.listen({ port });
      await delay(random.int(300));
    }
    await server.end('SIGKILL');
    killed = true;
    await Promise.all(loaders);
    server = await serve(cwd, args);
  }
  await until('all have arrived', async () => {
    const { stdout } = await kms(cwd, ['status', '--json']);
    const targets: { lagRecords: number }[] = JSON.parse(stdout).activityTo;
    return targets.length === 3 && targets.every(({ lagRecords }) => lagRecords === 0);
  });
  assert.equal(await server.end('SIGTERM'), 0);
  logged.push(...syslog.records);

  const exported = await kms(cwd, ['activity', 'export']);
  assert.equal(exported.code, 0, exported.stderr);
  // Drops the export's own record, which came later.
  const log = linesOf(exported.stdout).slice(0, -1);
  const names = readdirSync(join(cwd, 'streamed', 'default')).sort();
  const written = linesOf(names.map((name) => readFileSync(join(cwd, 'streamed', 'default', name), 'utf8')).join(''));
  for (const received of [written, logged, posted]) checkReceived(received, log, 1);
  assert.deepEqual(
    written.map(({ tenant: _, tenantId: __, ...record }) => record),
    log,
    'in files each stands once',
  );
  const again = (received: readonly AnyRecord[]): number => received.length - log.length;
  context.diagnostic(`${log.length} records; again: ${again(logged)} by syslog, ${again(posted)} by the webhook`);
  assert.ok(log.length > 100);
});
