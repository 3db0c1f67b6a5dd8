// Objects of KMIP as its messages show them: the item of an object with its value, and all attributes, of which the
// managed key has many.

import type { Context } from '../../core/context.ts';
import { isAsymmetric, publicKeyOfVersion } from '../../core/key-versions.ts';
import {
  describedObject,
  type KmipObject,
  materialOfObject,
  publicHalf,
  setKmipAttributes,
  versionOfObject,
} from '../../core/kmip-objects.ts';
import { fromBase64, toBase64 } from '../../crypto/bytes.ts';
import { sha256 } from '../../crypto/fast-hash.ts';
import { KmsError } from '../../errors.ts';
import type { KeyUse } from '../../model/key-types.ts';
import { keyTypeFacts } from '../../model/key-types.ts';
import { AttributeSet, checkValue, nameText } from './attributes.ts';
import { formats, linkTypes, objectTypes, sha256 as sha256Number, states, usages } from './enumerations.ts';
import { algorithmOf, formatted, type KeptKey, noFormat, usualFormat } from './key-values.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  boolean,
  byteString,
  date,
  decodeItem,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  interval,
  type Structure,
  structure,
  structureIn,
  text,
} from './ttlv.ts';

const objectTags: Readonly<Record<number, number>> = {
  [objectTypes.certificate]: tags.certificate,
  [objectTypes.symmetricKey]: tags.symmetricKey,
  [objectTypes.publicKey]: tags.publicKey,
  [objectTypes.privateKey]: tags.privateKey,
  [objectTypes.secretData]: tags.secretData,
  [objectTypes.opaqueObject]: tags.opaqueObject,
};

/** The tag of objects of that type; undefined for types that are not kept. */
export function objectTag(type: number): number | undefined {
  return objectTags[type];
}

export const keptObjectTypes: readonly number[] = Object.keys(objectTags).map(Number);

/** Seconds for which a client may use a key before it asks again. */
export const leaseSeconds = 3600;

export function typeOf({ key, row, isPublicHalf }: Pick<KmipObject, 'key' | 'row' | 'isPublicHalf'>): number {
  if (isPublicHalf) return objectTypes.publicKey;
  if (row) return row.objectType;
  if (keyTypeFacts[key.type].isAsymmetric) return objectTypes.privateKey;
  return key.type === 'secret' ? objectTypes.secretData : objectTypes.symmetricKey;
}

export function hasState(objectType: number): boolean {
  return objectType !== objectTypes.opaqueObject;
}

const stateNumbers = {
  'pre-active': states.preActive,
  active: states.active,
  // KMIP has no such state. It does nothing now, and may be active again.
  suspended: states.preActive,
  deactivated: states.deactivated,
  compromised: states.compromised,
  'pending-deletion': states.destroyed,
  destroyed: states.destroyed,
} as const;

export function stateNumber({ state, isDestroyed }: KmipObject): number {
  if (!isDestroyed) return stateNumbers[state];
  return state === 'compromised' ? states.destroyedCompromised : states.destroyed;
}

const maskOfUses: Readonly<Record<KeyUse, number>> = {
  encrypt: usages.encrypt,
  decrypt: usages.decrypt,
  sign: usages.sign,
  verify: usages.verify,
  mac: usages.mac,
  wrap: usages.wrap,
  unwrap: usages.unwrap,
  derive: usages.derive,
  export: usages.export,
};

/** The uses of a managed key that a mask stands for. */
export function usesOf(mask: number): readonly KeyUse[] {
  const uses = (Object.keys(maskOfUses) as KeyUse[]).filter((use) => (mask & maskOfUses[use]) !== 0);
  return (mask & usages.verifyMac) !== 0 && !uses.includes('verify') ? [...uses, 'verify'] : uses;
}

function maskOf(uses: readonly KeyUse[]): number {
  const mask = uses.reduce((sum, use) => sum | maskOfUses[use], 0);
  return uses.includes('mac') && uses.includes('verify') ? mask | usages.verifyMac : mask;
}

export function attributesOf({ row }: Pick<KmipObject, 'row'>): AttributeSet {
  return row ? AttributeSet.stored(row.attributes) : nothing;
}

const nothing = new AttributeSet();

export function maskIn(object: KmipObject): number {
  const own = attributesOf(object).first('Cryptographic Usage Mask');
  if (own?.type === 'integer') return own.value;
  const { uses } = object.key;
  return maskOf(object.isPublicHalf ? publicUses(uses) : uses);
}

function publicUses(uses: readonly KeyUse[]): readonly KeyUse[] {
  return uses.filter((use) => use === 'encrypt' || use === 'verify');
}

const value = tags.attributeValue;

