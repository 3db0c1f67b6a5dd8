// Operations that make objects: Create, Create Key Pair, Register; and how attributes come to a new object.

import { isAsymmetric, type KeyMaterial } from '../../core/key-versions.ts';
import { insertKmipObject, type KmipObject, needMaking, setKmipAttributes } from '../../core/kmip-objects.ts';
import { publicKeyOf } from '../../crypto/managed/keys.ts';
import { type KeyType, keyTypeFacts } from '../../model/key-types.ts';
import type { KmipForm } from '../../store/tables/kmip-objects.ts';
import { type Attribute, AttributeSet, nameText, readAttributes, ruleOf } from './attributes.ts';
import { algorithms, formats, linkTypes, objectTypes } from './enumerations.ts';
import {
  algorithmOf,
  asymmetricKey,
  formatted,
  type KeptKey,
  symmetricKey,
  typeToMake,
  usualFormat,
} from './key-values.ts';
import { attributesOf, digestItem, keepsSecret, madeShape, objectTag, shapeText, usesOf } from './objects.ts';
import type { Operation, Work } from './operation.ts';
import { laterReasons, Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  all,
  boolean,
  date,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  one,
  type Structure,
  structure,
  structureIn,
  text,
} from './ttlv.ts';

const value = tags.attributeValue;

/** Longest value of an object, in bytes. */
const longestValue = 65_536;

/** Attributes of the server's that clients name where they make an object, to no effect. */
const ignored: ReadonlySet<string> = new Set(['Object Type', 'Digest', 'State', 'Certificate Type']);

/** The set of attributes of a new object. Throws `Refusal` for those that clients do not give. */
export function givenSet(given: readonly Attribute[], version: number): AttributeSet {
  let set = new AttributeSet();
  for (const { name, value: item } of given) {
    const rule = ruleOf(name, version);
    if (rule?.changes === 'server') {
      if (ignored.has(name)) continue;
      throw new Refusal(reasons.invalidField, `${name} is set by the server`, laterReasons.readOnlyAttribute);
    }
    const isMany = rule === undefined || rule.isMany === true;
    if (set.get(name).size > 0 && (!isMany || set.has(name, item))) {
      throw new Refusal(reasons.invalidField, `${name} is there twice`);
    }
    set = set.withMore(name, item);
  }
  set.checkSize();
  return set;
}

export function numberIn(set: AttributeSet, name: string): number | undefined {
  const item = set.first(name);
  return typeof item?.value === 'number' ? item.value : undefined;
}

export function flagIn(set: AttributeSet, name: string): boolean | undefined {
  const item = set.first(name);
  return item?.type === 'boolean' ? item.value : undefined;
}

/** Epoch milliseconds of a date. Throws `Refusal` for one that no clock has. */
export function timeIn(set: AttributeSet, name: string): number | undefined {
  const item = set.first(name);
  if (item?.type !== 'date') return undefined;
  if (item.value < 0n || item.value > latest) throw new Refusal(reasons.invalidField, `${name} is no date`);
  return Number(item.value) * 1000;
}

/** The last second of the year 9999. */
const latest = 253_402_300_799n;

interface MadeObject {
  readonly objectType: number;
  readonly kept: { readonly type: KeyType } & KeyMaterial;
  readonly form: KmipForm;
  readonly shape: Structure;
  readonly set: AttributeSet;
  /** Bytes of the value, as they are handed out, and their format. */
  readonly digested: Uint8Array;
  readonly format: number | undefined;
  /** Whether the value was made here. */
  readonly isMade: boolean;
}

/** Makes an object and gives it its attributes. */
export function makeObject(work: Work, wanted: MadeObject): KmipObject {
  const { ctx } = work;
  const { objectType, kept, set, isMade } = wanted;
  const isExportable = flagIn(set, 'Extractable') ?? true;
  const object = insertKmipObject(ctx, {
    type: kept.type,
    uses: usesOf(numberIn(set, 'Cryptographic Usage Mask') ?? 0),
    isExportable,
    material: kept,
    origin: isMade ? 'generated' : 'imported',
    objectType,
    form: wanted.form,
    shape: shapeText(wanted.shape),
    activateAt: timeIn(set, 'Activation Date'),
    deactivateAt: timeIn(set, 'Deactivation Date'),
  });
  let full = set.withOne('Digest', digestItem(wanted.digested, wanted.format));
  if (keepsSecret(objectType)) {
    const isSensitive = flagIn(set, 'Sensitive') ?? false;
    full = full
      .withOne('Sensitive', boolean(value, isSensitive))
      .withOne('Always Sensitive', boolean(value, isSensitive))
      .withOne('Never Extractable', boolean(value, !isExportable))
      .withOne('Fresh', set.first('Fresh') ?? boolean(value, true));
  }
  if (isMade) full = full.withOne('Original Creation Date', date(value, work.now));
  storeAttributes(work, object, full);
  work.made(object);
  return object;
}

