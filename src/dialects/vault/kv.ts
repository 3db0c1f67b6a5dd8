// The KV engine, version 2, as far as databases and the command lines of Vault and OpenBao need it for keys: its paths
// under a mount, each with the endpoint of ours that serves it. The name of a mount is part of a secret's path, unless
// it is `secret`.
import type { Kept } from '../../api/exact-json.ts';
import type { SecretMetadata, SecretVersion } from '../../api/secrets.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { mostSecretVersions } from '../../model/key-types.ts';
import { done, found, invalid, nothing } from './answers.ts';
import { booleanOf, countOf, numberOf } from './fields.ts';
import { type Asked, isWrite, type Operation, type Setting } from './operation.ts';

const words = ['data', 'metadata', 'delete', 'undelete', 'destroy'] as const;
type Word = (typeof words)[number];

/** A path of the engine. */
interface KvPath {
  /** Number of the mount's parts. */
  readonly mount: number;
  readonly word: Word | 'config';
  /** Our path of the secret or folder. */
  readonly at: string;
}

const mainMount = 'secret';

/** The path of the engine with the shortest mount; undefined if it is none. */
export function kvPathOf(path: readonly string[]): KvPath | undefined {
  const mount = path.findIndex((part, n) => n > 0 && words.some((word) => word === part));
  const word = words.find((each) => each === path[mount]);
  if (word === undefined) {
    // Behind several parts, it could be the config of a key.
    const isConfig = path.at(-1) === 'config' && (path.length === 2 || isKvMount(path.slice(0, -1)));
    return isConfig ? { mount: path.length - 1, word: 'config', at: '' } : undefined;
  }
  const rest = path.slice(mount + 1);
  if (rest.length === 0 && word !== 'metadata') return undefined;
  const name = path.slice(0, mount).join('/');
  return { mount, word, at: [...(name === mainMount ? [] : [name]), ...rest].join('/') };
}

/** Whether mounts of the name are of this engine, and those of other names of the transit engine. */
export function isKvMount(name: readonly string[]): boolean {
  return /^(?:secret|kv)/.test(name.at(-1) ?? '');
}

/** The operation at a path of the engine; undefined if there is none. */
export function kvOperationOf({ word, at }: KvPath, { method, isList, query }: Asked): Operation | Setting | undefined {
  if (word === 'config') return method === 'GET' && !isList ? config : undefined;
  if (isList) return method === 'GET' && word === 'metadata' ? listNames(at) : undefined;
  if (method === 'GET' && word === 'data') return readData(at, query.get('version') ?? '');
  if (method === 'GET' && word === 'metadata') return readMetadata(at);
  if (method === 'DELETE' && word === 'data') return changeVersions('deleteSecretVersions', at, 'latest');
  if (method === 'DELETE' && word === 'metadata')
    return { ...base('deleteSecret', at), answer: () => done, missing: done };
  if (!isWrite(method)) return undefined;
  switch (word) {
    case 'data':
      return writeData(at);
    case 'metadata':
      return writeMetadata(at);
    case 'delete':
      return changeVersions('deleteSecretVersions', at, 'named');
    case 'undelete':
      return changeVersions('restoreSecretVersions', at, 'named');
    case 'destroy':
      return changeVersions('destroySecretVersions', at, 'named');
  }
}

function base<const Id extends Operation['id']>(id: Id, path: string): { id: Id; params: { path: string } } {
  return { id, params: { path } };
}

/** Kept versions of a secret that says nothing else. */
const config: Setting = {
  setting: () => found({ cas_required: false, delete_version_after: '0s', max_versions: mostSecretVersions }),
};

function listNames(folder: string): Operation {
  return {
    id: 'listSecrets',
    query: folder === '' ? {} : { folder },
    answer({ names }) {
      const keys = names as readonly string[];
      return keys.length === 0 ? nothing : found({ keys });
    },
  };
}

function readData(path: string, version: string): Operation {
  return {
    ...base('readSecret', path),
    query: version === '' ? {} : { version },
    answer({ secret, value }) {
      const told = { data: value ?? null, metadata: versionData(secret as SecretVersion) };
      // Vault's clients take this answer for a version that is there, and gone.
      return { status: value === undefined ? 404 : 200, data: told };
    },
  };
}

const stored: Kept = new Map([['data', 'all']]);

