// Several nodes of the executable on one PostgreSQL, and clients that keep sending requests to each over HTTP. Each
// request comes from a loopback address of its own, which identifies its record in the exported log.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { type RequestOptions, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { KmsError } from '../../src/errors.ts';
import { freePort } from '../support/free-port.ts';
import type { Postgres } from '../support/postgres.ts';
import { type Entry, falsified, judge, type Op, quota } from '../support/shared-judge.ts';
import { now, SharedLoad } from '../support/shared-load.ts';
import { kms, type RunningServer, serve } from './kms.ts';

/** First number of a request; loopback addresses are made of these, and lower ones are left to others. */
const firstNumber = 1 << 16;

/** Names that occur nowhere else. */
const planted = { ring: 'planted-ring', account: 'planted-account', email: 'planted@example.org' };

/** URL of a database that is at one of these addresses, by their sockets. */
export function storeUrl(...places: readonly Postgres[]): string {
  return `postgres://kms@/postgres?host=${places.map(({ dir }) => dir).join(',')}`;
}

interface Key {
  readonly id: string;
  readonly secret: string;
}

interface Answer {
  readonly status: number;
  // Fields are read by name, whatever the body.
  readonly body: Record<string, unknown>;
}

export class Nodes {
  readonly load = new SharedLoad(firstNumber);
  readonly cwd: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #root: string;
  readonly #keys = new Map<string, Key>();
  readonly #servers = new Map<string, RunningServer>();
  readonly #ports = new Map<string, number>();

  private constructor(cwd: string, url: string, root: string) {
    this.cwd = cwd;
    this.#env = { KMS_STORE: url };
    this.#root = root;
  }

