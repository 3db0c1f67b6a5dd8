// A whole appliance on disk for tests of tenants: with a clock of its own, requests by host, and the operator's
// requests.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpenAppliance } from '../../src/appliance/appliance.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { type Initialised, initAppliance } from '../../src/appliance/init.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type AnyJson = any;

export interface Answer {
  readonly status: number;
  readonly body: AnyJson;
}

export interface Place {
  readonly data: string;
  readonly made: Initialised;
  readonly events: ApplianceEvent[];
  readonly clock: { ahead: number };
  readonly appliance: OpenAppliance;
  /** Sends a request as the operator; `tenant` names the tenant if it matters. */
  local(method: string, path: string, body?: object, tenant?: string): Promise<Answer>;
  /** Sends a request from the network. */
  at(host: string, method: string, path: string, key: string | undefined, body?: object): Promise<Answer>;
  /** Closes and opens it again. */
  reopen(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const baseUrl = 'https://kms.example.org:8443';

export async function place(hosts?: readonly string[]): Promise<Place> {
  const dir = await mkdtemp(join(tmpdir(), 'kms-tenants-'));
  const data = join(dir, 'data');
  const made = await initAppliance({ data, hosts });
  const clock = { ahead: 0 };
  const events: ApplianceEvent[] = [];
  const open = () => openAt(data, clock, events);
  let appliance = await open();
  return {
    data,
    made,
    events,
    clock,
    get appliance() {
      return appliance;
    },
    local: (...asked) => asking(appliance)(...asked),
    at: (host, method, path, key, body) =>
      answer(
        appliance.app.fetch(
          request('http://kms.local', method, path, body, { host, ...(key && { authorization: `Bearer ${key}` }) }),
          {},
        ),
      ),
    async reopen() {
      await appliance.close();
      appliance = await open();
    },
    async [Symbol.asyncDispose]() {
      await appliance.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Sends the operator's requests to an open appliance. */
export function asking(appliance: OpenAppliance): Place['local'] {
  return (method, path, body, tenant) =>
    answer(
      appliance.fetchLocal(request('http://kms.local', method, path, body, tenant ? { 'kms-tenant': tenant } : {})),
    );
}

/** Writes a backup of the whole appliance to `file`. */
export async function backupOf({ appliance }: Place, file: string): Promise<void> {
  const response = await appliance.fetchLocal(new Request('http://kms.local/system/backup', { method: 'POST' }));
  assert.equal(response.status, 200);
  await writeFile(file, new Uint8Array(await response.arrayBuffer()));
}

export function openAt(
  data: string,
  clock: { ahead: number } = { ahead: 0 },
  events: ApplianceEvent[] = [],
  keyFile?: string,
): Promise<OpenAppliance> {
  const world = systemWorld();
  return openAppliance({
    data,
    keyFile,
    baseUrl: () => baseUrl,
    world: { ...world, now: () => world.now() + clock.ahead, elapsed: () => world.elapsed() + clock.ahead },
    // Uptime advances with the clock, so that the time counts as passed.
    uptime: () => performance.now() + clock.ahead,
    onEvent: (event) => events.push(event),
  });
}

function request(
  base: string,
  method: string,
  path: string,
  body: object | undefined,
  headers: Record<string, string>,
) {
  return new Request(base + path, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

async function answer(pending: Response | Promise<Response>): Promise<Answer> {
  const response = await pending;
  const text = await response.text();
  return { status: response.status, body: text.startsWith('{"hash"') ? text : JSON.parse(text) };
}

/**
 * Answers to requests of several kinds to a tenant that `deletes` deletes while they are in flight: they are admitted,
 * and their bodies arrive only afterwards.
 */
export async function deletedMeanwhile(
  fetch: (request: Request) => Response | Promise<Response>,
  { host, key }: { readonly host: string; readonly key: string },
  deletes: () => Promise<void>,
): Promise<Answer[]> {
  const { promise: isDeleted, resolve: go } = Promise.withResolvers<void>();
  const text = new TextEncoder();
  const asked = ['/ks/keyrings', '/auth/apikey'].map((path) => {
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(text.encode('{"name": '));
        await isDeleted;
        controller.enqueue(text.encode('"late"}'));
        controller.close();
      },
    });
    const headers = { host, authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body, duplex: 'half' };
    return answer(fetch(new Request(`http://kms.local${path}`, init)));
  });
  await deletes();
  go();
  return Promise.all(asked);
}
