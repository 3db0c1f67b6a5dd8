// Retries: requests that the client sends again or not, the pauses between them, and when it gives up; with a clock of
// its own.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { endpoints } from '../../src/api/endpoints.ts';
import { type ClientEndpointId, clientPaths, type Path } from '../../src/api/paths.ts';
import { type Client, type ClientOptions, createClient } from '../../src/client/client.ts';
import { isUnchanging, systemTiming } from '../../src/client/retry.ts';
import { KmsError } from '../../src/errors.ts';
import { sampleAnswerTo } from '../support/answers.ts';

type Step = number | readonly [status: number, body: string, headers?: Record<string, string>] | 'network' | 'cut';

const timeout = 29_999;

interface Scene {
  readonly client: Client;
  /** The requests sent. */
  readonly sent: string[];
  /** The pauses, in milliseconds. */
  readonly pauses: number[];
}

/** A server that answers step by step, then with 200; `random` determines the jitter of the pauses. */
function scene(steps: readonly Step[], options: Partial<ClientOptions> = {}, random = 0.5): Scene {
  const sent: string[] = [];
  const pauses: number[] = [];
  const client = createClient({
    baseUrl: 'https://kms.example',
    timeout,
    timing: {
      random: () => random,
      sleep: async (ms) => {
        if (ms === timeout) return new Promise(() => {});
        pauses.push(ms);
      },
    },
    async fetch(request) {
      const step = steps[sent.length] ?? 200;
      sent.push(`${request.method} ${new URL(request.url).pathname} ${await request.text()}`);
      if (step === 'network') throw new TypeError('fetch failed', { cause: new Error('connection reset') });
      if (step === 'cut') return new Response(failing());
      if (step === 200) return sampleAnswerTo(request);
      const [status, body, headers] = typeof step === 'number' ? [step, '{"message":"so"}', {}] : step;
      return new Response(body, { status, headers: headers ?? {} });
    },
    ...options,
  });
  return { client, sent, pauses };
}

function failing(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.error(new TypeError('terminated')) });
}

/** Calls that may be repeated. */
const reads: readonly (readonly [string, (client: Client) => Promise<unknown>])[] = [
  ['a GET', (client) => client.getKeyring({ ringname: 'r' })],
  ['decrypt', (client) => client.decrypt({ header: 'h' })],
  ['a search', (client) => client.searchAssets({})],
  ['encrypt without an asset', (client) => client.encrypt({ ringname: 'r' })],
  ['validate without an activity', (client) => client.validateApiKey({ key: 'k' })],
];
const changes: typeof reads = [
  ['a POST that makes something', (client) => client.createKeyring({ name: 'r' })],
  ['encrypt with an asset', (client) => client.encrypt({ ringname: 'r', asset: {} })],
  ['validate with an activity', (client) => client.validateApiKey({ key: 'k', activity: {} })],
  ['a PUT', (client) => client.putConfig({ ringname: 'r', config: {} })],
  ['a PATCH', (client) => client.updateAccount({ id: 'a' })],
  ['a DELETE', (client) => client.deleteKeyring({ name: 'r' })],
  ['the GET that ends a token', (client) => client.refreshSession()],
  ['login', (client) => client.login({ username: 'u', password: 'p' })],
];
const html = '<html>';

for (const [name, call] of reads) {
  for (const step of [500, 502, 503, 504, [503, html], [500, html], 'network', 'cut'] as const) {
    test(`${name} is sent again after ${step}`, async () => {
      const { client, sent } = scene([step, step]);
      await call(client);
      assert.equal(sent.length, 3);
      assert.equal(new Set(sent).size, 1);
    });
  }
}

