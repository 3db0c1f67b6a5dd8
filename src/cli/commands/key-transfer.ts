// Commands that bring keys into the appliance and out of it. Over the network a key goes in wrapped to the appliance's
// wrapping key; on this machine it goes in as it is. No key is ever printed to a terminal.
import type { Client, InputOf } from '../../client/client.ts';
import { exportedPem, publicKeyText, wrapForImport } from '../../client/key-transfer.ts';
import { KmsError } from '../../errors.ts';
import { type CliOf, given } from '../command.ts';
import { detailsFrom } from '../confirm.ts';
import { type Connection, withClient } from '../connect.ts';
import { readSmallFile } from '../files.ts';
import type { keyTransfer } from '../grammar/key-use.ts';
import { pathFrom, say } from '../io.ts';
import { printJson, printThing, sayWarning } from '../output.ts';
import { checkedRingName } from '../ring-key-file.ts';
import { readSecretBytes } from '../secrets.ts';
import { openOutput, writesToStdout } from '../streams.ts';
import { visible } from '../text.ts';
import { keyPairs, newKeyFields } from './key.ts';

type ImportCli = CliOf<typeof keyTransfer.importKey>;

export async function importKey(cli: ImportCli): Promise<void> {
  const isNewVersion = cli.get('--new-version');
  const key = isNewVersion ? cli.get('<NAME>') : checkedRingName(cli.get('<NAME>'), 'managed key');
  checkSource(cli);
  const source = await sourceOf(cli);
  const input = given({
    key,
    isNewVersion,
    type: cli.get('--type'),
    ...newKeyFields(cli),
    allowPlaintextFormat: cli.get('--allow-plaintext-format'),
  });
  try {
    await withClient(cli, async (client, { way }) => {
      const answer = await client
        .importManagedKey({ ...input, ...(await sent(client, way, source)) })
        .catch((error) => {
          throw withNewVersion(error, key);
        });
      await printThing(cli, answer, keyPairs(answer.key));
    });
  } finally {
    if ('key' in source) source.key.fill(0);
  }
}

/** The error that there is a key of that name, with the option that gives it a new version. */
function withNewVersion(error: unknown, key: string): unknown {
  if (!(error instanceof KmsError) || !error.message.startsWith('there is a managed key of this name')) return error;
  return new KmsError(error.code, `there is already a managed key ${key}`, {
    hint: 'to import a new version of it, add --new-version',
    cause: error,
  });
}

function checkSource(cli: ImportCli): void {
  const isPrivate = cli.get('--from') !== undefined;
  if (isPrivate && cli.get('--public-key') !== undefined) throw cli.wrong('--from and --public-key exclude each other');
  if (!isPrivate && cli.get('--public-key') === undefined) throw cli.wrong('expected --from, or --public-key');
  if (!cli.get('--new-version')) {
    if (cli.get('--type') === undefined) throw cli.wrong('--type is missing');
    return;
  }
  for (const option of ['--use', '--derived', '--exportable', '--rotate-after'] as const) {
    if (cli.isTyped(option)) throw cli.wrong(`${option} is for a new key: a new version keeps to what the key has`);
  }
}

type Source = { readonly key: Uint8Array } | { readonly publicKey: string };

async function sourceOf(cli: ImportCli): Promise<Source> {
  const from = cli.get('--from');
  if (from !== undefined) return { key: await readSecretBytes(from, 'the key') };
  return { publicKey: publicKeyText(await readSmallFile(cli.get('--public-key') ?? '', 'the public key')) };
}

/** The key as the request carries it: in clear only on this machine. */
async function sent(
  client: Client,
  way: Connection['way'],
  source: Source,
): Promise<Pick<InputOf<'importManagedKey'>, 'wrapped' | 'plaintext' | 'publicKey'>> {
  if ('publicKey' in source) return source;
  if (way !== 'network') return { plaintext: source.key.toBase64() };
  const wrappingKey = await client.getWrappingKey();
  const { startRsa } = await import('../../platform/native-rsa.ts');
  startRsa();
  return { wrapped: wrapForImport(source.key, wrappingKey) };
}

type ExportCli = CliOf<typeof keyTransfer.exportKey>;

/** Exported keys are for their owner alone. */
const privateMode = 0o600;

export async function exportKey(cli: ExportCli): Promise<void> {
  const name = cli.get('<NAME>');
  const to = await targetOf(cli);
  if (writesToStdout(cli) && cli.io.stdout.isTTY) {
    throw cli.wrong('a key does not belong on a terminal: write it to a file with -o FILE');
  }
  const output = await openOutput(cli, { binary: true, mode: privateMode });
  let exported: Exported;
  try {
    exported = await withClient(cli, (client) =>
      request(cli, client, given({ key: name, version: cli.get('--version'), ...to })),
    );
    await output.write(exported.bytes);
    exported.bytes.fill(0);
    await output.commit();
  } catch (error) {
    await output.discard();
    throw error;
  }
  if (writesToStdout(cli)) return;
  const { version, format, wrapping, warning } = exported;
  if (cli.json) return printJson(cli, given({ version, format, wrapping, warning }));
  const path = pathFrom(cli.io, cli.get('--output') ?? '');
  const how = 'plaintext' in to ? 'in clear: keep it safe' : 'wrapped with RSA-OAEP-SHA256 and AES-KWP';
  await say(cli.io, visible(`${path} has version ${version} of ${name}, ${how}`));
}

/** Short keys are wrapped in both steps too, so that what opens one with CKM_RSA_AES_KEY_WRAP opens all. */
type Target = { readonly plaintext: true } | { readonly publicKey: string; readonly wrapping: 'oaep-kwp' };

async function targetOf(cli: ExportCli): Promise<Target> {
  const path = cli.get('--to-public-key');
  const isPlain = cli.get('--plaintext');
  if (path !== undefined && isPlain) throw cli.wrong('--to-public-key and --plaintext exclude each other');
  if (isPlain) return { plaintext: true };
  if (path === undefined) await mustBeExportable(cli);
  if (path === undefined) throw cli.wrong('expected --to-public-key FILE to wrap the key to, or --plaintext');
  return { publicKey: publicKeyText(await readSmallFile(path, 'the public key')), wrapping: 'oaep-kwp' };
}

/** Throws `conflict` if no option would help. */
async function mustBeExportable(cli: ExportCli): Promise<void> {
  await detailsFrom(cli, async (client) => {
    const { key } = await client.getManagedKey({ key: cli.get('<NAME>') });
    if (key.exportable) return [];
    throw new KmsError('conflict', `the managed key ${key.displayName} may not leave the appliance`, {
      hint: 'only a key that was made or imported with --exportable may',
    });
  });
}

interface Exported {
  readonly version: number;
  /** Form of the file, or of the key that is wrapped in it. */
  readonly format: 'raw' | 'der' | 'pem';
  readonly bytes: Uint8Array;
  readonly wrapping?: 'oaep' | 'oaep-kwp' | undefined;
  readonly warning?: string | undefined;
}

async function request(cli: ExportCli, client: Client, input: InputOf<'exportManagedKey'>): Promise<Exported> {
  const { version, format, wrapped, wrapping, plaintext = '', warning } = await client.exportManagedKey(input);
  await sayWarning(cli, warning);
  if (wrapped !== undefined) {
    return { version, format, wrapping, warning, bytes: Uint8Array.fromBase64(wrapped) };
  }
  const key = Uint8Array.fromBase64(plaintext);
  if (format === 'raw') return { version, format, warning, bytes: key };
  return { version, format: 'pem', warning, bytes: new TextEncoder().encode(exportedPem(key)) };
}
