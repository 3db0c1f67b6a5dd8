// The list of concerns on the overview, each with a link to the place that fixes it. It uses only data that the session
// may see.
import type { ConsolePageName } from '../../api/console-pages.ts';
import type { AnswerTo } from '../../client/client.ts';
import { epochTimeOf } from '../../model/timestamp.ts';
import { countText, spanText } from '../text.ts';
import type { RingRotation } from './counts.ts';
import type { Readiness } from './health.ts';

export type Backups = AnswerTo<'getBackups'>;

type EndingKey = NonNullable<AnswerTo<'getOverview'>['apikeys']>[number];

type EndingProof = NonNullable<AnswerTo<'getOverview'>['proofs']>[number];

/** Data known so far; undefined if not available, or not yet. */
interface Known {
  readonly state: Readiness | undefined;
  readonly backups: Backups | undefined;
  readonly keys: readonly EndingKey[] | undefined;
  readonly proofs: readonly EndingProof[] | undefined;
  readonly rings: readonly RingRotation[] | undefined;
  readonly denials: Denials | undefined;
}

export interface Concern {
  readonly tone: 'bad' | 'warn';
  /** The name of the thing concerned; may be any text. */
  readonly name?: string;
  /** Follows the name, if there is one. */
  readonly text: string;
  readonly mend: { readonly title: string } & (
    | { readonly anchor: string }
    | {
        readonly page: ConsolePageName;
        readonly params?: Readonly<Record<string, string>>;
        readonly query?: Readonly<Record<string, string>>;
      }
  );
}

const second = 1000;
const hour = 3_600 * second;
const day = 24 * hour;

/** Age in seconds from which a backup is reported. */
export const oldAfter = 2 * 86_400;
/** Keys are reported from this long before their expiry until this long after. */
const endsSoon = 14 * day;
const endedLately = 3 * day;
/** Maximum number of concerns of one kind; the rest are counted. */
const mostOfSort = 5;

export function concernsOf(
  { state, backups, keys = [], proofs = [], rings = [], denials }: Known,
  now: number,
): Concern[] {
  return [
    ...(state ? ofState(state) : []),
    ...(backups ? ofBackups(backups, now) : []),
    ...ofKeys(keys, now),
    ...ofProofs(proofs, now),
    ...ofRings(rings, now),
    ...(denials ? ofDenials(denials, now) : []),
  ];
}

function ofState({ faults, isReady, reason }: Readiness): Concern[] {
  const mend = { title: 'Details', anchor: 'state' };
  const concerns: Concern[] = [];
  if (!isReady) concerns.push({ tone: 'bad', text: `The service is not serving: ${reason}.`, mend });
  if (faults) {
    const which = faults.count === 1 ? 'One file' : `${countText(faults.count)} files`;
    concerns.push({
      tone: 'bad',
      text: `${which} of the activity log do${faults.count === 1 ? 'es' : ''} not verify.`,
      mend,
    });
  }
  return concerns;
}

function ofBackups({ configured, lastVerified, lastFailure, running }: Backups, now: number): Concern[] {
  const mend = { title: configured ? 'Back up now' : 'Make one', anchor: 'backups' };
  if (running) return [];
  if (lastFailure) return [{ tone: 'bad', text: `The last backup failed: ${lastFailure.message}.`, mend }];
  if (!lastVerified) return [{ tone: 'bad', text: 'There is no verified backup.', mend }];
  const age = (now - epochTimeOf(lastVerified.at)) / second;
  if (age <= oldAfter) return [];
  return [{ tone: 'bad', text: `The last verified backup is ${spanText(age)} old.`, mend }];
}

/** Those that end soon or ended lately, the most urgent first. `leftOf` tells the milliseconds that are left. */
function endingSoon<T>(things: readonly T[], leftOf: (thing: T) => number) {
  return things
    .map((thing) => ({ thing, left: leftOf(thing) }))
    .filter(({ left }) => left <= endsSoon && left > -endedLately)
    .sort((a, b) => a.left - b.left);
}

