// Aliases in AWS KMS. A key's other names here are aliases there, and so is its own name, unless that is a UUID.
import { awsIdOf, isUuid } from '../../core/aws-names.ts';
import { aliasTaken } from '../../core/key-changes.ts';
import type { JsonObject } from '../../model/json.ts';
import { failure } from './errors.ts';
import { objectOf, pageOf, secondsOf, textOf } from './fields.ts';
import { type FoundKey, keyOf } from './found-keys.ts';
import { listCall, listing } from './key-life.ts';
import { aliasArn, type Place } from './names.ts';
import type { AwsOperation, Work } from './operation.ts';

/** The name without `alias/`. Throws `ValidationException`, `NotAuthorizedException`. */
function aliasOf(given: JsonObject): string {
  const text = textOf(given, 'AliasName') ?? '';
  if (!/^alias\/[a-zA-Z0-9/_-]+$/.test(text)) {
    throw failure(
      'ValidationException',
      'Alias must start with the prefix "alias/" and have letters, digits, /, _ and - behind it',
    );
  }
  if (text.startsWith('alias/aws/')) {
    throw failure('NotAuthorizedException', 'Aliases that begin with alias/aws/ are reserved.');
  }
  return text.slice('alias/'.length);
}

function setAlias(isNew: boolean): AwsOperation {
  return {
    keys: isNew ? ['TargetKeyId'] : ['TargetKeyId', '*AliasName'],
    about: 'addManagedKeyAlias',
    typeOf: (message) => (message?.endsWith(aliasTaken) ? 'AlreadyExistsException' : undefined),
    ...(!isNew && { second: { about: 'addManagedKeyAlias', action: 'key.config' } }),
    async plan(given, work) {
      const alias = aliasOf(given);
      const arn = aliasArn(work.place, alias);
      const owner = (await work.findNamed(alias))?.known;
      if (isNew && owner && !isFreed(owner, alias))
        throw failure('AlreadyExistsException', `An alias with the name ${arn} already exists`);
      if (!isNew && !owner) throw failure('NotFoundException', `Alias ${arn} is not found.`);
      const target = keyOf(work);
      const { known } = target;
      if (
        owner &&
        known &&
        !isFreed(owner, alias) &&
        (owner.type !== known.type || owner.uses.join() !== known.uses.join())
      ) {
        throw failure('ValidationException', 'An alias moves between keys of one spec and usage.');
      }
      if (owner?.name === alias.toLowerCase() && !isFreed(owner, alias)) {
        throw failure('UnsupportedOperationException', ownName);
      }
      return {
        id: 'addManagedKeyAlias',
        params: { key: target.ref },
        body: { alias, isNew },
        answer: () => undefined,
      };
    },
  };
}

const ownName = 'It is the name of a key here, which does not change.';
const freedName = 'It is the name of a key that is pending deletion: another key may take it, by CreateAlias.';

/** Whether a name is that of a deleted key, which leads to it until another key takes the name. */
function isFreed({ name, state }: NonNullable<FoundKey['known']>, alias: string): boolean {
  return name === alias.toLowerCase() && (state === 'pending-deletion' || state === 'destroyed');
}

const deleteAlias: AwsOperation = {
  keys: ['*AliasName'],
  about: 'removeManagedKeyAlias',
  plan(given, work) {
    const alias = aliasOf(given);
    const key = keyOf(work);
    if (key.known?.name === alias.toLowerCase()) {
      throw failure('UnsupportedOperationException', isFreed(key.known, alias) ? freedName : ownName);
    }
    return { id: 'removeManagedKeyAlias', params: { key: key.ref, alias }, answer: () => undefined };
  },
};

interface Entry {
  readonly AliasName: string;
  readonly TargetKeyId: string;
}

/** The entries without names of deleted keys that lead to another key by now. */
async function leading<E extends Entry>(entries: readonly E[], deleted: ReadonlySet<string>, work: Work): Promise<E[]> {
  const kept: E[] = [];
  for (const entry of entries) {
    const { AliasName, TargetKeyId } = entry;
    const found = deleted.has(TargetKeyId)
      ? (await work.findNamed(AliasName.slice('alias/'.length)))?.known
      : undefined;
    if (!deleted.has(TargetKeyId) || (found && awsIdOf(found) === TargetKeyId)) kept.push(entry);
  }
  return kept;
}

function isDeleted({ deletedAt }: JsonObject): boolean {
  return deletedAt !== undefined;
}

function idOf({ id, name }: JsonObject): string {
  return awsIdOf({ id: String(id), name: String(name) });
}

/** A key that clients of AWS made is named by a UUID, which is no alias. */
function namesOf({ name, displayName, aliases }: JsonObject): readonly string[] {
  const own = isUuid(String(name)) ? [] : [String(displayName)];
  return [...own, ...(aliases as readonly string[])];
}

function entriesOf(key: JsonObject, place: Place): readonly Entry[] {
  return namesOf(key).map((name) => ({
    AliasName: `alias/${name}`,
    AliasArn: aliasArn(place, name),
    TargetKeyId: idOf(key),
    CreationDate: secondsOf(key.createdAt),
    LastUpdatedDate: secondsOf(key.updatedAt),
  }));
}

/** Pages are of keys, each with all of its aliases, so that one may be longer than the limit. */
const listAliases: AwsOperation = {
  ...listing,
  keys: ['?KeyId'],
  plan(given, work) {
    const { keys, place } = work;
    const [key] = keys;
    const deleted = new Set<string>();
    const noted = (each: JsonObject): readonly Entry[] => {
      if (isDeleted(each)) deleted.add(idOf(each));
      return entriesOf(each, place);
    };
    if (!key) {
      // A key that is pending deletion keeps its aliases.
      const write = (items: readonly JsonObject[]) => ({ Aliases: items.flatMap(noted) });
      return {
        ...listCall(given, 100, { withPending: true, write }),
        finish: async (answer) => {
          // Cast: `write` made it.
          const { Aliases } = answer as { readonly Aliases: readonly Entry[] };
          return { ...answer, Aliases: await leading(Aliases, deleted, work) };
        },
      };
    }
    let entries: readonly Entry[] = [];
    return {
      id: 'getManagedKey',
      params: { key: key.ref },
      answer(ours) {
        entries = noted(objectOf(ours.key));
        return pageOf(given, entries, 100);
      },
      finish: async () => {
        const { items, more } = pageOf(given, await leading(entries, deleted, work), 100);
        return { Aliases: items, ...more };
      },
    };
  },
};

export const aliasOperations = {
  CreateAlias: setAlias(true),
  UpdateAlias: setAlias(false),
  DeleteAlias: deleteAlias,
  ListAliases: listAliases,
} as const;
