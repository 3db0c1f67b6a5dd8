// Clients of KMIP: PyKMIP, OpenStack's Barbican on top of it, libmongocrypt, which is in every driver of MongoDB, and
// Rust's kmip-protocol.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { held } from '../approver.ts';
import { type Desk, expect } from '../desk.ts';
import { pythonPrograms, rustProgram } from '../install.ts';
import { type Client, scenario } from './client.ts';

const programs = (name: string): string => fileURLToPath(new URL(`../programs/${name}`, import.meta.url));

interface KmipPlace {
  /** URL of the native API, with the certificate below. */
  readonly url: string;
  readonly port: string;
  /** The server's certificate. */
  readonly cert: string;
  /** The directory of the appliance that serves it. */
  readonly data: string;
  /** Makes a client with these flags for the managed key `unseal`, or all for its own objects; returns its directory. */
  client(...operations: readonly string[]): Promise<string>;
}

/** Serves another appliance, in TLS with KMIP, while `use` works. */
export async function withKmip(desk: Desk, name: string, use: (place: KmipPlace) => Promise<void>): Promise<void> {
  const [data, out] = [desk.path(`${name}-kms`), desk.path(`${name}-client`)];
  const [cert, key] = [desk.path(`${name}.crt`), desk.path(`${name}.key`)];
  // Old clients of KMIP know RSA alone.
  await desk.run('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
  ]);
  await desk.run('chmod', ['600', key]);
  await desk.run('kms', ['init', '--data', data]);
  const tls = ['--tls-cert', cert, '--tls-key', key];
  const listen = ['--listen', '127.0.0.1:0', '--kmip-listen', '127.0.0.1:0'];
  const server = desk.start('kms', ['serve', '--data', data, '--log-level', 'warn', ...tls, ...listen]);
  try {
    await server.until('KMIP is served', async () => /KMIP: listening/.test(server.output()));
    const [, url = ''] = /kms: listening on (https\S+)/.exec(server.output()) ?? [];
    const [, port = ''] = /KMIP: listening on kmip:\/\/127\.0\.0\.1:(\d+)/.exec(server.output()) ?? [];
    await desk.run('kms', ['account', 'create', 'kmip', '--data', data]);
    const client = async (...operations: readonly string[]): Promise<string> => {
      const flags = operations.flatMap((operation) => ['--flag', `key.unseal.${operation}`]);
      const words = ['kmip', 'client', 'create', name, '--account', 'kmip', '--out', out, '--data', data];
      await desk.run('kms', [...words, ...flags]);
      return out;
    };
    await use({ url, port, cert, data, client });
  } finally {
    await server.end();
  }
}

/** Runs the program with a client's certificate. */
async function served(desk: Desk, name: string, program: string, ...args: readonly string[]): Promise<void> {
  await withKmip(desk, name, async ({ port, cert, client }) => {
    await desk.run(program, [...args], { env: { CLIENT: await client(), PORT: port, CA: cert } });
  });
}

export const pykmip: Client = {
  name: 'pykmip',
  from: 'PyPI',
  async install() {
    const python = join(await pythonPrograms('pykmip==0.11.0'), 'python');
    return {
      version: '0.11.0',
      scenarios: [
        scenario('KMIP 1.0 to 2.0: life of keys, search, registered objects, messages, signatures, MACs', (desk) =>
          served(desk, 'pykmip', python, programs('kmip_calls.py')),
        ),
        scenario('KMIP: Destroy waits under a rule until it is approved', (desk) =>
          withKmip(desk, 'pykmip-held', async ({ url, port, cert, data, client }) => {
            const env = { CLIENT: await client(), PORT: port, CA: cert };
            const kms = async (...args: string[]) => (await desk.run('kms', [...args, '--data', data])).stdout;
            const ran = await held({ url, kms, cert }, 'key.*.delete', () =>
              desk.run(python, [programs('kmip_held.py')], { env }),
            );
            expect(ran.stdout, /^destroyed$/m);
          }),
        ),
      ],
    };
  },
};

export const barbican: Client = {
  name: 'barbican',
  from: 'PyPI',
  // Much is installed beside it.
  onlyByHand: true,
  async install() {
    const python = join(await pythonPrograms('barbican==23.0.0', 'pykmip==0.11.0'), 'python');
    return {
      version: '23.0.0',
      scenarios: [
        scenario("KMIP: OpenStack's secrets: made, stored, read and deleted by its plugin", (desk) =>
          served(desk, 'barbican', python, programs('kmip_barbican.py')),
        ),
      ],
    };
  },
};

export const libmongocrypt: Client = {
  name: 'libmongocrypt',
  from: 'PyPI',
  async install() {
    const python = join(await pythonPrograms('pymongocrypt==1.21.2', 'pymongo==4.15.3'), 'python');
    return {
      version: '1.21.0 (pymongocrypt 1.21.2)',
      scenarios: [
        scenario("KMIP: data keys of MongoDB's client-side encryption, by a secret and delegated", (desk) =>
          served(desk, 'libmongocrypt', python, programs('kmip_mongo.py')),
        ),
      ],
    };
  },
};

export const krill: Client = {
  name: 'kmip-protocol',
  from: 'crates.io',
  // It is compiled with half the crates of serde.
  onlyByHand: true,
  async install() {
    const directory = await rustProgram('rust-kmip');
    return {
      version: '0.4.3',
      scenarios: [
        scenario("KMIP: an RSA key pair of a signer such as NLnet Labs' Krill, from its making to its end", (desk) =>
          served(desk, 'kmip-protocol', join(directory, 'kmip-calls')),
        ),
      ],
    };
  },
};
