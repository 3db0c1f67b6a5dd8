// Keys that leave wrapped by another key: AES key wrap (RFC 3394) and its form with padding (RFC 5649).
import type { KmipObject } from '../../core/kmip-objects.ts';
import { wrapKw } from '../../crypto/managed/block-modes.ts';
import { wrapKwp } from '../../crypto/managed/key-wrap.ts';
import type { KeyType } from '../../model/key-types.ts';
import { isKnownTo } from './attribute-rules.ts';
import { readNames, writeAttribute } from './attributes.ts';
import { encodings, modes, usages } from './enumerations.ts';
import { allAttributes, withValue } from './objects.ts';
import type { Work } from './operation.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  all,
  byteString,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  one,
  type Structure,
  structure,
  structureIn,
  text,
} from './ttlv.ts';
import { takeUsage } from './usage-limits.ts';
import { keyInUse } from './uses.ts';

interface ToWrap {
  readonly specification: Structure;
  readonly shape: Structure;
  readonly format: number | undefined;
  /** Key Value. */
  readonly item: Item;
}

const encrypting = 1;

/** Bytes that are wrapped at once: the longest value, and as much of attributes. */
const mostWrapped = 128 * 1024;
/** Bytes that are wrapped in place: some milliseconds. */
const shortPlain = 8192;

/** The object with its value wrapped. Throws `Refusal`. */
export function wrappedValue(
  work: Work,
  object: KmipObject,
  { specification, shape, format, item }: ToWrap,
): Structure {
  const block = structureIn(shape, tags.keyBlock);
  if (!block || item.type !== 'structure')
    throw new Refusal(reasons.illegalOperation, 'the object is no key, or wrapped');
  if (one(block, tags.keyWrappingData)) throw new Refusal(reasons.illegalOperation, 'the key is wrapped already');
  if (fieldOf(specification, tags.wrappingMethod, 'enumeration') !== encrypting) {
    throw new Refusal(reasons.featureNotSupported, 'keys are wrapped by encryption alone');
  }
  const information = structureIn(specification, tags.encryptionKeyInformation);
  if (!information || !one(information, tags.uniqueIdentifier)) {
    throw new Refusal(reasons.missingData, 'the key to wrap with is missing');
  }
  const option = fieldOf(specification, tags.encodingOption, 'enumeration') ?? encodings.ttlv;
  const names = readNames(specification);
  if (names.length > 0 && option === encodings.none) {
    throw new Refusal(reasons.encodingOptionError, 'attributes are wrapped in TTLV alone');
  }
  const plain = plainValue(work, object, item, option === encodings.none ? undefined : names);
  try {
    const { id, wrapped } = wrap(work, information, plain);
    const data = structure(
      tags.keyWrappingData,
      enumeration(tags.wrappingMethod, encrypting),
      // An enumeration of 2.x means a key of this batch, and says nothing later.
      structure(
        information.tag,
        information.value.map((each) => (each.tag === tags.uniqueIdentifier ? text(each.tag, id) : each)),
      ),
      one(specification, tags.encodingOption),
    );
    const isNested = option === encodings.none && wantsStructure(work);
    const value = isNested
      ? structure(tags.keyValue, byteString(tags.keyMaterial, wrapped))
      : byteString(tags.keyValue, wrapped);
    return withValue(shape, value, format, data);
  } finally {
    plain.fill(0);
  }
}

/** The bytes to wrap: the key alone, or in TTLV with the attributes of those names. Throws `Refusal` for too many. */
function plainValue(work: Work, object: KmipObject, item: Structure, names: readonly string[] | undefined): Uint8Array {
  if (!names) return materialIn(item);
  const set = allAttributes(object);
  const attributes = names
    .filter((name) => isKnownTo(name, work.version))
    .flatMap((name) => [...set.get(name)].map(([index, value]) => ({ name, index, value })))
    .map((each) => writeAttribute(work.version, each));
  return encodeItem(structure(tags.keyValue, item.value, attributes));
}

/**
 * Whether the client reads a wrapped key from a structure, as PyKMIP does, where the specification has a byte string:
 * a property of its API key says so.
 */
function wantsStructure({ ctx }: Work): boolean {
  return ctx.tx.apiKeys.byId(ctx.caller.id)?.props.kmipWrappedKeyValue === 'structure';
}

function materialIn(item: Structure): Uint8Array {
  const material = one(item, tags.keyMaterial);
  if (material?.type === 'bytes') return material.value;
  const key = material?.type === 'structure' ? fieldOf(material, tags.key, 'bytes') : undefined;
  if (key) return key;
  throw new Refusal(reasons.encodingOptionError, 'only bytes are wrapped without TTLV');
}

interface Wrapped {
  /** The wrapping key's. */
  readonly id: string;
  readonly wrapped: Uint8Array;
}

function wrap(work: Work, information: Structure, plain: Uint8Array): Wrapped {
  const kek = work.find(information, 'wrap');
  const use = keyInUse(work, kek, { use: 'wrap', right: 'wrap', mask: usages.wrap, protects: true });
  const stored = use.toMake(0);
  const mode = fieldOf(structureIn(information, tags.cryptographicParameters), tags.blockCipherMode, 'enumeration');
  const known: readonly number[] = [modes.nistKeyWrap, modes.keyWrapPadding];
  if (!use.type.startsWith('aes') || (mode !== undefined && !known.includes(mode))) {
    throw new Refusal(reasons.featureNotSupported, 'keys are wrapped by AES key wrap alone');
  }
  if (plain.length > mostWrapped) {
    throw new Refusal(
      reasons.invalidField,
      `a key is wrapped with its attributes if they have ${mostWrapped} bytes at most`,
    );
  }
  work.effort.spend('wrapped', plain.length);
  takeUsage(work, kek, plain.length);
  const job = mode === modes.keyWrapPadding ? 'wrapKwp' : 'wrapKw';
  const input = { key: use.opened(stored), bytes: plain };
  const wrapped =
    plain.length > shortPlain
      ? work.keys.run(job, input)
      : job === 'wrapKw'
        ? wrapKw(input.key, plain)
        : wrapKwp(input.key, plain);
  use.count(stored.version);
  return { id: kek.id, wrapped };
}

/** Whether a Get may wrap more than is wrapped in place, of a key of that type, or if that is not known. */
export function isLongWrap(payload: Structure, type: KeyType | undefined): boolean {
  const specification = structureIn(payload, tags.keyWrappingSpecification);
  if (!specification) return false;
  return type === undefined || type === 'secret' || all(specification, tags.attributeName).length > 0;
}
