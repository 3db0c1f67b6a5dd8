// Register: objects whose values clients bring. They are kept as they came, and those that something here works with as
// managed keys of their type.

import { needMaking } from '../../core/kmip-objects.ts';
import { keyTypeFacts } from '../../model/key-types.ts';
import type { KmipForm } from '../../store/tables/kmip-objects.ts';
import { type Attribute, type AttributeSet, numberIn, readAttributes } from './attributes.ts';
import { algorithms, formats, objectTypes } from './enumerations.ts';
import { checkKnown } from './field-rules.ts';
import {
  algorithmOf,
  asymmetricKey,
  isOfOne,
  isOfPairs,
  type KeptKey,
  type KeyFacts,
  symmetricKey,
  wrongFact,
} from './key-values.ts';
import { curveIn, givenSet, makeObject } from './making.ts';
import { objectTag } from './objects.ts';
import type { Operation, Work } from './operation.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  all,
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

/** The value of an object that a client brings. */
interface Brought {
  readonly kept: KeptKey;
  readonly form: KmipForm;
  readonly bytes: Uint8Array;
  readonly format: number | undefined;
  /** The item without its value. */
  readonly shape: Structure;
}

/** Fields of objects and their key blocks that are kept beside the value. */
const keptTags: ReadonlySet<number> = new Set([
  ...[tags.certificateType, tags.secretDataType, tags.opaqueDataType, tags.keyBlock],
  ...[tags.keyFormatType, tags.keyCompressionType, tags.cryptographicAlgorithm, tags.cryptographicLength],
  tags.keyWrappingData,
]);

/** The fields of an object or key block that are kept beside its value. */
function keptOf(from: Structure): Structure {
  return structure(
    from.tag,
    from.value.filter(({ tag }) => keptTags.has(tag)),
  );
}

/** Throws `Refusal` for a value that is too short or long, or fields beside it that mean nothing. */
function stored(bytes: Uint8Array, form: KmipForm, shape: Structure, format?: number): Brought {
  if (bytes.length < 1 || bytes.length > longestValue) {
    throw new Refusal(reasons.invalidField, `the value of an object has 1 to ${longestValue} bytes`);
  }
  checkKnown(shape);
  return { kept: { type: 'secret', key: bytes }, form, bytes, format, shape };
}

/** A value that is not in a key block: of a certificate or an opaque object. */
function plainValue(object: Structure, tag: number): Brought {
  const bytes = fieldOf(object, tag, 'bytes');
  if (!bytes) throw new Refusal(reasons.invalidField, 'the object has no value');
  return stored(bytes, 'value', keptOf(object));
}

function broughtKey(work: Work, objectType: number, object: Structure, algorithm: number | undefined): Brought {
  const block = structureIn(object, tags.keyBlock);
  const format = fieldOf(block, tags.keyFormatType, 'enumeration');
  if (!block || format === undefined) throw new Refusal(reasons.invalidField, 'the object has no key block');
  const found = one(block, tags.keyValue);
  if (!found) throw new Refusal(reasons.featureNotSupported, 'objects without a value are not kept here');
  const shape = structure(
    object.tag,
    keptOf(object).value.map((each) => (each.tag === tags.keyBlock ? keptOf(block) : each)),
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

/** Algorithm and length of key block and attributes must agree, and be the key's; either is filled by the other. */
function agreed(set: AttributeSet, brought: Brought, objectType: number) {
  const { shape, kept, bytes } = brought;
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
    if (number === undefined) return number;
    filled = filled.withOne(name, make(value, number));
    if (inside === undefined && objectType !== objectTypes.secretData) whole = inserted(whole, make(tag, number));
    return number;
  };
  const { cryptographicAlgorithm, cryptographicLength } = tags;
  const algorithm = fill('Cryptographic Algorithm', cryptographicAlgorithm, enumeration, algorithmOf(kept.type));
  const isSymmetric = objectType === objectTypes.symmetricKey;
  const known = isSymmetric ? bytes.length * 8 : keyTypeFacts[kept.type].kmip?.length;
  const isSecret = objectType === objectTypes.secretData;
  const bits = fill('Cryptographic Length', cryptographicLength, integer, isSecret ? undefined : known);
  checkFacts(brought, objectType, { algorithm, bits, curve: curveIn(filled) });
  const shaped = structure(
    shape.tag,
    shape.value.map((each) => (each.tag === tags.keyBlock ? whole : each)),
  );
  return { set: filled, shape: shaped };
}

/**
 * Throws `Refusal` for an algorithm, length or curve that is not the key's. Values that come wrapped, or in a form that
 * is not looked into, are told by their clients alone: some keep ciphertexts as opaque keys of AES-256.
 */
function checkFacts({ kept, form, format, bytes, shape }: Brought, objectType: number, facts: KeyFacts): void {
  const { algorithm, bits } = facts;
  const isOpen = form === 'key' && !one(structureIn(shape, tags.keyBlock) ?? shape, tags.keyWrappingData);
  const isSymmetric = objectType === objectTypes.symmetricKey;
  const isPair = objectType === objectTypes.privateKey || objectType === objectTypes.publicKey;
  const hasOtherKind = algorithm !== undefined && (isSymmetric ? isOfPairs(algorithm) : isPair && isOfOne(algorithm));
  const wrong = hasOtherKind
    ? 'Cryptographic Algorithm'
    : isPair && isOpen
      ? wrongFact(kept.type, facts)
      : isSymmetric && isOpen && format !== formats.opaque && !isLengthOf(algorithm, bytes.length, bits)
        ? 'Cryptographic Length'
        : undefined;
  if (wrong !== undefined) throw new Refusal(reasons.invalidField, `${wrong} is not that of the key`);
}

/** Whether a symmetric key of so many bytes has that length; of DES also without its parity bits. */
function isLengthOf(algorithm: number | undefined, bytes: number, bits: number | undefined): boolean {
  if (bits === undefined || bits === bytes * 8) return true;
  return (algorithm === algorithms.des || algorithm === algorithms.tripleDes) && bits === bytes * 7;
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
