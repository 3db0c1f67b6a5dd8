// Operations on the life of objects: Activate, Revoke, Destroy, Archive, Recover, leases and allocations, and Re-key.
import { destroyKmipObject, isNative, type KmipObject, moveKmipObject, needMaking } from '../../core/kmip-objects.ts';
import { checkGrowth } from './attribute-limits.ts';
import { type Attribute, AttributeSet, checkValue, numberIn, readAttributes, timeIn } from './attributes.ts';
import { checkDateOrder } from './date-order.ts';
import { formats, linkTypes, objectTypes, states } from './enumerations.ts';
import { addLink, givenSet, linkOf, makeObject, makePair, newSymmetricKey, pairAnswer } from './making.ts';
import {
  allAttributes,
  attributesOf,
  described,
  hasState,
  leaseSeconds,
  madeShape,
  stateNumber,
  storeAttributes,
  typeOf,
} from './objects.ts';
import { idAnswer, type Operation, type Work } from './operation.ts';
import { denied, laterReasons, Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  date,
  enumeration,
  fieldOf,
  type Item,
  interval,
  type Structure,
  structure,
  structureIn,
  text,
} from './ttlv.ts';
import { newLimits, takeAllocation } from './usage-limits.ts';

const value = tags.attributeValue;

export const activate: Operation = {
  code: 0x12,
  name: 'Activate',
  since: 10,
  action: 'key.state',
  run(work, payload) {
    const object = work.find(payload, 'state');
    needState(object);
    if (object.state !== 'pre-active') throw denied('the object is not pre-active');
    moveKmipObject(work.ctx, object, 'activate');
    work.placeholder = object.id;
    return idAnswer(object);
  },
};

function needState(object: KmipObject): void {
  if (hasState(typeOf(object))) return;
  throw new Refusal(reasons.illegalOperation, 'opaque objects have no state');
}

const compromises: readonly number[] = [2, 3];

export const revoke: Operation = {
  code: 0x13,
  name: 'Revoke',
  since: 10,
  action: 'key.state',
  run(work, payload) {
    const object = work.find(payload, 'state');
    const reason = structureIn(payload, tags.revocationReason);
    const code = fieldOf(reason, tags.revocationReasonCode, 'enumeration');
    if (!reason || code === undefined)
      throw new Refusal(reasons.missingData, 'the reason for the revocation is missing');
    const message = fieldOf(reason, tags.revocationMessage, 'text');
    const item = structure(
      value,
      enumeration(tags.revocationReasonCode, code),
      message === undefined ? undefined : text(tags.revocationMessage, message),
    );
    checkValue('Revocation Reason', item);
    const isCompromise = compromises.includes(code);
    if (hasState(typeOf(object))) moveTo(work, object, isCompromise);
    const set = attributesOf(object).withOne('Revocation Reason', item);
    storeOwn(work, object, isCompromise ? compromised(work, object, payload, set) : set);
    return idAnswer(object);
  },
};

function moveTo(work: Work, object: KmipObject, isCompromise: boolean): void {
  if (isCompromise) {
    if (object.state !== 'compromised') moveKmipObject(work.ctx, object, 'compromise');
    return;
  }
  if (object.state !== 'active') {
    throw new Refusal(reasons.illegalOperation, 'only an active object is deactivated', laterReasons.wrongState);
  }
  moveKmipObject(work.ctx, object, 'deactivate');
}

function compromised(work: Work, { key }: KmipObject, payload: Structure, set: AttributeSet): AttributeSet {
  const occurred = fieldOf(payload, tags.compromiseOccurrenceDate, 'date');
  const item: Item =
    occurred === undefined ? date(value, key.createdAt) : { tag: value, type: 'date', value: occurred };
  return set.withOne('Compromise Date', date(value, work.now)).withOne('Compromise Occurrence Date', item);
}

/** Stores attributes, unless the key was made otherwise: that has none of its own. */
function storeOwn(work: Work, object: KmipObject, set: AttributeSet): void {
  if (object.row) storeAttributes(work, object, set);
}

export const destroy: Operation = {
  code: 0x14,
  name: 'Destroy',
  since: 10,
  action: 'key.delete',
  run(work, payload) {
    const object = work.find(payload, 'delete');
    needEnded(object);
    destroyKmipObject(work.ctx, object);
    return idAnswer(object);
  },
};

