// Slows the guessing of passwords down: failures are counted for a name from an address, for a name from anywhere, and
// for an address with any name; and for a user as for a name, since one may be called by several. What an address is:
// an IPv4 address, or the /64 of an IPv6 address, which one host has all of, and the /48 around it.
import { hashSecret } from '../crypto/secrets.ts';
import type { KmsError } from '../errors.ts';
import { addressBytes, groupsOf, plainAddress } from '../model/addresses.ts';
import { nameKey } from '../store/tables/users.ts';
import { Backoff, type BackoffKeys, type BackoffOptions, type BackoffTurn } from './backoff.ts';

/** Nothing is counted across tenants. */
interface LoginOrigin {
  readonly tenant: string;
  readonly address: string;
}

interface LoginAttempt extends LoginOrigin {
  /** Absent where a try is under no name. */
  readonly name?: string;
  /** Of whom it is known who they are. */
  readonly userId?: string;
}

interface UserAttempt extends LoginOrigin {
  readonly userId: string;
}

export interface LoginBackoff {
  /**
   * Why whoever comes from there is refused now, whatever the name; undefined when they aren't. Looks only, and costs
   * next to nothing.
   */
  refusal(origin: LoginOrigin): KmsError | undefined;
  /** Waits for its turn. Throws `rate-limited` where the try has to wait, which lengthens nothing. */
  begin(attempt: LoginAttempt): Promise<BackoffTurn>;
  /**
   * The turn of a try whose name turned out to be this user's; undefined where the tries under the user's other names
   * make it wait. Whoever tries must not learn that: it would say that those names are one user's.
   */
  take(attempt: UserAttempt): BackoffTurn | undefined;
  /** Ends what is counted of whoever comes from there: to be said when somebody got in whose turn is over. */
  forgive(origin: LoginOrigin): void;
  /** How much is remembered. */
  readonly size: number;
}

const thresholds = { pair: 5, name: 50, address: 50, site: 50 } as const;
type Scope = keyof typeof thresholds;

export function loginBackoff(options: Omit<BackoffOptions<Scope>, 'thresholds' | 'what'>): LoginBackoff {
  const backoff = new Backoff({ ...options, thresholds, what: 'logins' });
  const originKeys = ({ tenant, address }: LoginOrigin): BackoffKeys<Scope> => {
    const { host, site } = networksOf(address);
    const keys: [Scope, string][] = [['address', `${tenant} ${host}`]];
    if (site !== undefined) keys.push(['site', `${tenant} ${site}`]);
    return keys;
  };
  /** Hashed, so that what is remembered of a name doesn't grow with it. */
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

/** What counts as one address, and for IPv6 the larger network that it is in. Other texts stand for themselves. */
export function networksOf(address: string): { readonly host: string; readonly site?: string } {
  const plain = plainAddress(address) ?? address.toLowerCase();
  const bytes = addressBytes(plain);
  if (!bytes) return { host: plain };
  if (bytes.length === 4) return { host: bytes.join('.') };
  const groups = groupsOf(bytes).map((group) => group.toString(16));
  return { host: `${groups.slice(0, 4).join(':')}::/64`, site: `${groups.slice(0, 3).join(':')}::/48` };
}
