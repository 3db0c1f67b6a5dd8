// `kms encrypt`: asks for a key and a header, unwraps the key with the ring's private key, and encrypts here.
import { encryptFile } from '../../client/encrypt.ts';
import { unwrapRingKey } from '../../client/ring-key.ts';
import { KmsError } from '../../errors.ts';
import { openInput, openOutput, writesToStdout } from '../byte-files.ts';
import { type Cli, given } from '../cli.ts';
import { withClient } from '../connect.ts';
import { say } from '../io.ts';
import { printJson } from '../output.ts';
import { loadRingKey } from '../ring-key-file.ts';
import { transfer, withProgress } from '../transfer.ts';

export async function run(cli: Cli): Promise<void> {
  const ringname = cli.needed('--ring');
  const asset = assetOf(cli);
  const privateKey = await loadRingKey(cli, ringname);
  const input = await openInput(cli, cli.optionalArg(0));
  try {
    const output = await openOutput(cli, { binary: true });
    const answer = await withClient(cli, async (client) => {
      const answer = await client.encrypt(given({ ringname, asset }));
      return { ...answer, bytes: unwrapRingKey({ privateKey, key: answer.key }) };
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
function assetOf(cli: Cli) {
  const parents = cli.list('--parent');
  const asset = given({
    assetId: cli.text('--asset-id'),
    data: cli.object('--asset-data'),
    parents: parents.length > 0 ? [...parents] : undefined,
  });
  if (Object.keys(asset).length === 0) return undefined;
  if (asset.assetId === '')
    throw new KmsError('usage', '--asset-id: expected an id, got nothing', { hint: cli.seeHelp });
  return asset;
}
