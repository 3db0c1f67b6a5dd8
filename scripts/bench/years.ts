// The cost of years of use: an appliance with 10 million records of activity and 100,000 rings, users and API keys
// each; its start and memory, searches warm and cold, and encrypts beside an empty appliance.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom } from '../../src/crypto/random.ts';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { systemDir, tenantDir } from '../../src/platform/data-dir.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { sqlWasm } from '../../src/platform/program-files.ts';
import { recoverFiles } from '../../src/store/file-recovery.ts';
import { createLog } from '../../src/store/log-file.ts';
import type { ActivityInput } from '../../src/store/port.ts';
import { writeSnapshot } from '../../src/store/snapshot.ts';
import { addAccount, encrypts, makeRing, type Pair } from './activity.ts';
import { type History, history } from './activity-records.ts';
import { type BenchAppliance, makeAppliance, openTenant, type Served, serve, timed } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { addApiKey, addRing, addUser } from './pages.ts';
import { cpuSeconds } from './process.ts';
import { measureSizes } from './segment-sizes.ts';

/** @param rounds in which starts and searches are measured. */
export async function measureYears(records: number, things: number, rounds: number): Promise<void> {
  measureSizes();
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const many = makeAppliance(join(home, 'many'));
  await makeRing(many);
  const account = { id: 'acct_bench', keyids: Array.from({ length: 20 }, (_, at) => `apik_bench${at}`) };
  const past = history(account);
  const took = await timed(async () => {
    await addThings(many, things, account);
    await addRecords(many, past, records);
  });
  console.log(
    `\nYears: ${records} records, ${things} rings, users and API keys each (made in ${short(took / 1000)} s)`,
  );
  for (let round = 0; round < rounds; round++) await starts(many, records);
  for (let round = 0; round < rounds; round++) await search(many, past, records);
  // Last, since it makes millions of records; once, since it takes long.
  const none = makeAppliance(join(home, 'none'));
  await makeRing(none);
  await compareEncrypts({ none, many });
  rmSync(home, { recursive: true });
}

/** Adds rings with a key each, users and API keys; and the account that the searches look for. */
async function addThings(
  appliance: BenchAppliance,
  things: number,
  account: Parameters<typeof history>[0],
): Promise<void> {
  const store = await openTenant(appliance);
  const { newId, now } = systemWorld();
  await addAccount(store, account);
  for (let from = 0; from < things; from += 500) {
    await store.transaction((tx) => {
      for (let at = from; at < Math.min(from + 500, things); at++) {
        const id = newId('ring');
        const addition = { at, now: now(), newId };
        addRing(tx, { ...addition, id, keysTo: id });
        const userId = addUser(tx, addition);
        addApiKey(tx, { ...addition, userId, accountId: appliance.accountId, keyringName: `ring-${at}` });
      }
    });
  }
  await store.close();
}

/** Records per batch: a multiple of a segment's capacity. */
const go = 8 * 8192;

/** Writes segments and a new snapshot directly, as a checkpoint would: through the log it would take hours. */
async function addRecords({ data }: BenchAppliance, past: History, records: number): Promise<void> {
  const { seal } = await openSealFile(data, undefined);
  const name = seal.stores.find((each) => each !== systemDir) ?? '';
  const world = { files: nodeFiles(data), dir: tenantDir(name), keys: seal.keysFor(name), random: systemRandom };
  const { state, activity, uid, log } = await recoverFiles(world, { wasm: await sqlWasm() });
  for (let from = 1; from <= records; from += go) {
    for (let at = from; at < Math.min(from + go, records + 1); at++) activity.stage(withAddress(past.record(at), at));
    activity.commitStaged();
    await activity.roll();
  }
  const { segments, head } = activity;
  const { sequence, chain, runs } = log.place;
  const { generation } = log;
  await (await createLog(world, { uid, generation: generation + 1, sequence, chain, runs })).close();
  const content = { schema: state.schemaVersion, savedAt: Date.now(), runs, activity: { segments, head } };
  const start = { uid, generation, sequence, chain };
  await writeSnapshot(world, start, content, activity.tailLines(), state.image());
  state.close();
  seal.wipe();
}

/** Adds one of a thousand addresses; a few of them get most records. */
function withAddress(record: ActivityInput, number: number): ActivityInput {
  const at = Math.floor(((number * 7919) % 1000) ** 2 / 1000);
  return { ...record, address: `10.${at % 7}.${at >> 5}.${at & 255}` };
}

