// Paths of secrets: which are allowed, which managed key is found at one, and the name that a new key gets from it, by
// which flags name the key. Case counts in paths, and `/` divides them into folders.
import { toHex, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { invalidField } from '../errors.ts';
import { isRingName, reservedKeyNames } from '../model/names.ts';
import type { Tables } from '../store/port.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import { isIdOfKeys } from './managed-key-names.ts';

type Keys = Pick<Tables, 'managedKeys'>;

/** In characters. */
const longestSecretPath = 512;
const longestName = 128;

/** Throws `invalid`. */
export function checkSecretPath(path: string): string {
  const isSound = path.isWellFormed() && !/[\0\u{10ffff}]/u.test(path) && path.length <= longestSecretPath;
  if (isSound && path.split('/').every((part) => part !== '')) return path;
  throw invalidField(
    'path',
    `expected at most ${longestSecretPath} characters, and no slash at an end or after another`,
  );
}

/**
 * The name from the path alone: lower case, `.` for `/`, `-` for all else that no name can have. Where another path
 * could lead to the same name, and where it could be no name, some of the path's hash follows.
 */
export function nameFromPath(path: string): string {
  const name = path
    .toLowerCase()
    .replaceAll('/', '.')
    .replaceAll(/[^a-z0-9._-]/gu, '-');
  const isOnlyPath = name.replaceAll('.', '/') === path;
  return isOnlyPath && isRingName(name) && !reservedKeyNames.has(name) && !isIdOfKeys(name)
    ? name
    : hashedName(path, name);
}

function hashedName(path: string, name: string): string {
  const hash = toHex(sha256(utf8(path))).slice(0, 8);
  const start = /^[a-z0-9]/.test(name) ? name : `x${name}`;
  return `${start.slice(0, longestName - 1 - hash.length)}-${hash}`;
}

/** The secret written to the path, or one made as a managed key of that name or alias; no deleted one. */
export function lookUpSecret({ managedKeys }: Keys, path: string): ManagedKey | undefined {
  const written = managedKeys.byPath(path);
  if (written) return written;
  const lower = path.toLowerCase();
  const aliased = managedKeys.aliasOf(lower);
  const made = managedKeys.byName(lower) ?? (aliased === undefined ? undefined : managedKeys.byId(aliased));
  return made?.type === 'secret' && made.path === undefined && made.deletedAt === undefined ? made : undefined;
}

/** The name of the secret at the path; where there is none, the name that a new one gets. */
export function secretNameAt(tables: Keys, path: string): string {
  return lookUpSecret(tables, path)?.name ?? newSecretName(tables, path);
}

function newSecretName({ managedKeys }: Keys, path: string): string {
  const name = nameFromPath(path);
  const isTaken = managedKeys.byName(name) !== undefined || managedKeys.aliasOf(name) !== undefined;
  return isTaken ? hashedName(path, name) : name;
}