/** All attributes: those that are kept, and those that the managed key has. */
export function allAttributes(object: KmipObject): AttributeSet {
  const { key, row, isDestroyed } = object;
  let set = row ? attributesOf(object) : nativeAttributes(object);
  const objectType = typeOf(object);
  const own: [string, Item][] = [
    ['Unique Identifier', text(value, object.id)],
    ['Object Type', enumeration(value, objectType)],
    ['Initial Date', date(value, key.createdAt)],
    ['Last Change Date', date(value, key.updatedAt)],
  ];
  if (hasState(objectType)) {
    own.push(['State', enumeration(value, stateNumber(object))], ['Lease Time', interval(value, leaseSeconds)]);
  }
  if (key.activateAt !== undefined) own.push(['Activation Date', date(value, key.activateAt)]);
  if (key.deactivateAt !== undefined) own.push(['Deactivation Date', date(value, key.deactivateAt)]);
  if (isDestroyed) own.push(['Destroy Date', date(value, key.deletedAt ?? key.updatedAt)]);
  if (keepsSecret(objectType)) own.push(...secrecy(object, set));
  for (const [name, item] of own) set = set.withOne(name, item);
  const other = otherHalf(object);
  return other ? set.withMore('Link', other) : set;
}

/** The link between both halves of a pair that was made otherwise; those of other pairs are stored. */
function otherHalf(object: KmipObject): Item | undefined {
  const { key, isPublicHalf } = object;
  const id = isPublicHalf ? key.id : publicHalf(object)?.id;
  if (id === undefined) return undefined;
  const type = isPublicHalf ? linkTypes.privateKey : linkTypes.publicKey;
  return structure(value, enumeration(tags.linkType, type), text(tags.linkedObjectIdentifier, id));
}

/** Whether objects of the type have attributes about who may have their value. */
export function keepsSecret(objectType: number): boolean {
  return objectType !== objectTypes.certificate && objectType !== objectTypes.opaqueObject;
}

function secrecy({ key, isPublicHalf }: KmipObject, set: AttributeSet): [string, Item][] {
  const is = (name: string) => set.first(name)?.value === true;
  return [
    ['Sensitive', boolean(value, is('Sensitive'))],
    ['Always Sensitive', boolean(value, is('Always Sensitive'))],
    ['Extractable', boolean(value, key.exportable || isPublicHalf)],
    ['Never Extractable', boolean(value, is('Never Extractable'))],
  ];
}

/** Attributes of a key that was made otherwise. */
function nativeAttributes({ key, isPublicHalf }: KmipObject): AttributeSet {
  const { kmip } = keyTypeFacts[key.type];
  const algorithm = algorithmOf(key.type);
  const given: [string, Item | undefined][] = [
    ['Name', structure(value, text(tags.nameValue, key.name), enumeration(tags.nameType, 1))],
    ['Cryptographic Algorithm', algorithm === undefined ? undefined : enumeration(value, algorithm)],
    ['Cryptographic Length', kmip && integer(value, kmip.length)],
    ['Cryptographic Usage Mask', integer(value, maskOf(isPublicHalf ? publicUses(key.uses) : key.uses))],
  ];
  return given.reduce((set, [name, item]) => set.withOne(name, item), nothing);
}

/** The key that an object has, as it is kept. A copy, for the caller to overwrite. */
function keptKey(ctx: Context, object: KmipObject): KeptKey {
  const { type } = object.key;
  if (typeOf(object) !== objectTypes.publicKey || !isAsymmetric(type)) {
    return { type, key: materialOfObject(ctx, object) };
  }
  const publicKey = publicKeyOfVersion(type, versionOfObject(ctx, object));
  if (publicKey) return { type, publicKey };
  throw new KmsError('corrupt', 'the public key of a stored version is not there');
}

function wipe(kept: KeptKey): void {
  if ('key' in kept) kept.key.fill(0);
}

/** The object's item without its value; for a key that was made otherwise, as if it had been made over KMIP. */
export function shapeOf(object: KmipObject): Structure {
  const { key, row } = object;
  if (row && row.shape !== '') {
    const item = decodeItem(fromBase64(row.shape) ?? new Uint8Array());
    if (item.type === 'structure') return item;
    throw new KmsError('corrupt', 'the stored shape of a KMIP object was altered');
  }
  const objectType = typeOf(object);
  return madeShape(
    objectType,
    usualFormat(key.type, objectType),
    algorithmOf(key.type),
    keyTypeFacts[key.type].kmip?.length,
  );
}

/** The shape of a key that was made here. */
export function madeShape(
  objectType: number,
  format: number,
  algorithm: number | undefined,
  bits: number | undefined,
): Structure {
  const isSecret = objectType === objectTypes.secretData;
  return structure(
    objectTags[objectType] ?? tags.symmetricKey,
    isSecret ? enumeration(tags.secretDataType, seed) : undefined,
    structure(
      tags.keyBlock,
      enumeration(tags.keyFormatType, format),
      !isSecret && algorithm !== undefined ? enumeration(tags.cryptographicAlgorithm, algorithm) : undefined,
      !isSecret && bits !== undefined ? integer(tags.cryptographicLength, bits) : undefined,
    ),
  );
}

