// Slows the guessing of passwords down: failures are counted for a name from an address, for a name from anywhere, and
// for an address with any name. What an address is: an IPv4 address, or the /64 of an IPv6 address, which one host has
// all of, and the /48 around it.
import { hashSecret } from '../crypto/secrets.ts';
import type { KmsError } from '../errors.ts';
import { withoutCase } from '../store/tables/users.ts';
import { Brake, type BrakeKeys, type BrakeOptions, type BrakeTurn } from './brake.ts';

/** Nothing is counted across tenants. */
export interface LoginOrigin {
  readonly tenant: string;
  readonly address: string;
}

export interface LoginAttempt extends LoginOrigin {
  readonly name: string;
}

export interface LoginBackoff {
  /**
   * Why whoever comes from there is refused now, whatever the name; undefined when they aren't. Looks only, and costs
   * next to nothing.
   */
  refusal(origin: LoginOrigin): KmsError | undefined;
  /** Waits for its turn. Throws `rate-limited` where the try has to wait, which lengthens nothing. */
  begin(attempt: LoginAttempt): Promise<BrakeTurn>;
  /** How much is remembered. */
  readonly size: number;
}

const thresholds = { pair: 5, name: 50, address: 50, site: 50 } as const;
type Scope = keyof typeof thresholds;

export function loginBackoff(options: Omit<BrakeOptions<Scope>, 'thresholds' | 'what'>): LoginBackoff {
  const brake = new Brake({ ...options, thresholds, what: 'logins' });
  const originKeys = ({ tenant, address }: LoginOrigin): BrakeKeys<Scope> => {
    const { host, site } = networksOf(address);
    const keys: [Scope, string][] = [['address', `${tenant} ${host}`]];
    if (site !== undefined) keys.push(['site', `${tenant} ${site}`]);
    return keys;
  };
  return {
    refusal: (origin) => brake.refusal(originKeys(origin)),
    begin(attempt) {
      const { tenant, name, address } = attempt;
      // Hashed, so that what is remembered of a name doesn't grow with it.
      const nameKey = `${tenant} ${hashSecret(withoutCase(name))}`;
      const pairKey = `${nameKey} ${networksOf(address).host}`;
      return brake.begin([['pair', pairKey], ['name', nameKey], ...originKeys(attempt)]);
    },
    get size() {
      return brake.size;
    },
  };
}

/** What counts as one address, and for IPv6 the larger network that it is in. Other texts stand for themselves. */
export function networksOf(address: string): { readonly host: string; readonly site?: string } {
  const bare = address.toLowerCase().replace(/%.*$/, '');
  const groups = bare.includes(':') ? ipv6Groups(bare) : undefined;
  if (!groups) return { host: bare };
  const [high = 0, low = 0] = groups.slice(6);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return { host: [high >> 8, high & 255, low >> 8, low & 255].join('.') };
  }
  const prefix = (length: number): string => groups.slice(0, length).map(hex).join(':');
  return { host: `${prefix(4)}::/64`, site: `${prefix(3)}::/48` };
}

function hex(group: number): string {
  return group.toString(16);
}

/** The eight numbers of an IPv6 address (RFC 4291 §2.2); undefined for what is none. */
function ipv6Groups(text: string): readonly number[] | undefined {
  const [head = '', tail, ...more] = text.split('::');
  const before = numbersOf(head);
  const after = numbersOf(tail ?? '');
  if (!before || !after || more.length > 0) return undefined;
  const missing = 8 - before.length - after.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  return [...before, ...Array<number>(missing).fill(0), ...after];
}

/** Numbers between colons, the last 32 bits perhaps as IPv4 has them. */
function numbersOf(text: string): readonly number[] | undefined {
  if (text === '') return [];
  const numbers: number[] = [];
  for (const part of text.split(':')) {
    if (/^[0-9a-f]{1,4}$/.test(part)) numbers.push(Number.parseInt(part, 16));
    else if (/^(\d{1,3}\.){3}\d{1,3}$/.test(part)) {
      const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
      numbers.push((a << 8) | b, (c << 8) | d);
    } else return undefined;
  }
  return numbers;
}
