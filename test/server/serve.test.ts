// The server on its sockets: where it listens, which proxies it trusts, what it answers below HTTP, and how it ends.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Initialised } from '../../src/appliance/init.ts';
import { KmsError } from '../../src/errors.ts';
import type { ServeOptions } from '../../src/server/config.ts';
import { listening, parseListen } from '../../src/server/listen.ts';
import { type Serving, serve } from '../../src/server/serve.ts';
import { json as awsJson, signed } from '../support/aws-client.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-serve-'));
after(() => rmSync(base, { recursive: true, force: true }));

const isCode = (code: string) => (error: unknown) => error instanceof KmsError && error.code === code;

async function started(
  name: string,
  more: Partial<ServeOptions> = {},
): Promise<Serving & { made: Initialised | undefined }> {
  let made: Initialised | undefined;
  const serving = await serve({
    data: join(base, name),
    listen: '127.0.0.1:0',
    logLevel: 'silent',
    onInitialised: (first) => {
      made = first;
    },
    ...more,
  });
  after(() => serving.close());
  return { ...serving, made };
}

/** Sends raw bytes; returns everything that comes back. */
function raw(url: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

test('listen addresses', () => {
  assert.deepEqual(parseListen('127.0.0.1:8080'), { host: '127.0.0.1', port: 8080 });
  assert.deepEqual(parseListen('[::1]:0'), { host: '::1', port: 0 });
  assert.deepEqual(parseListen('kms.example:65535'), { host: 'kms.example', port: 65535 });
  for (const text of [
    '',
    '8080',
    ':8080',
    'host',
    'host:',
    'host:65536',
    'host:-1',
    '::1:80',
    '[127.0.0.1]:80',
    'a b:80',
    'host:8080x',
  ]) {
    assert.throws(() => parseListen(text), isCode('usage'), text);
  }
});

test('plain HTTP stays on this machine unless a proxy is in front', async () => {
  for (const listen of ['0.0.0.0:0', '[::]:0', 'kms.example:80', '192.0.2.1:80', '128.0.0.1:80']) {
    await assert.rejects(listening({ listen }), isCode('refused'), listen);
    assert.equal((await listening({ listen, behindProxy: true })).behindProxy, true);
  }
  for (const listen of ['127.0.0.1:0', '127.9.9.9:0', '[::1]:0', 'localhost:0']) await listening({ listen });
});

test('TLS files: both, readable, and belonging together', async () => {
  const file = join(base, 'no.pem');
  writeFileSync(file, 'no certificate');
  await assert.rejects(listening({ tlsCert: file }), isCode('usage'));
  await assert.rejects(listening({ tlsKey: file }), isCode('usage'));
  await assert.rejects(listening({ tlsCert: file, tlsKey: join(base, 'none.pem') }), isCode('refused'));
  await assert.rejects(listening({ tlsCert: file, tlsKey: file }), isCode('refused'));
});

test('the address for clients', async () => {
  assert.equal((await listening({})).urlOf(8080), 'http://127.0.0.1:8080');
  assert.equal((await listening({ listen: '[::1]:0' })).urlOf(7), 'http://[::1]:7');
  assert.equal((await listening({ url: 'https://kms.example/' })).urlOf(7), 'https://kms.example');
  assert.equal((await listening({ url: 'https://kms.example/' })).addressOf(7), 'http://127.0.0.1:7');
  for (const url of ['kms.example', 'ftp://kms.example', 'https://a:b@kms.example', 'https://kms.example/?x']) {
    await assert.rejects(listening({ url }), isCode('usage'), url);
  }
});

test('a new directory is initialised once, and its key works', async () => {
  const first = await started('new');
  assert.ok(first.made);
  const headers = { authorization: `Bearer ${first.made.apiKey.key}` };
  assert.equal((await fetch(`${first.url}/ks/keyrings`, { headers })).status, 200);
  assert.equal((await fetch(`${first.url}/ks/keyrings`)).status, 401);
  assert.equal(
    (await fetch(`${first.url}/local/status`, { headers })).status,
    404,
    'local endpoints are for the socket alone',
  );
  await first.close();
  await first.close();
  const second = await started('new');
  assert.equal(second.made, undefined);
  assert.equal((await fetch(`${second.url}/ks/keyrings`, { headers })).status, 200);
});

test('a port in use is said before anything is made', async () => {
  const { url } = await started('port');
  await assert.rejects(
    serve({ data: join(base, 'late'), listen: new URL(url).host, logLevel: 'silent' }),
    isCode('in-use'),
  );
});

test('what is no HTTP, and headers without end, get a message', async () => {
  const { url } = await started('raw');
  assert.match(await raw(url, 'nonsense\r\n\r\n'), /^HTTP\/1\.1 400 .*\r\n[\s\S]*\{"message":"[^"]+"\}$/);
  const long = `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`;
  assert.match(await raw(url, long), /^HTTP\/1\.1 431 .*\r\n[\s\S]*\{"message":"[^"]+"\}$/);
});

test('what a proxy says counts only where there is one', async () => {
  const ask = (url: string): Promise<string> =>
    raw(
      url,
      'GET /ks/keyrings HTTP/1.1\r\nHost: unknown.example\r\nX-Forwarded-Host: kms.example\r\nConnection: close\r\n\r\n',
    );
  const direct = await started('direct', { hosts: ['kms.example'] });
  assert.match(await ask(direct.url), /^HTTP\/1\.1 404 /);
  const behind = await started('behind', { hosts: ['kms.example'], behindProxy: true });
  assert.match(await ask(behind.url), /^HTTP\/1\.1 401 /);
});

test('a key for some addresses is held to the one that the proxy says, where there is one, and to the socket otherwise', async () => {
  for (const behindProxy of [true, false]) {
    const { url, made } = await started(`addresses-${behindProxy}`, { behindProxy });
    const ask = (key: string, path: string, body: object, forwarded?: string) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
        },
        body: JSON.stringify(body),
      });
    const keyFor = async (...allowedAddresses: string[]): Promise<string> => {
      const fields = { accountId: made?.accountId, flags: { 'asset.search': true }, allowedAddresses };
      return (await (await ask(made?.apiKey.key ?? '', '/auth/apikey', fields)).json()).key;
    };
    const [there, here] = [await keyFor('192.0.2.0/24'), await keyFor('127.0.0.1')];
    const table: [key: string, forwarded: string | undefined, behind: number, direct: number][] = [
      [there, '192.0.2.7', 200, 401],
      // Entries before the last are the client's own claims.
      [there, '192.0.2.7, 198.51.100.1', 401, 401],
      [there, '198.51.100.1, 192.0.2.7', 200, 401],
      [there, undefined, 401, 401],
      [here, '192.0.2.7', 401, 200],
      [here, '127.0.0.1', 200, 200],
      [here, undefined, 200, 200],
    ];
    for (const [key, forwarded, behind, direct] of table) {
      const { status } = await ask(key, '/assets/search', {}, forwarded);
      assert.equal(status, behindProxy ? behind : direct, `${forwarded}`);
    }
  }
});

