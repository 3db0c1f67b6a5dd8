// AppDeps is what the app is given by whoever composes it: tenants, the world, a logger, limits, and the ways to act on
// the whole appliance.
import type { SealStatus, UnsealStep } from '../api/system.ts';
import type { World } from '../core/context.ts';
import { defaultLifetimes, type Lifetimes, type Mailer } from '../core/links.ts';
import { type LoginBackoff, loginBackoff } from '../core/login-backoff.ts';
import type { PasswordHasher } from '../core/logins.ts';
import { type MailLimit, mailLimit } from '../core/password-reset.ts';
import type { KmsError } from '../errors.ts';
import type { LocalDeps } from './local.ts';
import type { PageDeps } from './pages.ts';
import type { RequestEnv } from './request.ts';
import type { RequestLogDeps } from './request-log.ts';
import type { TenantHandle } from './tenants.ts';

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
  refusal(from: RequestEnv): KmsError | undefined;
  /**
   * Takes one step towards the open appliance, or all of them. Throws `refused` and `invalid` for what does not help,
   * `forbidden` for what is the local administrator's.
   */
  unseal(step: UnsealStep, from: RequestEnv): Promise<SealStatus>;
  /**
   * Forgets the keys, once the requests under way have ended, until it is unsealed on purpose. Resolves when that is
   * remembered.
   */
  seal(): Promise<void>;
}

export interface AppDeps extends LocalDeps, PageDeps, RequestLogDeps {
  readonly world: World;
  /** Where clients reach the appliance, without a slash at the end. */
  readonly baseUrl: string;
  readonly people: PeopleDeps;
  ready(): Readiness;
  /** Sealing and unsealing, where that can be done from outside. */
  readonly sealing?: Sealing;
  /** The whole appliance as a backup, sealed; nothing is done before the first piece is asked for. */
  backup?(): AsyncIterable<Uint8Array>;
  /** Records an act on the whole appliance in the logs of all tenants but the one that has its record already. */
  recordInOthers?(action: 'system.seal' | 'system.backup', handle: TenantHandle): Promise<void>;
  /** The process's numbers and this tenant's, as text for Prometheus. */
  metrics?(handle: TenantHandle): Promise<string>;
  /**
   * What `Kms-State` says of a tenant to those that it knows: which appliance, which epoch of it, how many
   * transactions.
   */
  stateOf?(handle: TenantHandle): string;
}

/** What logins, invites and password resets need of the world: slow hashing, backoff, mail, lifetimes. */
export interface PeopleDeps {
  readonly hasher: PasswordHasher;
  readonly backoff: LoginBackoff;
  readonly resetMails: MailLimit;
  readonly lifetimes: Lifetimes;
  /** Absent where no mail is set up. */
  readonly mailer?: Mailer;
}

export interface PeopleOptions {
  readonly hasher: PasswordHasher;
  readonly lifetimes?: Partial<Lifetimes>;
  readonly mailer?: Mailer;
}

export function peopleDeps(
  { now, random }: Pick<World, 'now' | 'random'>,
  { hasher, lifetimes, mailer }: PeopleOptions,
): PeopleDeps {
  return {
    hasher,
    backoff: loginBackoff({ now, random }),
    resetMails: mailLimit({ now }),
    lifetimes: { ...defaultLifetimes, ...lifetimes },
    ...(mailer && { mailer }),
  };
}