function ofKeys(keys: readonly EndingKey[], now: number): Concern[] {
  return someOf(
    endingSoon(keys, ({ expiresAt }) => expiresAt - now),
    ({ thing: { keyid, name }, left }) => ({
      tone: left <= 0 ? 'bad' : 'warn',
      name: `API key ${name === '' ? keyid : name}`,
      text: left <= 0 ? `expired ${spanText(-left / second)} ago.` : `expires in ${spanText(left / second)}.`,
      mend: { title: 'Change its expiry', page: 'apikey', params: { id: keyid } },
    }),
    (rest) => ({
      tone: 'warn',
      text: `${countText(rest)} more API keys expire soon.`,
      mend: { title: 'All API keys', page: 'apikeys' },
    }),
  );
}

function ofProofs(proofs: readonly EndingProof[], now: number): Concern[] {
  return someOf(
    endingSoon(proofs, ({ endsAt }) => endsAt - now),
    ({ thing: { keyid, name }, left }) => ({
      tone: left <= 0 ? 'bad' : 'warn',
      name: `API key ${name === '' ? keyid : name}`,
      text:
        left <= 0
          ? `has a client certificate that ended ${spanText(-left / second)} ago.`
          : `has a client certificate that ends in ${spanText(left / second)}.`,
      mend: { title: 'Its proofs', page: 'apikey', params: { id: keyid } },
    }),
    (rest) => ({
      tone: 'warn',
      text: `${countText(rest)} more client certificates end soon.`,
      mend: { title: 'All API keys', page: 'apikeys' },
    }),
  );
}

function ofRings(rings: readonly RingRotation[], now: number): Concern[] {
  const old = rings.flatMap(({ ring, since, rotateAfter }) => {
    const over = rotateAfter === undefined ? 0 : now - since - rotateAfter * second;
    return over > 0 ? [{ ring, over }] : [];
  });
  return someOf(
    old.sort((a, b) => b.over - a.over),
    ({ ring, over }) => ({
      tone: 'warn',
      name: `Keyring ${ring}`,
      text: `has a key that should have been replaced ${spanText(over / second)} ago; the next encrypt replaces it.`,
      mend: { title: 'Rotate it', page: 'keyring', params: { name: ring } },
    }),
    (rest) => ({
      tone: 'warn',
      text: `${countText(rest)} more keyrings have a key that is too old.`,
      mend: { title: 'All keyrings', page: 'keyrings' },
    }),
  );
}

function someOf<T>(all: readonly T[], one: (item: T) => Concern, others: (rest: number) => Concern): Concern[] {
  const rest = all.length - mostOfSort;
  return [...all.slice(0, mostOfSort).map(one), ...(rest > 0 ? [others(rest)] : [])];
}

interface Denials {
  readonly deniedLastHour: number;
  /** In the rest of the day before, as far as it was counted. */
  readonly deniedBefore: number;
  /** Milliseconds of that rest. */
  readonly countedBefore: number;
}

/** Fewer denials in an hour are taken for typing errors. */
const fewDenials = 10;
const rise = 3;

/** Reports the denials of the last hour if they exceed `rise` times the hourly average of the day before. */
function ofDenials({ deniedLastHour: lately, deniedBefore, countedBefore }: Denials, now: number): Concern[] {
  const before = countedBefore < hour ? 0 : deniedBefore / (countedBefore / hour);
  if (lately < fewDenials || lately <= rise * before) return [];
  const usual = before < 1 ? 'less than one' : `about ${countText(Math.round(before))}`;
  return [
    {
      tone: 'bad',
      text: `${countText(lately)} requests were denied in the last hour; before that, ${usual} an hour.`,
      mend: {
        title: 'See which',
        page: 'activity',
        query: { valid: 'false', start: new Date(now - hour).toISOString().slice(0, 16) },
      },
    },
  ];
}
