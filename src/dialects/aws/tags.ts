// Tags and descriptions of keys in AWS KMS.
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { failure } from './errors.ts';
import { objectOf, pageOf } from './fields.ts';
import { keyOf } from './found-keys.ts';
import type { AwsOperation, Call, Work } from './operation.ts';

/** Characters. */
const longestName = 128;
const longestValue = 256;

/** Tags as an object. Throws `SerializationException`, `TagException`, `ValidationException`. */
export function tagsOf(given: unknown): JsonObject {
  if (given === undefined || given === null) return {};
  if (!Array.isArray(given)) throw failure('SerializationException');
  const pairs = given.map((each: unknown) => {
    if (!isJsonObject(each)) throw failure('SerializationException');
    const { TagKey: name, TagValue: value } = each;
    if (typeof name !== 'string' || typeof value !== 'string') {
      throw failure('TagException', 'Tags need a TagKey and a TagValue.');
    }
    needTagName(name);
    if (value.length > longestValue)
      throw failure('ValidationException', `TagValue is over ${longestValue} characters.`);
    return [name, value] as const;
  });
  if (new Set(pairs.map(([name]) => name)).size !== pairs.length) throw failure('TagException', 'Duplicate tag keys.');
  return Object.fromEntries(pairs);
}

function needTagName(name: string): void {
  if (name === '' || name.length > longestName) {
    throw failure('ValidationException', `TagKey needs 1 to ${longestName} characters.`);
  }
  if (/^aws:/i.test(name)) throw failure('TagException', 'Tags beginning with aws: are reserved.');
}

/** Sets some of a key's tags or properties; those of null are removed. */
function changed(work: Work, changes: object): Call {
  return {
    id: 'configureManagedKey',
    params: { key: keyOf(work).ref },
    body: { changes },
    answer: () => undefined,
  };
}

const configuring = { keys: ['KeyId'], about: 'configureManagedKey' } as const;

const tagResource: AwsOperation = {
  ...configuring,
  plan: (given, work) => changed(work, { tags: tagsOf(given.Tags) }),
};

const untagResource: AwsOperation = {
  ...configuring,
  plan(given, work) {
    const names = (given.TagKeys as readonly unknown[]).map((name) => {
      if (typeof name !== 'string') throw failure('SerializationException');
      needTagName(name);
      return [name, null] as const;
    });
    return changed(work, { tags: Object.fromEntries(names) });
  },
};

const listResourceTags: AwsOperation = {
  keys: ['KeyId'],
  about: 'getManagedKey',
  plan: (given, work) => ({
    id: 'getManagedKey',
    params: { key: keyOf(work).ref },
    answer({ key }) {
      const tags = Object.entries(objectOf(objectOf(key).tags));
      const all = tags.map(([TagKey, TagValue]) => ({ TagKey, TagValue }));
      const { items, more } = pageOf(given, all, 50);
      return { Tags: items, ...more };
    },
  }),
};

const updateKeyDescription: AwsOperation = {
  ...configuring,
  plan: (given, work) => changed(work, { props: { description: given.Description } }),
};

export const tagOperations = {
  TagResource: tagResource,
  UntagResource: untagResource,
  ListResourceTags: listResourceTags,
  UpdateKeyDescription: updateKeyDescription,
} as const;
