// `kms backup create`: the whole appliance into one file, in constant memory. It gets its name once it is whole.
import { errorOfAnswer, errorOfFailure } from '../../../client/failure.ts';
import { KmsError } from '../../../errors.ts';
import type { Output } from '../../byte-files.ts';
import type { Cli } from '../../cli.ts';
import { type Connection, openConnection } from '../../connect.ts';
import { fileError, newFile } from '../../files.ts';
import { pathFrom, say, write } from '../../io.ts';
import { printJson } from '../../output.ts';
import { byteCount, transfer, withProgress } from '../../transfer.ts';
import { visible } from '../../visible.ts';

export async function run(cli: Cli): Promise<void> {
  const connection = await openConnection(cli);
  try {
    const out = cli.arg(0);
    if (out === '-') await toStdout(cli, await ask(cli, connection));
    else await toFile(cli, connection, pathFrom(cli.io, out));
  } finally {
    await connection.close();
  }
}

async function ask(cli: Cli, { way, baseUrl, fetch, headers }: Connection): Promise<AsyncIterable<Uint8Array>> {
  const local = way !== 'network';
  const request = local
    ? { path: '/local/backup', init: { body: '{}', headers: { 'content-type': 'application/json' } } }
    : { path: '/system/backup', init: { headers } };
  let response: Response;
  try {
    response = await fetch(new Request(baseUrl + request.path, { method: 'POST', ...request.init }));
  } catch (cause) {
    throw errorOfFailure(cause, baseUrl, cli.io.signal);
  }
  if (response.status !== 200) {
    throw errorOfAnswer(response, await response.json().catch(() => undefined), baseUrl);
  }
  return whole(cli, response.body ?? new ReadableStream());
}

/** The stream, and a clear word where it ends too early. */
async function* whole(cli: Cli, stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (cause) {
    if (cause instanceof KmsError || cli.io.signal.aborted) throw cause;
    throw brokenOff(cause);
  }
}

function brokenOff(cause: unknown): KmsError {
  return new KmsError('refused', 'the backup broke off: it is not whole', {
    hint: 'try again; the log of the appliance says why',
    cause,
  });
}

async function toStdout(cli: Cli, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const { stdout } = cli.io;
  if (stdout.isTTY) {
    throw new KmsError('usage', 'a backup is nothing for a terminal', { hint: 'give a file, or send it on' });
  }
  for await (const piece of pieces) await write(stdout, piece);
}

async function toFile(cli: Cli, connection: Connection, path: string): Promise<void> {
  const file = await newFile(path, 0o600);
  let bytes = 0;
  let manifest: Checked['manifest'] | undefined;
  const output: Output = {
    async write(piece) {
      try {
        for (let from = 0; from < piece.length; ) from += (await file.handle.write(piece, from)).bytesWritten;
      } catch (error) {
        throw fileError('write', path, error);
      }
      bytes += piece.length;
    },
    async commit() {
      try {
        manifest = (await check(file.temporary)).manifest;
        await file.commit();
      } catch (error) {
        await file.discard();
        throw fileError('write', path, error);
      }
    },
    discard: () => file.discard(),
    left: false,
  };
  try {
    await transfer(cli, withProgress(cli, await ask(cli, connection), undefined), output);
  } catch (error) {
    await file.discard();
    throw error;
  }
  if (cli.json) return printJson(cli, { file: path, bytes, ...manifest });
  await say(cli.io, visible(`${path}: ${byteCount(bytes)}; see that it restores with \`kms backup verify\``));
}

type Checked = Awaited<ReturnType<typeof check>>;

/** Nothing of it was lost on the way. */
async function check(path: string) {
  const { openBackupFile } = await import('../../../server/backup/verify.ts');
  try {
    return await openBackupFile(path);
  } catch (error) {
    throw brokenOff(error);
  }
}
