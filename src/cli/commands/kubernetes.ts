// `kms kubernetes-plugin`: the KMS plugin (version 2) of a Kubernetes API server, which encrypts the server's keys with
// a keyring.
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
import { type Caller, serveGrpc } from '../grpc.ts';
import { say } from '../io.ts';
import { keptRingKey, namedRingKey, type RingPrivateKeys } from '../ring-key-file.ts';
import { visible } from '../text.ts';

/**
 * Serves until interrupted. A wrong setup ends it at once, with the appliance's error. An appliance that is unreachable
 * or sealed does not: machines start in any order, and until it answers the API server gets the error.
 */
export async function kubernetesPlugin(cli: CliOf<typeof kubernetes.kubernetesPlugin>): Promise<void> {
  const path = socketPath(cli, cli.get('--listen'));
  const ringname = cli.get('--ring');
  const named = await namedRingKey(cli);
  const log = pluginLog(cli);
  const serve = async (connection: Connection): Promise<void> => {
    const over = new AbortController();
    const signal = AbortSignal.any([cli.io.signal, over.signal]);
    let fault: unknown;
    const checked = checkRing(cli, ringname, connection, { named, log, signal }).catch((error) => {
      fault = error;
      over.abort();
    });
    try {
      await Promise.race([checked, setTimeout(patience, undefined, { signal }).catch(() => undefined)]);
      if (!signal.aborted) {
        await serveGrpc(path, callsOf(cli, ringname, connection, { named, log }), {
          signal,
          ready: () => void say(cli.io, visible(`listening on unix://${path}`)),
          failed: log.failed,
        });
      }
    } finally {
      over.abort();
    }
    if (fault !== undefined && !cli.io.signal.aborted) throw fault;
  };
  await withServer(cli, serve, { later: true });
}

/** Milliseconds after which a persisting failure is logged again. */
const sayAgain = 60_000;

type PluginLog = ReturnType<typeof pluginLog>;

/** Logs a failure once, and the appliance's first answer after it was unreachable: it is polled all the time. */
function pluginLog(cli: Cli) {
  let last: { readonly line: string; readonly at: number } | undefined;
  let isLost = false;
  const write = (line: string): void => void say(cli.io, line);
  return {
    failed(error: unknown): void {
      const [line, at] = [sentenceOf(error), performance.now()];
      if (last?.line === line && at - last.at < sayAgain) return;
      last = { line, at };
      write(line);
    },
    lost(): void {
      isLost = true;
    },
    answers(): void {
      if (!isLost) return;
      [isLost, last] = [false, undefined];
      write('the appliance answers');
    },
  };
}

interface Callers {
  readonly named: RingPrivateKeys | undefined;
  readonly log: PluginLog;
}

/**
 * Milliseconds for which the API server cannot connect while the appliance is asked first, and the pause between tries.
 */
const patience = 2000;
const pause = 2000;

/** Errors that may be over by the next try. */
const passing: ReadonlySet<ErrorCode> = new Set(['unavailable', 'sealed', 'rate-limited', 'corrupt', 'internal']);

/** Asks for the ring until there is an answer. Throws if the ring is refused, or its private key is not here. */
async function checkRing(
  cli: Cli,
  ringname: string,
  connection: Connection,
  { named, log, signal }: Callers & { readonly signal: AbortSignal },
): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      const { ring } = await inTime(connection, (late) =>
        connection.client.getKeyring({ ringname }, { signal: AbortSignal.any([late, signal]) }),
      );
      const keys = named ?? (await keptRingKey(cli, connection, ringname));
      log.answers();
      // Not fatal: data encrypted with the previous pair can still be decrypted.
      if (!keys.some((key) => publicKeyOf(key) === ring.publicKey)) {
        await say(cli.io, visible(`warning: the private key is not the one of ${ringname}: nothing can be encrypted`));
      }
      return;
    } catch (error) {
      if (signal.aborted || !(error instanceof KmsError) || !passing.has(error.code)) throw error;
      if (tries === 0) await say(cli.io, `${sentenceOf(error)}; trying again until it answers`);
      log.lost();
    }
    await setTimeout(pause, undefined, { signal });
  }
}

/** Limit of Linux: `sockaddr_un` has 108 bytes, the last of which is 0. */
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

/**
 * Milliseconds for which a status answer is cached: the appliance records each request. The API server itself asks once
 * a minute; if a kubelet probes it, every 20 seconds, and every 3 after a failure.
 */
const remembered = { told: 50_000, failed: 9_000 };

/** Milliseconds to wait for the appliance, unless the API server waits less. */
const longest = 30_000;

function callsOf(cli: Cli, ringname: string, connection: Connection, { named, log }: Callers) {
  const { client } = connection;
  /** Times out before the caller does, so that the reason still arrives. */
  const asked = <T>({ patience: ms = longest }: Caller, ask: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    inTime(connection, ask, Math.max(1, Math.floor(Math.min(longest, ms * 0.9))));
  const privateKeyOf = async (ring: string) => named ?? (await keptRingKey(cli, connection, ring));
  /** Cached per connection: an API server that has just started gets a fresh answer. */
  const memory = new WeakMap<object, { readonly until: number; readonly activeKey: () => string }>();
  const told = ({ connection: of }: Caller, activeKey: string): void => {
    memory.set(of, { until: performance.now() + remembered.told, activeKey: () => activeKey });
    log.answers();
  };
  const failed = ({ connection: of }: Caller, error: unknown): void => {
    const activeKey = (): never => {
      throw error;
    };
    memory.set(of, { until: performance.now() + remembered.failed, activeKey });
    log.lost();
  };
  return {
    /** The API server learns of a rotation from the id of the active key. */
    async [kmsCalls.status](_message: Uint8Array, caller: Caller) {
      const known = memory.get(caller.connection);
      if (known && performance.now() < known.until) return statusResponse(known.activeKey());
      try {
        const { ring } = await asked(caller, (signal) => client.getKeyring({ ringname }, { signal }));
        told(caller, ring.activeKey);
        return statusResponse(ring.activeKey);
      } catch (error) {
        failed(caller, error);
        throw error;
      }
    },
    async [kmsCalls.encrypt](message: Uint8Array, caller: Caller) {
      const plaintext = readEncryptRequest(message);
      const { bytes, answer } = await asked(caller, async (signal) =>
        encryptBytes(plaintext, { client, ring: ringname, privateKey: await privateKeyOf(ringname), signal }),
      );
      const response = encryptResponse(bytes, answer.key.id);
      // The ring has rotated since: the API server accepts a key only under the id in the status.
      told(caller, answer.key.id);
      return response;
    },
    async [kmsCalls.decrypt](message: Uint8Array, caller: Caller) {
      const { ciphertext, keyId } = readDecryptRequest(message);
      const { bytes, answer } = await asked(caller, (signal) =>
        decryptBytes(ciphertext, { client, privateKey: ({ ringname }) => privateKeyOf(ringname), signal }),
      );
      if (answer.key.id !== keyId) {
        throw new KmsError('invalid', `expected a ciphertext of the key ${keyId}, got one of ${answer.key.id}`);
      }
      return decryptResponse(bytes);
    },
  };
}
