// The exit codes of the command, and which error ends in which: the only place that knows, but for those of
// signals (interrupted.ts).
import type { ErrorCode } from '../errors.ts';

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
