// Several nodes on a simulated engine, with faults drawn from seeds and at every step: their answers are those of a
// single appliance. KMS_CRASH_RUNS sets the number of lives, KMS_CRASH_FROM the first, KMS_CRASH_SEED runs one alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effort } from '../support/effort.ts';
import { falsified, judge } from '../support/shared-judge.ts';
import { type History, type SharedFaults, type SharedReport, sharedRun } from '../support/shared-run.ts';
import type { SimFault } from '../support/sim-engine.ts';

const file = 'test/store/shared-lives.test.ts';

async function run(seed: number, faults: SharedFaults): Promise<History> {
  try {
    return await sharedRun(seed, faults);
  } catch (error) {
    const message = error instanceof Error ? error.message : error;
    throw new Error(`KMS_CRASH_SEED=${seed} node --test ${file} runs it again: ${message}`, { cause: error });
  }
}

for (const loses of [false, true]) {
  const title = loses
    ? 'a failover that loses the last commits loses nothing else'
    : 'nothing that was answered is lost';
  test(`lives of several nodes: ${title}`, async (context) => {
    const only = process.env.KMS_CRASH_SEED;
    const lives = only === undefined ? Number(process.env.KMS_CRASH_RUNS ?? effort(30, 100)) : 1;
    const from = Number(only ?? process.env.KMS_CRASH_FROM ?? 1);
    const total: Partial<SharedReport> = {};
    for (let seed = from; seed < from + lives; seed++) {
      const { report } = await run(seed, { loses });
      for (const [key, count] of Object.entries(report) as [keyof SharedReport, number][]) {
        total[key] = (total[key] ?? 0) + count;
      }
    }
    context.diagnostic(JSON.stringify(total));
    if (lives < 100) return;
    const { answered = 0, faults = 0, deaths = 0, stalls = 0, failovers = 0 } = total;
    const { checkpoints = 0, copies = 0, rekeyings = 0, lost = 0 } = total;
    assert.ok(answered > lives * 50 && faults > lives * 5, 'too little happened to prove anything');
    assert.ok(Math.min(deaths, stalls, failovers, checkpoints) > lives / 2, 'too little happened to prove anything');
    assert.ok(copies > lives / 4 && (loses || rekeyings > lives / 4), 'too little happened to prove anything');
    assert.equal(lost > 0, loses);
    // After each of them the nodes have to find out what was committed.
    assert.ok(faults + deaths + stalls + failovers > lives * 10, 'too little happened to prove anything');
  });
}

test('a fault at each single message of a life, of each kind: nothing that was answered is lost', async (context) => {
  const kinds: readonly SimFault[] = ['request', 'answer', 'later', 'retry', 'full'];
  let points = 0;
  for (let at = 1; at <= 150; at += effort(3, 1)) {
    const fault = kinds[at % kinds.length] ?? 'request';
    // A life that ended before that message has none.
    points += (await run(at, { only: { at, fault } })).report.faults;
  }
  context.diagnostic(`${points} messages that met with a fault`);
  assert.ok(points >= effort(30, 100), 'too little happened to prove anything');
});

test('the judge finds a history wrong that is falsified in one place', async () => {
  const { ops, log } = await run(4, {});
  judge(ops, log);
  for (const [what, falseOps, falseLog] of falsified(ops, log)) {
    assert.throws(() => judge(falseOps, falseLog), assert.AssertionError, what);
  }
});