for (const [name, call] of changes) {
  test(`${name} is sent again after the appliance's own 503`, async () => {
    const { client, sent } = scene([503, 503]);
    await call(client);
    assert.equal(sent.length, 3);
  });
  for (const step of [500, 502, 504, [503, html], [500, html], 'network', 'cut'] as const) {
    test(`${name} is sent once, whatever comes: ${step}`, async () => {
      const { client, sent, pauses } = scene([step]);
      await assert.rejects(call(client), { name: 'KmsError' });
      assert.deepEqual([sent.length, pauses], [1, []]);
    });
  }
}

for (const status of [301, 400, 401, 403, 404, 405, 413, 422, 429]) {
  test(`status ${status} is final`, async () => {
    const { client, sent } = scene([[status, '{"message":"no"}', { 'retry-after': '1' }]]);
    await assert.rejects(client.listKeyrings(), { name: 'KmsError' });
    assert.equal(sent.length, 1);
  });
}

test('what is not JSON is final', async () => {
  const { client, sent } = scene([[200, html]]);
  await assert.rejects(client.listKeyrings(), { code: 'unavailable' });
  assert.equal(sent.length, 1);
});

test('an error of the given fetch that is meant to be read is final', async () => {
  let sent = 0;
  const fetch = async (): Promise<Response> => {
    sent++;
    throw new KmsError('unavailable', 'its certificate has expired');
  };
  await assert.rejects(scene([], { fetch }).client.listKeyrings(), { message: 'its certificate has expired' });
  assert.equal(sent, 1);
});

test('the list of what changes nothing is that of the declarations', () => {
  for (const endpoint of endpoints) {
    if (!(endpoint.id in clientPaths)) continue;
    const id = endpoint.id as ClientEndpointId; // looked up on the line before
    const changes = 'changes' in endpoint ? endpoint.changes : endpoint.method !== 'GET';
    const route: Path = clientPaths[id];
    const expected = id === 'encrypt' ? true : !changes;
    assert.equal(isUnchanging(id, route, {}), expected, id);
  }
});

test('the pauses double up to their limit, and are a random part of that', async () => {
  const down = Array<Step>(9).fill(503);
  for (const random of [0, 0.5, 0.999]) {
    const { client, pauses, sent } = scene(down, { retries: 8 }, random);
    await assert.rejects(client.listKeyrings(), { code: 'unavailable', message: 'so' });
    assert.equal(sent.length, 9);
    assert.deepEqual(
      pauses,
      [250, 500, 1000, 2000, 4000, 8000, 8000, 8000].map((most) => most * random),
    );
  }
});

for (const [retries, times] of [
  [0, 1],
  [1, 2],
  [undefined, 3],
  [5, 6],
] as const) {
  test(`retries: ${retries} sends ${times} times at most`, async () => {
    const { client, sent } = scene(Array<Step>(20).fill('network'), retries === undefined ? {} : { retries });
    await assert.rejects(client.listKeyrings(), { code: 'unavailable', message: /connection reset/ });
    assert.equal(sent.length, times);
  });
}

for (const [header, pause] of [
  ['0', 125],
  ['3', 3000],
  ['30', 30_000],
  ['soon', 125],
] as const) {
  test(`Retry-After: ${header} makes a pause of ${pause} ms`, async () => {
    const { client, pauses } = scene([[503, '{"message":"busy"}', { 'retry-after': header }]]);
    await client.listKeyrings();
    assert.deepEqual(pauses, [pause]);
  });
}

test('who is asked to wait for longer than half a minute is told so instead', async () => {
  const { client, sent } = scene([[503, '{"message":"busy"}', { 'retry-after': '31' }]]);
  await assert.rejects(client.listKeyrings(), { code: 'unavailable', message: 'busy', retryAfter: 31 });
  assert.equal(sent.length, 1);
});

test('a request that takes too long fails and is not sent again', async () => {
  for (const fetch of [
    () => new Promise<Response>(() => {}),
    async () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) })),
  ]) {
    const seen: number[] = [];
    const sleep = async (ms: number): Promise<void> => void seen.push(ms);
    const { client } = scene([], { fetch, timeout: 1234, timing: { random: () => 0, sleep } });
    await assert.rejects(client.listKeyrings(), {
      code: 'unavailable',
      message: 'https://kms.example gave no answer within 1234 ms',
    });
    assert.deepEqual(seen, [1234]);
  }
});