/** Throws `Refusal` for an object that is in use. */
function needEnded(object: KmipObject): void {
  if (!hasState(typeOf(object))) return;
  if (object.state === 'active') throw denied('an active object is revoked first');
}

export const archive: Operation = {
  code: 0x15,
  name: 'Archive',
  since: 10,
  action: 'key.state',
  run(work, payload) {
    const object = described(work, work.find(payload, 'state'));
    storeAttributes(work, object, attributesOf(object).withOne('Archive Date', date(value, work.now)));
    return idAnswer(object);
  },
};

export const recover: Operation = {
  code: 0x16,
  name: 'Recover',
  since: 10,
  action: 'key.state',
  run(work, payload) {
    const object = work.find(payload, 'state', { archived: true });
    storeOwn(work, object, attributesOf(object).withOne('Archive Date', undefined));
    work.placeholder = object.id;
    return idAnswer(object);
  },
};

export const obtainLease: Operation = {
  code: 0x10,
  name: 'Obtain Lease',
  since: 10,
  action: 'key.read',
  run(work, payload) {
    const object = work.find(payload, 'read');
    return structure(
      tags.responsePayload,
      text(tags.uniqueIdentifier, object.id),
      interval(tags.leaseTime, leaseSeconds),
      date(tags.lastChangeDate, object.key.updatedAt),
    );
  },
};

export const getUsageAllocation: Operation = {
  code: 0x11,
  name: 'Get Usage Allocation',
  since: 10,
  action: 'key.config',
  run(work, payload) {
    const object = work.find(payload, 'export');
    const count = fieldOf(payload, tags.usageLimitsCount, 'long');
    if (count === undefined) throw new Refusal(reasons.missingData, 'the count is missing');
    takeAllocation(work, object, count);
    return idAnswer(object);
  },
};

const shifted = ['Process Start Date', 'Protect Stop Date', 'Deactivation Date'] as const;

/** Attributes that a successor does not take over: it has others, or none. */
const notInherited: ReadonlySet<string> = new Set([
  ...['Unique Identifier', 'Object Type', 'State', 'Lease Time', 'Initial Date', 'Last Change Date', 'Digest', 'Link'],
  ...['Destroy Date', 'Compromise Date', 'Compromise Occurrence Date', 'Revocation Reason', 'Archive Date', 'Fresh'],
  ...['Original Creation Date', 'Always Sensitive', 'Never Extractable', 'Activation Date', ...shifted],
]);

/** The attributes of a successor: those of the old object with its dates, and those that the client gives instead. */
function inherited(work: Work, old: KmipObject, given: AttributeSet, offset: number | undefined): AttributeSet {
  const before = allAttributes(old);
  let set = new AttributeSet();
  for (const name of before.names) if (!notInherited.has(name)) set = set.with(name, before.get(name));
  // A part that was taken was taken of the old object's value.
  const limits = set.first('Usage Limits');
  if (limits) set = set.withOne('Usage Limits', newLimits(limits));
  for (const [name, item] of successorDates(work, before, offset)) set = set.withOne(name, item);
  for (const name of given.names) set = set.with(name, given.get(name));
  checkGrowth(before, set);
  checkDateOrder(set, given.names);
  return set;
}

/**
 * Dates are copied; with an offset the first is that long after now, and the others keep their distance from it. Those
 * that came before it, since the old object was activated late, come together with it.
 */
function successorDates(work: Work, before: AttributeSet, offset: number | undefined): [string, Item][] {
  const names = ['Activation Date', ...shifted];
  if (offset === undefined) {
    return names.flatMap((name): [string, Item][] => {
      const item = before.first(name);
      return item ? [[name, item]] : [];
    });
  }
  const begin = work.now + offset * 1000;
  const base = timeIn(before, 'Activation Date');
  const later = shifted.flatMap((name): [string, Item][] => {
    const time = timeIn(before, name);
    return time === undefined || base === undefined ? [] : [[name, date(value, begin + Math.max(time - base, 0))]];
  });
  return [['Activation Date', date(value, begin)], ...later];
}

