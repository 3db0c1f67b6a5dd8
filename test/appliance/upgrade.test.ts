// An upgrade that is cut off at every point, and finished by the next run: one of the two versions is there, whole,
// with its own data, and nothing acknowledged is lost. The points are found by running it once, so that a new step is
// swept too.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { KmsError } from '../../src/errors.ts';
import { needRoomForCopy, type Reached } from '../../src/upgrade/files.ts';
import { readJournal, type Step, steps } from '../../src/upgrade/journal.ts';
import { ownFormats, ownPlatform } from '../../src/upgrade/release.ts';
import { alone, resume, type UpgradePorts, upgrade } from '../../src/upgrade/upgrade.ts';
import { effort } from '../support/effort.ts';
import { type RunInput, type RunReport, upgradeRun } from '../support/upgrade-run.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-upgrade-'));
after(() => rmSync(base, { recursive: true, force: true }));

let dirs = 0;
/** An old executable, data, and a running server. */
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
  if (input.stopsAt === 0) return upgradeRun(input);
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

/** Checks that one version is there with its data, that it serves, and that nothing else is left. */
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
    for (let stopsAt = 1; stopsAt <= whole.points.length; stopsAt += effort(4, 1)) {
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
  for (let second = 1; second <= back.points.length; second += effort(4, 1)) {
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

test('a lock that an upgrade left behind, or that is taken away, keeps nobody out and lets only one in', async () => {
  const dir = place();
  const lock = join(dir, 'kms.upgrade.lock');
  writeFileSync(lock, '', { mode: 0o600 });
  await alone(dir, async () => {
    assert.ok(existsSync(lock));
    await assert.rejects(
      alone(dir, async () => {}),
      { code: 'in-use' },
    );
  });
  assert.ok(!existsSync(lock));
  // A name that any local user could take blocks no upgrade.
  const name = `\0kms-upgrade-${createHash('sha256').update(dir).digest('hex').slice(0, 32)}`;
  const squatter = createServer().listen(name);
  await once(squatter, 'listening');
  await alone(dir, async () => {});
  squatter.close();
});

test('root upgrades the service of another user: what is there stays that user’s, whose word root does not take', async () => {
  const own = process.getuid?.() ?? 0;
  const other = own === 0 ? 65_532 : own;
  const start = async (
    stopsAt?: string,
  ): Promise<{ dir: string; data: string; ports: UpgradePorts; used: unknown[] }> => {
    const dir = place();
    const data = join(dir, 'data');
    // Lets that user enter the directories.
    for (const above of [base, dir]) chmodSync(above, 0o711);
    const used: unknown[] = [];
    const asked = async (service: unknown): Promise<void> => {
      assert.equal(process.geteuid?.(), own);
      used.push(service);
    };
    if (other !== own) {
      for (const name of ['', ...(readdirSync(data, { recursive: true }) as string[])])
        chownSync(join(data, name), other, other);
    }
    const ports: UpgradePorts = {
      backUp: async () => {},
      probe: async () => [],
      stop: asked,
      start: ({ service }) => asked(service),
      check: async () => {},
      release: asked,
      say: async () => {},
      now: Date.now,
      reached: async (point) => {
        for (const name of readdirSync(data, { recursive: true }) as string[]) {
          assert.equal(lstatSync(join(data, name)).uid, other, `${point}: ${name}`);
        }
        if (point === stopsAt) await new Promise(() => {});
      },
    };
    return { dir, data, ports, used };
  };
  const input = { version: '1.0.0', allowDowngrade: false } as const;
  const service = { kind: 'commands', stop: 'stop', start: 'start' } as const;
  const manifest = { name: 'kms', version: '9.9.9', platform: ownPlatform, formats: ownFormats, files: [] } as const;
  const release = { executable: Buffer.from('the new executable'), manifest };

  const whole = await start();
  const executable = join(whole.dir, 'kms');
  const ended = await upgrade({ ...input, data: whole.data, executable, release, service }, whole.ports);
  assert.equal(ended.outcome, 'upgraded');
  assert.deepEqual(readdirSync(whole.dir).sort(), ['data', 'kms', 'kms.previous', 'model.json']);
  assert.deepEqual(whole.used, [service, service, service]);

  // Cut off, then tampered with by the service: other commands, other executables, or a made-up journal.
  const cut = await start('trying: begin');
  const its = join(cut.dir, 'kms');
  const reached = new Promise<void>((resolve) => {
    const reached: Reached = async (point) => {
      if (point === 'trying: begin') resolve();
      await cut.ports.reached?.(point);
    };
    const ports = { ...cut.ports, reached };
    void upgrade({ ...input, data: cut.data, executable: its, release, service }, ports);
  });
  await reached;
  const noted = await readJournal(cut.data);
  assert.ok(noted);
  const ports = { ...cut.ports, reached: () => {} };
  if (other !== own) {
    assert.equal(lstatSync(`${its}.upgrade-orders`).mode & 0o777, 0o600);
    for (const lie of [{ token: 'another' }, { executable: join(cut.data, 'kms') }]) {
      writeFileSync(join(cut.data, 'kms.upgrade-orders'), JSON.stringify({ ...noted, ...lie }));
      chownSync(join(cut.data, 'kms.upgrade-orders'), other, other);
      cut.used.length = 0;
      await assert.rejects(resume({ ...noted, ...lie }, cut.data, ports), {
        code: 'refused',
        message: /kms\.upgrade: not from an upgrade that this user began, and .* belongs to another user/,
      });
      assert.deepEqual(cut.used, []);
      rmSync(join(cut.data, 'kms.upgrade-orders'));
    }
  }
  const evil = { kind: 'commands', stop: 'evil', start: 'evil' } as const;
  const back = await resume(other === own ? noted : { ...noted, service: evil }, cut.data, ports);
  assert.equal(back.outcome, 'returned');
  assert.deepEqual(cut.used.slice(-3), [service, service, service]);
  assert.equal(readFileSync(its, 'utf8'), 'the old executable');
  assert.deepEqual(readdirSync(cut.dir).sort(), ['data', 'kms', 'kms.previous', 'model.json']);
});

test('a disk that is full at the last note: clients were let in, or it goes back, and a server of its own ends', async () => {
  const input = { version: '1.0.0', allowDowngrade: false, service: { kind: 'none' } } as const;
  const manifest = { name: 'kms', version: '9.9.9', platform: ownPlatform, formats: ownFormats, files: [] } as const;
  const release = { executable: Buffer.from('the new executable'), manifest };
  const full = (): never => {
    throw new KmsError('unavailable', 'the disk is full', { hint: 'free some space' });
  };
  for (const [fails, outcome] of [
    [['passed: note'], 'returned'],
    [['passed: begin'], 'upgraded'],
    [['passed: note', 'ending-trial: note'], undefined],
    [['trying: begin', 'clearing: note'], undefined],
  ] as const) {
    const dir = place();
    const data = join(dir, 'data');
    let runs = true;
    const serves = async (does: boolean): Promise<void> => {
      runs = does;
    };
    const ports: UpgradePorts = {
      backUp: async () => {},
      probe: async () => [],
      stop: () => serves(false),
      start: () => serves(true),
      check: async () => {},
      release: () => serves(false),
      say: async () => {},
      now: Date.now,
      reached: (point) => ((fails as readonly string[]).includes(point) ? full() : undefined),
    };
    const ending = upgrade({ ...input, data, executable: join(dir, 'kms'), release }, ports);
    if (outcome) assert.equal((await ending).outcome, outcome);
    else {
      await assert.rejects(ending, { hint: /^free some space; no client is served until `kms upgrade --resume`/ });
      const journal = await readJournal(data);
      assert.ok(journal);
      assert.equal((await resume(journal, data, { ...ports, reached: () => {} })).outcome, 'returned');
    }
    assert.equal(runs, false, 'nothing of its own is left running');
    const expected = outcome === 'upgraded' ? 'the new executable' : 'the old executable';
    assert.equal(readFileSync(join(dir, 'kms'), 'utf8'), expected);
    assert.ok(!existsSync(join(data, 'kms.upgrade')));
  }
});

test('root refuses to upgrade what the owner of the data could not copy, before anything is changed', async () => {
  const dir = place();
  const data = join(dir, 'data');
  if (process.getuid?.() !== 0) return;
  for (const name of ['', 'kms.seal', 'system', 'tenants']) chownSync(join(data, name), 65_532, 65_532);
  await assert.rejects(needRoomForCopy(data), {
    code: 'refused',
    message: /belongs to user 0, and the data directory to user 65532/,
    hint: /^run: chown 65532 /,
  });
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
