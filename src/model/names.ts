// Names that all rooms share: which ones rings, tenants and accounts can have, the HTTP headers of this service, and
// the two messages that a program goes by.
import { invalidField } from '../errors.ts';

const ringName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const tenantName = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** Characters of the uid of a new account. */
export const longestUid = 256;

/** Carries how far the appliance is, for whoever has a known credential. */
export const stateHeader = 'Kms-State';
/** With the answer to a search: the id of the search's own record, so that whoever searches again can leave it out. */
export const ownRecordHeader = 'Kms-Activity';
/**
 * With every request of the console's pages: the key of their cookie, in base64url. A page from elsewhere cannot send
 * it.
 */
export const consoleHeader = 'kms-console';
/** Where a page at the appliance's address finds that key, in the browser's storage; `prefix` is the path in front. */
export const consoleKeyName = (prefix: string): string => `kms-console ${prefix}`;
/** Names the tenant of a request over the local socket. */
export const tenantHeader = 'kms-tenant';

/** What is answered to everybody who asks for a reset link where no mail goes out: by it the console knows. */
export const noMailMessage =
  'no mail goes out from here: ask an administrator, who makes a link with `kms user reset-link`';

/** What a session is answered whose user has to add a second factor first: by it the console knows. */
export const enrolFirst =
  'you need a second factor here: add one first, under "Your account" in the console or at /auth/user/second-factors';

export function isRingName(name: string): boolean {
  return ringName.test(name);
}

/** The lower-case form of a new ring's name, which it is looked up by. Throws `invalid` for what cannot be one. */
export function checkRingName(name: string): string {
  if (!isRingName(name)) {
    throw invalidField(
      'name',
      'expected a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens',
    );
  }
  return name.toLowerCase();
}

/** Where tenants are named, this is the appliance's own store. Earlier builds let a tenant have the name. */
const reservedName = 'system';

/** The lower-case form of a tenant's name, which it is compared by. Throws `invalid` for what cannot be one. */
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
