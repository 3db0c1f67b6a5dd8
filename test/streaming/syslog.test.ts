// Activity to syslog servers over real TCP and TLS: complete and in order, through servers that are killed, that read
// nothing, and that are impostors.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import { DeliveryFault } from '../../src/telemetry/streaming/receiver.ts';
import { SyslogReceiver, type SyslogSettings } from '../../src/telemetry/streaming/syslog.ts';
import { certificate } from '../support/localhost-certificate.ts';
import { flood, oddServer } from '../support/odd-server.ts';
import { prng } from '../support/prng.ts';
import { checkReceived, streamedAppliance, streamingTo } from '../support/streamed-appliance.ts';
import { SyslogServer } from '../support/syslog-server.ts';
import { until } from '../support/until.ts';

for (const tls of [false, true]) {
  const way = tls ? 'TLS' : 'TCP';
  const scheme = tls ? 'syslog+tls' : 'syslog+tcp';

  test(`over ${way}: every record as it is exported, and nothing twice through a restart`, async () => {
    await using server = await listening({ tls });
    await using at = await streamedAppliance();
    const streaming = streamingTo([`${scheme}://localhost:${server.port}`], { ca: certificate, from: 'start' });
    await at.open(streaming);
    await at.act(20);
    await until('20 records', async () => (await at.status()).lagRecords === 0);
    await at.close();
    await at.open(streaming);
    await at.act(5);
    const log = await at.log();
    await at.close();
    const received = server.records.filter(({ seq }) => seq <= log.length);
    assert.deepEqual(
      received.map(({ tenant: _, tenantId: __, ...record }) => record),
      log,
    );
    assert.ok(received.every(({ tenant, tenantId }) => tenant === 'default' && /^tenant_/.test(tenantId)));
    assert.deepEqual(at.events, []);
  });

  test(`over ${way}: a server that is killed again and again misses nothing`, async (context) => {
    let server = await SyslogServer.listen({ tls });
    const { port } = server;
    const records: SyslogServer['records'] = [];
    await using at = await streamedAppliance();
    await at.open(streamingTo([`${scheme}://localhost:${port}`], { ca: certificate, from: 'start' }));
    const random = prng(7);
    let acting = true;
    let acted = 0;
    const actor = (async () => {
      for (; acting; acted++) await at.act(1);
    })();
    actor.catch(() => {});
    const isTriedAgain = ({ level, message }: ApplianceEvent) => level === 'warn' && /it is tried again$/.test(message);
    // A busy machine gets little done between two kills.
    const isEnough = () => acted > 20 && at.events.some(isTriedAgain);
    for (let round = 0; round < 8 || (round < 200 && !isEnough()); round++) {
      await delay(random.int(150));
      await server.kill();
      records.push(...server.records);
      await delay(random.int(100));
      server = await SyslogServer.listen({ tls, port });
    }
    acting = false;
    await actor;
    await until('all have arrived', async () => (await at.status()).lagRecords === 0);
    const log = await at.log();
    await at.close();
    await server.kill();
    records.push(...server.records);
    checkReceived(
      records.filter(({ seq }) => seq <= log.length),
      log,
      1,
    );
    const repeats = records.length - new Set(records.map(({ seq }) => seq)).size;
    context.diagnostic(`${log.length} records, ${repeats} of them again`);
    assert.ok(log.length > 20);
    assert.ok(at.events.some(isTriedAgain));
    assert.ok(at.events.some(({ level, message }) => level === 'info' && /it works again$/.test(message)));
  });
}

test('a server that nobody vouches for, or that is another one, gets nothing', async () => {
  await using server = await listening({ tls: true });
  await using other = await listening({ tls: true, host: '127.0.0.2' });
  await using plain = await listening({ tls: false });
  for (const [target, ca, wanted] of [
    [`localhost:${server.port}`, undefined, /DEPTH_ZERO_SELF_SIGNED_CERT/],
    [`127.0.0.2:${other.port}`, certificate, /ERR_TLS_CERT_ALTNAME_INVALID/],
    [`localhost:${plain.port}`, certificate, /./],
  ] as const) {
    await using at = await streamedAppliance();
    await at.open(streamingTo([`syslog+tls://${target}`], { ca, from: 'start' }));
    await at.act(1);
    await until('it fails', async () => (await at.status()).fault !== undefined);
    assert.match((await at.status()).error ?? '', wanted);
    await at.close();
  }
  assert.deepEqual([server.messages, other.messages, plain.messages], [[], [], []]);
  await using at = await streamedAppliance();
  await at.open(streamingTo([`syslog+tls://127.0.0.1:${server.port}`], { ca: certificate, from: 'start' }));
  await at.act(1);
  await until('by its address, which is in the certificate', () => server.messages.length > 0);
});

test('nobody there: said once, counted, and tried again later and later', async () => {
  await using server = await listening({});
  const { port } = server;
  await server.kill();
  await using at = await streamedAppliance();
  await at.open(streamingTo([`syslog+tcp://127.0.0.1:${port}`], { from: 'start' }));
  await at.act(3);
  await until('it fails', async () => (await at.status()).fault !== undefined);
  await delay(300);
  const { to, kind, fault, error, lagRecords, lagSeconds } = await at.status();
  assert.deepEqual([to, kind, fault], [`syslog+tcp://127.0.0.1:${port}`, 'syslog', 'unreachable']);
  assert.match(error ?? '', /nothing listens there \(ECONNREFUSED\)/);
  assert.ok(lagRecords >= 3 && lagSeconds >= 0);
  assert.equal(at.events.filter(({ message }) => message.startsWith('activity to')).length, 1);
  await using again = await listening({ port });
  await until('it is there again', async () => (await at.status()).fault === undefined);
  assert.equal(again.records[0].seq, 1);
});

