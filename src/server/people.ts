// What logins, invites and password resets stand on in a real appliance: a thread that hashes passwords, and a mail server
// where the operator names one.
import type { Lifetimes } from '../core/access-settings.ts';
import type { World } from '../core/context.ts';
import { type PeopleDeps, peopleDeps } from '../http/people.ts';
import { type MailSettings, smtpMailer } from './mail.ts';
import { passwordWorker } from './password-worker.ts';
import { startWorker } from './runtime.ts';
import type { Work } from './worker-jobs.ts';

export interface PeopleSettings {
  readonly lifetimes?: Partial<Lifetimes>;
  readonly mail?: MailSettings;
}

/** The thread is started by the first password; `close` ends it. */
export function servedPeople(
  world: World,
  { lifetimes = {}, mail }: PeopleSettings = {},
): { readonly people: PeopleDeps; close(): Promise<void> } {
  const start = () => startWorker({ kind: 'passwords' } satisfies Work);
  const hasher = passwordWorker({ start, random: world.random });
  const people = peopleDeps(world, { hasher, lifetimes, ...(mail && { mailer: smtpMailer(mail) }) });
  return { people, close: () => hasher.close() };
}
