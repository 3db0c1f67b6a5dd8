// A whole appliance for tests: the real app over stores in memory, one or several tenants, a root key for each, a
// captured log, and a short way to call an endpoint.

import { tokenVerifier } from '../../src/appliance/token-verifier.ts';
import type { Limits, World } from '../../src/core/context.ts';
import type { KeyWorker } from '../../src/core/key-rehearsal.ts';
import { bootstrap } from '../../src/core/set-up.ts';
import { surfaces } from '../../src/dialects/surfaces.ts';
import { type App, createApp } from '../../src/http/app.ts';
import {
  type LocalHandlers,
  type OpenState,
  type PeopleOptions,
  peopleOf,
  type Readiness,
  type Sealing,
  type State,
} from '../../src/http/appliance-port.ts';
import { defaultBodyLimit } from '../../src/http/body.ts';
import type { FairLimits } from '../../src/http/fair-queue.ts';
import type { RequestEnv } from '../../src/http/fetch.ts';
import type { TenantDirectory, TenantHandle } from '../../src/http/tenant-directory.ts';
import type { Label } from '../../src/model/label.ts';
import type { ConsoleFile, ConsoleFiles, DescriptionFiles, Guide } from '../../src/model/program-files.ts';
import { tenantKeys } from '../../src/seal/tenant-keys.ts';
import { yieldBeforeRequest, yieldToEventLoop } from '../../src/store/event-loop.ts';
import type { ActivityRecord, Store } from '../../src/store/port.ts';
import type { Sql } from '../../src/store/sql.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { startTime, testWorld } from './context.ts';
import { keyWorkHere } from './key-work-here.ts';
import { createMemoryStore } from './memory-store.ts';
import { pretendHasher } from './pretend-hasher.ts';
import { pretendOidcClient } from './pretend-oidc.ts';

export interface ApplianceOptions {
  /** Default: one tenant `default` that answers every host. */
  readonly tenants?: readonly {
    readonly name: string;
    readonly hosts: readonly string[];
    readonly limits?: Limits;
    readonly secondFactorFor?: readonly string[];
    readonly custody?: 'any' | 'client';
  }[];
  readonly bodyLimit?: number;
  readonly label?: Label;
  readonly local?: Partial<LocalHandlers>;
  readonly backup?: OpenState['backup'];
  readonly ready?: () => Readiness;
  readonly sealed?: () => boolean;
  readonly consoleFiles?: () => Promise<ConsoleFiles>;
  readonly descriptionFiles?: () => Promise<DescriptionFiles>;
  readonly guides?: () => Promise<readonly Guide[]>;
  readonly sealing?: Sealing;
  /** Passwords are hashed by a cheap stand-in unless a hasher is given. */
  readonly people?: Partial<PeopleOptions>;
  /** Called with each tenant's SQL session, for tests that fill tables by statements. */
  readonly onSql?: (sql: Sql) => void;
  /** Limits of concurrent requests. */
  readonly fairLimits?: FairLimits;
  readonly keyWorker?: KeyWorker;
  readonly closing?: AbortSignal;
  /** The tenants' stores. Default: new ones in memory. */
  readonly stores?: readonly Store[];
  /** Another node on the same stores, whose tenants these are. */
  readonly like?: Appliance;
}

/** An API key, and its id. */
export interface TestKey {
  readonly key: string;
  readonly keyid: string;
}

export interface TestTenantSeat {
  readonly handle: TenantHandle;
  readonly root: TestKey;
  readonly accountId: string;
}

export interface CallOptions {
  /** Absent: the root key of the first tenant. `null`: no Authorization header. */
  readonly key?: string | null;
  readonly host?: string;
  readonly env?: RequestEnv;
  readonly headers?: Readonly<Record<string, string>>;
  /** A raw body, sent instead of the JSON of `body`. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type AnyJson = any;

export interface Answer {
  readonly status: number;
  readonly body: AnyJson;
  readonly text: string;
  readonly headers: Headers;
}

export interface Appliance {
  readonly app: App;
  readonly world: World;
  readonly tenants: readonly TestTenantSeat[];
  readonly root: TestKey;
  readonly accountId: string;
  /** The whole log, one JSON text a line. */
  readonly log: string[];
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  /** Makes an API key with these flags. */
  keyWith(...flags: string[]): Promise<TestKey>;
  /** The first tenant's records, newest first. */
  activity(): Promise<ActivityRecord[]>;
  /** Sets the clock forward, which nodes on the same stores share. */
  advance(milliseconds: number): void | Promise<void>;
}

const nothing = new Uint8Array();
const emptyFile: ConsoleFile = { name: 'empty', contentType: 'text/plain', content: nothing };

const neverSealed: Sealing = {
  status: () => ({ sealed: false, kinds: ['keyfile'] }),
  refusal: () => undefined,
  unseal: async () => ({ sealed: false, kinds: ['keyfile'] }),
  seal: async () => {},
};

async function* shortBackup(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array([1, 2]);
  yield new Uint8Array([3]);
}

function clockOf({ world, advance }: Appliance): { now: number } {
  return {
    get now() {
      return world.now();
    },
    set now(time) {
      advance(time - world.now());
    },
  };
}