/** The object to replace. Throws `Refusal` for one that has a successor, or was not made over KMIP. */
function replaceable(work: Work, id: string): KmipObject {
  needMaking(work.ctx);
  const old = work.byId(id, 'rotate');
  if (isNative(old) || old.row?.form !== 'key') {
    throw new Refusal(
      reasons.illegalOperation,
      'the key cannot be replaced here: its value came as it is, or is another interface’s',
    );
  }
  if (linkOf(old, linkTypes.replacement) !== undefined) {
    throw new Refusal(reasons.invalidField, 'the key has a replacement already');
  }
  if (stateNumber(old) > states.deactivated) throw denied('the state of the key does not allow it');
  return old;
}

/** Names go over to the successor, and both are linked. */
function succeed(work: Work, old: KmipObject, make: () => KmipObject): KmipObject {
  storeAttributes(work, old, attributesOf(old).withOne('Name', undefined));
  const made = make();
  link(work, old, made);
  return made;
}

function link(work: Work, old: KmipObject, made: KmipObject): void {
  addLink(work, old, linkTypes.replacement, made.key.id);
  addLink(work, made, linkTypes.replaced, old.key.id);
}

function givenTo(work: Work, payload: Structure, ...fields: readonly (readonly [number, number])[]): AttributeSet {
  const { version } = work;
  const given: readonly Attribute[] = fields.flatMap(([first, second]) =>
    readAttributes(version, payload, first, second),
  );
  return givenSet(given, version);
}

export const rekey: Operation = {
  code: 0x04,
  name: 'Re-key',
  since: 10,
  action: 'key.rotate',
  run(work, payload) {
    const old = replaceable(work, work.id(payload));
    if (typeOf(old) !== objectTypes.symmetricKey) {
      throw new Refusal(reasons.illegalOperation, 'only symmetric keys are replaced by Re-key');
    }
    const given = givenTo(work, payload, [tags.templateAttribute, tags.attributes]);
    const set = inherited(work, old, given, fieldOf(payload, tags.offset, 'interval'));
    const algorithm = numberIn(set, 'Cryptographic Algorithm') ?? 0;
    const { bits, ...kept } = newSymmetricKey(work, algorithm, numberIn(set, 'Cryptographic Length'));
    const key = 'key' in kept ? kept.key : new Uint8Array();
    try {
      const made = succeed(work, old, () =>
        makeObject(work, {
          // It stays the client's who had the old one.
          owner: old.row?.owner,
          objectType: objectTypes.symmetricKey,
          kept: { type: kept.type, key },
          form: 'key',
          shape: madeShape(objectTypes.symmetricKey, formats.raw, algorithm, bits),
          set,
          digested: key,
          format: formats.raw,
          isMade: true,
        }),
      );
      return idAnswer(made);
    } finally {
      key.fill(0);
    }
  },
};

export const rekeyKeyPair: Operation = {
  code: 0x1d,
  name: 'Re-key Key Pair',
  since: 11,
  action: 'key.rotate',
  isCostly: () => true,
  run(work, payload) {
    const secret = replaceable(work, work.id(payload, tags.privateKeyUniqueIdentifier));
    const openId = linkOf(secret, linkTypes.publicKey);
    if (typeOf(secret) !== objectTypes.privateKey || openId === undefined) {
      throw new Refusal(reasons.illegalOperation, 'expected a private key with a link to its public key');
    }
    const open = replaceable(work, openId);
    const offset = fieldOf(payload, tags.offset, 'interval');
    const common = [tags.commonTemplateAttribute, tags.commonAttributes] as const;
    const ofPrivate = [tags.privateKeyTemplateAttribute, tags.privateKeyAttributes] as const;
    const ofPublic = [tags.publicKeyTemplateAttribute, tags.publicKeyAttributes] as const;
    const sets = [
      inherited(work, secret, givenTo(work, payload, common, ofPrivate), offset),
      inherited(work, open, givenTo(work, payload, common, ofPublic), offset),
    ] as const;
    for (const old of [secret, open]) storeAttributes(work, old, attributesOf(old).withOne('Name', undefined));
    const algorithm = numberIn(sets[0], 'Cryptographic Algorithm') ?? 0;
    const [newSecret, newOpen] = makePair(work, secret.key.type, algorithm, sets, secret.row?.owner);
    link(work, secret, newSecret);
    link(work, open, newOpen);
    return pairAnswer(newSecret, newOpen);
  },
};
