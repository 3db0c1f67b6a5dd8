// `kms inspect`: what a file's header says, without a key. With an appliance in reach, also the ring's name.
import { inspectFile } from '../../client/inspect.ts';
import { openInput } from '../byte-files.ts';
import { type Cli, given } from '../cli.ts';
import { openConnection } from '../connect.ts';
import { printThing } from '../output.ts';
import { byteCount } from '../transfer.ts';

/** How long an appliance may take to answer before the file is shown without what it knows, in milliseconds. */
const patience = 5000;

export async function run(cli: Cli): Promise<void> {
  const input = await openInput(cli, cli.arg(0));
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
      const signal = AbortSignal.timeout(patience);
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