async function starts(appliance: BenchAppliance, records: number): Promise<void> {
  const times: number[] = [];
  const cost: number[] = [];
  const memory: number[] = [];
  for (let round = 0; round < 3; round++) {
    const served = await serve(0, appliance);
    times.push(served.startMilliseconds);
    cost.push(cpuSeconds(served.child.pid));
    memory.push(served.megabytes());
    if (round === 2) {
      const [, bytes = '0'] = /^kms_activity_bytes (\d+)/m.exec(await served.ask('/metrics')) ?? [];
      goal('disk per record', Number(bytes) / records, 30, 'at most', ' bytes');
    }
    await served.stop();
  }
  goal('start with all of it', median(times) / 1000, 3, 'at most', ' s');
  goal('processor time of that start', median(cost), 3, 'at most', ' s');
  goal('memory after that start', median(memory), 500, 'at most', ' MB');
}

/** Drops the closed segments from the system's page cache. */
function evict({ data }: BenchAppliance): void {
  for (const dir of readdirSync(join(data, 'tenants'))) {
    const path = join(data, 'tenants', dir);
    for (const file of readdirSync(path).filter((each) => each.startsWith('activity-'))) {
      const args = [`of=${join(path, file)}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none'];
      execFileSync('dd', args);
    }
  }
}

async function search(appliance: BenchAppliance, past: History, records: number): Promise<void> {
  console.log('\nThe newest 100 over HTTP: after a start, with no segment in the cache of the system; then 9');
  row('', 'found', 'cold ms', 'of CPU', 'warm ms', 'of CPU');
  const slowest = { cold: 0, warm: 0 };
  const searches = {
    ...past.searches(records),
    'an address': { address: '10.3.28.200' },
    'a network': { address: '10.5.0.0/16' },
  };
  for (const [name, body] of Object.entries(searches)) {
    evict(appliance);
    const served = await serve(0, appliance);
    let answer = '';
    const ask = async () => {
      answer = await served.ask('/auth/search/activity?limit=100', body);
    };
    // Code that runs for the first time in the process must not count.
    await served.ask('/auth/search/activity?limit=1', { keyid: 'apik_none', start: 0, end: 1 });
    const cpu = (): number => cpuSeconds(served.child.pid) * 1000;
    const began = cpu();
    const cold = await timed(ask);
    const between = cpu();
    const warm: number[] = [];
    for (let round = 0; round < 9; round++) warm.push(await timed(ask));
    const warmCost = (cpu() - between) / 9;
    await served.stop();
    row(
      name,
      JSON.parse(answer).data.length,
      short(cold),
      short(between - began),
      short(median(warm)),
      short(warmCost),
    );
    // The goal is for one filter at a time; a combination that rarely occurs together has to open every segment.
    if (Object.keys(body).length > 2) continue;
    slowest.cold = Math.max(slowest.cold, cold);
    slowest.warm = Math.max(slowest.warm, median(warm));
  }
  goal('the newest 100 by any one filter, cold', slowest.cold, 300, 'at most', ' ms');
  goal('the newest 100 by any one filter, warm', slowest.warm, 50, 'at most', ' ms');
}

/** Checkpoints of the larger appliance that its encrypts are measured over. */
const checkpointsMeasured = 2;

async function compareEncrypts(pair: Pair<BenchAppliance>): Promise<void> {
  const served = { none: await serve(0, pair.none), many: await serve(0, pair.many) };
  const sides = ['none', 'many'] as const;
  const did = { none: { perSecond: 0, cpu: 0 }, many: { perSecond: 0, cpu: 0 } };
  for (const side of sides) await encrypts(served[side], pair[side]); // the warm-up
  const before = { none: await checkpointsOf(served.none), many: await checkpointsOf(served.many) };
  let rounds = 0;
  do {
    rounds++;
    for (const side of rounds % 2 === 0 ? sides : sides.toReversed()) {
      const { pid } = served[side].child;
      const used = cpuSeconds(pid);
      did[side].perSecond += await encrypts(served[side], pair[side]);
      did[side].cpu += cpuSeconds(pid) - used;
    }
  } while ((await checkpointsOf(served.many)) - before.many < checkpointsMeasured);
  const { none, many } = did;
  const cost = ({ cpu, perSecond }: typeof none) => cpu / perSecond;
  const checkpoints = await Promise.all(sides.map(async (side) => (await checkpointsOf(served[side])) - before[side]));
  console.log(`\nEncrypts at none and at all of it, in turns: ${rounds} rounds of 3 s`);
  row('', 'a second', 'at all', 'checkpoints', 'at all');
  row('encrypts', short(none.perSecond / rounds), short(many.perSecond / rounds), ...checkpoints);
  goal('encrypts a second with all of it, of those with none', many.perSecond / none.perSecond, 0.95, 'at least');
  goal('encrypts for the same CPU time with all of it, of those with none', cost(none) / cost(many), 0.95, 'at least');
  for (const each of Object.values(served)) await each.stop();
}

async function checkpointsOf(served: Served): Promise<number> {
  const done = (await served.ask('/metrics')).matchAll(/^kms_checkpoints_total\{.*result="done".*\} (\d+)$/gm);
  return [...done].reduce((sum, [, count]) => sum + Number(count), 0);
}
