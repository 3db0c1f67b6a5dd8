// Secrets from people: typed without echo, on stdin, in a file, in the environment. Never on the command line, where
// other users of the machine could see them.
import { createInterface, type ReadLineOptions } from 'node:readline';
import { addAbortSignal, Writable } from 'node:stream';
import { KmsError } from '../errors.ts';
import { secretLines, secretOf } from '../model/secret-text.ts';
import type { Cli } from './command.ts';
import { readSmallFile } from './files.ts';
import { write } from './io.ts';

const most = 16_384;

/** The typed secret, or the one line of stdin; empty if there is none. `what` names it. */
export async function readSecret(cli: Cli, what: string): Promise<string> {
  const { stdin, stderr } = cli.io;
  const isTyped = stdin.isTTY && stderr.isTTY;
  return secretOf(isTyped ? await prompt(cli, what) : await readAll(cli, what), `the ${what} on stdin`);
}

/** The non-blank lines of stdin, each a secret. `what` names them. */
export async function readLines(cli: Cli, what: string): Promise<readonly string[]> {
  return secretLines(await readAll(cli, what), `the ${what} on stdin`);
}

async function readAll(cli: Cli, what: string): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of addAbortSignal(cli.io.signal, cli.io.stdin)) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    if (length > most) throw new KmsError('usage', `expected the ${what} on stdin, got more than ${most} bytes`);
  }
  return Buffer.concat(chunks);
}

async function prompt(cli: Cli, what: string): Promise<string> {
  const { stdin, stderr, signal } = cli.io;
  await write(stderr, `${what}: `);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  try {
    return await askLine({ input: stdin, output: nowhere, terminal: true }, '', signal);
  } finally {
    await write(stderr, '\n');
  }
}

/** The line exactly as typed; empty if the input ends without one (Ctrl-D). Ctrl-C rejects. */
export function askLine(options: ReadLineOptions, question: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const terminal = createInterface(options);
    let answer = '';
    const stop = (): void => {
      reject(new DOMException('stopped', 'AbortError'));
      terminal.close();
    };
    terminal.once('SIGINT', stop);
    signal.addEventListener('abort', stop, { once: true });
    terminal.once('close', () => {
      signal.removeEventListener('abort', stop);
      resolve(answer);
    });
    terminal.question(question, (line) => {
      answer = line;
      terminal.close();
    });
    if (signal.aborted) stop();
  });
}

/** The secret in a file that only this user may read; `what` names it. Throws like `readSecretBytes` and `secretOf`. */
export async function readSecretFile(path: string, what: string): Promise<string> {
  return secretOf(await readSecretBytes(path, what), path);
}

/**
 * The bytes of a small file with a secret, `what`. Throws `refused` if other users can read it. The mode of a pipe is
 * not checked.
 */
export async function readSecretBytes(path: string, what: string): Promise<Uint8Array> {
  return readSmallFile(path, what, async (file) => {
    const info = await file.stat();
    if (!info.isFile()) return;
    const { refuseExposed } = await import('../platform/ownership.ts');
    refuseExposed(path, info, what, `replace ${what}`);
  });
}

/** The passphrase in the file of --passphrase-file, else in KMS_PASSPHRASE. */
export async function givenPassphrase(cli: Cli): Promise<string | undefined> {
  const file = cli.globals.get('--passphrase-file');
  if (file !== undefined) return readSecretFile(file, 'the passphrase');
  const { KMS_PASSPHRASE } = cli.io.env;
  return KMS_PASSPHRASE ? secretOf(KMS_PASSPHRASE, 'KMS_PASSPHRASE') : undefined;
}

/** A new passphrase: given, or typed twice, or the line of stdin. */
export async function newPassphrase(cli: Cli): Promise<string> {
  const given = await givenPassphrase(cli);
  if (given !== undefined) return given;
  const passphrase = await readSecret(cli, 'new passphrase for the master key');
  const { stdin, stderr } = cli.io;
  if (passphrase !== '' && stdin.isTTY && stderr.isTTY && passphrase !== (await readSecret(cli, 'once more'))) {
    throw new KmsError('refused', 'the two passphrases differ; nothing was done');
  }
  return passphrase;
}

/** The API key; undefined if none is given. */
export async function readApiKey(cli: Cli): Promise<string | undefined> {
  const path = cli.globals.get('--api-key-file');
  if (path === undefined) {
    const key = secretOf(cli.io.env.KMS_API_KEY ?? '', 'KMS_API_KEY');
    return key ? checkedApiKey(key, 'KMS_API_KEY') : undefined;
  }
  return checkedApiKey(await readSecretFile(path, 'the API key'), path);
}

export function checkedApiKey(key: string, source: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new KmsError('invalid', `${source} does not hold an API key: expected one word`, {
    hint: 'an API key looks like kms_ and 49 letters and digits',
  });
}
