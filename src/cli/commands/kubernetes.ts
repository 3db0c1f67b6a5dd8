// `kms kubernetes-plugin`: the KMS plugin (version 2) of a Kubernetes API server, which encrypts its keys with a
// keyring.
import { decryptBytes, encryptBytes } from '../../client/file-streams.ts';
import {
  decryptResponse,
  encryptResponse,
  kmsCalls,
  readDecryptRequest,
  readEncryptRequest,
  statusResponse,
} from '../../client/kubernetes-kms.ts';
import { KmsError } from '../../errors.ts';
import type { Cli, CliOf } from '../command.ts';
import { type Connection, inTime, withServer } from '../connect.ts';
import { sentenceOf } from '../exit.ts';
import type { kubernetes } from '../grammar/other-software.ts';
import { serveGrpc } from '../grpc.ts';
import { say } from '../io.ts';
import { keptRingKey, namedRingKey, type RingPrivateKeys } from '../ring-key-file.ts';
import { visible } from '../text.ts';

export async function kubernetesPlugin(cli: CliOf<typeof kubernetes.kubernetesPlugin>): Promise<void> {
  const path = socketPath(cli, cli.get('--listen'));
  const named = await namedRingKey(cli);
  await withServer(cli, async (connection) => {
    const calls = callsOf(cli, cli.get('--ring'), connection, named);
    await serveGrpc(path, calls, {
      signal: cli.io.signal,
      ready: () => void say(cli.io, visible(`listening on unix://${path}`)),
      failed: (error) => void say(cli.io, sentenceOf(error)).catch(() => undefined),
    });
  });
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
