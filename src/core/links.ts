// Links that let people in, the mails that carry them, and lifetimes of links and sessions.
import { timestamp } from '../model/timestamp.ts';
import type { User } from '../store/tables/users.ts';

/** All in milliseconds. */
export interface Lifetimes {
  /** An access token. */
  readonly access: number;
  /** A chain of refreshes, counted from the login. */
  readonly session: number;
  readonly invite: number;
  readonly reset: number;
  /** The lease of a workload token, from its login or renewal on. */
  readonly workload: number;
}

const hour = 3_600_000;

export const defaultLifetimes: Lifetimes = {
  access: hour,
  session: 12 * hour,
  invite: 168 * hour,
  reset: hour,
  workload: hour,
};

export interface LinkSettings {
  readonly lifetimes: Lifetimes;
  /** The tenant's public address, without a trailing slash. */
  readonly baseUrl: string;
}

/** URL of the console page that consumes a one-time token. */
export function linkTo(page: 'invite' | 'reset' | 'set-up', token: string, { baseUrl }: LinkSettings): string {
  return `${baseUrl}/console/${page}?token=${token}`;
}

export interface Mail {
  /** One address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Sends mail through an outside server. */
export interface Mailer {
  send(mail: Mail): Promise<void>;
}

type Addressee = Pick<User, 'email' | 'username' | 'displayName'>;

export function inviteMail(user: Addressee, url: string, expiresAt: number): Mail {
  return {
    to: user.email,
    subject: 'Your invitation to the key management service',
    text: `${greeting(user)}
You are invited to the key management service as ${user.username}.
Choose your password here:

${url}

The link works once, until ${readable(expiresAt)}.
`,
  };
}

export function resetMail(user: Addressee, url: string, expiresAt: number): Mail {
  return {
    to: user.email,
    subject: 'Reset your password for the key management service',
    text: `${greeting(user)}
Somebody, hopefully you, asked to reset the password of ${user.username}.
Choose a new one here:

${url}

The link works once, until ${readable(expiresAt)}. If it was not you, nothing needs doing: your password stays as it is.
`,
  };
}

function greeting({ displayName }: Addressee): string {
  return `Hello ${displayName.replace(/[\p{Cc}\s]+/gu, ' ')},\n`;
}

function readable(time: number): string {
  return `${timestamp(time).slice(0, 16).replace('T', ' ')} UTC`;
}
