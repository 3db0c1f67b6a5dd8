// Activity to webhooks: signed as Standard Webhooks requires, bounded, acknowledged only by 2xx; a receiver that
// refuses, answers something else, hangs or is killed gets the same batch again under the same id.
import assert from 'node:assert/strict';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createPlainServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { parseTarget, parseWebhookSecrets } from '../../src/telemetry/streaming/target.ts';
import { WebhookReceiver } from '../../src/telemetry/streaming/webhook.ts';
import { freePort } from '../support/free-port.ts';
import { certificate, privateKey } from '../support/localhost-certificate.ts';
import { prng } from '../support/prng.ts';
import { type AnyRecord, checkReceived, streamedAppliance, streamingTo } from '../support/streamed-appliance.ts';
import { until } from '../support/until.ts';

const key = Buffer.alloc(32, 7);
const secret = `whsec_${key.toString('base64')}`;
const secrets = parseWebhookSecrets(secret);

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const linesOf = (body: Buffer): AnyRecord[] =>
  body
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

/** A receiver that answers 200, unless `answer` does something else. */
async function hook(
  answer: (received: Received, response: ServerResponse) => void = (_, response) => void response.end(),
  { tls = false, port = 0 } = {},
) {
  const all: Received[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const received = { headers: request.headers, body: Buffer.concat(pieces) };
    all.push(received);
    answer(received, response);
  };
  const handle = (request: IncomingMessage, response: ServerResponse) => void take(request, response).catch(() => {});
  const server: Server = tls ? createTlsServer({ cert: certificate, key: privateKey }, handle) : createServer(handle);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    all,
    port: typeof address === 'object' && address ? address.port : 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      if (server.listening) await once(server, 'close');
    },
  };
}

/** Verifies as the specification says, with none of the product's code. */
function isSigned({ headers, body }: Received, withKey = key): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': given } = headers;
  const expected = createHmac('sha256', withKey).update(`${id}.${timestamp}.`).update(body).digest();
  return String(given)
    .split(' ')
    .some((each) => {
      const bytes = Buffer.from(each.replace(/^v1,/, ''), 'base64');
      return each.startsWith('v1,') && bytes.length === expected.length && timingSafeEqual(bytes, expected);
    });
}

test('batches of JSON Lines, signed, with an id and a time; nothing twice through a restart', async () => {
  for (const tls of [false, true]) {
    await using receiver = await hook(undefined, { tls });
    await using at = await streamedAppliance();
    const url = `${tls ? 'https' : 'http'}://localhost:${receiver.port}/kms?token=t0ken`;
    const streaming = streamingTo([url], { ca: certificate, secrets, from: 'start' });
    await at.open(streaming);
    await at.act(300);
    await until('all have arrived', async () => (await at.status()).lagRecords === 0);
    assert.equal((await at.status()).to, `${tls ? 'https' : 'http'}://localhost:${receiver.port}/kms`);
    await at.close();
    await at.open(streaming);
    await at.act(3);
    const log = await at.log();
    await at.close();
    const records = receiver.all.flatMap(({ body }) => linesOf(body)).filter(({ seq }) => seq <= log.length);
    assert.deepEqual(
      records.map(({ tenant: _, tenantId: __, ...record }) => record),
      log,
    );
    const ids = receiver.all.map(({ headers }) => headers['webhook-id']);
    assert.equal(new Set(ids).size, ids.length);
    for (const each of receiver.all) {
      assert.ok(isSigned(each));
      assert.ok(!isSigned(each, Buffer.alloc(32, 8)));
      assert.ok(!isSigned({ ...each, body: Buffer.concat([each.body, Buffer.from(' ')]) }));
      assert.equal(each.headers['content-type'], 'application/jsonl');
      assert.match(String(each.headers['webhook-id']), /^tenant_[0-9a-z]{26}_\d+_\d+_[A-Za-z0-9_-]{43}$/);
      assert.ok(Math.abs(Number(each.headers['webhook-timestamp']) - Date.now() / 1000) < 60);
      assert.ok(linesOf(each.body).length <= 256);
    }
    assert.ok(!JSON.stringify([at.events]).includes('t0ken'));
  }
});