test('a server that bears little at a time is sent less, until it has everything', async (context) => {
  const bears = 400_000;
  const seqs = new Set<number>();
  let broken = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let text = '';
    socket.on('error', () => {});
    socket.on('data', (data) => {
      text += data;
      if (text.length <= bears || socket.destroyed) return;
      broken++;
      socket.destroy();
    });
    socket.on('end', () => {
      for (const [, seq] of text.matchAll(/ seq="(\d+)"/g)) seqs.add(Number(seq));
      socket.end();
    });
  }).listen(0, '127.0.0.1');
  context.after(() => server.close());
  await once(server, 'listening');
  await using at = await streamedAppliance();
  await at.open();
  for (let n = 0; n < 40; n++) {
    const activity = { action: 'own.action', props: { filler: 'x'.repeat(60_000) } };
    assert.equal((await at.local('POST', '/auth/validate', { key: at.apiKey, activity })).status, 200);
  }
  await at.close();
  const { port } = server.address() as AddressInfo;
  // Only its size triggers the confirmation.
  const pace = { unconfirmed: 60_000, idle: 1000 };
  await at.open(streamingTo([`syslog+tcp://127.0.0.1:${port}`], { from: 'start', pace }));
  await until('all have arrived', async () => (await at.status()).lagRecords === 0);
  assert.deepEqual(
    [...seqs],
    Array.from({ length: seqs.size }, (_, index) => index + 1),
  );
  assert.ok(seqs.size >= 80 && broken > 0 && broken < 10, `${seqs.size} records, broken off ${broken} times`);
});

/** Short timeouts, in milliseconds. */
const soon = { connect: 300, write: 300, close: 300 };
const tenant = { id: 'tenant_01', name: 'default' };

function record(seq: number, filler = '') {
  const record = {
    seq,
    id: `act_${seq}`,
    createdAt: 1,
    keyid: 'k',
    action: 'a',
    ringname: '',
    validAction: true,
    status: 200,
    props: { filler },
  };
  return { record, line: JSON.stringify(record), hash: 'A'.repeat(43) };
}

const isFault = (kind: string) => (error: unknown) => error instanceof DeliveryFault && error.kind === kind;

function receiverOf(port: number, more: Partial<SyslogSettings> = {}): SyslogReceiver {
  const target = { kind: 'syslog', name: '', host: '127.0.0.1', port, tls: false } as const;
  return new SyslogReceiver(target, { hostname: 'h', ...more });
}

test('what a server did not read is not taken for received', async () => {
  await using server = await listening({ deafAfter: 1000 });
  const receiver = receiverOf(server.port, { timeouts: soon });
  await assert.rejects(async () => {
    for (let seq = 1; seq <= 5; seq++) await receiver.send({ tenant, records: [record(seq, 'x'.repeat(100_000))] });
    await receiver.confirm();
  }, isFault('timeout'));
  receiver.drop();
});

test('a server that stops reading holds up one batch, not memory', async () => {
  await using server = await listening({ deafAfter: 1000 });
  const receiver = receiverOf(server.port, { timeouts: soon });
  const sent: number[] = [];
  await assert.rejects(async () => {
    for (let seq = 1; seq <= 200; seq++) {
      await receiver.send({ tenant, records: [record(seq, 'x'.repeat(200_000))] });
      sent.push(seq);
    }
  }, isFault('timeout'));
  // No more than fits into the socket buffers of both sides.
  assert.ok(sent.length < 100, String(sent.length));
  receiver.drop();
});

test('a connection that the server closes, or breaks off, before this side did is a failure', async () => {
  for (const how of ['close', 'reset'] as const) {
    await using server = await listening({ hangUp: how });
    const receiver = receiverOf(server.port);
    await assert.rejects(async () => {
      await receiver.send({ tenant, records: [record(1)] });
      await receiver.confirm();
    }, isFault('broken'));
    receiver.drop();
  }
});

test('after a failure the next try has a connection of its own', async () => {
  await using server = await listening({});
  const receiver = receiverOf(server.port);
  await receiver.send({ tenant, records: [record(1)] });
  await receiver.confirm();
  await receiver.send({ tenant, records: [record(2)] });
  receiver.drop();
  await assert.rejects(receiver.confirm(), isFault('broken'));
  await receiver.send({ tenant, records: [record(2)] });
  await receiver.confirm();
  assert.equal(server.connections, 3);
  assert.ok(server.records.length >= 2);
});

async function listening(options: Parameters<typeof SyslogServer.listen>[0]) {
  const server = await SyslogServer.listen(options);
  return Object.assign(server, { [Symbol.asyncDispose]: () => server.kill() });
}

test('a server that talks without an end is broken off', async () => {
  const server = await oddServer({ atOnce: true });
  server.say = flood('', 'x');
  const target = { kind: 'syslog', name: 'odd', host: '127.0.0.1', port: server.port, tls: false } as const;
  const receiver = new SyslogReceiver(target, { hostname: 'h' });
  try {
    await receiver.ready();
    await until('it is broken off', () =>
      receiver.ready().then(
        () => false,
        (error) => /it sent more than 65536 bytes/.test(error.message),
      ),
    );
    await until('the connection is closed', () => server.open() === 0);
    assert.ok(server.sent() < 64 << 20, `${server.sent()} bytes`);
  } finally {
    receiver.drop();
    server.close();
  }
});
