// Operations that look: Query, Discover Versions, Locate, Get Attributes, Get Attribute List, Check, and Get, which
// hands a value out.
import { countUse } from '../../core/key-dependents.ts';
import { type KmipObject, versionOfObject } from '../../core/kmip-objects.ts';
import { isKnownTo } from './attribute-rules.ts';
import { type Attribute, type AttributeSet, readReferences, writeAttribute, writeReference } from './attributes.ts';
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
  long,
  one,
  structure,
  structureIn,
  text,
  valueIn,
} from './ttlv.ts';
import { usageLeft } from './usage-limits.ts';
import { supportedVersions, versionItem } from './versions.ts';
import { isLongWrap, wrappedValue } from './wrapping.ts';

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
    // Items after this one do not take the object for a fit one.
    work.placeholder = unfit.length > 0 ? undefined : object.id;
    if (work.isSecond && unfit.length > 0) {
      const { incompatibleUsageMask } = laterReasons;
      throw new Refusal(reasons.permissionDenied, 'the object does not allow what was asked', incompatibleUsageMask);
    }
    if (unfit.length > 0) return structure(tags.responsePayload, unfit);
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, object.id));
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
  // One that came wrapped leaves as it came.
  if (!isWrapped && !cameWrapped(object) && attributesOf(object).first('Sensitive')?.value === true) {
    const reason = isOld ? reasons.permissionDenied : reasons.sensitive;
    throw new Refusal(reason, 'the object leaves the appliance wrapped only', reasons.sensitive);
  }
}

function cameWrapped(object: KmipObject): boolean {
  const block = structureIn(shapeOf(object), tags.keyBlock);
  return block !== undefined && one(block, tags.keyWrappingData) !== undefined;
}

export const get: Operation = {
  code: 0x0a,
  name: 'Get',
  since: 10,
  action: 'key.export',
  isCostly: isLongWrap,
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
    const how = specification || cameWrapped(object) ? ('wrapped' as const) : ('plaintext' as const);
    // A wrapping key was looked up in between.
    work.isAbout(object, { transfer: how });
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
