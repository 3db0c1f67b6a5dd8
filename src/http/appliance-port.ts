// AppliancePort is what the app needs of an appliance: the parts that are always there, and the current state, sealed
// or open, which each request reads once.

import type { Backups } from '../api/backups.ts';
import type { AnswerOf, BodyOf, ParamsOf, QueryOf, Sent } from '../api/endpoints.ts';
import type { LocalId, LocalOf } from '../api/local-endpoints.ts';
import type { Overview } from '../api/overview.ts';
import type { SealStatus, UnsealStep } from '../api/system.ts';
import type { Notifier } from '../core/approval-notices.ts';
import type { World } from '../core/context.ts';
import type { Origin } from '../core/credential.ts';
import type { KeyWorker } from '../core/key-rehearsal.ts';
import { defaultLifetimes, type Lifetimes, type Mailer } from '../core/links.ts';
import { type LoginBackoff, loginBackoff } from '../core/login-backoff.ts';
import type { PasswordHasher } from '../core/logins.ts';
import type { OidcClient } from '../core/oidc.ts';
import { type MailLimit, mailLimit } from '../core/password-reset.ts';
import { WorkloadBrake } from '../core/proofs/login-brake.ts';
import type { TokenVerifier } from '../core/proofs/token-verifier.ts';
import type { KmsError } from '../errors.ts';
import type { Label } from '../model/label.ts';
import type { ConsoleFiles, DescriptionFiles, Guide } from '../model/program-files.ts';
import type { FairLimits } from './fair-queue.ts';
import type { RequestResult } from './respond.ts';
import type { TenantDirectory, TenantHandle } from './tenant-directory.ts';

/** Awaited between the parts of long work, to let other requests run; undefined if it need not yield. */
export type Turn = () => Promise<void> | undefined;

export interface AppliancePort {
  readonly world: World;
  readonly logger: Logger;
  /** Largest request body, in bytes. */
  readonly bodyLimit: number;
  /** Limits of concurrent requests. Default: the usual ones. */
  readonly fairLimits?: FairLimits | undefined;
  /** Shown to people before they log in, sealed or not. */
  readonly label?: Label | undefined;
  readonly sealing: Sealing;
  /** Each request reads this once and keeps the result: the appliance may be sealed in the meantime. */
  readonly state: State;
  /** Awaited between the parts of a long answer, to let other requests run. */
  readonly turn: Turn;
  /** Awaited before the transaction of a request: a pause if long work is due for one. */
  readonly requestTurn: Turn;
  /** The console. */
  consoleFiles(): Promise<ConsoleFiles>;
  /** The API description. */
  descriptionFiles(): Promise<DescriptionFiles>;
  /** The documents for people. */
  guides(): Promise<readonly Guide[]>;
}