export async function testAppliance(options: ApplianceOptions = {}): Promise<Appliance> {
  const { stores = [], like } = options;
  const clock = like ? clockOf(like) : { now: startTime };
  const world = testWorld(clock, like ? 8 : 7);
  const wanted = options.tenants ?? [{ name: 'default', hosts: ['*'] }];
  const tenants = await Promise.all(
    wanted.map(async ({ name, hosts, limits = {}, secondFactorFor = [], custody = 'any' }, index) => {
      const tables = (sql: Sql) => {
        options.onSql?.(sql);
        return tenantTables(sql);
      };
      const runsAnything = options.onSql !== undefined;
      const other = like?.tenants[index];
      const store = stores[index] ?? (await createMemoryStore({ migrations: tenantMigrations, tables, runsAnything }));
      const keys = tenantKeys(new Map([[1, new Uint8Array(32).fill(index + 1)]]));
      const handle: TenantHandle = {
        tenant: { id: other?.handle.tenant.id ?? world.newId('tenant'), name, limits, keys, secondFactorFor, custody },
        store,
      };
      if (other) return { handle, hosts, root: other.root, accountId: other.accountId };
      const { account, apiKey } = await store.transaction((tx) => bootstrap({ tx, world }));
      return { handle, hosts, root: apiKey, accountId: account.id };
    }),
  );
  const [first] = tenants;
  if (!first) throw new Error('an appliance has a tenant');
  const log: string[] = [];
  const line = (fields: object, message: string) => {
    log.push(JSON.stringify({ message, ...fields }, (_, value) => (value instanceof Error ? value.stack : value)));
  };
  // Cast: a test calls only the handlers that it provides.
  const local = { ...options.local } as LocalHandlers;
  const open: OpenState = {
    sealed: false,
    tenants: tenantDirectory(tenants),
    baseUrl: 'http://kms.test',
    people: peopleOf(world, {
      hasher: pretendHasher,
      oidc: pretendOidcClient,
      tokens: tokenVerifier(world),
      ...options.people,
    }),
    keyWorker: options.keyWorker ?? keyWorkHere,
    closing: options.closing ?? new AbortController().signal,
    meter: { route: () => () => {} },
    local,
    readiness: options.ready ?? (() => ({ ok: true })),
    refuseWrites: () => undefined,
    backup: options.backup ?? shortBackup,
    backups: () => ({
      configured: { directory: '/mnt/backup', schedule: '0 3 * * *', keep: 7, nextAt: '2026-01-02T03:00:00.000Z' },
      running: false,
      lastVerified: null,
      lastFailure: null,
    }),
    startBackup: () => {},
    recordInOthers: async () => {},
    logNumbers: ({ store }) => {
      const { logBytes, snapshotBytes, activityCount, activityBytes } = store.status();
      return {
        logBytes,
        snapshotBytes,
        lastCheckpointAt: null,
        activityRecords: activityCount,
        activityBytes,
        writesRefused: false,
        failures: 0,
      };
    },
    metrics: async () => 'kms_sealed 0\n',
    stateOf: ({ tenant }) => `appliance.${tenant.id}.1.0`,
  };
  const served = {
    fairLimits: options.fairLimits,
    label: options.label,
    world,
    logger: { debug: line, info: line, warn: line, error: line },
    bodyLimit: options.bodyLimit ?? defaultBodyLimit,
    turn: yieldToEventLoop,
    requestTurn: yieldBeforeRequest,
    sealing: options.sealing ?? neverSealed,
    consoleFiles: options.consoleFiles ?? (async () => ({ script: emptyFile, style: emptyFile, icon: emptyFile })),
    guides: options.guides ?? (async () => []),
    descriptionFiles:
      options.descriptionFiles ??
      (async () => ({
        document: nothing,
        page: nothing,
        pages: new Map(),
        style: nothing,
        script: nothing,
        icon: nothing,
      })),
    get state(): State {
      return options.sealed?.() ? { sealed: true, local } : open;
    },
  };
  const app = createApp(served, surfaces);

  const call: Appliance['call'] = async (
    method,
    path,
    body,
    { key = first.root.key, host, env, headers, raw } = {},
  ) => {
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await app.fetch(
      new Request(`http://kms.test${path}`, {
        method,
        headers: {
          ...(key !== null && { Authorization: `Bearer ${key}` }),
          ...(host !== undefined && { Host: host }),
          ...(sent !== undefined && { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(sent !== undefined && { body: sent }),
      }),
      env ?? {},
    );
    const text = await response.text();
    return {
      status: response.status,
      body: bodyOf(response.headers.get('content-type') ?? '', text),
      text,
      headers: response.headers,
    };
  };

  return {
    app,
    world,
    tenants,
    root: first.root,
    accountId: first.accountId,
    log,
    call,
    async keyWith(...flags) {
      const granted = Object.fromEntries(flags.map((flag) => [flag, true]));
      const { body } = await call('POST', '/auth/apikey', { accountId: first.accountId, flags: granted });
      return { key: body.key, keyid: body.keyid };
    },
    activity: async () => (await first.handle.store.activity.search({}, { limit: 100_000 })).items,
    advance(milliseconds) {
      clock.now += milliseconds;
    },
  };
}

function bodyOf(type: string, text: string): AnyJson {
  if (type.startsWith('text/')) return text;
  return type === 'application/json' && text !== '' ? JSON.parse(text) : undefined;
}

/**
 * A tenant directory with a fixed list. Names and hosts are case-insensitive; `*` answers every host that no other
 * tenant lists.
 */
export function tenantDirectory(
  tenants: readonly { readonly handle: TenantHandle; readonly hosts: readonly string[] }[],
): TenantDirectory {
  const byHost = new Map<string, TenantHandle>();
  const handles = tenants.map(({ handle }) => handle);
  for (const { handle, hosts } of tenants) {
    for (const host of hosts) byHost.set(host.toLowerCase(), handle);
  }
  return {
    byHost: (host) => byHost.get(host) ?? byHost.get('*'),
    // Asked each time: a test may rename a tenant.
    byName: (name) => handles.find(({ tenant }) => tenant.name.toLowerCase() === name),
    names: () => handles.map(({ tenant }) => tenant.name),
    handles: () => handles,
  };
}
