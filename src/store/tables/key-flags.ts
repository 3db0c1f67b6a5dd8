// Transit rings are now called managed keys: the step that renames the flags, in the texts that hold flags by name. A
// quotation mark precedes a name's first letter, and one inside a name has a backslash before it. Statements of a
// released step never change.
function renamed(table: string, column: string): string {
  const once = (text: string, word: string): string => `replace(${text}, '"${word}.', '"key.')`;
  return `UPDATE ${table} SET ${column} = ${once(once(once(column, 'transit'), 'Transit'), 'TRANSIT')}`;
}

/** In a tenant's database: what keys, users and the claims of an identity provider grant. */
export const tenantKeyFlags: readonly string[] = [
  renamed('api_keys', 'flags'),
  renamed('users', 'flags'),
  renamed('oidc_users', 'granted'),
  renamed('oidc_providers', 'settings'),
];

/** In the system's database: the flags that need a second factor. */
export const systemKeyFlags: readonly string[] = [renamed('tenants', 'second_factor_for')];
