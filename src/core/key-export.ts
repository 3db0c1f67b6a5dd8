// Managed keys on their way out: wrapped to a public key, of the caller's or of another managed key, or in clear where
// that is said. Import is in key-transfer.ts.
import type { Answer, Body } from '../api/endpoints.ts';
import { toBase64 } from '../crypto/bytes.ts';
import { exportPkcs8, importPublicKey } from '../crypto/managed/keys.ts';
import { longestOaepMessage } from '../crypto/managed/rsa.ts';
import type { OaepHash } from '../crypto/primitives.ts';
import { invalidField, KmsError } from '../errors.ts';
import { useProblem, useWarning } from '../model/key-states.ts';
import type { KeyType } from '../model/key-types.ts';
import type { Slices } from '../store/sql.ts';
import type { KeyVersion, ListedVersion } from '../store/tables/managed-key-versions.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import { authorizeFurther } from './authorization.ts';
import type { Context } from './context.ts';
import { versionOf } from './key-changes.ts';
import { countUse } from './key-dependents.ts';
import { publicDer } from './key-transfer.ts';
import { isAsymmetric, isRsa, openVersion, publicKeyOfVersion } from './key-versions.ts';
import { inPlace, type KeyWork } from './key-work.ts';
import { lookUpManagedKey } from './managed-key-names.ts';
import { findManagedKey, keyRef, type NamedKey, stateOf, versionRef } from './managed-keys.ts';

/** Versions exported at once, and bytes of their keys: enough for all versions but of a long secret. */
const mostExported = 1000;
const mostExportedBytes = 4 * 1024 * 1024;

/** Bytes of keys exported in one slice; each version counts for more than it has. */
const sliceBytes = 32 * 1024;
const versionBytes = 2048;

type ExportInput = NamedKey & Body<'exportManagedKey'>;

export function* exportManagedKey(
  ctx: Context,
  input: ExportInput,
  work: KeyWork = inPlace(ctx.world),
): Slices<Answer<'exportManagedKey'>> {
  const { plaintext = false, hash = 'sha2-256', allVersions = false, wrapping } = input;
  const key = findManagedKey(ctx.tx, input.key);
  const { type, name } = key;
  // Before anything else is told of it: to some clients a deleted key is not there.
  const problem = useProblem('export', { key: stateOf(ctx, key) });
  if (problem !== undefined) throw new KmsError('conflict', problem);
  if (!key.exportable) throw new KmsError('conflict', 'private key material is not exportable');
  const target = targetOf(ctx, input);
  if ((target === undefined) !== plaintext) {
    throw new KmsError('invalid', 'expected a publicKey or a toKey to wrap to, or plaintext: true');
  }
  const format = formatOf(type, input.format);
  const exported = chosenVersions(ctx, key, input);
  const versions = [];
  let left = sliceBytes;
  for (const { version } of exported) {
    if (left < 0) {
      yield;
      left = sliceBytes;
    }
    const bytes = bytesOf(ctx, type, versionOf(ctx, key, version), format);
    left -= versionBytes + bytes.length;
    try {
      countUse(ctx, key, version, 'export');
      const out = target ? wrappedTo(target, { hash, wrapping }, bytes, work) : { plaintext: toBase64(bytes) };
      versions.push({ version, ...out });
    } finally {
      bytes.fill(0);
    }
  }
  const [newest] = versions;
  if (!newest) throw new KmsError('conflict', 'the key has no version that can be exported');
  ctx.note({
    object: keyRef(key),
    transfer: target ? 'wrapped' : 'plaintext',
    ...(allVersions
      ? { objects: exported.map(versionRef), objectCount: exported.length }
      : { keyVersion: newest.version }),
  });
  const warning = exported
    .map(({ state, version }) => {
      const states = { key: stateOf(ctx, key), version: state, isSecret: type === 'secret' };
      return useWarning('export', states, allVersions ? `version ${version}` : 'this version');
    })
    .find((each) => each !== undefined);
  return { name, type, format, ...newest, ...(allVersions && { versions }), ...(warning !== undefined && { warning }) };
}

function formatOf(type: KeyType, wanted: 'raw' | 'der' | undefined): 'raw' | 'der' {
  if (!isAsymmetric(type)) {
    if (wanted === 'der') throw invalidField('format', `expected raw: ${type} has no other form`);
    return 'raw';
  }
  if (wanted === 'raw' && isRsa(type)) throw invalidField('format', `expected der: ${type} has no raw form`);
  return wanted ?? 'der';
}

type Chosen = Pick<KeyVersion, 'id' | 'version' | 'state'>;

