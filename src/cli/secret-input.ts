// A secret from stdin: asked for without echo on a terminal, else the first line of what comes.
import { addAbortSignal, Writable } from 'node:stream';
import { KmsError } from '../errors.ts';
import { askLine } from './ask.ts';
import type { Cli } from './cli.ts';
import { write } from './io.ts';

const most = 16_384;

/** The secret, without white space around it. `what` names it in the prompt. */
export async function readSecret(cli: Cli, what: string): Promise<string> {
  const { stdin, stderr } = cli.io;
  if (stdin.isTTY && stderr.isTTY) return ask(cli, what);
  return (await readAll(cli, what)).split('\n', 1)[0]?.trim() ?? '';
}

/** The lines of stdin that say something, each a secret. `what` names them. */
export async function readLines(cli: Cli, what: string): Promise<readonly string[]> {
  const text = await readAll(cli, what);
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

async function readAll(cli: Cli, what: string): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of addAbortSignal(cli.io.signal, cli.io.stdin)) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    if (length > most) throw new KmsError('usage', `expected the ${what} on stdin, got more than ${most} bytes`);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function ask(cli: Cli, what: string): Promise<string> {
  const { stdin, stderr, signal } = cli.io;
  await write(stderr, `${what}: `);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  try {
    return await askLine({ input: stdin, output: nowhere, terminal: true }, '', signal);
  } finally {
    await write(stderr, '\n');
  }
}
