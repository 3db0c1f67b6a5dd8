// Usage Limits: how many bytes or objects a key may still protect. What was asked for or protected is taken off.
import type { KmipObject } from '../../core/kmip-objects.ts';
import { attributesOf, storeAttributes } from './objects.ts';
import type { Work } from './operation.ts';
import { denied } from './reasons.ts';
import { tags } from './tags.ts';
import { enumeration, fieldOf, long, structure } from './ttlv.ts';

const ofObjects = 2;

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

export function takeAllocation(work: Work, object: KmipObject, count: bigint): void {
  const limits = attributesOf(object).first('Usage Limits');
  const left = usageLeft(object);
  if (limits?.type !== 'structure' || left === undefined) return;
  if (count < 0n || left < count) throw denied('the usage limits of the key are reached');
  const total = fieldOf(limits, tags.usageLimitsTotal, 'long') ?? left;
  const unit = fieldOf(limits, tags.usageLimitsUnit, 'enumeration') ?? 1;
  const item = structure(
    tags.attributeValue,
    long(tags.usageLimitsTotal, total),
    long(tags.usageLimitsCount, left - count),
    enumeration(tags.usageLimitsUnit, unit),
  );
  storeAttributes(work, object, attributesOf(object).withOne('Usage Limits', item));
}
