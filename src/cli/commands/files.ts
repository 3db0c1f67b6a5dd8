// Files encrypted, decrypted and inspected on this machine. The appliance gives keys and headers; it never sees a file.

import { decryptChunks } from '../../client/chunked.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { faultOf, inspectFile, readPrelude } from '../../client/file-format.ts';
import { encryptFile } from '../../client/file-streams.ts';
import { unwrapRingKey } from '../../client/ring-keys.ts';
import { type ErrorCode, KmsError } from '../../errors.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { openConnection, withClient } from '../connect.ts';
import type { files } from '../grammar/files.ts';
import { say } from '../io.ts';
import { printJson, printThing } from '../output.ts';
import { checkedRingName, keptRingKey, namedRingKey } from '../ring-key-file.ts';
import { byteCount, openInput, openOutput, transfer, withProgress, writesToStdout } from '../streams.ts';
import { visible } from '../text.ts';

export async function encrypt(cli: CliOf<typeof files.encrypt>): Promise<void> {
  const ringname = cli.get('--ring');
  const asset = assetOf(cli);
  const named = await namedRingKey(cli);
  if (named === undefined) checkedRingName(ringname);
  const input = await openInput(cli, cli.get('[FILE]'));
  try {
    const output = await openOutput(cli, { binary: true });
    const answer = await withClient(cli, async (client, appliance) => {
      const privateKey = named ?? (await keptRingKey(cli, appliance, ringname));
      const answer = await client.encrypt(given({ ringname, asset }));
      return { ...answer, bytes: await unwrapRingKey({ privateKey, key: answer.key }) };
    }).catch(async (error) => {
      await output.discard();
      throw error;
    });
    const { bytes: key, ...told } = answer;
    const source = withProgress(cli, input.source, input.size);
    await transfer(cli, encryptFile({ source, key, header: answer.header }), output);
    key.fill(0);
    if (cli.json && !writesToStdout(cli)) await printJson(cli, told);
    else if (answer.asset) await say(cli.io, `the header carries the asset ${answer.asset.id}`);
  } finally {
    await input.close();
  }
}

/** What the asset options ask for; undefined without any. */
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

/** What to do about a header that the appliance does not take. */
const whenRefused: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid: 'get an unaltered copy of the file, or ask the appliance and tenant that it was made with',
  'not-found':
    'the ring or its key is gone from this appliance: restore it (`kms keyring restore`), or ask the one it is from',
};

export async function decrypt(cli: CliOf<typeof files.decrypt>): Promise<void> {
  const input = await openInput(cli, cli.get('[FILE]'));
  try {
    const { header, context, body } = await readPrelude(withProgress(cli, input.source, input.size));
    const output = await openOutput(cli, { binary: false });
    let answer: Answer;
    let key: Uint8Array;
    try {
      [answer, key] = await withClient(cli, async (client, appliance) => {
        const answer = await ask(cli, client, header);
        const privateKey = (await namedRingKey(cli)) ?? (await keptRingKey(cli, appliance, answer.ringname));
        return [answer, await unwrapRingKey({ privateKey, key: answer.key })];
      });
    } catch (error) {
      await output.discard();
      throw error;
    }
    await transfer(cli, decryptChunks(body, { key, context }), output).catch((error) => {
      throw output.left ? error : nothingLeft(error);
    });
    key.fill(0);
    if (cli.json && !writesToStdout(cli)) await printJson(cli, answer);
  } finally {
    await input.close();
  }
}

/** The answer for the header, once its asset is found good or that is not asked for. */
async function ask(cli: CliOf<typeof files.decrypt>, client: Client, header: string): Promise<Answer> {
  try {
    const answer = await client.decrypt({ header });
    if (answer.asset) await say(cli.io, verdict(answer));
    return answer;
  } catch (error) {
    if (!(error instanceof KmsError)) throw error;
    const advice = whenRefused[error.code];
    if (advice !== undefined) throw new KmsError(error.code, error.message, { hint: advice, cause: error });
    if (error.code !== 'asset-invalid') throw error;
    // Status 422 has the shape of a good answer: that is the interface.
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

/** A damaged file, of which nothing came out that would have to be thrown away. */
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

/** How long an appliance may take to answer before the file is shown without what it knows, in milliseconds. */
const lookUpTimeout = 5000;

/** Without a key. With an appliance in reach, also the ring's name. */
export async function inspect(cli: CliOf<typeof files.inspect>): Promise<void> {
  const input = await openInput(cli, cli.get('<FILE>'));
  try {
    const file = await inspectFile(input.source);
    const { hash, hasAsset, assetId, assetVersion, size, contentSize, header } = file;
    const ring = await ringOf(cli, hash);
    const asset = given({ hasSignedAsset: hasAsset, assetId, assetVersion });
    const json = {
      fileVersion: file.fileVersion,
      version: file.version,
      hash,
      ...ring,
      ...asset,
      size,
      contentSize,
      header,
    };
    await printThing(cli, json, [
      ['file format', file.fileVersion],
      ['header version', file.version],
      ['hash', hash],
      ['ring', ring.ringname ?? 'not known here'],
      ['ring id', ring.ringId],
      ['key', ring.keyId],
      ['asset', assetId ?? 'none'],
      ['asset version', assetVersion],
      ['size', `${size} bytes (${byteCount(size)})`],
      [
        'content',
        contentSize === undefined ? 'the file is cut or extended' : `${contentSize} bytes (${byteCount(contentSize)})`,
      ],
    ]);
  } finally {
    await input.close();
  }
}

interface Ring {
  readonly ringname?: string;
  readonly ringId?: string;
  readonly keyId?: string;
}

/** What the appliance knows of the hash: nothing where none is reachable or it does not tell. */
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
