// Slows password guessing down: failures are counted for a name from an address, for a name from anywhere, and for an
// address with any name; and for a user like for a name, since one user may have several names. An address is an IPv4
// address, or the /64 of an IPv6 address, which one host has all of, and the /48 around it.
import { hashSecret } from '../crypto/secrets.ts';
import type { KmsError } from '../errors.ts';
import { networksOf } from '../model/addresses.ts';
import { nameKey } from '../store/tables/users.ts';
import { Backoff, type BackoffKeys, type BackoffOptions, type BackoffTurn } from './backoff.ts';

/** Counts are never shared between tenants. */
interface LoginOrigin {
  readonly tenant: string;
  readonly address: string;
}

interface LoginAttempt extends LoginOrigin {
  /** Absent if the try has no name. */
  readonly name?: string;
  /** The user, if known. */
  readonly userId?: string;
}

interface UserAttempt extends LoginOrigin {
  readonly userId: string;
}

export interface LoginBackoff {
  /**
   * Why tries from this origin are refused now, whatever the name; undefined if they are not. Changes nothing and is
   * cheap.
   */
  refusal(origin: LoginOrigin): KmsError | undefined;
  /** Waits for its turn. Throws `rate-limited` if the try has to wait; that does not lengthen the wait. */
  begin(attempt: LoginAttempt): Promise<BackoffTurn>;
  /**
   * The turn of a try whose name turned out to be this user's; undefined if tries under the user's other names make it
   * wait. The person trying must not learn that: it would reveal that those names belong to one user.
   */
  take(attempt: UserAttempt): BackoffTurn | undefined;
  /** Clears the counts of an origin. Call it once a login from there succeeded and its turn is over. */
  forgive(origin: LoginOrigin): void;
  /** Number of counts held. */
  readonly size: number;
}

const thresholds = { pair: 5, name: 50, address: 50, site: 50 } as const;
type Scope = keyof typeof thresholds;

export function loginBackoff(options: Omit<BackoffOptions<Scope>, 'thresholds' | 'what'>): LoginBackoff {
  const backoff = new Backoff({ ...options, thresholds, what: 'logins' });
  /** The last address that was read: with AWS's clients each request is a try, and most come from one. */
  let last = { address: '', networks: networksOf('') };
  const originKeys = ({ tenant, address }: LoginOrigin): BackoffKeys<Scope> => {
    if (address !== last.address) last = { address, networks: networksOf(address) };
    const { host, site } = last.networks;
    const keys: [Scope, string][] = [['address', `${tenant} ${host}`]];
    if (site !== undefined) keys.push(['site', `${tenant} ${site}`]);
    return keys;
  };
  /** Hashed, so that memory doesn't grow with the length of the name. */
  const keysOf = ({ tenant, address }: LoginOrigin, name: string): BackoffKeys<Scope> => {
    const named = `${tenant} ${hashSecret(name)}`;
    return [
      ['pair', `${named} ${networksOf(address).host}`],
      ['name', named],
    ];
  };
  return {
    refusal: (origin) => backoff.refusal(originKeys(origin)),
    begin(attempt) {
      const { name, userId } = attempt;
      const ofName = name === undefined ? [] : keysOf(attempt, `name ${nameKey(name)}`);
      const ofUser = userId === undefined ? [] : keysOf(attempt, `user ${userId}`);
      return backoff.begin([...ofName, ...ofUser, ...originKeys(attempt)]);
    },
    forgive: (origin) => backoff.forgive(originKeys(origin)),
    take: (attempt) => backoff.take(keysOf(attempt, `user ${attempt.userId}`)),
    get size() {
      return backoff.size;
    },
  };
}
