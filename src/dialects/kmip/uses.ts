// Whether an object may be put to a use: its usage mask, its state, and its dates.

import { KeyInUse } from '../../core/key-in-use.ts';
import type { KmipObject, KmipRight } from '../../core/kmip-objects.ts';
import type { KeyUse } from '../../model/key-types.ts';
import { timeIn } from './attributes.ts';
import { objectTypes } from './enumerations.ts';
import { attributesOf, maskIn, typeOf } from './objects.ts';
import type { Work } from './operation.ts';
import { denied, laterReasons, Refusal, reasons } from './reasons.ts';

export interface Use {
  /** The managed key's. */
  readonly use: KeyUse;
  readonly right: KmipRight;
  readonly mask: number;
  readonly protects: boolean;
}

/** The managed key of an object, for work with it. Throws `Refusal`, and as `KeyInUse` does. */
export function keyInUse(work: Work, object: KmipObject, { use, mask, protects, right }: Use): KeyInUse {
  const type = typeOf(object);
  if (type === objectTypes.certificate || type === objectTypes.opaqueObject || object.row?.form === 'wrapped') {
    throw new Refusal(reasons.illegalOperation, 'the object is no key to work with');
  }
  if ((maskIn(object) & mask) === 0) {
    throw denied('the usage mask of the key does not allow it', laterReasons.incompatibleUsageMask);
  }
  const set = attributesOf(object);
  const [start, stop] = [timeIn(set, 'Process Start Date'), timeIn(set, 'Protect Stop Date')];
  const isInTime = protects ? stop === undefined || work.now <= stop : start === undefined || work.now >= start;
  if (!isInTime) throw denied('the dates of the key do not allow it');
  if (!object.key.uses.includes(use)) {
    throw new Refusal(reasons.invalidField, 'keys of this algorithm or purpose are kept here, but do not work');
  }
  return new KeyInUse(work.ctx, { key: object.key.id }, use, work.keys, right);
}