test('closing waits for the request under way', async () => {
  const { url, made, close } = await started('closing');
  const headers = { authorization: `Bearer ${made?.apiKey.key}`, 'content-type': 'application/json' };
  const requests = Array.from({ length: 20 }, (_, i) =>
    fetch(`${url}/ks/keyrings`, { method: 'POST', headers, body: JSON.stringify({ name: `ring${i}` }) }),
  );
  await Promise.race(requests);
  await close();
  const settled = await Promise.allSettled(requests);
  for (const each of settled) if (each.status === 'fulfilled') assert.equal(each.value.status, 200);
  await assert.rejects(fetch(`${url}/healthz`));
});

test('software that speaks Vault transit has a listener of its own', async () => {
  const serving = await started('transit', { vaultListen: '127.0.0.1:0' });
  const { url, vaultAddress = '', made } = serving;
  assert.notEqual(url, vaultAddress);
  const ask = async (base: string, method: string, path: string, body?: string) => {
    const headers = { 'X-Vault-Token': made?.apiKey.key ?? '', 'Content-Type': 'application/x-www-form-urlencoded' };
    const answer = await fetch(`${base}${path}`, { method, headers, ...(body !== undefined && { body }) });
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
  };
  assert.deepEqual(await ask(vaultAddress, 'POST', '/v1/transit/keys/k', ''), { status: 204, type: null, text: '' });
  const { status, type, text } = await ask(vaultAddress, 'PUT', '/v1//transit//encrypt/k', '{"plaintext":"YQ=="}');
  assert.deepEqual([status, type], [200, 'application/json']);
  const { ciphertext } = JSON.parse(text).data;
  const opened = await ask(vaultAddress, 'POST', '/v1/transit/decrypt/k', JSON.stringify({ ciphertext }));
  assert.equal(JSON.parse(opened.text).data.plaintext, 'YQ==');
  assert.equal((await ask(vaultAddress, 'HEAD', '/v1/sys/health')).status, 200);
  assert.equal((await ask(vaultAddress, 'GET', '/healthz')).status, 404);
  assert.equal((await ask(url, 'GET', '/v1/sys/health')).status, 404);
  await assert.rejects(started('open', { vaultListen: '0.0.0.0:0' }), isCode('refused'));
  await assert.rejects(started('nowhere', { vaultListen: 'x' }), isCode('usage'));
});

