// The parts of the overview that come from a tenant's store, and the names that a caller may list. What was read stays
// in memory until the store changes, so that a repeat reads nothing.
import type { Names, Overview } from '../api/overview.ts';
import { bucketNow, type TimeRangeName } from '../model/time-ranges.ts';
import type { Store, Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { Caller } from './context.ts';
import { looksAt, type Reader } from './pages.ts';
import { certificateTrust } from './proofs/client-certificates.ts';
import { useOverTime } from './use-counts.ts';

type StoredParts = Pick<Overview, 'use' | 'keyrings' | 'apikeys' | 'proofs' | 'users' | 'secondFactor'>;

/** Rings looked at. */
const mostRings = 40;
/** API keys looked at. */
const mostKeys = 5_000;
/** Ending proofs shown. */
const mostProofs = 100;
const day = 86_400_000;
const endsSoon = 14 * day;
const endedLately = 3 * day;

/** Each part is present if the caller's flags allow it. */
export function storedOverview(
  reader: Reader,
  { kind, id, flags }: Caller,
  range: TimeRangeName,
): Promise<StoredParts> {
  const { store, world } = reader;
  const now = world.now();
  return whileUnchanged(store, ['overview', range, bucketNow(now), id, flags.names], async () => ({
    ...(flags.allows('activity.read') && { use: await useOverTime(store, range, now) }),
    ...(flags.allows('keyring.list') && { keyrings: await ringsNearRotation(store, flags) }),
    ...(flags.allows('apikey.read') && {
      apikeys: await endingKeys(store, now),
      proofs: await endingProofs(store, now),
    }),
    ...(await store.transaction(({ users, secondFactors }) => ({
      ...(flags.allows('user.read') && { users: users.count() }),
      ...(kind === 'user' && { secondFactor: secondFactors.has(id) }),
    }))),
  }));
}

async function ringsNearRotation(store: Store, flags: Caller['flags']): Promise<NonNullable<Overview['keyrings']>> {
  const { items, isWhole } = await all(store, mostRings, ({ rings, ringKeys }, part) =>
    rings.list('ks', part, (ring) => {
      const key = flags.allows('keyring.read', ring.name) ? ringKeys.byId(ring.id, ring.activeKey) : undefined;
      return (
        key && {
          name: ring.name,
          displayName: ring.displayName,
          kem: ring.kem,
          offlineDecrypt: ring.offlineDecrypt,
          encrypts: ringKeys.encryptCount(key),
          maxEncryptCount: ring.maxEncryptCount,
          activeSince: key.createdAt,
          rotateAfter: ring.rotateAfter ?? null,
        }
      );
    }),
  );
  return { rings: items.filter((ring) => ring !== undefined), more: !isWhole };
}

async function endingKeys(store: Store, now: number): Promise<NonNullable<Overview['apikeys']>> {
  const { items } = await all(store, mostKeys, ({ apiKeys }, part) =>
    apiKeys.list(part, ({ id, name, active, expiresAt }) => {
      const isEnding =
        active && expiresAt !== undefined && expiresAt <= now + endsSoon && expiresAt > now - endedLately;
      return isEnding ? { keyid: id, name, expiresAt } : undefined;
    }),
  );
  return items.filter((key) => key !== undefined).sort((a, b) => a.expiresAt - b.expiresAt);
}

function endingProofs(store: Store, now: number): Promise<NonNullable<Overview['proofs']>> {
  const span = { from: now - endedLately, to: now + endsSoon };
  return store.transaction(({ proofs, apiKeys }) =>
    proofs.endingCertificates(span, mostProofs).flatMap(({ id, apikeyId, settings }) => {
      const key = apiKeys.byId(apikeyId);
      if (!key?.active) return [];
      return [{ keyid: key.id, name: key.name, proof: id, endsAt: certificateTrust({ settings }).notAfter }];
    }),
  );
}

/** Names of one kind. */
const mostNames = 5_000;

export function namesFor({ store }: Reader, { id, flags }: Caller): Promise<Names> {
  return whileUnchanged(store, ['names', id, flags.names], async () => {
    const some = async <T>(read: (tables: Tables, part: PageRequest) => Page<T>): Promise<T[]> =>
      (await all(store, mostNames, read)).items;
    return {
      ...(flags.allows('keyring.list') && {
        keyrings: await some(({ rings }, part) =>
          rings.list('ks', part, ({ id, name, displayName, kem, offlineDecrypt }) => ({
            id,
            name,
            displayName,
            kem,
            offlineDecrypt,
          })),
        ),
      }),
      ...(flags.allows('key.list') && {
        managedKeys: await some(({ managedKeys }, part) =>
          managedKeys.list(part, undefined, ({ name, displayName, type }) => ({ name, displayName, type })),
        ),
      }),
      ...(flags.allows('apikey.read') && {
        apikeys: await some(({ apiKeys }, part) =>
          apiKeys.list(part, ({ id, name, active }) => ({ keyid: id, name, active })),
        ),
      }),
      ...(flags.allows('user.read') && {
        users: await some(({ users }, part) =>
          users.list(part, ({ id, username, displayName }) => ({ id, username, displayName })),
        ),
      }),
      ...(flags.allows('account.read') && {
        accounts: await some(({ accounts }, part) =>
          accounts.list(part, ({ id, uid, notes }) => ({ id, uid, notes: notes.slice(0, 200).toWellFormed() })),
        ),
      }),
    };
  });
}

/** The first `most` items, read part by part, and whether these are all. */
async function all<T>(store: Store, most: number, read: (tables: Tables, part: PageRequest) => Page<T>) {
  const looks = looksAt(store);
  const items: T[] = [];
  let after: number | undefined;
  do {
    const part = { limit: most - items.length, ...(after !== undefined && { after }) };
    const page = await looks.look((tables) => read(tables, part));
    items.push(...page.items);
    after = page.next;
  } while (after !== undefined && items.length < most);
  await looks.durable();
  return { items, isWhole: after === undefined };
}

interface Kept {
  readonly sequence: number;
  readonly value: Promise<unknown>;
}

/** Answers kept per store. */
const mostKept = 200;
const kept = new WeakMap<Store, Map<string, Kept>>();

/** The value kept for this key if the store has not changed since; otherwise a new one. */
function whileUnchanged<T>(store: Store, about: readonly unknown[], make: () => Promise<T>): Promise<T> {
  const ofStore = kept.get(store) ?? new Map<string, Kept>();
  kept.set(store, ofStore);
  const key = JSON.stringify(about);
  const { sequence } = store.mark;
  const before = ofStore.get(key);
  // Cast: the key names the kind of value.
  if (before?.sequence === sequence) return before.value as Promise<T>;
  const value = make();
  ofStore.delete(key);
  ofStore.set(key, { sequence, value });
  value.catch(() => ofStore.delete(key));
  const [oldest] = ofStore.keys();
  if (ofStore.size > mostKept && oldest !== undefined) ofStore.delete(oldest);
  return value;
}