/** Pino's interface, as far as it is used. */
export interface Logger {
  /** Absent: all levels are written. */
  readonly level?: string;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export type State = SealedState | OpenState;

/** Without keys. Only health, the console's files and the steps to unseal are served. */
export interface SealedState {
  readonly sealed: true;
  readonly local: Pick<LocalHandlers, 'applianceStatus' | 'sealAppliance'>;
}

/** With tenants, and the operations on the whole appliance. */
export interface OpenState {
  readonly sealed: false;
  readonly tenants: TenantDirectory;
  /** The address that clients use, without a trailing slash. */
  readonly baseUrl: string;
  readonly people: People;
  readonly keyWorker: KeyWorker;
  readonly meter: Meter;
  readonly local: LocalHandlers;
  /** Aborted when it is about to be closed, so that nothing waits that it would wait for. */
  readonly closing: AbortSignal;
  readiness(): Readiness;
  /** Why writes are refused now, while reads continue; undefined if they are allowed. */
  refuseWrites(): KmsError | undefined;
  /** The whole appliance as a sealed backup; nothing is done before the first piece is read. */
  backup(): AsyncIterable<Uint8Array>;
  /** The scheduled backups. */
  backups(): Backups;
  /** Starts a backup into the configured directory, if there is one; the request for it is already recorded. */
  startBackup(): void;
  /** Records an act on the whole appliance in the logs of all tenants but the one that already has its record. */
  recordInOthers(action: 'system.seal' | 'system.backup', handle: TenantHandle): Promise<void>;
  /** The state of the tenant's files. */
  logNumbers(handle: TenantHandle): LogNumbers;
  /** Metrics of the process and this tenant, as text for Prometheus. */
  metrics(handle: TenantHandle): Promise<string>;
  /** The value of `Kms-State` for a tenant's authenticated callers: appliance, epoch, number of transactions. */
  stateOf(handle: TenantHandle): string;
}

type LogNumbers = NonNullable<Overview['log']>;

/** Counts answers. It may only add to numbers, since it runs for each of them. */
export interface Meter {
  /** Called once for each route; the result is called for each of its requests, with the milliseconds it took. */
  route(action: string): (served: RequestResult, milliseconds: number) => void;
}

export interface Readiness {
  readonly ok: boolean;
  /** Why it is not ready, in one sentence. */
  readonly reason?: string;
  /** Further fields of `/readyz`. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Seals and unseals the appliance's master key. */
export interface Sealing {
  status(): SealStatus;
  /**
   * Why no unseal step from this origin is accepted now, whatever it holds; undefined if it may be tried. Changes
   * nothing: call it before reading the body.
   */
  refusal(from: Origin): KmsError | undefined;
  /**
   * Takes one step towards unsealing, or all of them. Throws `refused` or `invalid` for a step that does not help,
   * `forbidden` for one reserved to the local administrator.
   */
  unseal(step: UnsealStep, from: Origin): Promise<SealStatus>;
  /**
   * Forgets the keys once the requests under way have ended; the appliance stays sealed until it is unsealed on
   * purpose. Resolves when this is remembered.
   */
  seal(): Promise<void>;
}

/** Handlers of the local endpoints that concern the appliance as a whole. */
export type LocalHandlers = {
  readonly [Id in LocalId as LocalOf<Id>['access']['of'] extends 'appliance' ? Id : never]: (
    input: LocalInput<LocalOf<Id>>,
  ) => Promise<LocalAnswer<LocalOf<Id>>>;
};

/** Input of a local endpoint. */
export interface LocalInput<E> {
  readonly params: ParamsOf<E>;
  readonly query: QueryOf<E>;
  readonly body: Sent<BodyOf<E>>;
  /** The digest of the plan that the request belongs to, if it names one. */
  readonly plan?: string;
}

/**
 * The body of status 200, or the pieces of a binary or text answer, made while they are read; a failure midway breaks
 * the connection.
 */
export type LocalAnswer<E> = E extends { readonly binary: true } | { readonly text: string }
  ? AsyncIterable<string | Uint8Array>
  : Sent<AnswerOf<E>>;

/** Services that logins, invites and password resets use: slow hashing, backoff, mail, lifetimes, issuers' keys. */
export interface People {
  readonly hasher: PasswordHasher;
  readonly backoff: LoginBackoff;
  /**
   * Backoff of AppRole logins, kept apart so that a program with a wrong secret does not lock out people at its
   * address.
   */
  readonly appRoleBackoff: LoginBackoff;
  /** The brake on logins by proofs of API keys. */
  readonly workloads: WorkloadBrake;
  readonly tokens: TokenVerifier;
  readonly resetMails: MailLimit;
  readonly lifetimes: Lifetimes;
  readonly oidc: OidcClient;
  /** Absent if no mail is set up. */
  readonly mailer?: Mailer;
  /** Absent if approvers are told by no webhook. */
  readonly notifier?: Notifier;
}

export interface PeopleOptions {
  readonly hasher: PasswordHasher;
  readonly oidc: OidcClient;
  readonly tokens: TokenVerifier;
  readonly lifetimes?: Partial<Lifetimes>;
  readonly mailer?: Mailer;
  readonly notifier?: Notifier;
  /** Number of nodes that serve the same people: the limits against guessing and flooding are divided by it. */
  readonly nodes?: (() => number) | undefined;
}

export function peopleOf(
  { elapsed, random }: Pick<World, 'elapsed' | 'random'>,
  { hasher, oidc, tokens, lifetimes, mailer, notifier, nodes }: PeopleOptions,
): People {
  return {
    hasher,
    backoff: loginBackoff({ elapsed, random, sharers: nodes }),
    appRoleBackoff: loginBackoff({ elapsed, random, sharers: nodes }),
    workloads: new WorkloadBrake(loginBackoff({ elapsed, random, sharers: nodes }), elapsed),
    tokens,
    resetMails: mailLimit({ elapsed, sharers: nodes }),
    oidc,
    lifetimes: { ...defaultLifetimes, ...lifetimes },
    ...(mailer && { mailer }),
    ...(notifier && { notifier }),
  };
}
