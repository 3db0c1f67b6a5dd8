// A release: the executable, with a signed manifest beside it or with it in a tarball. It is read whole into memory and
// verified there, so that exactly the verified bytes are used; nothing of a tarball is unpacked to disk.
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { fromUtf8, toHex } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { type PublicKey, verifyMinisign } from '../crypto/minisign.ts';
import { KmsError, reasonOf, systemError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';
import { type ForeignFiles, foreignFile } from '../platform/foreign-files.ts';
import { version as sealVersion } from '../seal/header.ts';
import { formatVersion as segmentVersion } from '../store/activity/segment.ts';
import { formatVersion as storeVersion } from '../store/store-files.ts';
import { systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';

/** For commands too, which must not load the primitives. */
export { parsePublicKey } from '../crypto/minisign.ts';

/** The newest version of each format that a program reads and writes; it reads all earlier ones too. */
type Formats = Readonly<Record<string, number>>;

export interface ReleaseManifest {
  readonly name: 'kms';
  readonly version: string;
  /** In Node's terms, such as `linux-x64`. */
  readonly platform: string;
  readonly formats: Formats;
  /** `path` is a plain file name; SHA-256 in hex. */
  readonly files: readonly { readonly path: string; readonly bytes: number; readonly sha256: string }[];
}

export const executableName = 'kms';
export const manifestName = 'manifest.json';
export const signatureName = `${manifestName}.minisig`;

/** Formats that this program reads and writes. */
export const ownFormats: Formats = {
  'the seal': sealVersion,
  'the store of the appliance': systemMigrations.length,
  'the stores of tenants': tenantMigrations.length,
  'logs and snapshots': storeVersion,
  'activity segments': segmentVersion,
};

export const ownPlatform = `${process.platform}-${process.arch}`;

export interface Release {
  readonly manifest: ReleaseManifest;
  readonly executable: Uint8Array;
}

/** A few times the current size. */
const most = 512 * 1024 * 1024;
const mostText = 64 * 1024;

/**
 * The release in `file`, a tarball of `./scripts/package` or an executable with its manifest beside it. Throws
 * `refused` for anything but the exact bytes that the owner of `key` signed for this platform.
 */
export async function readRelease(file: string, key: PublicKey): Promise<Release> {
  const { files, name } = await foreignFile(file).catch((error: unknown) => {
    throw systemError(error, file);
  });
  const bytes = await readWhole(files, name, file, most);
  if (text(bytes.subarray(0, 8)) === '!<arch>\n') {
    throw new KmsError('refused', `${file}: is a Debian package`, {
      hint: `give the tarball; or install it in place of an executable of your own: apt install ${file}`,
    });
  }
  const isTarball = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const { executable, manifest, signature } = isTarball
    ? await inTarball(file, bytes)
    : await beside(files, file, bytes);
  verifyMinisign(key, manifest, fromUtf8(signature) ?? '', `${file}: ${signatureName}`);
  const said = parseManifest(manifest);
  if (!said) {
    throw new KmsError('refused', `${file}: ${manifestName} is signed, but is not a manifest that this program reads`, {
      hint: 'install this version by hand, as its documentation says',
    });
  }
  if (said.platform !== ownPlatform) {
    throw new KmsError('refused', `${file}: is for ${said.platform}, but this machine is ${ownPlatform}`, {
      hint: 'get the file for this machine',
    });
  }
  const entry = said.files.find(({ path }) => path === executableName);
  if (entry?.bytes !== executable.length || entry.sha256 !== toHex(sha256(executable))) {
    throw new KmsError('refused', `${file}: the executable is not the one that the manifest names`, {
      hint: 'get it again from where it comes from',
    });
  }
  return { manifest: said, executable };
}

/** Why a program with these formats cannot open this program's data; undefined if it can. */
export function olderFormat({ version, formats }: ReleaseManifest): string | undefined {
  for (const [what, own] of Object.entries(ownFormats)) {
    const its = formats[what] ?? 0;
    if (its < own) return `version ${version} reads ${what} up to format ${its}, and this appliance has format ${own}`;
  }
  return undefined;
}

/** The format that a program with these formats would newly write or migrate; undefined if there is none. */
export function newerFormat({ version, formats }: ReleaseManifest): string | undefined {
  for (const [what, its] of Object.entries(formats)) {
    const own = ownFormats[what] ?? 0;
    if (its > own) return `version ${version} writes ${what} in format ${its}, and this version in format ${own}`;
  }
  return undefined;
}

/**
 * Whether one version is before another, by their leading dotted numbers. A version with a hyphen is before the one
 * without (Semantic Versioning 2.0.0 §11); two with hyphens are not ordered.
 */
export function isBefore(version: string, other: string): boolean {
  const [own, others] = [numbersOf(version), numbersOf(other)];
  for (let i = 0; i < Math.max(own.length, others.length); i++) {
    const difference = (own[i] ?? 0) - (others[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return version.includes('-') && !other.includes('-');
}

function numbersOf(version: string): number[] {
  const [numbers = ''] = version.split(/[-+]/);
  return numbers.split('.').map(Number);
}

interface Parts {
  readonly executable: Uint8Array;
  readonly manifest: Uint8Array;
  readonly signature: Uint8Array;
}

async function beside(files: ForeignFiles, file: string, executable: Uint8Array): Promise<Parts> {
  const near = (name: string): Promise<Uint8Array> =>
    readWhole(files, name, join(dirname(file), name), mostText).catch((error) => {
      const hint = `the executable is taken with ${manifestName} and ${signatureName} beside it; or give the tarball`;
      throw error instanceof KmsError && error.code === 'refused'
        ? new KmsError('refused', error.message, { hint, cause: error })
        : error;
    });
  return { executable, manifest: await near(manifestName), signature: await near(signatureName) };
}

/** Bytes of all that is in a tarball: it is unpacked in memory, before its signature is known. */
const mostUnpacked = 256 * 1024 * 1024;
/** A release has some ten. */
const mostMembers = 64;

async function inTarball(file: string, bytes: Uint8Array): Promise<Parts> {
  const broken = (why: string): KmsError =>
    new KmsError('refused', `${file}: ${why}`, { hint: 'get the tarball again: it is damaged, or a different one' });
  let tar: Uint8Array;
  try {
    tar = await promisify(gunzip)(bytes, { maxOutputLength: mostUnpacked });
  } catch (cause) {
    throw broken(`cannot be unpacked: ${reasonOf(cause)}`);
  }
  const found = new Map<string, Uint8Array>();
  for (let at = 0, members = 0; ; members++) {
    if (members > mostMembers) throw broken('has more in it than a release');
    const head = tar.subarray(at, at + 512);
    if (head.length < 512) throw broken('ends in the middle');
    if (head.every((byte) => byte === 0)) break;
    const size = octal(head.subarray(124, 136));
    const content = tar.subarray(at + 512, at + 512 + (size ?? 0));
    if (size === undefined || checksum(head) !== octal(head.subarray(148, 156))) throw broken('is not a tarball');
    if (content.length < size) throw broken('ends in the middle');
    at += 512 + Math.ceil(size / 512) * 512;
    // Only regular files in the top directory count, by name; links and devices are skipped.
    const [, name] = /^[^/]+\/([^/]+)$/.exec(text(head.subarray(0, 100))) ?? [];
    const isFile = head[156] === 0x30 || head[156] === 0;
    if (name === undefined || !isFile || ![executableName, manifestName, signatureName].includes(name)) continue;
    if (found.has(name)) throw broken(`has two files ${name}`);
    found.set(name, content);
  }
  const [executable, manifest] = [found.get(executableName), found.get(manifestName)];
  if (!executable || !manifest) throw broken(`expected ${executableName} and ${manifestName} in it`);
  const signature = found.get(signatureName);
  if (signature) return { executable, manifest, signature };
  throw new KmsError('refused', `${file}: is not signed: there is no ${signatureName} in it`, {
    hint: 'make the packages with a signing key, or get those that were',
  });
}

function parseManifest(bytes: Uint8Array): ReleaseManifest | undefined {
  let value: unknown;
  try {
    value = JSON.parse(fromUtf8(bytes) ?? '');
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const { name, version, platform, formats, files } = value;
  if (name !== 'kms' || typeof version !== 'string' || !/^\d+\.\d+\.\d+[\w.+-]{0,60}$/.test(version)) return undefined;
  if (typeof platform !== 'string' || !isJsonObject(formats) || !Array.isArray(files)) return undefined;
  if (!Object.values(formats).every((each) => Number.isSafeInteger(each)) || !files.every(isFile)) return undefined;
  // Cast: each number was checked.
  return { name, version, platform, formats: formats as Formats, files };
}

function isFile(value: unknown): value is ReleaseManifest['files'][number] {
  if (!isJsonObject(value)) return false;
  const { path, bytes, sha256 } = value;
  return typeof path === 'string' && Number.isSafeInteger(bytes) && typeof sha256 === 'string';
}

/** @param path the name for messages. */
async function readWhole(files: ForeignFiles, name: string, path: string, limit: number): Promise<Uint8Array> {
  try {
    const size = await files.size(name);
    if (size > limit) {
      throw new KmsError('refused', `${path}: expected at most ${limit} bytes, found ${size}`, {
        hint: 'it is not a release of kms',
      });
    }
    return await files.readAt(name, 0, size);
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'corrupt') throw systemError(error, path);
    throw new KmsError('refused', `${path}: expected a file`, { hint: 'check the path', cause: error });
  }
}

function text(field: Uint8Array): string {
  const end = field.indexOf(0);
  return fromUtf8(end < 0 ? field : field.subarray(0, end)) ?? '';
}

function octal(field: Uint8Array): number | undefined {
  const digits = text(field).trim();
  return /^[0-7]{1,11}$/.test(digits) ? Number.parseInt(digits, 8) : undefined;
}

function checksum(head: Uint8Array): number {
  return head.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
}
