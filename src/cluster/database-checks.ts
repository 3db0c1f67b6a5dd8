// Checks of the database that several nodes share: whether its acknowledged commits last, what a failover loses,
// whether its clock agrees with ours. The start and `kms doctor` report them in the same words.
import { KmsError } from '../errors.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { type Find, type Finding, Findings } from '../platform/finding.ts';
import { clockDistance, clockLimits, type EngineFacts, type SharedEngine } from '../store/shared/engine.ts';

const oldest = 140_000;

/** `name` is the database's URL without a password. Throws `EngineError`. */
export async function examineEngine(
  engine: Pick<SharedEngine, 'facts'>,
  name: string,
  now: () => number,
): Promise<readonly Finding[]> {
  const asked = now();
  const facts = await engine.facts();
  const findings = new Findings();
  const find = (severity: Finding['severity'], kind: string, message: string, advice: string): void =>
    findings.add(severity, kind, name, message, advice);
  if (facts.versionNumber < oldest) {
    find('error', 'engine-too-old', `it is PostgreSQL ${facts.version}, expected 14 or later`, 'bring it up to date');
  }
  if (!facts.fsync) {
    const message = 'fsync is off: a crash of its machine loses answered requests, or all of it';
    find('error', 'engine-no-fsync', message, 'set fsync = on there');
  }
  if (!facts.fullPageWrites) {
    const message = 'full_page_writes is off: a power cut can leave half a page, which nobody notices';
    find(
      'warning',
      'engine-torn-pages',
      message,
      'set full_page_writes = on there, unless its file system sees to that',
    );
  }
  if (!facts.isLocal && facts.tls === undefined) {
    const message = 'the connection arrives there unencrypted: something on the way ends TLS';
    find('warning', 'engine-in-clear', message, 'see that what is in between reaches it by TLS too');
  }
  if (facts.isSuperuser) {
    const message = 'the user is a superuser there';
    find('advice', 'engine-superuser', message, 'make a user that owns its database and has no other right');
  }
  findStandbys(facts, find);
  findClock(clockDistance(facts.now, asked, now()), find);
  return findings.all;
}

/**
 * Must be called before a store in the database is opened: reports the findings, and throws `refused` if a node must
 * not serve from it.
 */
export async function needSoundEngine(
  engine: Pick<SharedEngine, 'facts'>,
  name: string,
  now: () => number,
  onEvent: ((event: ApplianceEvent) => void) | undefined,
): Promise<void> {
  for (const { severity, message, advice } of await examineEngine(engine, name, now)) {
    if (severity === 'error') throw new KmsError('refused', `${name}: ${message}`, { hint: advice });
    if (severity === 'warning') onEvent?.({ level: 'warn', message: `${name}: ${message}; ${advice}` });
  }
}

type FindHere = (severity: Parameters<Find>[0], kind: string, message: string, advice: string) => void;

function findStandbys({ synchronousStandbys, standbys }: EngineFacts, find: FindHere): void {
  const loss =
    'a failover to one loses the requests that were answered since it last caught up; nodes notice, and say how many rows';
  const advice = 'name a standby in synchronous_standby_names there, and fail over to that one alone';
  if (synchronousStandbys !== '') {
    if (standbys && !standbys.some(({ isSynchronous }) => isSynchronous)) {
      const message = `it waits for a standby (${synchronousStandbys}), and none is connected: nothing can be written`;
      find('warning', 'engine-standby-away', message, 'start the standby, or name another one');
    }
    return;
  }
  if (standbys?.length === 0) {
    const message = 'it has no standby: everything is on its disk alone';
    find('advice', 'engine-alone', message, 'keep backups elsewhere, or give it a synchronous standby');
    return;
  }
  const names = standbys?.map(({ name }) => name).join(', ');
  const which = names === undefined ? 'no standby is synchronous' : `its standby is not synchronous (${names})`;
  find('warning', 'engine-loses', `${which}: ${loss}`, advice);
}

function findClock(apart: number, find: FindHere): void {
  if (apart < clockLimits.said) return;
  const severity = apart < clockLimits.most ? 'warning' : 'error';
  find(severity, 'engine-clock', apartText(apart), clockAdvice);
}

export const clockAdvice = `set the clock that is wrong; from ${clockLimits.most / 1000} s on a node does not serve`;

export function apartText(apart: number): string {
  return `its clock and that of this machine are ${(apart / 1000).toFixed(1)} seconds apart`;
}