test('software that speaks AWS KMS has a listener of its own, which takes the host as clients sign it', async () => {
  const serving = await started('aws', { awsListen: '127.0.0.1:0', awsRegion: 'eu-west-1', behindProxy: true });
  const { url, awsAddress = '', made } = serving;
  const authorization = { Authorization: `Bearer ${made?.apiKey.key}`, 'Content-Type': 'application/json' };
  const { data } = await (await fetch(`${url}/auth/apikey`, { headers: authorization })).json();
  const path = `${url}/auth/apikeys/${data[0].keyid}/proofs`;
  const proof = await fetch(path, { method: 'POST', headers: authorization, body: '{"kind":"aws"}' });
  const { accessKeyId: id, secretAccessKey: secret } = await proof.json();
  const ask = async (headers: Record<string, string>, region = 'eu-west-1') => {
    const all = { 'content-type': awsJson, 'x-amz-target': 'TrentService.CreateKey', ...headers };
    const sent = signed({ world: Date }, { id, secret }, all, '{}', { region });
    const { host, ...rest } = sent.headers;
    const named = host === new URL(awsAddress).host ? rest : { ...rest, 'X-Forwarded-Host': host ?? '' };
    const answer = await fetch(awsAddress, { method: 'POST', headers: named, body: sent.body });
    return { answer, body: await answer.json() };
  };
  const { answer, body } = await ask({ host: new URL(awsAddress).host });
  assert.equal(answer.status, 200, JSON.stringify(body));
  assert.match(body.KeyMetadata.Arn, /^arn:aws:kms:eu-west-1:\d{12}:key\//);
  assert.match(answer.headers.get('x-amzn-requestid') ?? '', /^[0-9a-f-]{36}$/);
  // Clients set their clocks by it.
  assert.ok(Math.abs(Date.parse(answer.headers.get('date') ?? '') - Date.now()) < 600_000);
  assert.equal((await ask({ host: 'kms.example.org' })).answer.status, 200);
  const other = await ask({ host: new URL(awsAddress).host }, 'us-east-1');
  assert.deepEqual([other.answer.status, other.body.__type], [400, 'InvalidSignatureException']);
  assert.equal((await (await fetch(`${awsAddress}/healthz`)).json()).__type, 'UnknownOperationException');
  assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 404);
});

test('clients of Tang have a listener of their own, in clear on any address, for those alone who are allowed', async () => {
  const serving = await started('tang', { tangListen: '0.0.0.0:0' });
  const { url, tangAddress = '' } = serving;
  assert.match(tangAddress, /^http:\/\/localhost:\d+$/);
  const at = tangAddress.replace('localhost', '127.0.0.1');
  const forwarded = { headers: { 'X-Forwarded-For': '8.8.8.8', 'X-Forwarded-Host': 'elsewhere' } };
  assert.equal((await fetch(`${at}/adv`, forwarded)).status, 200);
  assert.equal((await fetch(`${at}/healthz`)).status, 404);
  assert.notEqual(url, tangAddress);
  const closed = await started('nobody', { tangListen: '127.0.0.1:0', tangAllow: ['192.0.2.0/24'], behindProxy: true });
  const forged = { headers: { 'X-Forwarded-For': '192.0.2.1' } };
  assert.equal((await fetch(`${closed.tangAddress}/adv`, forged)).status, 403);
  assert.equal((await fetch(`${closed.url}/adv`)).status, 404);
  await assert.rejects(started('wrong', { tangListen: '127.0.0.1:0', tangAllow: ['10.0.0.0/33'] }), isCode('usage'));
  await assert.rejects(started('unused', { tangAllow: ['10.0.0.0/8'] }), isCode('usage'));
  await assert.rejects(
    started('taken', { tangListen: tangAddress.replace('http://localhost', '0.0.0.0') }),
    isCode('in-use'),
  );
});

test('what is under way at each listener when a server ends is answered, and told that the connection ends', async () => {
  const serving = await started('ends', { vaultListen: '127.0.0.1:0' });
  const body = '{"uid":"slow"}';
  const head = [
    'Host: 127.0.0.1',
    `Authorization: Bearer ${serving.made?.apiKey.key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ].join('\r\n');
  const answers = [
    [serving.address, '/auth/accounts'],
    [serving.vaultAddress ?? '', '/v1/transit/encrypt/none'],
  ].map(([address = '', path]) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = connect(Number(new URL(address).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', () => {});
    socket.write(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n${body.slice(0, 5)}`);
    return { promise, goOn: () => socket.write(body.slice(5)) };
  });
  await sleep(100);
  const closed = serving.close();
  await sleep(300);
  for (const { goOn } of answers) goOn();
  const [made = '', transit = ''] = await Promise.all(answers.map(({ promise }) => promise));
  assert.match(made, /^HTTP\/1\.1 200 /);
  assert.match(transit, /^HTTP\/1\.1 40[034] /);
  for (const answer of [made, transit]) assert.match(answer, /^connection: close$/im);
  await closed;
});
