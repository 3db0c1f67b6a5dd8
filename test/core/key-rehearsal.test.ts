// Rehearsals of costly work with keys foresee all of it, and a change in between keeps no other request waiting.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gcm } from '@noble/ciphers/aes.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { isLongWork, type KeyWorker } from '../../src/core/key-rehearsal.ts';
import { native, putIn } from '../../src/crypto/primitives.ts';
import { usualFairLimits } from '../../src/http/fair-queue.ts';
import { type AnyJson, testAppliance } from '../support/appliance.ts';
import { keyWorkHere } from '../support/key-work-here.ts';
import { countedWork } from '../support/longest-go.ts';

const items = (length: number, item: object): object[] => Array.from({ length }, () => item);
const digest = Buffer.alloc(64, 1).toString('base64');

/** Does the work, after `first`; tells the names of what was ordered. */
function watched(first: () => Promise<unknown> = async () => {}) {
  const ordered: string[] = [];
  const held: Uint8Array[] = [];
  const worker: KeyWorker = {
    async run(orders, from) {
      ordered.push(...orders.map(({ name }) => name));
      for (const order of orders) if ('input' in order && 'key' in order.input) held.push(order.input.key);
      await first();
      const results = await keyWorkHere.run(orders, from);
      for (const result of results) {
        if ('value' in result && result.value instanceof Uint8Array) held.push(result.value);
      }
      return results;
    },
  };
  return { worker, ordered, held };
}

async function made(worker: KeyWorker, type: string, more: object = {}) {
  const a = await testAppliance({ keyWorker: worker });
  const { status, body } = await a.call('POST', '/managed-keys', { name: 'k', type, ...more });
  assert.equal(status, 200, JSON.stringify(body));
  return a;
}

