// The private keys of rings as they are kept: one PEM file for each ring, mode 0600, in the user's configuration
// directory, written once and never overwritten.
import { dirname, join } from 'node:path';
import { privateKeyPem, readPrivateKey } from '../client/ring-keys.ts';
import { KmsError, reasonOf } from '../errors.ts';
import { isRingName } from '../model/names.ts';
import type { Cli } from './command.ts';
import { fileError, type NewFile, newFile } from './files.ts';
import { configDirectory, say, write } from './io.ts';
import { readSecretFile } from './secrets.ts';

type RingKind = 'rings' | 'asym';

/** Where the private key of a ring is unless somebody says otherwise. */
function ringKeyPath(cli: Cli, kind: RingKind, ring: string): string {
  return join(configDirectory(cli.io), kind, `${ring.toLowerCase()}.key`);
}

/** The private key that --private-key names, else the one kept for `ring`. */
export async function loadRingKey(
  cli: Cli<{ '--private-key': string | undefined }>,
  ring: string,
): Promise<Uint8Array> {
  const named = cli.get('--private-key');
  try {
    const path = named ?? ringKeyPath(cli, 'rings', checkedRingName(ring));
    return readPrivateKey(await readSecretFile(path, 'the private key'), path);
  } catch (error) {
    if (named !== undefined || !(error instanceof KmsError)) throw error;
    throw new KmsError(error.code, error.message, {
      hint: error.hint ?? `name the file that has the private key of ${ring} with --private-key FILE`,
    });
  }
}

/** A place for a private key that does not exist yet, made sure of before it does. */
export interface KeyPlace {
  readonly path: string;
  /** Keeps the key (base64 PKCS#8 DER). When that fails, it goes to stdout rather than being lost. */
  keep(privateKey: string): Promise<void>;
  release(): Promise<void>;
}

/**
 * Makes sure that the private key of a ring about to be made can be kept, where --private-key-out says or in its usual
 * place.
 */
export async function reserveKeyPlace(
  cli: Cli<{ '--private-key-out': string | undefined }>,
  kind: RingKind,
  ring: string,
): Promise<KeyPlace> {
  const named = cli.get('--private-key-out');
  const path = named ?? ringKeyPath(cli, kind, checkedRingName(ring));
  if (named === undefined) {
    const { makeDirs } = await import('../appliance/data-dir.ts');
    await makeDirs(dirname(path)).catch((error) => {
      throw fileError('make the directory', dirname(path), error, 'name another place with --private-key-out FILE');
    });
  }
  const file = await newFile(path, 0o600, 'move it away, or name another file with --private-key-out FILE');
  return { path, keep: (privateKey) => keep(cli, file, path, privateKey), release: () => file.discard() };
}

async function keep(cli: Cli, file: NewFile, path: string, privateKey: string): Promise<void> {
  const pem = privateKeyPem(privateKey);
  let written = false;
  try {
    await file.handle.writeFile(pem);
    await file.handle.sync();
    written = true;
    await file.commit();
  } catch (error) {
    if (!written) await file.discard();
    if (!written && !cli.json) await write(cli.io.stdout, pem);
    const where = written
      ? `it is in ${file.temporary}, move it to a safe place`
      : 'it stands on stdout and nowhere else';
    throw new KmsError('refused', `cannot keep the private key in ${path}: ${reasonOf(error)}`, {
      hint: `the ring is made and needs it: ${where}`,
    });
  }
  await say(cli.io, `the private key is in ${path}; nobody else has it, so keep a copy of it safe`);
}

/** Looked at before the name becomes part of a path. */
export function checkedRingName(ring: string): string {
  if (isRingName(ring)) return ring;
  throw new KmsError('invalid', `"${ring}" cannot name a ring`, {
    hint: 'a name has 1 to 128 letters, digits, dots, dashes and underscores, and begins with a letter or digit',
  });
}
