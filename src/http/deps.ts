// What the app is given by whoever composes it: tenants, the world, a logger, limits. And what each request is given beside
// its own bytes.
import type { Context as HonoContext } from 'hono';
import type { SealStatus, UnsealStep } from '../api/seal.ts';
import type { Tenant, World } from '../core/context.ts';
import type { KmsError } from '../errors.ts';
import type { Store } from '../store/port.ts';
import type { ConsoleFiles } from './console.ts';
import type { DescriptionFiles } from './description.ts';
import type { Meter } from './meter.ts';
import type { PeopleDeps } from './people.ts';

export interface TenantHandle {
  readonly tenant: Tenant;
  readonly store: Store;
  /** Where people reach this tenant, without a slash at the end, where that is not the appliance's own address. */
  readonly baseUrl?: string;
}

/** The tenants that are being served. Names and hosts are in lower case. */
export interface TenantDirectory {
  /** The tenant that lists the host (no port), or the one that lists `*`. */
  byHost(host: string): TenantHandle | undefined;
  byName(name: string): TenantHandle | undefined;
  names(): readonly string[];
}

/** Pino's shape, as far as it is used. */
export interface Logger {
  /** Absent = all are written. */
  readonly level?: string;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface Readiness {
  readonly ok: boolean;
  /** Why not, one sentence. */
  readonly reason?: string;
  /** What else `/readyz` tells. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** An endpoint for the administrator at the machine alone. To all others its path is unknown. */
export interface LocalRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for parameters. */
  readonly path: string;
  /** Answers the body of status 200, or a `LocalStream`; throws `KmsError`. Works while sealed and belongs to no tenant. */
  handle(input: LocalInput): Promise<object>;
}

export interface LocalInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** An object; empty where the request has no body. Not validated. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The tenant that the request names, where it names one. */
  readonly tenant: string | undefined;
}

/** The appliance's master key, as people put it in and out of reach. */
export interface Sealing {
  status(): SealStatus;
  /** Takes one step towards the open appliance, or all of them. Throws `refused` and `invalid` for what does not help. */
  unseal(step: UnsealStep, from: RequestEnv): Promise<SealStatus>;
  /** Forgets the keys, once the requests under way have ended. Answers at once. */
  seal(): void;
}

export interface AppDeps {
  readonly tenants: TenantDirectory;
  readonly world: World;
  /** Where clients reach the appliance, without a slash at the end. */
  readonly baseUrl: string;
  readonly logger: Logger;
  /** Bytes; 1 MiB when absent. */
  readonly bodyLimit?: number;
  /** What logins, invites and password resets need. */
  readonly people: PeopleDeps;
  ready(): Readiness;
  /** Whether the master key is out of reach: then all but health answers 503. Called for each request. */
  sealed?(): boolean;
  /** Why nothing can be changed now, while reading goes on; undefined when it can. Called for each request that changes something. */
  refuseWrites?(): KmsError | undefined;
  /** Sealing and unsealing, where that can be done from outside. */
  readonly sealing?: Sealing;
  readonly localRoutes?: readonly LocalRoute[];
  /** The whole appliance as a backup, sealed; nothing is done before the first piece is asked for. */
  backup?(): AsyncIterable<Uint8Array>;
  /** Counts answers; where it is absent nothing is counted. */
  readonly meter?: Meter;
  /** The process's numbers and this tenant's, as text for Prometheus. */
  metrics?(handle: TenantHandle): Promise<string>;
  /** What `Kms-State` says of a tenant to those that it knows: which appliance, which epoch of it, how many transactions. */
  stateOf?(handle: TenantHandle): string;
  /** The pages for people; where it is absent there are none. Called for each request to one. */
  consoleFiles?(): Promise<ConsoleFiles>;
  /** The API description, where it is served. Called for each request to it. */
  descriptionFiles?(): Promise<DescriptionFiles>;
}

/** Given with each request to `app.fetch(request, env)`. */
export interface RequestEnv {
  /** Came through the local socket or from within the process: without a credential of its own it acts as the local administrator. */
  readonly local?: boolean;
  readonly remoteAddress?: string;
  /** The request's headers by lower-case name, where whoever calls has them parsed; all else is read from the request. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
}

export type AppContext = HonoContext<{ Bindings: RequestEnv }>;
