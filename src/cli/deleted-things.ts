// Deleted keyrings, managed keys and tenants that can still be restored: their names are free, so each is restored by
// its id, or by its name where only one has it.
import type { Client } from '../client/client.ts';
import { items } from '../client/pages.ts';
import { KmsError } from '../errors.ts';

/** A deleted thing; `name` is in lower case. */
interface DeletedThing {
  readonly id: string;
  readonly name: string;
}

interface DeletedKind {
  readonly noun: string;
  /** Group of the commands that list and restore them. */
  readonly group: string;
  readonly idForm: RegExp;
}

const deletedKinds = {
  ring: { noun: 'keyring', group: 'keyring', idForm: /^ring_[0-9a-hjkmnp-tv-z]{26}$/ },
  'managed-key': { noun: 'managed key', group: 'key', idForm: /^mkey_[0-9a-hjkmnp-tv-z]{26}$/ },
  tenant: { noun: 'tenant', group: 'tenant', idForm: /^tenant_[0-9a-hjkmnp-tv-z]{26}$/ },
} as const satisfies Readonly<Record<string, DeletedKind>>;

type DeletedKindName = keyof typeof deletedKinds;

export function deletedKeyrings(client: Client): AsyncIterable<DeletedThing> {
  return items(client.listKeyrings, { deleted: true, limit: 1000 });
}

export function deletedKeys(client: Client): AsyncIterable<DeletedThing> {
  return items(client.listManagedKeys, { deleted: true, limit: 1000 });
}

/** The error about a name that only deleted things have; undefined if none has it. */
export async function deletedError(
  kind: DeletedKindName,
  name: string,
  deleted: AsyncIterable<DeletedThing> | Iterable<DeletedThing>,
): Promise<KmsError | undefined> {
  const { noun, group } = deletedKinds[kind];
  const named = await thoseNamed(name, deleted);
  if (named.length === 0) return undefined;
  const hint =
    named.length === 1
      ? `\`kms ${group} restore ${name}\` restores it`
      : `see \`kms ${group} list --deleted\`: ${named.length} have that name, and \`kms ${group} restore ID\` restores one`;
  return new KmsError('not-found', `the ${noun} ${name} is deleted`, { hint });
}

/** Letters of an id that a list on a terminal shows. */
const shownEnding = 6;

/**
 * The id of the deleted thing that is named by its id, by the end of it as lists show it, or by its name. Throws
 * `refused` if there are several. A caller who may not list them gives the whole id.
 */
export async function deletedIdOf(
  kind: DeletedKindName,
  typed: string,
  deleted: AsyncIterable<DeletedThing> | Iterable<DeletedThing>,
): Promise<string> {
  const { noun, group, idForm } = deletedKinds[kind];
  if (idForm.test(typed)) return typed;
  let meant: readonly string[];
  try {
    meant = await thoseNamed(typed, deleted, typed.replace(/^(?:[a-z]+_)?(?:…|\.\.\.)?/, ''));
  } catch (error) {
    if (error instanceof KmsError && error.code === 'forbidden') return typed;
    throw error;
  }
  const [only, ...others] = meant;
  const hint = `see \`kms ${group} list --deleted\``;
  if (only === undefined) throw new KmsError('not-found', `there is no deleted ${noun} ${typed} to restore`, { hint });
  if (others.length === 0) return only;
  throw new KmsError('refused', `${meant.length} deleted ${noun}s are named by ${typed}`, {
    hint: `give the id of one: ${meant.slice(0, 5).join(', ')}${meant.length > 5 ? ', …' : ''}`,
  });
}

/** Ids of those with this name, or whose id ends so. */
async function thoseNamed(
  name: string,
  deleted: AsyncIterable<DeletedThing> | Iterable<DeletedThing>,
  ending = '',
): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const each of deleted) {
    const hasEnding = ending.length >= shownEnding && each.id.endsWith(ending);
    if (hasEnding || each.name === name.toLowerCase()) found.push(each.id);
  }
  return found;
}
