// What the operator may say of a tenant: its name, its hosts, its limits. Everything else is refused with the field's name.
import type { Limits } from '../core/context.ts';
import { invalidField, KmsError } from '../errors.ts';
import { hostList } from './host-names.ts';

type Fields = Readonly<Record<string, unknown>>;

const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/;

export const limitNames = [
  'keyrings',
  'keysPerRing',
  'users',
  'accounts',
  'apikeys',
  'assets',
] as const satisfies readonly (keyof Limits)[];

export function newTenantInput(body: Fields): { name: string; hosts: readonly string[] } {
  needKnown(body, ['name', 'hosts']);
  return { name: tenantName(body.name), hosts: hostList(body.hosts ?? []) };
}

export interface TenantChanges {
  readonly name?: string;
  readonly hosts?: readonly string[];
}

export function tenantChanges(body: Fields): TenantChanges {
  needKnown(body, ['name', 'hosts']);
  return {
    ...(body.name === undefined ? {} : { name: tenantName(body.name) }),
    ...(body.hosts === undefined ? {} : { hosts: hostList(body.hosts) }),
  };
}

/** A number for each limit that is set, `null` for each that is lifted. */
export type LimitChanges = Readonly<Partial<Record<keyof Limits, number | null>>>;

export function limitChanges(body: Fields): LimitChanges {
  needKnown(body, limitNames);
  const changes: Partial<Record<keyof Limits, number | null>> = {};
  for (const name of limitNames) {
    const value = body[name];
    if (value === undefined) continue;
    if (value !== null && !(typeof value === 'number' && Number.isSafeInteger(value) && value >= 0)) {
      throw invalidField(name, 'expected an integer from 0 on, or null for no limit');
    }
    changes[name] = value;
  }
  if (Object.keys(changes).length === 0) {
    throw new KmsError('invalid', `expected a limit, one of: ${limitNames.join(', ')}`);
  }
  return changes;
}

export function limitsAfter(limits: Limits, changes: LimitChanges): Limits {
  const after: Record<string, number> = {};
  for (const name of limitNames) {
    const value = changes[name] === undefined ? limits[name] : changes[name];
    if (typeof value === 'number') after[name] = value;
  }
  return after;
}

/** Names compare without regard to case, as ring names do. */
function tenantName(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw invalidField('name', 'is required');
  const name = value.toLowerCase();
  if (namePattern.test(name)) return name;
  throw invalidField(
    'name',
    'expected 1 to 64 letters, digits, dots, dashes or underscores, the first a letter or digit',
  );
}

function needKnown(body: Fields, known: readonly string[]): void {
  for (const field of Object.keys(body)) {
    if (!known.includes(field)) throw invalidField(field, `is not known here; expected ${known.join(', ')}`);
  }
}
