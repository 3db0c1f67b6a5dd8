// Taking the port on the network and the socket in the data directory, and saying in words why one cannot be had.
import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { KmsError } from '../errors.ts';
import { inDir, socketFile } from './data-dir.ts';
import { listen } from './http-server.ts';
import type { Listening } from './listen.ts';
import type { Logger } from './log.ts';
import { systemCode } from './trouble.ts';

export async function takePort(server: Server, { host, port }: Listening): Promise<void> {
  try {
    await listen(server, { host, port });
  } catch (error) {
    throw listenTrouble(error, `${host}:${port}`);
  }
}

function listenTrouble(error: unknown, address: string): unknown {
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return new KmsError('in-use', `${address} is in use by another program`, {
        hint: 'stop that one, or choose another address with --listen (port 0 picks a free one)',
        cause: error,
      });
    case 'EACCES':
      return new KmsError('refused', `${address}: this user may not listen on that port`, {
        hint: 'choose a port from 1024 on with --listen',
        cause: error,
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new KmsError('refused', `${address} is no address of this machine`, {
        hint: 'choose one that is, with --listen',
        cause: error,
      });
    default:
      return error;
  }
}

/** Only its owner may open it. With the lock held, a file that is there already is what a killed server left. */
export async function openSocket(server: Server, data: string, logger: Logger): Promise<void> {
  const path = inDir(data, socketFile);
  // sun_path holds 108 bytes.
  if (Buffer.byteLength(path) > 107) {
    logger.warn(
      { path },
      'the path is too long for a local socket: commands on this machine need --server while this runs',
    );
    return;
  }
  await rm(path, { force: true });
  await listen(server, { path });
  await chmod(path, 0o600);
}

export function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
