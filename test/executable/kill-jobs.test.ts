// kill -9 of a serving executable during its longer jobs, under load: everything acknowledged is there after the next
// start, and the job is done, not done, or resumed. The times come from a seed, which a failure prints; KMS_SEED
// replays it, KMS_KILL_ROUNDS sets the number of kills for each job.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { effort } from '../support/effort.ts';
import { type Prng, prng } from '../support/prng.ts';
import { type Ended, kms, type RunningServer, serve, workDirectory } from './kms.ts';

const rounds = Number(process.env.KMS_KILL_ROUNDS ?? effort(3, 8));
const seed = Number(process.env.KMS_SEED ?? Math.floor(Math.random() * 2 ** 31));

interface Answered {
  readonly name: string;
  readonly at: number;
}

/** An appliance that is killed and started again, with the requests it has acknowledged. */
class Killed {
  readonly cwd = workDirectory();
  readonly random: Prng = prng(seed);
  readonly answered: Answered[] = [];
  readonly #args: readonly string[];
  #server: RunningServer | undefined;
  #apiKey = '';
  #loaders: Promise<void>[] = [];
  #stopped = false;
  #failure: unknown;
  #count = 0;

  constructor(args: readonly string[] = []) {
    this.#args = args;
  }

  async start(): Promise<void> {
    this.#server = await serve(this.cwd, this.#args);
    this.#apiKey ||= this.#server.apiKey ?? '';
  }