  static async start(cwd: string, url: string, names: readonly string[]): Promise<Nodes> {
    const [first = ''] = names;
    mkdirSync(cwd, { recursive: true });
    const made = await kms(cwd, ['init', '--data', first, '--json'], { KMS_STORE: url });
    assert.equal(made.code, 0, made.stderr);
    const nodes = new Nodes(cwd, url, JSON.parse(made.stdout).apiKey.key);
    for (const name of names) {
      if (name !== first) copyFileSync(join(cwd, `${first}.master.key`), join(cwd, `${name}.master.key`));
      nodes.#ports.set(name, await freePort());
      await nodes.serve(name);
    }
    await nodes.#fill(first);
    for (const name of names) nodes.load.clients((op) => nodes.#asks(name, op), 3);
    return nodes;
  }

  /** Starts a node, on its former port if it ran before. */
  async serve(name: string, more: readonly string[] = []): Promise<void> {
    const listen = `127.0.0.1:${this.#ports.get(name)}`;
    this.#servers.set(name, await serve(this.cwd, ['--data', name, '--listen', listen, ...more], this.#env));
  }

  /** Runs a command on a node and returns its output; it must succeed. */
  async run(name: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await kms(this.cwd, [...args, '--data', name], this.#env);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  async #fill(name: string): Promise<void> {
    await this.run(name, 'keyring', 'create', planted.ring, '--private-key-out', 'ring.key');
    await this.run(name, 'tenant', 'limits', 'default', '--keyrings', String(quota + 1));
    await this.run(name, 'account', 'create', planted.account);
    await this.run(name, 'user', 'create', 'ada', '--email', planted.email, '--first-name', 'Ada', '--last-name', 'L');
    for (const key of ['k0', 'k1', 'k2']) {
      const flags = ['--account', planted.account, '--flag', `keyring.${planted.ring}.encrypt`, '--json'];
      const { keyid, key: secret } = JSON.parse(await this.run(name, 'apikey', 'create', ...flags));
      this.#keys.set(key, { id: keyid, secret });
    }
  }

  signal(name: string, signal: NodeJS.Signals): void {
    process.kill(Number(readFileSync(join(this.cwd, name, 'kms.pid'), 'utf8')), signal);
  }

  /** Sends the signal and waits for the end. */
  async end(name: string, signal: NodeJS.Signals): Promise<void> {
    await this.#servers.get(name)?.end(signal);
  }

  /** Output since its last start. */
  output(name: string): string {
    return this.#servers.get(name)?.output() ?? '';
  }

  /** Waits until many requests that were sent from now on have answers. */
  async goOn(most = 60_000): Promise<void> {
    const since = now();
    const names = [...this.#servers.keys()];
    for (const end = Date.now() + most; this.load.answered(since) < 100; await delay(20)) {
      assert.ok(Date.now() < end, `no answers: ${names.map((name) => this.output(name).slice(-500)).join('\n')}`);
    }
  }

  async #asks(name: string, op: Op): Promise<number> {
    const { kind, number } = op;
    const key = this.#keys.get(op.name);
    const at = { port: this.#ports.get(name), localAddress: addressOf(number) };
    const send = (method: string, path: string, secret = this.#root, body?: object): Promise<Answer> =>
      exchange({ ...at, method, path, headers: { authorization: `Bearer ${secret}` } }, body);
    if (kind === 'look') {
      const { status, body } = await send('GET', `/auth/apikey/${key?.id}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body.active === true ? 1 : 0;
    }
    const { status, body } =
      kind === 'encrypt'
        ? await send('POST', '/ks/encrypt', key?.secret, { ringname: planted.ring })
        : kind === 'make'
          ? await send('POST', '/ks/keyrings', this.#root, { name: op.name })
          : await send('PUT', '/auth/apikeyid', this.#root, { op: 'merge', apikeyid: key?.id, active: op.on === 1 });
    return statusOf(op, status, JSON.stringify(body));
  }

  /** Ends the clients and judges their observations by the exported log, which one of the nodes verifies first. */
  async judge(name: string): Promise<{ answered: number; refused: number; silence: string; lost: number }> {
    const { load } = this;
    await load.stop();
    assert.match(await this.run(name, 'activity', 'verify'), /^verified: \d+ records/);
    const log = await this.run(name, 'activity', 'export');
    const entries = entriesOf(log, load.ops);
    judge(load.ops, entries);
    const isCertain = load.ops.every(({ mayBeLost }) => !mayBeLost);
    for (const [what, ops, wrong] of isCertain ? falsified(load.ops, entries) : []) {
      assert.throws(() => judge(ops, wrong), assert.AssertionError, `the judge must refuse what is ${what}`);
    }
    const there = new Set(entries.map(({ number }) => number));
    const isLost = ({ kind, answer, number }: Op): boolean =>
      kind !== 'look' && answer !== undefined && !there.has(number);
    const { refused, silence } = load;
    const lost = load.ops.filter(isLost).length;
    return { answered: load.answered(), refused, silence: `${(silence / 1000).toFixed(1)} s`, lost };
  }

  /** Every name, id, secret and address that must not be stored in clear. */
  get words(): readonly string[] {
    const ofKeys = [...this.#keys.values()].flatMap(({ id, secret }) => [id, secret]);
    const answered = this.load.ops.filter(({ answer }) => answer !== undefined);
    return [
      ...ofKeys,
      this.#root,
      ...Object.values(planted),
      ...answered.slice(0, 50).map(({ number }) => addressOf(number)),
    ];
  }

  /** Cleans up after failures, too. */
  async [Symbol.asyncDispose](): Promise<void> {
    const isOver = this.load.stop();
    for (const server of this.#servers.values()) await server.end('SIGKILL');
    await isOver;
  }

  async stop(): Promise<void> {
    await this.load.stop();
    for (const server of this.#servers.values()) assert.equal(await server.end('SIGTERM'), 0, server.output());
  }
}

/** The export's records of the requests. Leaves out other records, reads, and refusals without an effect. */
export function entriesOf(log: string, ops: readonly Op[]): readonly Entry[] {
  const byAddress = new Map(ops.map((op) => [addressOf(op.number), op]));
  return log
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => {
      const { address, status } = JSON.parse(line);
      const op = byAddress.get(address);
      return op && op.kind !== 'look' && status !== 503
        ? [{ number: op.number, status: statusOf(op, status, line) }]
        : [];
    });
}

export function addressOf(number: number): string {
  return `127.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
}

/** Status as the judge expects it: a disabled key, and a used-up quota. */
function statusOf({ kind }: Op, status: number, what: string): number {
  if (status === 200) return 200;
  if (kind === 'encrypt' && (status === 401 || status === 403)) return 403;
  assert.ok(kind === 'make' && status === 403, `${kind}: ${status} ${what}`);
  return 409;
}

/** Throws `unavailable` if there is no answer, or if the answer says that nothing was done. */
function exchange(options: RequestOptions, body?: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { ...options.headers, 'content-type': 'application/json' };
    const sent = request({ host: '127.0.0.1', agent: false, timeout: 30_000, ...options, headers }, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('error', () => reject(new KmsError('unavailable', 'it is not known: the answer broke off')));
      response.on('end', () => {
        const { statusCode: status = 0 } = response;
        if (status === 503) reject(new KmsError('unavailable', `503: ${text}`));
        else resolve({ status, body: JSON.parse(text) });
      });
    });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', (error) => {
      const isRefused = 'code' in error && error.code === 'ECONNREFUSED';
      reject(new KmsError('unavailable', isRefused ? 'refused' : `it is not known: ${error.message}`));
    });
    sent.end(body && JSON.stringify(body));
  });
}
