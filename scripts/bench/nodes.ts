// Encrypts per second of nodes on a local PostgreSQL: one node beside the embedded store, then two nodes on two cores
// beside one, each pair in turns in one run.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Postgres, postgresPrograms } from '../../test/support/postgres.ts';
import { type BenchAppliance, kms, makeAppliance, type Served, serve } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { load, type Measured } from './load.ts';
import { type Core, cpuSeconds } from './process.ts';

/** Seconds. */
const warmUp = 2;

interface Round {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  /** Processor time of the serving processes, in microseconds per request. */
  readonly cpu: number;
}

/** @param seconds of each measurement. @param rounds in which each is measured once. */
export async function measureNodes(seconds: number, rounds: number): Promise<void> {
  const programs = postgresPrograms();
  if (!programs) throw new Error('there is no PostgreSQL on this system: install the package postgresql');
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const postgres = new Postgres(programs);
  const store = `postgres://kms@/postgres?host=${postgres.dir}`;
  const embedded = makeAppliance(join(home, 'embedded'));
  const shared = makeAppliance(join(home, 'a'), ['--store', store]);
  copyFileSync(join(home, 'a.master.key'), join(home, 'b.master.key'));
  const other = { ...shared, data: join(home, 'b') };
  ring(embedded, []);
  ring(shared, ['--store', store]);
  const storeArgs = ['--store', store];

  const alone: Round[] = [];
  const one: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    const measured = async (of: BenchAppliance, args: readonly string[]): Promise<Round> => {
      const server = await serve(0, of, args);
      const found = await measure([[server, 1]], of, seconds);
      await server.stop();
      return found;
    };
    const both = [await measured(embedded, []), await measured(shared, storeArgs)] as const;
    alone.push(both[0]);
    one.push(both[1]);
  }
  console.log(`\nNodes: encrypt, 64 connections, ${rounds} rounds of ${seconds} s; median of the rounds`);
  row('', 'req/s', 'p50 ms', 'p99 ms', 'CPU µs');
  show('embedded', alone);
  show('one node', one);
  goal('one node, of embedded', ratio(one, alone), 0.7, 'at least');
  goal('p50 behind embedded', of(one, 'p50') - of(alone, 'p50'), 1, 'at most', ' ms');

  const single: Round[] = [];
  const pair: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    const a = await serve('any', shared, storeArgs);
    const ofOne = await measure(
      [
        [a, 'any'],
        [a, 'any'],
      ],
      shared,
      seconds,
    );
    await a.stop();
    const two = [await serve(0, shared, storeArgs), await serve(1, other, storeArgs)] as const;
    const ofTwo = await measure(
      [
        [two[0], 'any'],
        [two[1], 'any'],
      ],
      shared,
      seconds,
    );
    for (const server of two) await server.stop();
    single.push(ofOne);
    pair.push(ofTwo);
  }
  console.log('\nTwo clients of 64 connections, which share the cores with the nodes and the database');
  row('', 'req/s', 'p50 ms', 'p99 ms', 'CPU µs');
  show('one node, any core', single);
  show('two nodes, a core each', pair);
  goal('two nodes, of one', ratio(pair, single), 1, 'at least');
  postgres.end();
  rmSync(home, { recursive: true });
}

function ring({ data }: BenchAppliance, args: readonly string[]): void {
  const key = `${data}.ring.key`;
  execFileSync(kms, ['--data', data, ...args, 'keyring', 'create', 'bench', '--private-key-out', key], {
    stdio: 'ignore',
  });
}

/** Runs clients against all servers at once. */
async function measure(
  clients: readonly (readonly [server: Served, core: Core])[],
  { headers }: BenchAppliance,
  seconds: number,
): Promise<Round> {
  const body = JSON.stringify({ ringname: 'bench' });
  const pids = [...new Set(clients.map(([{ child }]) => child.pid))];
  const cpu = (): number => pids.reduce<number>((sum, pid) => sum + cpuSeconds(pid), 0);
  const ask = (long: number): Promise<readonly Measured[]> =>
    Promise.all(
      clients.map(([{ url }, core]) => load(core, { url: `${url}/ks/encrypt`, headers, body, seconds: long })),
    );
  // The servers have just started.
  await ask(warmUp);
  const before = cpu();
  const results = await ask(seconds);
  const used = cpu() - before;
  const perSecond = results.reduce((sum, each) => sum + each.perSecond, 0);
  const slowest = (field: 'p50' | 'p99'): number => Math.max(...results.map((each) => each[field]));
  return { perSecond, p50: slowest('p50'), p99: slowest('p99'), cpu: (used * 1e6) / (perSecond * seconds) };
}

function of(rounds: readonly Round[], field: keyof Round): number {
  return median(rounds.map((each) => each[field]));
}

function ratio(rounds: readonly Round[], others: readonly Round[]): number {
  return median(rounds.map(({ perSecond }, at) => perSecond / (others[at]?.perSecond ?? Number.NaN)));
}

function show(name: string, rounds: readonly Round[]): void {
  row(name, short(of(rounds, 'perSecond')), of(rounds, 'p50'), of(rounds, 'p99'), short(of(rounds, 'cpu')));
}
