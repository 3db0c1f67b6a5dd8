// Encrypts, decrypts, data keys, signatures and MACs per second at the transit listener, beside a bare route on the same
// runtime and, if `bao` is installed, beside OpenBao with its file audit: all on one core, in turns, asked by the same
// clients.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kms, makeAppliance } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { inTurns, type MeasuredSide, mean } from './load.ts';
import { cpuSeconds, type Started, start } from './process.ts';

const bao = process.env.BAO ?? 'bao';
/** Goals, as a share of the bare route's and of OpenBao's rate. */
const wanted: Readonly<Record<'bare' | 'bao', Readonly<Record<string, number>>>> = {
  bare: { encrypt: 0.4 },
  bao: { encrypt: 2, 'data key': 8, 'RSA-2048': 1, 'P-256': 1, HMAC: 1 },
};

interface Side {
  readonly process: Started;
  readonly url: string;
  readonly token: string;
}

/** @param seconds of each measurement. @param rounds in which each operation is measured once at each. */
export async function measureTransit(seconds: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-transit-'));
  const made = makeAppliance(join(home, 'data'));
  const listen = ['--listen', '127.0.0.1:0', '--vault-listen', '127.0.0.1:0'];
  const served = await start(0, kms, ['--data', made.data, 'serve', ...listen], /Vault: listening on (\S+)/);
  const sides: Record<string, Side> = {
    kms: { process: served, url: served.match, token: made.headers.authorization.slice('Bearer '.length) },
  };
  const other = await openBao(home);
  if (other) sides.bao = other;
  const operations = [
    { name: 'encrypt', path: 'encrypt/bench' },
    { name: 'decrypt', path: 'decrypt/bench' },
    { name: 'data key', path: 'datakey/plaintext/bench' },
    { name: 'Ed25519', path: 'sign/ed25519' },
    { name: 'P-256', path: 'sign/ecdsa-p256' },
    { name: 'RSA-2048', path: 'sign/rsa-2048' },
    { name: 'HMAC', path: 'hmac/hmac' },
  ] as const;
  const answers: Record<string, object> = {};
  const bodies = new Map<string, string>();
  for (const [side, { url, token }] of Object.entries(sides)) {
    const ask = async (path: string, body: object): Promise<{ data: Record<string, string> }> => {
      const headers = { 'x-vault-token': token };
      const response = await fetch(`${url}/v1/transit/${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      if (!response.ok) throw new Error(`${side} ${path}: ${response.status} ${await response.text()}`);
      return response.status === 204 ? { data: {} } : JSON.parse(await response.text());
    };
    await ask('keys/bench', { type: 'aes256-gcm96' });
    for (const type of ['ed25519', 'ecdsa-p256', 'rsa-2048']) await ask(`keys/${type}`, { type });
    await ask('keys/hmac', { type: 'hmac', key_size: 32 });
    const plaintext = Buffer.alloc(32, 1).toString('base64');
    const { ciphertext } = (await ask('encrypt/bench', { plaintext })).data;
    const input = plaintext;
    const asked = {
      ...{ encrypt: { plaintext }, decrypt: { ciphertext }, 'data key': {} },
      ...{ Ed25519: { input }, 'P-256': { input }, 'RSA-2048': { input }, HMAC: { input } },
    };
    for (const { name, path } of operations) {
      answers[`/v1/transit/${path}`] ??= await ask(path, asked[name]);
      bodies.set(`${side} ${name}`, JSON.stringify(asked[name]));
    }
  }
  const bare = await start(
    0,
    process.execPath,
    [join(import.meta.dirname, 'bare-route.ts'), JSON.stringify(answers)],
    /listening on (\S+)/,
  );
  sides.bare = { process: bare, url: bare.match, token: 'none' };

  const names = Object.keys(sides);
  console.log(`\nTransit: 64 connections, ${rounds} rounds of ${seconds} s; a second over all of them, medians else`);
  row('', ...names.flatMap((side) => [`${side} req/s`, 'p50 ms', 'p99 ms', 'CPU µs']));
  const ratios: [string, number, number][] = [];
  for (const { name, path } of operations) {
    const loads = names.map((side) => {
      const {
        url,
        token,
        process: { child },
      } = sides[side] ?? { url: '', token: '', process: served };
      const body = bodies.get(`${side} ${name}`) ?? bodies.get(`kms ${name}`) ?? '';
      const headers = { 'x-vault-token': token, 'content-type': 'application/json' };
      return {
        url: `${url}/v1/transit/${path}`,
        headers,
        body,
        cpu: () => cpuSeconds(child.pid),
      };
    });
    const measured = await inTurns(loads, seconds, rounds);
    const of = (each: readonly MeasuredSide[], field: 'p50' | 'p99' | 'cpu') => median(each.map((one) => one[field]));
    row(
      name,
      ...measured.flatMap((each) => [
        short(mean(each, 'perSecond')),
        of(each, 'p50'),
        of(each, 'p99'),
        of(each, 'cpu').toFixed(1),
      ]),
    );
    const [ours = []] = measured;
    for (const [at, side] of names.entries()) {
      if (side === 'kms') continue;
      const ratio = mean(ours, 'perSecond') / mean(measured[at] ?? [], 'perSecond');
      const least = wanted[side === 'bao' ? 'bao' : 'bare'][name] ?? 0;
      ratios.push([`${name}, of ${side === 'bao' ? 'OpenBao' : 'the bare route'}`, ratio, least]);
    }
  }
  for (const [what, ratio, least] of ratios) {
    if (least > 0) goal(what, ratio, least, 'at least');
    else console.log(`          ${what}: ${short(ratio)}`);
  }
  if (!other) console.log('  there is no `bao` to compare with (BAO names one)');
  for (const { process } of Object.values(sides)) await process.stop();
  rmSync(home, { recursive: true });
}

/**
 * Starts OpenBao in development mode: in memory, unsealed, with an audit device that writes a file. Undefined if it is
 * not installed.
 */
async function openBao(home: string): Promise<Side | undefined> {
  if (spawnSync(bao, ['version']).status !== 0) return undefined;
  const config = join(home, 'bao.hcl');
  writeFileSync(config, `audit "file" "file" { options { file_path = "${join(home, 'audit.log')}" } }\n`);
  const port = await freePort();
  const token = 'bench-root';
  const options = [`-dev-root-token-id=${token}`, `-dev-listen-address=127.0.0.1:${port}`, '-dev-no-store-token'];
  const process = await start(0, bao, ['server', '-dev', `-config=${config}`, ...options], /Root Token: (\S+)/);
  const url = `http://127.0.0.1:${port}`;
  const headers = { 'x-vault-token': token };
  const body = JSON.stringify({ type: 'transit' });
  const { ok, status } = await fetch(`${url}/v1/sys/mounts/transit`, { method: 'POST', headers, body });
  if (!ok) throw new Error(`OpenBao refused to mount transit: ${status}`);
  return { process, url, token };
}

/** A port that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
}
