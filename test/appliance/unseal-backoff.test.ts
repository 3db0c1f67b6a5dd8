// Attempts to unseal over the network: limited by address, bounded, and never in the way of an administrator at the
// machine.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { initAppliance } from '../../src/appliance/init.ts';
import { socketFetch } from '../../src/cli/local-socket.ts';
import { UnsealBackoff } from '../../src/custody/unsealer.ts';
import { KmsError } from '../../src/errors.ts';
import { serve } from '../../src/server/serve.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-unseal-'));
after(() => rmSync(base, { recursive: true, force: true }));

const from = (remoteAddress: string) => ({ remoteAddress });

function backoffAt(clock: { now: number }): UnsealBackoff {
  return new UnsealBackoff({ elapsed: () => clock.now, random: (length) => new Uint8Array(length).fill(3) });
}

const wrong = async (): Promise<never> => {
  throw new KmsError('refused', 'wrong');
};

test('five failures from an address, fifty from a /48; what is neither right nor wrong counts for nothing', async () => {
  const clock = { now: 1_000_000 };
  const backoff = backoffAt(clock);
  for (let i = 0; i < 20; i++)
    assert.equal(await backoff.run(from('192.0.2.1'), false, async () => undefined), undefined);
  for (let i = 0; i < 5; i++) await assert.rejects(backoff.run(from('192.0.2.1'), false, wrong), { message: 'wrong' });
  let tried = false;
  const refused = backoff.run(from('::ffff:192.0.2.1'), false, async () => (tried = true));
  await assert.rejects(refused, {
    code: 'rate-limited',
    retryAfter: 1,
    message: /^too many failed tries; try again in 1 s$/,
  });
  assert.ok(!tried);
  assert.equal(backoff.refusal(from('192.0.2.1'))?.retryAfter, 1);
  assert.equal(backoff.refusal({ local: true }), undefined);
  assert.equal(backoff.refusal(from('192.0.2.2')), undefined, 'nobody else waits');
  for (let i = 0; i < 50; i++) await assert.rejects(backoff.run(from(`2001:db8:1:${i}::1`), false, wrong));
  assert.equal(backoff.refusal(from('2001:db8:1:ffff::1'))?.retryAfter, 1);
  assert.equal(backoff.refusal(from('2001:db8:2::1')), undefined);
  clock.now += 1_000;
  assert.equal(await backoff.run(from('192.0.2.1'), false, async () => 'opened'), 'opened');
  assert.equal(backoff.refusal(from('192.0.2.1')), undefined);
});

test('one passphrase at a time, one of an address, sixteen in all; shares pass them by', async () => {
  const backoff = backoffAt({ now: 0 });
  let running = 0;
  let most = 0;
  const gate = Promise.withResolvers<void>();
  const slow = async (): Promise<undefined> => {
    most = Math.max(most, ++running);
    await gate.promise;
    running--;
  };
  const first = Array.from({ length: 16 }, (_, n) => backoff.run(from(`192.0.2.${n}`), true, slow));
  await new Promise(setImmediate);
  await assert.rejects(backoff.run(from('192.0.2.3'), true, slow), { code: 'rate-limited', retryAfter: 16 });
  await assert.rejects(backoff.run(from('198.51.100.1'), true, slow), { code: 'rate-limited' });
  assert.equal(await backoff.run(from('198.51.100.1'), false, async () => 'a share'), 'a share');
  gate.resolve();
  await Promise.all(first);
  assert.equal(most, 1);
  assert.equal(await backoff.run(from('192.0.2.3'), true, slow), undefined, 'the next may try again');
});

test('whoever is at the machine overtakes passphrases from the network', async () => {
  const data = join(base, 'data');
  const passphrase = 'correct horse battery staple';
  await initAppliance({ data, custodian: { kind: 'passphrase', passphrase } });
  const serving = await serve({ data, listen: '127.0.0.1:0', behindProxy: true, logLevel: 'silent' });
  const send = (step: object, address: string): Promise<Response> =>
    fetch(`${serving.url}/system/unseal`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify(step),
    });
  let answered = 0;
  const guesses = Array.from({ length: 8 }, (_, n) =>
    send({ passphrase: `guess ${n}, which is wrong` }, `192.0.2.${n}`).finally(() => answered++),
  );
  // They are in flight: the first is being tried.
  while ((await send({ passphrase: 'another' }, '192.0.2.0')).status !== 429);
  const headers = { 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify({ passphrase }) };
  const opened = await socketFetch(data)(new Request('http://kms.local/system/unseal', init));
  assert.deepEqual([opened.status, await opened.json()], [200, { sealed: false, kinds: ['passphrase'] }]);
  assert.ok(answered < guesses.length, 'it did not wait for all of them');
  const statuses = (await Promise.all(guesses)).map(({ status }) => status);
  // Attempts that were not tried yet find it open.
  for (const status of statuses) assert.ok([200, 400, 429].includes(status), String(statuses));
  assert.ok(statuses.includes(200));
  await serving.close();
});