  async call(method: string, path: string, body?: object): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#apiKey}`, 'content-type': 'application/json' };
    const init = body ? { method, headers, body: JSON.stringify(body) } : { method, headers };
    return fetch(`${this.#server?.url}${path}`, init);
  }

  /** Several clients that make rings until the server is killed. `more` runs before each request. */
  load(more: (worker: number) => Promise<unknown> = async () => {}): void {
    this.#stopped = false;
    this.#loaders = Array.from({ length: 3 }, async (_, worker) => {
      while (!this.#stopped) {
        const name = `ring-${this.#count++}`;
        try {
          await more(worker);
          const answer = await this.call('POST', '/ks/keyrings', { name });
          assert.equal(answer.status, 200);
          await answer.arrayBuffer();
          this.answered.push({ name, at: Date.now() });
        } catch (error) {
          if (!this.#stopped) this.#failure ??= error;
          return;
        }
      }
    });
  }

  async kill(): Promise<void> {
    this.#stopped = true;
    await this.#server?.end('SIGKILL');
    await Promise.all(this.#loaders);
    if (this.#failure) throw this.#failure;
  }

  async stop(): Promise<void> {
    assert.equal(await this.#server?.end('SIGTERM'), 0);
  }

  async rings(): Promise<Set<string>> {
    const answer = await this.call('GET', '/ks/keyrings?limit=10000');
    assert.equal(answer.status, 200);
    return new Set((await answer.json()).data.map((ring: { name: string }) => ring.name));
  }

  async nothingLost(what: string): Promise<void> {
    const there = await this.rings();
    for (const { name } of this.answered) assert.ok(there.has(name), `${what}: ${name} was answered and is gone`);
  }

  run(...args: readonly string[]): Promise<Ended> {
    return kms(this.cwd, args);
  }

  async ok(...args: readonly string[]): Promise<Ended> {
    const ended = await this.run(...args);
    assert.equal(ended.code, 0, `kms ${args.join(' ')}: ${ended.stderr}`);
    return ended;
  }
}

interface Job {
  /** Runs before the first kill. */
  prepare?(appliance: Killed): Promise<void>;
  /** Begins the job, during which the server is killed. */
  begin(appliance: Killed, round: number): Promise<Ended>;
  /** Runs after the next start. */
  check(appliance: Killed, begun: Ended, round: number): Promise<void>;
}

async function killDuring(what: string, { prepare, begin, check }: Job): Promise<Killed> {
  const appliance = new Killed();
  await appliance.start();
  await prepare?.(appliance);
  for (let round = 0; round < rounds; round++) {
    appliance.load();
    const begun = begin(appliance, round);
    await delay(50 + appliance.random.int(300));
    await appliance.kill();
    const ended = await begun;
    await appliance.start();
    await appliance.nothingLost(`${what}, round ${round}`);
    await check(appliance, ended, round);
  }
  return appliance;
}

async function finish(appliance: Killed): Promise<void> {
  await appliance.stop();
  await appliance.ok('activity', 'verify');
}

const replayed = `(${rounds} kills, KMS_SEED=${seed})`;

test(`kill -9 during kms master rotate ${replayed}`, async () => {
  const masters = new Set<string>();
  const master = async (appliance: Killed): Promise<string> =>
    JSON.parse((await appliance.ok('master', 'list', '--json')).stdout).fingerprint;
  const appliance = await killDuring('master rotate', {
    begin: (appliance) => appliance.run('master', 'rotate', '--json'),
    async check(appliance, begun) {
      const now = await master(appliance);
      if (begun.code === 0) assert.equal(JSON.parse(begun.stdout).fingerprint, now);
      masters.add(now);
    },
  });
  await appliance.ok('master', 'rotate');
  assert.ok(!masters.has(await master(appliance)));
  await finish(appliance);
});

test(`kill -9 during kms tenant rekey ${replayed}`, async () => {
  let hash = '';
  const appliance = await killDuring('tenant rekey', {
    async prepare(appliance) {
      const ringname = 'older';
      assert.equal((await appliance.call('POST', '/ks/keyrings', { name: ringname })).status, 200);
      hash = (await (await appliance.call('POST', '/ks/encrypt', { ringname })).json()).hash;
    },
    begin: (appliance) => appliance.run('tenant', 'rekey', 'default', '--json'),
    async check(appliance) {
      assert.equal(
        (await appliance.call('GET', `/ks/hash/${hash}`)).status,
        200,
        'a hash from before the first new key',
      );
    },
  });
  const { stdout } = await appliance.ok('tenant', 'rekey', 'default', '--json');
  assert.equal(JSON.parse(stdout).complete, true);
  await finish(appliance);
});

test(`kill -9 during kms backup create ${replayed}`, async () => {
  const asked: number[] = [];
  let last: number | undefined;
  const appliance = await killDuring('backup create', {
    begin(appliance, round) {
      asked[round] = appliance.answered.length;
      return appliance.run('backup', 'create', `backup-${round}`);
    },
    async check(appliance, begun, round) {
      const name = `backup-${round}`;
      const there = existsSync(join(appliance.cwd, name));
      assert.ok(there || begun.code !== 0, 'it was said to be made');
      if (!there) return;
      await appliance.ok('backup', 'verify', name);
      last = round;
    },
  });
  await finish(appliance);
  if (last === undefined) return;
  renameSync(join(appliance.cwd, 'kms-data'), join(appliance.cwd, 'gone'));
  await appliance.ok('restore', `backup-${last}`);
  await appliance.start();
  const there = await appliance.rings();
  for (const { name } of appliance.answered.slice(0, asked[last]))
    assert.ok(there.has(name), `${name} is not in the backup`);
  await appliance.stop();
});

test(`kill -9 during checkpoints ${replayed}`, async (context) => {
  const appliance = new Killed();
  await appliance.start();
  // The same rings change repeatedly, so that the log grows and the data do not.
  const names = ['big-0', 'big-1', 'big-2'];
  for (const name of names) assert.equal((await appliance.call('POST', '/ks/keyrings', { name })).status, 200);
  const [tenant = ''] = readdirSync(join(appliance.cwd, 'kms-data', 'tenants'));
  const files = (): string[] => readdirSync(join(appliance.cwd, 'kms-data', 'tenants', tenant));
  const generation = (): number =>
    Math.max(...files().map((name) => Number(/^snapshot-([0-9]{10})\.kms$/.exec(name)?.[1] ?? 0)));
  let checkpoints = 0;
  let within = 0;
  for (let round = 0; round < rounds; round++) {
    const before = generation();
    appliance.load(async (worker) => {
      const props = { filler: appliance.random.int(10).toString().repeat(900_000) };
      const answer = await appliance.call('PUT', '/ks/config', { ringname: names[worker], config: { props } });
      assert.equal(answer.status, 200);
      await answer.arrayBuffer();
    });
    // A checkpoint begins at 8 MiB of log. Half of the kills wait for a file that a checkpoint is writing, and every
    // fourth for a finished one; the others come at any time.
    await delay(300 + appliance.random.int(900));
    const isWithin = (): boolean => files().some((name) => name.endsWith('.tmp'));
    const isTime = round % 2 === 1 ? isWithin : () => round % 4 === 2 || generation() > before;
    for (const end = Date.now() + 60_000; !isTime(); await delay(1)) {
      assert.ok(Date.now() < end, 'it never came to a checkpoint');
    }
    await appliance.kill();
    if (isWithin()) within++;
    await appliance.start();
    await appliance.nothingLost(`checkpoint, round ${round}`);
    if (generation() > before) checkpoints++;
  }
  context.diagnostic(`${checkpoints} rounds with a checkpoint, ${within} kills while a file of one was written`);
  assert.ok(checkpoints > 0, 'there was no checkpoint');
  await finish(appliance);
});

test(`kill -9 while shipping, and the data directory is gone ${replayed}`, async (context) => {
  const appliance = new Killed(['--ship-to', 'shipped', '--ship-every', '1s']);
  await appliance.start();
  let worst = 0;
  for (let round = 0; round < rounds; round++) {
    appliance.load();
    /** The time up to which everything has arrived, as the appliance reports it. */
    let arrived = 0;
    const until = Date.now() + 400 + appliance.random.int(1500);
    while (Date.now() < until || arrived === 0) {
      const { stdout } = await appliance.run('status', '--json');
      arrived = JSON.parse(stdout).copies?.shipping?.arrivedAt ?? arrived;
    }
    await appliance.kill();
    const killed = Date.now();
    renameSync(join(appliance.cwd, 'kms-data'), join(appliance.cwd, `gone-${round}`));
    await appliance.ok('restore', 'shipped');
    await appliance.start();
    const there = await appliance.rings();
    const lost = appliance.answered.filter(({ name }) => !there.has(name));
    const early = lost.find(({ at }) => at < arrived);
    assert.equal(early, undefined, `round ${round}: ${early?.name} had arrived and was not restored`);
    worst = Math.max(worst, ...lost.map(({ at }) => killed - at));
    const gone = new Set(lost);
    appliance.answered.splice(0, Number.POSITIVE_INFINITY, ...appliance.answered.filter((each) => !gone.has(each)));
  }
  context.diagnostic(`the oldest answer that was lost was ${worst} ms old, with --ship-every 1s`);
  await finish(appliance);
});
