// The number of crash points that each suite promises to reach with KMS_WHOLE=1; in the gate at least a tenth of them.
// A crash point is one power failure on the simulated disk, or the death of a node, after which the recovery was
// checked. Each suite checks its own number, since it runs in a process of its own, and a test checks their sum.
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { effort } from './effort.ts';

export const promised = {
  'store in files': 4000,
  'store in rows': 4000,
  'failing disk in files': 4000,
  'failing disk in rows': 4000,
  checkpoint: 900,
  retention: 460,
  rekey: 220,
  master: 280,
  backup: 220,
  restore: 420,
  ship: 190,
  'ship and drop': 180,
  'ship lives': 140,
  migration: 250,
  witness: 370,
  standby: 240,
} as const;

/** Variables that change the number of runs. */
const chosen = ['KMS_CRASH_RUNS', 'KMS_CRASH_SEED', 'KMS_CRASH_POINT', 'KMS_SWEEP_SEEDS', 'KMS_SHIP_RUNS'];

/** Reports the number reached, and checks it against the suite's promise. */
export function reached(context: TestContext, suite: keyof typeof promised, points: number): void {
  context.diagnostic(`${points} crash points (${suite})`);
  if (chosen.some((name) => process.env[name] !== undefined)) return;
  const least = promised[suite] * effort(0.1, 1);
  assert.ok(points >= least, `${points} crash points, ${least} were promised`);
}
