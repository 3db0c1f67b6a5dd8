// Slows the guessing of passwords down: failures in a row are counted for a name from an address, for a name and for an
// address, and past a threshold each further try must wait. A try is counted from its start: while what is under way could
// use up the tries left, the next ones wait for the outcome, so that no number of parallel tries gets past the count.
import { hashSecret } from '../crypto/api-key.ts';
import { KmsError } from '../errors.ts';
import { withoutCase } from '../store/tables/users.ts';

export interface LoginTry {
  failed(): void;
  succeeded(): void;
  /** Neither: the password was not looked at. */
  abandoned(): void;
}

export interface LoginAttempt {
  /** Nothing is counted across tenants. */
  readonly tenant: string;
  readonly name: string;
  readonly address: string;
}

export interface LoginBackoff {
  /** Waits for its turn. Throws `rate-limited` where the try has to wait, which lengthens nothing. */
  begin(attempt: LoginAttempt): Promise<LoginTry>;
}

export interface BackoffOptions {
  /** Milliseconds. */
  now(): number;
  /** Names, addresses and pairs remembered, each; the longest untouched goes first. */
  readonly remembered?: number;
  /** Tries that may wait for the outcome of others. */
  readonly waiting?: number;
}

/** Failures in a row after which tries must wait. */
const thresholds = { pair: 5, name: 50, address: 50 } as const;
const firstWait = 1_000;
const longestWait = 900_000;

interface Counter {
  readonly threshold: number;
  failures: number;
  underWay: number;
  waitUntil: number;
}

export function loginBackoff({ now, remembered = 20_000, waiting = 1_000 }: BackoffOptions): LoginBackoff {
  const scopes = {
    pair: new Map<string, Counter>(),
    name: new Map<string, Counter>(),
    address: new Map<string, Counter>(),
  };
  let queue: (() => void)[] = [];

  function counter(scope: keyof typeof scopes, key: string): Counter {
    const counters = scopes[scope];
    const found = counters.get(key) ?? { threshold: thresholds[scope], failures: 0, underWay: 0, waitUntil: 0 };
    counters.delete(key);
    counters.set(key, found);
    for (const [oldest, { underWay }] of counters) {
      if (counters.size <= remembered) break;
      if (underWay === 0 && oldest !== key) counters.delete(oldest);
    }
    return found;
  }

  function settle(counters: readonly Counter[], outcome: (each: Counter) => void): void {
    for (const each of counters) {
      each.underWay--;
      outcome(each);
    }
    const woken = queue;
    queue = [];
    for (const wake of woken) wake();
  }

  return {
    async begin({ tenant, name, address }) {
      // Hashed, so that what is remembered of a name doesn't grow with it.
      const nameKey = `${tenant} ${hashSecret(withoutCase(name))}`;
      const addressKey = `${tenant} ${networkOf(address)}`;
      for (;;) {
        const counters = [
          counter('pair', `${nameKey} ${addressKey}`),
          counter('name', nameKey),
          counter('address', addressKey),
        ];
        const wait = Math.max(...counters.map(({ waitUntil }) => waitUntil)) - now();
        if (wait > 0) throw mustWait(wait);
        const undecided = counters.some((each) => each.underWay > 0 && each.failures + each.underWay >= each.threshold);
        if (!undecided) {
          for (const each of counters) each.underWay++;
          return once({
            failed: () => settle(counters, (each) => fail(each, now())),
            succeeded: () => settle(counters, forgive),
            abandoned: () => settle(counters, () => {}),
          });
        }
        if (queue.length >= waiting) throw mustWait(firstWait);
        await new Promise<void>((wake) => queue.push(wake));
      }
    },
  };
}

function fail(counter: Counter, now: number): void {
  counter.failures++;
  const past = counter.failures - counter.threshold;
  if (past >= 0) counter.waitUntil = now + Math.min(longestWait, firstWait * 2 ** past);
}

function forgive(counter: Counter): void {
  counter.failures = 0;
  counter.waitUntil = 0;
}

function mustWait(milliseconds: number): KmsError {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1_000));
  return new KmsError('rate-limited', `too many failed logins; try again in ${seconds} s`, { retryAfter: seconds });
}

/** A try has one outcome: the first that it is told. */
function once(outcomes: LoginTry): LoginTry {
  let told = false;
  const tell = (outcome: () => void) => () => {
    if (told) return;
    told = true;
    outcome();
  };
  return {
    failed: tell(outcomes.failed),
    succeeded: tell(outcomes.succeeded),
    abandoned: tell(outcomes.abandoned),
  };
}

/** What counts as one address: an IPv4 address, or the /64 of an IPv6 address, which one host has all of. */
function networkOf(address: string): string {
  const bare = address
    .toLowerCase()
    .replace(/^::ffff:(?=\d+\.)/, '')
    .replace(/%.*$/, '');
  if (!bare.includes(':')) return bare;
  const [head = '', tail] = bare.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':');
    while (groups.length + after.length < 8) groups.push('0');
    groups.push(...after);
  }
  return groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}
