// Proofs as records of what was done name them.
import type { ResourceRef } from '../../model/activity-details.ts';
import type { Tables } from '../../store/port.ts';

/** The active proofs of a key, for a record of what they hand out. */
export function proofThings({ proofs }: Pick<Tables, 'proofs'>, keyid: string): ResourceRef[] {
  return proofs
    .ofKey(keyid)
    .filter(({ active }) => active)
    .map(({ id, kind }) => ({ type: 'proof', id, name: kind }));
}
