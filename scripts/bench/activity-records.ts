// A synthetic history: the same records for the same numbers. 1,000 keys, a tenth of which do most of the work, 100
// rings, 1 % denied, props on every tenth record, unique ones on every hundredth.
import { idFromBytes } from '../../src/crypto/ulid.ts';
import type { ActivityFilter, ActivityInput } from '../../src/store/port.ts';

const start = Date.UTC(2026, 0, 1);
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

export interface History {
  /** Returns record `number`; must be called in order. */
  record(number: number): ActivityInput;
  /** Bodies of searches with one or more filters, by what they look for. */
  searches(records: number): Readonly<Record<string, Omit<ActivityFilter, 'keyids' | 'ringname'> & KeyAndRing>>;
}

interface KeyAndRing {
  readonly keyid?: string;
  readonly ring?: string;
  readonly accountId?: string;
}

/** @param account with rarely used keys, which are some of the 1,000. */
export function history(account: { readonly id: string; readonly keyids: readonly string[] }): History {
  let state = 42;
  const chance = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const text = (length: number): string => Array.from({ length }, () => alphabet[chance(32)]).join('');
  const bytes = new Uint8Array(16);
  const idAt = (time: number): string => {
    new DataView(bytes.buffer).setBigUint64(0, BigInt(time) << 16n);
    for (let at = 6; at < 16; at++) bytes[at] = chance(256);
    return idFromBytes('act', bytes);
  };
  const keyids = Array.from({ length: 1000 }, (_, at) => account.keyids[at - 700] ?? `apik_01kxyz${text(20)}`);
  return {
    record(number) {
      const createdAt = start + number * 20;
      const validAction = chance(100) !== 0;
      const client = { name: `app-${chance(50)}`, version: 3 };
      return {
        id: idAt(createdAt),
        createdAt,
        keyid: keyids[chance(chance(4) === 0 ? 1000 : 100)] ?? '',
        action: chance(4) === 0 ? 'keyring.decrypt' : chance(1000) === 0 ? 'user.invite' : 'keyring.encrypt',
        ringname: `ring-${chance(chance(2) === 0 ? 100 : 10)}`,
        validAction,
        status: validAction ? 200 : 403,
        props: number % 100 === 0 ? { request: `r${number}`, client } : number % 10 === 0 ? { client } : {},
      };
    },
    searches(records) {
      const middle = start + records * 10;
      return {
        'no filter': {},
        'a busy key': { keyid: keyids[3] ?? '' },
        'a quiet key': { keyid: keyids[777] ?? '' },
        'an account of 20 quiet keys': { accountId: account.id },
        'a key that did nothing': { keyid: 'apik_none' },
        'a common action': { action: 'keyring.encrypt' },
        'a rare action': { action: 'user.invite' },
        'a busy ring': { ring: 'ring-4' },
        'a quiet ring': { ring: 'ring-77' },
        granted: { valid: true },
        denied: { valid: false },
        'until the middle': { end: middle },
        'an hour in the middle': { start: middle, end: middle + 3_600_000 },
        'props of 1 in 500': { props: { client: { name: 'app-7' } } },
        'props of one old record': { props: { request: `r${Math.round(records / 10_000) * 100}` } },
        'props of none': { props: { request: 'none' } },
        'a key, a ring and denied': { keyid: keyids[3] ?? '', ring: 'ring-4', valid: false },
      };
    },
  };
}
