// `kms decrypt`: asks for the key that a file's header names, unwraps it with the ring's private key, and decrypts here. Says
// what became of the asset in the header.

import { decryptChunks } from '../../client/chunked.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { faultOf } from '../../client/file-faults.ts';
import { readPrelude } from '../../client/file-format.ts';
import { unwrapRingKey } from '../../client/ring-key.ts';
import { type ErrorCode, KmsError } from '../../errors.ts';
import { openInput, openOutput, writesToStdout } from '../byte-files.ts';
import type { Cli } from '../cli.ts';
import { withClient } from '../connect.ts';
import { say } from '../io.ts';
import { printJson } from '../output.ts';
import { loadRingKey } from '../ring-key-file.ts';
import { transfer, withProgress } from '../transfer.ts';
import { visible } from '../visible.ts';

type Answer = AnswerTo<'decrypt'>;

/** What to do about a header that the appliance does not take. */
const whenRefused: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid: 'get an unaltered copy of the file, or ask the appliance and tenant that it was made with',
  'not-found':
    'the ring or its key is gone from this appliance: restore it (`kms keyring restore`), or ask the one it is from',
};

export async function run(cli: Cli): Promise<void> {
  const input = await openInput(cli, cli.optionalArg(0));
  try {
    const { header, context, body } = await readPrelude(withProgress(cli, input.source, input.size));
    const output = await openOutput(cli, { binary: false });
    let answer: Answer;
    let key: Uint8Array;
    try {
      answer = await withClient(cli, (client) => ask(cli, client, header));
      key = unwrapRingKey({ privateKey: await loadRingKey(cli, answer.ringname), key: answer.key });
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
async function ask(cli: Cli, client: Client, header: string): Promise<Answer> {
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
    if (answer?.key && cli.isOn('--allow-invalid-asset')) {
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
