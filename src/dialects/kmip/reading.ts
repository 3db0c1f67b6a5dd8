// Operations that look: Query, Discover Versions, Locate, Get Attributes, Get Attribute List, Check, and Get, which
// hands a value out.
import { countUse } from '../../core/key-dependents.ts';
import { type KmipObject, searchedObjects, versionOfObject } from '../../core/kmip-objects.ts';
import { keyRef } from '../../core/managed-keys.ts';
import type { Slices } from '../../store/sql.ts';
import { isKnownTo } from './attribute-rules.ts';
import {
  type Attribute,
  type AttributeSet,
  nameText,
  readAttribute,
  readAttributes,
  readReferences,
  writeAttribute,
  writeReference,
} from './attributes.ts';
import { states, storage } from './enumerations.ts';
import {
  allAttributes,
  attributesOf,
  formatOf,
  keptObjectTypes,
  leaseSeconds,
  maskIn,
  shapeOf,
  storeAttributes,
  typeOf,
  valueItem,
  withValue,
} from './objects.ts';
import type { Operation, Work } from './operation.ts';
import { laterReasons, Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  all,
  boolean,
  enumeration,
  fieldOf,
  type Item,
  integer,
  interval,
  isSameValue,
  long,
  one,
  type Structure,
  structure,
  structureIn,
  text,
  valueIn,
} from './ttlv.ts';
import { usageLeft } from './usage-limits.ts';
import { supportedVersions, versionItem } from './versions.ts';
import { wrappedValue } from './wrapping.ts';

const queries = { operations: 1, objects: 2, server: 3 } as const;

/** @param operations all operations, which it lists. */
export function queryOperation(operations: () => readonly Operation[]): Operation {
  return {
    code: 0x18,
    name: 'Query',
    since: 10,
    action: 'kmip.query',
    open(version, payload) {
      const asked = all(payload, tags.queryFunction).map((item) => valueIn(item, 'enumeration'));
      const known = operations().filter(({ since }) => since <= version);
      return structure(
        tags.responsePayload,
        asked.includes(queries.operations) ? known.map(({ code }) => enumeration(tags.operation, code)) : [],
        asked.includes(queries.objects) ? keptObjectTypes.map((type) => enumeration(tags.objectType, type)) : [],
        asked.includes(queries.server)
          ? [text(tags.vendorIdentification, 'kms'), structure(tags.serverInformation)]
          : [],
      );
    },
  };
}

export const discoverVersions: Operation = {
  code: 0x1e,
  name: 'Discover Versions',
  since: 11,
  action: 'kmip.query',
  open(_version, payload) {
    const asked = all(payload, tags.protocolVersion).map((item) => {
      const from = structure(item.tag, valueIn(item, 'structure'));
      const [major, minor] = [tags.protocolVersionMajor, tags.protocolVersionMinor].map((tag) =>
        fieldOf(from, tag, 'integer'),
      );
      return (major ?? 0) * 10 + (minor ?? 0);
    });
    const told = supportedVersions.filter((version) => asked.length === 0 || asked.includes(version));
    return structure(tags.responsePayload, told.map(versionItem));
  },
};

/** Objects told by one search. */
const mostLocated = 1000;
/** Objects compared in one turn of the event loop. */
const comparedAtOnce = 200;

/** Objects compared in one message after which no other search begins. */
const mostSearched = 5000;

interface Search {
  readonly wanted: readonly Attribute[];
  readonly storage: number;
  /** Object Group Member: which members of groups are meant. Undefined for all objects. */
  readonly member: number | undefined;
  /** Whether destroyed objects are meant. */
  readonly isOfDestroyed: boolean;
}