test('a version that is due is made once, and the whole batch is done with it elsewhere', async () => {
  const { worker, ordered, held } = watched();
  const a = await made(worker, 'ecdsa-p521', { rotateAfter: 3600 });
  a.advance(3600 * 1000);
  const body = { prehashed: true, hash: 'sha2-512', items: items(20, { input: digest }) };
  const answer = await a.call('POST', '/managed-keys/k/sign', body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(new Set(answer.body.items.map(({ keyVersion }: AnyJson) => keyVersion)), new Set([2]));
  assert.deepEqual(ordered, ['generate', ...items(20, {}).map(() => 'sign')]);
  assert.ok(held.length >= 41 && held.every((bytes) => bytes.every((byte) => byte === 0)), 'something is not wiped');
});

test('a batch whose key changed meanwhile is done with the new version; if it keeps changing, it is to be sent again', async () => {
  let rotations = 0;
  const rotate = async () => assert.equal((await a.call('POST', '/managed-keys/k/rotate', {})).status, 200);
  const { worker } = watched(async () => {
    if (rotations-- > 0) await rotate();
  });
  const a = await made(worker, 'ecdsa-p521');
  const sign = (count: number) => a.call('POST', '/managed-keys/k/sign', { items: items(count, { input: 'aGk=' }) });
  rotations = 1;
  const signed = await sign(9);
  assert.deepEqual([signed.status, signed.body.items?.[8].keyVersion], [200, 2]);
  rotations = 100;
  const refused = await sign(9);
  assert.deepEqual([refused.status, refused.body.message], [503, 'the key changed meanwhile; try again']);
  assert.equal((await sign(1)).status, 200, 'a single message is done in place');
});

test('RSA keys that encrypt get the version that is due, too, and their batches are encrypted elsewhere', async () => {
  const { worker, ordered } = watched();
  const a = await made(worker, 'rsa-2048', { uses: ['encrypt', 'decrypt'], rotateAfter: 3600 });
  ordered.length = 0;
  a.advance(3600 * 1000);
  const { status, body } = await a.call('POST', '/managed-keys/k/encrypt', { items: items(3, { plaintext: 'aGk=' }) });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(ordered, ['generate', 'oaepEncrypt', 'oaepEncrypt', 'oaepEncrypt']);
  const sealed = body.items.map(({ ciphertext }: AnyJson) => ({ ciphertext }));
  ordered.length = 0;
  const again = await a.call('POST', '/managed-keys/k/rewrap', { items: sealed });
  assert.deepEqual(ordered.toSorted(), [
    ...items(3, {}).map(() => 'oaepDecrypt'),
    ...items(3, {}).map(() => 'oaepEncrypt'),
  ]);
  const opened = await a.call('POST', '/managed-keys/k/decrypt', { items: again.body.items });
  assert.deepEqual(
    opened.body.items.map(({ plaintext }: AnyJson) => plaintext),
    ['aGk=', 'aGk=', 'aGk='],
  );
  a.advance(3600 * 1000);
  assert.equal((await a.call('POST', '/managed-keys/k/datakey', {})).body.keyVersion, 3);
});

test('a request whose work is done elsewhere keeps no other from its turn', async () => {
  const gate: { open?: () => void } = {};
  const { worker, ordered } = watched(() => new Promise<void>((resolve) => Object.assign(gate, { open: resolve })));
  const a = await testAppliance({ keyWorker: worker, fairLimits: { ...usualFairLimits, atOnce: 1 } });
  for (const [name, type] of [
    ['signs', 'ml-dsa-44'],
    ['seals', 'aes256-gcm'],
  ]) {
    assert.equal((await a.call('POST', '/managed-keys', { name, type })).status, 200);
  }
  const encrypts = () => a.call('POST', '/managed-keys/seals/encrypt', { items: items(1, { plaintext: 'aGk=' }) });
  const signed = a.call('POST', '/managed-keys/signs/sign', { items: items(9, { input: 'aGk=' }) });
  while (gate.open === undefined) assert.equal((await encrypts()).status, 200);
  assert.equal(ordered.length, 9);
  assert.equal((await encrypts()).status, 200);
  gate.open();
  assert.equal((await signed).status, 200);
  assert.equal((await encrypts()).status, 200);
});

test('work is long by its kind, number and size, and no batch of a cipher is done twice', () => {
  const many = items(1000, {});
  assert.equal(isLongWork('aes256-gcm', 'encrypt', { items: many }), false);
  assert.equal(isLongWork('aes256-gcm', 'make', { items: [{ ciphertext: 'A'.repeat(200_000) }] }), true);
  assert.equal(isLongWork('hmac-sha512', 'make', { items: many }), false);
  assert.equal(isLongWork('aes256-gcm', 'make', { plaintext: 'A'.repeat(44) }), false);
  assert.equal(isLongWork('aes256-gcm', 'make', { plaintext: 'A'.repeat(80_000) }), true);
  assert.equal(isLongWork('aes256-gcm', 'make', { wrapped: 'A'.repeat(80_000) }), true);
  assert.equal(isLongWork('rsa-2048', 'encrypt', {}), true);
  assert.equal(isLongWork('rsa-2048', 'read', {}), false);
  assert.equal(isLongWork('ecdsa-p521', 'read', { prehashed: true }), true);
});

test('a large message of a slow cipher is encrypted, decrypted and rewrapped elsewhere', async () => {
  const { worker, ordered, held } = watched();
  const a = await made(worker, 'chacha20-poly1305', { derived: true });
  const plaintext = Buffer.alloc(600_000, 1).toString('base64');
  const work = async (what: string, item: object) => {
    const answer = await a.call('POST', `/managed-keys/k/${what}`, { items: [{ ...item, context: 'aGk=' }, {}] });
    assert.equal(answer.status, 200, JSON.stringify(answer.body).slice(0, 200));
    return answer.body.items[0];
  };
  const { ciphertext } = await work('encrypt', { plaintext });
  const again = await work('rewrap', { ciphertext });
  assert.equal((await work('decrypt', again)).plaintext, plaintext);
  assert.deepEqual(ordered, ['seal', 'open', 'seal', 'open']);
  assert.ok(held.length >= 8 && held.every((bytes) => bytes.every((byte) => byte === 0)), 'something is not wiped');
  const altered = `${again.ciphertext.slice(0, -8)}AAAAAAA=`;
  assert.match((await work('decrypt', { ciphertext: altered })).error, /message authentication failed/);
});

test('a batch leaves the event loop to others after every few messages', async (context) => {
  const counted = countedWork(context);
  const before = native();
  context.after(() => putIn(before));
  putIn({
    ...before,
    sealGcm: (key, nonce, plaintext, associated) => counted.count(gcm(key, nonce, associated).encrypt(plaintext)),
    openGcm: (key, nonce, sealed, associated) => counted.count(gcm(key, nonce, associated).decrypt(sealed)),
    hmac: (_hash, key, message) => counted.count(hmac(sha256, key, message)),
  });
  const a = await testAppliance();
  const call = async (path: string, body: object) => {
    let answer: AnyJson;
    const most = await counted.inOneGo(async () => {
      answer = (await a.call('POST', `/managed-keys${path}`, body)).body;
    });
    return { items: answer.items, most };
  };
  await call('', { name: 'seals', type: 'aes256-gcm' });
  await call('', { name: 'macs', type: 'hmac-sha256' });
  const sealed = await call('/seals/encrypt', { items: items(1000, { plaintext: 'aGk=' }) });
  const again = await call('/seals/rewrap', { items: sealed.items });
  const opened = await call('/seals/decrypt', { items: again.items });
  assert.deepEqual(opened.items, items(1000, { plaintext: 'aGk=' }));
  const macs = await call('/macs/mac', { items: items(1000, { input: 'aGk=' }) });
  const texts = macs.items.map(({ mac }: AnyJson) => ({ mac, input: 'aGk=' }));
  const verified = await call('/macs/verify', { items: texts });
  const large = await call('/seals/encrypt', { items: items(10, { plaintext: 'A'.repeat(80_000) }) });
  for (const { most } of [sealed, opened, macs, verified]) assert.ok(most > 1 && most <= 64, `${most} in one go`);
  assert.ok(again.most <= 128 && large.most <= 4, `${again.most} and ${large.most} in one go`);
});
