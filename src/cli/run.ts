// One run of the command line: builds the grammar, runs the command, and puts whatever goes wrong on one line of
// stderr.
import { CommanderError } from 'commander';
import { type ErrorCode, KmsError } from '../errors.ts';
import type { Session } from './command.ts';
import { exitCodeOf, exitCodes, Interrupted, interruptedBy, isInterruption } from './exit.ts';
import { type Io, isBrokenPipe, write } from './io.ts';
import { program } from './program.ts';
import { visible } from './text.ts';

/** Runs one command line and says with which code to exit. Never throws. */
export async function runCli(io: Io): Promise<number> {
  const session: Session = { io, help: { out: [], err: [] }, exitCode: exitCodes.done };
  try {
    return await runCommand(session);
  } catch (error) {
    return await report(io, error);
  }
}

async function runCommand(session: Session): Promise<number> {
  const { io, help } = session;
  try {
    await program(session).parseAsync([...io.args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (help.out.length > 0) await write(io.stdout, help.out.join(''));
    if (help.err.length > 0) await write(io.stderr, help.err.join(''));
    return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  }
  return session.exitCode;
}

/** What to do, where the error does not say: an answer over the network carries no hint. */
const usualAdvice: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthenticated: 'check the API key in --api-key-file, KMS_API_KEY or the profile',
  forbidden: 'use an API key that has it',
  quota: 'ask the operator for more room',
  'not-found': 'check the name or id',
  'rate-limited': 'wait and try again',
  sealed: 'unseal it first',
  internal: 'look into the log of the appliance',
};

async function report(io: Io, error: unknown): Promise<number> {
  if (isInterruption(io, error)) {
    await complain(io, `kms: ${error instanceof Interrupted ? error.message : 'interrupted'}\n`);
    return interruptedBy(io.signal.reason);
  }
  // Who reads our output has had enough of it (`| head`): no reason to complain.
  if (isBrokenPipe(error)) return exitCodes.done;
  if (error instanceof KmsError) {
    const advice = error.hint ?? usualAdvice[error.code];
    const hint = advice === undefined ? '' : `; ${advice}`;
    await complain(io, `kms: ${visible(error.message + hint)}\n`);
    return exitCodeOf(error.code);
  }
  const what = error instanceof Error ? error.message : String(error);
  const trace = io.env.KMS_DEBUG && error instanceof Error ? `${error.stack}\n` : '';
  const hint = isSystemError(error) ? '' : '; this is a defect of kms: KMS_DEBUG=1 shows where';
  await complain(io, `kms: ${visible(what)}${hint}\n${trace}`);
  return exitCodes.failed;
}

/** The exit code says it too, and holds where stderr cannot be written. */
async function complain(io: Io, text: string): Promise<void> {
  await write(io.stderr, withoutSecrets(text)).catch(() => {});
}

function isSystemError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && 'syscall' in error;
}

/** Errors repeat what was typed, which may be a secret in the place of the name of its file; stderr ends up in logs. */
const secrets = [
  // API keys and tokens, see crypto/secrets.ts.
  /(kms(?:at|in|rs)?_)[0-9A-Za-z]{43,}/g,
  // Private keys: PEM, and PKCS#8 in base64 with what each X25519 key begins with.
  /(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:(?!-----END).)*/gs,
  /(MC4CAQAwBQYDK2VuBCIEI)[0-9A-Za-z+/=]+/g,
];

/** The text with every secret of a known form cut to its beginning. */
function withoutSecrets(text: string): string {
  return secrets.reduce((rest, secret) => rest.replace(secret, '$1…'), text);
}
