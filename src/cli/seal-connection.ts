// The way to a server that may be sealed: over the network, or through the socket of the one on this machine. Opening the data directory
// in this process is no way here, since the keys would be gone with it.
import { join } from 'node:path';
import type { SealStatus } from '../api/seal.ts';
import { errorOfAnswer, errorOfFailure } from '../client/failure.ts';
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';
import { type Connection, openConnection } from './connect.ts';
import { printThing } from './output.ts';
import { dataDirectory, remoteOf } from './target.ts';
import { answers } from './unix-fetch.ts';

export async function withServer<T>(cli: Cli, use: (connection: Connection) => Promise<T>): Promise<T> {
  const data = dataDirectory(cli);
  if ((await remoteOf(cli)) === undefined && !(await answers(join(data, 'kms.sock')))) {
    throw new KmsError('unavailable', `no server is running on ${data}`, {
      hint: 'start one with `kms serve`, or name one with --server URL',
    });
  }
  const connection = await openConnection(cli);
  try {
    return await use(connection);
  } finally {
    await connection.close();
  }
}

/** A request that is no part of the client. With `authorized` it carries the API key, where there is one. */
export async function ask<T>(
  cli: Cli,
  { baseUrl, fetch, headers: credential }: Connection,
  [method, path, body]: readonly [method: string, path: string, body?: object],
  authorized = false,
): Promise<T> {
  const headers: Record<string, string> = { accept: 'application/json', ...(authorized && credential) };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  let response: Response;
  try {
    response = await fetch(new Request(baseUrl + path, init));
  } catch (cause) {
    throw errorOfFailure(cause, baseUrl, cli.io.signal);
  }
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.status !== 200 || typeof answer !== 'object' || answer === null) {
    throw errorOfAnswer(response, answer, baseUrl);
  }
  // What the server answers here is fixed by its own contract.
  return answer as T;
}

export async function sealStatus(cli: Cli, connection: Connection): Promise<SealStatus> {
  return ask<SealStatus>(cli, connection, ['GET', '/system/seal-status']);
}

export async function printSealStatus(cli: Cli, status: SealStatus): Promise<void> {
  const { sealed, kinds, threshold, progress } = status;
  await printThing(cli, status, [
    ['sealed', sealed ? 'yes' : 'no'],
    ['master key', kinds.join(', ')],
    ['shares', threshold === undefined ? undefined : `${progress ?? 0} of ${threshold}`],
  ]);
}
