// An upgrade that is cut off at every point that it reaches, and ended by the next run: one of two versions is there,
// whole, with the data that belong to it, and nothing that was acknowledged is lost. The points are found by running it
// once, so that a new step is swept too.
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { openAppliance } from '../../src/appliance/appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { readJournal, type Step, steps } from '../../src/appliance/upgrade/journal.ts';
import { alone } from '../../src/appliance/upgrade/upgrade.ts';
import type { RunInput, RunReport } from '../support/upgrade-run.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-upgrade-'));
after(() => rmSync(base, { recursive: true, force: true }));

let dirs = 0;
/** An old executable, data, and a server that runs. */
function place(): string {
  const dir = join(base, `place-${++dirs}`);
  const data = join(dir, 'data');
  for (const path of [dir, data, join(data, 'system'), join(data, 'tenants'), join(data, 'tenants', 'one')]) {
    mkdirSync(path, { mode: 0o700 });
  }
  writeFileSync(join(dir, 'kms'), 'the old executable', { mode: 0o755 });
  writeFileSync(join(dir, 'model.json'), JSON.stringify({ running: 'old', held: false, acknowledged: 0 }));
  writeFileSync(join(data, 'kms.seal'), 'seal', { mode: 0o600 });
  writeFileSync(join(data, 'kms.witness'), 'witness', { mode: 0o600 });
  writeFileSync(join(data, 'system', 'log'), '', { mode: 0o600 });
  writeFileSync(join(data, 'tenants', 'one', 'snapshot'), 'keys', { mode: 0o600 });
  return dir;
}

async function run(input: RunInput): Promise<RunReport> {
  const worker = new Worker(new URL('../support/upgrade-run.ts', import.meta.url), { workerData: input });
  try {
    return await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', (code) => reject(new Error(`the run ended with ${code}`)));
    });
  } finally {
    await worker.terminate();
  }
}

/** One version is there with its data, it serves, and nothing else is left. */
function assertWorks(dir: string, version: 'old' | 'new', what: string): void {
  const data = join(dir, 'data');
  assert.equal(readFileSync(join(dir, 'kms'), 'utf8'), `the ${version} executable`, what);
  const { running, held, acknowledged } = JSON.parse(readFileSync(join(dir, 'model.json'), 'utf8'));
  assert.deepEqual([running, held], [version, false], what);
  const log = readFileSync(join(data, 'system', 'log'), 'utf8')
    .split('\n')
    .slice(0, -1);
  const kept = log.filter((line) => line !== 'migrated');
  assert.deepEqual(
    kept,
    Array.from({ length: acknowledged }, (_, at) => `acknowledged ${at + 1}`),
    what,
  );
  assert.equal(log.includes('migrated'), version === 'new', what);
  assert.equal(readFileSync(join(data, 'kms.seal'), 'utf8'), 'seal', what);
  assert.equal(readFileSync(join(data, 'tenants', 'one', 'snapshot'), 'utf8'), 'keys', what);
  const names = readdirSync(data).filter((name) => !/\.kms-backup$|^kms\.lock$/.test(name));
  assert.deepEqual(names.sort(), ['kms.seal', 'kms.witness', 'system', 'tenants'], what);
  const beside = readdirSync(dir).filter((name) => name !== 'kms.previous');
  assert.deepEqual(beside.sort(), ['data', 'kms', 'model.json'], what);
}

const behaviours = ['well', 'ends', 'lies', 'spoils'] as const;
const seen = new Set<string>();

for (const behaves of behaviours) {
  const version = behaves === 'well' ? 'new' : 'old';

  test(`a new version that ${behaves}`, async () => {
    const dir = place();
    const { outcome, error, points } = await run({ dir, behaves, resumes: false, stopsAt: 0 });
    assert.equal(error, undefined);
    assert.ok(typeof outcome === 'object');
    assert.equal(outcome.outcome, behaves === 'well' ? 'upgraded' : 'returned');
    assertWorks(dir, version, behaves);
    for (const point of points) seen.add(point);
  });

  test(`a new version that ${behaves}, cut off at every point`, async () => {
    const whole = await run({ dir: place(), behaves, resumes: false, stopsAt: 0 });
    assert.ok(whole.points.length > 20);
    for (let stopsAt = 1; stopsAt <= whole.points.length; stopsAt++) {
      const dir = place();
      const cut = await run({ dir, behaves, resumes: false, stopsAt });
      const point = cut.points.at(-1) ?? '';
      const passed = cut.points.includes('passed: begin');
      const { outcome, error } = await run({ dir, behaves, resumes: true, stopsAt: 0 });
      const what = `${behaves}, cut off at ${stopsAt}, ${point}`;
      assert.equal(error, undefined, what);
      const expected = stopsAt === 1 ? 'nothing to do' : passed ? 'upgraded' : 'returned';
      assert.equal(typeof outcome === 'object' ? outcome.outcome : outcome, expected, what);
      assertWorks(dir, passed ? 'new' : 'old', what);
      assert.equal((await run({ dir, behaves, resumes: true, stopsAt: 0 })).outcome, 'nothing to do', what);
    }
  });
}

