// Serves as a plugin of OpenTofu and Terraform (HashiCorp's go-plugin): the handshake over environment and stdout,
// mutual TLS with certificates that both sides make for the occasion, and the services that each plugin has.
import { mkdtemp, rm } from 'node:fs/promises';
import type { SecureServerOptions } from 'node:http2';
import { join } from 'node:path';
import { fieldsOf, message } from '../../client/protobuf.ts';
import { KmsError } from '../../errors.ts';
import type { Cli } from '../command.ts';
import { fileError } from '../files.ts';
import { type Calls, serveGrpc } from '../grpc.ts';
import { mustReachStdout, write } from '../io.ts';

/** Not a secret: it only shows that no person started the plugin. */
const cookie = 'd602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2';
/** Versions of go-plugin's own protocol, and of the providers' protocol that this one speaks. */
const core = 1;
const protocol = 6;

/** Streams by which plugins may write to the client's log, and ask for more connections; this one does neither. */
const keptOpen: ReadonlySet<string> = new Set(['/plugin.GRPCBroker/StartStream', '/plugin.GRPCStdio/StreamStdio']);

/** Maximum bytes of a request: states are small, but a plan may have large free-form properties. */
const longest = 16 << 20;

/** Milliseconds without a connection after which the client must have ended. It connects at once, and stays. */
const abandoned = 60_000;

/** Serves the calls until the client ends it, or has gone. Throws `usage` unless OpenTofu or Terraform started it. */
export async function servePlugin(cli: Cli, calls: Calls, failed: (error: unknown) => void): Promise<void> {
  const { env, signal } = cli.io;
  mustBeStarted(env);
  mustReachStdout(cli.io);
  const directory = await newDirectory(env);
  const over = new AbortController();
  try {
    const path = join(directory, 'plugin.sock');
    const tls = await mutualTls(env.PLUGIN_CLIENT_CERT);
    const certificate = tls === undefined ? '' : derOf(String(tls.cert)).replace(/=+$/, '');
    // A connection may end after the server has: its timer must not keep the process.
    const countdown = () => setTimeout(() => over.abort(), abandoned).unref();
    let timer = countdown();
    await serveGrpc(
      path,
      { ...calls, ...pluginCalls(() => over.abort()) },
      {
        signal: AbortSignal.any([signal, over.signal]),
        ready: () => void write(cli.io.stdout, `${core}|${protocol}|unix|${path}|grpc|${certificate}\n`),
        connected(count) {
          clearTimeout(timer);
          if (count === 0) timer = countdown();
        },
        ...{ failed, longest, keptOpen },
        ...(tls && { tls }),
      },
    ).finally(() => clearTimeout(timer));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function mustBeStarted({ TF_PLUGIN_MAGIC_COOKIE, PLUGIN_PROTOCOL_VERSIONS = '' }: Cli['io']['env']): void {
  if (TF_PLUGIN_MAGIC_COOKIE !== cookie) {
    throw new KmsError('usage', 'terraform-provider-kms: this is a plugin, which OpenTofu and Terraform start', {
      hint: 'see docs/guide-opentofu.md, and `kms tofu-provider install --help`',
    });
  }
  if (!PLUGIN_PROTOCOL_VERSIONS.split(',').includes(String(protocol))) {
    throw new KmsError('refused', `the provider speaks version ${protocol} of the plugin protocol`, {
      hint: `${PLUGIN_PROTOCOL_VERSIONS || 'none'} was offered; use OpenTofu, or Terraform from 1.0 on`,
    });
  }
}

/** Bytes of the name of a Unix socket that every system takes. */
const longestPath = 100;

/** A directory of this user's alone for the socket, where the client asks for it or temporary files belong. */
async function newDirectory({ PLUGIN_UNIX_SOCKET_DIR, TMPDIR }: Cli['io']['env']): Promise<string> {
  const wanted = PLUGIN_UNIX_SOCKET_DIR || TMPDIR || '/tmp';
  const parent = Buffer.byteLength(wanted) + '/kms-plugin-XXXXXX/plugin.sock'.length > longestPath ? '/tmp' : wanted;
  return mkdtemp(join(parent, 'kms-plugin-')).catch((error) => {
    throw fileError('make a directory in', parent, error);
  });
}

/** Undefined if the client shows no certificate, so that it expects none. */
async function mutualTls(clientCertificate: string | undefined): Promise<SecureServerOptions | undefined> {
  if (!clientCertificate) return undefined;
  const { selfSigned } = await import('../../platform/self-signed.ts');
  const { cert, key } = await selfSigned(['localhost'], 30, new Date());
  return { cert, key, ca: clientCertificate, requestCert: true, rejectUnauthorized: true };
}

/** The bytes of the first certificate, in base64. */
function derOf(pem: string): string {
  return pem.replace(/-----(?:BEGIN|END) CERTIFICATE-----|\s/g, '');
}

/** Status of a service that serves. */
const serving = 1;

function pluginCalls(shutDown: () => void): Calls {
  return {
    async '/plugin.GRPCController/Shutdown'() {
      // The answer goes out first.
      setImmediate(shutDown);
      return message({});
    },
    async '/grpc.health.v1.Health/Check'(request) {
      const service = fieldsOf(request, 'a question about health').text(1);
      if (service !== 'plugin' && service !== '') throw new KmsError('not-found', 'no such service here');
      return message({ 1: serving });
    },
  };
}
