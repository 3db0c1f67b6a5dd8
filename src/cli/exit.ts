// The exit codes of the command: which error ends in which, and those of signals, where it was asked to end before it
// was done.
import { type ErrorCode, KmsError } from '../errors.ts';
import type { Io } from './io.ts';

/** This file and nothing else knows which error ends in which. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  sealed: 4,
} as const;

export function exitCodeOf(code: ErrorCode): number {
  switch (code) {
    case 'usage':
      return exitCodes.usage;
    case 'unavailable':
      return exitCodes.unreachable;
    case 'sealed':
      return exitCodes.sealed;
    default:
      return exitCodes.failed;
  }
}

/** 128 and the signal's number, as shells have it. */
const codes: Readonly<Record<string, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** The exit code for the signal that ended it; Ctrl-C where that is not known. */
export function interruptedBy(reason: unknown): number {
  return codes[String(reason)] ?? 130;
}

/** Thrown where more can be said than that it was interrupted. */
export class Interrupted extends KmsError {
  constructor(left: string) {
    super('refused', `interrupted; ${left}`);
  }
}

/** Whether `error` is only the end that somebody asked for. */
export function isInterruption(io: Io, error: unknown): boolean {
  return io.signal.aborted || (error instanceof Error && error.name === 'AbortError');
}
