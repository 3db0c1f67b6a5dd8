// Throughput of `kms encrypt` and `kms decrypt` on a large file, beside bare WebCrypto AES-256-GCM over 16 KiB buffers.
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { goal, median, row, short } from './figures.ts';

const kms = join(import.meta.dirname, '../../dist/kms');

/** @param megabytes of the file. */
export async function measureFiles(megabytes: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const env = { ...process.env, XDG_CONFIG_HOME: join(home, 'config'), KMS_DATA: join(home, 'data') };
  const run = (args: readonly string[]) => execFileSync(kms, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  run(['init']);
  run(['keyring', 'create', 'bench']);
  const plain = join(home, 'plain');
  const file = openSync(plain, 'w');
  const megabyte = crypto.getRandomValues(new Uint8Array(65_536));
  for (let at = 0; at < megabytes * 16; at++) writeSync(file, megabyte);
  closeSync(file);
  const sealed = join(home, 'sealed');
  run(['encrypt', '--ring', 'bench', '-o', sealed, plain]);

  const rates = { bare: [] as number[], encrypt: [] as number[], decrypt: [] as number[] };
  const timed = (command: string): number => {
    const before = performance.now();
    const { status } = spawnSync('sh', ['-c', `exec ${command} > /dev/null 2>&1`], { env });
    if (status !== 0) throw new Error(`${command} ended with ${status}`);
    return megabytes / ((performance.now() - before) / 1000);
  };
  for (let round = 0; round < rounds; round++) {
    rates.bare.push(await bare(megabytes));
    rates.encrypt.push(timed(`${kms} encrypt --ring bench ${plain}`));
    rates.decrypt.push(timed(`${kms} decrypt ${sealed}`));
  }
  console.log(`\nFiles: ${megabytes} MiB, whole commands, MiB/s, median of ${rounds} rounds`);
  row('bare WebCrypto', short(median(rates.bare)));
  const ratio = (of: number[]) => median(of.map((rate, at) => rate / (rates.bare[at] ?? Number.NaN)));
  for (const name of ['encrypt', 'decrypt'] as const) {
    row(`kms ${name}`, short(median(rates[name])), ratio(rates[name]).toFixed(3));
  }
  goal('kms encrypt, of bare WebCrypto', ratio(rates.encrypt), 0.5, 'at least');
  rmSync(home, { recursive: true });
}

/** MiB/s of AES-256-GCM alone over buffers of 16 KiB, with enough of them in flight to keep the threads busy. */
async function bare(megabytes: number): Promise<number> {
  const key = await crypto.subtle.importKey('raw', new Uint8Array(32), 'AES-GCM', false, ['encrypt']);
  const buffer = new Uint8Array(16_384);
  const before = performance.now();
  let number = 0;
  const lane = async () => {
    while (number < megabytes * 64) {
      const iv = new Uint8Array(12);
      new DataView(iv.buffer).setUint32(8, number++);
      await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, buffer);
    }
  };
  await Promise.all(Array.from({ length: 64 }, lane));
  return megabytes / ((performance.now() - before) / 1000);
}
