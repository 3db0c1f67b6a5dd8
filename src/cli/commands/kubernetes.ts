// `kms kubernetes-plugin`: the KMS plugin (version 2) of a Kubernetes API server, which encrypts its keys with a
// keyring.
import { setTimeout } from 'node:timers/promises';
import { decryptBytes, encryptBytes } from '../../client/file-streams.ts';
import {
  decryptResponse,
  encryptResponse,
  kmsCalls,
  readDecryptRequest,
  readEncryptRequest,
  statusResponse,
} from '../../client/kubernetes-kms.ts';
import { publicKeyOf } from '../../client/ring-keys.ts';
import { type ErrorCode, KmsError } from '../../errors.ts';
import type { Cli, CliOf } from '../command.ts';
import { type Connection, inTime, withServer } from '../connect.ts';
import { sentenceOf } from '../exit.ts';
import type { kubernetes } from '../grammar/other-software.ts';
import { serveGrpc } from '../grpc.ts';
import { say } from '../io.ts';
import { keptRingKey, namedRingKey, type RingPrivateKeys } from '../ring-key-file.ts';
import { visible } from '../text.ts';

/**
 * Serves until it is asked to end. What is set up wrong ends it at once, with what the appliance says of it. An appliance
 * that is away, or sealed, does not: machines start in any order, and until it answers the API server is told so.
 */
export async function kubernetesPlugin(cli: CliOf<typeof kubernetes.kubernetesPlugin>): Promise<void> {
  const path = socketPath(cli, cli.get('--listen'));
  const ringname = cli.get('--ring');
  const named = await namedRingKey(cli);
  const serve = async (connection: Connection): Promise<void> => {
    const over = new AbortController();
    const signal = AbortSignal.any([cli.io.signal, over.signal]);
    let fault: unknown;
    const checked = checkRing(cli, ringname, connection, named, signal).catch((error) => {
      fault = error;
      over.abort();
    });
    try {
      await Promise.race([checked, setTimeout(patience, undefined, { signal }).catch(() => undefined)]);
      if (!signal.aborted) {
        await serveGrpc(path, callsOf(cli, ringname, connection, named), {
          signal,
          ready: () => void say(cli.io, visible(`listening on unix://${path}`)),
          failed: (error) => void say(cli.io, sentenceOf(error)).catch(() => undefined),
        });
      }
    } finally {
      over.abort();
    }
    if (fault !== undefined && !cli.io.signal.aborted) throw fault;
  };
  await withServer(cli, serve, { later: true });
}

/** How long the API server finds nobody while the appliance is first asked, in milliseconds; and the pauses then. */
const patience = 2000;
const pause = 2000;

/** What may be over by the next try. */
const passing: ReadonlySet<ErrorCode> = new Set(['unavailable', 'sealed', 'rate-limited', 'corrupt', 'internal']);

/** Asks for the ring until there is an answer. Throws where that says no, or the ring's private key is not here. */
async function checkRing(
  cli: Cli,
  ringname: string,
  connection: Connection,
  named: RingPrivateKeys | undefined,
  signal: AbortSignal,
): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      const { ring } = await inTime(connection, (late) =>
        connection.client.getKeyring({ ringname }, { signal: AbortSignal.any([late, signal]) }),
      );
      const keys = named ?? (await keptRingKey(cli, connection, ringname));
      if (tries > 0) await say(cli.io, 'the appliance answers');
      // Not the end: what it encrypted with the pair before can still be decrypted.
      if (!keys.some((key) => publicKeyOf(key) === ring.publicKey)) {
        await say(cli.io, visible(`warning: the private key is not the one of ${ringname}: nothing can be encrypted`));
      }
      return;
    } catch (error) {
      if (signal.aborted || !(error instanceof KmsError) || !passing.has(error.code)) throw error;
      if (tries === 0) await say(cli.io, `${sentenceOf(error)}; trying again until it answers`);
    }
    await setTimeout(pause, undefined, { signal });
  }
}

/** What Linux can bind: `sockaddr_un` has 108 bytes, and the last is 0. */
const maxSocketPath = 107;

function socketPath(cli: Cli, listen: string): string {
  const [, path] = /^unix:\/\/(\/[^\0]+)$/.exec(listen) ?? [];
  if (path === undefined) throw cli.wrong(`--listen: expected unix:///PATH, got "${listen}"`);
  if (path.startsWith('/@')) {
    throw cli.wrong(
      `--listen: expected a file, got "${listen}", an abstract socket to API servers: it has no permissions`,
    );
  }
  const length = Buffer.byteLength(path);
  if (length > maxSocketPath) {
    throw cli.wrong(`--listen: expected a path of at most ${maxSocketPath} bytes, got one of ${length}`);
  }
  return path;
}

function callsOf(cli: Cli, ringname: string, connection: Connection, named: RingPrivateKeys | undefined) {
  const { client } = connection;
  const privateKeyOf = async (ring: string) => named ?? (await keptRingKey(cli, connection, ring));
  return {
    /** Asked about once a minute. By the active key the API server learns that the ring has rotated. */
    async [kmsCalls.status]() {
      const { ring } = await inTime(connection, (signal) => client.getKeyring({ ringname }, { signal }));
      return statusResponse(ring.activeKey);
    },
    async [kmsCalls.encrypt](message: Uint8Array) {
      const plaintext = readEncryptRequest(message);
      const privateKey = await privateKeyOf(ringname);
      const { bytes, answer } = await inTime(connection, (signal) =>
        encryptBytes(plaintext, { client, ring: ringname, privateKey, signal }),
      );
      return encryptResponse(bytes, answer.key.id);
    },
    async [kmsCalls.decrypt](message: Uint8Array) {
      const { ciphertext, keyId } = readDecryptRequest(message);
      const { bytes, answer } = await inTime(connection, (signal) =>
        decryptBytes(ciphertext, { client, privateKey: ({ ringname }) => privateKeyOf(ringname), signal }),
      );
      if (answer.key.id !== keyId) {
        throw new KmsError('invalid', `expected what the key ${keyId} encrypted, got what ${answer.key.id} did`);
      }
      return decryptResponse(bytes);
    },
  };
}
