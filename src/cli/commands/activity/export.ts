// `kms activity export`: all records as JSON Lines with the chain, in constant memory.
import { KmsError } from '../../../errors.ts';
import { openOutput, writesToStdout } from '../../byte-files.ts';
import type { Cli } from '../../cli.ts';
import { readHead } from '../../head-file.ts';
import { write } from '../../io.ts';
import { withLocal } from '../../local.ts';
import { transfer } from '../../transfer.ts';

export async function run(cli: Cli): Promise<void> {
  const since = await readHead(cli, '--since');
  await withLocal(cli, async ({ stream }) => {
    const output = writesToStdout(cli) ? undefined : await openOutput(cli, { binary: false });
    try {
      const lines = whole(cli, await stream('POST', '/local/activity/export', since === undefined ? {} : { since }));
      if (output) await transfer(cli, lines, output);
      else for await (const chunk of lines) await write(cli.io.stdout, chunk);
    } catch (error) {
      await output?.discard();
      throw error;
    }
  });
}

/** The stream, and a clear word where it ends too early. */
async function* whole(cli: Cli, stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (cause) {
    if (cause instanceof KmsError || cli.io.signal.aborted) throw cause;
    throw new KmsError('refused', 'the export broke off: it is not whole', {
      hint: 'see `kms activity verify` and the log of the appliance',
      cause,
    });
  }
}