/** The version to export, or all whose keys are here, the newest first. None may be older than those that decrypt. */
function chosenVersions(ctx: Context, key: ManagedKey, input: ExportInput): readonly Chosen[] {
  const { version = 0, allVersions = false } = input;
  const { latestVersion, minDecryptVersion } = key;
  const state = stateOf(ctx, key);
  const problemOf = (stored: Chosen) => useProblem('export', { key: state, version: stored.state });
  if (allVersions) {
    if (version !== 0) throw invalidField('version', 'expected none with allVersions');
    const oldest = Math.max(minDecryptVersion, latestVersion - mostExported + 1);
    const some = ctx.tx.keyVersions.between(key.id, latestVersion, oldest);
    const chosen = some.filter((stored) => stored.sealedLength > 0 && problemOf(stored) === undefined);
    needFew(chosen);
    return chosen;
  }
  const number = version === 0 ? latestVersion : version;
  if (number < minDecryptVersion) {
    throw new KmsError('conflict', 'version for export is below minimum decryption version');
  }
  const stored = versionOf(ctx, key, number);
  const problem = problemOf(stored);
  if (problem !== undefined) throw new KmsError('conflict', problem);
  return [stored];
}

/** Throws `conflict` if the keys are too long to be exported at once. */
function needFew(versions: readonly ListedVersion[]): void {
  // Base64 takes four characters for three bytes.
  const bytes = versions.reduce((sum, { sealedLength }) => sum + (sealedLength / 4) * 3, 0);
  if (bytes <= mostExportedBytes) return;
  throw new KmsError(
    'conflict',
    `the ${versions.length} versions of the key are more than the ${mostExportedBytes / 1024 / 1024} MiB that are exported at once: name a \`version\``,
  );
}

/** A copy, which the caller may overwrite. */
function bytesOf({ tenant }: Context, type: KeyType, stored: KeyVersion, format: 'raw' | 'der'): Uint8Array {
  const kept = openVersion(tenant.keys, type, stored);
  if (format === 'raw' || !isAsymmetric(type)) return kept.slice();
  return exportPkcs8(type, kept, publicKeyOfVersion(type, stored));
}

type Target = ReturnType<typeof rsaOf>;

/** The public key to wrap to, if the request names one. Another managed key takes the flag to read it. */
function targetOf(ctx: Context, { publicKey, toKey }: ExportInput): Target | undefined {
  if (publicKey !== undefined && toKey !== undefined) {
    throw new KmsError('invalid', 'expected one of publicKey and toKey');
  }
  if (publicKey !== undefined) return rsaOf(publicDer(publicKey));
  if (toKey === undefined) return undefined;
  const key = lookUpManagedKey(ctx.tx, toKey);
  const subject = { kind: 'hidden', name: key?.name ?? toKey.toLowerCase() } as const;
  authorizeFurther(ctx, 'key.read', subject, key && keyRef(key));
  if (!key || key.deletedAt !== undefined) throw invalidField('toKey', 'there is no such managed key');
  const { type } = key;
  if (!isRsa(type)) throw invalidField('toKey', `keys are wrapped to an RSA key alone, not to one of the type ${type}`);
  const problem = useProblem('wrap', { key: stateOf(ctx, key) });
  if (problem !== undefined) throw new KmsError('conflict', problem.replace('the key', 'the key to wrap to'));
  const version = ctx.tx.keyVersions.newestActive(key.id);
  const stored = version === undefined ? undefined : ctx.tx.keyVersions.get(key.id, version);
  const spki = stored && publicKeyOfVersion(type, stored);
  if (!spki) throw invalidField('toKey', 'no version of it is active');
  return { type, spki };
}

interface Wrapping {
  readonly hash: OaepHash;
  readonly wrapping: ExportInput['wrapping'];
}

/** Wrapped by OAEP alone where the key fits, unless the request says otherwise. */
function wrappedTo({ type, spki }: Target, { hash, wrapping }: Wrapping, bytes: Uint8Array, work: KeyWork) {
  const fits = bytes.length <= longestOaepMessage(type, hash);
  if (wrapping === 'oaep' && !fits) {
    throw invalidField('wrapping', 'expected oaep-kwp: the key is too long for OAEP alone');
  }
  const isShort = wrapping === undefined ? fits : wrapping === 'oaep';
  const wrapped = isShort
    ? work.run('oaepEncrypt', { type, publicKey: spki, hash, bytes: bytes.slice() })
    : work.run('wrap', { type, publicKey: spki, hash, bytes: bytes.slice() });
  return { wrapped: toBase64(wrapped), wrapping: isShort ? ('oaep' as const) : ('oaep-kwp' as const) };
}

/** The RSA type that fits a public key. Throws `invalid`. */
function rsaOf(der: Uint8Array) {
  for (const type of ['rsa-2048', 'rsa-3072', 'rsa-4096'] as const) {
    try {
      return { type, spki: importPublicKey(type, 'der', der) };
    } catch {
      // Perhaps it has another length.
    }
  }
  throw invalidField(
    'publicKey',
    'expected a public key of RSA with 2048, 3072 or 4096 bits: SPKI, PEM or base64 of DER',
  );
}
