// The mails that people get, as plain text. How they are sent is the server's matter.
import type { User } from '../store/tables/users.ts';
import { timestamp } from './time.ts';

export interface Mail {
  /** One address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Sends mails, somewhere outside. */
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
