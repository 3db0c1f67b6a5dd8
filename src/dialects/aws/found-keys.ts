// Keys as operations of AWS KMS find them: by a request's words, with the facts that decide what may be done with them
// and by which type a refusal is told. Whether the caller may know of a key is decided by the endpoint that is called.
import { awsIdOf } from '../../core/aws-names.ts';
import { keyOfUuid, lookUpManagedKey } from '../../core/managed-key-names.ts';
import { KmsError } from '../../errors.ts';
import { type KeyState, stateAt } from '../../model/key-states.ts';
import { type KeyType, type KeyUse, keyTypeFacts } from '../../model/key-types.ts';
import type { Store, Tables } from '../../store/port.ts';
import type { ManagedKey } from '../../store/tables/managed-keys.ts';
import { type AwsRefusal, failure } from './errors.ts';
import { aliasArn, keyArn, keyRefOf, type Place } from './names.ts';

/** A key that is there: the facts on which a plan depends, and no others, so that its uses make no plan old. */
interface KnownKey extends Pick<ManagedKey, 'id' | 'name' | 'type' | 'uses' | 'origin' | 'derived' | 'createdAt'> {
  readonly state: KeyState;
  readonly deletionAllowed: boolean;
  /** Whether it waits for its bytes. */
  readonly isPendingImport: boolean;
}

/** A key that a request names. */
export interface FoundKey {
  /** The native endpoints take it. */
  readonly ref: string;
  /** Its ARN, or that of the alias if there is no such key. */
  readonly arn: string;
  /** Undefined if there is no such key. */
  readonly known: KnownKey | undefined;
  /** Why it cannot be the name of a key here. */
  readonly refusal?: AwsRefusal;
}

type KeyTables = Pick<Tables, 'managedKeys' | 'keyVersions'>;

interface Asked {
  readonly place: Place;
  readonly takesAlias: boolean;
  readonly now: number;
}

/** Looks at cached data if it can tell at once, which other nodes may have changed since. */
export async function lookAt<R>(store: Store, look: (tables: Tables) => R): Promise<R> {
  try {
    return store.read(look);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'unavailable') return store.transaction(look);
    throw error;
  }
}

/**
 * The looks by which a call is planned. The transaction that acts looks again, and nothing is done if anything that was
 * seen has changed. So no plan depends on what another node, or another request, changed meanwhile.
 */
export class Looks {
  readonly #store: Store;
  readonly #isCached: boolean;
  readonly #looks: { readonly look: (tables: Tables) => unknown; readonly seen: string | undefined }[] = [];

  /** @param isCached whether cached data will do, which may be old; otherwise each look is a transaction. */
  constructor(store: Store, isCached: boolean) {
    this.#store = store;
    this.#isCached = isCached;
  }

