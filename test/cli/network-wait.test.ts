// A command waits for a server only so long: whatever it says, or doesn't, over the network or at the socket of a data
// directory.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { test } from 'node:test';
import { networkFetch } from '../../src/cli/fetch.ts';
import { createClient } from '../../src/client/client.ts';
import { KmsError } from '../../src/errors.ts';
import { drip, flood, jsonHead, oddHttp, oddServer } from '../support/odd-server.ts';
import { desk } from './kms.ts';

/** In milliseconds. */
const wait = 400;

for (const [what, say] of Object.entries(oddHttp)) {
  test(`a server that answers ${what} keeps no command waiting`, async () => {
    const server = await oddServer();
    server.say = say;
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const client = createClient({ baseUrl, fetch: networkFetch(baseUrl, undefined, { wait }), timeout: Infinity });
    try {
      const began = performance.now();
      const error = await client.listKeyrings().catch((error: unknown) => error);
      assert.ok(error instanceof KmsError && error.code === 'unavailable', String(error));
      // A broken connection is tried three times.
      assert.ok(performance.now() - began < 5000, `${performance.now() - began} ms`);
      // How much comes until the time is over depends on the machine.
      const isLate = error.message.includes(`no answer within ${wait} ms`);
      assert.ok(isLate || server.sent() < 64 << 20, `${server.sent()} bytes`);
    } finally {
      server.close();
    }
  });
}

test('an answer that drips is told in words', async () => {
  const server = await oddServer();
  server.say = drip(`${jsonHead}\r\n`, ' ');
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const client = createClient({ baseUrl, fetch: networkFetch(baseUrl, undefined, { wait }), timeout: Infinity });
  try {
    await assert.rejects(client.listKeyrings(), { message: `${baseUrl} gave no answer within ${wait} ms` });
  } finally {
    server.close();
  }
});

test('a copy or an export takes as long as it is, once it has begun', async () => {
  const server = await oddServer();
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const send = networkFetch(baseUrl, undefined, { wait });
  const read = async (path: string): Promise<number> => {
    const began = performance.now();
    const { body } = await send(new Request(baseUrl + path, { method: 'POST' }));
    for await (const _ of body ?? []) if (performance.now() - began > 3 * wait) break;
    return performance.now() - began;
  };
  try {
    server.say = drip('HTTP/1.1 200 OK\r\n\r\n', 'x');
    for (const path of ['/system/backup', '/auth/activity/export']) assert.ok((await read(path)) > 3 * wait, path);
    await assert.rejects(read('/system/backups'), { code: 'unavailable' });
    server.say = drip('HTTP/1.1 403 Forbidden\r\n\r\n', 'x');
    await assert.rejects(read('/system/backup'), { code: 'unavailable' });
    server.say = () => {};
    await assert.rejects(read('/system/backup'), { code: 'unavailable' });
  } finally {
    server.close();
  }
});

const unasked = [
  ...['another protocol', 'another protocol, by a list', 'a status that there is not'],
  ...['hints without an end', '100 without an end'],
];

for (const what of unasked) {
  test(`the socket of a data directory that answers ${what} keeps no command waiting`, async () => {
    await using d = await desk();
    await mkdir(d.path('kms-data'), { mode: 0o700 });
    const server = await oddServer({ path: d.path('kms-data', 'kms.sock') });
    server.say = oddHttp[what] ?? flood('', 'x');
    try {
      for (const line of ['status', 'keyring list', 'backup create x', 'unseal']) {
        const { code, stderr } = await d.kms(`${line} --data kms-data`, { signal: AbortSignal.timeout(20_000) });
        assert.notEqual(code, 0, line);
        assert.match(stderr, /it answered (?:101|1xx|999)/, line);
      }
    } finally {
      server.close();
    }
  });
}