/** Names in the order of their indexes. */
export function namesIn(set: AttributeSet): readonly string[] {
  return [...set.get('Name').values()].flatMap((item) => nameText(item) ?? []);
}

/** Stores all attributes of an object that has a row. */
export function storeAttributes({ ctx }: Work, { row }: KmipObject, set: AttributeSet): void {
  if (!row) throw new Refusal(reasons.generalFailure, 'the object has no attributes of its own');
  const before = attributesOf({ row });
  const names = namesIn(set);
  const isRenamed = names.join('\0') !== namesIn(before).join('\0');
  setKmipAttributes(ctx, row, set.toJson(), isRenamed ? names : undefined);
}

function neededNumber(set: AttributeSet, name: string): number {
  const found = numberIn(set, name);
  if (found !== undefined) return found;
  throw new Refusal(reasons.invalidField, `expected the attribute ${name}`);
}

function withLength(set: AttributeSet, bits: number): AttributeSet {
  return set.first('Cryptographic Length') ? set : set.withOne('Cryptographic Length', integer(value, bits));
}

/** Lengths of keys of the type `secret`, by their algorithm: those that nothing here works with. */
const storedLengths: Readonly<Record<number, { readonly bits: readonly number[]; readonly usual: number }>> = {
  [algorithms.aes]: { bits: [192], usual: 256 },
  [algorithms.tripleDes]: { bits: [112, 128, 168, 192], usual: 168 },
  [algorithms.hmacSha1]: { bits: [128, 160, 192, 224, 256, 320, 384, 512], usual: 160 },
};

/** Bytes of a 3DES key, whose length may be counted without its parity bits. */
const tripleDesBytes: Readonly<Record<number, number>> = { 112: 16, 128: 16, 168: 24, 192: 24 };

/** A new symmetric key. Throws `Refusal` for an algorithm or length that none is made of. */
export function newSymmetricKey(work: Work, algorithm: number, bits: number | undefined) {
  const type = typeToMake(algorithm, bits, undefined);
  const { random } = work.ctx.world;
  if (type !== undefined && !isAsymmetric(type)) {
    return { type, key: work.keys.newKey(type), bits: keyTypeFacts[type].kmip?.length ?? 256 };
  }
  const isHmac = algorithm >= algorithms.hmacSha224 && algorithm <= algorithms.hmacSha512;
  if (isHmac && bits !== undefined && bits % 8 === 0 && bits >= 128 && bits <= 4096) {
    return { ...symmetricKey(algorithm, random(bits / 8)), bits };
  }
  const stored = storedLengths[algorithm];
  const length = bits ?? stored?.usual;
  if (!stored || length === undefined || !stored.bits.includes(length)) {
    throw new Refusal(reasons.invalidField, 'no key is made of this algorithm and length');
  }
  const bytes = algorithm === algorithms.tripleDes ? (tripleDesBytes[length] ?? 24) : length / 8;
  return { type: 'secret' as const, key: random(bytes), bits: length };
}

export const create: Operation = {
  code: 0x01,
  name: 'Create',
  since: 10,
  action: 'key.create',
  run(work, payload) {
    needMaking(work.ctx);
    if (fieldOf(payload, tags.objectType, 'enumeration') !== objectTypes.symmetricKey) {
      throw new Refusal(reasons.invalidField, 'only symmetric keys are made by Create');
    }
    const set = givenSet(readAttributes(work.version, payload, tags.templateAttribute, tags.attributes), work.version);
    const algorithm = neededNumber(set, 'Cryptographic Algorithm');
    neededNumber(set, 'Cryptographic Usage Mask');
    const { bits, ...kept } = newSymmetricKey(work, algorithm, numberIn(set, 'Cryptographic Length'));
    const key = 'key' in kept ? kept.key : new Uint8Array();
    try {
      const object = makeObject(work, {
        objectType: objectTypes.symmetricKey,
        kept: { type: kept.type, key },
        form: 'key',
        shape: madeShape(objectTypes.symmetricKey, formats.raw, algorithm, bits),
        set: withLength(set, bits),
        digested: key,
        format: formats.raw,
        isMade: true,
      });
      return structure(
        tags.responsePayload,
        enumeration(tags.objectType, objectTypes.symmetricKey),
        text(tags.uniqueIdentifier, object.key.id),
      );
    } finally {
      key.fill(0);
    }
  },
};

