// Profiles: named remote appliances, each with an address and a credential, in files that only their user can read.
// Which one a command uses is decided in target.ts.
import { type FileHandle, open, readdir, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KmsError, systemCode } from '../errors.ts';
import { nearest } from '../model/nearest.ts';
import type { CertificateFiles } from './client-certificate.ts';
import { fileError, newFile } from './files.ts';
import { configDirectory, type Io } from './io.ts';

export interface Profile {
  /** Address of the appliance, such as `https://kms.example`. */
  readonly server: string;
  readonly apiKey?: string;
  /** PEM of the authorities that certify the server; absent for the public ones. */
  readonly ca?: string;
  readonly certificate?: CertificateFiles;
}

export function profilePath(io: Io, name: string): string {
  return join(profileDirectory(io), `${checkedProfileName(name)}.json`);
}

export function checkedProfileName(name: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return name;
  throw new KmsError('invalid', `"${name}" cannot name a profile`, {
    hint: 'a name has 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit',
  });
}

/** Throws `not-found`, and `refused` if other users could read the file or replace it. */
export async function readProfile(io: Io, name: string): Promise<Profile> {
  const path = profilePath(io, name);
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    mustBePrivate(path, (await file.stat()).mode, 'chmod 600');
    const directory = profileDirectory(io);
    mustBePrivate(directory, (await stat(directory)).mode, 'chmod 700');
    return parseProfile(await file.readFile('utf8'), path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') throw await unknownProfile(io, name);
    throw fileError('read the profile from', path, error);
  } finally {
    await file?.close();
  }
}

/** Never overwrites a profile. */
export async function writeProfile(io: Io, name: string, profile: Profile): Promise<string> {
  const path = profilePath(io, name);
  const { makeDirs } = await import('../platform/data-dir.ts');
  await makeDirs(profileDirectory(io)).catch((error) => {
    throw fileError('make the directory', profileDirectory(io), error);
  });
  const file = await newFile(path, 0o600, `remove it first: kms profile remove ${name}`);
  try {
    await file.handle.writeFile(`${JSON.stringify(profile, null, 2)}\n`);
    await file.commit();
  } catch (error) {
    await file.discard();
    throw fileError('write', path, error);
  }
  return path;
}

/** Returns whether it was the default profile; if so, there is no default any more. */
export async function removeProfile(io: Io, name: string): Promise<boolean> {
  const path = profilePath(io, name);
  try {
    await unlink(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') throw await unknownProfile(io, name);
    throw fileError('remove', path, error);
  }
  const wasDefault = (await defaultProfile(io)) === name;
  if (wasDefault) await setDefaultProfile(io, undefined);
  return wasDefault;
}

/** Sorted names. */
export async function profileNames(io: Io): Promise<readonly string[]> {
  const directory = profileDirectory(io);
  const files = await readdir(directory).catch((error) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  });
  return files
    .filter((file) => /^[A-Za-z0-9].*\.json$/.test(file))
    .map((file) => file.slice(0, -'.json'.length))
    .sort();
}

/** The name that `kms profile use` chose. */
export async function defaultProfile(io: Io): Promise<string | undefined> {
  try {
    return (await readFile(defaultPath(io), 'utf8')).trim() || undefined;
  } catch {
    // None was chosen, or there is no configuration directory.
    return undefined;
  }
}

export async function setDefaultProfile(io: Io, name: string | undefined): Promise<void> {
  const path = defaultPath(io);
  try {
    if (name === undefined) return await unlink(path);
    await writeFile(`${path}.tmp`, `${name}\n`, { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  } catch (error) {
    if (name === undefined && systemCode(error) === 'ENOENT') return;
    throw fileError('write', path, error);
  }
}

function profileDirectory(io: Io): string {
  return join(configDirectory(io), 'profiles');
}

/** No profile has this name: their files end in `.json`. */
function defaultPath(io: Io): string {
  return join(profileDirectory(io), 'default');
}

function mustBePrivate(path: string, mode: number, command: string): void {
  if ((mode & 0o077) === 0) return;
  throw new KmsError('refused', `other users can get at ${path}, which holds a credential`, {
    hint: `run: ${command} ${path}; if they may have read it, make a new API key`,
  });
}

function parseProfile(text: string, path: string): Profile {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    fields = undefined;
  }
  if (typeof fields === 'object' && fields !== null && 'server' in fields && typeof fields.server === 'string') {
    return {
      server: fields.server,
      ...('apiKey' in fields && typeof fields.apiKey === 'string' && { apiKey: fields.apiKey }),
      ...('ca' in fields && typeof fields.ca === 'string' && { ca: fields.ca }),
      ...('certificate' in fields && isFiles(fields.certificate) && { certificate: fields.certificate }),
    };
  }
  throw new KmsError('invalid', `${path} is not a profile`, { hint: 'remove it and add the profile again' });
}

function isFiles(value: unknown): value is CertificateFiles {
  const { cert, key } = Object(value);
  return typeof cert === 'string' && typeof key === 'string';
}

async function unknownProfile(io: Io, name: string): Promise<KmsError> {
  const near = nearest(name, await profileNames(io));
  const hint =
    near === undefined ? 'see `kms profile list`, or make it with `kms profile add`' : `did you mean ${near}?`;
  return new KmsError('not-found', `there is no profile ${name}`, { hint });
}
