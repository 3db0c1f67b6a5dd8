// Usage Limits: how many bytes or objects a key may still protect. What was asked for or protected is taken off.
import type { KmipObject } from '../../core/kmip-objects.ts';
import { attributesOf, storeAttributes } from './objects.ts';
import type { Work } from './operation.ts';
import { denied } from './reasons.ts';
import { tags } from './tags.ts';
import { enumeration, fieldOf, type Item, long, structure } from './ttlv.ts';

const ofObjects = 2;

/** Limits as a client gives them: the count is the server's, and begins at the total. */
export function newLimits(given: Item): Item {
  const total = given.type === 'structure' ? fieldOf(given, tags.usageLimitsTotal, 'long') : undefined;
  if (given.type !== 'structure' || total === undefined) return given;
  const unit = fieldOf(given, tags.usageLimitsUnit, 'enumeration') ?? 1;
  return limitsItem(total, total, unit);
}

function limitsItem(total: bigint, left: bigint, unit: number): Item {
  return structure(
    tags.attributeValue,
    long(tags.usageLimitsTotal, total),
    long(tags.usageLimitsCount, left),
    enumeration(tags.usageLimitsUnit, unit),
  );
}

/** Whether a part of the limits was taken: they stay then as they are. */
export function isBegun(limits: Item | undefined): boolean {
  if (limits?.type !== 'structure') return false;
  const total = fieldOf(limits, tags.usageLimitsTotal, 'long');
  return fieldOf(limits, tags.usageLimitsCount, 'long') !== total;
}

/** How much is left; undefined for a key without limits. */
export function usageLeft(object: Pick<KmipObject, 'row'>): bigint | undefined {
  const limits = attributesOf(object).first('Usage Limits');
  if (limits?.type !== 'structure') return undefined;
  return fieldOf(limits, tags.usageLimitsCount, 'long') ?? fieldOf(limits, tags.usageLimitsTotal, 'long');
}

/** Takes a use of that many bytes off. Throws `Refusal` if there is not as much left. */
export function takeUsage(work: Work, object: KmipObject, bytes: number): void {
  const limits = attributesOf(object).first('Usage Limits');
  if (limits?.type !== 'structure') return;
  const isOfObjects = fieldOf(limits, tags.usageLimitsUnit, 'enumeration') === ofObjects;
  takeAllocation(work, object, isOfObjects ? 1n : BigInt(bytes));
}

/** Takes that many bytes or objects off. Throws `Refusal` if there is not as much left. */
export function takeAllocation(work: Work, object: KmipObject, count: bigint): void {
  const limits = attributesOf(object).first('Usage Limits');
  const left = usageLeft(object);
  if (limits?.type !== 'structure' || left === undefined) return;
  if (count < 0n || left < count) throw denied('the usage limits of the key are reached');
  const total = fieldOf(limits, tags.usageLimitsTotal, 'long') ?? left;
  const unit = fieldOf(limits, tags.usageLimitsUnit, 'enumeration') ?? 1;
  const item = limitsItem(total, left - count, unit);
  storeAttributes(work, object, attributesOf(object).withOne('Usage Limits', item));
}