/** The attributes of one half of a pair: the common ones, and those of its own. */
function halfSet(work: Work, payload: Structure, first: number, second: number): AttributeSet {
  const { version } = work;
  const common = readAttributes(version, payload, tags.commonTemplateAttribute, tags.commonAttributes);
  return givenSet([...common, ...readAttributes(version, payload, first, second)], version);
}

function curveIn(set: AttributeSet): number | undefined {
  const parameters = set.first('Cryptographic Domain Parameters');
  return parameters?.type === 'structure' ? fieldOf(parameters, tags.recommendedCurve, 'enumeration') : undefined;
}

/** Makes both halves of a pair, with links to each other. The first is the private key. */
export function makePair(
  work: Work,
  type: KeyType,
  algorithm: number,
  sets: readonly [ofPrivate: AttributeSet, ofPublic: AttributeSet],
): readonly [KmipObject, KmipObject] {
  if (!isAsymmetric(type)) throw new Refusal(reasons.invalidField, 'no pair is made of this algorithm and length');
  const key = work.keys.newKey(type);
  try {
    const half = (objectType: number, kept: KeptKey, set: AttributeSet): KmipObject => {
      const format = usualFormat(type, objectType);
      const material = formatted(kept, format);
      const bits = keyTypeFacts[type].kmip?.length ?? 256;
      const object = makeObject(work, {
        objectType,
        kept,
        form: 'key',
        shape: madeShape(objectType, format, algorithm, bits),
        set: withLength(withAlgorithm(set, algorithm), bits),
        digested: material?.type === 'bytes' ? material.value : new Uint8Array(),
        format,
        isMade: true,
      });
      return object;
    };
    const open = half(objectTypes.publicKey, { type, publicKey: publicKeyOf(type, key) }, sets[1]);
    const secret = half(objectTypes.privateKey, { type, key }, sets[0]);
    addLink(work, open, linkTypes.privateKey, secret.key.id);
    addLink(work, secret, linkTypes.publicKey, open.key.id);
    return [secret, open];
  } finally {
    key.fill(0);
  }
}

function withAlgorithm(set: AttributeSet, algorithm: number): AttributeSet {
  return set.withOne('Cryptographic Algorithm', enumeration(value, algorithm));
}

/** Replaces a link of the type, if there is one. */
export function addLink(work: Work, object: KmipObject, type: number, id: string, isOneOfMany = false): void {
  const row = object.row && work.ctx.tx.kmipObjects.byKey(object.key.id);
  if (!row) return;
  const set = attributesOf({ row });
  const item = structure(value, enumeration(tags.linkType, type), text(tags.linkedObjectIdentifier, id));
  const others = [...set.get('Link')].filter(
    ([, each]) => isOneOfMany || each.type !== 'structure' || fieldOf(each, tags.linkType, 'enumeration') !== type,
  );
  storeAttributes(work, { ...object, row }, set.with('Link', new Map(others)).withMore('Link', item));
}

/** The id of an object's link of the type. */
export function linkOf(object: KmipObject, type: number): string | undefined {
  for (const each of attributesOf(object).get('Link').values()) {
    if (each.type !== 'structure' || fieldOf(each, tags.linkType, 'enumeration') !== type) continue;
    const id = one(each, tags.linkedObjectIdentifier);
    if (id?.type === 'text') return id.value;
  }
  return undefined;
}

export const createKeyPair: Operation = {
  code: 0x02,
  name: 'Create Key Pair',
  since: 10,
  action: 'key.create',
  isCostly: () => true,
  run(work, payload) {
    needMaking(work.ctx);
    const ofPrivate = halfSet(work, payload, tags.privateKeyTemplateAttribute, tags.privateKeyAttributes);
    const ofPublic = halfSet(work, payload, tags.publicKeyTemplateAttribute, tags.publicKeyAttributes);
    const algorithm =
      numberIn(ofPrivate, 'Cryptographic Algorithm') ?? neededNumber(ofPublic, 'Cryptographic Algorithm');
    const bits = numberIn(ofPrivate, 'Cryptographic Length') ?? numberIn(ofPublic, 'Cryptographic Length');
    const type = typeToMake(algorithm, bits, curveIn(ofPrivate) ?? curveIn(ofPublic));
    if (type === undefined) {
      throw new Refusal(reasons.invalidField, 'no pair is made of this algorithm, length or curve');
    }
    const [secret, open] = makePair(work, type, algorithm, [ofPrivate, ofPublic]);
    return pairAnswer(secret, open);
  },
};