test('batches are bounded in bytes, too', async () => {
  await using receiver = await hook();
  await using at = await streamedAppliance();
  await at.open();
  const props = { filler: 'x'.repeat(60_000) };
  for (let n = 0; n < 10; n++) {
    const activity = { keyid: 'x', action: 'own.action', props };
    const answer = await at.local('POST', '/auth/validate', { key: at.apiKey, activity });
    assert.equal(answer.status, 200, await answer.text());
  }
  await at.close();
  await at.open(streamingTo([`http://127.0.0.1:${receiver.port}/`], { secrets, from: 'start' }));
  await until('all have arrived', async () => (await at.status()).lagRecords === 0);
  await at.close();
  const bodies = receiver.all.map(({ body }) => body);
  assert.ok(Math.max(...bodies.map(({ length }) => length)) < 128 * 1024 + 61_000);
  assert.ok(bodies.length >= 4);
  assert.equal(bodies.flatMap(linesOf).filter(({ action }) => action === 'own.action').length, 10);
});

test('whatever is not 2xx is tried again: the same batch under the same id, with the time of the try', async () => {
  const answers: ((response: ServerResponse) => void)[] = [
    ...[500, 404, 429, 301, 302, 304].map((status) => (response: ServerResponse) => {
      response.writeHead(status, { location: '/elsewhere' }).end();
    }),
    (response) => void response.destroy(),
    (response) => {
      response.writeHead(200, { 'content-length': '10' });
      response.write('x');
      setTimeout(() => response.destroy(), 5);
    },
  ];
  const count = answers.length;
  await using receiver = await hook((_, response) => {
    const next = answers.shift();
    if (next) next(response);
    else response.writeHead(204).end();
  });
  await using at = await streamedAppliance();
  await at.open();
  await at.act(5);
  await at.close();
  await at.open(streamingTo([`http://127.0.0.1:${receiver.port}/`], { secrets, from: 'start' }));
  await until('all have arrived', async () => (await at.status()).lagRecords === 0);
  const log = await at.log();
  await at.close();
  const tries = receiver.all.slice(0, count + 1);
  assert.equal(new Set(tries.map(({ headers }) => headers['webhook-id'])).size, 1);
  assert.equal(new Set(tries.map(({ body }) => body.toString())).size, 1);
  assert.ok(receiver.all.every((each) => isSigned(each)));
  assert.ok(
    at.events.some(({ message }) => /it answered 500; it is tried again/.test(message)),
    JSON.stringify(at.events),
  );
  const records = receiver.all.flatMap(({ body }) => linesOf(body));
  checkReceived(
    records.filter(({ seq }) => seq <= log.length),
    log,
    1,
  );
});

test("a receiver that refuses one tenant's records gets the others'", async () => {
  await using receiver = await hook(({ body }, response) => {
    response.writeHead(linesOf(body)[0].tenant === 'blue' ? 400 : 200).end();
  });
  await using at = await streamedAppliance();
  await at.open();
  await at.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
  await at.close();
  await at.open(streamingTo([`http://127.0.0.1:${receiver.port}/`], { secrets, from: 'start' }));
  await at.act(3, 'blue');
  await at.act(3);
  const taken = () =>
    receiver.all
      .flatMap(({ body }) => linesOf(body))
      .filter(({ tenant, action }) => tenant === 'default' && action === 'keyring.list');
  await until('those of the other', () => taken().length === 3);
  await at.act(2);
  await until('later ones too', () => taken().length === 5);
  const { fault, lagRecords } = await at.status();
  assert.deepEqual([fault, lagRecords >= 3], ['answer', true]);
});

test('a receiver that is killed again and again misses nothing', async (context) => {
  const records: AnyRecord[] = [];
  // Not one that other programs are given while it is away.
  const port = await freePort();
  const open = () => hook(undefined, { port });
  let receiver = await open();
  await using at = await streamedAppliance();
  await at.open(streamingTo([`http://127.0.0.1:${port}/`], { secrets, from: 'start' }));
  const random = prng(3);
  let acting = true;
  const actor = (async () => {
    while (acting) await at.act(1);
  })();
  actor.catch(() => {});
  for (let round = 0; round < 10; round++) {
    await delay(random.int(100));
    await receiver[Symbol.asyncDispose]();
    records.push(...receiver.all.flatMap(({ body }) => linesOf(body)));
    await delay(random.int(60));
    receiver = await open();
  }
  acting = false;
  await actor;
  await until('all have arrived', async () => (await at.status()).lagRecords === 0);
  const log = await at.log();
  await at.close();
  await receiver[Symbol.asyncDispose]();
  records.push(...receiver.all.flatMap(({ body }) => linesOf(body)));
  checkReceived(
    records.filter(({ seq }) => seq <= log.length),
    log,
    1,
  );
  context.diagnostic(`${log.length} records, ${records.length - new Set(records.map(({ seq }) => seq)).size} again`);
});

