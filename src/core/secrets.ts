// Secrets are managed keys of the type `secret` whose versions are JSON objects, kept as text. A caller that may read
// one has it, so each read is a use of the key, recorded and counted. Versions are changed in secret-versions.ts.
import type { Answer, Body } from '../api/endpoints.ts';
import type { SecretMetadata, SecretVersion } from '../api/secrets.ts';
import { toBase64, toHex, utf8 } from '../crypto/bytes.ts';
import { invalidField, KmsError } from '../errors.ts';
import { changedFields } from '../model/activity-details.ts';
import { isJsonObject, type JsonObject, jsonOf } from '../model/json.ts';
import { useProblem, useWarning } from '../model/key-states.ts';
import { mostSecretVersions } from '../model/key-types.ts';
import { timestamp } from '../model/timestamp.ts';
import type { KeyVersion } from '../store/tables/managed-key-versions.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import type { Context } from './context.ts';
import { countUse } from './key-dependents.ts';
import { addVersion, openVersion } from './key-versions.ts';
import { needManyValues } from './kmip-names.ts';
import { checkedTags, mostKept, settingsOf, touchVersions } from './managed-key-rules.ts';
import {
  deleteManagedKey,
  insertKey,
  keyRef,
  mustFind,
  needGrowing,
  shownVersion,
  stateOf,
  versionRef,
} from './managed-keys.ts';
import { checkSecretPath, lookUpSecret, secretNameAt } from './secret-paths.ts';

/** In bytes of JSON. */
const longestValue = 64 * 1024;

/** Names a secret by its path. */
export interface SecretAt {
  readonly path: string;
}

/** Throws `not-found`. */
export function findSecret({ tx }: Pick<Context, 'tx'>, path: string): ManagedKey {
  const key = lookUpSecret(tx, checkSecretPath(path));
  if (key) return key;
  throw new KmsError('not-found', 'there is no such secret');
}

/** Whether a version went because there were too many; one that a lower limit has not reached yet is still there. */
function isBeyond(key: ManagedKey, { state, version }: Pick<KeyVersion, 'state' | 'version'>): boolean {
  return state === 'destroyed' && version <= key.latestVersion - mostKept(key);
}

export function writeSecret(
  ctx: Context,
  { path, value, follows }: SecretAt & Body<'writeSecret'>,
): Answer<'writeSecret'> {
  const { tx } = ctx;
  const bytes = utf8(JSON.stringify(value));
  if (bytes.length > longestValue) {
    throw invalidField('value', `expected at most ${longestValue} bytes of JSON, got ${bytes.length}`);
  }
  const there = lookUpSecret(tx, checkSecretPath(path));
  if (there) needManyValues(tx, there.id);
  if (there) needGrowing(ctx, there);
  if (follows === undefined && there && settingsOf(there).casRequired) {
    throw new KmsError('conflict', 'check-and-set parameter required for this call');
  }
  if (follows !== undefined && follows !== (there?.latestVersion ?? 0)) {
    throw new KmsError('conflict', 'check-and-set parameter did not match the current version');
  }
  const key = there ?? insertSecret(ctx, path);
  const made = addVersion(ctx, key, { key: bytes }, 'imported');
  bytes.fill(0);
  // One write puts one version beyond the limit, unless the limit was lowered: the rest goes at once.
  tx.keyVersions.destroyOld(key.id, made.version - mostKept(key));
  ctx.note({
    object: keyRef(key),
    objects: [versionRef(made)],
    keyVersion: made.version,
    transfer: 'plaintext',
    ...(there ? { changed: ['latestVersion'] } : { custody: 'server' }),
  });
  return { secret: versionAnswer(path, key, made) };
}

/** Software deletes its secrets by itself, so that is allowed unless somebody forbids it. */
function insertSecret(ctx: Context, path: string): ManagedKey {
  const name = secretNameAt(ctx.tx, path);
  return insertKey(ctx, { name, type: 'secret', origin: 'imported', exportable: true, deletionAllowed: true, path });
}

export function readSecret(
  ctx: Context,
  { path, version }: SecretAt & { readonly version: number },
): Answer<'readSecret'> {
  const key = findSecret(ctx, path);
  const state = stateOf(ctx, key);
  needExport({ key: state });
  if (!key.exportable) throw new KmsError('conflict', 'private key material is not exportable');
  const stored = ctx.tx.keyVersions.get(key.id, version === 0 ? key.latestVersion : version);
  if (!stored || isBeyond(key, stored)) throw new KmsError('not-found', 'the secret has no such version');
  const secret = versionAnswer(path, key, stored);
  const isGone = stored.state === 'pending-deletion' || stored.state === 'destroyed';
  const noted = { object: keyRef(key), keyVersion: stored.version };
  if (isGone) {
    ctx.note({ ...noted, state: stored.state });
    return { secret };
  }
  needExport({ key: state, version: stored.state });
  const value = valueIn(openVersion(ctx.tenant.keys, key.type, stored));
  countUse(ctx, key, stored.version, 'export');
  ctx.note({ ...noted, transfer: 'plaintext' });
  const warning = useWarning('export', { key: state, version: stored.state, isSecret: true });
  return { secret, value, ...(warning !== undefined && { warning }) };
}