export const locate: Operation = {
  code: 0x08,
  name: 'Locate',
  since: 10,
  action: 'key.list',
  *slices(work, payload): Slices<Structure> {
    const { version } = work;
    const own = work.isSecond ? [] : all(payload, tags.attribute).map((item) => readAttribute(version, item, true));
    // Some clients of 1.x put the attributes in a Template-Attribute.
    const wanted = [...own, ...readAttributes(version, payload, tags.templateAttribute, tags.attributes, true)];
    const most = countIn(payload, tags.maximumItems) ?? mostLocated;
    const skipped = countIn(payload, tags.offsetItems);
    const search: Search = {
      wanted,
      storage: fieldOf(payload, tags.storageStatusMask, 'integer') ?? storage.online,
      member: memberIn(payload),
      isOfDestroyed: wanted.some(({ name, value }) => name === 'State' && Number(value.value) >= states.destroyed),
    };
    const name = wanted.find((each) => each.name === 'Name');
    const found: string[] = [];
    let count = 0;
    let compared = 0;
    // One search goes through all objects; many of them in one message would keep the tenant's other requests waiting.
    if (work.searched >= mostSearched) {
      throw new Refusal(
        reasons.permissionDenied,
        `the searches of a message end after ${mostSearched} objects: search in another message`,
        laterReasons.serverLimitExceeded,
      );
    }
    for (const object of searchedObjects(work.ctx, nameText(name?.value))) {
      work.searched++;
      if (++compared % comparedAtOnce === 0) yield;
      if (!isWanted(object, search)) continue;
      const isTold = count++ >= (skipped ?? 0) && found.length < Math.min(most, mostLocated);
      if (isTold) found.push(object.id);
      else if (skipped === undefined && found.length >= Math.min(most, mostLocated)) break;
    }
    work.placeholder = found.length === 1 ? found[0] : undefined;
    return structure(
      tags.responsePayload,
      skipped !== undefined && version >= 13 ? integer(tags.locatedItems, count) : undefined,
      found.map((id) => text(tags.uniqueIdentifier, id)),
    );
  },
};

function countIn(payload: Structure, tag: number): number | undefined {
  const count = fieldOf(payload, tag, 'integer');
  if (count !== undefined && count < 0) throw new Refusal(reasons.invalidField, 'a negative number of items');
  return count;
}

const members = { fresh: 1, any: 2 } as const;

function memberIn(payload: Structure): number | undefined {
  const member = fieldOf(payload, tags.objectGroupMember, 'enumeration');
  if (member === undefined || member === members.fresh || member === members.any) return member;
  throw new Refusal(reasons.invalidField, 'there is no such member of a group');
}

/** A fresh one was not handed out yet. */
function isMember(object: KmipObject, member: number | undefined): boolean {
  if (member === undefined) return true;
  const set = attributesOf(object);
  if (!set.first('Object Group')) return false;
  return member !== members.fresh || set.first('Fresh')?.value === true;
}

function isWanted(object: KmipObject, { wanted, storage: where, member, isOfDestroyed }: Search): boolean {
  if (!isMember(object, member)) return false;
  if (object.isDestroyed !== isOfDestroyed) return false;
  const isArchived = attributesOf(object).first('Archive Date') !== undefined;
  if ((where & (isArchived ? storage.archived : storage.online)) === 0) return false;
  const set = allAttributes(object);
  return wanted.every((attribute) => fits(set, attribute, wanted));
}

/** Two dates of one name are a range. */
function fits(set: AttributeSet, { name, value }: Attribute, wanted: readonly Attribute[]): boolean {
  const there = [...set.get(name).values()];
  if (value.type === 'date') {
    const dates = wanted.flatMap((each) =>
      each.name === name && each.value.type === 'date' ? [each.value.value] : [],
    );
    if (dates.length === 2) {
      const [low = 0n, high = 0n] = dates.toSorted((a, b) => (a < b ? -1 : 1));
      return there.some((each) => each.type === 'date' && each.value >= low && each.value <= high);
    }
  }
  if (name === 'Cryptographic Usage Mask' && value.type === 'integer') {
    return there.some((each) => each.type === 'integer' && (each.value & value.value) === value.value);
  }
  if (value.type !== 'structure') return there.some((each) => isSameValue(each, value));
  // Fields that are left out may have any value.
  return there.some(
    (each) =>
      each.type === 'structure' &&
      value.value.every((field) => each.value.some((its) => its.tag === field.tag && isSameValue(its, field))),
  );
}

/** Attributes in their order, as far as the client knows them. */
function told(work: Work, set: AttributeSet, names: readonly string[]): readonly Attribute[] {
  const wanted = names.length > 0 ? names : set.names;
  return wanted
    .filter((name) => isKnownTo(name, work.version))
    .flatMap((name) => [...set.get(name)].map(([index, value]) => ({ name, index, value })));
}

export const getAttributes: Operation = {
  code: 0x0b,
  name: 'Get Attributes',
  since: 10,
  action: 'key.read',
  run(work, payload) {
    const names = readReferences(work.version, payload);
    const object = work.find(payload, 'read', { archived: true, destroyed: true });
    const items = told(work, allAttributes(object), names).map((each) => writeAttribute(work.version, each));
    return structure(
      tags.responsePayload,
      text(tags.uniqueIdentifier, object.id),
      work.isSecond ? structure(tags.attributes, items) : items,
    );
  },
};

