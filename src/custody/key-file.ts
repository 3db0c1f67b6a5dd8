// Where the key file lies, and how it is read and made. It is never overwritten.

import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, stat, unlink } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fromUtf8, toHex } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError, systemCode, systemError } from '../errors.ts';
import { isOwnPipe, refuseExposed, refusePipe } from '../platform/data-dir.ts';
import { giveName, withoutModes } from '../platform/file-system.ts';
import { makeDirs, notFile } from '../platform/node-files.ts';
import { formatKeyFile, parseKeyFile, parseSecret } from '../seal/custodian-secret.ts';
import type { Slot } from '../seal/slot.ts';

/** Beside the data directory, not in it, so that a copy of the data is not a copy of the key. */
export function defaultKeyFile(dataDir: string): string {
  return `${resolve(dataDir)}.master.key`;
}

/** What a slot keeps of its key file: where it is, so that a data directory that moves away still finds it. */
export function slotParams(keyFile: string): Slot['params'] {
  return { file: resolve(keyFile) };
}

/** The places to look at, in order: the one given and no other, or where `init` put it, then the default one. */
export function keyFilePlaces(dataDir: string, keyFile: string | undefined, slots: readonly Slot[]): string[] {
  if (keyFile !== undefined) return [resolve(keyFile)];
  const noted = slots.map(({ params }) => params.file).filter((file) => typeof file === 'string');
  return [...new Set([...noted, defaultKeyFile(dataDir)])];
}

/**
 * Makes the key file, durably, with `secret` in it. Throws `refused` where there is a file, and where the file system
 * would let others read it.
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

/** Bytes of a key file, or of a recovery kit with the text around its code, at most. */
const longestKeyFile = 64 * 1024;

/**
 * The secret in the key file, or in a recovery kit in its place; undefined where there is no file. Throws `refused`
 * where others can read it, unless that is known (`exposed`), and for a device or the like.
 */
export function readKeyFile(place: string, exposed = false): Promise<Uint8Array | undefined> {
  return withKeyFile(place, isOwnPipe(place), async (handle, info) => {
    const secret = parseSecret(await readShort(handle, place), place);
    if (!exposed) refuseExposed(place, info, 'a key', 'rotate the master key');
    return secret;
  });
}

/**
 * The same of a place that the seal alone names: it has to be a file with the line of a key file and nothing else. One
 * with a key somewhere in it may be what its writer got there by other ways, such as a log. `check` looks at the file
 * that was opened.
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
    // Opening a device may wait for ever, or do something.
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

/** The secret of a key file or a recovery kit, as the line of a key file. Throws `not-found` where there is none. */
export async function keyFileLine(place: string): Promise<string> {
  const secret = await readKeyFile(place);
  if (!secret) throw new KmsError('not-found', `${place}: there is no such file`, { hint: 'name the key file' });
  try {
    return formatKeyFile(secret).trimEnd();
  } finally {
    secret.fill(0);
  }
}

/** `place`: the name that it is to have. */
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
