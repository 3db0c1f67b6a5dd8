// The memory of a server: idle, under sustained full load with checkpoints, and a minute later. Run by hand it is an
// hour's soak, `node scripts/bench/memory.ts [minutes] [one-core]`, with backups, rotations of the ring and of the
// master key, and searches besides. Needs `dist/kms`. The server has one core, the load another; with `one-core` they
// share one.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type BenchAppliance, kms, makeAppliance, type Served, serve } from './appliance.ts';
import { goal, row, short } from './figures.ts';
import { loadWithFailures, type Measured } from './load.ts';

interface Plan {
  readonly minutes: number;
  readonly others: number;
  /** Whether backups, rotations and searches run as well. */
  readonly chores: boolean;
}

/** Milliseconds between readings; shorter peaks are missed. */
const readEvery = 500;
const minute = 60_000;

/** @param others the core of the load; the server has core 0. */
export async function measureMemory({ minutes, others, chores }: Plan): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const appliance = makeAppliance(join(home, 'data'));
  const server = await serve(0, appliance);
  await server.ask('/ks/keyrings', { name: 'bench' });
  await setTimeout(minute / 2);
  const idle = server.megabytes();
  const readings: number[] = [];
  const reader = setInterval(() => readings.push(server.megabytes()), readEvery);
  const ended = new AbortController();
  const done = chores ? doChores(appliance, server, home, ended.signal) : undefined;
  const encrypts = await loadWithFailures(others, {
    url: `${server.url}/ks/encrypt`,
    headers: appliance.headers,
    body: JSON.stringify({ ringname: 'bench' }),
    seconds: minutes * 60,
  });
  ended.abort();
  const chored = await done;
  clearInterval(reader);
  await setTimeout(minute);
  const later = server.megabytes();
  const shared = others === 0 ? ', server and load on one core' : '';
  console.log(`\nMemory: encrypts by 64 connections for ${minutes} min${shared}`);
  row('', 'encrypts/s', 'p50 ms', 'p99 ms', 'checkpoints', 'failed');
  const failed = Object.values(encrypts.failures).reduce((sum, count) => sum + count, 0);
  row('', ...figures(encrypts), checkpointsOf(appliance), failed);
  for (const [what, count] of Object.entries(encrypts.failures)) console.log(`failed with ${what}: ${count}`);
  goal('encrypts that failed', failed, 0, 'at most');
  if (chored) console.log(`besides: ${chored}`);
  row(minutes > 10 ? 'MB, by the tenth' : 'MB, by the minute', ...byTheMinute(readings).map(short));
  goal('idle memory', idle, 100, 'at most', ' MB');
  goal('peak at full speed', Math.max(...readings), 300, 'at most', ' MB');
  goal('a minute later', later, 170, 'at most', ' MB');
  await server.stop();
  rmSync(home, { recursive: true });
}

function figures({ perSecond, p50, p99 }: Measured): string[] {
  return [perSecond, p50, p99].map(short);
}

/** Peak of each minute, or of each tenth of a long run. */
function byTheMinute(readings: readonly number[]): number[] {
  const each = Math.max(minute / readEvery, Math.ceil(readings.length / 10));
  const parts = Math.ceil(readings.length / each);
  return Array.from({ length: parts }, (_, part) => Math.max(...readings.slice(part * each, (part + 1) * each)));
}

/** Counts checkpoints by the latest snapshot's generation: each checkpoint starts the next one. */
function checkpointsOf({ data }: BenchAppliance): number {
  const [tenant = ''] = readdirSync(join(data, 'tenants'));
  const generations = readdirSync(join(data, 'tenants', tenant)).map((name) => /^snapshot-(\d+)\.kms$/.exec(name)?.[1]);
  return Math.max(0, ...generations.map((generation) => Number(generation ?? 0)));
}

/**
 * Does one chore after the other until aborted: everything that happens within a day, and more often. Returns how many
 * there were.
 */
async function doChores(appliance: BenchAppliance, server: Served, home: string, ended: AbortSignal): Promise<string> {
  const counts = { backups: 0, rotations: 0, 'new master keys': 0, searches: 0 };
  const file = join(home, 'bench.kms-backup');
  const command = (...args: string[]) => promisify(execFile)(kms, ['--data', appliance.data, ...args]);
  for (let turn = 0; !ended.aborted; turn++) {
    await setTimeout(minute / 6, undefined, { signal: ended }).catch(() => {});
    await server.ask('/ks/rotate', { ringname: 'bench' });
    counts.rotations++;
    await server.ask('/auth/search/activity?limit=100', { action: 'keyring.rotate' });
    counts.searches++;
    if (turn % 6 === 3) {
      rmSync(file, { force: true });
      await command('backup', 'create', file);
      counts.backups++;
    }
    if (turn % 60 === 2) {
      await command('master', 'rotate');
      counts['new master keys']++;
    }
  }
  return Object.entries(counts)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ');
}

if (import.meta.main) {
  const others = process.argv[3] === 'one-core' ? 0 : 1;
  await measureMemory({ minutes: Number(process.argv[2] ?? '60'), others, chores: true });
}
