// The permission flag that an endpoint asks for, as the description writes it.
import type { Access } from '../api/endpoint.ts';

/** With `<ringname>` where the flag names a ring; undefined where none is needed. */
export function requiredFlag(access: Access): string | undefined {
  if (access.kind !== 'flag') return undefined;
  const flag = access.action;
  return access.ring ? flag.replace('.', '.<ringname>.') : flag;
}

/** As it stands in a refusal: a ring that is named in the request is named there too. */
export function shownFlag(access: Access, flag: string): string {
  const named = access.kind === 'flag' && ['path', 'query', 'body'].includes(access.ring?.from ?? '');
  return named ? flag.replace('<ringname>', flag.startsWith('asym.') ? 'devices' : 'payroll') : flag;
}

/** One sentence on who may call. */
export function whoMay(access: Access): string {
  const flag = requiredFlag(access);
  if (access.kind === 'public') return 'No credential is needed.';
  if (flag === undefined) return 'Takes an access token, and no flag.';
  const self = access.kind === 'flag' && access.orSelf !== undefined ? ' A User needs no flag to do it to itself.' : '';
  return `Takes the flag \`${flag}\`.${self}`;
}
