// Runs many seeds of `crashRun` as one test. KMS_CRASH_RUNS sets the number, KMS_CRASH_FROM the first, KMS_CRASH_SEED
// runs one alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reached } from './crash-points.ts';
import { type CrashRunReport, crashRun } from './crash-run.ts';
import { effort } from './effort.ts';

/** Runs it on each journal. */
export function crashSuite(file: string, title: string, failures: boolean): void {
  for (const journal of ['files', 'rows'] as const) crashTest(file, title, { failures, journal });
}

function crashTest(file: string, title: string, faults: Parameters<typeof crashRun>[1]): void {
  const { failures, journal } = faults;
  test(`${title}, in ${journal}: what was acknowledged is there, and nothing is half there`, async (context) => {
    const only = process.env.KMS_CRASH_SEED;
    const runs = Number(process.env.KMS_CRASH_RUNS ?? effort(105, 1000));
    const from = Number(only ?? process.env.KMS_CRASH_FROM ?? 1);
    const total: CrashRunReport = { crashes: 0, transactions: 0, checkpoints: 0, tornTails: 0, writeFailures: 0 };
    for (let seed = from; seed < from + (only === undefined ? runs : 1); seed++) {
      try {
        const report = await crashRun(seed, faults);
        for (const key of Object.keys(total) as (keyof CrashRunReport)[]) total[key] += report[key];
      } catch (error) {
        const message = error instanceof Error ? error.message : error;
        throw new Error(`KMS_CRASH_SEED=${seed} node --test ${file} runs it again: ${message}`, { cause: error });
      }
    }
    context.diagnostic(JSON.stringify(total));
    reached(context, `${failures ? 'failing disk' : 'store'} in ${journal}` as const, total.crashes);
    if (only !== undefined || runs < 100) return;
    assert.ok(total.crashes > runs && total.transactions > runs * 5, 'too little happened to prove anything');
    assert.ok(journal === 'rows' || total.tornTails > runs / 50, 'too little happened to prove anything');
    assert.ok(total.checkpoints > runs / 10, 'too little happened to prove anything');
    assert.equal(total.writeFailures > runs / 10, failures);
  });
}