test('the way back that is cut off at every point, twice in the same place', async () => {
  const behaves = 'spoils';
  const began = await run({ dir: place(), behaves, resumes: false, stopsAt: 0 });
  const stopsAt = began.points.indexOf('trying: begin') + 2;
  const at = async (): Promise<string> => {
    const dir = place();
    await run({ dir, behaves, resumes: false, stopsAt });
    return dir;
  };
  const back = await run({ dir: await at(), behaves, resumes: true, stopsAt: 0 });
  for (let second = 1; second <= back.points.length; second++) {
    const dir = await at();
    for (const _ of [1, 2]) await run({ dir, behaves, resumes: true, stopsAt: second });
    const { error } = await run({ dir, behaves, resumes: true, stopsAt: 0 });
    assert.equal(error, undefined, back.points[second - 1] ?? '');
    assertWorks(dir, 'old', `cut off twice at ${back.points[second - 1]}`);
  }
});

test('every step was begun by one of these runs', () => {
  const begun = [...seen].flatMap((point) => (point.endsWith(': begin') ? [point.slice(0, -': begin'.length)] : []));
  assert.deepEqual(begun.sort(), Object.keys(steps).sort());
});

test('the page on upgrading has every step, in its order, with what it does', () => {
  const page = readFileSync(new URL('../../docs/upgrading.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([\w-]+)` \| ([^|]+) \| (yes|no) \|/gm)].map(([, ...cells]) => cells);
  assert.deepEqual(
    rows.map(([step, does, holds]) => [step, does, holds]),
    Object.entries(steps).map(([step, { does, holds }]) => [step, does, holds ? 'no' : 'yes']),
  );
});

test('where there is no room, or an executable cannot be written, nothing is changed', async () => {
  const dir = place();
  const { error } = await run({ dir, behaves: 'well', resumes: false, stopsAt: 0 });
  assert.equal(error, undefined);
  const again = await run({ dir, behaves: 'well', resumes: false, stopsAt: 0 });
  assert.ok(typeof again.outcome === 'object' && again.outcome.outcome === 'unchanged');
  if (process.getuid?.() === 0) return;
  const other = place();
  chmodSync(other, 0o500);
  const refused = await run({ dir: other, behaves: 'well', resumes: false, stopsAt: 0 });
  chmodSync(other, 0o700);
  assert.match(refused.error ?? '', /kms\.new: permission denied/);
  assertWorks(other, 'old', 'a directory that cannot be written');
});

test('of two upgrades of one directory one is refused', async () => {
  const dir = place();
  await alone(dir, async () => {
    await assert.rejects(
      alone(dir, async () => {}),
      { code: 'in-use', message: /another `kms upgrade` is running/ },
    );
    await alone(place(), async () => {});
  });
  await alone(dir, async () => {});
});

test('while an upgrade holds clients off nobody opens the directory, and a journal that was damaged is said', async () => {
  const data = join(base, 'held');
  await initAppliance({ data, env: () => undefined });
  const path = join(data, 'kms.upgrade');
  const dir = place();
  await run({ dir, behaves: 'well', resumes: false, stopsAt: 1 });
  for (const step of Object.keys(steps) as Step[]) {
    const journal = { format: 1, step, token: 't', executable: '/kms', from: {}, to: {}, service: {}, probes: [] };
    writeFileSync(path, JSON.stringify(journal));
    if (steps[step].holds) {
      await assert.rejects(openAppliance({ data }), { code: 'unavailable', message: /an upgrade is under way/ });
    } else await (await openAppliance({ data })).close();
  }
  for (const text of ['', '{', '[]', '{"format":2}', JSON.stringify({ format: 1, step: 'toString' })]) {
    writeFileSync(path, text);
    await assert.rejects(readJournal(data), { code: 'corrupt', message: /expected the journal of an upgrade/ });
    await assert.rejects(openAppliance({ data }), { code: 'corrupt' });
  }
  assert.ok(existsSync(path));
});
