// LocalSocket is the way to the server of a data directory, and the only one: the directory's maker may have put
// anything at `kms.sock`, such as a link to another appliance's socket. The entry is checked, and connected to by the
// descriptor by which it was checked, so that nothing can be put in its place in between.
import { constants, type Stats } from 'node:fs';
import { lstat, open, stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { KmsError, systemCode } from '../errors.ts';
import { inWords } from './fetch.ts';
import { exchange } from './http-request.ts';

const { O_DIRECTORY, O_NOFOLLOW } = constants;
/** Names a file without opening it. Node does not name this flag; the value is Linux's on x86-64 and arm64. */
const O_PATH = 0o10_000_000;

/** Equal to `socketFile` of the data directory, whose code a command that only asks a server does without. */
const socketName = 'kms.sock';

/** Whether a server listens on the data directory. Throws `refused` for a socket that is not its own, or not ours. */
export async function isServing(data: string): Promise<boolean> {
  try {
    (await connected(data)).destroy();
    return true;
  } catch (error) {
    if (error instanceof KmsError) throw error;
    if (systemCode(error) !== 'EACCES' && systemCode(error) !== 'EPERM') return false;
    throw new KmsError('refused', `cannot open ${join(data, socketName)}: permission denied`, {
      hint: 'run this as the user that the server runs as, or use --server with an API key',
    });
  }
}

/**
 * A function like `fetch` that asks the server of the data directory, whatever host the URL names. It throws `refused`
 * as `isServing` does, else the platform's error in words.
 */
export function socketFetch(data: string): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      const socket = await connected(data);
      return await exchange(request, { createConnection: () => socket });
    } catch (error) {
      throw inWords(error);
    }
  };
}

/** Throws the platform's error if no server listens, and `refused` for a socket that is not the directory's own. */
async function connected(data: string): Promise<Socket> {
  const { path, release } = await checkedSocket(data);
  const socket = connect(path);
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      // Stays: an error that comes before the request has the socket must not end the process.
      socket.on('error', reject);
    });
  } finally {
    await release();
  }
  if (socket.errored) throw socket.errored;
  return socket;
}

interface CheckedSocket {
  /** Leads to this very socket until `release`. */
  readonly path: string;
  release(): Promise<void>;
}

const byDescriptor = (fd: number): string => `/proc/self/fd/${fd}`;

/** The path of the data directory itself may contain links. */
async function checkedSocket(data: string): Promise<CheckedSocket> {
  const name = join(data, socketName);
  const hasDescriptors = await lstat('/proc/self/fd').catch(() => undefined);
  if (!hasDescriptors) {
    // Without /proc the two are looked at by their names, and could be exchanged afterwards.
    await needOwnSocket(name, await stat(data), await lstat(name));
    return { path: name, release: async () => undefined };
  }
  const directory = await open(data, O_PATH | O_DIRECTORY);
  try {
    const entry = await open(`${byDescriptor(directory.fd)}/${socketName}`, O_PATH | O_NOFOLLOW);
    try {
      await needOwnSocket(name, await directory.stat(), await entry.stat());
      return { path: byDescriptor(entry.fd), release: () => entry.close() };
    } catch (error) {
      await entry.close();
      throw error;
    }
  } finally {
    await directory.close();
  }
}

/**
 * Throws `refused` for a link, another name of a socket elsewhere, and a socket of a user who is neither the
 * directory's owner nor the caller nor root; `ENOTSOCK` for anything else, where no server listens.
 */
async function needOwnSocket(path: string, directory: Stats, found: Stats): Promise<void> {
  if (found.isSymbolicLink()) throw (await import('../platform/data-dir.ts')).isLinked(path);
  if (!found.isSocket()) throw Object.assign(new Error(`ENOTSOCK: ${path}`), { code: 'ENOTSOCK' });
  const isOwn = [directory.uid, process.geteuid?.(), 0].includes(found.uid);
  if (isOwn && found.nlink === 1) return;
  const why = isOwn ? 'has another name elsewhere' : 'belongs to another user than the data directory';
  throw new KmsError('refused', `${path}: this socket ${why}: it may be the one of another appliance`, {
    hint: 'nothing was sent to it; stop the server there, and find out who put this in its place',
  });
}