export function pairAnswer(secret: KmipObject, open: KmipObject): Structure {
  return structure(
    tags.responsePayload,
    text(tags.privateKeyUniqueIdentifier, secret.key.id),
    text(tags.publicKeyUniqueIdentifier, open.key.id),
  );
}

/** The value of an object that a client brings. */
interface Brought {
  readonly kept: KeptKey;
  readonly form: KmipForm;
  readonly bytes: Uint8Array;
  readonly format: number | undefined;
  /** The item without its value. */
  readonly shape: Structure;
}

function without(from: Structure, tag: number): Structure {
  return structure(
    from.tag,
    from.value.filter((each) => each.tag !== tag),
  );
}

function stored(bytes: Uint8Array, form: KmipForm, shape: Structure, format?: number): Brought {
  if (bytes.length < 1 || bytes.length > longestValue) {
    throw new Refusal(reasons.invalidField, `the value of an object has 1 to ${longestValue} bytes`);
  }
  return { kept: { type: 'secret', key: bytes }, form, bytes, format, shape };
}

/** A value that is not in a key block: of a certificate or an opaque object. */
function plainValue(object: Structure, tag: number): Brought {
  const bytes = fieldOf(object, tag, 'bytes');
  if (!bytes) throw new Refusal(reasons.invalidField, 'the object has no value');
  return stored(bytes, 'value', without(object, tag));
}

function broughtKey(work: Work, objectType: number, object: Structure, algorithm: number | undefined): Brought {
  const block = structureIn(object, tags.keyBlock);
  const format = fieldOf(block, tags.keyFormatType, 'enumeration');
  if (!block || format === undefined) throw new Refusal(reasons.invalidField, 'the object has no key block');
  const found = one(block, tags.keyValue);
  if (!found) throw new Refusal(reasons.featureNotSupported, 'objects without a value are not kept here');
  const shape = structure(
    object.tag,
    object.value.map((each) => (each.tag === tags.keyBlock ? without(block, tags.keyValue) : each)),
  );
  if (found.type === 'bytes') return stored(found.value, 'wrapped', shape, format);
  const material = found.type === 'structure' ? one(found, tags.keyMaterial) : undefined;
  if (material?.type !== 'bytes' && material?.type !== 'structure') {
    throw new Refusal(reasons.invalidField, 'the key block has no key material');
  }
  const bytes = material.type === 'bytes' ? material.value : encodeItem(material);
  const plain =
    material.type === 'bytes' ? stored(bytes, 'material', shape, format) : stored(bytes, 'structure', shape, format);
  if (one(block, tags.keyWrappingData)) return plain;
  const kept = knownKey(work, objectType, { format, algorithm, material });
  if (!kept) return plain;
  return { ...plain, kept, form: 'key', bytes: 'key' in kept && material.type === 'structure' ? kept.key : bytes };
}

interface GivenKey {
  readonly format: number;
  readonly algorithm: number | undefined;
  readonly material: Extract<Item, { readonly type: 'bytes' | 'structure' }>;
}

/** The key as something here works with it; undefined if nothing does. */
function knownKey(work: Work, objectType: number, { format, algorithm, material }: GivenKey): KeptKey | undefined {
  if (objectType === objectTypes.privateKey || objectType === objectTypes.publicKey) {
    return asymmetricKey(objectType, format, material.type === 'bytes' ? material.value : material, work.keys);
  }
  const bytes =
    material.type === 'bytes'
      ? format === formats.raw || format === formats.opaque
        ? material.value
        : undefined
      : format === formats.transparentSymmetric
        ? fieldOf(material, tags.key, 'bytes')
        : undefined;
  if (!bytes || bytes.length === 0) return undefined;
  if (objectType === objectTypes.secretData) return { type: 'secret', key: bytes };
  const kept = symmetricKey(algorithm, bytes);
  return format === formats.opaque && kept.type !== 'secret' ? undefined : kept;
}

