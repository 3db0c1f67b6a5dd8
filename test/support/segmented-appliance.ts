// An appliance on disk whose tenant has three closed segments of four records each, and copies of it for tests to
// change.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpenAppliance } from '../../src/appliance/appliance.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import type { ApplianceOptions } from '../../src/appliance/config.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { systemDir, tenantDir } from '../../src/platform/data-dir.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import type { Seal } from '../../src/seal/seal.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { activityInput } from '../store/contract.ts';
import { openEmbedded } from './embedded-store.ts';
import { sqlWasm } from './wasm.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Answer = { readonly status: number; readonly body: any };

export interface SegmentedAppliance {
  /** Directory of the copies and of the tests' other files. */
  readonly base: string;
  readonly sound: string;
  readonly keyFile: string;
  /** The tenant's directory, relative to the data directory. */
  readonly dir: string;
  readonly apiKey: string;
  /** The segments' names. */
  readonly files: readonly string[];
  place(): Place;
  remove(): void;
}

/** A copy of the intact appliance. */
interface Place {
  readonly data: string;
  /** A unique number. */
  readonly number: number;
  readonly events: ApplianceEvent[];
  segments(): string[];
  open(more?: Partial<ApplianceOptions>): Promise<Opened>;
}

interface Opened extends AsyncDisposable {
  readonly appliance: OpenAppliance;
  /** Sends a request with the API key. */
  ask(method: string, path: string, body?: object): Promise<Answer>;
  local(method: string, path: string, body?: object): Promise<Answer>;
  /** The status of the tenant's store. */
  store(): Promise<Answer['body']>;
}

export const noEnvironment = (): undefined => undefined;

/**
 * Adds records to the first tenant of a data directory, and closes a segment for every four of them, which a served
 * appliance does for thousands. Returns the tenant's directory.
 */
export async function closeSegments(
  data: string,
  seal: Pick<Seal, 'stores' | 'keysFor'>,
  records: number,
  createdAt?: (record: number) => number,
): Promise<string> {
  const name = seal.stores.find((each) => each !== systemDir) ?? '';
  const dir = tenantDir(name);
  const tenant = await openEmbedded({
    files: nodeFiles(data),
    dir,
    keys: seal.keysFor(name),
    wasm: sqlWasm,
    migrations: tenantMigrations,
    tables: tenantTables,
    limits: { segmentRecords: 4 },
  });
  for (let n = 0; n < records; n++) {
    const record = { ...activityInput(`act_${n}`), ...(createdAt && { createdAt: createdAt(n) }) };
    await tenant.transaction((tx) => tx.record(record));
  }
  await tenant.checkpoint();
  await tenant.close();
  return dir;
}

export async function segmentedAppliance(
  createdAt: (record: number) => number,
  options: Partial<ApplianceOptions> = {},
): Promise<SegmentedAppliance> {
  const base = mkdtempSync(join(tmpdir(), 'kms-segmented-'));
  const sound = join(base, 'sound');
  const keyFile = `${sound}.master.key`;
  const env = noEnvironment;
  const made = await initAppliance({ data: sound, env });
  const apiKey = made.apiKey.key;
  const { seal } = await openSealFile(sound, { keyFile, env });
  const dir = await closeSegments(sound, seal, 12, createdAt);
  seal.wipe();
  const segmentsIn = (data: string): string[] =>
    readdirSync(join(data, dir)).filter((each) => each.startsWith('activity-'));
  const files = segmentsIn(sound);
  assert.equal(files.length, 3);
  let count = 0;
  const place = (): Place => {
    const number = ++count;
    const data = join(base, `p${number}`);
    cpSync(sound, data, { recursive: true });
    const events: ApplianceEvent[] = [];
    const open = async (more: Partial<ApplianceOptions> = {}): Promise<Opened> => {
      const onEvent = (event: ApplianceEvent) => void events.push(event);
      const appliance = await openAppliance({ data, keyFile, sources: { env }, onEvent, ...options, ...more });
      return {
        appliance,
        ask: (...args) => send(appliance, apiKey, ...args),
        local: (...args) => send(appliance, undefined, ...args),
        store: async () => (await appliance.status()).tenants[0]?.store,
        [Symbol.asyncDispose]: () => appliance.close(),
      };
    };
    return { data, number, events, segments: () => segmentsIn(data), open };
  };
  const remove = (): void => rmSync(base, { recursive: true, force: true });
  return { base, sound, keyFile, dir, apiKey, files, place, remove };
}

/** Without a key, the request is sent as the administrator at the machine. */
async function send(
  appliance: OpenAppliance,
  apiKey: string | undefined,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> {
  const headers = {
    'content-type': 'application/json',
    host: 'kms.local',
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
  };
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  const request = new Request(`http://kms.local${path}`, init);
  const answering = apiKey === undefined ? appliance.fetchLocal(request) : appliance.app.fetch(request, { headers });
  const response = await answering;
  const text = await response.text();
  const isJson = /^application\/json(;|$)/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, body: isJson ? JSON.parse(text) : text };
}
