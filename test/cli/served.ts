// A whole appliance with its state in memory, behind the socket of a desk's data directory and on a port, as `serve`
// sets it up.
import { mkdir } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { type Appliance, type ApplianceOptions, testAppliance } from '../support/appliance.ts';
import { type Desk, desk } from './kms.ts';

export interface ServedDesk extends Desk {
  readonly appliance: Appliance;
  readonly url: string;
  /** Options and environment for commands over the network with this API key; default: the root key. */
  network(key?: string): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
}

export async function servedDesk(options: ApplianceOptions = {}): Promise<ServedDesk> {
  const place = await desk();
  const appliance = await testAppliance(options);
  await mkdir(place.path('kms-data'), { mode: 0o700 });
  const local = createServer(getRequestListener((request) => appliance.app.fetch(request, { local: true })));
  const network = createServer(getRequestListener((request) => appliance.app.fetch(request, {})));
  await listening(local, place.path('kms-data', 'kms.sock'));
  await listening(network, 0);
  const url = `http://127.0.0.1:${(network.address() as AddressInfo).port}`;
  return {
    ...place,
    appliance,
    url,
    network: (key = appliance.root.key) => ({ args: ['--server', url], env: { KMS_API_KEY: key } }),
    async [Symbol.asyncDispose]() {
      for (const server of [local, network]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
      await place[Symbol.asyncDispose]();
    },
  };
}

function listening(server: Server, where: string | number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(typeof where === 'string' ? { path: where } : { port: where, host: '127.0.0.1' }, resolve);
  });
}

/** An answer to an encrypt or decrypt. */
export interface KeyAnswer {
  /** The number of keys that the request listed as known. */
  readonly known: number;
  readonly hasKey: boolean;
  /** Bytes of its body. */
  readonly bytes: number;
}

/** Answers from now on. */
export function keyAnswers({ appliance: { app } }: ServedDesk): KeyAnswer[] {
  const seen: KeyAnswer[] = [];
  const served = app.fetch.bind(app);
  app.fetch = async (request, env) => {
    if (!/\/ks\/(?:en|de)crypt$/.test(request.url)) return served(request, env);
    const { knownKeys = [] } = await request.clone().json();
    const answer = await served(request, env);
    const text = await answer.clone().text();
    const hasKey = JSON.parse(text).key?.keyData !== undefined;
    seen.push({ known: knownKeys.length, hasKey, bytes: Buffer.byteLength(text) });
    return answer;
  };
  return seen;
}