test('the request itself is given up when its time is over, and the clock stops with the answer', async () => {
  const signals: AbortSignal[] = [];
  const clocks: AbortSignal[] = [];
  const sleep = (_: number, signal: AbortSignal): Promise<void> => {
    clocks.push(signal);
    return clocks.length === 1 ? new Promise(() => {}) : Promise.resolve();
  };
  const fetch = async (request: Request): Promise<Response> => {
    signals.push(request.signal);
    return signals.length === 1 ? sampleAnswerTo(request) : new Promise(() => {});
  };
  const { client } = scene([], { fetch, timing: { random: () => 0, sleep } });
  await client.listKeyrings();
  assert.deepEqual([clocks[0]?.aborted, signals[0]?.aborted], [true, false]);
  await assert.rejects(client.listKeyrings(), { code: 'unavailable' });
  assert.equal(signals[1]?.aborted, true);
});

test('with the real clock: a server that never answers', async () => {
  const client = createClient({ baseUrl: 'https://kms.example', timeout: 5, fetch: () => new Promise(() => {}) });
  await assert.rejects(client.listKeyrings(), { code: 'unavailable' });
});

test('without a limit there is no timer', async () => {
  const { client, pauses } = scene([], { timeout: Number.POSITIVE_INFINITY });
  await client.listKeyrings();
  assert.deepEqual(pauses, []);
});

test('a signal ends a call that waits for its answer, or for its next try, with its own reason', async () => {
  const reason = new Error('the window was closed');
  for (const where of ['call', 'client'] as const) {
    for (const waiting of ['answer', 'pause'] as const) {
      const ending = new AbortController();
      let tries = 0;
      const end = (): Promise<never> => {
        queueMicrotask(() => ending.abort(reason));
        return new Promise(() => {});
      };
      const { client } = scene([], {
        fetch: async () => {
          tries++;
          return waiting === 'answer' ? end() : Response.json({ message: 'down' }, { status: 503 });
        },
        timing: {
          random: () => 1,
          sleep: (ms, signal) => {
            if (ms !== timeout) void end();
            return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          },
        },
        ...(where === 'client' && { signal: ending.signal }),
      });
      const call = client.listKeyrings({}, where === 'call' ? { signal: ending.signal } : {});
      await assert.rejects(call, (error) => error === reason);
      assert.equal(tries, 1);
    }
  }
});

test('a signal that has come before sends nothing', async () => {
  for (const options of [{ signal: AbortSignal.abort() }, {}]) {
    const { client, sent } = scene([], options);
    const call = client.createKeyring({ name: 'r' }, options.signal ? {} : { signal: AbortSignal.abort() });
    await assert.rejects(call, { name: 'AbortError' });
    assert.deepEqual(sent, []);
  }
});

for (const options of [{ timeout: 0 }, { timeout: -1 }, { timeout: Number.NaN }, { retries: -1 }, { retries: 1.5 }]) {
  test(`refused: ${JSON.stringify(options)}`, () => {
    assert.throws(() => createClient({ baseUrl: 'https://kms.example', ...options }), { code: 'invalid' });
  });
}

test('calls that wait by one signal leave nothing at it, which Node would warn of', async () => {
  const { signal } = new AbortController();
  const waits = Array.from({ length: 50 }, () => systemTiming.sleep(5, signal));
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  await Promise.all(waits);
  const ending = new AbortController();
  const ended = Array.from({ length: 50 }, () => systemTiming.sleep(10_000, ending.signal));
  ending.abort(new Error('enough'));
  for (const one of ended) await assert.rejects(one, /enough/);
  await assert.rejects(systemTiming.sleep(10_000, ending.signal), /enough/);
});
