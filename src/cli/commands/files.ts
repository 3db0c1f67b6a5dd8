// Encrypts, decrypts and inspects files on this machine. The appliance gives keys and headers; it never sees a file.

import { decryptChunks } from '../../client/chunked.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { faultOf, fileFault, maxRings, type Prelude, readPrelude, type Stanza } from '../../client/file-format.ts';
import { assetIn, inspectFile } from '../../client/file-inspection.ts';
import { encryptFile } from '../../client/file-streams.ts';
import { openByRing, openOffline, sealToRings } from '../../client/recipients.ts';
import { unwrapRingKey } from '../../client/ring-keys.ts';
import { type ErrorCode, KmsError } from '../../errors.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { type Connection, openConnection, withClient } from '../connect.ts';
import { readPem } from '../files.ts';
import type { files } from '../grammar/files.ts';
import { say } from '../io.ts';
import { withoutRing } from '../near-names.ts';
import { type Pair, printJson, printThing } from '../output.ts';
import {
  allKeptRingKeys,
  checkedRingName,
  isOfFile,
  keptRingKey,
  knownPublicKey,
  namedRingKey,
  prepareRingCrypto,
} from '../ring-key-file.ts';
import { abandon, byteCount, openInput, openOutput, transfer, withProgress, writesToStdout } from '../streams.ts';
import { visible } from '../text.ts';

export async function encrypt(cli: CliOf<typeof files.encrypt>): Promise<void> {
  const rings = ringsOf(cli);
  const asset = assetOf(cli);
  const seal = cli.get('--recipient')
    ? await toRecipients(cli, rings, asset)
    : await withPrivateKey(cli, rings.join(), asset);
  const input = await openInput(cli, cli.get('[FILE]'));
  try {
    const output = await openOutput(cli, { binary: true });
    const { key, header, answers } = await withClient(cli, seal).catch((error) => abandon(cli, output, error));
    const source = withProgress(cli, input.source, input.size);
    await transfer(cli, encryptFile({ source, key, header }), output);
    key.fill(0);
    const [answer] = answers;
    if (cli.json && !writesToStdout(cli)) await printJson(cli, answers.length === 1 ? answer : { rings: answers });
    else if (answer?.asset) await say(cli.io, `the header carries the asset ${answer.asset.id}`);
  } finally {
    await input.close();
  }
}

type EncryptCli = CliOf<typeof files.encrypt>;
type Asset = ReturnType<typeof assetOf>;

/** Key and header for a file, and the appliance's answers. */
interface Sealed {
  readonly key: Uint8Array;
  readonly header: string | readonly Stanza[];
  readonly answers: readonly AnswerTo<'encrypt'>[];
}

type Seal = (client: Client, appliance: Connection) => Promise<Sealed>;

function ringsOf(cli: EncryptCli): readonly string[] {
  const rings = cli.get('--ring');
  const isRecipient = cli.get('--recipient');
  if (rings.length === 0) throw cli.wrong('--ring is missing');
  if (!isRecipient && rings.length > 1) throw cli.wrong('--ring: several go with --recipient alone');
  if (!isRecipient && cli.isTyped('--public-key')) throw cli.wrong('--public-key goes with --recipient');
  if (!isRecipient) return rings;
  if (cli.isTyped('--private-key')) throw cli.wrong('--recipient and --private-key exclude each other');
  if (rings.length > maxRings) throw cli.wrong(`--ring: expected at most ${maxRings}, got ${rings.length}`);
  if (new Set(rings.map((ring) => ring.toLowerCase())).size < rings.length)
    throw cli.wrong('--ring: expected each ring once');
  if (rings.length > 1 && cli.isTyped('--public-key')) throw cli.wrong('--public-key goes with one --ring');
  return rings;
}

async function withPrivateKey(cli: EncryptCli, ringname: string, asset: Asset): Promise<Seal> {
  const named = await namedRingKey(cli);
  if (named === undefined) checkedRingName(ringname);
  return async (client, appliance) => {
    const privateKey =
      named ??
      (await keptRingKey(cli, appliance, ringname).catch(async (error) => {
        throw (await withoutRing(client, ringname)) ?? withoutKey(error);
      }));
    const answer = await client.encrypt(given({ ringname, asset }));
    return { key: await unwrapRingKey({ privateKey, key: answer.key }), header: answer.header, answers: [answer] };
  };
}