function needExport(states: Parameters<typeof useProblem>[1]): void {
  const problem = useProblem('export', { ...states, isSecret: true });
  if (problem !== undefined) throw new KmsError('conflict', problem);
}

const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes that are no JSON object are given in the fields where databases look for a key. */
function valueIn(bytes: Uint8Array): JsonObject {
  let value: unknown;
  try {
    value = bytes[0] === 0x7b ? jsonOf(text.decode(bytes)) : undefined;
  } catch {
    value = undefined;
  }
  if (isJsonObject(value)) return value;
  const base64 = toBase64(bytes);
  return { data: toHex(bytes), key: base64, value: base64 };
}

export function deleteSecret(ctx: Context, { path }: SecretAt): Answer<'deleteSecret'> {
  return deleteManagedKey(ctx, { key: findSecret(ctx, path).id, used: true });
}

export function getSecretMetadata(ctx: Context, { path }: SecretAt): Answer<'getSecretMetadata'> {
  return { secret: metadataOf(ctx, path, findSecret(ctx, path)) };
}

export function putSecretMetadata(
  ctx: Context,
  { path, maxVersions, casRequired, tags }: SecretAt & Body<'putSecretMetadata'>,
): Answer<'putSecretMetadata'> {
  const { tx, world } = ctx;
  const key = findSecret(ctx, path);
  const change = {
    tags: tags ? checkedTags(tags) : key.tags,
    props: {
      ...key.props,
      ...(maxVersions !== undefined && { maxVersions }),
      ...(casRequired !== undefined && { casRequired }),
    },
  };
  touchVersions(ctx, key, change);
  tx.managedKeys.update(key.id, { ...key, ...change, updatedAt: world.now() });
  ctx.note({ object: keyRef(key), changed: changedFields({ ...key }, change) });
  return { secret: metadataOf(ctx, path, mustFind(tx, key.id)) };
}

function metadataOf(ctx: Context, path: string, key: ManagedKey): SecretMetadata {
  const settings = settingsOf(key);
  const { latestVersion } = key;
  const versions = ctx.tx.keyVersions
    .between(key.id, latestVersion, Math.max(1, latestVersion - mostSecretVersions + 1))
    .filter((version) => !isBeyond(key, version));
  return {
    id: key.id,
    path,
    name: key.name,
    state: stateOf(ctx, key),
    latestVersion,
    ...settings,
    tags: key.tags,
    createdAt: timestamp(key.createdAt),
    updatedAt: timestamp(key.updatedAt),
    versions: versions.map((version) => shownVersion(key.type, version)),
  };
}

function versionAnswer(path: string, key: ManagedKey, stored: KeyVersion): SecretVersion {
  return {
    path,
    name: key.name,
    version: stored.version,
    state: stored.state,
    createdAt: timestamp(stored.createdAt),
    ...(stored.deletedAt !== undefined && { deletedAt: timestamp(stored.deletedAt) }),
    tags: key.tags,
  };
}

const mostNames = 10_000;
/** Paths read at once. */
const readAtOnce = 200;
/** Greater than any character of a path. */
const last = '\u{10ffff}';

/** Names that were written with a path; those made as managed keys have none. Folders are passed over as a whole. */
export function listSecrets(
  { tx }: Context,
  { folder = '' }: { readonly folder?: string | undefined },
): Answer<'listSecrets'> {
  const prefix = folder === '' ? '' : `${checkSecretPath(folder)}/`;
  const names: string[] = [];
  let after = '';
  for (;;) {
    const paths = tx.managedKeys.paths(prefix, after, readAtOnce);
    for (const path of paths) {
      const [first = '', ...rest] = path.slice(prefix.length).split('/');
      const name = rest.length === 0 ? first : `${first}/`;
      if (name === names.at(-1)) continue;
      if (names.length === mostNames) throw new KmsError('conflict', `more than ${mostNames} names: list a folder`);
      names.push(name);
      after = rest.length === 0 ? path : prefix + name + last;
    }
    if (paths.length < readAtOnce) return { names };
  }
}
