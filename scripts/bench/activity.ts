// The cost of a long activity log: an appliance with many records beside one with none, in alternation, and searches of
// the long log.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from '../../src/store/port.ts';
import { type History, history } from './activity-records.ts';
import { type BenchAppliance, makeAppliance, openTenant, type Served, serve, timed } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { load } from './load.ts';

export interface Pair<T> {
  readonly none: T;
  readonly many: T;
}

/** Measures both members of a pair side by side in each round. */
export async function inAlternation(rounds: number, measure: (which: keyof Pair<unknown>) => Promise<number>) {
  const values = { none: [] as number[], many: [] as number[] };
  for (let round = 0; round <= rounds; round++) {
    for (const which of round % 2 === 0 ? (['none', 'many'] as const) : (['many', 'none'] as const)) {
      const value = await measure(which);
      if (round > 0) values[which].push(value); // the first is the warm-up
    }
  }
  const ratio = median(values.many.map((value, at) => value / (values.none[at] ?? Number.NaN)));
  return { none: median(values.none), many: median(values.many), ratio };
}

export async function measureActivity(records: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const pair = { none: makeAppliance(join(home, 'none')), many: makeAppliance(join(home, 'many')) };
  for (const appliance of Object.values(pair)) await makeRing(appliance);
  const past = await fill(pair.many, records);

  console.log(`\nActivity: ${records} records beside none, median of ${rounds} rounds`);
  row('', 'none', `${records}`, 'ratio');
  const say = (what: string, { none, many, ratio }: Awaited<ReturnType<typeof inAlternation>>, least?: 'at least') => {
    row(what, short(none), short(many), ratio.toFixed(3));
    goal(`${what}, of that at none`, ratio, least ? 0.9 : 1.1, least ?? 'at most');
  };
  say('start, as left, ms', await inAlternation(rounds, (which) => startOnce(pair[which])));
  say('checkpoint, ms', await checkpoints(pair, rounds));
  say('start, ms', await inAlternation(rounds, (which) => startOnce(pair[which])));
  say('memory, idle, MB', await inAlternation(3, (which) => idleMemory(pair[which])));

  const served = { none: await serve(0, pair.none), many: await serve(0, pair.many) };
  say('encrypts/s', await inAlternation(rounds, (which) => encrypts(served[which], pair[which])), 'at least');
  const memory = { none: served.none.megabytes(), many: served.many.megabytes() };
  say('memory, loaded, MB', { ...memory, ratio: memory.many / memory.none });
  await search(served.many, past, records);
  await served.none.stop();
  await served.many.stop();
  rmSync(home, { recursive: true });
}

export async function makeRing(appliance: BenchAppliance): Promise<void> {
  const served = await serve(0, appliance);
  await served.ask('/ks/keyrings', { name: 'bench' });
  await served.stop();
}

/** Adds the account that the searches look for, with its keys. */
export async function addAccount(store: Store, account: Parameters<typeof history>[0]): Promise<void> {
  await store.transaction((tx) => {
    const times = { createdAt: 0, updatedAt: 0 };
    tx.accounts.insert({ id: account.id, uid: 'bench', notes: '', props: {}, ...times });
    for (const id of account.keyids) {
      const secret = { secretHash: id, rings: [], flagsText: '{}', props: {}, active: true, userId: undefined };
      const bare = { name: '', expiresAt: undefined, addresses: [], createdBy: undefined };
      tx.apiKeys.insert({ id, accountId: account.id, ...secret, ...bare, ...times });
    }
  });
}

async function fill(appliance: BenchAppliance, records: number): Promise<History> {
  const store = await openTenant(appliance);
  const account = { id: 'acct_bench', keyids: Array.from({ length: 20 }, (_, at) => `apik_bench${at}`) };
  const before = performance.now();
  await addAccount(store, account);
  const past = history(account);
  for (let from = 1; from <= records; from += 1000) {
    await store.transaction((tx) => {
      for (let at = from; at < Math.min(from + 1000, records + 1); at++) tx.record(past.record(at));
    });
  }
  await store.close();
  console.log(`\n${records} records written in ${short((performance.now() - before) / 1000)} s`);
  return past;
}

async function startOnce(appliance: BenchAppliance): Promise<number> {
  const served = await serve(0, appliance);
  await served.stop();
  return served.startMilliseconds;
}

async function idleMemory(appliance: BenchAppliance): Promise<number> {
  const served = await serve(0, appliance);
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const megabytes = served.megabytes();
  await served.stop();
  return megabytes;
}

async function checkpoints(pair: Pair<BenchAppliance>, rounds: number) {
  const stores: Pair<Store> = { none: await openTenant(pair.none), many: await openTenant(pair.many) };
  const past = history({ id: '', keyids: [] });
  let number = 0;
  const figures = await inAlternation(rounds, async (which) => {
    const store = stores[which];
    // A checkpoint runs only if there is something new.
    await store.transaction((tx) => tx.record(past.record(++number)));
    return timed(() => store.checkpoint());
  });
  for (const store of Object.values(stores)) await store.close();
  return figures;
}

export async function encrypts({ url }: Served, { headers }: BenchAppliance): Promise<number> {
  const body = JSON.stringify({ ringname: 'bench' });
  return (await load(1, { url: `${url}/ks/encrypt`, headers, body, seconds: 3 })).perSecond;
}

async function search(served: Served, past: History, records: number): Promise<void> {
  console.log('\nThe newest 100 of them over HTTP, median of 9 warm searches');
  row('', 'found', 'first ms', 'warm ms');
  let slowest = 0;
  for (const [name, body] of Object.entries(past.searches(records))) {
    let answer = '';
    const ask = async () => {
      answer = await served.ask('/auth/search/activity?limit=100', body);
    };
    const first = await timed(ask);
    const warm: number[] = [];
    for (let round = 0; round < 9; round++) warm.push(await timed(ask));
    row(name, JSON.parse(answer).data.length, short(first), short(median(warm)));
    slowest = Math.max(slowest, median(warm));
  }
  goal('the newest 100 by any filter', slowest, 50, 'at most', ' ms');
  const page = await timed(() => served.ask('/auth/search/activity?limit=10000', { ring: 'ring-4' }));
  row('memory after it, MB', short(served.megabytes()), `(10,000 by ring: ${short(page)} ms)`);
}