/** The error about a missing private key, with the way to encrypt without one. */
function withoutKey(error: unknown): unknown {
  if (!isOfFile(error) || error.hint === undefined) return error;
  const hint = `${error.hint}, or add --recipient to encrypt without a private key`;
  return new KmsError(error.code, error.message, { hint, cause: error });
}

async function toRecipients(cli: EncryptCli, rings: readonly string[], asset: Asset): Promise<Seal> {
  for (const ring of rings) checkedRingName(ring);
  if (asset && rings.length > 1) throw cli.wrong('an asset belongs to one keyring, and the file is for several');
  const path = cli.get('--public-key');
  const named = path === undefined ? undefined : await readPem(path, 'the public key');
  await prepareRingCrypto();
  return async (client, appliance) => {
    const { answers, stanzas, fileKey } = await sealToRings({
      rings,
      asset,
      publicKey: (answered) => named ?? knownPublicKey(cli, appliance, answered),
      ask: (input) => client.encrypt(input),
    });
    return { key: fileKey, header: stanzas, answers };
  };
}

/** Asset given by the options; undefined without any. */
function assetOf(cli: CliOf<typeof files.encrypt>) {
  const parents = cli.get('--parent');
  const asset = given({
    assetId: cli.get('--asset-id'),
    data: cli.get('--asset-data'),
    parents: parents.length > 0 ? [...parents] : undefined,
  });
  if (Object.keys(asset).length === 0) return undefined;
  if (asset.assetId === '') throw cli.wrong('--asset-id: expected an id, got nothing');
  return asset;
}

type Answer = AnswerTo<'decrypt'>;

/** Advice if the appliance refuses a header. */
const whenRefused: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid: 'get an unaltered copy of the file, or ask the appliance and tenant that it was made with',
  'not-found':
    'the ring or its key is gone from this appliance: restore it (`kms keyring restore`), or ask the one it is from',
};

export async function decrypt(cli: CliOf<typeof files.decrypt>): Promise<void> {
  const input = await openInput(cli, cli.get('[FILE]'));
  try {
    const prelude = await readPrelude(withProgress(cli, input.source, input.size));
    const { context, body } = prelude;
    const output = await openOutput(cli, { binary: false });
    let opened: Opened;
    try {
      opened = cli.get('--offline') ? await offline(cli, prelude) : await online(cli, prelude);
    } catch (error) {
      return await abandon(cli, output, error);
    }
    const { key, told } = opened;
    await transfer(cli, decryptChunks(body, { key, context }), output).catch((error) => {
      throw output.left ? error : nothingLeft(error);
    });
    key.fill(0);
    if (cli.json && !writesToStdout(cli)) await printJson(cli, told);
  } finally {
    await input.close();
  }
}

type DecryptCli = CliOf<typeof files.decrypt>;

interface Opened {
  readonly key: Uint8Array;
  readonly told: Answer | { readonly header: string };
}

function online(cli: DecryptCli, prelude: Prelude): Promise<Opened> {
  return withClient(cli, async (client, appliance) => {
    const named = await namedRingKey(cli);
    if (prelude.fileVersion === 2) {
      const { answer, fileKey } = await openByRing(prelude, {
        ask: (header) => ask(cli, client, header),
        given: named,
        privateKeysOf: ({ ringname }) => keptRingKey(cli, appliance, ringname),
      });
      return { key: fileKey, told: answer };
    }
    const answer = await ask(cli, client, prelude.header);
    if (answer.share !== undefined) throw fileFault('bad-header');
    const privateKey = named ?? (await keptRingKey(cli, appliance, answer.ringname));
    return { key: await unwrapRingKey({ privateKey, key: answer.key }), told: answer };
  });
}

/** Tries every private key kept here, unless --private-key names one: offline the ring is unknown. */
async function offline(cli: DecryptCli, prelude: Prelude): Promise<Opened> {
  const named = await namedRingKey(cli);
  const { header, fileKey } = await openOffline(prelude, named ?? (await allKeptRingKeys(cli)));
  const asset = assetIn(header);
  if (asset !== undefined) await say(cli.io, `the asset ${asset} was not verified: no appliance was asked`);
  return { key: fileKey, told: { header } };
}

