// An appliance on disk that streams its activity, at a pace suited to tests: it makes records, returns its log, and can
// be reopened as after a restart.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpenStatus } from '../../src/api/local/status.ts';
import type { OpenAppliance } from '../../src/appliance/appliance.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import type { ApplianceOptions } from '../../src/appliance/config.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import type { Pace } from '../../src/telemetry/streaming/stream.ts';
import type { StreamingSettings } from '../../src/telemetry/streaming/streaming.ts';
import { parseTarget } from '../../src/telemetry/streaming/target.ts';

export const testPace: Partial<Pace> = {
  poll: 5,
  rest: 0,
  save: 5,
  pause: 20,
  longestPause: 100,
  idle: 10,
  unconfirmed: 200,
  farewell: 3000,
};

// biome-ignore lint/suspicious/noExplicitAny: tests look into records of every shape
export type AnyRecord = any;

export interface StreamedAppliance {
  readonly data: string;
  readonly dir: string;
  readonly events: ApplianceEvent[];
  readonly appliance: OpenAppliance;
  readonly apiKey: string;
  /** Sends requests as the local administrator of a tenant, one after the other, each of which makes a record. */
  act(count: number, tenant?: string): Promise<void>;
  local(method: string, path: string, body?: object, tenant?: string): Promise<Response>;
  /** The lines of an export without its own record. */
  log(tenant?: string): Promise<AnyRecord[]>;
  status(): Promise<OpenStatus['activityTo'][number]>;
  open(streaming?: Partial<StreamingSettings> | undefined, more?: Partial<ApplianceOptions>): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Streaming settings for these targets. */
export function streamingTo(targets: readonly string[], more: Partial<StreamingSettings> = {}): StreamingSettings {
  const { pace, ...others } = more;
  return {
    targets: targets.map((text) => parseTarget(text, (path) => path)),
    pace: { ...testPace, ...pace },
    ...others,
  };
}

/** Made, and not open yet. */
export async function streamedAppliance(): Promise<StreamedAppliance> {
  const dir = await mkdtemp(join(tmpdir(), 'kms-streaming-'));
  const data = join(dir, 'data');
  const made = await initAppliance({ data });
  const events: ApplianceEvent[] = [];
  let appliance: OpenAppliance | undefined;
  const needOpen = (): OpenAppliance => appliance ?? assert.fail('it is not open');
  const local: StreamedAppliance['local'] = (method, path, body, tenant = 'default') =>
    needOpen().fetchLocal(
      new Request(`http://kms.local${path}`, {
        method,
        headers: { 'content-type': 'application/json', 'kms-tenant': tenant },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
  const close = async (): Promise<void> => {
    await appliance?.close();
    appliance = undefined;
  };
  const self: StreamedAppliance = {
    data,
    dir,
    events,
    apiKey: made.apiKey.key,
    get appliance() {
      return needOpen();
    },
    local,
    async act(count, tenant) {
      for (let n = 0; n < count; n++) assert.equal((await local('GET', '/ks/keyrings', undefined, tenant)).status, 200);
    },
    async log(tenant) {
      const text = await (await local('POST', '/auth/activity/export', {}, tenant)).text();
      return text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
        .slice(0, -1);
    },
    async status() {
      const [only] = (await needOpen().status()).activityTo;
      return only ?? assert.fail('nothing is streamed');
    },
    async open(streaming, more = {}) {
      appliance = await openAppliance({
        data,
        onEvent: (event) => events.push(event),
        ...(streaming && { streaming: streamingTo([], streaming) }),
        ...more,
      });
    },
    close,
    async [Symbol.asyncDispose]() {
      await close();
      await rm(dir, { recursive: true, force: true });
    },
  };
  return self;
}

/**
 * Compares the records received from one tenant with its log from the record `from` on: nothing is missing, nothing
 * else is there, each record first arrives after its predecessor, and repeats are recognised by their hash.
 */
export function checkReceived(received: readonly AnyRecord[], log: readonly AnyRecord[], from: number): void {
  const hashes = new Map<number, string>(log.map(({ seq, hash }) => [seq, hash]));
  let next = from;
  for (const { seq, hash } of received) {
    assert.equal(hash, hashes.get(seq), `record ${seq} is another one`);
    assert.ok(seq <= next, `record ${seq} before record ${next}`);
    if (seq === next) next++;
  }
  assert.equal(next, (log.at(-1)?.seq ?? 0) + 1, 'the last records are missing');
}
