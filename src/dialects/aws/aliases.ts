// Aliases in AWS KMS. A key's other names here are aliases there, and so is its own name, unless that is a UUID.
import { awsIdOf, isUuid } from '../../core/aws-names.ts';
import type { JsonObject } from '../../model/json.ts';
import { failure } from './errors.ts';
import { objectOf, pageOf, secondsOf, textOf } from './fields.ts';
import { keyOf } from './found-keys.ts';
import { listCall, listing } from './key-life.ts';
import { aliasArn, type Place } from './names.ts';
import type { AwsOperation } from './operation.ts';

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
    ...(!isNew && { second: { about: 'addManagedKeyAlias', action: 'key.config' } }),
    async plan(given, work) {
      const alias = aliasOf(given);
      const arn = aliasArn(work.place, alias);
      const owner = (await work.findNamed(alias))?.known;
      if (isNew && owner) throw failure('AlreadyExistsException', `An alias with the name ${arn} already exists`);
      if (!isNew && !owner) throw failure('NotFoundException', `Alias ${arn} is not found.`);
      const target = keyOf(work);
      const { known } = target;
      if (owner && known && (owner.type !== known.type || owner.uses.join() !== known.uses.join())) {
        throw failure('ValidationException', 'An alias moves between keys of one spec and usage.');
      }
      if (owner?.name === alias.toLowerCase()) throw failure('UnsupportedOperationException', ownName);
      return {
        id: 'addManagedKeyAlias',
        params: { key: target.ref },
        body: { alias },
        answer: () => undefined,
      };
    },
  };
}

const ownName = 'It is the name of a key here, which does not change.';

const deleteAlias: AwsOperation = {
  keys: ['*AliasName'],
  about: 'removeManagedKeyAlias',
  plan(given, work) {
    const alias = aliasOf(given);
    const key = keyOf(work);
    if (key.known?.name === alias.toLowerCase()) throw failure('UnsupportedOperationException', ownName);
    return { id: 'removeManagedKeyAlias', params: { key: key.ref, alias }, answer: () => undefined };
  },
};

/** A key that clients of AWS made is named by a UUID, which is no alias. */
function namesOf({ name, displayName, aliases }: JsonObject): readonly string[] {
  const own = isUuid(String(name)) ? [] : [String(displayName)];
  return [...own, ...(aliases as readonly string[])];
}

function entriesOf(key: JsonObject, place: Place): readonly object[] {
  return namesOf(key).map((name) => ({
    AliasName: `alias/${name}`,
    AliasArn: aliasArn(place, name),
    TargetKeyId: awsIdOf({ id: String(key.id), name: String(key.name) }),
    CreationDate: secondsOf(key.createdAt),
    LastUpdatedDate: secondsOf(key.updatedAt),
  }));
}

/** Pages are of keys, each with all of its aliases, so that one may be longer than the limit. */
const listAliases: AwsOperation = {
  ...listing,
  keys: ['?KeyId'],
  plan(given, { keys: [key], place }) {
    if (!key) {
      // A key that is pending deletion keeps its aliases.
      const write = (items: readonly JsonObject[]) => ({ Aliases: items.flatMap((each) => entriesOf(each, place)) });
      return listCall(given, 100, { withPending: true, write });
    }
    return {
      id: 'getManagedKey',
      params: { key: key.ref },
      answer(ours) {
        const { items, more } = pageOf(given, entriesOf(objectOf(ours.key), place), 100);
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
