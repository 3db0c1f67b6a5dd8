// Names shared by all parts: valid names of rings, tenants and accounts, the HTTP headers of this service, and the two
// messages that programs match on.
import { invalidField } from '../errors.ts';

const ringName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** A managed key's alias: a ring's name in which `/` may stand, too. */
export const aliasPattern = '^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$';
const aliasName = new RegExp(aliasPattern);
/** Names that no managed key can have, in lower case: paths below /managed-keys begin with them. */
export const reservedKeyNames: ReadonlySet<string> = new Set(['wrapping-key', 'random', 'hash']);
const tenantName = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** Maximum length of a new account's uid, in characters. */
export const longestUid = 256;

/** Carries the appliance's state, so that callers with a known credential notice a rollback. */
export const stateHeader = 'Kms-State';
/** On the answer to a search: the id of the search's own record, so that a repeated search can leave it out. */
export const ownRecordHeader = 'Kms-Activity';
/**
 * On every request of the console's pages: the key of their cookie, in base64url. A page from another origin cannot
 * send it.
 */
export const consoleHeader = 'kms-console';
/**
 * Name of that key in the browser's storage, for a page at the appliance's address; `prefix` is the path before the
 * console's.
 */
export const consoleKeyName = (prefix: string): string => `kms-console ${prefix}`;
/** Why a caller does something, in percent-encoded words, for those who are asked for approval. */
export const reasonHeader = 'kms-reason';
/** Why the administrator at the machine does something without the approval that it needs, in the same form. */
export const breakGlassHeader = 'kms-break-glass';
/** Names the tenant of a request over the local socket. */
export const tenantHeader = 'kms-tenant';

/** On requests that `kms apply` sends: the digest of the plan, SHA-256 in hex, which their records then name. */
export const planHeader = 'kms-plan';

/** Answer to every request for a reset link if no mail is sent; the console recognizes it. */
export const noMailMessage =
  'no mail goes out from here: ask an administrator, who makes a link with `kms user reset-link`';

/** Refusal of a session whose user must add a second factor first; the console recognizes it. */
export const enrolFirst =
  'you need a second factor here: add one first, under "Your account" in the console or at /auth/user/second-factors';

export function isRingName(name: string): boolean {
  return ringName.test(name);
}

/** Canonical form of a new ring's name: lower case. Throws `invalid` if the name is not allowed. */
export function checkRingName(name: string): string {
  if (!isRingName(name)) {
    throw invalidField(
      'name',
      'expected a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens',
    );
  }
  return name.toLowerCase();
}

export function isAlias(name: string): boolean {
  return aliasName.test(name);
}

/** Canonical form of an alias: lower case. Throws `invalid` if it is not allowed. */
export function checkAlias(alias: string, field: string): string {
  if (isAlias(alias)) return alias.toLowerCase();
  throw invalidField(
    field,
    'expected a letter or digit, then at most 127 letters, digits, dots, underscores, hyphens or slashes',
  );
}

/** In lists of tenants, this name stands for the appliance's own store. Earlier builds let a tenant have it. */
const reservedName = 'system';

/** Canonical form of a tenant's name: lower case. Throws `invalid` if the name is not allowed. */
export function checkTenantName(value: string): string {
  if (value === '') throw invalidField('name', 'is required');
  const name = value.toLowerCase();
  if (name === reservedName) throw invalidField('name', `expected another: ${name} is the appliance's own store`);
  if (tenantName.test(name)) return name;
  throw invalidField(
    'name',
    'expected 1 to 64 letters, digits, dots, dashes or underscores, the first a letter or digit',
  );
}
