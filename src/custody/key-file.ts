// The key file: where it is, how it is read and created. It is never overwritten.

import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, stat, unlink } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fromUtf8, toHex } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError, systemCode, systemError } from '../errors.ts';
import { giveName, withoutModes } from '../platform/file-system.ts';
import { makeDirs, notFile } from '../platform/node-files.ts';
import { isOwnPipe, refuseExposed, refusePipe } from '../platform/ownership.ts';
import { formatKeyFile, parseKeyFile, parseSecret } from '../seal/custodian-secret.ts';
import type { Slot } from '../seal/slot.ts';

/** Beside the data directory, not in it, so that a copy of the data is not a copy of the key. */
export function defaultKeyFile(dataDir: string): string {
  return `${resolve(dataDir)}.master.key`;
}

/** Parameters of a key file's slot: its path, so that a data directory that moves still finds it. */
export function slotParams(keyFile: string): Slot['params'] {
  return { file: resolve(keyFile) };
}

/** The paths to try, in order: only the given one, or else the one noted by `init`, then the default. */
export function keyFilePlaces(dataDir: string, keyFile: string | undefined, slots: readonly Slot[]): string[] {
  if (keyFile !== undefined) return [resolve(keyFile)];
  const noted = slots.map(({ params }) => params.file).filter((file) => typeof file === 'string');
  return [...new Set([...noted, defaultKeyFile(dataDir)])];
}

/**
 * Creates the key file, durably, with `secret` in it. Throws `refused` if the file exists, or if its file system would
 * let others read it.
 */
export async function writeKeyFile(place: string, secret: Uint8Array): Promise<void> {
  const draft = `${place}.${toHex(systemRandom(6))}.new`;
  try {
    await makeDirs(dirname(place));
    try {
      await writeDurably(draft, formatKeyFile(secret), place);
      await giveName(draft, place);
    } finally {
      await unlink(draft).catch(() => {});
    }
    await syncDirectory(dirname(place));
  } catch (error) {
    if (systemCode(error) === 'EEXIST') {
      throw new KmsError('refused', `${place}: there is a file already; it was left as it is`, { hint: 'try again' });
    }
    throw systemError(error, place);
  }
}

/** Limit in bytes of a key file, or of a recovery kit with the text around its code. */
const longestKeyFile = 64 * 1024;

/**
 * The secret in the key file, or in a recovery kit given instead; undefined if there is no file. Throws `refused` if
 * others can read it, unless `exposed`, and for a device or the like.
 */
export function readKeyFile(place: string, exposed = false): Promise<Uint8Array | undefined> {
  return withKeyFile(place, isOwnPipe(place), async (handle, info) => {
    const secret = parseSecret(await readShort(handle, place), place);
    if (!exposed) refuseExposed(place, info, 'a key', 'rotate the master key');
    return secret;
  });
}

/**
 * Reads a key file whose path only the seal names: it must hold the line of a key file and nothing else, since a file
 * with a key somewhere in it may be a log that an attacker got it into. `check` inspects the opened file.
 */
export function readNotedKeyFile(
  place: string,
  exposed: boolean,
  check: (handle: FileHandle, info: Stats) => Promise<void>,
): Promise<Uint8Array | undefined> {
  return withKeyFile(place, false, async (handle, info) => {
    await check(handle, info);
    const secret = parseKeyFile(fromUtf8(await readShort(handle, place)) ?? '', place);
    if (!exposed) refuseExposed(place, info, 'a key', 'rotate the master key');
    return secret;
  });
}

async function withKeyFile<R>(
  place: string,
  takesStreams: boolean,
  read: (handle: FileHandle, info: Stats) => Promise<R>,
): Promise<R | undefined> {
  let handle: FileHandle | undefined;
  try {
    const before = await stat(place);
    refusePipe(place, before, 'a key');
    // Opening a device may block for ever, or have an effect.
    if (!takesStreams && !before.isFile()) throw notFile(place, before);
    const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = constants;
    handle = await open(place, takesStreams ? O_RDONLY : O_RDONLY | O_NONBLOCK | O_NOCTTY);
    const info = await handle.stat();
    if (!takesStreams && !info.isFile()) throw notFile(place, info);
    return await read(handle, info);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw systemError(error, place);
  } finally {
    await handle?.close();
  }
}

/** Throws `corrupt` for more bytes than a key file has. */
async function readShort(handle: FileHandle, place: string): Promise<Uint8Array> {
  const bytes = new Uint8Array(longestKeyFile + 1);
  let length = 0;
  for (let read = 1; read > 0 && length < bytes.length; length += read) {
    read = (await handle.read(bytes, length, bytes.length - length, null)).bytesRead;
  }
  if (length <= longestKeyFile) return bytes.subarray(0, length);
  throw new KmsError('corrupt', `${place}: expected a key file, found more than ${longestKeyFile} bytes`, {
    hint: 'give the key file that `kms init` made, or a copy of it',
  });
}

/** The secret of a key file or a recovery kit, as the line of a key file. Throws `not-found` if there is no file. */
export async function keyFileLine(place: string): Promise<string> {
  const secret = await readKeyFile(place);
  if (!secret) throw new KmsError('not-found', `${place}: there is no such file`, { hint: 'name the key file' });
  try {
    return formatKeyFile(secret).trimEnd();
  } finally {
    secret.fill(0);
  }
}

/** @param place the final name, for the error. */
async function writeDurably(file: string, text: string, place: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    const { mode } = await handle.stat();
    if ((mode & 0o077) !== 0) throw withoutModes(place, mode);
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
