// Keys that leave wrapped by another key: AES key wrap (RFC 3394) and its form with padding (RFC 5649).
import type { KmipObject } from '../../core/kmip-objects.ts';
import { wrapKw } from '../../crypto/managed/block-modes.ts';
import { wrapKwp } from '../../crypto/managed/key-wrap.ts';
import { isKnownTo } from './attribute-rules.ts';
import { readWrappedNames, writeAttribute } from './attributes.ts';
import { encodings, modes, usages } from './enumerations.ts';
import { allAttributes, withValue } from './objects.ts';
import type { Work } from './operation.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  byteString,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  one,
  type Structure,
  structure,
  structureIn,
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
  if (!information) throw new Refusal(reasons.missingData, 'the key to wrap with is missing');
  const option = fieldOf(specification, tags.encodingOption, 'enumeration') ?? encodings.ttlv;
  const names = readWrappedNames(specification);
  if (names.length > 0 && option === encodings.none) {
    throw new Refusal(reasons.encodingOptionError, 'attributes are wrapped in TTLV alone');
  }
  const set = allAttributes(object);
  const told = names
    .filter((name) => isKnownTo(name, work.version))
    .flatMap((name) => [...set.get(name)].map(([index, value]) => ({ name, index, value })));
  const attributes = told.map((each) => writeAttribute(work.version, each));
  const plain =
    option === encodings.none ? materialIn(item) : encodeItem(structure(tags.keyValue, item.value, attributes));
  try {
    const data = structure(
      tags.keyWrappingData,
      enumeration(tags.wrappingMethod, encrypting),
      information,
      one(specification, tags.encodingOption),
    );
    const wrapped = wrap(work, information, plain);
    const isNested = option === encodings.none && wantsStructure(work);
    const value = isNested
      ? structure(tags.keyValue, byteString(tags.keyMaterial, wrapped))
      : byteString(tags.keyValue, wrapped);
    return withValue(shape, value, format, data);
  } finally {
    plain.fill(0);
  }
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

function wrap(work: Work, information: Structure, plain: Uint8Array): Uint8Array {
  const { subject } = work;
  const kek = work.find(information, 'wrap');
  work.subject = subject;
  const use = keyInUse(work, kek, { use: 'wrap', right: 'wrap', mask: usages.wrap, protects: true });
  const stored = use.toMake(0);
  const mode = fieldOf(structureIn(information, tags.cryptographicParameters), tags.blockCipherMode, 'enumeration');
  const known: readonly number[] = [modes.nistKeyWrap, modes.keyWrapPadding];
  if (!use.type.startsWith('aes') || (mode !== undefined && !known.includes(mode))) {
    throw new Refusal(reasons.featureNotSupported, 'keys are wrapped by AES key wrap alone');
  }
  takeUsage(work, kek, plain.length);
  const key = use.opened(stored);
  const wrapped = mode === modes.keyWrapPadding ? wrapKwp(key, plain) : wrapKw(key, plain);
  use.count(stored.version);
  return wrapped;
}
