// The commands of the guide on disks that unlock over the network, run with Debian's clevis and cryptsetup; and clevis
// with an appliance that was killed, that is sealed, or that an attacker stands in front of.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { typePage } from '../docs/typing.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

test('docs/guide-tang.md', () => typePage('docs/guide-tang.md'));

interface Ran {
  readonly code: number;
  readonly out: string;
}

async function run(command: string, args: readonly string[], stdin = ''): Promise<Ran> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  let out = '';
  child.stdout.on('data', (piece) => {
    out += piece;
  });
  // It may have ended without reading.
  child.stdin.on('error', () => {});
  child.stdin.end(stdin);
  const [code] = await once(child, 'close');
  return { code, out };
}

const encrypt = (url: string, text: string): Promise<Ran> =>
  run('clevis', ['encrypt', 'tang', JSON.stringify({ url }), '-y'], text);
const decrypt = ({ out }: Ran): Promise<Ran> => run('clevis', ['decrypt'], out);

class Place implements AsyncDisposable {
  readonly #dir = mkdtempSync(join(tmpdir(), 'kms-tang-'));
  readonly #ends: (() => unknown)[] = [];
  #server: ChildProcess | undefined;
  #port = '0';

  kms = (...args: string[]): Promise<Ran> => run(process.execPath, [main, ...args, '--data', join(this.#dir, 'data')]);

  /** Serves, and returns the URL for clients of Tang, which is always the same. */
  async serve(): Promise<string> {
    const listen = ['--listen', '127.0.0.1:0', '--tang-listen', `127.0.0.1:${this.#port}`];
    const args = [main, 'serve', '--data', join(this.#dir, 'data'), ...listen];
    const server = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#server = server;
    for await (const line of createInterface({ input: server.stderr })) {
      const [, url = '', port = ''] = /Tang: listening on (http:\/\/127\.0\.0\.1:(\d+))/.exec(line) ?? [];
      if (url === '') continue;
      this.#port = port;
      server.stderr.resume();
      return url;
    }
    throw new Error('it does not serve');
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const server = this.#server;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    server.kill(signal);
    await once(server, 'exit');
  }

  /** A proxy in front of `url` that forges answers to POST. */
  async between(url: string, forged: (answer: string) => string): Promise<string> {
    const server: Server = createServer(async (request, response) => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece);
      const { method = '', url: path = '' } = request;
      const answer = await fetch(url + path, { method, ...(method === 'POST' && { body: Buffer.concat(pieces) }) });
      const text = await answer.text();
      response.writeHead(answer.status, { 'Content-Type': answer.headers.get('content-type') ?? '' });
      response.end(method === 'POST' ? forged(text) : text);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#ends.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends) end();
    await this.kill('SIGKILL');
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

test('what clevis bound is opened after a rotation, a kill and while it is not sealed, each time with a record', async () => {
  await using p = new Place();
  const url = await p.serve();
  const first = await encrypt(url, 'one');
  assert.deepEqual(await decrypt(first), { code: 0, out: 'one' });
  assert.equal((await p.kms('tang', 'rotate')).code, 0);
  const second = await encrypt(url, 'two');
  await p.kill('SIGKILL');
  assert.notEqual((await decrypt(first)).code, 0, 'nobody is there');
  assert.equal(await p.serve(), url);
  assert.deepEqual(await decrypt(first), { code: 0, out: 'one' });
  assert.deepEqual(await decrypt(second), { code: 0, out: 'two' });
  assert.equal((await p.kms('seal')).code, 0);
  assert.equal((await fetch(`${url}/adv`)).status, 503);
  for (const each of [first, second]) assert.deepEqual([(await decrypt(each)).out, 'nothing'], ['', 'nothing']);
  assert.equal((await p.kms('unseal')).code, 0);
  assert.deepEqual(await decrypt(second), { code: 0, out: 'two' });
  const [, old] = JSON.parse((await p.kms('tang', 'list', '--json')).out).pairs;
  assert.deepEqual([old.advertised, old.recoveries], [false, 2], 'those that were answered before the kill count');
  const found = await p.kms('activity', 'search', '--action', 'tang.recover', '--all', '--json');
  const records: { address: string }[] = JSON.parse(found.out).data;
  assert.deepEqual(
    records.map(({ address }) => address),
    Array(4).fill('127.0.0.1'),
  );
  assert.equal((await p.kms('tang', 'delete', old.thumbprint, '--yes')).code, 0);
  assert.notEqual((await decrypt(first)).code, 0);
  assert.deepEqual(await decrypt(second), { code: 0, out: 'two' });
});

test('a forger in between keeps it closed, and learns nothing that opens it', async () => {
  await using p = new Place();
  const url = await p.serve();
  let forge = (answer: string): string => answer;
  const seen: string[] = [];
  const between = await p.between(url, (answer) => {
    seen.push(answer);
    return forge(answer);
  });
  const bound = await encrypt(between, 'secret');
  assert.deepEqual(await decrypt(bound), { code: 0, out: 'secret' });
  const [{ keys }] = [
    JSON.parse(Buffer.from(JSON.parse(await (await fetch(`${url}/adv`)).text()).payload, 'base64url').toString()),
  ];
  const { x, y } = keys[1];
  const forgeries: ((answer: string) => string)[] = [
    (answer) => JSON.stringify({ ...JSON.parse(answer), x, y }),
    (answer) => JSON.stringify({ ...JSON.parse(answer), y: JSON.parse(answer).x }),
    () => seen[0] ?? '',
    () => '{}',
    () => '',
    (answer) => answer.slice(0, -20),
  ];
  for (const each of forgeries) {
    forge = each;
    // jose may write text before it finds the tag wrong; it must be another text.
    const { code, out } = await decrypt(bound);
    assert.ok(code !== 0 && out !== 'secret', `${code} ${out} ${each}`);
  }
  assert.equal(new Set(seen).size, seen.length, 'each question is another one, and so is its answer');
  forge = (answer) => answer;
  assert.deepEqual(await decrypt(bound), { code: 0, out: 'secret' });
});
