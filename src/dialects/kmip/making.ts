// Operations that make objects: Create and Create Key Pair; and how attributes come to a new object.

import { isAsymmetric, type KeyMaterial } from '../../core/key-versions.ts';
import { insertKmipObject, type KmipObject, needMaking } from '../../core/kmip-objects.ts';
import { publicKeyOf } from '../../crypto/managed/keys.ts';
import { type KeyType, keyTypeFacts } from '../../model/key-types.ts';
import type { KmipForm } from '../../store/tables/kmip-objects.ts';
import { attributeLimits, checkGrowth } from './attribute-limits.ts';
import { ruleOf } from './attribute-rules.ts';
import { type Attribute, AttributeSet, checkValue, flagIn, numberIn, readAttributes, timeIn } from './attributes.ts';
import { checkDateOrder } from './date-order.ts';
import { algorithms, formats, linkTypes, objectTypes } from './enumerations.ts';
import { formatted, type KeptKey, symmetricKey, typeToMake, usualFormat, wrongFact } from './key-values.ts';
import { attributesOf, digestItem, keepsSecret, madeShape, shapeText, storeAttributes, usesOf } from './objects.ts';
import type { Operation, Work } from './operation.ts';
import { laterReasons, Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  boolean,
  date,
  enumeration,
  fieldOf,
  integer,
  isSameValue,
  one,
  type Structure,
  structure,
  text,
} from './ttlv.ts';
import { newLimits } from './usage-limits.ts';

const value = tags.attributeValue;

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
    if (set.get(name).size > 0 && (!isManyOf(name, version) || set.has(name, item))) {
      throw new Refusal(reasons.invalidField, `${name} is there twice`);
    }
    set = set.withMore(name, name === 'Usage Limits' ? newLimits(item) : item);
  }
  checkGrowth(undefined, set);
  checkDateOrder(set, set.names);
  return set;
}

interface MadeObject {
  /** Default: the client. */
  readonly owner?: string | undefined;
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
  // Times of the managed key are taken from here.
  for (const name of set.names) for (const each of set.get(name).values()) checkValue(name, each);
  const isExportable = flagIn(set, 'Extractable') ?? true;
  const object = insertKmipObject(ctx, {
    owner: wanted.owner,
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
        text(tags.uniqueIdentifier, object.id),
      );
    } finally {
      key.fill(0);
    }
  },
};

type PairSets = readonly [ofPrivate: AttributeSet, ofPublic: AttributeSet];

/** The attributes that a payload gives the halves of a pair. */
export function pairSets({ version }: Work, payload: Structure): PairSets {
  const common = readAttributes(version, payload, tags.commonTemplateAttribute, tags.commonAttributes);
  const half = (first: number, second: number): AttributeSet => {
    const own = readAttributes(version, payload, first, second);
    return givenSet([...commonLeft(common, own, version), ...own], version);
  };
  return [
    half(tags.privateKeyTemplateAttribute, tags.privateKeyAttributes),
    half(tags.publicKeyTemplateAttribute, tags.publicKeyAttributes),
  ];
}

/** The common attributes beside a half's own, which win; of those with several values both count (1.4 §4.2). */
function commonLeft(common: readonly Attribute[], own: readonly Attribute[], version: number): readonly Attribute[] {
  return common.filter(({ name, value: item }) => {
    const same = own.filter((each) => each.name === name);
    return same.length === 0 || (isManyOf(name, version) && !same.some((each) => isSameValue(each.value, item)));
  });
}

function isManyOf(name: string, version: number): boolean {
  const rule = ruleOf(name, version);
  return rule === undefined || rule.isMany === true;
}

/** Throws `Refusal` for an attribute that says something else of a key than its type. */
export function needFacts(type: KeyType, sets: readonly AttributeSet[]): void {
  for (const set of sets) {
    const bits = numberIn(set, 'Cryptographic Length');
    const wrong = wrongFact(type, { algorithm: numberIn(set, 'Cryptographic Algorithm'), bits, curve: curveIn(set) });
    if (wrong !== undefined) throw new Refusal(reasons.invalidField, `${wrong} is not that of the key`);
  }
}

export function curveIn(set: AttributeSet): number | undefined {
  const parameters = set.first('Cryptographic Domain Parameters');
  return parameters?.type === 'structure' ? fieldOf(parameters, tags.recommendedCurve, 'enumeration') : undefined;
}

/** Makes both halves of a pair, with links to each other. The first is the private key. */
export function makePair(
  work: Work,
  type: KeyType,
  algorithm: number,
  sets: PairSets,
  owner?: string,
): readonly [KmipObject, KmipObject] {
  if (!isAsymmetric(type)) throw new Refusal(reasons.invalidField, 'no pair is made of this algorithm and length');
  const key = work.keys.newKey(type);
  try {
    const half = (objectType: number, kept: KeptKey, set: AttributeSet): KmipObject => {
      const format = usualFormat(type, objectType);
      const material = formatted(kept, format);
      const bits = keyTypeFacts[type].kmip?.length ?? 256;
      const own = numberIn(set, 'Cryptographic Algorithm') ?? algorithm;
      const object = makeObject(work, {
        owner,
        objectType,
        kept,
        form: 'key',
        shape: madeShape(objectType, format, own, bits),
        set: withLength(withAlgorithm(set, own), bits),
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

/** Links to derived keys that their base has: any further ones are found by the links that those have to it. */
const mostDerivedLinks = 50;

/** Links the base and what was derived from it. */
export function linkDerived(work: Work, base: KmipObject, made: KmipObject): void {
  addLink(work, made, linkTypes.derivationBase, base.key.id);
  const links = [...attributesOf(base).get('Link').values()];
  const derived = links.filter(
    (each) => each.type === 'structure' && fieldOf(each, tags.linkType, 'enumeration') === linkTypes.derivedKey,
  );
  if (derived.length >= mostDerivedLinks || links.length >= attributeLimits.links) return;
  addLink(work, base, linkTypes.derivedKey, made.key.id, true);
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
    const sets = pairSets(work, payload);
    const [ofPrivate, ofPublic] = sets;
    const algorithm =
      numberIn(ofPrivate, 'Cryptographic Algorithm') ?? neededNumber(ofPublic, 'Cryptographic Algorithm');
    const bits = numberIn(ofPrivate, 'Cryptographic Length') ?? numberIn(ofPublic, 'Cryptographic Length');
    const type = typeToMake(algorithm, bits, curveIn(ofPrivate) ?? curveIn(ofPublic));
    if (type === undefined) {
      throw new Refusal(reasons.invalidField, 'no pair is made of this algorithm, length or curve');
    }
    needFacts(type, sets);
    const [secret, open] = makePair(work, type, algorithm, sets);
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