/** Algorithm and length of a key block and of the attributes must agree; either is filled by the other. */
function agreed(set: AttributeSet, { shape, kept, bytes, format }: Brought, objectType: number) {
  const block = structureIn(shape, tags.keyBlock);
  if (!block) return { set, shape };
  let filled = set;
  let whole = block;
  const fill = (name: string, tag: number, make: (tag: number, value: number) => Item, known: number | undefined) => {
    const inBlock = one(block, tag);
    const given = numberIn(filled, name);
    const inside = typeof inBlock?.value === 'number' ? inBlock.value : undefined;
    if (given !== undefined && inside !== undefined && given !== inside) {
      throw new Refusal(reasons.invalidField, `${name} is not that of the key block`);
    }
    const number = given ?? inside ?? known;
    if (number === undefined) return;
    filled = filled.withOne(name, make(value, number));
    if (inside === undefined && objectType !== objectTypes.secretData) whole = inserted(whole, make(tag, number));
  };
  const isSymmetric = objectType === objectTypes.symmetricKey;
  fill('Cryptographic Algorithm', tags.cryptographicAlgorithm, enumeration, algorithmOf(kept.type));
  const bits = isSymmetric ? bytes.length * 8 : keyTypeFacts[kept.type].kmip?.length;
  fill(
    'Cryptographic Length',
    tags.cryptographicLength,
    integer,
    objectType === objectTypes.secretData ? undefined : bits,
  );
  const isAes = numberIn(filled, 'Cryptographic Algorithm') === algorithms.aes;
  if (isSymmetric && isAes && format === formats.raw && !one(block, tags.keyWrappingData)) {
    if (numberIn(filled, 'Cryptographic Length') !== bytes.length * 8) {
      throw new Refusal(reasons.invalidField, 'Cryptographic Length is not that of the key');
    }
  }
  const shaped = structure(
    shape.tag,
    shape.value.map((each) => (each.tag === tags.keyBlock ? whole : each)),
  );
  return { set: filled, shape: shaped };
}

/** With the item before the wrapping data, as the specification orders them. */
function inserted(block: Structure, item: Item): Structure {
  const isLast = (each: Item) => each.tag === tags.keyWrappingData;
  return structure(
    block.tag,
    block.value.filter((each) => !isLast(each)),
    item,
    block.value.filter(isLast),
  );
}

/** Attributes that stand in the key block itself. */
function innerAttributes(version: number, object: Structure): readonly Attribute[] {
  const inner = structureIn(object, tags.keyBlock)?.value.find(({ tag }) => tag === tags.keyValue);
  if (inner?.type !== 'structure') return [];
  const holder = structure(tags.requestPayload, structure(tags.templateAttribute, all(inner, tags.attribute)));
  return readAttributes(version, holder, tags.templateAttribute, tags.templateAttribute);
}

export const register: Operation = {
  code: 0x03,
  name: 'Register',
  since: 10,
  action: 'key.import',
  isCostly: (payload) => one(payload, tags.privateKey) !== undefined,
  run(work, payload) {
    needMaking(work.ctx);
    const objectType = fieldOf(payload, tags.objectType, 'enumeration') ?? 0;
    const tag = objectTag(objectType);
    if (tag === undefined) throw new Refusal(reasons.invalidField, 'objects of this type are not kept here');
    const object = structureIn(payload, tag);
    if (!object) throw new Refusal(reasons.missingData, 'the object is missing');
    const given = readAttributes(work.version, payload, tags.templateAttribute, tags.attributes);
    const inner = innerAttributes(work.version, object).filter(({ name }) => !given.some((each) => each.name === name));
    const outer = givenSet([...given, ...inner], work.version);
    const block = structureIn(object, tags.keyBlock);
    const algorithm =
      numberIn(outer, 'Cryptographic Algorithm') ?? fieldOf(block, tags.cryptographicAlgorithm, 'enumeration');
    const brought = broughtValue(work, objectType, object, algorithm);
    const { set, shape } = agreed(outer, brought, objectType);
    const { kept, form, bytes, format } = brought;
    const isOpaque = objectType === objectTypes.opaqueObject;
    const masked =
      isOpaque || set.first('Cryptographic Usage Mask')
        ? set
        : set.withOne('Cryptographic Usage Mask', integer(value, 0));
    const full = objectType === objectTypes.certificate ? withCertificate(masked, object, bytes) : masked;
    const made = makeObject(work, {
      ...{ objectType, kept, form, shape, set: full, format },
      digested: bytes,
      isMade: false,
    });
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, made.key.id));
  },
};

function broughtValue(work: Work, objectType: number, object: Structure, algorithm: number | undefined): Brought {
  if (objectType === objectTypes.certificate) return plainValue(object, tags.certificateValue);
  if (objectType === objectTypes.opaqueObject) return plainValue(object, tags.opaqueDataValue);
  return broughtKey(work, objectType, object, algorithm);
}

function withCertificate(set: AttributeSet, object: Structure, bytes: Uint8Array): AttributeSet {
  const type = fieldOf(object, tags.certificateType, 'enumeration');
  return set
    .withOne('Certificate Type', type === undefined ? undefined : enumeration(value, type))
    .withOne('Certificate Length', integer(value, bytes.length));
}
