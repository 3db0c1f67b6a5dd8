// Appliances for the bench: made by the executable, filled through the store while they are not served, and then served
// on a core of their own.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { systemDir, tenantDir } from '../../src/platform/data-dir.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { sqlWasm } from '../../src/platform/program-files.ts';
import { openTenantStore, storesIn } from '../../src/storage/stores.ts';
import type { Store } from '../../src/store/port.ts';
import { type Core, residentMegabytes, type Started, start } from './process.ts';

export const kms = join(import.meta.dirname, '../../dist/kms');

export interface BenchAppliance {
  readonly data: string;
  readonly accountId: string;
  /** Headers with the root API key. */
  readonly headers: { readonly authorization: string; readonly 'content-type': string };
}

/** Makes an appliance. `more` holds further arguments, such as a store URL. */
export function makeAppliance(data: string, more: readonly string[] = []): BenchAppliance {
  const made = JSON.parse(execFileSync(kms, ['--data', data, 'init', '--json', ...more], { encoding: 'utf8' }));
  const headers = { authorization: `Bearer ${made.apiKey.key}`, 'content-type': 'application/json' };
  return { data, accountId: made.accountId, headers };
}

/** Opens the store of the only tenant; nothing else may have the directory open. */
export async function openTenant({ data }: BenchAppliance): Promise<Store> {
  const { seal } = await openSealFile(data, undefined);
  const dir = seal.stores.find((name) => name !== systemDir) ?? '';
  const world = storesIn({ root: data, files: nodeFiles(data), wasm: await sqlWasm() });
  return openTenantStore(world, tenantDir(dir), seal.keysFor(dir));
}

export interface Served extends Started {
  /** Base URL of the server. */
  readonly url: string;
  /** Time from the start until it listened. */
  readonly startMilliseconds: number;
  megabytes(): number;
  /** Sends POST with a body, else GET, and returns the text. Throws unless the status is 200. */
  ask(path: string, body?: object): Promise<string>;
}

export async function serve(
  core: Core,
  { data, headers }: BenchAppliance,
  more: readonly string[] = [],
): Promise<Served> {
  const before = performance.now();
  const args = ['--data', data, 'serve', '--listen', '127.0.0.1:0', ...more];
  const started = await start(core, kms, args, /listening on (\S+)/);
  const startMilliseconds = performance.now() - before;
  const url = started.match;
  return {
    ...started,
    url,
    startMilliseconds,
    megabytes: () => residentMegabytes(started.child.pid),
    async ask(path, body) {
      const sent = body ? { method: 'POST', body: JSON.stringify(body) } : {};
      const response = await fetch(url + path, { headers, ...sent });
      const text = await response.text();
      if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
      return text;
    },
  };
}

/** Milliseconds that `run` takes. */
export async function timed(run: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await run();
  return performance.now() - before;
}
