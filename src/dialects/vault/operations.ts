// Operations of the engines: the paths of Vault and OpenBao under a mount, each with the endpoint of ours that serves
// it. Those of the KV engine are in kv.ts.
import { problem } from './answers.ts';
import {
  configure,
  deleteKey,
  listKeys,
  makeKey,
  readKey,
  rotate,
  softDelete,
  softDeleteRestore,
  trim,
} from './keys.ts';
import { kvOperationOf, kvPathOf } from './kv.ts';
import { dataKey, onItems } from './messages.ts';
import { type Asked, isWrite, type Operation, type Setting } from './operation.ts';
import { hmac, noHash, sign, verify } from './signatures.ts';
import { cacheConfig, hash, keysConfig, random } from './tools.ts';
import { byokExport, exportKey, importKey, importVersion, wrappingKey } from './transfer.ts';

/** The operation or setting that a path names; a string is the reason for a refusal. */
export type Named = Operation | Setting | string;

/** Most parts that follow a mount. */
const mostParts = 4;

/**
 * The operation that a path names; undefined if there is none. A mount may have any name of several parts: the shortest
 * mount that leaves a known operation, or a path of the KV engine, is taken.
 */
export function operationOf(asked: Asked): Named | undefined {
  const { path } = asked;
  const kv = kvPathOf(path);
  for (let mount = Math.max(1, path.length - mostParts); mount < path.length; mount++) {
    if (kv && kv.mount <= mount) return kvOperationOf(kv, asked);
    const operation = behindMount(asked, path.slice(mount));
    if (operation !== undefined) return operation;
  }
  return refusedFor(asked);
}

function behindMount({ method, isList, query }: Asked, rest: readonly string[]): Named | undefined {
  const [what = '', name = ''] = rest;
  if (isList) return method === 'GET' && what === 'keys' && rest.length === 1 ? listKeys(query) : undefined;
  if (what === 'keys' && rest.length > 1) return ofKey(method, name, rest.slice(2));
  if (method === 'GET') return read(rest, query);
  return isWrite(method) ? written(rest) : undefined;
}

/** Operations under keys/NAME. */
function ofKey(method: string, name: string, [what, ...more]: readonly string[]): Named | undefined {
  if (more.length > 0) return undefined;
  if (what === undefined) {
    if (method === 'GET') return readKey(name);
    if (method === 'DELETE') return deleteKey(name);
    return isWrite(method) ? makeKey(name) : undefined;
  }
  if (method === 'DELETE') return what === 'soft-delete' ? softDelete(name) : undefined;
  if (!isWrite(method)) return undefined;
  switch (what) {
    case 'rotate':
      return rotate(name);
    case 'config':
      return configure(name);
    case 'trim':
      return trim(name);
    case 'import':
      return importKey(name);
    case 'import_version':
      return importVersion(name);
    case 'soft-delete-restore':
      return softDeleteRestore(name);
    default:
      return undefined;
  }
}

function read(rest: readonly string[], query: URLSearchParams): Named | undefined {
  const [what = '', first = '', second = '', version] = rest;
  if (rest.length === 1 && what === 'wrapping_key') return wrappingKey;
  if (rest.length === 3 || rest.length === 4) {
    if (what === 'export') return exportKey(first, { key: second, version, format: query.get('format') ?? '' });
    if (what === 'byok-export') {
      return byokExport(first, { key: second, version, hash: query.get('hash') || 'SHA256' });
    }
  }
  return setting(rest);
}

function setting(rest: readonly string[]): Setting | undefined {
  if (rest.length === 1 && rest[0] === 'cache-config') return cacheConfig;
  return rest.length === 2 && rest[0] === 'config' && rest[1] === 'keys' ? keysConfig : undefined;
}

function written(rest: readonly string[]): Named | undefined {
  const [what = '', first = '', second = ''] = rest;
  if (what === 'random' && rest.length <= 3) return random(rest.slice(1));
  if (what === 'hash' && rest.length <= 2) return hash(rest[1]);
  if (rest.length === 2) {
    if (what === 'encrypt') return onItems('encryptWithKey', first, ['plaintext']);
    if (what === 'decrypt') return onItems('decryptWithKey', first, ['ciphertext']);
    if (what === 'rewrap') return onItems('rewrapWithKey', first, ['ciphertext']);
  }
  if (rest.length === 3 && what === 'datakey' && (first === 'plaintext' || first === 'wrapped')) {
    return dataKey(second, first === 'wrapped');
  }
  if (rest.length === 2 || (rest.length === 3 && hashName.test(second))) {
    const inPath = rest.length === 3 ? second : undefined;
    if (what === 'sign') return sign(first, inPath);
    if (what === 'verify') return verify(first, inPath);
    if (what === 'hmac') return hmac(first, inPath);
  }
  return setting(rest);
}

/** The name of a Vault hash, supported or not. */
const hashName = /^(?:none|sha[0-9-]+)$/;

const noQuery = new URLSearchParams();

/** Whether the path has an operation for any method. */
export function isKnownPath(path: readonly string[]): boolean {
  const methods = ['GET', 'POST', 'DELETE'];
  return (
    methods.some((method) => operationOf({ method, path, isList: false, query: noQuery }) !== undefined) ||
    operationOf({ method: 'GET', path, isList: true, query: noQuery }) !== undefined
  );
}

/** The reason for refusing an operation that Vault has but this appliance has not; undefined for any other path. */
function refusedFor({ method, path }: Asked): string | undefined {
  if (path.length < 2) return undefined;
  const [last = '', before = '', earlier = ''] = path.toReversed();
  if (isWrite(method) && path.length > 3 && ['sign', 'verify', 'hmac'].includes(earlier)) return noHash(last);
  if (before === 'datakey' || earlier === 'datakey') return "Invalid path, must be 'plaintext' or 'wrapped'";
  if (before === 'backup') return noBackup;
  if (before === 'restore' || last === 'restore') return noBackup;
  if (before === 'derive-key') return 'derive-key is not supported: have bytes derived by the appliance itself';
  if (earlier === 'keys' && (last === 'csr' || last === 'set-certificate')) {
    return 'certificates are not kept with keys';
  }
  return undefined;
}

const noBackup =
  'plaintext backup is disallowed: the appliance has backups of its own, and keys move with export and byok-export';

/** Said of a path that has other methods. */
export const unsupportedOperation = problem(405, '1 error occurred:\n\t* unsupported operation\n\n');
export const unsupportedPath = problem(404, '1 error occurred:\n\t* unsupported path\n\n');
