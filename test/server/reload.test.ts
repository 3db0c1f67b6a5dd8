// A server that goes on with another configuration: what streams, schedules and limits do meanwhile, sealed or open.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Initialised } from '../../src/appliance/init.ts';
import type { ServeConfig } from '../../src/server/config.ts';
import type { Serving } from '../../src/server/serve.ts';
import { serve } from '../../src/server/serve.ts';
import { streamingTo } from '../support/streamed-appliance.ts';
import { until } from '../support/until.ts';

interface Server {
  readonly dir: string;
  readonly serving: Serving;
  /** Whether it could go on with these settings. */
  take(more: Partial<ServeConfig>): Promise<boolean>;
  post(path: string, body?: object): Promise<Response>;
  [Symbol.asyncDispose](): Promise<void>;
}

async function server(more: Partial<ServeConfig> = {}): Promise<Server> {
  const dir = await mkdtemp(join(tmpdir(), 'kms-reload-'));
  const config = { data: join(dir, 'data'), listen: '127.0.0.1:0', logLevel: 'silent' };
  let made: Initialised | undefined;
  const serving = await serve({
    ...config,
    ...more,
    onInitialised: (first) => {
      made = first;
    },
  });
  return {
    dir,
    serving,
    take: (next) => serving.reload(async () => ({ config: { ...config, ...next }, live: [], restart: [] })),
    post: (path, body = {}) =>
      fetch(`${serving.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${made?.apiKey.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    async [Symbol.asyncDispose]() {
      await serving.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Sequence numbers in a directory that activity is streamed to. */
function streamedTo(dir: string): number[] {
  const tenant = join(dir, 'default');
  if (!existsSync(tenant)) return [];
  const lines = readdirSync(tenant)
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .flatMap((name) => readFileSync(join(tenant, name), 'utf8').trimEnd().split('\n'));
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line).seq);
}

test('targets of activity come and go, and each record arrives once at those that stay', async () => {
  await using at = await server();
  const [one, two] = [join(at.dir, 'one'), join(at.dir, 'two')];
  const rings = async (...names: string[]): Promise<void> => {
    for (const name of names) assert.equal((await at.post('/ks/keyrings', { name })).status, 200);
  };
  await rings('a');
  await at.take({ streaming: streamingTo([one], { from: 'start' }) });
  await rings('b', 'c');
  await at.take({ streaming: streamingTo([one, two]) });
  await rings('d');
  await until('the second has what came after it', () => streamedTo(two).length === 1);
  await at.take({ streaming: streamingTo([one], { from: 'start' }) });
  await rings('e');
  await until('the first has all', () => streamedTo(one).length >= 5);
  await at.take({});
  await rings('f');
  const { activityTo } = await at.serving.appliance.status();
  assert.deepEqual([streamedTo(one), streamedTo(two), activityTo], [[1, 2, 3, 4, 5], [4], []]);
});

test('another schedule makes the next backup; where there is none, none is made', async () => {
  const scheduled = (to: string) => ({ scheduled: { to, schedule: '0 3 1 1 *', keep: 1 } });
  await using at = await server();
  const { copies } = at.serving.appliance;
  assert.equal(await copies.backUpNow(), undefined);
  for (const name of ['one', 'two']) {
    const to = join(at.dir, name);
    await at.take({ copies: scheduled(to) });
    assert.ok((await copies.backUpNow())?.file?.startsWith(to));
  }
  await at.take({});
  assert.equal(await copies.backUpNow(), undefined);
});

test('a schedule that comes while a backup is under way waits until that is finished', async () => {
  await using at = await server({
    copies: { scheduled: { to: '/nowhere', schedule: '0 3 1 1 *', keep: 1 } },
  });
  const to = join(at.dir, 'one');
  await at.take({ copies: { scheduled: { to, schedule: '0 3 1 1 *', keep: 1 } } });
  const { copies } = at.serving.appliance;
  let isMade = false;
  const making = copies.backUpNow().then((made) => {
    isMade = true;
    return made;
  });
  const taken = at.take({}).then(() => assert.ok(isMade));
  assert.ok((await making)?.file?.startsWith(to));
  await taken;
});

test('what comes while it is sealed is gone by once it is open, shipping aside', async () => {
  await using at = await server();
  assert.equal((await at.post('/system/seal')).status, 200);
  const shipping = { to: join(at.dir, 'shipped'), every: 1000, window: 1000 };
  await at.take({ retention: { keep: 86_400_000 }, copies: { shipping }, bodyLimit: 5000 });
  const key = readFileSync(join(at.dir, 'data.master.key'), 'utf8');
  assert.equal((await at.post('/system/unseal', { key })).status, 200);
  const status = await at.serving.appliance.status();
  assert.deepEqual([status.activityRetention?.seconds, status.copies.shipping], [86_400, undefined]);
  assert.equal((await at.post('/ks/keyrings', { name: 'x', props: { x: 'x'.repeat(6000) } })).status, 413);
});

test('lifetimes are those of the configuration that came last; what cannot be read changes nothing', async () => {
  await using at = await server();
  assert.equal(await at.take({ bodyLimit: 5000 }), true);
  const unreadable = at.serving.reload(() => Promise.reject(new Error('no such file')));
  assert.equal(await unreadable, false);
  assert.equal(await at.take({ bodyLimit: 100_000, tangAllow: ['nonsense'] }), false);
  assert.equal((await at.post('/ks/keyrings', { name: 'x', props: { x: 'x'.repeat(6000) } })).status, 413);
  assert.equal(await at.take({ bodyLimit: 100_000 }), true);
  assert.notEqual((await at.post('/ks/keyrings', { name: 'x', props: { x: 'x'.repeat(6000) } })).status, 413);
});
