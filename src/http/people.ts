// What logins, invites and password resets need of the world: slow hashing, brakes, mail, lifetimes.
import { defaultLifetimes, type Lifetimes, type LinkSettings } from '../core/access-settings.ts';
import type { World } from '../core/context.ts';
import { type LoginBackoff, loginBackoff } from '../core/login-backoff.ts';
import { type MailLimit, mailLimit } from '../core/mail-limit.ts';
import type { PasswordHasher } from '../core/password-hasher.ts';
import type { Mailer } from '../core/user-mails.ts';
import type { Outside } from './route.ts';

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

export function peopleDeps({ now }: Pick<World, 'now'>, { hasher, lifetimes, mailer }: PeopleOptions): PeopleDeps {
  return {
    hasher,
    backoff: loginBackoff({ now }),
    resetMails: mailLimit({ now }),
    lifetimes: { ...defaultLifetimes, ...lifetimes },
    ...(mailer && { mailer }),
  };
}

/** Where the links lead that people of this tenant get. */
export function linksOf({ deps, handle }: Outside): LinkSettings {
  return { lifetimes: deps.people.lifetimes, baseUrl: handle.baseUrl ?? deps.baseUrl };
}