/** The answer for the header, once its asset verifies or an invalid one is allowed. */
async function ask(cli: DecryptCli, client: Client, header: string): Promise<Answer> {
  try {
    const answer = await client.decrypt({ header });
    if (answer.asset) await say(cli.io, verdict(answer));
    return answer;
  } catch (error) {
    if (!(error instanceof KmsError)) throw error;
    const advice = whenRefused[error.code];
    if (advice !== undefined) {
      const { code, message, fields } = error;
      throw new KmsError(code, message, { hint: advice, cause: error, ...(fields && { fields }) });
    }
    if (error.code !== 'asset-invalid') throw error;
    // Status 422 has the shape of a successful answer: that is the interface.
    const answer = error.body as Answer | undefined;
    if (answer?.key && cli.get('--allow-invalid-asset')) {
      await say(cli.io, `warning: ${verdict(answer)}`);
      return answer;
    }
    throw new KmsError('asset-invalid', answer?.asset ? verdict(answer) : error.message, {
      hint: 'nothing was decrypted; --allow-invalid-asset decrypts all the same',
    });
  }
}

/** The error for a damaged file if no output has to be deleted. */
function nothingLeft(error: unknown): unknown {
  if (!(error instanceof KmsError) || faultOf(error) === undefined) return error;
  return new KmsError(error.code, error.message, {
    hint: 'nothing was left behind; get an unaltered, complete copy of the file',
    cause: error,
  });
}

function verdict({ asset }: Answer): string {
  return visible(`the asset ${asset?.id} is ${asset?.valid ? 'valid' : 'not valid'}: ${asset?.message}`);
}

/** Milliseconds to wait for an appliance before showing the file without its information. */
const lookUpTimeout = 5000;

/** Needs no key. If an appliance is in reach, also shows the ring's name. */
export async function inspect(cli: CliOf<typeof files.inspect>): Promise<void> {
  const input = await openInput(cli, cli.get('<FILE>'));
  try {
    const { fileVersion, headers, size, contentSize } = await inspectFile(input.source);
    const told = await Promise.all(
      headers.map(async ({ isOffline, header, ...each }) => {
        const { version, hash, hasAsset, assetId, assetVersion } = each;
        const asset = given({ hasSignedAsset: hasAsset, assetId, assetVersion });
        return { version, hash, ...(await ringOf(cli, hash)), ...asset, header, opensOffline: isOffline };
      }),
    );
    const [{ header, opensOffline: _, ...first } = { header: '' }] = told;
    const isRecipient = fileVersion === 2;
    const json = {
      fileVersion,
      encryptedWith: isRecipient ? 'public-key' : 'private-key',
      ...first,
      size,
      contentSize,
      header,
    };
    await printThing(cli, isRecipient ? { ...json, rings: told } : json, [
      ['file format', fileVersion],
      ['encrypted with', isRecipient ? 'the public key: the writer cannot open it' : 'the private key'],
      ...told.flatMap(ringPairs),
      ['size', exactBytes(size)],
      ['content', contentSize === undefined ? 'the file is cut or extended' : exactBytes(contentSize)],
    ]);
  } finally {
    await input.close();
  }
}

function exactBytes(bytes: number): string {
  return bytes < 1024 ? `${bytes} bytes` : `${bytes} bytes (${byteCount(bytes)})`;
}

interface ToldHeader extends Ring {
  readonly version: number;
  readonly hash: string;
  readonly hasSignedAsset: boolean;
  readonly assetId?: string | undefined;
  readonly assetVersion?: number | undefined;
  readonly opensOffline: boolean;
}

function ringPairs(told: ToldHeader): readonly Pair[] {
  return [
    ['header version', told.version],
    ['hash', told.hash],
    ['ring', told.ringname ?? 'not known here'],
    ['ring id', told.ringId],
    ['key', told.keyId],
    ['offline', told.opensOffline ? 'its private key alone opens it' : undefined],
    ['asset', told.assetId ?? 'none'],
    ['asset version', told.assetVersion],
  ];
}

interface Ring {
  readonly ringname?: string;
  readonly ringId?: string;
  readonly keyId?: string;
}

/** Ring and key of a hash as the appliance knows them; empty if none is reachable or it refuses. */
async function ringOf(cli: Cli, hash: string): Promise<Ring> {
  try {
    const { client, close } = await openConnection(cli);
    try {
      const signal = AbortSignal.timeout(lookUpTimeout);
      const { ringId, keyId } = await client.resolveHash({ hash }, { signal });
      const { ring } = await client.getKeyring({ ringname: ringId, id: true }, { signal });
      return { ringname: ring.name, ringId, keyId };
    } finally {
      await close();
    }
  } catch {
    return {};
  }
}
