// The gain from naming known keys: encrypts and decrypts of keyrings of both kinds with and without `knownKeys`, at the
// server, and with and without cached keys, at the client. In turns, on one core.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../../src/client/client.ts';
import { decryptBytes, encryptBytes } from '../../src/client/file-streams.ts';
import { kemNames } from '../../src/model/kems.ts';
import { makeAppliance, serve } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { inTurns, type MeasuredSide } from './load.ts';
import { cpuSeconds } from './process.ts';

/** @param seconds of each measurement. @param rounds in which each is measured once. */
export async function measureKnownKeys(seconds: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-known-'));
  const made = makeAppliance(join(home, 'data'));
  const served = await serve(0, made);
  const ratios: [what: string, rate: number, cpu: number][] = [];
  console.log(`\nKnown keys: 64 connections, ${rounds} rounds of ${seconds} s; median of the rounds`);
  row('', 'bytes', 'req/s', 'CPU µs', 'named: bytes', 'req/s', 'CPU µs');
  const rings: { readonly kem: string; readonly privateKey: string }[] = [];
  for (const kem of kemNames) {
    const { privateKey } = JSON.parse(await served.ask('/ks/keyrings', { name: kem, kem }));
    rings.push({ kem, privateKey });
    const { key, header } = JSON.parse(await served.ask('/ks/encrypt', { ringname: kem }));
    for (const [name, input] of [
      ['encrypt', { ringname: kem }],
      ['decrypt', { header }],
    ] as const) {
      const bodies = [input, { ...input, knownKeys: [key.id] }];
      const bytes = await Promise.all(bodies.map(async (body) => (await served.ask(`/ks/${name}`, body)).length));
      const sides = bodies.map((body) => ({
        url: `${served.url}/ks/${name}`,
        headers: made.headers,
        body: JSON.stringify(body),
        cpu: () => cpuSeconds(served.child.pid),
      }));
      const [all = [], named = []] = await inTurns(sides, seconds, rounds);
      const of = (each: readonly MeasuredSide[], field: 'perSecond' | 'cpu') => median(each.map((one) => one[field]));
      const ratio = (field: 'perSecond' | 'cpu') =>
        median(named.map((each, n) => each[field] / (all[n]?.[field] ?? Number.NaN)));
      const shown = [all, named].flatMap((each, n) => [
        bytes[n] ?? 0,
        short(of(each, 'perSecond')),
        of(each, 'cpu').toFixed(1),
      ]);
      row(`${name} ${kem.slice(0, 12)}`, ...shown);
      ratios.push([`${name} of ${kem}`, ratio('perSecond'), ratio('cpu')]);
    }
  }
  for (const [what, rate, cpu] of ratios) {
    goal(`${what}, named, of the others: requests a second`, rate, 1, 'at least');
    goal(`${what}, named, of the others: CPU of the server`, cpu, 1, 'at most');
  }
  await measureClient(served.url, made.headers.authorization.slice('Bearer '.length), rings, rounds);
  await served.stop();
  rmSync(home, { recursive: true });
}

/** Operations in one measurement. */
const operations = 300;

async function measureClient(
  baseUrl: string,
  apiKey: string,
  rings: readonly { readonly kem: string; readonly privateKey: string }[],
  rounds: number,
): Promise<void> {
  console.log(`\nThe client, ${operations} messages of 100 bytes one after the other: CPU of its process for one, µs`);
  row('', 'keys kept', 'not kept', 'of that');
  const message = new Uint8Array(100);
  const client = createClient({ baseUrl, apiKey });
  for (const { kem: ring, privateKey } of rings) {
    const { bytes: file } = await encryptBytes(message, { client, ring, privateKey });
    for (const [name, once] of [
      ['encrypt', (keepKeys: boolean) => encryptBytes(message, { client, ring, privateKey, keepKeys })],
      ['decrypt', (keepKeys: boolean) => decryptBytes(file, { client, privateKey, keepKeys })],
    ] as const) {
      const used: [number[], number[]] = [[], []];
      for (let round = 0; round <= rounds; round++) {
        for (const [at, keepKeys] of [true, false].entries()) {
          const before = process.cpuUsage();
          for (let n = 0; n < (round === 0 ? 50 : operations); n++) await once(keepKeys);
          const { user, system } = process.cpuUsage(before);
          if (round > 0) used[at]?.push((user + system) / operations);
        }
      }
      const [kept, others] = used;
      const ratio = median(kept.map((each, n) => each / (others[n] ?? Number.NaN)));
      row(`${name} ${ring.slice(0, 12)}`, short(median(kept)), short(median(others)), short(ratio));
      goal(`${name} of ${ring}, key kept, of the others: CPU of the client`, ratio, 1, 'at most');
    }
  }
}
