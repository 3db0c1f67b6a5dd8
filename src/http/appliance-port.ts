// AppliancePort is what the app needs of an appliance: what is there all the time, and the state of the moment, sealed
// or open, which is asked for once for each request.

import type { AnswerOf, BodyOf, ParamsOf, QueryOf, Sent } from '../api/endpoints.ts';
import type { LocalId, LocalOf } from '../api/local-endpoints.ts';
import type { Backups, SealStatus, UnsealStep } from '../api/system.ts';
import type { World } from '../core/context.ts';
import type { Origin } from '../core/credential.ts';
import { defaultLifetimes, type Lifetimes, type Mailer } from '../core/links.ts';
import { type LoginBackoff, loginBackoff } from '../core/login-backoff.ts';
import type { PasswordHasher } from '../core/logins.ts';
import type { OidcClient } from '../core/oidc.ts';
import { type MailLimit, mailLimit } from '../core/password-reset.ts';
import type { KmsError } from '../errors.ts';
import type { ConsoleFiles, DescriptionFiles } from '../model/program-files.ts';
import type { FairLimits } from './fair-queue.ts';
import type { Served } from './respond.ts';
import type { TenantDirectory, TenantHandle } from './tenant-directory.ts';

/** Awaited between the parts of long work; undefined where others need no turn. */
export type Turn = () => Promise<void> | undefined;

export interface AppliancePort {
  readonly world: World;
  readonly logger: Logger;
  /** Bytes of a request's body. */
  readonly bodyLimit: number;
  /** Of requests at once, where they are not the usual ones. */
  readonly fairLimits?: FairLimits | undefined;
  readonly sealing: Sealing;
  /** Whoever serves a request asks once, and goes on with that: the appliance may be sealed meanwhile. */
  readonly state: State;
  /** Awaited between the parts of a long answer, so that others have their turn. */
  readonly turn: Turn;
  /** Awaited before the transaction of a request: a rest where long work is due for one. */
  readonly requestTurn: Turn;
  /** The console. */
  consoleFiles(): Promise<ConsoleFiles>;
  /** The API description. */
  descriptionFiles(): Promise<DescriptionFiles>;
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

export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export type State = SealedState | OpenState;

/** Without keys: health, the console's files and the steps to open it are all that is answered. */
export interface SealedState {
  readonly sealed: true;
  readonly local: Pick<LocalHandlers, 'applianceStatus' | 'sealAppliance'>;
}

/** With tenants, and the ways to act on the whole appliance. */
export interface OpenState {
  readonly sealed: false;
  readonly tenants: TenantDirectory;
  /** Where clients reach the appliance, without a slash at the end. */
  readonly baseUrl: string;
  readonly people: People;
  readonly meter: Meter;
  readonly local: LocalHandlers;
  readiness(): Readiness;
  /** Why nothing can be changed now, while reading goes on; undefined when it can. */
  refuseWrites(): KmsError | undefined;
  /** The whole appliance as a backup, sealed; nothing is done before the first piece is asked for. */
  backup(): AsyncIterable<Uint8Array>;
  /** Those that the appliance makes by itself. */
  backups(): Backups;
  /** Begins one into the configured directory, where there is one; that it was asked for is recorded already. */
  startBackup(): void;
  /** Records an act on the whole appliance in the logs of all tenants but the one that has its record already. */
  recordInOthers(action: 'system.seal' | 'system.backup', handle: TenantHandle): Promise<void>;
  /** The process's numbers and this tenant's, as text for Prometheus. */
  metrics(handle: TenantHandle): Promise<string>;
  /**
   * What `Kms-State` says of a tenant to those that it knows: which appliance, which epoch of it, how many
   * transactions.
   */
  stateOf(handle: TenantHandle): string;
}

/** Whoever counts answers. Nothing may be done per answer but add to numbers. */
export interface Meter {
  /** Asked once for each route; what it answers is told of each request to it, with the milliseconds that it took. */
  route(action: string): (served: Served, milliseconds: number) => void;
}

export interface Readiness {
  readonly ok: boolean;
  /** Why not, one sentence. */
  readonly reason?: string;
  /** What else `/readyz` tells. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The appliance's master key, as people put it in and out of reach. */
export interface Sealing {
  status(): SealStatus;
  /**
   * Why a try from there is refused, whatever it is; undefined when it isn't. Looks only: to be asked before anything
   * is read.
   */
  refusal(from: Origin): KmsError | undefined;
  /**
   * Takes one step towards the open appliance, or all of them. Throws `refused` and `invalid` for what does not help,
   * `forbidden` for what is the local administrator's.
   */
  unseal(step: UnsealStep, from: Origin): Promise<SealStatus>;
  /**
   * Forgets the keys, once the requests under way have ended, until it is unsealed on purpose. Resolves when that is
   * remembered.
   */
  seal(): Promise<void>;
}

/** What stands behind the local endpoints that concern the appliance as a whole. */
export type LocalHandlers = {
  readonly [Id in LocalId as LocalOf<Id>['access']['of'] extends 'appliance' ? Id : never]: (
    input: LocalInput<LocalOf<Id>>,
  ) => Promise<LocalAnswer<LocalOf<Id>>>;
};

/** What a local endpoint is asked. */
export interface LocalInput<E> {
  readonly params: ParamsOf<E>;
  readonly query: QueryOf<E>;
  readonly body: Sent<BodyOf<E>>;
}

/**
 * The body of status 200, or the pieces of what is no JSON, made while they are read; a failure on the way breaks the
 * connection off.
 */
export type LocalAnswer<E> = E extends { readonly binary: true } | { readonly text: string }
  ? AsyncIterable<string | Uint8Array>
  : Sent<AnswerOf<E>>;

/** What logins, invites and password resets need of the world: slow hashing, backoff, mail, lifetimes. */
export interface People {
  readonly hasher: PasswordHasher;
  readonly backoff: LoginBackoff;
  /** Of AppRole logins, apart: a program with a wrong secret keeps nobody at its address from logging in. */
  readonly appRoleBackoff: LoginBackoff;
  readonly resetMails: MailLimit;
  readonly lifetimes: Lifetimes;
  readonly oidc: OidcClient;
  /** Absent where no mail is set up. */
  readonly mailer?: Mailer;
}

export interface PeopleOptions {
  readonly hasher: PasswordHasher;
  readonly oidc: OidcClient;
  readonly lifetimes?: Partial<Lifetimes>;
  readonly mailer?: Mailer;
  /** Nodes that serve the same people: what guards against guessing and flooding is divided by them. */
  readonly nodes?: (() => number) | undefined;
}

export function peopleOf(
  { elapsed, random }: Pick<World, 'elapsed' | 'random'>,
  { hasher, oidc, lifetimes, mailer, nodes }: PeopleOptions,
): People {
  return {
    hasher,
    backoff: loginBackoff({ elapsed, random, sharers: nodes }),
    appRoleBackoff: loginBackoff({ elapsed, random, sharers: nodes }),
    resetMails: mailLimit({ elapsed, sharers: nodes }),
    oidc,
    lifetimes: { ...defaultLifetimes, ...lifetimes },
    ...(mailer && { mailer }),
  };
}
