// The custodian `exec`: a command whose output is the secret. It is run by its name and a list of arguments, with no shell in between,
// and nothing of what it prints is ever shown.
import { execFile } from 'node:child_process';
import { KmsError } from '../../errors.ts';
import { parseSecret } from '../../seal/key-text.ts';
import type { Slot } from '../../seal/slot.ts';
import { systemCode } from '../trouble.ts';

export interface SecretCommand {
  readonly command: string;
  readonly args: readonly string[];
}

/** Milliseconds. */
const patience = 30_000;
const most = 64 * 1024;

export function commandOf({ params }: Slot): SecretCommand {
  const { command, args } = params;
  if (typeof command !== 'string' || !Array.isArray(args)) {
    throw new KmsError('corrupt', 'the seal file names no command for its custodian of the kind exec');
  }
  return { command, args };
}

/** Throws `sealed` when the command cannot be run, fails, or takes over 30 seconds. */
export async function execSecret({ command, args }: SecretCommand, timeout = patience): Promise<Uint8Array> {
  const output = await new Promise<Buffer>((resolve, reject) => {
    const options = { timeout, killSignal: 'SIGKILL', maxBuffer: most, encoding: 'buffer', shell: false } as const;
    const child = execFile(command, [...args], options, (error, stdout) => {
      if (error) {
        stdout.fill(0);
        reject(failure(command, error, timeout));
      } else resolve(stdout);
    });
    child.stdin?.end();
  });
  try {
    return parseSecret(output, `the output of ${command}`);
  } finally {
    output.fill(0);
  }
}

/** Neither the arguments nor what the command said: both may hold secrets. */
function failure(command: string, error: Error, timeout: number): KmsError {
  const code = systemCode(error);
  const exit = 'code' in error && typeof error.code === 'number' ? error.code : undefined;
  const killed = 'killed' in error && error.killed === true;
  const what =
    code === 'ENOENT'
      ? 'there is no such command'
      : code === 'EACCES'
        ? 'permission denied'
        : code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'
          ? `it printed more than ${most} bytes`
          : killed
            ? `it took more than ${timeout / 1000} s`
            : exit !== undefined
              ? `it ended with exit code ${exit}`
              : 'it could not be run';
  return new KmsError('sealed', `the command ${command} gave no master key: ${what}`, {
    hint: 'run it by hand as the user of the appliance',
  });
}
