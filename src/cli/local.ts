// Requests of the operator, who is at the machine: to the running server's socket or to the data directory opened here, never over
// the network.
import { errorOfAnswer, errorOfFailure, notOurs } from '../client/failure.ts';
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';
import { type Connection, localHeaders, openHere, withClient } from './connect.ts';
import { namedRemote } from './target.ts';

export interface Local {
  /** Asks and answers the body of status 200. Its shape is the server's, which comes in the same executable. */
  ask<T>(method: string, path: string, body?: object): Promise<T>;
  /** The same for an answer that is no JSON. */
  stream(method: string, path: string, body?: object): Promise<ReadableStream<Uint8Array>>;
}

export async function withLocal<T>(cli: Cli, use: (local: Local) => Promise<T>): Promise<T> {
  const named = namedRemote(cli);
  if (named !== undefined) throw notHere(cli, named.server === undefined ? '--profile' : '--server');
  const run = async ({ baseUrl, fetch }: Connection): Promise<T> => {
    const send = async (method: string, path: string, body?: object): Promise<Response> => {
      const headers = localHeaders(cli);
      const init: RequestInit = { method, headers };
      if (body !== undefined) {
        headers['content-type'] = 'application/json';
        init.body = JSON.stringify(body);
      }
      let response: Response;
      try {
        response = await fetch(new Request(baseUrl + path, init));
      } catch (cause) {
        throw errorOfFailure(cause, baseUrl, cli.io.signal);
      }
      if (response.status !== 200) throw errorOfAnswer(response, await json(response), baseUrl);
      return response;
    };
    return use({
      async ask<T>(method: string, path: string, body?: object) {
        const answer = await json(await send(method, path, body));
        if (typeof answer !== 'object' || answer === null) throw notOurs(baseUrl);
        // Server and command are of one version.
        return answer as T;
      },
      async stream(method, path, body) {
        return (await send(method, path, body)).body ?? new ReadableStream();
      },
    });
  };
  return withClient(cli, (_client, connection) => run(connection), openHere);
}

function json(response: Response): Promise<unknown> {
  return response.json().catch(() => undefined);
}

function notHere(cli: Cli, option: string): KmsError {
  return new KmsError('usage', `this works on the machine of the appliance only, not with ${option}`, {
    hint: cli.seeHelp,
  });
}