function writeData(path: string): Operation {
  return {
    ...base('writeSecret', path),
    kept: stored,
    body(given) {
      const { data: value, options } = given;
      if (value === undefined || value === null) throw invalid('no data provided');
      if (!isJsonObject(value)) throw invalid('error converting input for field "data": expected a map');
      if (!isJsonObject(options) || options.cas === undefined) return { value };
      const follows = numberOf(options, 'cas') ?? 0;
      if (follows < 0) throw invalid('check-and-set parameter did not match the current version');
      return { value, follows };
    },
    answer: ({ secret }) => found(versionData(secret as SecretVersion)),
  };
}

function readMetadata(path: string): Operation {
  return { ...base('getSecretMetadata', path), answer: ({ secret }) => found(metadataOf(secret as SecretMetadata)) };
}

function writeMetadata(path: string): Operation {
  return {
    ...base('putSecretMetadata', path),
    missing: 'there is no secret at this path yet: write its data first',
    body(given) {
      const maxVersions = countOf(given, 'max_versions', 'max_versions cannot be negative');
      const casRequired = booleanOf(given, 'cas_required');
      const { custom_metadata: tags, delete_version_after: after } = given;
      if (!isNoTime(after)) throw invalid('delete_version_after is not supported: no version is deleted by itself');
      if (maxVersions !== undefined && maxVersions > mostSecretVersions) {
        throw invalid(`max_versions: expected at most ${mostSecretVersions}`);
      }
      if (tags !== undefined && tags !== null && !isJsonObject(tags)) {
        throw invalid('error converting input for field "custom_metadata": expected a map');
      }
      return {
        ...(maxVersions !== undefined && { maxVersions }),
        ...(casRequired !== undefined && { casRequired }),
        ...(isJsonObject(tags) && { tags }),
      };
    },
    answer: () => done,
  };
}

function isNoTime(given: unknown): boolean {
  return given === undefined || given === null || /^(?:0(?:s|h|m|ms)?)?$/.test(String(given));
}

/** A deletion of the latest version names none. */
function changeVersions(
  id: 'deleteSecretVersions' | 'restoreSecretVersions' | 'destroySecretVersions',
  path: string,
  which: 'latest' | 'named',
): Operation {
  const none = id === 'destroySecretVersions' ? 'no version number provided' : 'No version number provided';
  return {
    ...base(id, path),
    body: (given) => (which === 'latest' ? {} : { versions: versionsOf(given, none) }),
    answer: () => done,
    missing: done,
  };
}

/** Numbers, or their digits, in a list or with commas. `none` is the message if there are none. */
function versionsOf({ versions: given }: JsonObject, none: string): readonly number[] {
  const list: readonly unknown[] = Array.isArray(given)
    ? given
    : typeof given === 'string'
      ? given.split(',')
      : [given];
  if (given === undefined || given === null || list.length === 0) throw invalid(none);
  if (list.length > mostSecretVersions) throw invalid(`expected at most ${mostSecretVersions} versions`);
  const numbers = list.map((version) => numberOf({ versions: version }, 'versions'));
  if (numbers.includes(undefined)) throw invalid(none);
  return numbers.flatMap((number) => (number !== undefined && number > 0 ? [number] : []));
}

function versionData({ version, state, createdAt, deletedAt, tags }: SecretVersion): object {
  return {
    created_time: createdAt,
    custom_metadata: tagsOf(tags),
    deletion_time: deletedAt ?? '',
    destroyed: state === 'destroyed',
    version,
  };
}

function tagsOf(tags: JsonObject): JsonObject | null {
  return Object.keys(tags).length === 0 ? null : tags;
}

function metadataOf(secret: SecretMetadata): object {
  const { latestVersion, maxVersions } = secret;
  const oldest = secret.versions.at(-1)?.version;
  const versions = secret.versions.toReversed().map(({ version, state, createdAt, deletedAt }) => {
    const told = { created_time: createdAt, deletion_time: deletedAt ?? '', destroyed: state === 'destroyed' };
    return [String(version), told] as const;
  });
  return {
    cas_required: secret.casRequired,
    created_time: secret.createdAt,
    current_metadata_version: 0,
    current_version: latestVersion,
    custom_metadata: tagsOf(secret.tags),
    delete_version_after: '0s',
    max_versions: maxVersions,
    metadata_cas_required: false,
    oldest_version: oldest === undefined || oldest === 1 ? 0 : oldest,
    updated_time: secret.updatedAt,
    versions: Object.fromEntries(versions),
  };
}
