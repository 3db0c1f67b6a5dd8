// Commands that work with managed keys. Messages are small and sent to the appliance as a whole.
import { KmsError } from '../../errors.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { withClient } from '../connect.ts';
import type { bound, keyUse, scheme } from '../grammar/key-use.ts';
import { mustReachStdout, write } from '../io.ts';
import { type Pair, printJson, printLine, printThing, sayWarning } from '../output.ts';
import { readInput } from '../streams.ts';

export async function encrypt(cli: CliOf<typeof keyUse.encrypt>): Promise<void> {
  const plaintext = (await message(cli)).toBase64();
  await withClient(cli, async (client) => {
    const answer = await client.encryptWithKey({ key: cli.get('<NAME>'), items: [{ plaintext, ...boundTo(cli) }] });
    const { ciphertext } = only(answer);
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, ciphertext ?? '');
  });
}

export async function decrypt(cli: CliOf<typeof keyUse.decrypt>): Promise<void> {
  mustReachStdout(cli.io);
  const ciphertext = Buffer.from(await message(cli, fileInstead, longestCiphertext))
    .toString('utf8')
    .trim();
  await withClient(cli, async (client) => {
    const answer = await client.decryptWithKey({ key: cli.get('<NAME>'), items: [{ ciphertext, ...boundTo(cli) }] });
    const { plaintext = '', warning } = only(answer);
    await sayWarning(cli, warning);
    if (cli.json) await printJson(cli, answer);
    else await write(cli.io.stdout, Uint8Array.fromBase64(plaintext));
  });
}

export async function sign(cli: CliOf<typeof keyUse.sign>): Promise<void> {
  const input = (await message(cli, hashInstead)).toBase64();
  await withClient(cli, async (client) => {
    const answer = await client.signWithKey({ key: cli.get('<NAME>'), input, ...schemeOf(cli) });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, answer.signature ?? '');
  });
}

export async function verify(cli: CliOf<typeof keyUse.verify>): Promise<void> {
  const signature = cli.get('--signature')?.trim();
  const mac = cli.get('--mac')?.trim();
  if (signature !== undefined && mac !== undefined) throw cli.wrong('--signature and --mac exclude each other');
  if (!signature && !mac) throw cli.wrong('expected --signature or --mac with what `kms key sign` or `mac` printed');
  const input = (await message(cli, mac === undefined ? hashInstead : macOfHash)).toBase64();
  const answer = await withClient(cli, (client) =>
    client.verifyWithKey({ key: cli.get('<NAME>'), input, ...given({ signature, mac }), ...schemeOf(cli) }),
  );
  await sayWarning(cli, answer.warning);
  if (cli.json) await printJson(cli, answer);
  else if (answer.valid) await printLine(cli, 'valid');
  if (answer.valid) return;
  throw new KmsError('refused', `the ${mac === undefined ? 'signature' : 'MAC'} does not fit the message`, {
    hint: 'one of the two was altered, or another key or other options made it',
  });
}

export async function mac(cli: CliOf<typeof keyUse.mac>): Promise<void> {
  const input = (await message(cli, macOfHash)).toBase64();
  await withClient(cli, async (client) => {
    const answer = await client.macWithKey({ key: cli.get('<NAME>'), input });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, answer.mac ?? '');
  });
}

export async function datakey(cli: CliOf<typeof keyUse.datakey>): Promise<void> {
  const bits = cli.get('--bits');
  const input = { key: cli.get('<NAME>'), ...given({ bits: bits === undefined ? undefined : Number(bits) }) };
  await withClient(cli, async (client) => {
    if (cli.get('--wrapped')) {
      const answer = await client.generateWrappedDataKey({ ...input, ...boundTo(cli) });
      if (cli.json) await printJson(cli, answer);
      else await printLine(cli, answer.ciphertext);
      return;
    }
    const answer = await client.generateDataKey({ ...input, ...boundTo(cli) });
    const pairs: readonly Pair[] = [
      ['data key', answer.plaintext],
      ['encrypted', answer.ciphertext],
    ];
    await printThing(cli, answer, pairs);
  });
}

function boundTo(cli: CliOf<typeof bound>): { associatedData?: string; context?: string } {
  const base64 = (text: string | undefined) =>
    text === undefined ? undefined : new TextEncoder().encode(text).toBase64();
  return given({ associatedData: base64(cli.get('--associated-data')), context: base64(cli.get('--context')) });
}

function schemeOf(cli: CliOf<typeof scheme>) {
  return given({
    hash: cli.get('--hash'),
    prehashed: cli.get('--prehashed') || undefined,
    padding: cli.get('--padding'),
    encoding: cli.get('--encoding'),
  });
}

/** Maximum bytes: base64 of it still fits into a request, and so does what is made of it. */
const longestMessage = 512 * 1024;
/** An encrypted message comes as text, which is longer. */
const longestCiphertext = 1024 * 1024;
const fileInstead = 'for files there are `kms encrypt` and `kms decrypt`';
/** Ed25519 keys sign a hash as if it were the message, which verifies only here. */
const hashInstead = 'for RSA and ECDSA keys, hash it, and give the hash with --prehashed';
const macOfHash = 'let the MAC be that of its hash, in both places';

function message(
  cli: Cli<{ '[FILE]': string | undefined }>,
  hint = fileInstead,
  most = longestMessage,
): Promise<Uint8Array> {
  return readInput(cli, cli.get('[FILE]'), { what: 'the message', most, hint });
}

interface Made {
  readonly ciphertext?: string;
  readonly plaintext?: string;
  readonly warning?: string;
  readonly error?: string;
}

function only({ items: [made] }: { readonly items: readonly Made[] }): Made {
  if (made?.error !== undefined) throw new KmsError('invalid', made.error);
  return made ?? {};
}