  /** @param look returns something that JSON can write. */
  async at<R>(look: (tables: Tables) => R): Promise<R> {
    const found = await (this.#isCached ? lookAt(this.#store, look) : this.#store.transaction(look));
    this.#looks.push({ look, seen: JSON.stringify(found) });
    return found;
  }

  /** Whether anything that was seen has changed. */
  isStale(tables: Tables): boolean {
    return this.#looks.some(({ look, seen }) => JSON.stringify(look(tables)) !== seen);
  }
}

/** The key that a field names. */
export function keyNamed(tables: KeyTables, text: string, { place, takesAlias, now }: Asked): FoundKey {
  const ref = keyRefOf(text, place, takesAlias);
  if ('error' in ref) {
    return { ref: text, arn: text, known: undefined, refusal: failure(ref.error, ref.message) };
  }
  if ('uuid' in ref) {
    const { uuid } = ref;
    const { managedKeys } = tables;
    // An id before a name, so that a new key never takes the ARN of another.
    const key = keyOfUuid(tables, uuid) ?? managedKeys.byName(uuid) ?? managedKeys.deletedByName(uuid);
    return foundKey(tables, key, place, now) ?? { ref: uuid, arn: keyArn(place, uuid), known: undefined };
  }
  const found = foundKey(tables, lookUpManagedKey(tables, ref.alias), place, now);
  return found ?? { ref: ref.alias, arn: aliasArn(place, ref.alias), known: undefined };
}

/** The key with one of these ids; undefined if there is none. */
export function keyWithId(tables: KeyTables, ids: readonly string[], place: Place, now: number): FoundKey | undefined {
  for (const id of ids) {
    const found = foundKey(tables, tables.managedKeys.byId(id), place, now);
    if (found) return found;
  }
  return undefined;
}

export function foundKey(
  { keyVersions }: Pick<Tables, 'keyVersions'>,
  key: ManagedKey | undefined,
  place: Place,
  now: number,
): FoundKey | undefined {
  if (!key) return undefined;
  const newest = keyVersions.get(key.id, key.latestVersion);
  const isPendingImport = key.origin === 'imported' && (newest === undefined || newest.state === 'destroyed');
  const { id, name, type, uses, origin, derived, createdAt, deletionAllowed } = key;
  const known = { id, name, type, uses, origin, derived, createdAt, deletionAllowed, isPendingImport };
  return { ref: id, arn: keyArn(place, awsIdOf(key)), known: { ...known, state: stateAt(key.state, key, now) } };
}

/** The facts of a key that is there. Throws `NotFoundException` for one that is not, with which its call is undone. */
export function knownOf(key: FoundKey): KnownKey {
  if (!key.known) throw key.refusal ?? failure('NotFoundException', missing(key));
  return key.known;
}

/** The words for a key that is not there. */
export function missing({ arn }: FoundKey): string {
  return arn.includes(':alias/') ? `Alias ${arn} is not found.` : `Key '${arn}' does not exist`;
}

/** A key of the operation, which it cannot do without. */
export function keyOf({ keys }: { readonly keys: readonly FoundKey[] }, at = 0): FoundKey {
  const key = keys[at];
  if (!key) throw failure('ValidationException', 'KeyId is missing');
  return key;
}

/** Facts of the key's type; undefined if there is no such key. */
export function factsOf({ known }: FoundKey) {
  return known && keyTypeFacts[known.type];
}

export function isRsa({ known }: FoundKey): boolean {
  return known?.type.startsWith('rsa-') === true;
}

/** Algorithms for a usage of AWS KMS; empty if keys of the type have none. */
export function algorithmsOf(type: KeyType | undefined, usage: string): readonly string[] {
  if (type === undefined) return [];
  return keyTypeFacts[type].purposes.find(({ aws }) => aws?.usage === usage)?.aws?.algorithms ?? [];
}

/** Why the key cannot be put to this use, in AWS's order: by its purpose, then by its state. */
export function useRefusal({ known, arn }: FoundKey, use: KeyUse | undefined): AwsRefusal | undefined {
  if (!known) return undefined;
  if (use !== undefined && !known.uses.includes(use)) {
    return failure('InvalidKeyUsageException', `${arn} is not for ${use}: it is for ${known.uses.join(', ')}.`);
  }
  if (use !== undefined && known.derived) {
    return failure('InvalidKeyUsageException', `${arn} derives a key for each message, which AWS KMS does not know.`);
  }
  return stateRefusal({ known, arn }, use);
}

const stateWords: Readonly<Partial<Record<KeyState, string>>> = {
  'pre-active': 'is not active yet',
  deactivated: 'is deactivated',
  compromised: 'is compromised',
  'pending-deletion': 'is pending deletion',
  destroyed: 'is pending deletion: it is destroyed',
};

/** States in which the key still works on what it made. */
const processing: ReadonlySet<KeyUse | undefined> = new Set<KeyUse | undefined>(['decrypt', 'verify', 'unwrap']);

/** Why nothing is done with a key in its state; without `use`, for work that wants it enabled. */
export function stateRefusal(
  { known, arn }: Pick<FoundKey, 'known' | 'arn'>,
  use?: KeyUse | undefined,
): AwsRefusal | undefined {
  if (!known || known.state === 'active') {
    return known?.isPendingImport ? failure('KMSInvalidStateException', `${arn} is pending import.`) : undefined;
  }
  if (known.state === 'suspended') return failure('DisabledException', `${arn} is disabled.`);
  if (processing.has(use) && (known.state === 'deactivated' || known.state === 'compromised')) return undefined;
  return failure('KMSInvalidStateException', `${arn} ${stateWords[known.state] ?? `is ${known.state}`}.`);
}

/** Throws the refusal, if there is one. */
export function need(refusal: AwsRefusal | undefined): void {
  if (refusal) throw refusal;
}