const seed = 2;

/** Bytes of an object without its value. */
const longestShape = 4096;

/** The shape as it is stored. Throws `Refusal` for one that is too long. */
export function shapeText(shape: Structure): string {
  const bytes = encodeItem(shape);
  if (bytes.length <= longestShape) return toBase64(bytes);
  throw new Refusal(reasons.invalidField, `an object has at most ${longestShape} bytes beside its value`);
}

export function formatOf(shape: Structure): number | undefined {
  return fieldOf(structureIn(shape, tags.keyBlock), tags.keyFormatType, 'enumeration');
}

/** The value of an object in the format that it was made in, or another: Key Value, or the value of another object. */
export function valueItem(ctx: Context, object: KmipObject, format: number | undefined): Item {
  const form = object.row?.form ?? 'key';
  if (form === 'key') {
    const kept = keptKey(ctx, object);
    try {
      const material = formatted(kept, format ?? formatOf(shapeOf(object)) ?? formats.raw);
      if (material) return structure(tags.keyValue, material);
    } finally {
      wipe(kept);
    }
    throw noFormat();
  }
  if (format !== undefined && format !== formatOf(shapeOf(object))) throw noFormat();
  const bytes = materialOfObject(ctx, object);
  switch (form) {
    case 'material':
      return structure(tags.keyValue, byteString(tags.keyMaterial, bytes));
    case 'structure':
      return structure(tags.keyValue, decodeItem(bytes));
    case 'wrapped':
      return byteString(tags.keyValue, bytes);
    case 'value':
      return byteString(
        typeOf(object) === objectTypes.certificate ? tags.certificateValue : tags.opaqueDataValue,
        bytes,
      );
  }
}

/** The shape with a value in its place, and another format if one is wanted. */
export function withValue(shape: Structure, item: Item, format?: number, ...more: readonly Item[]): Structure {
  const block = structureIn(shape, tags.keyBlock);
  if (!block) return structure(shape.tag, shape.value, item);
  const first: readonly number[] = [tags.keyFormatType, tags.keyCompressionType];
  const heads = block.value
    .filter(({ tag }) => first.includes(tag))
    .map((each) => (each.tag === tags.keyFormatType && format !== undefined ? enumeration(each.tag, format) : each));
  const rest = block.value.filter(({ tag }) => !first.includes(tag));
  const whole = structure(tags.keyBlock, heads, item, rest, more);
  return structure(
    shape.tag,
    shape.value.map((each) => (each.tag === tags.keyBlock ? whole : each)),
  );
}

/** The Digest of a value. */
export function digestItem(bytes: Uint8Array, format: number | undefined): Item {
  return structure(
    value,
    enumeration(tags.hashingAlgorithm, sha256Number),
    byteString(tags.digestValue, sha256(bytes)),
    format === undefined ? undefined : enumeration(tags.keyFormatType, format),
  );
}

/** Names in the order of their indexes. */
function namesIn(set: AttributeSet): readonly string[] {
  return [...set.get('Name').values()].flatMap((item) => nameText(item) ?? []);
}

/**
 * Stores all attributes of an object that has a row. Clients' changes are checked for growth before; the server's own
 * attributes have room in any object.
 */
export function storeAttributes(
  { ctx }: { readonly ctx: Context },
  { row }: Pick<KmipObject, 'row'>,
  set: AttributeSet,
): void {
  if (!row) throw new Refusal(reasons.generalFailure, 'the object has no attributes of its own');
  const before = attributesOf({ row });
  for (const name of set.names) {
    const known = before.get(name);
    for (const [index, each] of set.get(name)) if (known.get(index) !== each) checkValue(name, each);
  }
  const names = namesIn(set);
  const isRenamed = names.join('\0') !== namesIn(before).join('\0');
  setKmipAttributes(ctx, row, set.toJson(), isRenamed ? names : undefined);
}

/** The object with attributes of its own to change: a key that was made otherwise gets some first. */
export function described(work: { readonly ctx: Context }, found: KmipObject): KmipObject {
  if (found.row) return found;
  const native = allAttributes(found);
  const object = describedObject(work.ctx, found, typeOf(found));
  const kept = ['Name', 'Cryptographic Algorithm', 'Cryptographic Length', 'Cryptographic Usage Mask'];
  const set = kept.reduce((sum, name) => sum.with(name, native.get(name)), nothing);
  storeAttributes(work, object, set);
  return { ...object, row: work.ctx.tx.kmipObjects.byKey(object.key.id) };
}