export const getAttributeList: Operation = {
  code: 0x0c,
  name: 'Get Attribute List',
  since: 10,
  action: 'key.read',
  run(work, payload) {
    const object = work.find(payload, 'read', { archived: true, destroyed: true });
    const names = allAttributes(object).names.filter((name) => isKnownTo(name, work.version));
    return structure(
      tags.responsePayload,
      text(tags.uniqueIdentifier, object.id),
      names.map((name) => writeReference(work.version, name)),
    );
  },
};

export const check: Operation = {
  code: 0x09,
  name: 'Check',
  since: 10,
  action: 'key.read',
  run(work, payload) {
    const object = work.find(payload, 'read');
    const mask = fieldOf(payload, tags.cryptographicUsageMask, 'integer') ?? 0;
    const count = fieldOf(payload, tags.usageLimitsCount, 'long');
    const lease = fieldOf(payload, tags.leaseTime, 'interval') ?? 0;
    const left = usageLeft(object);
    const unfit: Item[] = [];
    if (count !== undefined && left !== undefined && count > left) unfit.push(long(tags.usageLimitsCount, left));
    if ((maskIn(object) & mask) !== mask) unfit.push(integer(tags.cryptographicUsageMask, maskIn(object)));
    if (lease > leaseSeconds) unfit.push(interval(tags.leaseTime, leaseSeconds));
    if (work.isSecond && unfit.length > 0) {
      const { incompatibleUsageMask } = laterReasons;
      throw new Refusal(reasons.permissionDenied, 'the object does not allow what was asked', incompatibleUsageMask);
    }
    work.placeholder = object.id;
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, object.id), unfit);
  },
};

/** Throws `Refusal` for a value that is not handed out, or not like this. */
function needHandingOut(work: Work, object: KmipObject, isWrapped: boolean): void {
  const isOld = work.version < 14;
  // Public keys are for all who may look at the managed key.
  if (!object.key.exportable && !object.isPublicHalf) {
    const reason = isOld ? reasons.permissionDenied : reasons.notExtractable;
    throw new Refusal(reason, 'the object may not leave the appliance', reasons.notExtractable);
  }
  if (!isWrapped && attributesOf(object).first('Sensitive')?.value === true) {
    const reason = isOld ? reasons.permissionDenied : reasons.sensitive;
    throw new Refusal(reason, 'the object leaves the appliance wrapped only', reasons.sensitive);
  }
}

export const get: Operation = {
  code: 0x0a,
  name: 'Get',
  since: 10,
  action: 'key.export',
  run(work, payload) {
    const object = work.find(payload, 'export');
    const specification = structureIn(payload, tags.keyWrappingSpecification);
    if (one(payload, tags.keyCompressionType)) {
      throw new Refusal(reasons.keyCompressionTypeNotSupported, 'compressed keys are not handed out');
    }
    needHandingOut(work, object, specification !== undefined);
    const asked = fieldOf(payload, tags.keyFormatType, 'enumeration');
    const shape = shapeOf(object);
    const format = asked === formatOf(shape) ? undefined : asked;
    const item = valueItem(work.ctx, object, format);
    const whole = specification
      ? wrappedValue(work, object, { specification, shape, format, item })
      : withValue(shape, item, format);
    const how = specification ? ('wrapped' as const) : ('plaintext' as const);
    work.subject = object.key.name;
    work.ctx.note({ object: keyRef(object.key), transfer: how });
    // Public keys of pairs made otherwise are looked at, as elsewhere; all else counts, so that no key goes unasked.
    if (!object.isPublicHalf) countUse(work.ctx, object.key, versionOfObject(work.ctx, object).version, 'export');
    noLongerFresh(work, object);
    return structure(
      tags.responsePayload,
      enumeration(tags.objectType, typeOf(object)),
      text(tags.uniqueIdentifier, object.id),
      whole,
    );
  },
};

function noLongerFresh(work: Work, { key }: KmipObject): void {
  // A key that was wrapped by itself has changed: a part of its limits was taken.
  const object = { row: work.ctx.tx.kmipObjects.byKey(key.id) };
  const set = attributesOf(object);
  if (object.row && set.first('Fresh')?.value === true) {
    storeAttributes(work, object, set.withOne('Fresh', boolean(tags.attributeValue, false)));
  }
}
