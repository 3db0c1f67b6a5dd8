// Names of rings: which ones there can be, and the form that they are looked up by.
import { invalidField } from '../errors.ts';

const pattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export function isRingName(name: string): boolean {
  return pattern.test(name);
}

/** The lower-case form of a new ring's name. Throws `invalid` for what cannot be one. */
export function checkRingName(name: string): string {
  if (!isRingName(name)) {
    throw invalidField(
      'name',
      'expected a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens',
    );
  }
  return name.toLowerCase();
}