const tenant = { id: 'tenant_01', name: 'default' };
const chained = {
  record: {
    seq: 1,
    id: 'act_1',
    createdAt: 1,
    keyid: 'k',
    action: 'a',
    ringname: '',
    validAction: true,
    status: 200,
    props: {},
  },
  line: '{"seq":1}',
  hash: 'A'.repeat(43),
};

function receiverOf(url: string, lines: readonly string[] = [secret], now = () => 1_674_087_231_000): WebhookReceiver {
  const target = parseTarget(url, (path) => path);
  assert.ok(target.kind === 'webhook');
  return new WebhookReceiver(target, { ca: certificate, secrets: parseWebhookSecrets(lines.join('\n')), now });
}

test('every secret signs, so that one can take the place of another', async () => {
  await using at = await hook();
  const other = Buffer.alloc(24, 9);
  const receiver = receiverOf(`http://127.0.0.1:${at.port}/`, [`whsec_${other.toString('base64')}`, secret]);
  await receiver.send({ tenant, records: [chained] });
  const [received] = at.all;
  assert.ok(received && isSigned(received, key) && isSigned(received, other));
  assert.equal(received.headers['webhook-timestamp'], '1674087231');
  assert.match(String(received.headers['webhook-signature']), /^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
  receiver.drop();
});

test('a connection that the receiver closed between two batches is no failure', async () => {
  await using at = await hook((_, response) => {
    response.end(() => setTimeout(() => response.socket?.destroy(), 5));
  });
  const receiver = receiverOf(`http://127.0.0.1:${at.port}/`);
  for (let n = 0; n < 20; n++) {
    await receiver.send({ tenant, records: [chained] });
    await delay(n % 2 === 0 ? 4 : 5);
  }
  receiver.drop();
});

test('an answer without end is not read to its end, and one that never comes ends with the connection', async () => {
  await using endless = await hook((_, response) => {
    const piece = Buffer.alloc(16_384);
    const write = (): void => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once('drain', write);
    };
    write();
  });
  const receiver = receiverOf(`http://127.0.0.1:${endless.port}/`);
  await receiver.send({ tenant, records: [chained] });
  receiver.drop();
  await using silent = await hook(() => {});
  const waiting = receiverOf(`http://127.0.0.1:${silent.port}/`);
  const sent = waiting.send({ tenant, records: [chained] });
  sent.catch(() => {});
  while (silent.all.length === 0) await delay(5);
  waiting.drop();
  await assert.rejects(sent, { code: 'unavailable' });
});

/** Bytes that a receiver may send instead of an answer, and the resulting kind of failure. */
const oddAnswers: readonly (readonly [what: string, bytes: string, kind: string])[] = [
  ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\n', 'answer'],
  ['another protocol, and words of it', 'HTTP/1.1 101 S\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\nabc', 'answer'],
  ['another protocol that has no name', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', 'answer'],
  ['no HTTP', 'hello\r\n', 'broken'],
  ['nothing but hints', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'broken'],
  ['hints without end', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1000), 'answer'],
  ['half a head', 'HTTP/1.1 200 OK\r\nContent-', 'broken'],
  ['half a body', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab', 'broken'],
  ['a head without end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`, 'broken'],
  ['status 0', 'HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n', 'answer'],
  ['nothing', '', 'broken'],
];

test('whatever stands in place of an answer is a failure, and the next try is one like the first', async (context) => {
  for (const [what, bytes, kind] of oddAnswers) {
    let isWell = false;
    const well = 'HTTP/1.1 204 No Content\r\n\r\n';
    const server = createPlainServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => {
        if (data.includes('{"tenant"')) socket.end(isWell ? well : bytes);
      });
    }).listen(0, '127.0.0.1');
    context.after(() => server.close());
    await once(server, 'listening');
    const address = server.address();
    const receiver = receiverOf(`http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/`);
    const late = delay(5000, 'nothing came of it', { ref: false });
    const sent = receiver.send({ tenant, records: [chained] }).then(
      () => 'it was taken',
      (error) => error.kind,
    );
    assert.equal(await Promise.race([sent, late]), kind, what);
    isWell = true;
    await receiver.send({ tenant, records: [chained] });
    receiver.drop();
  }
});

test('a webhook that nobody vouches for gets nothing', async () => {
  await using at = await hook(undefined, { tls: true });
  const target = parseTarget(`https://localhost:${at.port}/`, (path) => path);
  assert.ok(target.kind === 'webhook');
  const receiver = new WebhookReceiver(target, { secrets, now: Date.now });
  await assert.rejects(receiver.send({ tenant, records: [chained] }), { kind: 'certificate' });
  receiver.drop();
  assert.deepEqual(at.all, []);
});
