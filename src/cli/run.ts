// One run of the command line: builds the grammar, runs the command, and reports any error in one line on stderr.
import { CommanderError } from 'commander';
import { KmsError } from '../errors.ts';
import { commandOn, type Session } from './command.ts';
import {
  exitCodeOf,
  exitCodes,
  Interrupted,
  interruptedBy,
  isInterruption,
  sentenceOf,
  withoutSecrets,
} from './exit.ts';
import { fitted, type Io, isBrokenPipe, say, tell, write } from './io.ts';
import { program } from './program.ts';
import { withSafeTerminals } from './terminal.ts';

/** Runs one command line and returns the exit code. Never throws. */
export async function runCli(world: Io): Promise<number> {
  const io = withSafeTerminals(world);
  const session: Session = { io, help: { out: [], err: [] }, exitCode: exitCodes.done, run: runCli };
  try {
    return await runCommand(session);
  } catch (error) {
    return await report(session, error);
  }
}

async function runCommand(session: Session): Promise<number> {
  const { io, help } = session;
  const kms = program(session);
  try {
    await kms.parseAsync([...io.args], { from: 'user' });
  } catch (error) {
    session.usageCode = commandOn(io.args, kms).usageCode;
    if (!(error instanceof CommanderError)) throw error;
    if (help.out.length > 0) await write(io.stdout, help.out.join(''));
    if (help.err.length > 0) await tell(io, help.err.join(''));
    return error.exitCode === 0 ? exitCodes.done : (session.usageCode ?? exitCodes.usage);
  }
  return session.exitCode;
}

async function report({ io, usageCode }: Session, error: unknown): Promise<number> {
  if (isInterruption(io, error)) {
    await say(io, error instanceof Interrupted ? error.message : 'interrupted');
    return interruptedBy(io.signal.reason);
  }
  // The reader closed our output (`| head`): not worth an error message, but not success either.
  if (isBrokenPipe(error)) return exitCodes.failed;
  const isOurs = error instanceof KmsError;
  const defect = isOurs ? error.cause : error;
  const isShown = !!io.env.KMS_DEBUG && (defect instanceof TypeError || (!isOurs && defect instanceof Error));
  const trace = isShown ? `${defect.stack}\n` : '';
  // The exit code says it too, even if stderr cannot be written.
  await tell(io, withoutSecrets(`${fitted(io.stderr, `kms: ${sentenceOf(error)}`)}\n${trace}`));
  if (usageCode !== undefined && isOurs && error.code === 'usage') return usageCode;
  return isOurs ? exitCodeOf(error) : exitCodes.failed;
}
